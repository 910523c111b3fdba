#include "vitrail/models/vit/mae.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/models/vit/families.h"
#include "vitrail/models/vit/huggingface_vit.h"
#include "vitrail/models/vit/vit_init.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/images/patches.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/norm.h"
#include "vitrail/ops/math/order.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::Init;
using nn::Size2;

namespace {

namespace fs = std::filesystem;

// The encoder of the reference, with the sizes, activation and norms of `given`.
VitConfig reference_encoder(const VitConfig& given) {
  VitConfig c;
  c.img_size = given.img_size;
  c.patch_size = given.patch_size;
  c.in_chans = given.in_chans;
  c.num_classes = 0;
  c.embed_dim = given.embed_dim;
  c.depth = given.depth;
  c.num_heads = given.num_heads;
  c.mlp_ratio = given.mlp_ratio;
  c.qkv_bias = given.qkv_bias;
  c.norm_layer = given.norm_layer;
  c.act_layer = given.act_layer;
  c.pos_embed = VitConfig::Positions::sincos;
  c.weight_init = VitConfig::WeightInit::mae;
  return c;
}

void check_encoder(const MaeConfig& c) {
  const std::string difference = not_plain(c.encoder);
  check(difference.empty(), "a masked autoencoder has a plain Vision Transformer as its encoder, and not this one: {}",
        difference);
  check(c.encoder.embed_dim % 4 == 0 && c.decoder_dim % 4 == 0,
        "sine-cosine positions take widths that are divisible by 4, not {} and {}", c.encoder.embed_dim, c.decoder_dim);
}

// Checks the decoder; the encoder itself has checked `c.encoder`.
void check_decoder(const MaeConfig& c) {
  check(c.decoder_dim > 0 && c.decoder_depth >= 0 && c.decoder_heads > 0 && c.decoder_hidden > 0,
        "the decoder's width, depth, heads and hidden units must be positive");
  check(c.decoder_dim % c.decoder_heads == 0, "the decoder's width {} cannot be divided among {} heads", c.decoder_dim,
        c.decoder_heads);
  // As in check_config() of the Vision Transformer, all counts that are computed from these numbers must fit into 64
  // bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const VitConfig& e = c.encoder;
  const double tokens = 1 + real(e.img_size[0] / e.patch_size[0]) * real(e.img_size[1] / e.patch_size[1]);
  const double block =
      tokens * (2 * tokens + 4 * real(c.decoder_dim) + 2 * real(c.decoder_hidden)) * real(c.decoder_dim);
  const double cost = block * real(c.decoder_depth) +
                      tokens * real(c.decoder_dim) * real(e.patch_size[0]) * real(e.patch_size[1]) * real(e.in_chans);
  check(cost < 1e17, "a decoder of width {} and depth {} with {} hidden units would take {:.0e} FLOPs for an image",
        c.decoder_dim, c.decoder_depth, c.decoder_hidden, cost);
  check(c.mask_ratio > 0 && c.mask_ratio < 1, "the mask ratio lies between 0 and 1, and is not {}", c.mask_ratio);
}

// K = ⌊N (1 - ratio)⌋, in double precision as in the reference.
std::int64_t visible_patches(std::int64_t patches, double ratio) {
  return static_cast<std::int64_t>(static_cast<double>(patches) * (1 - ratio));
}

nn::BlockConfig decoder_block(const MaeConfig& c) {
  return {.attention = {.dim = c.decoder_dim, .num_heads = c.decoder_heads, .qkv_bias = c.encoder.qkv_bias},
          .mlp = {.dim = c.decoder_dim, .hidden = c.decoder_hidden, .activation = c.encoder.act_layer},
          .norm = c.encoder.norm_layer};
}

// Gathers the rows of x [R, D] at `indices` [B, K]: [B, K, D].
Tensor rows(const Tensor& x, const Tensor& indices) { return ops::embedding(x, indices); }

Tensor flat(const Tensor& x) { return ops::reshape(x, {x.size(0) * x.size(1), x.size(2)}); }

}  // namespace

MaskedAutoencoder::MaskedAutoencoder(const nn::Scope& scope, const MaeConfig& config) : scope_(scope), config_(config) {
  check_encoder(config_);
  config_.encoder = reference_encoder(config_.encoder);
  encoder_.emplace(scope, config_.encoder);
  check_decoder(config_);
  const VitConfig& e = config_.encoder;
  const std::int64_t visible = visible_patches(patches(), config_.mask_ratio);
  check(visible > 0 && visible < patches(),
        "the mask ratio {} leaves {} of the {} patches visible: some must be, and some must not", config_.mask_ratio,
        visible, patches());
  const nn::Scope root = scope.with_init(vit_init_rule(e));
  const std::int64_t dim = config_.decoder_dim;
  decoder_embed_.emplace(root / "decoder_embed", e.embed_dim, dim);
  mask_token_ = root.parameter("mask_token", {1, 1, dim}, Init::normal(0.02F));
  decoder_pos_embed_ = root.buffer("decoder_pos_embed", {1, 1 + patches(), dim}, Init::zeros());
  if (root.options().fill == nn::Fill::initialize) {
    decoder_pos_embed_.copy_from(nn::sincos_positions(grid(), dim, 1));
  }
  for (std::int64_t i = 0; i < config_.decoder_depth; ++i) {
    decoder_blocks_.emplace_back(root / "decoder_blocks" / i, decoder_block(config_));
  }
  decoder_norm_.emplace(root / "decoder_norm", dim, e.norm_layer);
  decoder_pred_.emplace(root / "decoder_pred", dim, patch_pixels());
}

Size2 MaskedAutoencoder::grid() const {
  const VitConfig& e = config_.encoder;
  return {e.img_size[0] / e.patch_size[0], e.img_size[1] / e.patch_size[1]};
}

std::int64_t MaskedAutoencoder::patch_pixels() const {
  const VitConfig& e = config_.encoder;
  return e.patch_size[0] * e.patch_size[1] * e.in_chans;
}

Masking MaskedAutoencoder::masking(const Tensor& noise) const {
  check(noise.rank() == 2 && noise.size(1) == patches(), "the noise is [B, {}], a number a patch, not {}", patches(),
        noise.shape());
  Masking result;
  result.batch = noise.size(0);
  result.patches = patches();
  result.visible = visible_patches(patches(), config_.mask_ratio);
  const std::int64_t n = result.patches;
  const std::int64_t k = result.visible;
  result.kept = Tensor::empty({result.batch, k}, DType::i64);
  result.hidden = Tensor::empty({result.batch, n - k}, DType::i64);
  result.restore = Tensor::empty({result.batch, n}, DType::i64);
  const Tensor order = ops::sort(noise).indices;
  for (std::int64_t b = 0; b < result.batch; ++b) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t patch = order.data<std::int64_t>()[b * n + i];
      std::int64_t* place = i < k ? result.kept.data<std::int64_t>() + b * k + i
                                  : result.hidden.data<std::int64_t>() + b * (n - k) + i - k;
      *place = b * n + patch;
      result.restore.data<std::int64_t>()[b * n + patch] = b * (n + 1) + 1 + i;
    }
  }
  return result;
}

Masking MaskedAutoencoder::random_masking(std::int64_t batch, RandomStream& random) const {
  const Philox draws = random.next();
  const Tensor noise = Tensor::empty({batch, patches()});
  const std::span<float> values = noise.span<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = draws.uniform(i);
  }
  return masking(noise);
}

// Cuts x [B, C, H, W] into patches [B N, C p₀ p₁].
Tensor MaskedAutoencoder::cut(const Tensor& x) const {
  const VitConfig& e = config_.encoder;
  check(x.rank() == 4 && x.size(1) == e.in_chans && x.size(2) == e.img_size[0] && x.size(3) == e.img_size[1],
        "the model takes images [B, {}, {}, {}], not {}", e.in_chans, e.img_size[0], e.img_size[1], x.shape());
  return flat(ops::extract_patches(x, e.patch_size));
}

Tensor MaskedAutoencoder::encode(const Tensor& x, const Masking& masking, nn::Pass& pass) const {
  const std::int64_t dim = config_.encoder.embed_dim;
  check(x.rank() == 4 && x.size(0) == masking.batch, "the masking is of {} images, and not of {}", masking.batch,
        x.shape());
  // Hidden patches cost nothing, since only the visible ones are embedded.
  const Tensor visible = encoder_->patch_embed().embed(ops::cast(rows(cut(x), masking.kept), pass.dtype));
  const Tensor positions = encoder_->token_positions(grid(), pass);  // [1, 1 + N, D]
  const Tensor of_patches =
      flat(ops::expand(ops::narrow(positions, 1, 1, masking.patches), {masking.batch, masking.patches, dim}));
  const Tensor tokens = visible + ops::cast(rows(of_patches, masking.kept), pass.dtype);
  return encoder_->final_norm(encoder_->run_blocks(encoder_->with_prefix(tokens, positions), grid(), pass));
}

Tensor MaskedAutoencoder::decode(const Tensor& latent, const Masking& masking, nn::Pass& pass) const {
  const std::int64_t dim = config_.decoder_dim;
  const Tensor seen = (*decoder_embed_)(latent);
  const Tensor unseen =
      ops::expand(ops::cast(mask_token_, pass.dtype), {masking.batch, masking.patches - masking.visible, dim});
  const Tensor tokens = flat(ops::concat({seen, unseen}, 1));
  const Tensor in_order = ops::concat({ops::narrow(seen, 1, 0, 1), rows(tokens, masking.restore)}, 1);
  Tensor y = in_order + ops::cast(decoder_pos_embed_, pass.dtype);
  for (std::size_t i = 0; i < decoder_blocks_.size(); ++i) {
    y = nn::run_block([&block = decoder_blocks_[i]](const Tensor& input, nn::Pass& own) { return block(input, own); },
                      y, pass);
    if (pass.wants_features()) {
      pass.recorder->feature((scope_ / "decoder_blocks" / static_cast<std::int64_t>(i)).path(), y);
    }
  }
  return y;
}

Tensor MaskedAutoencoder::predict(const Tensor& x, const Masking& masking, nn::Pass& pass) const {
  const Tensor y = decode(encode(x, masking, pass), masking, pass);
  const Tensor patches_only = ops::narrow(y, 1, 1, masking.patches);
  return ops::cast((*decoder_pred_)((*decoder_norm_)(patches_only)), DType::f32);
}

// Converts patches [..., C p₀ p₁] to the order of the prediction, [..., p₀ p₁ C].
Tensor MaskedAutoencoder::pixels(const Tensor& patches) const {
  const VitConfig& e = config_.encoder;
  const std::int64_t count = patches.numel() / patch_pixels();
  const Tensor last = patches.reshape({count, e.in_chans, e.patch_size[0] * e.patch_size[1]}).permute({0, 2, 1});
  return last.contiguous().reshape({count, patch_pixels()});
}

// The target of the prediction for patches [R, C p₀ p₁]. With norm_pix_loss it is (p - mean) / √(var + 1e-6), where var
// is the unbiased variance. Layer normalization, which has the biased variance, gives this up to a factor.
Tensor MaskedAutoencoder::target(const Tensor& patches) const {
  if (!config_.norm_pix_loss) {
    return pixels(patches);
  }
  const auto n = static_cast<double>(patch_pixels());
  const double biased = (n - 1) / n;
  const Tensor normed = ops::layer_norm(patches, {}, {}, static_cast<float>(1e-6 * biased));
  return pixels(ops::multiply(normed, static_cast<float>(std::sqrt(biased))));
}

Tensor MaskedAutoencoder::loss(const Tensor& x, const Masking& masking, nn::Pass& pass) const {
  const Tensor y = decode(encode(x, masking, pass), masking, pass);
  // All images have the same number of hidden patches, so the mean over the images is the mean over all elements. Only
  // hidden patches are predicted.
  const Tensor tokens = flat(ops::narrow(y, 1, 1, masking.patches));
  const Tensor predicted = (*decoder_pred_)((*decoder_norm_)(rows(tokens, masking.hidden)));
  const Tensor wanted = [&] {
    const autograd::NoGrad no_grad;
    return target(flat(rows(cut(x), masking.hidden)));
  }();
  return ops::mse_loss(ops::cast(flat(predicted), DType::f32), wanted);
}

// Assembles patches [B N, p₀ p₁ C] to images [B, C, H, W].
Tensor MaskedAutoencoder::assemble(const Tensor& patches) const {
  const VitConfig& e = config_.encoder;
  const Size2 cells = grid();
  const std::int64_t batch = patches.size(0) / (cells[0] * cells[1]);
  return patches.reshape({batch, cells[0], cells[1], e.patch_size[0], e.patch_size[1], e.in_chans})
      .permute({0, 5, 1, 3, 2, 4})
      .contiguous()
      .reshape({batch, e.in_chans, cells[0] * e.patch_size[0], cells[1] * e.patch_size[1]});
}

Tensor MaskedAutoencoder::reconstruct(const Tensor& x, const Masking& masking, nn::Pass& pass) const {
  const autograd::NoGrad no_grad;
  const Tensor patches = pixels(cut(x));
  const Tensor predicted = predict(x, masking, pass).contiguous();
  const std::int64_t size = patch_pixels();
  for (const std::int64_t row : masking.hidden.span<std::int64_t>()) {
    float* out = patches.data<float>() + row * size;
    const float* in = predicted.data<float>() + row * size;
    if (!config_.norm_pix_loss) {
      std::copy_n(in, size, out);
      continue;
    }
    // The prediction is a patch without its mean and deviation. To make an image for people to look at, these are taken
    // from x.
    double mean = 0;
    double square = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      mean += out[i] / static_cast<double>(size);
    }
    for (std::int64_t i = 0; i < size; ++i) {
      square += (out[i] - mean) * (out[i] - mean) / static_cast<double>(size - 1);
    }
    const double deviation = std::sqrt(square + 1e-6);
    for (std::int64_t i = 0; i < size; ++i) {
      out[i] = static_cast<float>(in[i] * deviation + mean);
    }
  }
  return assemble(patches);
}

Tensor MaskedAutoencoder::masked(const Tensor& x, const Masking& masking, float fill) const {
  const autograd::NoGrad no_grad;
  const Tensor patches = pixels(cut(x));
  const std::int64_t size = patch_pixels();
  for (const std::int64_t row : masking.hidden.span<std::int64_t>()) {
    std::fill_n(patches.data<float>() + row * size, size, fill);
  }
  return assemble(patches);
}

std::int64_t MaskedAutoencoder::pretraining_flops() const {
  const std::int64_t visible = visible_patches(patches(), config_.mask_ratio);
  const std::int64_t hidden = patches() - visible;
  std::int64_t total = encoder_->patch_embed().flops({1, visible}) + encoder_->blocks_flops(visible + 1) +
                       encoder_->final_norm_flops(visible + 1) + decoder_embed_->flops(visible + 1) +
                       decoder_norm_->flops(hidden) + decoder_pred_->flops(hidden);
  for (const nn::Block& block : decoder_blocks_) {
    total += block.flops(patches() + 1);
  }
  return total;
}

const MaskedAutoencoder* masked_autoencoder(const Model& model) {
  return model.family == &vit_mae_family ? &known_body<MaskedAutoencoder>(*model.net) : nullptr;
}

namespace {

// The part of config.json about the decoder and the loss, by transformers' keys.
nlohmann::ordered_json mae_json(const MaeConfig& c) {
  return {
      {"intermediate_size", static_cast<std::int64_t>(static_cast<double>(c.encoder.embed_dim) * c.encoder.mlp_ratio)},
      {"decoder_hidden_size", c.decoder_dim},
      {"decoder_num_hidden_layers", c.decoder_depth},
      {"decoder_num_attention_heads", c.decoder_heads},
      {"decoder_intermediate_size", c.decoder_hidden},
      {"mask_ratio", c.mask_ratio},
      {"norm_pix_loss", c.norm_pix_loss}};
}

HubForm mae_hub_form(const ImageModel& net) {
  const MaeConfig& c = known_body<MaskedAutoencoder>(net).config();
  HubForm form{mae_type, "ViTMAEForPreTraining", hub_mae_names(), "vit.", hub_encoder_json(c.encoder)};
  form.config.update(mae_json(c));
  return form;
}

constexpr HubKind mae_hub_kinds[] = {{mae_type, read_hub_vit_mae}};

MaeConfig read_mae_config(const nlohmann::json& json, const std::string& source) {
  io::Fields f(json, source);
  const io::Range size{1, 1 << 20};
  MaeConfig c;
  read_hub_encoder(f, c.encoder);
  c.decoder_dim = f.get<std::int64_t>("decoder_hidden_size", c.decoder_dim, size);
  c.decoder_depth = f.get<std::int64_t>("decoder_num_hidden_layers", c.decoder_depth, {0, 4096});
  c.decoder_heads = f.get<std::int64_t>("decoder_num_attention_heads", c.decoder_heads, size);
  c.decoder_hidden = f.get<std::int64_t>("decoder_intermediate_size", c.decoder_hidden, size);
  c.mask_ratio = f.get<double>("mask_ratio", c.mask_ratio, {0, 1});
  c.norm_pix_loss = f.get<bool>("norm_pix_loss", c.norm_pix_loss);
  return c;
}

Model load_masked_autoencoder(const fs::path& folder, const CreateOptions& create, const MaeOptions& options) {
  const fs::path path = folder / config_file;
  const nlohmann::json json = read_config(folder);
  check(is_hub_config(json) && json["model_type"] == mae_type,
        "'{}' is not a masked autoencoder: the \"model_type\" in its {} is not 'vit_mae'. If it is the encoder of one "
        "(`vitrail quantize` and `vitrail encoder` keep that alone), take the folder that it was made from",
        folder.string(), config_file);
  check(create.model_kwargs == "{}", "the arguments of the masked autoencoder in '{}' cannot be changed: {}",
        folder.string(), create.model_kwargs);
  const FolderConfig folder_config = read_hub_folder(json, folder, mae_hub_kinds[0]);
  MaeConfig config = read_mae_config(json, path.string());
  config.mask_ratio = options.mask_ratio.value_or(config.mask_ratio);
  config.norm_pix_loss = options.norm_pix_loss.value_or(config.norm_pix_loss);
  const auto fits = [](const auto& wanted, auto has) { return !wanted || *wanted == has; };
  check(fits(options.decoder_dim, config.decoder_dim) && fits(options.decoder_depth, config.decoder_depth) &&
            fits(options.decoder_heads, config.decoder_heads),
        "the decoder in '{}' has the width {}, {} layers and {} heads, which cannot be changed", folder.string(),
        config.decoder_dim, config.decoder_depth, config.decoder_heads);
  Model model;
  model.family = &vit_mae_family;
  model.architecture = folder_config.architecture;
  model.pretrained = folder_config.pretrained;
  const bool meta = create.fill == nn::Fill::meta;
  auto net = std::make_unique<Owner<MaskedAutoencoder>>(
      config, nn::StoreOptions{create.seed, meta ? nn::Fill::meta : nn::Fill::leave});
  if (!meta) {
    const io::StoredTensors file = open_weights(folder);
    load_weights(weights_of(*net, net->parameters), file, names_in(file, hub_mae_names(), "vit."),
                 config.encoder.img_size);
  }
  model.net = std::move(net);
  return model;
}

}  // namespace

Model open_masked_autoencoder(const std::string& name_or_folder, const CreateOptions& create,
                              const MaeOptions& options) {
  if (fs::is_directory(name_or_folder) || name_or_folder.find('/') != std::string::npos) {
    return load_masked_autoencoder(name_or_folder, create, options);
  }
  CreateOptions described = create;
  described.num_classes = 0;
  described.fill = nn::Fill::meta;
  Model model = build_model(name_or_folder, described);
  const auto* encoder = body_of<VisionTransformer>(*model.net);
  check(encoder != nullptr, "a masked autoencoder has a Vision Transformer as its encoder: '{}' is none",
        name_or_folder);
  MaeConfig config;
  config.encoder = encoder->config();
  config.mask_ratio = options.mask_ratio.value_or(config.mask_ratio);
  config.norm_pix_loss = options.norm_pix_loss.value_or(config.norm_pix_loss);
  config.decoder_dim = options.decoder_dim.value_or(config.decoder_dim);
  config.decoder_depth = options.decoder_depth.value_or(config.decoder_depth);
  config.decoder_heads = options.decoder_heads.value_or(config.decoder_heads);
  check(config.decoder_dim > 0 && config.decoder_dim <= 1 << 20, "the decoder's width lies in 1 … 2²⁰ and is not {}",
        config.decoder_dim);
  config.decoder_hidden = 4 * config.decoder_dim;
  model.family = &vit_mae_family;
  model.net = std::make_unique<Owner<MaskedAutoencoder>>(config, nn::StoreOptions{create.seed, create.fill});
  return model;
}

constinit const Family vit_mae_family = {.name = mae_type, .hub_kinds = mae_hub_kinds, .hub_form = mae_hub_form};

}  // namespace vitrail::models
