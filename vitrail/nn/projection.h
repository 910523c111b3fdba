/// \file
/// The heads that are trained on top of an encoder to learn without labels, and thrown away afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vitrail/nn/linear.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// torch.nn.BatchNorm1d of x [B, D]: in training by the statistics of the batch, else by the running ones. Parameters
/// `weight` and `bias` [D] unless it is plain; buffers `running_mean`, `running_var` [D] and `num_batches_tracked` [].
struct BatchNorm1d {
  BatchNorm1d(const Scope& scope, std::int64_t features, bool plain = false, float eps = 1e-5F, float momentum = 0.1F);
  /// norm(x), and then max(0, norm(x)) if `relu`.
  Tensor operator()(const Tensor& x, const Pass& pass, bool relu = false) const;

  float eps;
  float momentum;
  Tensor weight;  ///< undefined if it is plain
  Tensor bias;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;
};

/// What follows the last linear map of a Projector.
enum class LastNorm {
  none,
  plain,  ///< a BatchNorm1d without scale and shift
  affine  ///< a BatchNorm1d
};

/// The sizes of a Projector.
struct ProjectorConfig {
  std::int64_t in = 0;
  std::int64_t hidden = 0;
  std::int64_t out = 0;
  std::int64_t layers = 2;
  LastNorm last_norm = LastNorm::affine;
};

/// The projectors of SimCLR (Chen et al. 2020) and of MoCo v3 (Chen et al. 2021), and the latter's predictor: linear
/// maps without bias, each but the last with a BatchNorm1d and a ReLU behind it, x [B, in] → [B, out]. Parameters are
/// named as in a torch.nn.Sequential: `0.weight`, `1.weight`, `1.bias`, `3.weight` …
class Projector {
 public:
  Projector(const Scope& scope, const ProjectorConfig& config);
  Tensor operator()(const Tensor& x, const Pass& pass) const;  ///< in f32

 private:
  std::vector<Linear> linear_;
  std::vector<BatchNorm1d> norms_;
};

/// The sizes of a DinoHead, by the reference's names.
struct DinoHeadConfig {
  std::int64_t in_dim = 0;
  std::int64_t out_dim = 65536;
  bool use_bn = false;
  bool norm_last_layer = true;  ///< `weight_g` is frozen
  std::int64_t nlayers = 3;
  std::int64_t hidden_dim = 2048;
  std::int64_t bottleneck_dim = 256;
};

/// DINO's head (Caron et al. 2021; facebookresearch/dino, DINOHead), x [B, in_dim] → [B, out_dim]:
///
/// ```text
/// y = mlp(x) / |mlp(x)|                  mlp: linear maps with GELU between them
/// out_k = g_k ⟨v_k, y⟩ / |v_k|           a weight-normalized linear map without bias
/// ```
///
/// Parameters `mlp.0.weight` …, `last_layer.weight_g` [out_dim, 1], which is 1, and `last_layer.weight_v`
/// [out_dim, bottleneck_dim].
class DinoHead {
 public:
  DinoHead(const Scope& scope, const DinoHeadConfig& config);
  /// In f32. With `frozen_last_layer`, the last layer gets no gradient: not a gradient of zeros, by which an optimizer
  /// would still move and decay it.
  Tensor operator()(const Tensor& x, const Pass& pass, bool frozen_last_layer = false) const;

 private:
  std::vector<Linear> mlp_;
  std::vector<BatchNorm1d> norms_;  // empty without batch norm
  Tensor weight_g_;
  Tensor weight_v_;
};

}  // namespace vitrail::nn
