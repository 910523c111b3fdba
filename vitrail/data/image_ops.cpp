#include "vitrail/data/image_ops.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "vitrail/data/pixels.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

// The table with `table[v] = value(v)`, clipped to 0 … 255.
template <class Value>
Table table_of(Value value) {
  Table table;
  for (int v = 0; v < 256; ++v) {
    table[static_cast<std::size_t>(v)] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(value(v), 0, 255));
  }
  return table;
}

void look_up(io::Image& image, const Table& table) {
  for (std::uint8_t& sample : image.pixels) {
    sample = table[sample];
  }
}

// Maps each channel by the table that `make` returns for its histogram.
template <class Make>
void look_up_by_histogram(io::Image& image, Make make) {
  std::array<Histogram, 3> histograms = {};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    ++histograms[i % 3][image.pixels[i]];
  }
  std::array<Table, 3> tables;
  std::ranges::transform(histograms, tables.begin(), make);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = tables[i % 3][image.pixels[i]];
  }
}

Table stretched(const Histogram& histogram) {
  const auto used = [](std::int64_t count) { return count > 0; };
  const auto first = std::ranges::find_if(histogram, used);
  const auto last = std::find_if(histogram.rbegin(), histogram.rend(), used);
  const auto low = static_cast<double>(first - histogram.begin());
  const auto high = static_cast<double>(histogram.rend() - last) - 1;
  if (high <= low) {
    return table_of([](int v) { return v; });
  }
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  return table_of([=](int v) { return static_cast<std::int64_t>(v * scale + offset); });
}

Table equalized(const Histogram& histogram) {
  std::int64_t sum = 0;
  std::int64_t last = 0;
  std::int64_t used = 0;
  for (const std::int64_t count : histogram) {
    sum += count;
    last = count > 0 ? count : last;
    used += count > 0 ? 1 : 0;
  }
  const std::int64_t step = (sum - last) / 255;
  if (used <= 1 || step == 0) {
    return table_of([](int v) { return v; });
  }
  std::int64_t below = step / 2;
  return table_of([&](int v) {
    const std::int64_t value = below / step;
    below += histogram[static_cast<std::size_t>(v)];
    return value;
  });
}

// Pillow's ImageFilter.SMOOTH: a 3 x 3 kernel of ones with 5 in the middle, divided by 13; the outermost pixels stay.
io::Image smoothed(const io::Image& image) {
  io::Image result = image;
  const std::int64_t stride = 3 * image.width;
  constexpr float side = 1.0F / 13.0F;
  constexpr float middle = 5.0F / 13.0F;
  const auto row = [](const std::uint8_t* p, float own) {
    return static_cast<float>(p[-3]) * side + static_cast<float>(p[0]) * own + static_cast<float>(p[3]) * side;
  };
  for (std::int64_t y = 1; y + 1 < image.height; ++y) {
    const std::uint8_t* in = image.at(0, y);
    std::uint8_t* out = result.at(0, y);
    for (std::int64_t i = 3; i + 3 < stride; ++i) {
      float sum = 0.5F;  // rows are added from below upwards, in Pillow's order
      sum += row(in + stride + i, side);
      sum += row(in + i, middle);
      sum += row(in - stride + i, side);
      out[i] = static_cast<std::uint8_t>(std::clamp(sum, 0.0F, 255.0F));
    }
  }
  return result;
}

// A box of 2 · whole + 1 pixels and a fraction of one more on each side. The weights are in 8.24 fixed point.
struct BoxBlur {
  std::int64_t whole = 0;
  std::uint32_t inside = 0;
  std::uint32_t edge = 0;
};

// The box whose `passes`-fold convolution approximates a Gaussian. It computes in float where Pillow does.
BoxBlur box_of(float radius, int passes) {
  const float variance = radius * radius / static_cast<float>(passes);
  const auto length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const auto whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  float fraction = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  fraction /= 6 * (variance - (whole + 1) * (whole + 1));
  const float reach = whole + fraction;
  BoxBlur box;
  box.whole = static_cast<std::int64_t>(reach);
  box.inside = static_cast<std::uint32_t>(static_cast<float>(1 << 24) / (reach * 2 + 1));
  box.edge = ((1U << 24) - (2 * static_cast<std::uint32_t>(box.whole) + 1) * box.inside) / 2;
  return box;
}

// Blurs `count` samples, `stride` bytes apart, by the box. The outermost samples are repeated beyond the ends; `line`
// is scratch memory.
void blur_line(std::uint8_t* samples, std::int64_t count, std::int64_t stride, const BoxBlur& box,
               std::vector<std::uint8_t>& line) {
  const std::int64_t reach = box.whole + 1;
  line.assign(static_cast<std::size_t>(reach), samples[0]);
  for (std::int64_t i = 0; i < count; ++i) {
    line.push_back(samples[i * stride]);
  }
  line.insert(line.end(), static_cast<std::size_t>(reach), line.back());
  const std::uint8_t* left = line.data();  // the sample `reach` before the present one
  const std::uint8_t* right = line.data() + 2 * reach;
  std::uint32_t sum = std::accumulate(left, right - 1, std::uint32_t{0});  // the window of the sample before the first
  for (std::int64_t i = 0; i < count; ++i) {
    sum += std::uint32_t{right[i - 1]} - left[i];
    const std::uint32_t bulk = sum * box.inside + (std::uint32_t{left[i]} + right[i]) * box.edge;
    samples[i * stride] = static_cast<std::uint8_t>((bulk + (1U << 23)) >> 24);
  }
}

// Interpolates between v2 and v3 at the fraction `d`, by Pillow's cubic of four neighbours (a = -1) in double.
double cubic(double v1, double v2, double v3, double v4, double d) {
  const double p2 = -v1 + v3;
  const double p3 = 2 * (v1 - v2) + v3 - v4;
  const double p4 = -v1 + v2 - v3 + v4;
  return v2 + d * (p2 + d * (p3 + d * p4));
}

// The value at (x, y), in pixels from the image's corner. Returns false if that is outside of the image.
bool sample_bilinear(const io::Image& image, double x, double y, std::uint8_t* out) {
  if (x < 0 || x >= static_cast<double>(image.width) || y < 0 || y >= static_cast<double>(image.height)) {
    return false;
  }
  x -= 0.5;
  y -= 0.5;
  const auto left = static_cast<std::int64_t>(std::floor(x));
  const auto top = static_cast<std::int64_t>(std::floor(y));
  const double dx = x - static_cast<double>(left);
  const double dy = y - static_cast<double>(top);
  const std::int64_t x0 = std::max(left, std::int64_t{0});
  const std::int64_t x1 = std::min(left + 1, image.width - 1);
  const std::int64_t y0 = std::max(top, std::int64_t{0});
  const std::int64_t y1 = std::min(top + 1, image.height - 1);
  for (int c = 0; c < 3; ++c) {
    const auto row = [&](std::int64_t v) {
      const double a = image.at(x0, v)[c];
      const double b = image.at(x1, v)[c];
      return a + (b - a) * dx;
    };
    const double upper = row(y0);
    out[c] = static_cast<std::uint8_t>(upper + (row(y1) - upper) * dy);
  }
  return true;
}

bool sample_bicubic(const io::Image& image, double x, double y, std::uint8_t* out) {
  if (x < 0 || x >= static_cast<double>(image.width) || y < 0 || y >= static_cast<double>(image.height)) {
    return false;
  }
  x -= 0.5;
  y -= 0.5;
  const auto left = static_cast<std::int64_t>(std::floor(x));
  const auto top = static_cast<std::int64_t>(std::floor(y));
  const double dx = x - static_cast<double>(left);
  const double dy = y - static_cast<double>(top);
  std::array<const std::uint8_t*, 4> rows;
  std::array<std::int64_t, 4> columns;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t step = static_cast<std::int64_t>(i) - 1;
    rows[i] = image.at(0, std::clamp(top + step, std::int64_t{0}, image.height - 1));
    columns[i] = 3 * std::clamp(left + step, std::int64_t{0}, image.width - 1);
  }
  for (int c = 0; c < 3; ++c) {
    const auto across = [&](const std::uint8_t* row) {
      return cubic(row[columns[0] + c], row[columns[1] + c], row[columns[2] + c], row[columns[3] + c], dx);
    };
    const double value = cubic(across(rows[0]), across(rows[1]), across(rows[2]), across(rows[3]), dy);
    out[c] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
  }
  return true;
}

// Takes the nearest pixels. Positions are stepped through in 16.16 fixed point, as in Pillow.
void transform_nearest(const io::Image& image, const std::array<double, 6>& m, io::Image& result) {
  check(image.width < 32768 && image.height < 32768,
        "an image of {} x {} pixels is too large to be turned by the nearest pixels: at most 32767 each way",
        image.width, image.height);
  const auto fixed = [](double v) { return static_cast<std::int64_t>(std::floor(v * 65536.0 + 0.5)); };
  std::int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  std::int64_t row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  const std::array<std::int64_t, 4> step = {fixed(m[0]), fixed(m[1]), fixed(m[3]), fixed(m[4])};
  for (std::int64_t y = 0; y < result.height; ++y, row_x += step[1], row_y += step[3]) {
    for (std::int64_t x = 0; x < result.width; ++x) {
      const std::int64_t from_x = (row_x + x * step[0]) >> 16;
      const std::int64_t from_y = (row_y + x * step[2]) >> 16;
      if (from_x >= 0 && from_x < image.width && from_y >= 0 && from_y < image.height) {
        std::copy_n(image.at(from_x, from_y), 3, result.at(x, y));
      }
    }
  }
}

// Shifts the image (scales of 1) to the nearest pixels. Here Pillow adds up positions in double.
void shift_nearest(const io::Image& image, double shift_x, double shift_y, io::Image& result) {
  const auto coordinate = [](double v) { return v < 0 ? std::int64_t{-1} : static_cast<std::int64_t>(v); };
  double from_y = shift_y + 0.5;
  for (std::int64_t y = 0; y < result.height; ++y, from_y += 1) {
    double from_x = shift_x + 0.5;
    for (std::int64_t x = 0; x < result.width; ++x, from_x += 1) {
      if (from_x >= 0 && from_x < static_cast<double>(image.width) && from_y >= 0 &&
          from_y < static_cast<double>(image.height)) {
        std::copy_n(image.at(coordinate(from_x), coordinate(from_y)), 3, result.at(x, y));
      }
    }
  }
}

// Python's round(x, 15): rounds to 15 decimal places.
double round_to_15_places(double x) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.15f", x);
  return std::strtod(text.data(), nullptr);
}

// The image whose pixel at (x, y) is the original's at from(x, y); no interpolation.
template <class From>
io::Image rearranged(const io::Image& image, From from) {
  io::Image result(image.width, image.height);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      const auto [from_x, from_y] = from(x, y);
      std::copy_n(image.at(from_x, from_y), 3, result.at(x, y));
    }
  }
  return result;
}

}  // namespace

void auto_contrast(io::Image& image) { look_up_by_histogram(image, stretched); }

void equalize(io::Image& image) { look_up_by_histogram(image, equalized); }

void invert(io::Image& image) {
  look_up(image, table_of([](int v) { return 255 - v; }));
}

void posterize(io::Image& image, int bits) {
  check(bits >= 0 && bits <= 8, "a sample has 8 bits: {} of them cannot be kept", bits);
  const int mask = ~((1 << (8 - bits)) - 1);
  look_up(image, table_of([=](int v) { return v & mask; }));
}

void solarize(io::Image& image, int threshold) {
  look_up(image, table_of([=](int v) { return v < threshold ? v : 255 - v; }));
}

void solarize_add(io::Image& image, int add) {
  look_up(image, table_of([=](int v) { return v < 128 ? v + add : v; }));
}

void adjust_sharpness(io::Image& image, double factor) {
  const io::Image smooth = smoothed(image);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = blend(smooth.pixels[i], image.pixels[i], static_cast<float>(factor));
  }
}

void gaussian_blur(io::Image& image, double radius) {
  check(radius >= 0 && radius <= 10000, "an image cannot be blurred by {} pixels: expected 0 … 10000", radius);
  constexpr int passes = 3;
  if (radius == 0) {
    return;
  }
  const BoxBlur box = box_of(static_cast<float>(radius), passes);
  std::vector<std::uint8_t> line;
  for (int c = 0; c < 3; ++c) {
    for (int pass = 0; pass < passes; ++pass) {
      for (std::int64_t y = 0; y < image.height; ++y) {
        blur_line(image.at(0, y) + c, image.width, 3, box, line);
      }
    }
    for (int pass = 0; pass < passes; ++pass) {
      for (std::int64_t x = 0; x < image.width; ++x) {
        blur_line(image.at(x, 0) + c, image.height, 3 * image.width, box, line);
      }
    }
  }
}

void transform_affine(io::Image& image, const std::array<double, 6>& m, Interpolation interpolation, Color fill) {
  io::Image result(image.width, image.height);
  for (std::size_t i = 0; i < result.pixels.size(); ++i) {
    result.pixels[i] = fill[i % 3];
  }
  if (interpolation == Interpolation::nearest) {
    if (m[0] == 1 && m[1] == 0 && m[3] == 0 && m[4] == 1) {
      shift_nearest(image, m[2], m[5], result);
    } else {
      transform_nearest(image, m, result);
    }
  } else {
    check(interpolation == Interpolation::bilinear || interpolation == Interpolation::bicubic,
          "images can be turned, sheared and shifted with nearest, bilinear or bicubic interpolation only");
    const auto sample = interpolation == Interpolation::bilinear ? sample_bilinear : sample_bicubic;
    for (std::int64_t y = 0; y < result.height; ++y) {
      const double v = static_cast<double>(y) + 0.5;
      for (std::int64_t x = 0; x < result.width; ++x) {
        const double u = static_cast<double>(x) + 0.5;
        sample(image, m[0] * u + m[1] * v + m[2], m[3] * u + m[4] * v + m[5], result.at(x, y));
      }
    }
  }
  image = std::move(result);
}

void rotate(io::Image& image, double degrees, Interpolation interpolation, Color fill) {
  const std::int64_t last_x = image.width - 1;
  const std::int64_t last_y = image.height - 1;
  using Place = std::pair<std::int64_t, std::int64_t>;
  double angle = std::fmod(degrees, 360.0);
  angle += angle < 0 ? 360.0 : 0.0;
  if (angle == 0 || angle == 360) {
    return;
  }
  if (angle == 180) {
    image = rearranged(image, [=](auto x, auto y) { return Place(last_x - x, last_y - y); });
    return;
  }
  if (image.width == image.height && (angle == 90 || angle == 270)) {
    image =
        rearranged(image, [=](auto x, auto y) { return angle == 90 ? Place(last_x - y, x) : Place(y, last_y - x); });
    return;
  }
  const double radians = -(angle * (std::numbers::pi / 180.0));
  const double cosine = round_to_15_places(std::cos(radians));
  const double sine = round_to_15_places(std::sin(radians));
  const double minus_sine = round_to_15_places(-std::sin(radians));
  const double x = static_cast<double>(image.width) / 2;
  const double y = static_cast<double>(image.height) / 2;
  transform_affine(image,
                   {cosine, sine, cosine * -x + sine * -y + x, minus_sine, cosine, minus_sine * -x + cosine * -y + y},
                   interpolation, fill);
}

}  // namespace vitrail::data
