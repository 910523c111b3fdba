#include "vitrail/models/joint/clip.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "vitrail/models/base/adapt.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

constexpr std::string_view vision_name = "vision_model.";
constexpr std::string_view text_name = "text_model.";

// The name within the tower `tower`; empty if the parameter is not one of its own.
std::string within(std::string_view tower, const std::string& parameter) {
  return parameter.starts_with(tower) ? parameter.substr(tower.size()) : "";
}

// How the weights of transformers' CLIPPreTrainedModel start (_init_weights); norms and biases start as the layers do.
nn::Init clip_init(const ClipConfig& config, const nn::Parameter& parameter) {
  const std::string& name = parameter.name;
  if (name.ends_with(".bias")) {
    return nn::Init::zeros();
  }
  const bool of_vision = name.starts_with(vision_name);
  const auto dim = static_cast<float>(of_vision ? config.vision.embed_dim : config.text.dim);
  const auto depth = static_cast<float>(of_vision ? config.vision.depth : config.text.depth);
  const auto normal = [&](float std) { return nn::Init::normal(std * config.init_factor); };
  const float wide = 1 / std::sqrt(dim);
  if (name.ends_with(".qkv.weight") || name.ends_with(".fc2.weight")) {
    return normal(wide / std::sqrt(2 * depth));
  }
  if (name.ends_with(".fc1.weight")) {
    return normal(wide / std::sqrt(2.0F));
  }
  if (name.ends_with(".attn.proj.weight") || name.ends_with(".cls_token")) {
    return normal(wide);
  }
  if (name == "visual_projection.weight" || name == "text_projection.weight") {
    return normal(1 / std::sqrt(static_cast<float>(parameter.value.size(1))));
  }
  if (parameter.value.rank() > 1) {  // patches, tokens and places
    return normal(of_vision ? config.vision_std : 0.02F);
  }
  return parameter.init;
}

// The same of SiglipPreTrainedModel.
nn::Init siglip_init(const nn::Parameter& parameter) {
  const std::string& name = parameter.name;
  const Shape& shape = parameter.value.shape();
  if (name.ends_with(".bias")) {
    return name.find(".mlp.fc") != std::string::npos ? nn::Init::normal(1e-6F) : nn::Init::zeros();
  }
  if (shape.rank() < 2) {
    return parameter.init;
  }
  const auto ends_with_any = [&](std::initializer_list<std::string_view> endings) {
    return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
  };
  const std::int64_t dim = shape[shape.rank() - 1];
  if (ends_with_any({"embeddings.token_embedding.weight", "embeddings.position_embedding.weight", ".pos_embed"})) {
    return nn::Init::normal(1 / std::sqrt(static_cast<float>(dim)));
  }
  if (name.ends_with(".qkv.weight") || name.ends_with(".attn_pool.latent")) {
    return nn::Init::xavier_uniform({dim, dim});
  }
  if (name.ends_with(".attn_pool.q.weight") || name.ends_with(".attn_pool.kv.weight")) {
    return nn::Init::xavier_uniform({3 * dim, dim});  // as rows of one matrix
  }
  if (ends_with_any({".attn.proj.weight", ".fc1.weight", ".fc2.weight"})) {
    return nn::Init::xavier_uniform(shape);
  }
  return nn::Init::lecun_normal(shape);
}

// Where the state of each text stands among all tokens of the batch, [S] i64.
Tensor ends_of(const Texts& texts, std::optional<std::int64_t> end) {
  const Tensor ids = texts.ids.contiguous();
  const std::span<const std::int64_t> all = ids.span<std::int64_t>();
  std::vector<std::int64_t> begins;
  if (texts.offsets.defined()) {
    const Tensor offsets = texts.offsets.contiguous();
    begins.assign(offsets.span<std::int64_t>().begin(), offsets.span<std::int64_t>().end());
  } else {
    for (std::int64_t b = 0; b <= ids.size(0); ++b) {
      begins.push_back(b * ids.size(1));
    }
  }
  std::vector<std::int64_t> ends;
  for (std::size_t s = 0; s + 1 < begins.size(); ++s) {
    const auto first = all.begin() + begins[s];
    const auto last = all.begin() + begins[s + 1];
    const auto found = end ? std::find(first, last, *end) : std::max_element(first, last);
    check(found != last, "text {} has no end token {}", s, end.value_or(-1));
    ends.push_back(found - all.begin());
  }
  return Tensor::from(ends, {std::ssize(ends)});
}

}  // namespace

ClipModel::ClipModel(const ClipConfig& config, const nn::StoreOptions& store) : nn::Network(store), config_(config) {
  const nn::Scope root(parameters);
  vision_.emplace(root / "vision_model", config_.vision);
  text_.emplace(root / "text_model", config_.text);
  if (!is_siglip()) {
    visual_projection_.emplace(root / "visual_projection", config_.vision.embed_dim, config_.projection_dim, false);
  }
  text_projection_.emplace(is_siglip() ? root / "text_model" / "head" : root / "text_projection", config_.text.dim,
                           config_.projection_dim, is_siglip());
  const Shape one = is_siglip() ? Shape{1} : Shape{};
  logit_scale_ = root.parameter("logit_scale", one, nn::Init::constant(config_.logit_scale_init));
  if (config_.logit_bias) {
    logit_bias_ = root.parameter("logit_bias", one, nn::Init::constant(*config_.logit_bias));
  }
  for (nn::Parameter& parameter : parameters.all()) {
    parameter.init = is_siglip() ? siglip_init(parameter) : clip_init(config_, parameter);
    if (store.fill == nn::Fill::initialize) {
      parameters.initialize(parameter.name);
    }
  }
}

Tensor ClipModel::image_embeds(const Tensor& x, nn::Pass& pass) const {
  const Tensor state = ops::cast(vision_->forward(x, pass), DType::f32);
  return ops::normalize(visual_projection_ ? (*visual_projection_)(state) : state);
}

Tensor ClipModel::text_embeds(const Texts& texts, nn::Pass& pass) const {
  const Tensor states = (*text_)({.ids = texts.ids, .offsets = texts.offsets}, pass);
  if (is_siglip()) {
    return ops::normalize((*text_projection_)(ops::cast(last_states(states, texts), DType::f32)));
  }
  const Tensor ends =
      ops::index_select(ops::reshape(states, {-1, states.size(2)}), 0, ends_of(texts, config_.eos_token_id));
  return ops::normalize((*text_projection_)(ops::cast(ends, DType::f32)));
}

Tensor ClipModel::logits_per_image(const Tensor& image_embeds, const Tensor& text_embeds) const {
  const Tensor logits = ops::matmul(image_embeds, ops::transpose(text_embeds, 0, 1)) * ops::exp(logit_scale_);
  return logit_bias_.defined() ? logits + logit_bias_ : logits;
}

Tensor ClipModel::probabilities(const Tensor& logits_per_image) const {
  return logit_bias_.defined() ? ops::sigmoid(logits_per_image) : ops::softmax(logits_per_image, 1);
}

std::int64_t ClipModel::depth() const { return std::max(vision_->depth(), text_->depth()); }

std::int64_t ClipModel::layer_of(const std::string& parameter) const {
  const auto counted_from_above = [&](std::int64_t layer, std::int64_t own_depth) {
    return layer == 0 ? 0 : layer + depth() - own_depth;
  };
  if (const std::string name = within(vision_name, parameter); !name.empty()) {
    return counted_from_above(vision_->layer_of(name), vision_->depth());
  }
  if (const std::string name = within(text_name, parameter); !name.empty()) {
    return counted_from_above(text_->layer_of(name), text_->depth());
  }
  return depth() + 1;
}

bool ClipModel::is_head(const std::string& parameter) const {
  return parameter.starts_with("visual_projection.") || parameter.starts_with("text_projection.") ||
         parameter.starts_with("text_model.head.");
}

}  // namespace vitrail::models
