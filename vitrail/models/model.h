// What every model of pictures offers, and how one is made, loaded and saved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/picture_config.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

// timm's pretrained_cfg: how a model's pictures are prepared, and what its classes are called.
struct PretrainedConfig : data::PictureConfig {
  PretrainedConfig() { crop_pct = 0.9; }  // as timm's VisionTransformer has it
  std::vector<std::string> label_names;   // may be empty
};

// A model's grid of tokens, which says what its features and attention maps belong to.
struct TokenLayout {
  std::int64_t prefix = 0;  // class, distillation and register tokens in front
  std::int64_t rows = 0;    // of the patch grid at the picture size of the last question
  std::int64_t columns = 0;
  bool class_token = false;  // token 0 is the class token
  std::int64_t frames = 0;   // of a video, whose rows lie below each other; 0: a picture
};

// The interface of a model that turns pictures, or videos, into logits.
struct ImageModel {
  virtual ~ImageModel() = default;

  // x [B, C, H, W] f32, normalized → logits [B, num_classes] f32 (features [B, D] if num_classes is 0).
  virtual Tensor forward(const Tensor& x, nn::Pass& pass) const = 0;
  // For models with two heads (distilled ones): {logits of the class head, of the distillation head}, whose mean
  // forward() gives; else one.
  virtual std::vector<Tensor> forward_heads(const Tensor& x, nn::Pass& pass) const { return {forward(x, pass)}; }

  // Of the clips that a model of videos takes: its forward is for x [B, C, frames, H, W]. 0: it takes pictures.
  virtual std::int64_t frames() const { return 0; }
  virtual std::int64_t num_classes() const = 0;
  virtual std::int64_t num_features() const = 0;  // width of the features before the head
  virtual std::int64_t depth() const = 0;         // blocks, for layer-wise decay and the recorder
  // Which tokens come out for pictures of this size.
  virtual TokenLayout token_layout(std::int64_t height, std::int64_t width) const = 0;
  // The total of fvcore's FlopCountAnalysis for one picture, with timm's unfused attention (of which fvcore sees the
  // matrix products): one flop for each multiply-accumulate of linear, convolution and matrix products, biases not
  // counted; 5 for each element of a LayerNorm or GroupNorm (4 without parameters), 2 of a BatchNorm2d in evaluation, 1
  // of the map that is averaged before the head of a convolutional network, 4 of a standardized weight; nothing for
  // activations, softmax, RmsNorm, additions, other pooling and resizing.
  virtual std::int64_t flops(std::int64_t height, std::int64_t width) const = 0;
  // timm's group_matcher(coarse=False) order: the layer a parameter belongs to, 0 = embedding … depth() + 1 = head.
  virtual std::int64_t layer_of(const std::string& parameter) const = 0;
  // timm's no_weight_decay(): names left out of weight decay besides norms and biases.
  virtual bool no_weight_decay(const std::string& parameter) const = 0;
  // Names of the classifier's parameters ("head.weight", "head.bias", …), replaced when num_classes changes.
  virtual bool is_classifier(const std::string& parameter) const = 0;
  // Changes a checkpoint's tensor to this model's shape where the reference does so on loading: position embeddings of
  // another grid are resized, the first layer takes other channels. `source` is the picture size that the checkpoint
  // was made for. Returns the tensor as it is if nothing needs to change; what it returns may still not fit. An Error
  // says why a tensor cannot be changed, and need not name it.
  virtual Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const {
    (void)parameter;
    (void)source;
    return value;
  }
  // Whether pictures of every size are taken, not only those of the size that the model was made for.
  virtual bool takes_any_size() const = 0;

  nn::ParameterStore parameters;
};

// A model with all that its folder says about it.
struct Model {
  std::string architecture;  // timm's name
  std::unique_ptr<ImageModel> net;
  PretrainedConfig pretrained;
  // Arguments that differ from the architecture's own, by timm's names: config.json's "model_args". Held as JSON text
  // to keep the header light.
  std::string model_args = "{}";
};

struct CreateOptions {
  std::optional<std::int64_t> num_classes;
  std::string model_kwargs = "{}";                      // timm's --model-kwargs as a JSON object
  double drop_rate = 0;                                 // timm's --drop; set only if positive
  std::optional<double> drop_path_rate = std::nullopt;  // timm's --drop-path; unset: the model's own
  std::uint64_t seed = 0;
  nn::Fill fill = nn::Fill::initialize;  // shapes_only: a model to ask about, not to run
};

// A new model by timm's name ("vit_tiny_patch16_224", or with a tag of timm's, whose picture preparation it then has:
// "vit_base_patch16_224.dino"), initialized as timm does. Error lists near names if there is none.
Model create_model(const std::string& name, const CreateOptions& options = {});
// The same without memory for its parameters: for questions about names, shapes, counts and FLOPs.
Model describe_model(const std::string& name, CreateOptions options = {});
// A model by name, or the model folder if `name_or_folder` is one: `config.json` + `model.safetensors` in timm's hub
// layout, or in the layout of Hugging Face's transformers (huggingface.h says which of its models). Options override
// what the folder says: another number of classes gives a new head, another img_size resizes the positions.
Model load_model(const std::filesystem::path& folder, const CreateOptions& options = {});
Model open_model(const std::string& name_or_folder, const CreateOptions& options = {});
// What it takes: [channels, height, width], of videos [channels, frames, height, width].
Shape input_shape(const Model& model);
// Error if it takes videos: for whoever has only pictures.
void check_takes_pictures(const Model& model);
// Writes the folder that load_model() reads, and timm's `hf-hub:`/`local-dir:` or transformers' from_pretrained().
// Written whole or not at all. Error if transformers has no such model. A masked autoencoder (mae.h) has transformers'
// layout in any case.
enum class Layout { timm, huggingface };
void save_model(const Model& model, const std::filesystem::path& folder, Layout layout = Layout::timm);

// One registered architecture.
struct Architecture {
  std::string name;
  std::string family;  // "vit"
};
const std::vector<Architecture>& architectures();

}  // namespace vitrail::models
