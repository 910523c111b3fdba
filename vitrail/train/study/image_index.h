/// \file
/// Indices of images: features of whole folders, kept in a file, to search in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/io/file.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/study/evaluate.h"
#include "vitrail/train/study/features.h"

namespace vitrail::train {

/// The features of the images of a source, each of which has length 1 but for the rounding to bf16.
struct ImageIndex {
  /// An image, and what tells whether its file has changed since.
  struct Entry {
    std::string name;    ///< inside the source
    io::FileStamp file;  ///< of its file, or of the archive that it lies in
    bool operator==(const Entry&) const = default;
  };
  std::string source;  ///< the folder or archive
  std::string model;   ///< the model's name or folder
  std::string pool;    ///< how its features are pooled; empty: as the model does
  std::string changes =
      {};               ///< JSON of what the caller changes of the model and of its images' preparation; empty: nothing
  std::string weights;  ///< a hash of the model's weights
  std::string prepared = {};  ///< JSON of preparation_of() the images; empty: an index of an earlier version
  std::vector<Entry> images;
  Tensor features;      ///< [N, D] bf16; undefined if there are no images
  Tensor lengths = {};  ///< [N] f32, of the features, which bf16 makes a little longer or shorter; undefined: not kept
};

/// What update_index() has done.
struct IndexChanges {
  std::int64_t added = 0;           ///< new or changed images
  std::int64_t removed = 0;         ///< images that are gone, or have changed
  std::vector<std::string> broken;  ///< images left out, with the reasons
  std::vector<std::string> notes;   ///< of the source (data::notes_of())
};

/// A hash of the names and values of all parameters of a model, as hexadecimal digits.
std::string hash_of_weights(const models::Model& model);
std::string hash_of_weights(const models::JointModel& model);

/// What makes the features of an index.
struct IndexEncoder {
  std::string weights;   ///< hash_of_weights()
  std::string prepared;  ///< JSON of preparation_of() its images
  std::string model;     ///< name or folder, which the index keeps
  std::function<Features(const data::Dataset& images, const EvaluateOptions& options)> embed;
};
/// The output of a model that has no classifier (models::without_head). The model must outlive the encoder.
IndexEncoder index_encoder(const models::Model& model, const std::string& name);
/// The vectors of images in the space that they share with texts.
IndexEncoder index_encoder(const models::JointModel& model, const std::string& name);

/// Reads an index, whose features stay in the mapped file. Throws Error if the file is none.
ImageIndex load_index(const std::filesystem::path& file);

/// Throws Error if the index was made by a model with other weights, or of images that were prepared otherwise.
void check_made_by(const ImageIndex& index, const IndexEncoder& encoder, const std::string& file = "the index");

/// Brings `index`, which may be new and empty but for source, pool and changes, up to date: images that have come or
/// changed are looked at by the encoder, and those that are gone are left out. `save` is called with the whole index
/// after every 20,000 new images, and at the end, if anything has changed. Throws Error as check_made_by(), and
/// for features that are not finite.
IndexChanges update_index(ImageIndex& index, const IndexEncoder& encoder, const EvaluateOptions& options,
                          const std::function<void(const ImageIndex&)>& save);

/// Writes an index to a file, which is replaced as a whole.
void save_index(const std::filesystem::path& file, const ImageIndex& index);

/// Whether the folder of an index is not there any more, and the folder `to` has at least half of its images, by their
/// names and sizes.
bool has_moved(const ImageIndex& index, const std::string& to);
/// Where an image of an index lies, as people name it: its path, if the source is a folder, or its name in an archive.
std::string path_of(const ImageIndex& index, std::int64_t image);
/// Whether an image of a folder lies no longer where it was. Of those in archives, and of names that are not UTF-8,
/// which an index has otherwise, that is not told.
bool is_gone(const ImageIndex& index, std::int64_t image);

/// An image that was found, and its cosine with the query.
struct Hit {
  std::int64_t image = 0;
  double cosine = 0;
};

/// The `count` images that are nearest to each query [Q, D] f32, which need not have length 1: exact, the nearest
/// first, of equal ones the earlier. Throws Error if a query has another width than the index or is not finite.
std::vector<std::vector<Hit>> search(const ImageIndex& index, const Tensor& queries, std::int64_t count);

/// Groups of images of which each has a cosine of at least `threshold` with another one of its group, the largest
/// groups first. `advance` is called with the number of images that have been compared with all others.
std::vector<std::vector<std::int64_t>> duplicates(const ImageIndex& index, double threshold,
                                                  const std::function<void(std::int64_t done)>& advance = {});

}  // namespace vitrail::train
