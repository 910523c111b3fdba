#include "vitrail/data/resize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "vitrail/data/rounding.h"
#include "vitrail/tensor/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vitrail::data {
namespace {

// Weights are fixed-point numbers with this many fraction bits. Of the other bits, 8 are the pixel's, and 2 are for
// sums outside of 0 … 255, since weights may be negative.
constexpr int kPrecision = 32 - 8 - 2;

double sinc(double x) { return x == 0 ? 1.0 : std::sin(x * std::numbers::pi) / (x * std::numbers::pi); }

// The value of the filter at distance x. Expressions are grouped as in Pillow, so that weights round as there.
double weight(Interpolation interpolation, double x) {
  const double distance = std::abs(x);
  switch (interpolation) {
    case Interpolation::box:
      return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    case Interpolation::bilinear:
      return distance < 1.0 ? 1.0 - distance : 0.0;
    case Interpolation::hamming: {
      if (distance == 0.0 || distance >= 1.0) {
        return distance == 0.0 ? 1.0 : 0.0;
      }
      const double angle = distance * std::numbers::pi;
      return std::sin(angle) / angle * (0.54F + 0.46F * std::cos(angle));
    }
    case Interpolation::bicubic: {
      constexpr double a = -0.5;
      if (distance < 1.0) {
        return ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1;
      }
      return distance < 2.0 ? (((distance - 5) * distance + 8) * distance - 4) * a : 0.0;
    }
    case Interpolation::lanczos:
      return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
    case Interpolation::nearest:
      break;
  }
  fail("nearest has no filter");
}

double support_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::box:
      return 0.5;
    case Interpolation::bicubic:
      return 2.0;
    case Interpolation::lanczos:
      return 3.0;
    default:
      return 1.0;
  }
}

// For each output position, the range of input positions that contribute to it, and their weights.
struct Taps {
  struct Range {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  std::vector<Range> ranges;
  std::vector<std::int32_t> weights;  // [outputs, stride]
  std::int64_t stride = 0;

  const std::int32_t* of(std::int64_t output) const { return weights.data() + output * stride; }
  std::int64_t begin() const { return ranges.front().first; }
  std::int64_t end() const { return ranges.back().first + ranges.back().count; }
};

// One dimension of a resize: how many input and output positions it has, and the range of outputs that are wanted.
struct Side {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool changes() const { return inputs != outputs; }
};

Taps compute_taps(const Side& side, Interpolation interpolation) {
  const auto [inputs, outputs, wanted, count_wanted] = side;
  const double scale = static_cast<double>(inputs) / static_cast<double>(outputs);
  const double filter_scale = std::max(scale, 1.0);
  const double support = support_of(interpolation) * filter_scale;
  const double inverse = 1.0 / filter_scale;
  Taps taps;
  taps.stride = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  taps.ranges.resize(static_cast<std::size_t>(count_wanted));
  taps.weights.assign(static_cast<std::size_t>(count_wanted * taps.stride), 0);
  std::vector<double> exact(static_cast<std::size_t>(taps.stride));
  for (std::int64_t o = 0; o < count_wanted; ++o) {
    const double center = (static_cast<double>(wanted + o) + 0.5) * scale;
    const auto first = std::max(round_as_pillow(center - support), std::int64_t{0});
    const auto end = std::min(round_as_pillow(center + support), inputs);
    const auto count = static_cast<std::size_t>(end - first);
    double sum = 0;
    for (std::size_t t = 0; t < count; ++t) {
      exact[t] = weight(interpolation, (static_cast<double>(first) + static_cast<double>(t) - center + 0.5) * inverse);
      sum += exact[t];
    }
    std::int32_t* fixed = taps.weights.data() + o * taps.stride;
    for (std::size_t t = 0; t < count; ++t) {
      const double w = (sum != 0.0 ? exact[t] / sum : exact[t]) * (1 << kPrecision);
      fixed[t] = static_cast<std::int32_t>(w < 0 ? -round_as_pillow(-w) : round_as_pillow(w));
    }
    taps.ranges[static_cast<std::size_t>(o)] = {first, end - first};
  }
  return taps;
}

// Rows of pixels, three bytes each.
struct Rows {
  const std::uint8_t* data = nullptr;
  std::int64_t stride = 0;  // bytes from one row to the next
  const std::uint8_t* row(std::int64_t y) const { return data + y * stride; }
};

// The loops below are compiled twice, for the baseline of the processor and for AVX2; which one runs is chosen at run
// time.

// Resizes one row: each output pixel is a weighted sum of neighbouring input pixels.
void resize_row(const std::uint8_t* in, std::uint8_t* out, const Taps& taps) {
  for (std::size_t x = 0; x < taps.ranges.size(); ++x) {
    const std::int32_t* weights = taps.of(static_cast<std::int64_t>(x));
    const std::uint8_t* pixel = in + 3 * taps.ranges[x].first;
    std::array<std::int32_t, 3> sums;
    sums.fill(1 << (kPrecision - 1));
    for (std::int64_t t = 0; t < taps.ranges[x].count; ++t, pixel += 3) {
      sums[0] += pixel[0] * weights[t];
      sums[1] += pixel[1] * weights[t];
      sums[2] += pixel[2] * weights[t];
    }
    for (const std::int32_t sum : sums) {
      *out++ = static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
    }
  }
}

// Computes one output row as the weighted sum of `count` input rows of `bytes` bytes.
[[gnu::always_inline]] inline void resize_column(Rows in, std::int64_t count, const std::int32_t* weights,
                                                 std::int64_t bytes, std::uint8_t* out) {
  constexpr std::int64_t tile = 64;
  std::array<std::int32_t, tile> sums;
  for (std::int64_t x = 0; x < bytes; x += tile) {
    const std::int64_t width = std::min(tile, bytes - x);
    sums.fill(1 << (kPrecision - 1));
    for (std::int64_t t = 0; t < count; ++t) {
      const std::uint8_t* row = in.row(t) + x;
      const std::int32_t w = weights[t];
      if (width == tile) {
        for (std::size_t i = 0; i < tile; ++i) {
          sums[i] += row[i] * w;
        }
      } else {
        for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) {
          sums[i] += row[i] * w;
        }
      }
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) {
      out[x + static_cast<std::int64_t>(i)] = static_cast<std::uint8_t>(std::clamp(sums[i] >> kPrecision, 0, 255));
    }
  }
}

#if defined(__x86_64__)
const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;

// The fastest instruction multiplies pairs of 16-bit numbers and adds the products, but weights have up to 24 bits. So
// each weight is split into low + (high << kLowBits), and the two sums are added at the end. They may wrap around; the
// total does not.
constexpr int kLowBits = 12;

// The weights of four taps: their low parts and their high parts.
struct FourTaps {
  std::array<std::int16_t, 4> low;
  std::array<std::int16_t, 4> high;
};

// The weights in groups of four taps, `[outputs, groups]`; those after an output's last tap are 0.
std::vector<FourTaps> split_weights(const Taps& taps, std::int64_t groups) {
  std::vector<FourTaps> split(taps.ranges.size() * static_cast<std::size_t>(groups));
  for (std::size_t x = 0; x < taps.ranges.size(); ++x) {
    const std::int32_t* weights = taps.of(static_cast<std::int64_t>(x));
    for (std::int64_t t = 0; t < taps.ranges[x].count; ++t) {
      FourTaps& four = split[x * static_cast<std::size_t>(groups) + static_cast<std::size_t>(t / 4)];
      four.low[static_cast<std::size_t>(t % 4)] = static_cast<std::int16_t>(weights[t] & ((1 << kLowBits) - 1));
      four.high[static_cast<std::size_t>(t % 4)] = static_cast<std::int16_t>(weights[t] >> kLowBits);
    }
  }
  return split;
}

// resize_row() by four taps at a time, which reads up to this many bytes beyond the end of the row.
constexpr std::int64_t kOverread = 16;
[[gnu::target("avx2")]] void resize_row_avx2(const std::uint8_t* in, std::uint8_t* out, const Taps& taps,
                                             const std::vector<FourTaps>& split, std::int64_t groups) {
  // Orders the channels of four pixels: r0 r1 r2 r3 g0 g1 g2 g3 b0 b1 b2 b3.
  const __m128i order = _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
  const FourTaps* weights = split.data();
  for (const Taps::Range& range : taps.ranges) {
    const std::uint8_t* pixel = in + 3 * range.first;
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    for (std::int64_t group = 0; group < (range.count + 3) / 4; ++group, pixel += 12) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel));
      const __m256i samples = _mm256_cvtepu8_epi16(_mm_shuffle_epi8(bytes, order));
      const FourTaps& four = weights[group];
      const __m256i w_low = _mm256_set1_epi64x(std::bit_cast<std::int64_t>(four.low));
      const __m256i w_high = _mm256_set1_epi64x(std::bit_cast<std::int64_t>(four.high));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(samples, w_low));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(samples, w_high));
    }
    weights += groups;
    // The lanes are r r g g, b b 0 0: adding neighbours gives the channels.
    const __m256i total = _mm256_add_epi32(low, _mm256_slli_epi32(high, kLowBits));
    __m128i sums = _mm_hadd_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
    sums = _mm_srai_epi32(_mm_add_epi32(sums, _mm_set1_epi32(1 << (kPrecision - 1))), kPrecision);
    sums = _mm_packus_epi16(_mm_packs_epi32(sums, sums), sums);  // clipped to 0 … 255
    const std::int32_t rgb = _mm_cvtsi128_si32(sums);
    std::memcpy(out, &rgb, 3);
    out += 3;
  }
}

[[gnu::target("avx2")]] void resize_column_avx2(Rows in, std::int64_t count, const std::int32_t* weights,
                                                std::int64_t bytes, std::uint8_t* out) {
  resize_column(in, count, weights, bytes, out);
}
#endif

void run_column(Rows in, std::int64_t count, const std::int32_t* weights, std::int64_t bytes, std::uint8_t* out) {
#if defined(__x86_64__)
  if (has_avx2) {
    return resize_column_avx2(in, count, weights, bytes, out);
  }
#endif
  resize_column(in, count, weights, bytes, out);
}

// Resizes `rows` input rows of `width` pixels to the width of `taps`. `end` is the end of the input's memory.
std::vector<std::uint8_t> resize_rows(Rows in, std::int64_t rows, std::int64_t width, const std::uint8_t* end,
                                      const Taps& taps) {
  const auto stride = static_cast<std::int64_t>(taps.ranges.size()) * 3;
  std::vector<std::uint8_t> out(static_cast<std::size_t>(stride * rows));
#if defined(__x86_64__)
  if (has_avx2) {
    const std::int64_t groups = (taps.stride + 3) / 4;
    const std::vector<FourTaps> split = split_weights(taps, groups);
    std::vector<std::uint8_t> padded(static_cast<std::size_t>(3 * width + kOverread));
    for (std::int64_t y = 0; y < rows; ++y) {
      const std::uint8_t* row = in.row(y);
      if (end - row < std::ssize(padded)) {  // the last rows, after which there may be no memory
        std::copy_n(row, 3 * width, padded.data());
        row = padded.data();
      }
      resize_row_avx2(row, out.data() + y * stride, taps, split, groups);
    }
    return out;
  }
#endif
  (void)width;
  (void)end;
  for (std::int64_t y = 0; y < rows; ++y) {
    resize_row(in.row(y), out.data() + y * stride, taps);
  }
  return out;
}

// Whether Pillow (since version 13) resizes the columns before the rows. The order matters to the last bit, since the
// pixels between the two passes are rounded.
bool columns_first(const Side& across, const Side& down) {
  return across.changes() && down.outputs < down.inputs &&
         down.inputs - down.outputs > 2 * (across.inputs - across.outputs);
}

io::Image resize_columns_first(Rows in, const Side& across, const Side& down, Interpolation interpolation) {
  const Taps columns = compute_taps(down, interpolation);
  io::Image lowered(across.inputs, down.count);
  for (std::int64_t y = 0; y < down.count; ++y) {
    const Taps::Range& range = columns.ranges[static_cast<std::size_t>(y)];
    run_column({in.row(range.first), in.stride}, range.count, columns.of(y), across.inputs * 3, lowered.at(0, y));
  }
  const Rows between = {lowered.pixels.data(), across.inputs * 3};
  const std::uint8_t* const end = lowered.pixels.data() + lowered.pixels.size();
  io::Image result;
  result.width = across.count;
  result.height = down.count;
  result.pixels = resize_rows(between, down.count, across.inputs, end, compute_taps(across, interpolation));
  return result;
}

io::Image resize_filtered(Rows in, const std::uint8_t* end, const Side& across, const Side& down,
                          Interpolation interpolation) {
  if (columns_first(across, down)) {
    return resize_columns_first(in, across, down, interpolation);
  }
  Taps columns;
  std::int64_t first = down.first;
  std::int64_t rows = down.count;
  if (down.changes()) {
    columns = compute_taps(down, interpolation);
    first = columns.begin();
    rows = columns.end() - first;
  }
  io::Image narrowed;  // the rows that are needed, at the new width
  narrowed.width = across.count;
  narrowed.height = rows;
  in.data = in.row(first);
  if (across.changes()) {
    narrowed.pixels = resize_rows(in, rows, across.inputs, end, compute_taps(across, interpolation));
    in = {narrowed.pixels.data(), across.count * 3};
  } else {
    in.data += across.first * 3;
  }
  if (!down.changes() && across.changes()) {
    return narrowed;
  }
  io::Image result(across.count, down.count);
  for (std::int64_t y = 0; y < down.count; ++y) {
    if (down.changes()) {
      const Taps::Range& range = columns.ranges[static_cast<std::size_t>(y)];
      run_column({in.row(range.first - first), in.stride}, range.count, columns.of(y), across.count * 3,
                 result.at(0, y));
    } else {
      std::copy_n(in.row(y), across.count * 3, result.at(0, y));
    }
  }
  return result;
}

// The nearest input positions. They are added up as in Pillow (ImagingScaleAffine), with the same rounding errors.
std::vector<std::int64_t> nearest_positions(const Side& side) {
  std::vector<std::int64_t> positions;
  positions.reserve(static_cast<std::size_t>(side.count));
  const double step = static_cast<double>(side.inputs) / static_cast<double>(side.outputs);
  double at = step * 0.5;
  for (std::int64_t i = 0; i < side.first + side.count; ++i, at += step) {
    if (i >= side.first) {
      positions.push_back(std::min(static_cast<std::int64_t>(at), side.inputs - 1));
    }
  }
  return positions;
}

io::Image resize_nearest(Rows in, const Side& across, const Side& down) {
  io::Image result(across.count, down.count);
  const std::vector<std::int64_t> columns = nearest_positions(across);
  const std::vector<std::int64_t> rows = nearest_positions(down);
  std::uint8_t* out = result.pixels.data();
  for (const std::int64_t y : rows) {
    const std::uint8_t* row = in.row(y);
    for (const std::int64_t x : columns) {
      std::memcpy(out, row + 3 * x, 3);
      out += 3;
    }
  }
  return result;
}

// The part `window` of what `region` of the image becomes at width × height pixels.
io::Image resize_part(const io::Image& image, const Region& region, std::int64_t width, std::int64_t height,
                      const Region& window, Interpolation interpolation) {
  const Rows in = {image.at(region.x, region.y), image.width * 3};
  const Side across = {region.width, width, window.x, window.width};
  const Side down = {region.height, height, window.y, window.height};
  if (interpolation == Interpolation::nearest) {
    return resize_nearest(in, across, down);
  }
  return resize_filtered(in, image.pixels.data() + image.pixels.size(), across, down, interpolation);
}

void check_inside(const Region& region, std::int64_t width, std::int64_t height) {
  check(region.x >= 0 && region.y >= 0 && region.width > 0 && region.height > 0 && region.x + region.width <= width &&
            region.y + region.height <= height,
        "the region of {} x {} pixels at ({}, {}) is not inside the image of {} x {}", region.width, region.height,
        region.x, region.y, width, height);
}

constexpr std::array<std::pair<std::string_view, Interpolation>, 6> kNames = {{
    {"nearest", Interpolation::nearest},
    {"box", Interpolation::box},
    {"bilinear", Interpolation::bilinear},
    {"hamming", Interpolation::hamming},
    {"bicubic", Interpolation::bicubic},
    {"lanczos", Interpolation::lanczos},
}};

}  // namespace

const std::vector<std::string>& interpolation_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    result.reserve(kNames.size());
    for (const auto& [name, interpolation] : kNames) {
      result.emplace_back(name);
    }
    return result;
  }();
  return names;
}

Interpolation interpolation_named(const std::string& name) {
  for (const auto& [known, interpolation] : kNames) {
    if (name == known) {
      return interpolation;
    }
  }
  fail("no interpolation is called '{}': it must be one of {}", name, fmt::join(interpolation_names(), ", "));
}

io::Image resize(const io::Image& image, const Region& region, std::int64_t width, std::int64_t height,
                 Interpolation interpolation) {
  check(width > 0 && height > 0, "an image cannot be resized to {} x {} pixels", width, height);
  check_inside(region, image.width, image.height);
  return resize_part(image, region, width, height, {0, 0, width, height}, interpolation);
}

io::Image resize(const io::Image& image, std::int64_t width, std::int64_t height, Interpolation interpolation) {
  return resize(image, {0, 0, image.width, image.height}, width, height, interpolation);
}

io::Image resize_window(const io::Image& image, std::int64_t width, std::int64_t height, const Region& window,
                        Interpolation interpolation) {
  const Region whole = {0, 0, image.width, image.height};
  check_inside(whole, image.width, image.height);
  check_inside(window, width, height);
  return resize_part(image, whole, width, height, window, interpolation);
}

}  // namespace vitrail::data
