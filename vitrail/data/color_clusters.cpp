#include "vitrail/data/color_clusters.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "vitrail/data/resize.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using Center = std::array<float, 3>;

constexpr const char* processor_file = "preprocessor_config.json";
constexpr std::int64_t most_pixels = 1 << 16;  // that k-means looks at
constexpr int rounds = 20;

Center color_of(const std::uint8_t* pixel) {
  const auto channel = [&](int c) { return static_cast<float>(pixel[c]) / 127.5F - 1; };
  return {channel(0), channel(1), channel(2)};
}

std::int64_t nearest(const std::vector<Center>& centers, const Center& color) {
  std::int64_t best = 0;
  float least = 1e9F;
  for (std::int64_t i = 0; i < std::ssize(centers); ++i) {
    const Center& center = centers[static_cast<std::size_t>(i)];
    float distance = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      distance += (center[c] - color[c]) * (center[c] - color[c]);
    }
    if (distance < least) {
      least = distance;
      best = i;
    }
  }
  return best;
}

std::vector<std::int64_t> nearest_of(const std::vector<Center>& centers, const std::vector<Center>& colors) {
  std::vector<std::int64_t> result(colors.size());
  kernels::parallel_for(std::ssize(colors), 256, [&](std::int64_t begin, std::int64_t end, int) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      result[i] = nearest(centers, colors[i]);
    }
  });
  return result;
}

std::vector<Center> colors_of(const io::Image& image) {
  std::vector<Center> colors;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    colors.push_back(color_of(&image.pixels[i]));
  }
  return colors;
}

io::Image sized(const io::Image& image, std::int64_t size) {
  return resize(image, size, size, Interpolation::bilinear);
}

// As many pixels of each image, drawn at random.
std::vector<Center> some_colors(const Dataset& images, std::int64_t size, std::uint64_t seed) {
  const std::int64_t used = std::min(images.size(), most_pixels);
  const std::int64_t each = std::min(std::max<std::int64_t>(1, most_pixels / used), size * size);
  std::vector<Center> result;
  for (std::int64_t i = 0; i < used; ++i) {
    const std::int64_t index = i * images.size() / used;
    io::Image image;
    try {
      image = sized(images.image(index), size);
    } catch (const Error&) {  // whoever reads all images says what is wrong with it
      continue;
    }
    Draws draws(Philox(seed, static_cast<std::uint64_t>(index)));
    for (std::int64_t n = 0; n < each; ++n) {
      const auto pixel = draws.integer(0, static_cast<int>(size * size));
      result.push_back(color_of(&image.pixels[static_cast<std::size_t>(3 * pixel)]));
    }
  }
  return result;
}

void check_size(std::int64_t size, const std::string& source) {
  check(size >= 1 && size <= 1024, "{}: pictures of {} pixels a side cannot be told as sequences", source, size);
}

}  // namespace

std::vector<std::int64_t> ColorClusters::encode(const io::Image& image) const {
  return nearest_of(centers, colors_of(sized(image, size)));
}

io::Image ColorClusters::decode(std::span<const std::int64_t> ids) const {
  check(std::ssize(ids) == size * size, "a picture of {0}x{0} pixels has {1} colours, not {2}", size, size * size,
        ids.size());
  io::Image image(size, size);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] >= 0 && ids[i] < count(), "pixel {} has the colour {}, but there are {}", i, ids[i], count());
    const Center& center = centers[static_cast<std::size_t>(ids[i])];
    for (std::size_t c = 0; c < 3; ++c) {
      const float byte = std::nearbyint(127.5F * (center[c] + 1));
      image.pixels[3 * i + c] = static_cast<std::uint8_t>(std::clamp(byte, 0.0F, 255.0F));
    }
  }
  return image;
}

ColorClusters learn_clusters(const Dataset& images, std::int64_t count, std::int64_t size, std::uint64_t seed) {
  check_size(size, "colour clusters");
  check(count >= 1 && images.size() >= 1, "{} clusters cannot be chosen from the colours of {} images", count,
        images.size());
  const std::vector<Center> colors = some_colors(images, size, seed);
  check(!colors.empty(), "none of the {} images could be read to choose colours from", images.size());
  ColorClusters clusters{.centers = {}, .size = size};
  Draws draws(Philox(seed, hash("clusters")));
  for (std::int64_t i = 0; i < count; ++i) {
    clusters.centers.push_back(colors[static_cast<std::size_t>(draws.integer(0, static_cast<int>(colors.size())))]);
  }
  for (int round = 0; round < rounds; ++round) {
    const std::vector<std::int64_t> owner = nearest_of(clusters.centers, colors);
    std::vector<std::array<double, 3>> sums(static_cast<std::size_t>(count), {0, 0, 0});
    std::vector<double> members(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < colors.size(); ++i) {
      const auto own = static_cast<std::size_t>(owner[i]);
      members[own] += 1;
      for (std::size_t c = 0; c < 3; ++c) {
        sums[own][c] += static_cast<double>(colors[i][c]);
      }
    }
    for (std::size_t own = 0; own < members.size(); ++own) {
      for (std::size_t c = 0; c < 3 && members[own] > 0; ++c) {
        // In steps that a decimal text of six digits has.
        clusters.centers[own][c] = static_cast<float>(std::round(1e6 * sums[own][c] / members[own]) / 1e6);
      }
    }
  }
  return clusters;
}

ColorClusters read_clusters(const fs::path& folder) {
  const fs::path path = folder / processor_file;
  check(fs::exists(path), "'{}' has no {}, which says what colours its words are", folder.string(), processor_file);
  const nlohmann::json json = io::read_json(path);
  io::Fields fields(json, path.string());
  ColorClusters clusters;
  const nlohmann::json& rows = fields.raw("clusters");
  check(rows.is_array() && !rows.empty(), "{}: 'clusters' must be a list of colours", path.string());
  for (const nlohmann::json& row : rows) {
    const bool is_color = row.is_array() && row.size() == 3 &&
                          std::ranges::all_of(row, [](const nlohmann::json& part) { return part.is_number(); });
    check(is_color, "{}: 'clusters' has {}, which is no colour [red, green, blue]", path.string(), row.dump());
    clusters.centers.push_back({row[0].get<float>(), row[1].get<float>(), row[2].get<float>()});
  }
  if (fields.kind("size") == io::Kind::object) {
    io::Fields size = fields.object("size");
    clusters.size = size.get<std::int64_t>("height");
    check(size.get<std::int64_t>("width") == clusters.size, "{}: 'size' must be square", path.string());
  } else {
    clusters.size = fields.get<std::int64_t>("size", clusters.size);
  }
  check_size(clusters.size, path.string());
  check(fields.get<std::int64_t>("resample", 2) == 2, "{}: 'resample' must be 2, which is bilinear", path.string());
  return clusters;
}

void write_clusters(const ColorClusters& clusters, const fs::path& folder) {
  nlohmann::ordered_json json;
  json["clusters"] = nlohmann::ordered_json::array();
  for (const Center& center : clusters.centers) {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (const float part : center) {
      row.push_back(std::round(1e6 * static_cast<double>(part)) / 1e6);
    }
    json["clusters"].push_back(row);
  }
  json["do_color_quantize"] = true;
  json["do_normalize"] = true;
  json["do_resize"] = true;
  json["image_processor_type"] = "ImageGPTImageProcessor";
  json["resample"] = 2;
  json["size"] = {{"height", clusters.size}, {"width", clusters.size}};
  io::write_atomically(folder / processor_file, json.dump() + "\n");
}

}  // namespace vitrail::data
