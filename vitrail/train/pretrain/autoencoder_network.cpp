#include "vitrail/train/pretrain/autoencoder_network.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/quantize.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/nn/images/image_layers.h"
#include "vitrail/ops/images/interpolate.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* decoder_file = "decoder.safetensors";
constexpr const char* decoder_prefix = "decoder.";
constexpr std::int64_t least_channels = 16;
constexpr std::int64_t smallest_map = 4;

bool of_decoder(const std::string& parameter) { return parameter.starts_with(decoder_prefix); }

// The grid that a decoder begins with.
nn::Size2 first_grid(const LatentDecoderConfig& c) {
  check(c.latent_dim >= 1 && c.dim >= 1 && c.depth >= 1 && c.heads >= 1 && c.image[0] >= 1 && c.image[1] >= 1,
        "a decoder's sizes must be positive");
  check(c.kind == "transformer" || c.kind == "conv", "a decoder is a transformer or conv, not '{}'", c.kind);
  if (c.kind == "transformer") {
    check(c.dim % c.heads == 0, "the decoder's width {} cannot be divided among {} heads", c.dim, c.heads);
    check(c.patch[0] >= 1 && c.patch[1] >= 1 && c.image[0] % c.patch[0] == 0 && c.image[1] % c.patch[1] == 0,
          "images of {}x{} pixels are not made of whole patches of {}x{}, as a transformer decodes them: "
          "--decoder conv takes any size",
          c.image[0], c.image[1], c.patch[0], c.patch[1]);
    return {c.image[0] / c.patch[0], c.image[1] / c.patch[1]};
  }
  nn::Size2 grid = c.image;
  while (grid[0] % 2 == 0 && grid[1] % 2 == 0 && std::min(grid[0], grid[1]) >= 2 * smallest_map) {
    grid = {grid[0] / 2, grid[1] / 2};
  }
  return grid;
}

std::map<std::string, std::string> decoder_metadata(const LatentDecoderConfig& c) {
  return {{"format", "pt"},
          {"kind", c.kind},
          {"dim", fmt::format("{}", c.dim)},
          {"depth", fmt::format("{}", c.depth)},
          {"heads", fmt::format("{}", c.heads)},
          {"patch", fmt::format("{}x{}", c.patch[0], c.patch[1])}};
}

LatentDecoderConfig read_decoder_metadata(const io::Safetensors& file) {
  const auto& facts = file.metadata();
  const auto fact = [&](const char* name) {
    const auto it = facts.find(name);
    check(it != facts.end(), "{}: the metadata do not say the decoder's '{}'", file.source(), name);
    return it->second;
  };
  const auto number = [&](const char* name, const std::string& text) {
    const bool digits =
        !text.empty() && text.size() <= 6 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    check(digits, "{}: the decoder's '{}' is '{}', where a number was expected", file.source(), name, text);
    return static_cast<std::int64_t>(std::stoll(text));
  };
  LatentDecoderConfig c;
  c.kind = fact("kind");
  c.dim = number("dim", fact("dim"));
  c.depth = number("depth", fact("depth"));
  c.heads = number("heads", fact("heads"));
  const std::string patch = fact("patch");
  const std::size_t cross = std::min(patch.find('x'), patch.size() - 1);
  c.patch = {number("patch", patch.substr(0, cross)), number("patch", patch.substr(cross + 1))};
  return c;
}

}  // namespace

LatentDecoder::LatentDecoder(const nn::Scope& scope, const LatentDecoderConfig& config)
    : config_(config),
      grid_(first_grid(config)),
      embed_(scope / "embed", config.latent_dim, config.dim * grid_[0] * grid_[1]) {
  const LatentDecoderConfig& c = config_;
  if (c.kind == "transformer") {
    for (std::int64_t i = 0; i < c.depth; ++i) {
      blocks_.emplace_back(scope / "blocks" / i,
                           nn::BlockConfig{.attention = {.dim = c.dim, .num_heads = c.heads, .qkv_bias = true},
                                           .mlp = {.dim = c.dim, .hidden = 4 * c.dim}});
    }
    norm_.emplace(scope / "norm", c.dim);
    pred_.emplace(scope / "pred", c.dim, c.channels * c.patch[0] * c.patch[1]);
    return;
  }
  std::int64_t channels = c.dim;
  for (std::int64_t rows = grid_[0]; rows <= c.image[0]; rows *= 2) {
    const std::int64_t out = rows == grid_[0] ? channels : std::max(std::min(channels, least_channels), channels / 2);
    for (std::int64_t i = 0; i < c.depth; ++i) {
      const std::int64_t number = std::ssize(convs_);
      convs_.emplace_back(scope / "convs" / number, i == 0 ? channels : out, out, nn::Size2{3, 3},
                          ops::ConvOptions{.padding = {1, 1}}, false);
      norms_.emplace_back(scope / "norms" / number, out, std::gcd(out, std::int64_t{8}));
    }
    channels = out;
  }
  pixels_.emplace(scope / "pred", channels, c.channels, nn::Size2{3, 3}, ops::ConvOptions{.padding = {1, 1}});
}

Tensor LatentDecoder::by_tokens(const Tensor& tokens, nn::Pass& pass) const {
  Tensor x = tokens;
  for (const nn::Block& block : blocks_) {
    x = nn::run_block([&block](const Tensor& input, nn::Pass& own) { return block(input, own); }, x, pass);
  }
  const Tensor patches = ops::cast((*pred_)((*norm_)(x)), DType::f32);
  const nn::Size2& p = config_.patch;
  const Tensor apart = ops::reshape(patches, {x.size(0), grid_[0], grid_[1], config_.channels, p[0], p[1]});
  return ops::reshape(ops::permute(apart, {0, 3, 1, 4, 2, 5}),
                      {x.size(0), config_.channels, config_.image[0], config_.image[1]});
}

Tensor LatentDecoder::by_convolutions(Tensor map) const {
  for (std::size_t i = 0; i < convs_.size(); ++i) {
    if (i > 0 && static_cast<std::int64_t>(i) % config_.depth == 0) {
      map = ops::interpolate(map, 2 * map.size(2), 2 * map.size(3), ops::Interpolation::nearest);
    }
    map = nn::activate_image(norms_[i](convs_[i](map)), ops::Activation::relu);
  }
  return ops::cast((*pixels_)(map), DType::f32);
}

Tensor LatentDecoder::operator()(const Tensor& z, nn::Pass& pass) const {
  check(z.rank() == 2 && z.size(1) == config_.latent_dim, "the decoder takes vectors [B, {}], not {}",
        config_.latent_dim, z.shape());
  const Tensor embedded = embed_(ops::cast(z, pass.dtype));
  if (config_.kind == "transformer") {
    return by_tokens(ops::reshape(embedded, {z.size(0), grid_[0] * grid_[1], config_.dim}), pass);
  }
  return by_convolutions(ops::reshape(embedded, {z.size(0), config_.dim, grid_[0], grid_[1]}));
}

Autoencoder::Autoencoder(models::Model image_model, LatentDecoderConfig config) : encoder(std::move(image_model)) {
  models::check_takes_images(encoder);
  models::check_trainable(*encoder.net, encoder.architecture);
  check(encoder.net->num_classes() >= 1, "the model '{}' has no classifier, whose place the bottleneck takes",
        encoder.architecture);
  config.latent_dim = encoder.net->num_classes();
  config.channels = encoder.pretrained.channels;
  config.image = {encoder.pretrained.height, encoder.pretrained.width};
  encoder.pretrained.forget_classes();
  parameters = encoder.net->parameters;  // the same tensors
  decoder.emplace(nn::Scope(parameters) / "decoder", config);
  if (parameters.options().fill == nn::Fill::leave) {  // as of an encoder that was loaded
    for (const nn::Parameter& parameter : parameters.all()) {
      if (of_decoder(parameter.name)) {
        parameters.initialize(parameter.name);
      }
    }
  }
}

bool is_autoencoder(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / decoder_file, none);
}

std::unique_ptr<Autoencoder> Autoencoder::open(const fs::path& folder) {
  check(is_autoencoder(folder),
        "'{}' has no decoder: the folder of an autoencoder was expected, as "
        "`vitrail pretrain autoencoder` makes it",
        folder.string());
  const io::Safetensors file = io::Safetensors::open(folder / decoder_file);
  auto model = std::make_unique<Autoencoder>(models::load_model(folder), read_decoder_metadata(file));
  for (const nn::Parameter& parameter : model->parameters.all()) {
    if (!of_decoder(parameter.name)) {
      continue;
    }
    check(file.contains(parameter.name), "{}: there is no tensor '{}'", file.source(), parameter.name);
    const Tensor value = file.get(parameter.name);
    check(value.shape() == parameter.value.shape(), "{}: '{}' is {}, expected {}", file.source(), parameter.name,
          value.shape(), parameter.value.shape());
    parameter.value.copy_from(value);
    parameter.value.touch();
  }
  return model;
}

void Autoencoder::save(const fs::path& folder) const {
  io::NamedTensors tensors;
  for (const nn::Parameter& parameter : parameters.all()) {
    if (of_decoder(parameter.name)) {
      tensors.emplace_back(parameter.name, parameter.value.detach());
    }
  }
  io::replace_folder(folder, [&](const fs::path& temporary) {
    models::save_model(encoder, temporary);
    io::save_safetensors(temporary / decoder_file, tensors, decoder_metadata(decoder->config()));
  });
}

Tensor Autoencoder::loss(const Tensor& x, nn::Pass& pass) const {
  return ops::mse_loss(decode(encode(x, pass), pass), x);
}

std::int64_t Autoencoder::layer_of(const std::string& parameter) const {
  return of_decoder(parameter) ? depth() + 1 : encoder.net->layer_of(parameter);
}

bool Autoencoder::no_weight_decay(const std::string& parameter) const {
  return !of_decoder(parameter) && encoder.net->no_weight_decay(parameter);
}

bool Autoencoder::is_head(const std::string& parameter) const {
  return of_decoder(parameter) || encoder.net->is_head(parameter);
}

}  // namespace vitrail::train
