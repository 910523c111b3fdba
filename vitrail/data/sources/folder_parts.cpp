#include "vitrail/data/sources/folder_parts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "vitrail/data/shards/shards.h"
#include "vitrail/data/sources/tables.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/image.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// Extensions of files that a folder may have as its parts.
constexpr std::array part_extensions = {".tar", ".tar.gz", ".tgz", ".csv", ".tsv"};

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code unknown;  // of a broken link, which is no folder
    if (!it->is_directory(unknown)) {
      files.push_back(it->path());
    }
  }
  check(!error, "the folder {} cannot be read: {}", folder.string(), error.message());
  std::ranges::sort(files, [](const fs::path& a, const fs::path& b) { return natural_less(a.string(), b.string()); });
  return files;
}

bool is_binary_file(const fs::path& file) { return is_cifar_file(file) || is_idx_images_file(file); }

// Whether a binary file is of the part for training.
bool is_for_training(const fs::path& file) {
  const std::string name = file.filename().string();
  return !name.starts_with("test") && !name.starts_with("t10k");
}

// Whether images lie anywhere below a folder, as far as it can be read.
bool holds_images_below(const fs::path& folder) {
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (is_hidden(at->path().filename())) {
      at.disable_recursion_pending();
    } else if (io::is_image_name(at->path())) {
      return true;
    }
  }
  return false;
}

// Notes which images lie beside the parts of a folder, of which `taken` is listed: they were probably meant to be in
// one.
void note_beside_parts(const fs::path& folder, const std::string& taken, Listing& part) {
  std::vector<std::string> beside;
  std::int64_t loose = 0;
  std::error_code unknown;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_hidden(name) || is_part_name(name, taken)) {
      continue;
    }
    if (!entry.is_directory(unknown)) {
      loose += io::is_image_name(entry.path()) ? 1 : 0;
    } else if (holds_images_below(entry.path())) {
      beside.push_back(name);
    }
  }
  if (!beside.empty()) {
    std::ranges::sort(beside, natural_less);
    part.notes.push_back(fmt::format("the images in {} lie beside the parts of '{}' and belong to none of them",
                                     io::quoted_list(beside, "and"), folder.string()));
  }
  if (loose > 0) {
    part.notes.push_back(fmt::format("{} {} beside the parts of '{}' and {} to none of them",
                                     io::counted(loose, "images"), loose == 1 ? "lies" : "lie", folder.string(),
                                     loose == 1 ? "belongs" : "belong"));
  }
}

// Notes what a `vitrail shard` that did not come to its end has left.
void note_unfinished_shards(const fs::path& folder, const std::string& part, Listing& listing) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("." + part + "-") && name.ends_with(".tar.tmp")) {
      listing.notes.push_back(
          fmt::format("'{}' is no whole shard: the command that wrote it has not come to its end, "
                      "and further shards may be missing",
                      entry.path().string()));
    }
  }
}

}  // namespace

Parts parts_in(const fs::path& folder, const std::string& split) {
  Parts parts = part_folders(folder, split);
  const std::vector<fs::path> files = files_in(folder);
  const auto add = [&](const std::string& name, const fs::path& file) {
    parts.push_back({name, fmt::format("'{}'", file.filename().string()), file});
  };
  for (const std::string_view extension : part_extensions) {
    for (const fs::path& file : files) {
      const std::string name = file.filename().string();
      if (io::lower_case(name).ends_with(extension) &&
          is_part_name(name.substr(0, name.size() - extension.size()), split) &&
          (extension != ".tsv" || is_table_of_images(file))) {  // which may as well be one of texts
        add(name.substr(0, name.size() - extension.size()), file);
      }
    }
  }
  std::string last;  // part of which there was a shard
  std::vector<fs::path> others;
  for (const fs::path& file : files) {
    if (const std::string part = part_of_shard(file); part != last && !part.empty()) {
      last = part;
      if (is_part_name(part, split)) {
        add(part, file);
      } else {
        others.push_back(file);
      }
    }
  }
  for (const bool training : {true, false}) {
    const auto binary = std::ranges::find_if(
        files, [&](const fs::path& file) { return is_binary_file(file) && is_for_training(file) == training; });
    if (binary != files.end()) {
      add(training ? "train" : "test", *binary);
    }
  }
  if (!parts.empty()) {
    std::ranges::for_each(others, [&](const fs::path& file) { add("", file); });
  }
  sort_parts(parts);
  return parts;
}

Listing list_part(const fs::path& folder, const Part& part, const ListOptions& how) {
  if (fs::is_directory(part.path)) {
    try {
      Listing listing = list_images(part.path, how);
      note_beside_parts(folder, part.name, listing);
      return listing;
    } catch (const Error& error) {
      fail("{}; it is taken for the part '{}' of '{}'", error.what(), part.name, folder.string());
    }
  }
  if (is_binary_file(part.path)) {
    return list_binary(binary_files(folder, is_for_training(part.path)), how.labeled);
  }
  if (const std::string own = part_of_shard(part.path); !own.empty()) {  // an index counts them, if there is one
    const fs::path index = folder / (own + ".json");
    Listing listing = list_shards(shards_of_part(folder, own), fs::exists(index) ? index : folder, how);
    note_unfinished_shards(folder, own, listing);
    return listing;
  }
  return list_file(part.path, "", how);
}

Listing list_images(const fs::path& folder, const ListOptions& how) {
  std::error_code error;
  const fs::path pictures = folder / "images";
  const bool scenes = !how.labeled && fs::exists(folder / "scene.json", error) && fs::is_directory(pictures, error);
  Listing listing = list_folder(scenes ? pictures : folder, how.labeled);
  if (scenes) {  // whose images are named by their paths inside the source, as others are
    for (std::string& name : listing.names) {
      name = (pictures.filename() / name).string();
    }
  }
  if (listing.names.empty() && parts_in(folder).empty()) {
    std::vector<fs::path> shards = files_in(folder);
    std::erase_if(shards, [](const fs::path& file) { return !io::is_tar_name(file) || is_hidden(file.filename()); });
    // Those that say a part in a way that is not understood must not serve as a whole.
    const auto says_part = [](const fs::path& shard) { return !part_in_name(shard.filename().string()).empty(); };
    return shards.empty() || std::ranges::any_of(shards, says_part) ? listing : list_shards(shards, folder, how);
  }
  return listing;
}

Listing list_file(const fs::path& path, const std::string& split, const ListOptions& how) {
  const std::string extension = io::lower_case(path.extension().native());
  if (io::is_tar_name(path)) {
    return list_tar(path, split, how);
  }
  if (io::is_table_name(path)) {
    return list_csv(path, split, how);
  }
  const bool binary = is_idx_images_file(path) || extension == ".bin";
  check(!binary || split.empty() || is_training_split(split), "{}: a file of one part has no '{}' images",
        path.string(), split);
  if (binary) {
    return list_binary({path}, how.labeled);
  }
  constexpr std::array compressed = {".gz", ".xz", ".zst", ".bz2"};
  check(std::ranges::find(compressed, extension) == compressed.end(), "{}: the file is compressed: unpack it first",
        path.string());
  check(!io::is_image_name(path), "{}: one image is no data set: name the folder, archive or table that it is in",
        path.string());
  fail(
      "{}: not a data set: a folder of class folders, a .tar or .tar.gz of one, a .csv of path,label, CIFAR's .bin or "
      "MNIST's idx3-ubyte was expected",
      path.string());
}

std::vector<fs::path> binary_files(const fs::path& folder, bool training) {
  std::vector<fs::path> files = files_in(folder);
  std::erase_if(files,
                [&](const fs::path& file) { return !is_binary_file(file) || is_for_training(file) != training; });
  return files;
}

Listing list_binary(const std::vector<fs::path>& files, bool labeled) {
  return is_idx_images_file(files[0]) ? list_idx(files[0], labeled) : list_cifar(files);
}

}  // namespace vitrail::data
