#include "vitrail/data/pairs/captioned_images.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/data/coco/coco_file.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/pairs/counted_captions.h"
#include "vitrail/data/scenes/read.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// The names of the classes as the captions of their images; images without a class are left out.
CaptionedImages captioned_by_class(const fs::path& source, const std::string& split, bool skip_broken) {
  DatasetOptions part;
  part.split = split;
  part.skip_broken = skip_broken;
  const std::shared_ptr<const Dataset> images = open_dataset(source.string(), part);
  CaptionedImages all{{images, {}}};
  std::vector<std::int64_t> named;
  for (std::int64_t i = 0; i < images->size(); ++i) {
    const std::int64_t label = images->label(i);
    all.texts.emplace_back();
    if (label != unlabeled) {
      all.texts.back().push_back(images->classes()[static_cast<std::size_t>(label)]);
      named.push_back(i);
    }
  }
  check(!named.empty(), "{}: no image has a caption, or the name of a class", source.string());
  return std::ssize(named) == images->size() ? all : part_of(all, std::move(named));
}

// The pairs of a source, or of a part of it, and the scenes of those that were drawn. An image's name is its index.
CaptionedImages pairs_in(const fs::path& source, const CaptionedOptions& options) {
  if (options.split.empty()) {
    check_whole(parts_of_pairs(source), source.string());
  }
  CaptionedImages all{
      open_text_pairs(source, options.split, {.skip_broken = options.skip_broken, .places = options.places})};
  const fs::path file = all.folder / "scene.json";
  if (!options.scenes || all.folder.empty() || !fs::exists(file)) {
    return all;
  }
  const std::map<std::int64_t, Scene> scenes = read_scenes(file);
  all.scenes.reserve(static_cast<std::size_t>(all.images->size()));
  for (std::int64_t i = 0; i < all.images->size(); ++i) {
    const auto scene = scenes.find(id_in_name(all.images->name(i)).value_or(-1));
    check(scene != scenes.end(), "{}: there is no scene of the image {}", file.string(), all.images->name(i));
    all.scenes.push_back(scene->second);
  }
  return all;
}

// The same of scenes that are drawn when they are asked for.
CaptionedImages drawn_pairs(const fs::path& source, const CaptionedOptions& options) {
  SceneFolder what = read_scene_source(source, {"questions", "paraphrase"});
  std::tie(what.first, what.count) = range_of_part(what, options.split);
  CaptionedImages all{described_scenes(what, source.string(), options.places)};
  for (std::int64_t i = 0; options.scenes && i < what.count; ++i) {
    all.scenes.push_back(sample_scene(what.scenes, what.first + i));
  }
  return all;
}

// Whether a part that is asked for has class folders, while others have captions.
bool is_part_of_classes(const fs::path& source, const std::string& split) {
  const auto is_it = [&](const Part& part) { return is_of_part(part.name, split); };
  const Parts captioned = split.empty() ? Parts() : parts_of_pairs(source);
  return !captioned.empty() && std::ranges::none_of(captioned, is_it) &&
         std::ranges::any_of(parts_of_images(source), is_it);
}

}  // namespace

CaptionedImages part_of(const CaptionedImages& whole, std::vector<std::int64_t> indices) {
  CaptionedImages result;
  for (const std::int64_t index : indices) {
    const auto at = static_cast<std::size_t>(index);
    if (!whole.scenes.empty()) {
      result.scenes.push_back(whole.scenes.at(at));
    }
    if (!whole.counts.empty()) {
      result.counts.push_back(whole.counts.at(at));
    }
  }
  result.counted = whole.counted;
  static_cast<TextPairs&>(result) = part_of(static_cast<const TextPairs&>(whole), std::move(indices));
  return result;
}

Parts parts_of_captioned_images(const fs::path& source) {
  return is_scene_source(source) || !fs::exists(source) ? Parts()
         : has_captions(source)                         ? parts_of_pairs(source)
         : has_boxes(source)                            ? parts_of_boxes(source)
                                                        : parts_of_images(source);
}

CaptionedImages open_captioned_images(const fs::path& source, const CaptionedOptions& options) {
  const std::string& split = options.split;
  if (is_scene_source(source) && read_scene_source(source).style == SceneStyle::shapes) {
    return drawn_pairs(source, options);
  }
  if (has_captions(source, split) && !is_part_of_classes(source, split)) {
    return pairs_in(source, options);
  }
  return has_boxes(source) ? counted_captions(source, split, options.skip_broken)
                           : captioned_by_class(source, split, options.skip_broken);
}

}  // namespace vitrail::data
