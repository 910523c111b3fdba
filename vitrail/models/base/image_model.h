/// \file
/// The interface of all image models.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/image_config.h"
#include "vitrail/models/base/problem_type.h"
#include "vitrail/nn/images/patch_embed.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// How the images for a model are prepared, and what its classes are called: timm's pretrained_cfg.
struct PretrainedConfig : data::ImageConfig {
  PretrainedConfig() { crop_pct = 0.9; }  ///< the value of timm's VisionTransformer
  std::vector<std::string> label_names;   ///< may be empty
  bool bottleneck = false;  ///< the classifier is the bottleneck of an autoencoder: its numbers are no classes
  ProblemType problem_type = ProblemType::single_label_classification;

  /// Forgets what is said of the classes, for a new classifier.
  void forget_classes() {
    label_names.clear();
    bottleneck = false;
    problem_type = ProblemType::single_label_classification;
  }
};

/// The layout of a model's tokens, which tells the place in the image of each feature and of each part of an attention
/// map.
struct TokenLayout {
  std::int64_t prefix = 0;  ///< number of class, distillation and register tokens, which come first
  std::int64_t rows = 0;    ///< of the patch grid for the image size that was asked about
  std::int64_t columns = 0;
  bool class_token = false;  ///< token 0 is the class token
  std::int64_t frames = 0;   ///< of a video, whose grids are stacked along the rows; 0: an image
};

/// The interface of a model that maps images, or videos, to logits.
struct ImageModel : nn::Network {
  using nn::Network::Network;

  /// Maps normalized images x [B, C, H, W] f32 to the features that the last block gives, behind the final norm unless
  /// that norm is behind the pooling: timm's forward_features. They have the pass's dtype and are tokens [B, N, D] or a
  /// map, which is [B, D, H', W'] or [B, H', W', D] as in the reference.
  virtual Tensor forward_features(const Tensor& x, nn::Pass& pass) const = 0;
  /// Maps features to logits [B, num_classes] f32 by pooling, dropout and the classifier: timm's forward_head. With
  /// `pre_logits`, or if num_classes is 0, it returns what the classifier takes, [B, num_features] f32.
  virtual Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const = 0;
  /// Maps x to logits: forward_head(forward_features(x)) up to rounding. A model that reads a single token applies the
  /// norm to that token only.
  virtual Tensor forward(const Tensor& x, nn::Pass& pass) const = 0;
  /// The logits of every head. A model with two heads (a distilled one) gives those of the class head and those of the
  /// distillation head, whose mean forward() gives; other models give one tensor.
  virtual std::vector<Tensor> forward_heads(const Tensor& x, nn::Pass& pass) const = 0;

  /// The number of frames of the clips that a video model takes: its forward is for x [B, C, frames, H, W]. 0 for a
  /// model that takes images.
  virtual std::int64_t frames() const = 0;
  virtual std::int64_t num_classes() const = 0;
  virtual std::int64_t num_features() const = 0;  ///< width of the features before the head

  /// The layout of the tokens for images of this size.
  virtual TokenLayout token_layout(std::int64_t height, std::int64_t width) const = 0;
  /// The total of fvcore's FlopCountAnalysis for one image, with timm's unfused attention (whose matrix products fvcore
  /// counts). One flop is counted for each multiply-accumulate of linear layers, convolutions and matrix products,
  /// without biases; 5 for each element of a LayerNorm or GroupNorm (4 without parameters), 2 of a BatchNorm2d in
  /// evaluation mode, 1 of the map that is averaged before the head of a convolutional network, and 4 of a standardized
  /// weight. Activations, softmax, RmsNorm, additions, other pooling and resizing are not counted.
  virtual std::int64_t flops(std::int64_t height, std::int64_t width) const = 0;
  /// Adapts a checkpoint's tensor to the shape `wanted` of this model's parameter where the reference does so on
  /// loading: position embeddings of another grid are resized, the first layer takes another number of channels.
  /// `source` is the image size that the checkpoint was made for. Returns the tensor unchanged if nothing needs to
  /// change; the result may still have another shape than `wanted`. Throws Error, which says why and need not name the
  /// tensor, if it cannot be adapted.
  virtual Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted,
                       const nn::Size2& source) const = 0;
  /// Whether the model takes images of every size, not only of the size that it was created for.
  virtual bool takes_any_size() const = 0;
  /// Whether a recorder gets attention maps of it.
  virtual bool has_attention() const = 0;
};

struct Family;

/// A model with all that its folder says about it.
struct Model {
  std::string architecture;        ///< timm's name of the architecture
  const Family* family = nullptr;  ///< the family that created it
  std::unique_ptr<ImageModel> net;
  PretrainedConfig pretrained;
  /// The arguments that differ from the architecture's own, by timm's names: "model_args" of config.json. Rates of
  /// dropout and drop path are those of the folder that it was loaded from, whatever the caller asked for. They are
  /// held as JSON text to keep the header light.
  std::string model_args = "{}";
  /// All arguments that the model was created from, including the number of classes and the drop rates, as JSON text.
  std::string arguments = "{}";
};

/// What a caller may ask of a model that is created or loaded.
struct CreateOptions {
  std::optional<std::int64_t> num_classes;
  std::string model_kwargs = "{}";                      ///< timm's --model-kwargs as a JSON object
  std::optional<double> drop_rate = std::nullopt;       ///< timm's --drop; unset: the model's own
  std::optional<double> drop_path_rate = std::nullopt;  ///< timm's --drop-path; unset: the model's own
  std::uint64_t seed = 0;
  nn::Fill fill = nn::Fill::initialize;  ///< meta: a model to ask about, not to run
};

/// The shape of one input: [channels, height, width], or of a video model [channels, frames, height, width].
Shape input_shape(const Model& model);
/// Throws Error if the model takes videos, for callers that have only images.
void check_takes_images(const Model& model);

}  // namespace vitrail::models
