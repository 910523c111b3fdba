#include "vitrail/models/formats/preprocessor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/models/base/arguments.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
using data::ImageProcessor;
using Resize = ImageProcessor::Resize;

constexpr io::Range side_range{1, largest_size};
const std::array<std::string, 6> resamples = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};

// A size in preprocessor_config.json: {"height", "width"}, {"shortest_edge"}, or, in old files, a number or a list.
struct ProcessorSize {
  nn::Size2 size = {0, 0};
  bool shortest_edge = false;
};

// What transformers' class of image processors assumes where its file says nothing.
struct ProcessorClass {
  std::string_view name;
  std::size_t resample = 0;
  std::array<double, 3> mean = {};
  std::array<double, 3> std = {};
  ProcessorSize size = {};
  std::int64_t crop = 0;  // 0: do_center_crop is false
};
constexpr std::array<double, 3> half = {0.5, 0.5, 0.5};
constexpr std::array<double, 3> clip_mean = {0.48145466, 0.4578275, 0.40821073};
constexpr std::array<double, 3> clip_std = {0.26862954, 0.26130258, 0.27577711};
constexpr std::array<double, 3> imagenet_mean = {0.485, 0.456, 0.406};
constexpr std::array<double, 3> imagenet_std = {0.229, 0.224, 0.225};
constexpr ProcessorClass processor_classes[] = {{"ViT", 2, half, half, {{224, 224}, false}, 0},
                                                {"DeiT", 3, half, half, {{256, 256}, false}, 224},
                                                {"Bit", 3, clip_mean, clip_std, {{224, 224}, true}, 224},
                                                {"CLIP", 3, clip_mean, clip_std, {{224, 224}, true}, 224},
                                                {"Blip", 3, clip_mean, clip_std, {{384, 384}, false}, 0},
                                                {"Beit", 3, half, half, {{224, 224}, false}, 0},
                                                {"ConvNext", 3, half, half, {{384, 384}, true}, 0},
                                                {"Siglip", 3, half, half, {{224, 224}, false}, 0},
                                                {"DINOv3ViT", 2, imagenet_mean, imagenet_std, {{224, 224}, false}, 0}};

// The class that the file names, without what its name ends in: "ViTImageProcessorFast", "ViTFeatureExtractor" …; null
// if there is none that vitrail knows.
const ProcessorClass* class_of(io::Fields& f) {
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const std::string name = f.optional<std::string>(key).value_or("");
    for (const ProcessorClass& known : processor_classes) {
      const std::string start(known.name);
      if (name.starts_with(start + "ImageProcessor") || name.starts_with(start + "FeatureExtractor")) {
        return &known;
      }
    }
  }
  return nullptr;
}

std::optional<ProcessorSize> read_processor_size(io::Fields& f, const char* key, bool number_is_edge) {
  if (f.is_unset(key)) {
    return std::nullopt;
  }
  if (f.kind(key) != io::Kind::object) {
    const bool edge = number_is_edge && f.kind(key) != io::Kind::list;
    return ProcessorSize{read_size(f, key, {}), edge};
  }
  io::Fields inner = f.object(key);
  if (inner.kind("shortest_edge") != io::Kind::absent) {
    check(inner.is_unset("longest_edge"), "{}: '{}' has a 'longest_edge', which vitrail's images are not limited by",
          f.source(), key);
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

// One number a channel, or one for all `channels`.
std::vector<double> read_colors(io::Fields& f, const char* key, const std::vector<double>& fallback,
                                std::size_t channels, io::Range range) {
  if (f.is_unset(key)) {
    return fallback;
  }
  return f.kind(key) == io::Kind::list ? f.get<std::vector<double>>(key, range)
                                       : std::vector<double>(channels, f.get<double>(key, range));
}

// Reads the normalization: (factor · value - mean) / std of an 8-bit value, which is (value / 255 - mean') / std' with
// the mean' and std' that `p` gets.
void read_normalization(io::Fields& f, const ProcessorClass* known, PretrainedConfig& p) {
  if (known != nullptr && p.mean.size() == 3) {
    p.mean.assign(known->mean.begin(), known->mean.end());
    p.std.assign(known->std.begin(), known->std.end());
  }
  if (f.optional<bool>("do_normalize").value_or(true)) {
    p.mean = read_colors(f, "image_mean", p.mean, p.mean.size(), {-1e4, 1e4});
    p.std = read_colors(f, "image_std", p.std, p.std.size(), {1e-6, 1e4});
    check(!p.mean.empty() && p.mean.size() == p.std.size(), "{}: 'image_mean' and 'image_std' have {} and {} numbers",
          f.source(), p.mean.size(), p.std.size());
  } else {
    p.mean.assign(p.mean.size(), 0);
    p.std.assign(p.std.size(), 1);
  }
  const double given = f.optional<double>("rescale_factor", {1e-9, 1e4}).value_or(1.0 / 255);
  const double factor = f.optional<bool>("do_rescale").value_or(true) ? given : 1.0;
  if (const double scale = factor * 255; scale != 1) {
    for (std::vector<double>* values : {&p.mean, &p.std}) {
      std::ranges::for_each(*values, [scale](double& value) { value /= scale; });
    }
  }
}

// The geometry of ConvNext's processor, which cuts a crop_pct out of small images and squashes larger ones.
ImageProcessor convnext_processor(io::Fields& f, std::int64_t edge) {
  ImageProcessor result{Resize::both, edge, edge, edge, edge};
  if (edge < 384) {
    const double pct = f.optional<double>("crop_pct", {1e-3, 10}).value_or(224.0 / 256);
    result.resize = Resize::shorter_side;
    result.height = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(edge) / pct));
    result.width = result.height;
  }
  return result;
}

// The size of the crop that the file describes; {0, 0} if there is none.
nn::Size2 read_crop(io::Fields& f, const ProcessorClass* known) {
  const std::int64_t usual = known != nullptr ? known->crop : 0;
  if (!f.optional<bool>("do_center_crop").value_or(usual > 0)) {
    return {0, 0};
  }
  check(usual > 0 || !f.is_unset("crop_size"), "{}: 'do_center_crop' needs a 'crop_size'", f.source());
  return read_processor_size(f, "crop_size", false).value_or(ProcessorSize{{usual, usual}, false}).size;
}

// The geometry that the file describes; none if every image is left as it is.
std::optional<ImageProcessor> read_geometry(io::Fields& f, const ProcessorClass* known) {
  std::optional<ProcessorSize> size = read_processor_size(f, "size", known != nullptr && known->size.shortest_edge);
  if (!size && known != nullptr) {
    size = known->size;
  }
  const nn::Size2 crop = read_crop(f, known);
  if (!f.optional<bool>("do_resize").value_or(true)) {
    return crop[0] > 0 ? std::optional(ImageProcessor{Resize::none, 0, 0, crop[0], crop[1]}) : std::nullopt;
  }
  if (!size) {
    return std::nullopt;
  }
  if (known != nullptr && known->name == "ConvNext") {
    check(size->shortest_edge, "{}: 'size' must have a 'shortest_edge' for a ConvNextImageProcessor", f.source());
    return convnext_processor(f, size->size[0]);
  }
  const nn::Size2 result = crop[0] > 0 ? crop : size->size;
  return ImageProcessor{size->shortest_edge ? Resize::shorter_side : Resize::both, size->size[0], size->size[1],
                        result[0], result[1]};
}

constexpr std::pair<Resize, const char*> resize_names[] = {
    {Resize::none, "none"}, {Resize::both, "both"}, {Resize::shorter_side, "shorter_side"}};

}  // namespace

void read_preprocessor(const fs::path& folder, PretrainedConfig& p) {
  const fs::path path = folder / "preprocessor_config.json";
  if (!fs::exists(path)) {
    return;
  }
  const Json json = io::read_json(path);
  io::Fields f(json, path.string());
  const ProcessorClass* known = class_of(f);
  read_normalization(f, known, p);
  check(!f.optional<bool>("do_pad").value_or(false),
        "{}: images are not padded to one size here: 'do_pad' must be false", path.string());
  if (!f.is_unset("resample")) {
    p.interpolation = resamples[static_cast<std::size_t>(f.get<std::int64_t>("resample", {0, 5}))];
  } else if (known != nullptr) {
    p.interpolation = resamples[known->resample];
  }
  p.processor = read_geometry(f, known);
  if (!p.processor) {
    return;  // the family's preparation stays: every image must be brought to the model's size
  }
  const ImageProcessor& processor = *p.processor;
  p.height = processor.crop_height;
  p.width = processor.crop_width;
  const bool center = processor.resize == Resize::shorter_side;
  p.crop_mode = center ? "center" : "squash";
  const std::int64_t side = center ? std::max(p.height, p.width) : p.height;
  p.crop_pct = processor.resize == Resize::none ? 1 : std::clamp(crop_pct_for(side, processor.height), 1e-3, 8.0);
}

void check_prepared_size(const fs::path& folder, const PretrainedConfig& p, nn::Size2 size) {
  check(p.height == size[0] && p.width == size[1],
        "'{}': its preprocessor_config.json makes images of {} x {} pixels, but the model takes {} x {}",
        folder.string(), p.height, p.width, size[0], size[1]);
}

ImageProcessor processor_of(const PretrainedConfig& p) {
  if (p.processor) {
    return p.processor->scaled_to(p.height, p.width);
  }
  check(p.crop_mode != "border", "transformers has no crop_mode 'border': choose center or squash");
  const auto resized = [&](std::int64_t side) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(side) / p.crop_pct));
  };
  if (p.crop_mode == "center") {  // the shorter side of every image covers both sides of the crop
    const std::int64_t edge = resized(std::max(p.height, p.width));
    return {Resize::shorter_side, edge, edge, p.height, p.width};
  }
  return {Resize::both, resized(p.height), resized(p.width), p.height, p.width};
}

OrderedJson preprocessor_json(const PretrainedConfig& p) {
  const auto interpolation = std::ranges::find(resamples, p.interpolation);
  check(interpolation != resamples.end(), "transformers has no interpolation '{}'", p.interpolation);
  const ImageProcessor processor = processor_of(p);
  const bool center = processor.resize == Resize::shorter_side;
  const bool crops = center || processor.height != p.height || processor.width != p.width;
  OrderedJson json;
  json["image_processor_type"] = center ? "BitImageProcessor" : crops ? "DeiTImageProcessor" : "ViTImageProcessor";
  json["do_resize"] = processor.resize != Resize::none;
  json["resample"] = interpolation - resamples.begin();
  if (center) {
    json["size"] = {{"shortest_edge", processor.height}};
  } else if (processor.resize == Resize::both) {
    json["size"] = {{"height", processor.height}, {"width", processor.width}};
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

OrderedJson processor_json(const ImageProcessor& processor) {
  OrderedJson json;
  json["resize"] = std::ranges::find(resize_names, processor.resize, &std::pair<Resize, const char*>::first)->second;
  if (processor.resize != Resize::none) {
    json["size"] = {processor.height, processor.width};
  }
  json["crop_size"] = {processor.crop_height, processor.crop_width};
  return json;
}

ImageProcessor read_processor(const Json& json, const std::string& source) {
  io::Fields f(json, source);
  ImageProcessor result;
  const std::string name = f.choice("resize", "both", {"none", "both", "shorter_side"});
  result.resize = std::ranges::find_if(resize_names, [&](const auto& entry) { return entry.second == name; })->first;
  const nn::Size2 crop = read_size(f, "crop_size", {224, 224});
  const nn::Size2 size = result.resize == Resize::none ? nn::Size2{0, 0} : read_size(f, "size", crop);
  check(result.resize != Resize::shorter_side || size[0] == size[1],
        "{}: 'size' is that of the shorter side, which is one number", source);
  f.finish();
  result.height = size[0];
  result.width = size[1];
  result.crop_height = crop[0];
  result.crop_width = crop[1];
  return result;
}

}  // namespace vitrail::models
