/// \file
/// Images with boxes around what is in them, in the layouts that they come in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/boxes/box.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/sources/parts.h"

namespace vitrail::data {

/// An object in an image.
struct BoxedObject {
  Box box;                 ///< in pixels
  std::int64_t label = 0;  ///< its class
  double area = 0;         ///< in pixels, of its outline where the file has one
  bool crowd = false;      ///< a box around many objects, which stands for all of them
  bool difficult = false;  ///< VOC's word for what a detector need not find
};

/// A data set of images with boxes.
struct BoxedImages {
  std::shared_ptr<const Dataset> images;          ///< without labels
  std::vector<std::vector<BoxedObject>> objects;  ///< of each image; it may have none
  std::vector<std::int64_t> ids;                  ///< of the images, as COCO's files of results name them
  /// Of the images of a file in COCO's layout whose boxes were cut off or left out: their objects as the file has them,
  /// which are what COCO's figures count.
  std::map<std::int64_t, std::vector<BoxedObject>> as_written = {};
  std::vector<std::string> classes;
  std::vector<std::int64_t> category_ids;  ///< of the classes, in COCO's files
  std::vector<std::string> notes;  ///< what a user may not expect of the source, in sentences without a full stop

  std::int64_t count() const;  ///< of all objects but crowds
  /// The objects of an image by which detections are judged.
  const std::vector<BoxedObject>& judged(std::int64_t index) const;
};

/// Which images open_boxed_images() takes, and with which classes.
struct BoxedOptions {
  std::string split = {};  ///< "train", "validation", "test", "trainval" …; "": the source itself
  std::vector<std::string> classes =
      {};                    ///< if given: these classes, in this order. Another one in the source is an Error.
  bool skip_broken = false;  ///< an image that does not exist is a broken one, which is found when it is opened
};

/// Opens images with boxes. `source` is one of
/// - a `.json` in the layout of COCO ("images", "annotations", "categories"), or a folder with instances.json or
///   _annotations.coco.json, or with annotations/instances_NAME.json; images lie beside the file, in `images/` beside
///   it, or, for annotations/instances_NAME.json, in NAME/ beside its folder,
/// - a folder in the layout of Pascal VOC: Annotations/*.xml, JPEGImages/ and, for parts, ImageSets/Main/NAME.txt,
/// - a folder with a `.xml` beside each image,
/// - `scenes:count=8000`: scenes that are drawn when they are asked for, see read_scene_source().
///
/// BoxedOptions::split chooses a file or a subfolder of a source that has such parts (choose_part()). Which layout it
/// is, is found by looking.
///
/// Categories of COCO may have gaps in their ids: they become classes 0, 1, … in the order of their ids. VOC's corners
/// are taken as they are. Boxes are cut off at the borders of their images; those that then have no area are named in a
/// note and left out (BoxedImages::as_written has them). Throws Error, naming the place, if a file does not fit its
/// layout, a category is not declared, an id is there twice, an annotation has no image, or an image is not there.
BoxedImages open_boxed_images(const std::filesystem::path& source, const BoxedOptions& options = {});

/// The images at `indices`, with all else that the data set says.
BoxedImages part_of(const BoxedImages& whole, std::vector<std::int64_t> indices);

/// Whether a source looks like images with boxes rather than like class folders.
bool has_boxes(const std::filesystem::path& source);
/// The parts of such a source; none if it is whole.
Parts parts_of_boxes(const std::filesystem::path& source);

}  // namespace vitrail::data
