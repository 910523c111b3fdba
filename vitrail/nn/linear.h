/// \file
/// Linear maps with their parameters.
#pragma once

#include <cstdint>
#include <utility>

#include "vitrail/nn/parameters.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// The dimension that a Linear maps: the last (features) or the second last (tokens).
enum class Along { features, tokens };
/// How a weight lies: [out, in], or [in, out] as in GPT-2's Conv1D, whose initialization it has too: N(0, 0.02²), bias
/// 0.
enum class WeightLayout { out_in, in_out };

/// torch.nn.Linear: y = x Wᵀ + b, x [..., in] → [..., out]. With Along::tokens it maps the second last dimension
/// instead, x [..., in, D] → [..., out, D]. Parameters `weight` [out, in] and, with `bias`, `bias` [out], both drawn
/// from uniform(±1/√in).
///
/// If the scope says that the weight is held for inference (Held), it is a buffer. Of i8, there are the buffers
/// `weight_scale` [out] and, if the scale of the inputs is fixed, `input_scale` [1] too, and the product runs in int8
/// (ops::QuantizedWeight).
struct Linear {
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool bias = true, Along along = Along::features,
         WeightLayout layout = WeightLayout::out_in);
  /// Of a weight [out, in] and a bias `[out]` (or undefined) that exist already, as parts of larger parameters.
  Linear(Tensor existing_weight, Tensor existing_bias)
      : along(Along::features),
        layout(WeightLayout::out_in),
        weight(std::move(existing_weight)),
        bias(std::move(existing_bias)) {}
  Tensor operator()(const Tensor& x) const;
  /// act(x Wᵀ + b) + residual in one pass over memory. `residual`, which has the result's shape, may be undefined.
  Tensor operator()(const Tensor& x, ops::Activation activation, const Tensor& residual = {}) const;

  /// fvcore's count for `rows` rows (with Along::tokens, for that many features): a multiply-accumulate counts as one
  /// flop, the bias is not counted.
  std::int64_t flops(std::int64_t rows) const { return rows * weight.numel(); }
  std::int64_t in_features() const { return weight.size(layout == WeightLayout::out_in ? 1 : 0); }
  std::int64_t out_features() const { return weight.size(layout == WeightLayout::out_in ? 0 : 1); }

  Along along;
  WeightLayout layout;
  Tensor weight;
  Tensor bias;          ///< undefined without bias
  Tensor weight_scale;  ///< undefined unless the weight is i8
  Tensor input_scale;   ///< undefined unless it is i8 and the inputs have a fixed scale
};

/// An observer of linear maps: while it lives, it sees the inputs of all those that are applied on its thread. The
/// fixed input scales of quantized maps are chosen by how large these inputs get. Throws Error if the thread has an
/// observer already.
class InputObserver {
 public:
  InputObserver();
  virtual ~InputObserver();
  InputObserver(const InputObserver&) = delete;
  InputObserver& operator=(const InputObserver&) = delete;

  /// Is called before each linear map with its weight and its input.
  virtual void input(const Tensor& weight, const Tensor& x) = 0;
};

}  // namespace vitrail::nn
