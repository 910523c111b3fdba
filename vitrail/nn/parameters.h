// Parameters by name: the store that holds them, and the scope through which layers ask for them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// How a new parameter is filled.
struct Init {
  enum class Kind { zeros, ones, constant, normal, trunc_normal, uniform };
  Kind kind = Kind::zeros;
  float a = 0;  // the constant; the standard deviation; the bound of uniform(-a, a)

  static Init zeros() { return {Kind::zeros, 0}; }
  static Init ones() { return {Kind::ones, 0}; }
  static Init constant(float value) { return {Kind::constant, value}; }
  static Init normal(float std) { return {Kind::normal, std}; }
  // N(0, std²) cut off at ±2, as timm's trunc_normal_ (the bounds are absolute, not in units of std).
  static Init trunc_normal(float std) { return {Kind::trunc_normal, std}; }
  static Init uniform(float bound) { return {Kind::uniform, bound}; }
  static Init xavier_uniform(const Shape& shape);   // bound √(6 / (fan_in + fan_out)) (Glorot & Bengio 2010)
  static Init kaiming_uniform(const Shape& shape);  // bound 1 / √fan_in: what torch.nn.Linear and Conv2d start from
  static Init lecun_normal(const Shape& shape);     // truncated normal of variance 1 / fan_in, as timm's lecun_normal_
};

struct Parameter {
  std::string name;       // full, as in the checkpoint: "blocks.0.attn.qkv.weight"
  Tensor value;           // f32; a leaf whose gradient is wanted if trainable
  bool trainable = true;  // false for buffers (running statistics) and frozen parameters
  bool buffer = false;    // part of the checkpoint, but never trained nor decayed
};

// All parameters of a model, in the order in which its constructor asked for them.
class ParameterStore {
 public:
  explicit ParameterStore(std::uint64_t seed = 0) : seed_(seed) {}

  // Makes a parameter filled by `init` from the Philox stream of its name, so that values do not depend on the order.
  // Error if the name exists.
  Tensor add(std::string name, const Shape& shape, const Init& init, bool buffer = false);

  const std::vector<Parameter>& all() const { return parameters_; }
  std::vector<Parameter>& all() { return parameters_; }
  const Parameter* find(std::string_view name) const;  // null if there is none
  const Parameter& at(std::string_view name) const;    // Error if there is none
  std::int64_t count() const;                          // numbers in all parameters that are not buffers

  // Switches gradients of one parameter on or off.
  void set_trainable(std::string_view name, bool trainable);
  void zero_grad() const;

 private:
  std::uint64_t seed_;
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
  Tensor buffer(std::string_view name, const Shape& shape, const Init& init) const;
  const std::string& path() const { return path_; }

 private:
  std::string full(std::string_view name) const;
  ParameterStore* store_;
  std::string path_;
};

}  // namespace vitrail::nn
