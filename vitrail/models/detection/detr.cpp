#include "vitrail/models/detection/detr.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string_view>

#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

constexpr std::string_view backbone_name = "model.backbone.conv_encoder.model.";
constexpr std::int64_t learned_places = 50;  // rows and columns that have a learned position

// The mask of features [B, rows · columns]: each is real if the pixel is that the nearest neighbour takes for it, as
// torch.nn.functional.interpolate does.
Tensor shrink(const Tensor& pixel_mask, const nn::Size2& grid) {
  const Tensor pixels = pixel_mask.contiguous();
  const std::int64_t height = pixels.size(1);
  const std::int64_t width = pixels.size(2);
  Tensor result = Tensor::empty({pixels.size(0), grid[0] * grid[1]}, DType::boolean);
  const auto nearest = [](std::int64_t i, std::int64_t from, std::int64_t to) {
    const float scale = static_cast<float>(from) / static_cast<float>(to);
    return std::min(static_cast<std::int64_t>(static_cast<float>(i) * scale), from - 1);
  };
  const bool* from = pixels.data<bool>();
  bool* to = result.data<bool>();
  for (std::int64_t b = 0; b < pixels.size(0); ++b) {
    for (std::int64_t y = 0; y < grid[0]; ++y) {
      const bool* row = from + (b * height + nearest(y, height, grid[0])) * width;
      for (std::int64_t x = 0; x < grid[1]; ++x) {
        *to++ = row[nearest(x, width, grid[1])];
      }
    }
  }
  return result;
}

// The code of one coordinate, which is 0 … 2π: sines and cosines in turn.
class SineCode {
 public:
  explicit SineCode(std::int64_t width) {
    constexpr double temperature = 10000;
    for (std::int64_t i = 0; i < width; ++i) {
      frequencies_.push_back(
          static_cast<float>(std::pow(temperature, static_cast<double>(i - i % 2) / static_cast<double>(width))));
    }
  }
  void write(float place, std::span<float> to) const {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const float angle = place / frequencies_[i];
      to[i] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }

 private:
  std::vector<float> frequencies_;
};

// Positions [B, N, width] by sines, from a mask [B, N] of a grid, or of one whose places are all real: rows and columns
// are counted from 1 among the real ones, and divided by how many these are.
Tensor sine_positions(const Tensor& mask, std::int64_t batch, const nn::Size2& grid, std::int64_t width) {
  const std::int64_t rows = grid[0];
  const std::int64_t columns = grid[1];
  const std::int64_t half = width / 2;
  const SineCode code(half);
  Tensor result = Tensor::empty({batch, rows * columns, width});
  const bool* const real = mask.defined() ? mask.data<bool>() : nullptr;
  std::vector<float> counts_y(static_cast<std::size_t>(rows * columns));
  std::vector<float> counts_x(counts_y.size());
  const auto scaled = [](float count, float last) {
    return count / (last + 1e-6F) * static_cast<float>(2 * std::numbers::pi);
  };
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto at = [&](std::int64_t y, std::int64_t x) { return static_cast<std::size_t>(y * columns + x); };
    for (std::int64_t y = 0; y < rows; ++y) {
      for (std::int64_t x = 0; x < columns; ++x) {
        const float one = real == nullptr || real[b * rows * columns + y * columns + x] ? 1 : 0;
        counts_y[at(y, x)] = one + (y > 0 ? counts_y[at(y - 1, x)] : 0);
        counts_x[at(y, x)] = one + (x > 0 ? counts_x[at(y, x - 1)] : 0);
      }
    }
    float* to = result.data<float>() + b * rows * columns * width;
    const auto place_y = [&](std::int64_t y, std::int64_t x) {
      return scaled(counts_y[at(y, x)], counts_y[at(rows - 1, x)]);
    };
    const auto place_x = [&](std::int64_t y, std::int64_t x) {
      return scaled(counts_x[at(y, x)], counts_x[at(y, columns - 1)]);
    };
    // Most places share their row's code with the place before, and their column's with the place above.
    for (std::int64_t y = 0; y < rows; ++y) {
      for (std::int64_t x = 0; x < columns; ++x, to += width) {
        if (x > 0 && place_y(y, x) == place_y(y, x - 1)) {
          std::copy_n(to - width, half, to);
        } else {
          code.write(place_y(y, x), {to, static_cast<std::size_t>(half)});
        }
        if (y > 0 && place_x(y, x) == place_x(y - 1, x)) {
          std::copy_n(to - columns * width + half, half, to + half);
        } else {
          code.write(place_x(y, x), {to + half, static_cast<std::size_t>(half)});
        }
      }
    }
  }
  return result;
}

Tensor numbers_up_to(std::int64_t count) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(i);
  }
  return Tensor::from(all, {count});
}

void check_detr(const DetrConfig& c) {
  check(c.d_model % 4 == 0, "d_model must be a multiple of 4, for sines and cosines of rows and columns, not {}",
        c.d_model);
  check(c.num_queries > 0 && c.num_labels > 0 && c.encoder_layers >= 0 && c.decoder_layers > 0,
        "a detector has at least one query, one kind of object and one layer of the decoder, not {}, {} and {}",
        c.num_queries, c.num_labels, c.decoder_layers);
}

}  // namespace

Detr::Detr(const DetrConfig& config, const nn::StoreOptions& store) : nn::Network(store), config_(config) {
  check_detr(config_);
  config_.backbone.num_classes = 0;
  const nn::Scope root(parameters);
  const nn::Scope model = (root / "model").with_init(detr_init_rule());
  backbone_.emplace(model / "backbone" / "conv_encoder" / "model", config_.backbone);
  if (config_.positions == DetrConfig::Positions::learned) {
    const nn::Scope places = model / "position_embedding";
    // As facebookresearch/detr's PositionEmbeddingLearned.
    const nn::Init from_0_to_1 = nn::Init::uniform(0, 1);
    rows_.emplace(places / "row_embeddings", learned_places, config_.d_model / 2, from_0_to_1);
    columns_.emplace(places / "column_embeddings", learned_places, config_.d_model / 2, from_0_to_1);
  }
  input_projection_.emplace(model / "input_projection", backbone_->num_features(), config_.d_model,
                            std::array<std::int64_t, 2>{1, 1});
  transformer_.emplace(model, config_);
  heads_.emplace(root, "bbox_predictor", config_, 4);
}

nn::Size2 Detr::grid(std::int64_t height, std::int64_t width) const {
  const TokenLayout layout = backbone_->token_layout(height, width);
  return {layout.rows, layout.columns};
}

void Detr::freeze_backbone() {
  for (const nn::Parameter& parameter : parameters.all()) {
    const std::string& name = parameter.name;
    const bool of_norm = parameter.value.rank() == 1;
    const bool early = name.find(".layer") == std::string::npos || name.find(".layer1.") != std::string::npos;
    if (is_backbone(name) && !parameter.buffer && (of_norm || early)) {
      parameters.set_trainable(name, false);
    }
  }
}

std::int64_t Detr::flops(std::int64_t height, std::int64_t width) const {
  const nn::Size2 size = grid(height, width);
  const std::int64_t tokens = size[0] * size[1];
  // The pooling in front of a classifier, which is not there, is counted with it.
  const std::int64_t features = backbone_->flops(height, width) - tokens * backbone_->num_features();
  return features + input_projection_->flops(size[0], size[1]) + transformer_->flops(tokens) +
         heads_->flops(config_.num_queries);
}

// The positions [B or 1, N, D] of a grid of features with this mask, undefined: all are real.
Tensor Detr::positions_of(const Tensor& mask, std::int64_t batch, const nn::Size2& grid) const {
  if (config_.positions == DetrConfig::Positions::sine) {
    return sine_positions(mask, mask.defined() ? batch : 1, grid, config_.d_model);
  }
  const auto [rows, columns] = grid;
  check(rows <= learned_places && columns <= learned_places,
        "{} x {} features are more than the {} rows and columns whose positions are learned", rows, columns,
        learned_places);
  const std::int64_t half = config_.d_model / 2;
  const Tensor x = ops::expand(ops::unsqueeze((*columns_)(numbers_up_to(columns)), 0), {rows, columns, half});
  const Tensor y = ops::expand(ops::unsqueeze((*rows_)(numbers_up_to(rows)), 1), {rows, columns, half});
  return ops::reshape(ops::concat({x, y}, 2), {1, rows * columns, config_.d_model});
}

// The normed states [B, Q, D] of the last layer of the decoder, or of each.
std::vector<Tensor> Detr::decode(const DetrInput& input, nn::Pass& pass, bool all_layers) const {
  const Tensor features = (*input_projection_)(backbone_->forward_features(input.x, pass));
  const std::int64_t batch = features.size(0);
  const nn::Size2 grid = {features.size(2), features.size(3)};
  Tensor mask;
  if (input.pixel_mask.defined()) {
    const Shape wanted{batch, input.x.size(2), input.x.size(3)};
    check(input.pixel_mask.shape() == wanted && input.pixel_mask.dtype() == DType::boolean,
          "pixel_mask is {} {}, expected bool {}", name_of(input.pixel_mask.dtype()), input.pixel_mask.shape(), wanted);
    mask = shrink(input.pixel_mask, grid);
  }
  const Tensor positions = ops::cast(positions_of(mask, batch, grid), pass.dtype);
  const Tensor keys = mask.defined() ? ops::reshape(mask, {batch, 1, 1, grid[0] * grid[1]}) : Tensor();
  const Tensor tokens = ops::reshape(ops::permute(features, {0, 2, 3, 1}), {batch, grid[0] * grid[1], config_.d_model});
  return (*transformer_)({tokens, positions, keys}, pass, all_layers);
}

SetPredictions Detr::predict(const Tensor& states) const {
  const SetOutputs said = (*heads_)(states);
  return {said.logits, ops::sigmoid(said.values)};
}

SetPredictions Detr::forward(const DetrInput& input, nn::Pass& pass) const {
  return predict(decode(input, pass, false).front());
}

SetPredictions Detr::forward_layers(const DetrInput& input, nn::Pass& pass) const {
  return predict(ops::concat(decode(input, pass, true), 0));
}

std::int64_t Detr::depth() const { return backbone_->depth() + transformer_->depth(); }

bool Detr::is_backbone(const std::string& parameter) const { return parameter.starts_with(backbone_name); }

std::int64_t Detr::layer_of(const std::string& parameter) const {
  if (is_backbone(parameter)) {
    return backbone_->layer_of(parameter.substr(backbone_name.size()));
  }
  return backbone_->depth() + transformer_->layer_of(parameter);
}

bool Detr::is_head(const std::string& parameter) const { return parameter.starts_with("class_labels_classifier."); }

}  // namespace vitrail::models
