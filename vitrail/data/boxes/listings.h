/// \file
/// The layouts that open_boxed_images() reads. They are not for use outside of vitrail/data/boxes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/boxes/box.h"
#include "vitrail/io/image.h"

namespace vitrail::data {

/// An object as a file has it.
struct ListedObject {
  Box box;
  std::size_t category = 0;  ///< in BoxListing::categories
  std::optional<double> area;
  bool crowd = false;
  bool difficult = false;
};

/// An image as a file has it.
struct ListedImage {
  std::string name;
  std::filesystem::path path;
  std::int64_t id = 0;
  std::int64_t width = 0;  ///< as the file says; 0: it does not
  std::int64_t height = 0;
  std::vector<ListedObject> objects;
};

/// What a source has.
struct BoxListing {
  std::vector<ListedImage> images;
  std::vector<std::string> categories;
  std::vector<std::int64_t> category_ids;
  bool in_coco_layout = false;  ///< whether its figures are those of its boxes as they stand there
  std::function<io::Image(std::int64_t)> image = {};  ///< makes image i; empty: it is read from its path
  std::vector<std::string> notes = {};                ///< BoxedImages::notes
};

/// Reads a file in the layout of COCO; with `skip_broken` as BoxedOptions::skip_broken says.
BoxListing list_coco_boxes(const std::filesystem::path& file, bool skip_broken);

/// Scenes that are drawn when they are asked for (read_scene_source()), with the boxes that their files would have.
BoxListing list_scene_boxes(const std::filesystem::path& source, const std::string& split);

/// Where the annotations and images of a source in VOC's layout lie, and which of them are meant.
struct VocFiles {
  std::vector<std::filesystem::path> annotations;
  std::vector<std::filesystem::path> image_folders;  ///< in which images are looked for, the first first
  bool all = true;                                   ///< whether an image of these folders should have an annotation
  bool skip_broken = false;                          ///< BoxedOptions::skip_broken
};

/// Reads one .xml for each image.
BoxListing list_voc(const VocFiles& files);

}  // namespace vitrail::data
