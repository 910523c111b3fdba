/// \file
/// Pairs of images and texts: captions, in the layouts that they come in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/pairs/places.h"
#include "vitrail/data/scenes/write.h"
#include "vitrail/data/sources/parts.h"

namespace vitrail::data {

/// Images with one or more texts each.
struct TextPairs {
  std::shared_ptr<const Dataset> images;        ///< without labels
  std::vector<std::vector<std::string>> texts;  ///< of each image, at least one
  std::filesystem::path folder = {};            ///< in which the file with the texts lies; "": there is none
  std::vector<TextPlaces> places = {};  ///< of each image, if a source (other than several parts at once) says it of
                                        ///< any text

  std::int64_t count() const;  ///< of all texts
};

/// What open_text_pairs() takes of a source.
struct TextPairsOptions {
  /// Images that are not there are broken ones, which are found when they are opened; texts that are not UTF-8 are left
  /// out, which a note tells.
  bool skip_broken = false;
  bool places = false;  ///< fill in TextPairs::places: of scenes that are drawn, each is drawn once for it
};

/// Opens pairs of images and texts. `source` is one of
/// - captions in the layout of COCO, a `.json` with "images" (id, file_name) and "annotations" (image_id, caption; in
///   vitrail's own `boxes`, what it is about: read_boxes()), or a folder with a captions.json. Images lie beside the
///   file, in `images/` beside it, or, for annotations/captions_NAME.json, in NAME/ beside its folder;
/// - a `.csv` of path,caption, with paths relative to the CSV, or a folder with a captions.csv. A header line is
///   understood; a path may come in several lines;
/// - shards in the layout of WebDataset: a `.tar`, or a folder of them, with KEY.jpg (.jpeg, .png, .webp) and KEY.txt
///   side by side;
/// - a folder of parts, each in one of these forms: subfolders `train`, `val` …, files `train.csv`, shards
///   `train-000000.tar`, or, as COCO has them, annotations/captions_NAME.json;
/// - `scenes:count=8000`: scenes that are drawn when they are asked for, see read_scene_source().
///
/// Images without a text are left out and told in a note. With `split`, the pairs are those of one of its parts, by any
/// name of it; a source without parts is all for training. Without, all parts are taken, which a note tells. Throws
/// Error, naming the place, if a file does not fit its
/// layout, an image is not there, a text is not UTF-8, or there are no pairs.
TextPairs open_text_pairs(const std::filesystem::path& source, const std::string& split = "",
                          const TextPairsOptions& options = {});

/// The parts of such a source: those that the column "split" of a table names, or the files, subfolders and shards of a
/// folder. None if it does not say any.
Parts parts_of_pairs(const std::filesystem::path& source);
/// Whether a source, or its part `split`, has texts beside its images, in one of these forms.
bool has_captions(const std::filesystem::path& source, const std::string& split = "");
/// Whether a `.csv` is one of captions: whether it has a column of them, or no header. One of path,label is not.
bool is_captions_table(const std::filesystem::path& file);

/// The captions of scenes that are drawn when they are asked for; with `places`, for which each is drawn once, what
/// they are about too. Errors name `source`.
TextPairs described_scenes(const SceneFolder& what, const std::string& source, bool places = false);

/// The pairs of the images at `indices`.
TextPairs part_of(const TextPairs& pairs, std::vector<std::int64_t> indices);

}  // namespace vitrail::data
