/// \file
/// The kinds of source that open_dataset() reads. They are not for use outside of vitrail/data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/data/scenes/write.h"
#include "vitrail/data/sources/parts.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/image.h"
#include "vitrail/io/tar.h"

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
  /// Dataset::will_read(); unset where it would do nothing.
  std::function<void(std::span<const std::int64_t>)> will_read = {};
};

/// Whether `a` comes before `b` in natural order, "image9" before "image10": runs of digits compare as numbers, the
/// rest by its bytes with ASCII letters in lower case (timm's natural_key).
bool natural_less(std::string_view a, std::string_view b);

/// Whether a path is of a hidden file or folder, or of what macOS puts beside images (`__MACOSX`).
bool is_hidden(const std::filesystem::path& path);

/// Fills `classes` and `labels` from the folders that the images lie in. Throws Error, in which `source` stands for the
/// source, for an image outside of any folder. Notes where folders of one name lie in different ones.
void label_by_folder(Listing& listing, const std::string& source);
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
  /// Leave shards out that are missing or damaged, and note them; take images that a table names and that do not exist
  /// for broken ones, which are found when they are opened.
  bool skip_broken = false;
};
/// Lists the images below a folder.
Listing list_folder(const std::filesystem::path& path, bool labeled = true);
/// Lists the images of a tar archive that lie in folders of the part `split` (choose_part()), or all images if it is
/// "".
Listing list_tar(const std::filesystem::path& path, const std::string& split, const ListOptions& how = {});
/// Adds what is left out of an archive: links to no file in it, and files that later ones of the same names replace, of
/// which WebDataset would make samples of their own.
void add_notes_of(const io::Tar& tar, std::vector<std::string>& notes);
/// The parts whose folders hold images of an archive; none of shards. Throws Error if it is no archive.
Parts parts_of_archive(const std::filesystem::path& file);
/// Lists the images of shards, and `source`, which names them, for what errors say (shards/shards.h). Classes are the
/// names that they say; those that are numbers count from 0, and take the names of a `classes.txt` beside the shards.
Listing list_shards(const std::vector<std::filesystem::path>& files, const std::filesystem::path& source,
                    const ListOptions& how = {});
/// Lists the rows of a CSV that are of the part `split` (choose_part()) by its io::part_column(), or all rows if it is
/// ""; then the column may have one value only. Without labels the rows may be of several parts, and an image that has
/// several is there once.
Listing list_csv(const std::filesystem::path& path, const std::string& split, const ListOptions& how = {});
/// Whether a row is a header: whether no field of it is the name of an image.
bool is_table_header(const io::CsvRow& row);
/// The columns of images' paths and of classes, under all names that are understood (io::column_named()).
std::optional<std::size_t> path_column(const io::CsvRow& header, const std::string& source);
std::optional<std::size_t> label_column(const io::CsvRow& header, const std::string& source);
/// What an error adds where an image does not exist that is named: a brief remedy.
inline constexpr const char* missing_image_remedy = "(--skip-broken, where a command has it, leaves such images out)";

/// Which rows of a table are to be read.
struct TablePart {
  std::size_t first = 0;                               ///< the row that is read first: 1 below a header
  std::size_t columns = 0;                             ///< that a row must have
  std::optional<io::PartColumn> split = std::nullopt;  ///< what says of which part a row is
  std::string part = {};                               ///< the part to be read (choose_part()); "": all
  bool mixed = false;                                  ///< all may be of several parts
  bool skip_broken = false;                            ///< ListOptions::skip_broken
};
/// The parts that the rows say, "" among them for rows of none; none unless a row says its part.
Parts parts_in(const std::vector<io::CsvRow>& rows, const TablePart& part, const std::string& source);
/// The parts of a table of images; none if a file is no such table.
Parts parts_of_table(const std::filesystem::path& file);
/// The rows of a part. Throws Error, which names `source`, if there is no such part, for all rows if they are of
/// several parts, or if a row has too few columns or, without a header, more than `part` says.
std::vector<const io::CsvRow*> rows_of(const std::vector<io::CsvRow>& rows, const TablePart& part,
                                       const std::string& source, std::vector<std::string>& notes);
/// The image that a row of the table `path` names, a path relative to it. Throws Error if it does not exist, unless
/// `skip_broken`.
std::filesystem::path image_of_row(const std::filesystem::path& path, const io::CsvRow& row, std::size_t column,
                                   bool skip_broken);
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
