/// \file
/// DETR: objects in an image as a set, by a transformer (Carion et al. 2020).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/convnet/resnet.h"
#include "vitrail/nn/attention/attention.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/pass.h"

namespace vitrail::models {

/// The sizes and parts of a Detr, by the names of transformers' DetrConfig where it has them.
struct DetrConfig {
  /// How the places of the features are coded: by sines and cosines, or by learned rows and columns.
  enum class Positions { sine, learned };

  ResNetConfig backbone = {};  ///< with num_classes 0
  std::int64_t d_model = 256;
  std::int64_t encoder_layers = 6;
  std::int64_t decoder_layers = 6;
  std::int64_t encoder_attention_heads = 8;
  std::int64_t decoder_attention_heads = 8;
  std::int64_t encoder_ffn_dim = 2048;
  std::int64_t decoder_ffn_dim = 2048;
  ops::Activation activation = ops::Activation::relu;
  std::int64_t num_queries = 100;
  std::int64_t num_labels = 91;  ///< the kinds of objects; "no object" is one more
  Positions positions = Positions::sine;
  float dropout = 0.1F;
  float attention_dropout = 0;
  float activation_dropout = 0;
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

/// One layer of the encoder, x [B, N, D] → [B, N, D]:
///
/// ```text
/// x = norm(x + attention(q = x + p, k = x + p, v = x)),   x = norm(x + fc2(act(fc1(x))))
/// ```
///
/// where p are the positions. Parameters by the names of transformers' DetrEncoderLayer.
struct DetrEncoderLayer {
  DetrEncoderLayer(const nn::Scope& scope, const DetrConfig& config);
  Tensor operator()(const Tensor& x, const Tensor& positions, const Tensor& mask, nn::Pass& pass) const;

  nn::CrossAttention self_attn;
  nn::Norm self_attn_layer_norm;
  nn::Mlp mlp;
  nn::Norm final_layer_norm;
};

/// One layer of the decoder, x [B, Q, D] → [B, Q, D], which reads the encoder's memory [B, N, D]:
///
/// ```text
/// x = norm(x + attention(q = x + o, k = x + o, v = x))
/// x = norm(x + attention(q = x + o, k = memory + p, v = memory)),   x = norm(x + fc2(act(fc1(x))))
/// ```
///
/// where o are the query embeddings. Parameters by the names of transformers' DetrDecoderLayer.
struct DetrDecoderLayer {
  DetrDecoderLayer(const nn::Scope& scope, const DetrConfig& config);
  /// What the queries look at, the same for all layers.
  struct Memory {
    Tensor values;  ///< the encoder's output
    Tensor keys;    ///< with the positions added
    Tensor mask;    ///< bool [B, 1, 1, N] or undefined
  };
  Tensor operator()(const Tensor& x, const Tensor& queries, const Memory& memory, nn::Pass& pass) const;

  nn::CrossAttention self_attn;
  nn::Norm self_attn_layer_norm;
  nn::CrossAttention encoder_attn;
  nn::Norm encoder_attn_layer_norm;
  nn::Mlp mlp;
  nn::Norm final_layer_norm;
};

/// End-to-End Object Detection with Transformers (Carion et al. 2020), transformers' DetrForObjectDetection: the
/// features of a ResNet, projected to tokens with positions, go through an encoder; a decoder turns num_queries learned
/// embeddings, beginning with zeros, into as many predictions, each a class and a box.
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
  std::optional<nn::Embedding> queries_;
  std::vector<DetrEncoderLayer> encoder_;
  std::vector<DetrDecoderLayer> decoder_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> classifier_;
  std::vector<nn::Linear> box_layers_;
};

}  // namespace vitrail::models
