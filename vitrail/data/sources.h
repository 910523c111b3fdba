/// \file
/// The kinds of source that open_dataset() reads. They are not for use outside of vitrail/data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/scenes/write.h"
#include "vitrail/io/csv.h"

namespace vitrail::data {

/// The images that a source was found to hold, with its own classes.
struct Listing {
  std::vector<std::string> names;                ///< of the images, as they are shown
  std::vector<std::int64_t> labels;              ///< indices into `classes`
  std::vector<std::string> classes;              ///< in natural order
  std::int64_t passed_over = 0;                  ///< files that are not images by their names
  std::vector<std::string> notes;                ///< Dataset::notes()
  std::function<io::Image(std::int64_t)> image;  ///< decodes image i; called from several threads
  std::function<std::filesystem::path(std::int64_t)> file =
      {};  ///< Dataset::file(); unset where a source does not tell
  /// The bytes of the file of image i as they lie; unset if the images lie in no files of their own.
  std::function<std::vector<std::uint8_t>(std::int64_t)> encoded = {};
};

/// The data set of a listing.
std::unique_ptr<Dataset> dataset_of(Listing listing);

/// Whether `a` comes before `b` in natural order, "image9" before "image10": runs of digits compare as numbers, the
/// rest by its bytes with ASCII letters in lower case (timm's natural_key).
bool natural_less(std::string_view a, std::string_view b);

/// Whether a path is of a hidden file or folder, or of what macOS puts beside images (`__MACOSX`).
bool is_hidden(const std::filesystem::path& path);

/// Fills `classes` and `labels` from the folders that the images lie in. Throws Error, in which `source` stands for the
/// source, for an image outside of any folder. Notes where folders of one name lie in different ones.
void label_by_folder(Listing& listing, const std::string& source);
/// The names that people give to the parts of a data set: "train", "validation", "test" and others.
const std::vector<std::string>& known_splits();
bool is_training_split(const std::string& split);
/// Whether a part of data that is drawn when it is asked for (`what`: "scenes") is the one to evaluate on, and not that
/// for training, which "" is too. Throws Error for another part.
bool is_drawn_for_validation(const std::string& split, std::string_view what);
/// Fills `classes` and `labels` from the class name of each image.
void label_by_name(Listing& listing, const std::vector<std::string>& class_of);
/// Renumbers the labels by the caller's classes. Classes that the source merely numbers, "0", "1", …, take names by
/// position. Throws Error, naming it, for a class that is not among them.
void use_classes(Listing& listing, const std::vector<std::string>& classes, const std::string& source);
/// Whether all classes of a listing are among `classes`, or number them, each of them.
bool are_known_classes(const Listing& listing, const std::vector<std::string>& classes);

// The functions below open `path` completely: a missing or malformed part throws Error naming it. Folders and archives
// may be listed without labels; their images may then lie anywhere.

/// How a source is listed.
struct ListOptions {
  bool labeled = true;
  bool skip_broken = false;  ///< leave shards out that are missing or damaged, and note them
};
/// Lists the images below a folder.
Listing list_folder(const std::filesystem::path& path, bool labeled = true);
/// Lists the images of a tar archive in the folder that is named by the first of `splits` that exists, or all images if
/// `splits` is empty. If the archive has no such folders at all, it serves as a whole for training.
Listing list_tar(const std::filesystem::path& path, const std::vector<std::string>& splits,
                 const ListOptions& how = {});
/// Lists the images of shards, and `source`, which names them, for what errors say (shards/shards.h). Classes are the
/// names that they say; those that are numbers count from 0, and take the names of a `classes.txt` beside the shards.
Listing list_shards(const std::vector<std::filesystem::path>& files, const std::filesystem::path& source,
                    const ListOptions& how = {});
/// Lists the rows of a CSV whose column "split" is the first of `splits` that any row has, or all rows if `splits` is
/// empty; then the column may have one value only, unless `labeled` is false. A CSV without that column serves as a
/// whole for training.
Listing list_csv(const std::filesystem::path& path, const std::vector<std::string>& splits, bool labeled = true);
/// Whether a row is a header: whether no field of it is the name of an image.
bool is_table_header(const io::CsvRow& row);
/// The columns of images' paths, of classes, and of parts, under all names that are understood (io::column_named()).
std::optional<std::size_t> path_column(const io::CsvRow& header, const std::string& source);
std::optional<std::size_t> label_column(const io::CsvRow& header, const std::string& source);
std::optional<std::size_t> split_column(const io::CsvRow& header, const std::string& source);
/// Which rows of a table are to be read.
struct TablePart {
  std::size_t first = 0;                            ///< the row that is read first: 1 below a header
  std::size_t columns = 0;                          ///< that a row must have
  std::optional<std::size_t> split = std::nullopt;  ///< the column that says of which part a row is
  std::vector<std::string> names = {};  ///< names of the part, of which the first that any row has is taken; none: all
  bool mixed = false;                   ///< all may be of several parts
};
/// The parts that the column "split" names, "" among them for rows of none; none without such a column.
std::set<std::string> parts_in(const std::vector<io::CsvRow>& rows, const TablePart& part);
/// Whether a file is a table whose column "split" names several parts.
bool is_table_of_parts(const std::filesystem::path& file);
/// The rows of a part. A table without a column "split" serves as a whole for training. Throws Error, which names
/// `source`, if there is no such part, for all rows if they are of several parts, or if a row has too few columns or,
/// without a header, more than `part` says.
/// `notes` gets a sentence about rows that are of the part by another name of it, or of none.
std::vector<const io::CsvRow*> rows_of(const std::vector<io::CsvRow>& rows, const TablePart& part,
                                       const std::string& source, std::vector<std::string>& notes);
/// The image that a row of the table `path` names, a path relative to it. Throws Error if it does not exist.
std::filesystem::path image_of_row(const std::filesystem::path& path, const io::CsvRow& row, std::size_t column);
/// Lists the images of CIFAR's binary files of one split, in order.
Listing list_cifar(const std::vector<std::filesystem::path>& files);
/// Lists the images of an MNIST-style idx file: `images` is the file `*-images-idx3-ubyte`, beside which its labels
/// lie, which are needed if `labeled`.
Listing list_idx(const std::filesystem::path& images, bool labeled = true);

/// Lists scenes that are drawn when they are asked for (read_scene_source()), by the class of their task if `labeled`.
/// The part for training is `count` scenes; any other is the `validation` scenes behind them.
Listing list_scenes(const std::filesystem::path& source, const std::string& split, bool labeled = true);
/// The index of the first scene of a part, and how many it has. Throws Error for a part that scenes do not have.
std::pair<std::int64_t, std::int64_t> range_of_part(const SceneFolder& what, const std::string& split);

bool is_cifar_file(const std::filesystem::path& path);       ///< data_batch_1.bin, test_batch.bin, train.bin, test.bin
bool is_idx_images_file(const std::filesystem::path& path);  ///< `*images-idx3-ubyte`, `*images.idx3-ubyte`

}  // namespace vitrail::data
