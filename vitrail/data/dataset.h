/// \file
/// Data sets of labelled images: folders, archives, binary files and tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vitrail/data/sources/parts.h"
#include "vitrail/io/image.h"

namespace vitrail::data {

constexpr std::int64_t unlabeled = -1;  ///< the label of an image that has none

/// A list of images, each with a class index. As in timm's folder reader, the class is the folder that an image lies
/// in; classes are in natural order of their names, images in natural order of their paths. Hidden files are ignored,
/// files whose names are not those of images are counted; symbolic links are followed, and one that leads nowhere is a
/// broken image. Several threads may use a Dataset at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual io::Image image(std::int64_t index) const = 0;     ///< decoded; Error naming the file if it is broken
  virtual std::int64_t label(std::int64_t index) const = 0;  ///< 0 … classes().size() - 1, or unlabeled
  virtual std::string name(std::int64_t index) const = 0;    ///< the path of the image inside the source
  /// The file that holds the image, its own or an archive; of an image that is drawn, the description of the source.
  /// Empty where a source does not tell.
  virtual std::filesystem::path file(std::int64_t index) const {
    (void)index;
    return {};
  }
  virtual const std::vector<std::string>& classes() const = 0;
  /// The bytes of the image's file as it lies; of images that lie in no files of their own, a PNG of it.
  virtual std::vector<std::uint8_t> encoded(std::int64_t index) const { return io::encode_png(image(index)); }
  /// Says that these images are read soon. A source whose images lie together in a file has the system fetch them
  /// from the disk, neighbours at once; others do nothing.
  virtual void will_read(std::span<const std::int64_t> indices) const { (void)indices; }
  /// How many files of the source are not images by their names.
  virtual std::int64_t passed_over() const { return 0; }
  /// What else of the source a user may not expect, in sentences without a full stop.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// Which images open_dataset() takes, and with which classes.
struct DatasetOptions {
  std::string split = {};  ///< "train", "validation", "test" …: this part of the source; "": the source itself

  /// If given: the classes to use, in this order (the label names of a model). An unknown class is an Error; classes
  /// that the source merely numbers ("0", "1", …) take these names by position.
  std::vector<std::string> classes = {};
  bool allow_single_class = true;  ///< false: a single class is an Error
  bool labeled = true;             ///< false: all images of the source, wherever they lie, as one class
  /// Leave shards out that are missing or damaged, which notes() names; an image that a table names and that does not
  /// exist is a broken one.
  bool skip_broken = false;
  /// true: a source with a class that is none of `classes` keeps all of its own, unless it has a number for each of
  /// them
  bool or_own_classes = false;
};
/// Opens a data set. `source` is one of
/// - a folder of class folders, or a `.tar`, `.tar.gz` or `.tgz` of such a tree,
/// - shards of WebDataset: `shards/train-{000000..000127}.tar`, several joined by `::`, an index of them (`.json`), or
///   a folder with `train-000000.tar` … (shards/shards.h),
/// - CIFAR-10's or CIFAR-100's binary files: a folder with `data_batch_*.bin` or `train.bin`, or one `.bin` file,
/// - MNIST-style idx files: a folder with `*-images-idx3-ubyte`, or one such file beside its labels,
/// - a `.csv` or `.tsv` of path,label, with paths relative to the file; a header line is understood,
/// - `scenes:count=8000,task=count`: scenes that are drawn when they are asked for, see read_scene_source().
///
/// DatasetOptions::split chooses a subfolder, a tar or a set of files of a source that has such parts, by any name of
/// the part (choose_part(), sources/parts.h). Throws Error, which says what was looked for, if the part is not found,
/// and for an empty class folder or a source without images.
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& source, const DatasetOptions& options = {});

/// Whether a file is a source of images by its name, rather than one image: an archive, a table, a binary file of CIFAR
/// or MNIST.
bool holds_images(const std::filesystem::path& file);

/// Whether a source is one file or folder, rather than shards, or what is drawn when it is asked for (`scenes:…`,
/// `sets:…`).
bool is_one_path(const std::filesystem::path& source);
/// A source that can be opened from any folder: the paths that it names are made absolute.
std::string absolute_source(const std::filesystem::path& source);

/// The parts of a folder or a table of images; none if it is whole, or its parts are drawn.
Parts parts_of_images(const std::filesystem::path& source);
/// Whether a source is a folder of parts or a table with several, of which DatasetOptions::split must choose one.
bool has_parts(const std::filesystem::path& source);

/// Opens images without classes: all images below a folder, at any depth, or in a `.tar`; for other kinds of source,
/// their images without their labels, of a folder that has nothing but its parts (`train.tar`, `test.csv`,
/// `train-000000.tar` …) those of all. classes() is empty. Throws Error if there are no images.
/// With `skip_broken`, shards that are missing or damaged are left out; notes() names them.
std::unique_ptr<Dataset> open_unlabeled(const std::filesystem::path& source, bool skip_broken = false);

/// 16 hexadecimal digits of the names and labels of images in their order, by which data that were exchanged are
/// noticed.
std::string digest_of_names(const Dataset& dataset);

struct Listing;
/// The data set of a listing (sources/sources.h).
std::unique_ptr<Dataset> dataset_of(Listing listing);

/// The notes of data sets that are used together, each once, and a sentence about what they pass over; null stands for
/// none.
std::vector<std::string> notes_of(const std::vector<const Dataset*>& datasets);

/// Gives `take` up to `count` images that are spread evenly over a data set, with their numbers and in their order. In
/// the place of one that is broken comes the next one that is whole with `skip_broken`; otherwise it throws Error.
void for_spread_images(const Dataset& dataset, std::int64_t count, bool skip_broken,
                       const std::function<void(std::int64_t index, io::Image image)>& take);

/// The images of `labeled`, with its classes, followed by those of `more` without labels.
std::unique_ptr<Dataset> with_unlabeled(std::unique_ptr<Dataset> labeled, std::unique_ptr<Dataset> more);

}  // namespace vitrail::data
