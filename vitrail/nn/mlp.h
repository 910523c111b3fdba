/// \file
/// The feed-forward networks of transformer blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "vitrail/nn/drop.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/ops/math/activation.h"

namespace vitrail::nn {

/// What the parts of a feed-forward network are called. The defaults are timm's.
struct MlpNames {
  std::string fc1 = "fc1";
  std::string fc1_g = "fc1_g";  ///< of SwiGlu, instead of fc1
  std::string fc1_x = "fc1_x";
  std::string norm = "norm";
  std::string fc2 = "fc2";
};

/// The sizes and options of a feed-forward network.
struct MlpConfig {
  std::int64_t dim = 0;     ///< of the input
  std::int64_t hidden = 0;  ///< width inside
  std::int64_t out = 0;     ///< of the output; 0: dim
  ops::Activation activation = ops::Activation::gelu;
  bool fc1_bias = true;
  bool fc2_bias = true;
  std::optional<NormConfig> norm = std::nullopt;  ///< of the hidden units (timm's scale_mlp_norm)
  float drop1 = 0;                                ///< dropout of the hidden units
  float drop2 = 0;                                ///< dropout of the output
  bool gate_last = false;                         ///< GluMlp: a ⊙ act(b) instead of act(a) ⊙ b

  /// Mlp and GluMlp without `norm`: Along::tokens mixes tokens, x [..., dim, D] → [..., out, D].
  Along along = Along::features;
  WeightLayout layout = WeightLayout::out_in;  ///< of the weights
  MlpNames names = {};
};

/// timm's Mlp: fc2(norm(act(fc1(x)))) + residual, x [..., dim] → [..., out]; `residual` [..., out] may be undefined.
/// The weights are fc1 [hidden, dim] and fc2 [out, hidden].
struct Mlp {
  Mlp(const Scope& scope, const MlpConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass, const Tensor& residual = {}) const;
  std::int64_t flops(std::int64_t rows) const;

  ops::Activation activation;
  Linear fc1;
  Dropout drop1;
  std::optional<Norm> norm;
  Linear fc2;
  Dropout drop2;
};

/// timm's GluMlp, a gated linear unit (Shazeer 2020): fc2(norm(act(a) ⊙ b)) + residual with [a, b] = fc1(x), x
/// [..., dim] → [..., out]; `residual` [..., out] may be undefined. gate_last is false unless the config sets it, other
/// than in timm. With SiLU it is then timm's SwiGLUPacked, which DINOv2's giant model uses. The weights are fc1
/// [hidden, dim] and fc2 [out, hidden / 2].
struct GluMlp {
  GluMlp(const Scope& scope, const MlpConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass, const Tensor& residual = {}) const;
  std::int64_t flops(std::int64_t rows) const;

  ops::Activation activation;
  bool gate_last;
  Linear fc1;
  Dropout drop1;
  std::optional<Norm> norm;
  Linear fc2;
  Dropout drop2;
};

/// timm's SwiGLU, a gated linear unit whose two maps are apart: fc2(norm(act(fc1_g(x)) ⊙ fc1_x(x))) + residual, x
/// [..., dim] → [..., out]; `residual` [..., out] may be undefined. The weights are fc1_g and fc1_x [hidden, dim] and
/// fc2 [out, hidden].
struct SwiGlu {
  SwiGlu(const Scope& scope, const MlpConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass, const Tensor& residual = {}) const;
  std::int64_t flops(std::int64_t rows) const;

  ops::Activation activation;
  Linear fc1_g;
  Linear fc1_x;
  Dropout drop1;
  std::optional<Norm> norm;
  Linear fc2;
  Dropout drop2;
};

enum class MlpKind { mlp, glu, swiglu };

/// The feed-forward network that a model's config asks for: one of the three above.
class FeedForward {
 public:
  FeedForward(const Scope& scope, MlpKind kind, const MlpConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass, const Tensor& residual = {}) const {
    return std::visit([&](const auto& mlp) { return mlp(x, pass, residual); }, mlp_);
  }
  std::int64_t flops(std::int64_t rows) const {
    return std::visit([&](const auto& mlp) { return mlp.flops(rows); }, mlp_);
  }

 private:
  std::variant<Mlp, GluMlp, SwiGlu> mlp_;
};

}  // namespace vitrail::nn
