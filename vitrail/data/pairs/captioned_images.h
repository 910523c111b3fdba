/// \file
/// Images with captions, for a model that learns to write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/data/pairs/text_pairs.h"
#include "vitrail/data/scenes/scene.h"

namespace vitrail::data {

/// Images with one or more captions each.
struct CaptionedImages : TextPairs {
  std::vector<Scene> scenes = {};  ///< what is in each image, where `vitrail scenes` has drawn it and it was asked for
  std::vector<std::vector<std::int64_t>> counts = {};  ///< of each image, how many objects there are of each class,
                                                       ///< where the captions say this and nothing else
  std::vector<std::string> counted = {};               ///< these classes
};

/// What open_captioned_images() takes of a source beside its images and captions.
struct CaptionedOptions {
  std::string split = "";    ///< a part (choose_part()) of the pairs, or what open_dataset() takes; "" is the whole
  bool scenes = false;       ///< fill in CaptionedImages::scenes, from the scene.json beside captions.json
  bool places = false;       ///< fill in TextPairs::places
  bool skip_broken = false;  ///< images that are not there are broken ones
};

/// Opens images with captions. `source` is one of those of open_text_pairs(), or images with boxes, of which captions
/// say how many there are (counted_captions()), or a data set with classes, whose names (of a folder, or what a .csv of
/// path,label says of an image) are then the captions. Throws Error, naming the place, if there is no such part, or a
/// file does not fit its layout.
CaptionedImages open_captioned_images(const std::filesystem::path& source, const CaptionedOptions& options = {});

/// The images at `indices`, with all that is said of them.
CaptionedImages part_of(const CaptionedImages& whole, std::vector<std::int64_t> indices);

/// The parts of such a source; none if it is whole, or its parts are drawn.
Parts parts_of_captioned_images(const std::filesystem::path& source);

}  // namespace vitrail::data
