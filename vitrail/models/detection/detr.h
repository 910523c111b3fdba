/// \file
/// DETR: objects in an image as a set, by a transformer (Carion et al. 2020).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/convnet/resnet.h"
#include "vitrail/models/detection/detr_transformer.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/pass.h"

namespace vitrail::models {

/// The sizes and parts of a Detr, by the names of transformers' DetrConfig where it has them.
struct DetrConfig : DetrTransformerConfig {
  /// How the places of the features are coded: by sines and cosines, or by learned rows and columns.
  enum class Positions { sine, learned };

  ResNetConfig backbone = {};  ///< with num_classes 0
  Positions positions = Positions::sine;
};

/// Images of a batch. Those that are smaller than the largest are padded with zeros at the right and below.
struct DetrInput {
  Tensor x;           ///< [B, C, H, W] f32, normalized
  Tensor pixel_mask;  ///< bool [B, H, W], true where a pixel is the image's; undefined: everywhere
};

/// What each query says: S sets of Q predictions each.
struct SetPredictions {
  Tensor logits;  ///< [S, Q, num_labels + 1] f32; the last class is "no object"
  Tensor boxes;   ///< [S, Q, 4] f32: (cx, cy, w, h) relative to the image without its padding, 0 … 1
};

/// End-to-End Object Detection with Transformers (Carion et al. 2020), transformers' DetrForObjectDetection: the
/// features of a ResNet, projected to tokens with positions, go through a DetrTransformer, whose queries are
/// predictions, each a class and a box.
///
/// A batch norm of the backbone whose weight does not require a gradient keeps its statistics (nn::BatchNorm2d): that
/// is the reference's frozen batch norm.
///
/// Parameters by transformers' names: `model.backbone.conv_encoder.model.…` (timm's in the ResNet),
/// `model.input_projection`, `model.query_position_embeddings`, `model.encoder.layers.{i}.…`,
/// `model.decoder.layers.{i}.…`, `model.decoder.layernorm`, `class_labels_classifier`, `bbox_predictor.layers.{0,1,2}`;
/// learned positions are `model.position_embedding.{row,column}_embeddings`. The transformer starts as
/// facebookresearch/detr's does: matrices Xavier uniform, query embeddings N(0, 1).
class Detr final : public nn::Network {
 public:
  /// Throws Error if the arguments contradict each other.
  explicit Detr(const DetrConfig& config, const nn::StoreOptions& store = {});

  /// The predictions of the last layer, of B sets.
  SetPredictions forward(const DetrInput& input, nn::Pass& pass) const;
  /// Those of all layers of the decoder, in order, of decoder_layers · B sets: each layer's states go through the one
  /// final norm to the heads, and without it to the next layer.
  SetPredictions forward_layers(const DetrInput& input, nn::Pass& pass) const;

  /// Excludes from training what the original does not train of a backbone that has learnt before: its batch norms,
  /// whose statistics then stay too, and the layers before its second stage.
  void freeze_backbone();

  /// The multiply-accumulates of the products for one image of this size, as fvcore counts them.
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  /// The grid of features of an image of this size.
  nn::Size2 grid(std::int64_t height, std::int64_t width) const;
  const DetrConfig& config() const { return config_; }

  /// The blocks of the backbone, then the encoder's and the decoder's layers.
  std::int64_t depth() const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  /// What depends on the kinds of objects.
  bool is_head(const std::string& parameter) const override;
  bool is_backbone(const std::string& parameter) const override;

 private:
  std::vector<Tensor> decode(const DetrInput& input, nn::Pass& pass, bool all_layers) const;
  SetPredictions predict(const Tensor& states) const;
  Tensor positions_of(const Tensor& mask, std::int64_t batch, const nn::Size2& grid) const;

  DetrConfig config_;
  std::optional<ResNet> backbone_;
  std::optional<nn::Conv2d> input_projection_;
  std::optional<nn::Embedding> rows_;  // learned positions
  std::optional<nn::Embedding> columns_;
  std::optional<DetrTransformer> transformer_;
  std::optional<DetrHeads> heads_;
};

}  // namespace vitrail::models
