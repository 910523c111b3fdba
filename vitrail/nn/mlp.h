// The feed-forward parts of transformer blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "vitrail/nn/drop.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/ops/activation.h"

namespace vitrail::nn {

struct MlpConfig {
  std::int64_t dim = 0;     // of the input
  std::int64_t hidden = 0;  // width inside
  std::int64_t out = 0;     // of the output; 0: dim
  ops::Activation activation = ops::Activation::gelu;
  bool fc1_bias = true;
  bool fc2_bias = true;
  std::optional<NormConfig> norm = std::nullopt;  // of the hidden units (timm's scale_mlp_norm)
  float drop1 = 0;                                // of the hidden units
  float drop2 = 0;                                // of the output
  bool gate_last = false;                         // of GluMlp: a ⊙ act(b) instead of act(a) ⊙ b
  // Of Mlp and GluMlp without `norm`: x [..., dim, D] → [..., out, D] instead, for mixing tokens.
  Along along = Along::features;
};

// All take x [..., dim] to [..., out] and add `residual` [..., out] where one is given.

// fc2(norm(act(fc1(x)))), timm's Mlp. fc1 [hidden, dim], fc2 [out, hidden].
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

// fc2(norm(act(a) ⊙ b)) with [a, b] = fc1(x), a gated linear unit (Shazeer 2020), timm's GluMlp, with gate_last = false
// unless the config says so; with SiLU it is timm's SwiGLUPacked, which DINOv2's giant uses. fc1 [hidden, dim], fc2
// [out, hidden / 2].
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

// fc2(norm(act(fc1_g(x)) ⊙ fc1_x(x))), the same unit with its two maps apart, timm's SwiGLU. fc1_g, fc1_x
// [hidden, dim], fc2 [out, hidden].
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

// Whichever of the three a model's config asks for.
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
