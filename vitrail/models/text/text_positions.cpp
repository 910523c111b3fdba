#include "vitrail/models/text/text_positions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "vitrail/models/text/token_ids.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

constexpr io::Range sizes{1, 1 << 20};

nn::DistanceBiasConfig read_bias(io::Fields& f, nn::DistanceBiasKind kind, const nn::AttentionConfig& attention,
                                 std::int64_t positions, bool bidirectional) {
  nn::DistanceBiasConfig bias{.kind = kind, .num_heads = attention.num_heads, .bidirectional = bidirectional};
  if (kind == nn::DistanceBiasKind::buckets) {
    bias.num_buckets = f.get<std::int64_t>("relative_attention_num_buckets", bias.num_buckets, sizes);
    bias.max_distance = f.get<std::int64_t>("relative_attention_max_distance", bias.max_distance, sizes);
  } else if (kind == nn::DistanceBiasKind::offsets) {
    const bool bounded = positions > 1 && positions <= 1 << 20;
    bias.max_distance =
        f.get<std::int64_t>("relative_attention_max_distance", bounded ? positions - 1 : bias.max_distance, sizes);
  }
  return bias;
}

}  // namespace

TextPositionsConfig read_text_positions(io::Fields& f, TextPositionsConfig own, const nn::AttentionConfig& attention,
                                        std::int64_t positions, bool bidirectional) {
  if (f.kind("pos_embed") == io::Kind::absent) {
    return own;
  }
  const std::vector<std::string> names = {"none",  "learn",       "sincos",     "rope",
                                          "alibi", "alibi_learn", "rel_bucket", "rel_bias"};
  const std::string name = f.choice("pos_embed", names.front(), names);
  TextPositionsConfig result;
  if (name == "learn") {
    check(positions <= 1 << 28, "{}: 'pos_embed' learn: the model says nowhere how many positions it has", f.source());
    result.added = nn::TokenPositionKind::learned;
    result.offset = own.offset;
  } else if (name == "sincos") {
    check(attention.dim % 2 == 0, "{}: 'pos_embed' sincos: sines and cosines need pairs, but the width {} is odd",
          f.source(), attention.dim);
    result.added = nn::TokenPositionKind::sines;
  } else if (name == "rope") {
    const std::int64_t width = attention.key_dim > 0 ? attention.key_dim : attention.dim / attention.num_heads;
    check(width % 2 == 0, "{}: 'pos_embed' rope: rotary positions need heads of an even width, not {}", f.source(),
          width);
    result.rotary = own.rotary.empty() ? rotary_frequencies(width, f.get<double>("rope_theta", 10000, {1, 1e12}))
                                       : std::move(own.rotary);
  } else if (name != "none") {
    const auto kind = name == "alibi"         ? nn::DistanceBiasKind::alibi
                      : name == "alibi_learn" ? nn::DistanceBiasKind::alibi_learned
                      : name == "rel_bucket"  ? nn::DistanceBiasKind::buckets
                                              : nn::DistanceBiasKind::offsets;
    result.bias = read_bias(f, kind, attention, positions, bidirectional);
  }
  return result;
}

std::vector<float> rotary_frequencies(std::int64_t head_dim, double theta) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    result.push_back(static_cast<float>(std::pow(theta, -2 * static_cast<double>(i) / static_cast<double>(head_dim))));
  }
  return result;
}

TextPositions::TextPositions(const nn::Scope& scope, const TextPositionsConfig& config, std::int64_t count,
                             std::int64_t dim)
    : config_(config),
      added_(scope, {.kind = config_.added, .count = count + config_.offset, .dim = dim, .offset = config_.offset}) {
  if (config_.bias) {
    bias_.emplace(scope, *config_.bias);
  }
}

Tensor TextPositions::add_at(const Tensor& x, const Tensor& places) const {
  const std::span<const std::int64_t> all = places.span<std::int64_t>();
  if (places.rank() == 1) {
    return add_to(x, all.front());
  }
  const Tensor table = added_(0, std::ranges::max(all) + 1);
  return table.defined() ? x + ops::reshape(ops::index_select(table, 0, places.reshape({-1})), x.shape()) : x;
}

Tensor TextPositions::add_to(const Tensor& x, std::int64_t begin, const Tensor& offsets) const {
  const Tensor places = vectors_of_places(added_, begin, x.size(1), offsets);
  return places.defined() ? x + places : x;
}

ops::Rotation TextPositions::rotation_at(const Tensor& places) const {
  if (config_.rotary.empty()) {
    return {};
  }
  Tensor angles = Tensor::empty({places.numel(), std::ssize(config_.rotary)});
  float* out = angles.data<float>();
  for (const std::int64_t place : places.span<std::int64_t>()) {
    for (const float frequency : config_.rotary) {
      *out++ = static_cast<float>(place) * frequency;
    }
  }
  return ops::rotation(angles, ops::RotaryPairs::halves);
}

ops::Rotation TextPositions::rotation(std::int64_t begin, std::int64_t count, const Tensor& offsets) const {
  if (offsets.defined()) {
    return rotation_at(places_in_texts(offsets));
  }
  Tensor places = Tensor::empty({count}, DType::i64);
  std::iota(places.data<std::int64_t>(), places.data<std::int64_t>() + count, begin);
  return rotation_at(places);
}

}  // namespace vitrail::models
