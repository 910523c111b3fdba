/// \file
/// Named parameters: the store that holds them, and the scope through which layers make them.
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

/// How a new parameter is initialized.
struct Init {
  enum class Kind { zeros, ones, constant, normal, trunc_normal, trunc_normal_tf, uniform };
  Kind kind = Kind::zeros;
  float a = 0;                   ///< the constant; the standard deviation; half the width of a uniform distribution
  float scale = 1;               ///< factor on the values
  std::vector<Init> parts = {};  ///< unless empty: how equal parts of the first dimension are initialized
  float middle = 0;              ///< of a uniform distribution

  static Init zeros() { return {}; }
  static Init ones() { return {Kind::ones}; }
  static Init constant(float value) { return {Kind::constant, value}; }
  static Init normal(float std) { return {Kind::normal, std}; }
  /// N(0, std²) truncated at ±2, as timm's trunc_normal_ (the bounds are absolute, not in units of std).
  static Init trunc_normal(float std) { return {Kind::trunc_normal, std}; }
  /// N(0, 1) truncated at ±2 and then multiplied by std, as timm's trunc_normal_tf_.
  static Init trunc_normal_tf(float std) { return {Kind::trunc_normal_tf, std}; }
  static Init uniform(float bound) { return {Kind::uniform, bound}; }  ///< from -bound to bound
  /// From `low` to `high`, as torch's uniform_(low, high).
  static Init uniform(float low, float high) { return {Kind::uniform, (high - low) / 2, 1, {}, (high + low) / 2}; }
  static Init xavier_uniform(const Shape& shape);   ///< bound √(6 / (fan_in + fan_out)) (Glorot & Bengio 2010)
  static Init kaiming_uniform(const Shape& shape);  ///< bound 1 / √fan_in, as torch.nn.Linear and Conv2d
  static Init kaiming_normal(const Shape& shape);   ///< N(0, 2 / fan_out) (He et al. 2015), as timm's convolutions
  static Init lecun_normal(const Shape& shape);     ///< truncated normal of variance 1 / fan_in, as timm's
                                                    ///< lecun_normal_

  /// This Init with its values multiplied by `factor`.
  Init scaled(float factor) const { return {kind, a, scale * factor, parts, middle}; }
  /// The first dimension in equal parts (their ends rounded down), each initialized by an Init of its own.
  static Init in_parts(std::vector<Init> inits) { return {Kind::zeros, 0, 1, std::move(inits)}; }
  /// This Init for the first half of the first dimension (rounded down), and `lower` for the rest.
  Init with_lower_half(const Init& lower) const { return in_parts({*this, lower}); }
};

/// A model's own rule of initialization: it takes a parameter's name within the model, its shape and the Init that its
/// layer asks for, and returns the Init to use.
using InitRule = std::function<Init(std::string_view name, const Shape& shape, const Init& own)>;

/// Initializes the f32 `tensor` by `init`: element i from number i of the stream, on all threads.
void fill(const Tensor& tensor, const Init& init, const Philox& philox);

/// How the weight of a linear map, or a table of embeddings, is held for inference alone: [out, in], row by row in
/// memory, in this dtype and in no other form.
struct Held {
  DType dtype = DType::i8;  ///< f32, bf16, or i8: whole numbers with a scale for each row, in a buffer `…_scale` [out]
  bool fixed_scale = false;  ///< of i8: whether the scale of the inputs is fixed too (see Linear)
};

/// A parameter or a buffer of a model.
struct Parameter {
  std::string name;       ///< the full name, as in the checkpoint: "blocks.0.attn.qkv.weight"
  Tensor value;           ///< f32 (buffers may be i64, held weights bf16 or i8); if trainable, a leaf with a gradient
  bool trainable = true;  ///< false for buffers (running statistics) and frozen parameters
  bool buffer = false;    ///< part of the checkpoint, but never trained nor decayed
  Init init;              ///< how the value is initialized
  std::optional<Held> held = std::nullopt;  ///< of a weight that is held for inference, and so is a buffer
};

/// What a ParameterStore does with the elements of a new parameter.
enum class Fill {
  initialize,  ///< initializes them by their Init
  leave,       ///< leaves them uninitialized, since a checkpoint is about to be loaded
  meta         ///< takes no memory for them: only names and shapes exist
};

/// What a ParameterStore is told about the model that is about to be made.
struct StoreOptions {
  std::uint64_t seed = 0;
  Fill fill = Fill::initialize;
  /// The names of the weights that are held for inference alone, and how.
  std::map<std::string, Held, std::less<>> held = {};
};

/// All parameters and buffers of a model, in the order in which its constructor made them.
class ParameterStore {
 public:
  explicit ParameterStore(StoreOptions options = {}) : options_(std::move(options)) {}
  const StoreOptions& options() const { return options_; }

  /// Adds a parameter (or a buffer) and initializes it by `init` from the Philox stream of its name, so that its values
  /// do not depend on the order. Throws Error if the name exists.
  /// A parameter that is to be held takes the dtype that is said there, and becomes a buffer; `by_columns` says that
  /// its shape is [in, out], so that its columns lie one after the other. It is left uninitialized: its scales are not
  /// there yet.
  Tensor add(std::string name, const Shape& shape, const Init& init, bool buffer = false, DType dtype = DType::f32,
             bool by_columns = false);
  /// Initializes a parameter again by its Init. Throws Error if there is none of that name.
  void initialize(std::string_view name) const;
  /// Copies a value of this shape to a parameter, converted to the parameter's dtype. One that is held in i8 gets the
  /// value rounded, and its scales with it, unless the value is i8 itself.
  void set(const Parameter& parameter, const Tensor& value) const;

  const std::vector<Parameter>& all() const { return parameters_; }
  std::vector<Parameter>& all() { return parameters_; }
  const Parameter* find(std::string_view name) const;  ///< null if there is none
  const Parameter& at(std::string_view name) const;    ///< Error if there is none
  std::int64_t count() const;  ///< number of elements of all parameters that are not buffers, and of held weights

  /// Switches the gradient of a parameter on or off, also in the layer that holds it. Throws Error if there is none of
  /// that name, or if a buffer is to be trained.
  void set_trainable(std::string_view name, bool trainable);
  /// Drops the gradients of all parameters.
  void zero_grad() const;

 private:
  StoreOptions options_;
  std::vector<Parameter> parameters_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

/// A place in the tree of names. The constructor of a layer takes a Scope and asks it for its parameters:
///
/// ```text
/// Linear::Linear(Scope scope, std::int64_t in, std::int64_t out)
///     : weight(scope.parameter("weight", {out, in}, Init::trunc_normal(0.02F))) …
/// Block::Block(Scope scope, …) : norm1(scope / "norm1", …), attn(scope / "attn", …) …
/// ```
///
/// A model is such a layer too, and can stand inside another one: it begins with a scope that has its own rule of
/// initialization.
class Scope {
 public:
  explicit Scope(ParameterStore& store, std::string path = "") : store_(&store), path_(std::move(path)) {}

  /// The same place, for a model whose parameters start by `rule`, which is told their names from here on
  /// ("head.weight" for "vision_model.head.weight"). It takes the place of the rule of a model around this one; an
  /// empty rule leaves the layers to start on their own. Buffers are not asked about.
  Scope with_init(InitRule rule) const;

  Scope operator/(std::string_view child) const;
  Scope operator/(std::int64_t index) const { return *this / std::to_string(index); }
  // Both add `name` in this place to the store; see ParameterStore::add().

  Tensor parameter(std::string_view name, const Shape& shape, const Init& init, bool by_columns = false) const;
  Tensor buffer(std::string_view name, const Shape& shape, const Init& init, DType dtype = DType::f32) const;
  const std::string& path() const { return path_; }
  const StoreOptions& options() const { return store_->options(); }
  /// How the parameter `weight` in this place is held for inference; nothing if it is not.
  std::optional<Held> held() const;

 private:
  std::string full(std::string_view name) const;
  ParameterStore* store_;
  std::string path_;
  std::shared_ptr<const InitRule> rule_;  ///< null: none
  std::string rule_path_;                 ///< where the rule's names begin
};

}  // namespace vitrail::nn
