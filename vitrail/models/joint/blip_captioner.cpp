#include "vitrail/models/joint/blip_captioner.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/owner.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/models/recurrent/image_encoder.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {

namespace fs = std::filesystem;

BlipCaptioner::BlipCaptioner(const BlipConfig& sizes, const std::string& config, const nn::StoreOptions& store)
    : config_(config) {
  image_model.architecture = "blip_vision";
  image_model.net = std::make_unique<Owner<VisionTransformer>>(sizes.vision, store);
  adopt_encoder(image_model, parameters, "a captioner");
  decoder_.emplace(nn::Scope(parameters) / "decoder", sizes.text);
  start = sizes.bos_token_id;
  end = sizes.sep_token_id;
  fixed_tokens = true;
}

Tensor BlipCaptioner::logits(const Tensor& x, const Texts& texts, nn::Pass& pass) const {
  BlipText::Sources sources = decoder_->text().remember(image_model.net->forward_features(x, pass));
  if (texts.offsets.defined()) {
    sources = sources_in_a_row(std::move(sources), texts.offsets.numel() - 1);
  }
  return decoder_->logits(texts, sources, pass);
}

std::unique_ptr<TextState> BlipCaptioner::begin(const Tensor& x, nn::Pass& pass, std::optional<DType> cache) const {
  return std::make_unique<CrossDecoderState>(decoder_->text().remember(image_model.net->forward_features(x, pass)),
                                             cache);
}

TextShape BlipCaptioner::decoder_shape() const {
  const BlipTextConfig& c = decoder_->text().config();
  return {.vocab_size = c.vocab_size,
          .max_positions = c.max_positions,
          .depth = c.depth,
          .dim = c.dim,
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_heads};
}

std::size_t BlipCaptioner::state_bytes(std::int64_t tokens, DType dtype) const {
  const PretrainedConfig& images = image_model.pretrained;
  const TokenLayout layout = image_model.net->token_layout(images.height, images.width);
  return decoder_->state_bytes(layout.prefix + layout.rows * layout.columns, tokens, dtype);
}

std::vector<std::string> BlipCaptioner::cross_attention() const {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < decoder_->text().config().depth; ++i) {
    names.push_back(decoder_->text().cross_attention_name(i));
  }
  return names;
}

std::int64_t BlipCaptioner::layer_of(const std::string& parameter) const {
  const std::int64_t below = image_model.net->depth();
  if (is_backbone(parameter)) {
    return std::min(image_model.net->layer_of(parameter), below);
  }
  if (const auto block = index_after(parameter, "decoder.bert.encoder.layer.")) {
    return below + *block + 1;
  }
  return is_head(parameter) ? depth() + 1 : below;
}

void BlipCaptioner::write(const fs::path& folder, DType dtype) const {
  write_blip_folder(folder, {.config = config_,
                             .architecture = blip_captioner_class,
                             .images = image_model.pretrained,
                             .tensors = blip_tensors(parameters, blip_captioner_names(),
                                                     [](const nn::Parameter& p) { return p.value.detach(); }),
                             .dtype = dtype});
  write_generation_config(folder);
}

bool is_blip_captioner_folder(const fs::path& folder) { return blip_class_in(folder) == blip_captioner_class; }

std::unique_ptr<Captioner> load_blip_captioner(const fs::path& given) {
  const fs::path folder = shipped_or(given);
  const BlipFiles files = read_blip_folder(folder, blip_captioner_class);
  auto model = std::make_unique<BlipCaptioner>(files.sizes, files.config, nn::StoreOptions{.fill = nn::Fill::leave});
  model->image_model.pretrained = files.images;
  load_weights(whole_network(model->parameters), open_weights(folder), {blip_captioner_names(), ""}, {});
  return model;
}

}  // namespace vitrail::models
