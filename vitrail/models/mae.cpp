#include "vitrail/models/mae.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/models/checkpoint.h"
#include "vitrail/models/family.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/huggingface.h"
#include "vitrail/models/huggingface_names.h"
#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/norm.h"
#include "vitrail/ops/patches.h"
#include "vitrail/ops/shape.h"
#include "vitrail/ops/softmax.h"

namespace vitrail::models {

using nn::Init;
using nn::Size2;

namespace {

namespace fs = std::filesystem;

void check_config(const MaeConfig& c) {
  const VisionTransformer encoder(c.encoder, {.fill = nn::Fill::shapes_only});  // checks its own arguments
  const std::string difference = not_plain(c.encoder);
  check(difference.empty(), "a masked autoencoder has a plain Vision Transformer as its encoder, and not this one: {}",
        difference);
  check(c.encoder.embed_dim % 4 == 0 && c.decoder_dim % 4 == 0,
        "sine-cosine positions take widths that are divisible by 4, not {} and {}", c.encoder.embed_dim, c.decoder_dim);
  check(c.decoder_dim > 0 && c.decoder_depth >= 0 && c.decoder_heads > 0 && c.decoder_hidden > 0,
        "the decoder's width, depth, heads and hidden units must be positive");
  check(c.decoder_dim % c.decoder_heads == 0, "the decoder's width {} cannot be divided among {} heads", c.decoder_dim,
        c.decoder_heads);
  // As check_config() of the Vision Transformer: all counts that are made of these numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const VitConfig& e = c.encoder;
  const double tokens = 1 + real(e.img_size[0] / e.patch_size[0]) * real(e.img_size[1] / e.patch_size[1]);
  const double block =
      tokens * (2 * tokens + 4 * real(c.decoder_dim) + 2 * real(c.decoder_hidden)) * real(c.decoder_dim);
  const double cost = block * real(c.decoder_depth) +
                      tokens * real(c.decoder_dim) * real(e.patch_size[0]) * real(e.patch_size[1]) * real(e.in_chans);
  check(cost < 1e17, "a decoder of width {} and depth {} with {} hidden units would take {:.0e} FLOPs for a picture",
        c.decoder_dim, c.decoder_depth, c.decoder_hidden, cost);
  check(c.mask_ratio > 0 && c.mask_ratio < 1, "the mask ratio lies between 0 and 1, and is not {}", c.mask_ratio);
}

// ⌊N (1 - ratio)⌋, in double precision as the reference computes it.
std::int64_t visible_patches(std::int64_t patches, double ratio) {
  return static_cast<std::int64_t>(static_cast<double>(patches) * (1 - ratio));
}

nn::BlockConfig block_config(const VitConfig& c, std::int64_t dim, std::int64_t heads, std::int64_t hidden, int index) {
  return {.attention = {.dim = dim, .num_heads = heads, .qkv_bias = c.qkv_bias, .block = index},
          .mlp = {.dim = dim, .hidden = hidden, .activation = c.act_layer},
          .norm = c.norm_layer};
}

// As the reference starts: Glorot's uniform for all linear maps and for the patches' (flattened), biases of zero.
Init initialization(std::string_view name, const Shape& shape, const Init& own) {
  if (own.kind != Init::Kind::uniform) {
    return own;
  }
  return name.ends_with(".weight") ? Init::xavier_uniform({shape[0], shape.numel() / shape[0]}) : Init::zeros();
}

Tensor fixed_positions(const nn::Scope& scope, const char* name, const Size2& grid, std::int64_t dim,
                       const nn::StoreOptions& store) {
  const Tensor buffer = scope.buffer(name, {1, 1 + grid[0] * grid[1], dim}, Init::zeros());
  if (store.fill == nn::Fill::initialize) {
    buffer.copy_from(nn::sincos_positions(grid, dim, 1));
  }
  return buffer;
}

// The rows of x [R, D] at `indices` [B, K]: [B, K, D].
Tensor rows(const Tensor& x, const Tensor& indices) { return ops::embedding(x, indices); }

Tensor flat(const Tensor& x) { return ops::reshape(x, {x.size(0) * x.size(1), x.size(2)}); }

}  // namespace

MaskedAutoencoder::MaskedAutoencoder(const MaeConfig& config, const nn::StoreOptions& store) : config_(config) {
  config_.encoder.num_classes = 0;
  check_config(config_);
  const VitConfig& e = config_.encoder;
  const std::int64_t visible = visible_patches(patches(), config_.mask_ratio);
  check(visible > 0 && visible < patches(),
        "the mask ratio {} leaves {} of the {} patches visible: some must be, and some must not", config_.mask_ratio,
        visible, patches());
  parameters = nn::ParameterStore(store);
  parameters.set_init_rule(initialization);
  const nn::Scope root(parameters);
  const Init token = Init::normal(0.02F);
  cls_token_ = root.parameter("cls_token", {1, 1, e.embed_dim}, token);
  pos_embed_ = fixed_positions(root, "pos_embed", grid(), e.embed_dim, store);
  patch_embed_.emplace(root / "patch_embed", e.patch_size, e.in_chans, e.embed_dim);
  const auto hidden = static_cast<std::int64_t>(static_cast<double>(e.embed_dim) * e.mlp_ratio);
  for (std::int64_t i = 0; i < e.depth; ++i) {
    blocks_.emplace_back(root / "blocks" / i, block_config(e, e.embed_dim, e.num_heads, hidden, static_cast<int>(i)));
  }
  norm_.emplace(root / "norm", e.embed_dim, e.norm_layer);
  const std::int64_t dim = config_.decoder_dim;
  decoder_embed_.emplace(root / "decoder_embed", e.embed_dim, dim);
  mask_token_ = root.parameter("mask_token", {1, 1, dim}, token);
  decoder_pos_embed_ = fixed_positions(root, "decoder_pos_embed", grid(), dim, store);
  for (std::int64_t i = 0; i < config_.decoder_depth; ++i) {
    decoder_blocks_.emplace_back(
        root / "decoder_blocks" / i,
        block_config(e, dim, config_.decoder_heads, config_.decoder_hidden, static_cast<int>(e.depth + i)));
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
  const Tensor dense = noise.contiguous();
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::int64_t b = 0; b < result.batch; ++b) {
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const float* values = dense.data<float>() + b * n;
    std::ranges::stable_sort(order, [values](std::int64_t i, std::int64_t j) { return values[i] < values[j]; });
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t patch = order[static_cast<std::size_t>(i)];
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

// The patches of x as [B N, C p₀ p₁].
Tensor MaskedAutoencoder::cut(const Tensor& x) const {
  const VitConfig& e = config_.encoder;
  check(x.rank() == 4 && x.size(1) == e.in_chans && x.size(2) == e.img_size[0] && x.size(3) == e.img_size[1],
        "the model takes pictures [B, {}, {}, {}], not {}", e.in_chans, e.img_size[0], e.img_size[1], x.shape());
  return flat(ops::extract_patches(x, e.patch_size));
}

Tensor MaskedAutoencoder::run(const std::vector<nn::Block>& blocks, Tensor x, nn::Pass& pass) const {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (pass.checkpoint) {
      x = autograd::checkpoint(
          [&block = blocks[i], pass](const Tensor& input) {
            nn::Pass again = pass;  // nothing here is drawn at random
            return block(input, again);
          },
          x);
    } else {
      x = blocks[i](x, pass);
    }
    if (pass.recorder != nullptr && pass.recorder->wants_features()) {
      pass.recorder->feature(blocks[i].attn.config.block, x);
    }
  }
  return x;
}

Tensor MaskedAutoencoder::encode(const Tensor& x, const Masking& masking, nn::Pass& pass) const {
  const std::int64_t dim = config_.encoder.embed_dim;
  check(x.rank() == 4 && x.size(0) == masking.batch, "the masking is of {} pictures, and not of {}", masking.batch,
        x.shape());
  // Hidden patches cost nothing: only the visible ones are embedded.
  const Tensor visible = patch_embed_->embed(ops::cast(rows(cut(x), masking.kept), pass.dtype));
  const Tensor positions =
      flat(ops::expand(ops::narrow(pos_embed_, 1, 1, masking.patches), {masking.batch, masking.patches, dim}));
  const Tensor tokens = visible + ops::cast(rows(positions, masking.kept), pass.dtype);
  const Tensor cls = ops::cast(cls_token_ + ops::narrow(pos_embed_, 1, 0, 1), pass.dtype);
  return (*norm_)(run(blocks_, ops::concat({ops::expand(cls, {masking.batch, 1, dim}), tokens}, 1), pass));
}

Tensor MaskedAutoencoder::decode(const Tensor& latent, const Masking& masking, nn::Pass& pass) const {
  const std::int64_t dim = config_.decoder_dim;
  const Tensor seen = (*decoder_embed_)(latent);
  const Tensor unseen =
      ops::expand(ops::cast(mask_token_, pass.dtype), {masking.batch, masking.patches - masking.visible, dim});
  const Tensor tokens = flat(ops::concat({seen, unseen}, 1));
  const Tensor in_order = ops::concat({ops::narrow(seen, 1, 0, 1), rows(tokens, masking.restore)}, 1);
  return run(decoder_blocks_, in_order + ops::cast(decoder_pos_embed_, pass.dtype), pass);
}

Tensor MaskedAutoencoder::predict(const Tensor& x, const Masking& masking, nn::Pass& pass) const {
  const Tensor y = decode(encode(x, masking, pass), masking, pass);
  const Tensor patches_only = ops::narrow(y, 1, 1, masking.patches);
  return ops::cast((*decoder_pred_)((*decoder_norm_)(patches_only)), DType::f32);
}

// Patches [..., C p₀ p₁] as they are predicted: [..., p₀ p₁ C].
Tensor MaskedAutoencoder::pixels(const Tensor& patches) const {
  const VitConfig& e = config_.encoder;
  const std::int64_t count = patches.numel() / patch_pixels();
  const Tensor last = patches.reshape({count, e.in_chans, e.patch_size[0] * e.patch_size[1]}).permute({0, 2, 1});
  return last.contiguous().reshape({count, patch_pixels()});
}

// What patches [R, C p₀ p₁] should be predicted as. With norm_pix_loss (p - mean) / √(var + 1e-6), where var is the
// unbiased variance: a layer normalization, whose variance is the biased one, but for a factor.
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
  // All pictures have equally many hidden patches, so their mean is that of all the elements. Only they are predicted.
  const Tensor tokens = flat(ops::narrow(y, 1, 1, masking.patches));
  const Tensor predicted = (*decoder_pred_)((*decoder_norm_)(rows(tokens, masking.hidden)));
  const Tensor wanted = [&] {
    const autograd::Pause pause;
    return target(flat(rows(cut(x), masking.hidden)));
  }();
  return ops::mse_loss(ops::cast(flat(predicted), DType::f32), wanted);
}

// Patches [B N, p₀ p₁ C] as pictures.
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
  const autograd::Pause pause;
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
    // What is predicted is the patch without its mean and deviation: for people to look at, they are taken from the
    // picture.
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
  const autograd::Pause pause;
  const Tensor patches = pixels(cut(x));
  const std::int64_t size = patch_pixels();
  for (const std::int64_t row : masking.hidden.span<std::int64_t>()) {
    std::fill_n(patches.data<float>() + row * size, size, fill);
  }
  return assemble(patches);
}

Tensor MaskedAutoencoder::forward(const Tensor& x, nn::Pass& pass) const {
  const Tensor tokens = patch_embed_->embed(ops::cast(cut(x), pass.dtype));
  const std::int64_t dim = config_.encoder.embed_dim;
  const Tensor patches_in = ops::reshape(tokens, {x.size(0), patches(), dim}) +
                            ops::cast(ops::narrow(pos_embed_, 1, 1, patches()), pass.dtype);
  const Tensor cls = ops::cast(cls_token_ + ops::narrow(pos_embed_, 1, 0, 1), pass.dtype);
  const Tensor y = run(blocks_, ops::concat({ops::expand(cls, {x.size(0), 1, dim}), patches_in}, 1), pass);
  return (*norm_)(ops::cast(ops::select(y, 1, 0), DType::f32));
}

TokenLayout MaskedAutoencoder::token_layout(std::int64_t height, std::int64_t width) const {
  const Size2& patch = config_.encoder.patch_size;
  return {1, height / patch[0], width / patch[1], true};
}

std::int64_t MaskedAutoencoder::flops(std::int64_t height, std::int64_t width) const {
  const TokenLayout cells = token_layout(height, width);
  const std::int64_t tokens = cells.rows * cells.columns;
  std::int64_t total = patch_embed_->flops({cells.rows, cells.columns}) + norm_->flops(tokens + 1);
  for (const nn::Block& block : blocks_) {
    total += block.flops(tokens + 1);
  }
  return total;
}

std::int64_t MaskedAutoencoder::pretraining_flops() const {
  const std::int64_t visible = visible_patches(patches(), config_.mask_ratio);
  const std::int64_t hidden = patches() - visible;
  std::int64_t total = patch_embed_->flops({1, visible}) + norm_->flops(visible + 1) +
                       decoder_embed_->flops(visible + 1) + decoder_norm_->flops(hidden) + decoder_pred_->flops(hidden);
  for (const nn::Block& block : blocks_) {
    total += block.flops(visible + 1);
  }
  for (const nn::Block& block : decoder_blocks_) {
    total += block.flops(patches() + 1);
  }
  return total;
}

std::int64_t MaskedAutoencoder::layer_of(const std::string& parameter) const {
  if (starts_with_any(parameter, {"cls_token", "pos_embed", "patch_embed"})) {
    return 0;
  }
  if (const auto index = index_after(parameter, "blocks.")) {
    return *index + 1;
  }
  return parameter.starts_with("norm") ? depth() : depth() + 1;
}

const MaskedAutoencoder* masked_autoencoder(const Model& model) {
  return dynamic_cast<const MaskedAutoencoder*>(model.net.get());
}

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

namespace {

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
  check(fs::exists(path), "'{}' is not a model folder: it has no {}", folder.string(), config_file);
  const nlohmann::json json = io::read_json(path);
  check(is_hub_config(json) && json["model_type"] == "vit_mae",
        "'{}' is not a masked autoencoder: the \"model_type\" in its {} is not 'vit_mae'", folder.string(),
        config_file);
  check(create.model_kwargs == "{}", "the arguments of the masked autoencoder in '{}' cannot be changed: {}",
        folder.string(), create.model_kwargs);
  const FolderConfig folder_config = read_hub_folder(json, folder);
  MaeConfig config = read_mae_config(json, path.string());
  config.mask_ratio = options.mask_ratio.value_or(config.mask_ratio);
  config.norm_pix_loss = options.norm_pix_loss.value_or(config.norm_pix_loss);
  const auto fits = [](const auto& wanted, auto has) { return !wanted || *wanted == has; };
  check(fits(options.decoder_dim, config.decoder_dim) && fits(options.decoder_depth, config.decoder_depth) &&
            fits(options.decoder_heads, config.decoder_heads),
        "the decoder in '{}' has the width {}, {} layers and {} heads, which cannot be changed", folder.string(),
        config.decoder_dim, config.decoder_depth, config.decoder_heads);
  Model model;
  model.architecture = folder_config.architecture;
  model.pretrained = folder_config.pretrained;
  const bool shapes_only = create.fill == nn::Fill::shapes_only;
  auto net = std::make_unique<MaskedAutoencoder>(
      config, nn::StoreOptions{create.seed, shapes_only ? nn::Fill::shapes_only : nn::Fill::leave});
  if (!shapes_only) {
    const io::Safetensors file = open_weights(folder);
    load_weights(*net, file, names_in(file, hub_mae_names(), "vit."), config.encoder.img_size);
  }
  model.net = std::move(net);
  return model;
}

}  // namespace

Model open_masked_autoencoder(const std::string& name_or_folder, const CreateOptions& create,
                              const MaeOptions& options) {
  if (fs::is_directory(name_or_folder)) {
    return load_masked_autoencoder(name_or_folder, create, options);
  }
  CreateOptions described = create;
  described.num_classes = 0;
  Model model = describe_model(name_or_folder, described);
  const auto* encoder = dynamic_cast<const VisionTransformer*>(model.net.get());
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
  model.net = std::make_unique<MaskedAutoencoder>(config, nn::StoreOptions{create.seed, create.fill});
  return model;
}

}  // namespace vitrail::models
