#include "vitrail/models/vit/vit_init.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace vitrail::models {
namespace {

using nn::Init;
using WeightInit = VitConfig::WeightInit;

// The initialization of a parameter of a linear layer or convolution. Both ask for a uniform one by themselves, which
// distinguishes them from norms, tokens and tables.
Init layer_init(const VitConfig& config, std::string_view name, const Shape& shape, const Init& own) {
  const bool weight = name.ends_with(".weight");
  const bool convolution = name.starts_with("patch_embed.");
  switch (config.weight_init) {
    case WeightInit::timm:
      if (convolution) {
        return own;
      }
      return weight ? Init::trunc_normal(0.02F) : Init::zeros();
    case WeightInit::jax:
    case WeightInit::jax_nlhb:
      if (name.starts_with("head")) {
        const bool with_bias = !weight && config.weight_init == WeightInit::jax_nlhb;
        return with_bias ? Init::constant(-std::log(static_cast<float>(config.num_classes))) : Init::zeros();
      }
      if (convolution) {
        return weight ? Init::lecun_normal(shape) : Init::zeros();
      }
      if (!weight) {
        return name.find("mlp") != std::string_view::npos ? Init::normal(1e-6F) : Init::zeros();
      }
      return Init::xavier_uniform(shape);
    case WeightInit::moco:
      if (convolution) {
        return own;
      }
      if (!weight) {
        return Init::zeros();
      }
      return moco_init(name, shape);
    case WeightInit::mae:  // the convolution of the patch embedding counts as the linear layer that it is
      return weight ? Init::xavier_uniform({shape[0], shape.numel() / shape[0]}) : Init::zeros();
    case WeightInit::reset:
      return own;
  }
  return own;
}

// Replaces `init` for the gate of a gated Mlp.
Init gate_init(const VitConfig& config, std::string_view name, const Init& init) {
  const bool weight = name.ends_with(".weight");
  const Init gate = weight ? Init::normal(1e-6F) : Init::ones();
  if (config.mlp_layer == nn::MlpKind::glu && name.find(".mlp.fc1.") != std::string_view::npos) {
    return init.with_lower_half(gate);
  }
  return name.find(".mlp.fc1_g.") != std::string_view::npos ? gate : init;
}

// The i of "blocks.i.…".
std::int64_t block_of(std::string_view name) {
  constexpr std::string_view start = "blocks.";
  std::int64_t index = 0;
  std::from_chars(name.data() + start.size(), name.data() + name.size(), index);
  return index;
}

bool is_beit(const VitConfig& config) {
  return config.kind == VitConfig::Kind::eva || config.kind == VitConfig::Kind::beit;
}

}  // namespace

Init moco_init(std::string_view name, const Shape& shape) {
  return name.ends_with("qkv.weight") ? Init::xavier_uniform({shape[0] / 3, shape[1]}) : Init::xavier_uniform(shape);
}

WeightInit read_weight_init(io::Fields& fields, const std::string& fallback) {
  const std::string name = fields.choice("weight_init", fallback, {"", "jax", "jax_nlhb", "moco", "reset", "skip"});
  if (name.empty()) {
    return WeightInit::timm;
  }
  if (name == "moco") {
    return WeightInit::moco;
  }
  if (name.starts_with("jax")) {
    return name == "jax" ? WeightInit::jax : WeightInit::jax_nlhb;
  }
  return WeightInit::reset;
}

nn::InitRule hybrid_init_rule(const ResNetV2Config& backbone) {
  ResNetV2Config zeroed = backbone;
  zeroed.zero_init_last = true;
  return resnetv2_init_rule(zeroed);
}

nn::InitRule vit_init_rule(const VitConfig& config) {
  return [config](std::string_view name, const Shape& shape, const Init& own) {
    Init init = own;
    if (config.weight_init == WeightInit::mae && name == "cls_token") {
      return Init::normal(0.02F);
    }
    if (own.kind == Init::Kind::uniform && !name.starts_with("pos_embed.")) {
      init = layer_init(config, name, shape, own);
      if (config.weight_init != WeightInit::reset && !is_beit(config) && name.starts_with("blocks.")) {
        init = gate_init(config, name, init);
      }
    }
    if (is_beit(config) && name.ends_with("relative_position_bias_table")) {
      init = Init::zeros();
    }
    if (config.head_init_scale > 0 && name == "head.weight") {
      init = init.scaled(static_cast<float>(config.head_init_scale));
    }
    if (config.fix_init && name.starts_with("blocks.") &&
        (name.ends_with(".attn.proj.weight") || name.ends_with(".mlp.fc2.weight"))) {
      init = init.scaled(static_cast<float>(1 / std::sqrt(2.0 * static_cast<double>(block_of(name) + 1))));
    }
    return init;
  };
}

}  // namespace vitrail::models
