/// \file
/// Recurrent networks that read an image row by row, as if it were a sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/recurrent/recurrent.h"

namespace vitrail::models {

/// The sizes and parts of a RowNetwork.
struct RowNetworkConfig {
  std::int64_t num_classes = 1000;  ///< 0: no head, the last output comes out
  nn::Size2 img_size = {32, 32};
  std::int64_t in_chans = 3;
  std::int64_t rows = 1;        ///< of the image that are read in a step; all of them: a single step
  nn::RecurrentConfig network;  ///< its input_size follows from the others
  double drop_rate = 0;         ///< before the head
};

/// A recurrent network over the rows of x [B, C, H, W], from above, whose last output is classified:
///
/// ```text
/// x_t = rows t·r … t·r + r - 1 of all channels,   h_t = cell(x_t, h_{t-1}),   logits = W h_T + b
/// ```
///
/// In both directions, the output that has read all of the image counts for each. With rows = H and the vanilla cell
/// this is a dense layer, tanh(W x + b), and a classifier: from a state of zeros, a single step knows no before.
/// Parameters are `rnn.weight_ih_l0` … and `head.weight`, `head.bias`.
class RowNetwork {
 public:
  /// Throws Error if the arguments contradict each other.
  RowNetwork(const nn::Scope& scope, const RowNetworkConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< the outputs of all steps, [B, T, D · P]
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return config_.network.directions() * config_.network.output_size(); }
  std::int64_t depth() const { return config_.network.num_layers; }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head."); }
  bool takes_any_size() const { return false; }
  bool has_attention() const { return false; }
  const RowNetworkConfig& config() const { return config_; }

 private:
  std::string path_;
  RowNetworkConfig config_;
  std::optional<nn::Recurrent> network_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
