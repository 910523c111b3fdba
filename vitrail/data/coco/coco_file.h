/// \file
/// Files in the layout of COCO, which say things of images: captions, boxes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"

namespace vitrail::data {

/// The id of an image that its file's name ends with, as COCO has it: 9 of "COCO_train2014_000000000009.jpg"; nothing
/// if it ends with no digit.
std::optional<std::int64_t> id_in_name(const std::filesystem::path& file);
/// id_in_name() of each of these names; empty unless all have one and no two different names the same.
std::map<std::string, std::int64_t> ids_in_names(const std::vector<std::string>& names);

/// The places of objects in their list, by their ids.
using CocoPlaces = std::unordered_map<std::int64_t, std::size_t>;

/// A file with lists of objects. Errors name the file, the list and the object's place in it.
class CocoFile {
 public:
  /// Throws Error unless the file has all of these lists; `what` is what it is about: "captions". With
  /// `skip_broken`, images that do not exist are taken for broken ones, which are found when they are opened.
  CocoFile(const std::filesystem::path& path, const std::vector<std::string>& lists, const std::string& what,
           bool skip_broken);

  /// Calls `read` for each object of a list.
  void read(const std::string& list, const std::function<void(io::Fields& object)>& read) const;
  /// The same of a list whose objects have ids. Throws Error if one is there twice, or is missing, unless it
  /// `may_miss`.
  CocoPlaces read_with_ids(const std::string& list, const std::function<void(io::Fields& object)>& read,
                           bool may_miss = false) const;
  /// The same of the list "images". An image lies beside the file, in `images/` beside it, or, for
  /// annotations/captions_NAME.json or instances_NAME.json, in NAME/ or images/NAME/ beside its folder. Throws Error if
  /// it is in none of them.
  CocoPlaces read_images(const std::function<void(io::Fields& object, std::int64_t id, const std::string& name,
                                                  const std::filesystem::path& path)>& read) const;
  /// The place of the image that an annotation is of. Throws Error if there is no such image.
  static std::size_t image_of(io::Fields& annotation, const CocoPlaces& images);

 private:
  std::filesystem::path path_;
  nlohmann::json json_;
  bool skip_broken_;
};

}  // namespace vitrail::data
