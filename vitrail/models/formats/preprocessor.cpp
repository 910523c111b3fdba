#include "vitrail/models/formats/preprocessor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "vitrail/models/base/arguments.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr io::Range side_range{1, largest_size};
const std::array<std::string, 6> resamples = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};

// A size in preprocessor_config.json: {"height", "width"}, {"shortest_edge"}, or, in old files, a number.
struct ProcessorSize {
  nn::Size2 size = {0, 0};
  bool shortest_edge = false;
};
std::optional<ProcessorSize> read_processor_size(io::Fields& f, const char* key) {
  if (f.kind(key) == io::Kind::absent || f.kind(key) == io::Kind::null) {
    return std::nullopt;
  }
  if (f.kind(key) != io::Kind::object) {
    const nn::Size2 size = read_size(f, key, {});
    return ProcessorSize{size, false};
  }
  io::Fields inner = f.object(key);
  if (inner.kind("shortest_edge") != io::Kind::absent) {
    const auto edge = inner.get<std::int64_t>("shortest_edge", side_range);
    return ProcessorSize{{edge, edge}, true};
  }
  return ProcessorSize{{inner.get<std::int64_t>("height", side_range), inner.get<std::int64_t>("width", side_range)},
                       false};
}

// The crop_pct with which timm resizes to `resized` before it crops to `side`: ⌊side / crop_pct⌋ = resized.
double crop_pct_for(std::int64_t side, std::int64_t resized) {
  double pct = static_cast<double>(side) / static_cast<double>(resized);
  while (std::floor(static_cast<double>(side) / pct) < static_cast<double>(resized)) {
    pct = std::nextafter(pct, 0.0);
  }
  return pct;
}

}  // namespace

void read_preprocessor(const fs::path& folder, PretrainedConfig& p) {
  const fs::path path = folder / "preprocessor_config.json";
  if (!fs::exists(path)) {
    return;
  }
  const Json json = io::read_json(path);
  io::Fields f(json, path.string());
  if (f.get<bool>("do_normalize", true)) {
    p.mean = f.get<std::vector<double>>("image_mean", p.mean, {-1e3, 1e3});
    p.std = f.get<std::vector<double>>("image_std", p.std, {1e-6, 1e3});
    check(!p.mean.empty() && p.mean.size() == p.std.size(), "{}: 'image_mean' and 'image_std' have {} and {} numbers",
          path.string(), p.mean.size(), p.std.size());
  } else {
    p.mean.assign(p.mean.size(), 0);
    p.std.assign(p.std.size(), 1);
  }
  const auto factor = f.get<double>("rescale_factor", 1.0 / 255);
  check(f.get<bool>("do_rescale", true) && std::abs(factor * 255 - 1) < 1e-3,
        "{}: pixels are taken times 1/255 here ('do_rescale', 'rescale_factor'), not otherwise", path.string());
  if (!f.get<bool>("do_resize", true)) {
    return;  // the family's preparation stays: every image must be brought to the model's size
  }
  if (f.kind("resample") != io::Kind::absent && f.kind("resample") != io::Kind::null) {
    p.interpolation = resamples[static_cast<std::size_t>(f.get<std::int64_t>("resample", {0, 5}))];
  }
  const std::optional<ProcessorSize> size = read_processor_size(f, "size");
  if (!size) {
    return;
  }
  const bool crops = f.optional<bool>("do_center_crop").value_or(false);
  const ProcessorSize crop =
      (crops ? read_processor_size(f, "crop_size") : std::nullopt).value_or(ProcessorSize{size->size, false});
  p.height = crop.size[0];
  p.width = crop.size[1];
  p.crop_mode = size->shortest_edge ? "center" : "squash";
  p.crop_pct = crop_pct_for(size->shortest_edge ? std::min(p.height, p.width) : p.height, size->size[0]);
}

OrderedJson preprocessor_json(const PretrainedConfig& p) {
  const auto resized = [&](std::int64_t side) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(side) / p.crop_pct));
  };
  const auto interpolation = std::ranges::find(resamples, p.interpolation);
  check(interpolation != resamples.end(), "transformers has no interpolation '{}'", p.interpolation);
  check(p.crop_mode != "border", "transformers has no crop_mode 'border': choose center or squash");
  OrderedJson json;
  const bool crops = resized(p.height) != p.height || p.crop_mode == "center";
  json["image_processor_type"] =
      crops ? (p.crop_mode == "center" ? "BitImageProcessor" : "DeiTImageProcessor") : "ViTImageProcessor";
  json["do_resize"] = true;
  json["resample"] = interpolation - resamples.begin();
  if (p.crop_mode == "center") {
    json["size"] = {{"shortest_edge", resized(std::min(p.height, p.width))}};
  } else {
    json["size"] = {{"height", resized(p.height)}, {"width", resized(p.width)}};
  }
  if (crops) {
    json["do_center_crop"] = true;
    json["crop_size"] = {{"height", p.height}, {"width", p.width}};
  }
  json["do_rescale"] = true;
  json["rescale_factor"] = 1.0 / 255;
  json["do_normalize"] = true;
  json["image_mean"] = p.mean;
  json["image_std"] = p.std;
  return json;
}

}  // namespace vitrail::models
