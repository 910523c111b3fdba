// Parameters by name: the store that holds them, and the scope through which layers ask for them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// How a new parameter is filled.
struct Init {
  enum class Kind { zeros, ones, constant, normal, trunc_normal, trunc_normal_tf, uniform };
  Kind kind = Kind::zeros;
  float a = 0;      // the constant; the standard deviation; the bound of uniform(-a, a)
  float scale = 1;  // the drawn values are multiplied by it
  std::shared_ptr<const Init> lower_half = nullptr;  // if present, fills the second half of the first dimension

  static Init zeros() { return {}; }
  static Init ones() { return {Kind::ones}; }
  static Init constant(float value) { return {Kind::constant, value}; }
  static Init normal(float std) { return {Kind::normal, std}; }
  // N(0, std²) cut off at ±2, as timm's trunc_normal_ (the bounds are absolute, not in units of std).
  static Init trunc_normal(float std) { return {Kind::trunc_normal, std}; }
  // N(0, 1) cut off at ±2 and then multiplied by std, as timm's trunc_normal_tf_.
  static Init trunc_normal_tf(float std) { return {Kind::trunc_normal_tf, std}; }
  static Init uniform(float bound) { return {Kind::uniform, bound}; }
  static Init xavier_uniform(const Shape& shape);   // bound √(6 / (fan_in + fan_out)) (Glorot & Bengio 2010)
  static Init kaiming_uniform(const Shape& shape);  // bound 1 / √fan_in: what torch.nn.Linear and Conv2d start from
  static Init kaiming_normal(const Shape& shape);   // N(0, 2 / fan_out) (He et al. 2015), as timm's convolutions start
  static Init lecun_normal(const Shape& shape);     // truncated normal of variance 1 / fan_in, as timm's lecun_normal_

  // The same with its values multiplied by `factor`.
  Init scaled(float factor) const { return {kind, a, scale * factor, lower_half}; }
  // The same for the first half of the first dimension (rounded down), and `lower` for the rest.
  Init with_lower_half(const Init& lower) const { return {kind, a, scale, std::make_shared<Init>(lower)}; }
};

// A model's own say in how parameters start: takes a parameter's name and shape and the Init its layer asks for, and
// returns the one to use.
using InitRule = std::function<Init(std::string_view name, const Shape& shape, const Init& own)>;

// Writes `init`'s values into f32 `tensor`, element i from number i of the stream, on all threads.
void fill(const Tensor& tensor, const Init& init, const Philox& philox);

struct Parameter {
  std::string name;       // full, as in the checkpoint: "blocks.0.attn.qkv.weight"
  Tensor value;           // f32 (buffers may be i64 or i8); a leaf whose gradient is wanted if trainable
  bool trainable = true;  // false for buffers (running statistics) and frozen parameters
  bool buffer = false;    // part of the checkpoint, but never trained nor decayed
  Init init;              // what a fresh one is filled with
};

// What a store does with the elements of a new parameter.
enum class Fill {
  initialize,  // fills them by their Init
  leave,       // leaves them unset, for whoever is about to load a checkpoint over them
  shapes_only  // takes no memory at all: names and shapes can be asked for, elements cannot
};

// What a store is told about the model that is going to be made.
struct StoreOptions {
  std::uint64_t seed = 0;
  Fill fill = Fill::initialize;
  // Weights of linear maps that are held in int8, by name, and whether the scale of their inputs is fixed
  // (Linear says more).
  std::map<std::string, bool, std::less<>> quantized = {};
};

// All parameters of a model, in the order in which its constructor asked for them.
class ParameterStore {
 public:
  explicit ParameterStore(StoreOptions options = {}) : options_(std::move(options)) {}
  const StoreOptions& options() const { return options_; }

  // For the parameters that are made from now on.
  void set_init_rule(InitRule rule) { rule_ = std::move(rule); }

  // Makes a parameter filled by `init` from the Philox stream of its name, so that values do not depend on the order.
  // Error if the name exists.
  Tensor add(std::string name, const Shape& shape, const Init& init, bool buffer = false, DType dtype = DType::f32);
  // Fills one parameter anew by its Init.
  void initialize(std::string_view name) const;

  const std::vector<Parameter>& all() const { return parameters_; }
  std::vector<Parameter>& all() { return parameters_; }
  const Parameter* find(std::string_view name) const;  // null if there is none
  const Parameter& at(std::string_view name) const;    // Error if there is none
  std::int64_t count() const;  // numbers in all parameters that are not buffers, and in weights of int8

  // Switches gradients of one parameter on or off, for the layer that holds it too. Error for a buffer.
  void set_trainable(std::string_view name, bool trainable);
  void zero_grad() const;

 private:
  StoreOptions options_;
  InitRule rule_;
  std::vector<Parameter> parameters_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

// A place in the tree of names. A layer's constructor takes one and asks it for its parameters:
//
//   Linear::Linear(Scope scope, std::int64_t in, std::int64_t out)
//       : weight(scope.parameter("weight", {out, in}, Init::trunc_normal(0.02F))) …
//   Block::Block(Scope scope, …) : norm1(scope / "norm1", …), attn(scope / "attn", …) …
class Scope {
 public:
  explicit Scope(ParameterStore& store, std::string path = "") : store_(&store), path_(std::move(path)) {}

  Scope operator/(std::string_view child) const;
  Scope operator/(std::int64_t index) const { return *this / std::to_string(index); }
  Tensor parameter(std::string_view name, const Shape& shape, const Init& init) const;
  Tensor buffer(std::string_view name, const Shape& shape, const Init& init, DType dtype = DType::f32) const;
  const std::string& path() const { return path_; }
  const StoreOptions& options() const { return store_->options(); }
  // Whether the weight of the linear map here is held in int8, and if so whether the scale of its inputs is fixed.
  std::optional<bool> quantized() const;

 private:
  std::string full(std::string_view name) const;
  ParameterStore* store_;
  std::string path_;
};

}  // namespace vitrail::nn
