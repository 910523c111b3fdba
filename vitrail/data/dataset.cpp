#include "vitrail/data/dataset.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "vitrail/data/scenes/source.h"
#include "vitrail/data/scenes/source_fields.h"
#include "vitrail/data/shards/shards.h"
#include "vitrail/data/sources.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/web/download.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

class ListedDataset final : public Dataset {
 public:
  explicit ListedDataset(Listing listing) : listing_(std::move(listing)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(listing_.names.size()); }
  io::Image image(std::int64_t index) const override { return listing_.image(checked(index)); }
  std::vector<std::uint8_t> encoded(std::int64_t index) const override {
    return listing_.encoded ? listing_.encoded(checked(index)) : Dataset::encoded(index);
  }
  std::int64_t label(std::int64_t index) const override {
    return listing_.labels[static_cast<std::size_t>(checked(index))];
  }
  std::string name(std::int64_t index) const override {
    return listing_.names[static_cast<std::size_t>(checked(index))];
  }
  fs::path file(std::int64_t index) const override {
    return listing_.file ? listing_.file(checked(index)) : fs::path();
  }
  const std::vector<std::string>& classes() const override { return listing_.classes; }
  std::int64_t passed_over() const override { return listing_.passed_over; }
  std::vector<std::string> notes() const override { return listing_.notes; }

 private:
  std::int64_t checked(std::int64_t index) const {
    check(index >= 0 && index < size(), "there is no image {} among {}", index, size());
    return index;
  }
  Listing listing_;
};

// Two data sets one after the other, the second without its labels.
class JoinedDataset final : public Dataset {
 public:
  JoinedDataset(std::unique_ptr<Dataset> labeled, std::unique_ptr<Dataset> more)
      : labeled_(std::move(labeled)), more_(std::move(more)) {}
  std::int64_t size() const override { return labeled_->size() + more_->size(); }
  io::Image image(std::int64_t index) const override {
    return index < labeled_->size() ? labeled_->image(index) : more_->image(index - labeled_->size());
  }
  std::int64_t label(std::int64_t index) const override {
    return index < labeled_->size() ? labeled_->label(index) : unlabeled;
  }
  std::string name(std::int64_t index) const override {
    return index < labeled_->size() ? labeled_->name(index) : more_->name(index - labeled_->size());
  }
  fs::path file(std::int64_t index) const override {
    return index < labeled_->size() ? labeled_->file(index) : more_->file(index - labeled_->size());
  }
  const std::vector<std::string>& classes() const override { return labeled_->classes(); }
  std::int64_t passed_over() const override { return labeled_->passed_over() + more_->passed_over(); }
  std::vector<std::string> notes() const override {
    std::vector<std::string> all = labeled_->notes();
    std::ranges::copy(more_->notes(), std::back_inserter(all));
    return all;
  }

 private:
  std::unique_ptr<Dataset> labeled_;
  std::unique_ptr<Dataset> more_;
};

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
  std::sort(files.begin(), files.end(),
            [](const fs::path& a, const fs::path& b) { return natural_less(a.string(), b.string()); });
  return files;
}

// The files of CIFAR or MNIST in a folder that belong to one part: "train" if `training`, otherwise "test".
std::vector<fs::path> binary_files(const fs::path& folder, bool training) {
  std::vector<fs::path> found;
  for (const fs::path& file : files_in(folder)) {
    const std::string name = file.filename().string();
    const bool idx = is_idx_images_file(file);
    const bool test = name.starts_with("test") || name.starts_with("t10k");
    if ((is_cifar_file(file) || idx) && test != training) {
      found.push_back(file);
    }
  }
  return found;
}

Listing list_binary(const std::vector<fs::path>& files, bool labeled) {
  return is_idx_images_file(files[0]) ? list_idx(files[0], labeled) : list_cifar(files);
}

Listing list_file(const fs::path& path, const std::vector<std::string>& splits, const ListOptions& how) {
  const std::string extension = io::lower_case(path.extension().native());
  if (io::is_tar_name(path)) {
    return list_tar(path, splits, how);
  }
  if (extension == ".csv") {
    return list_csv(path, splits, how.labeled);
  }
  const bool binary = is_idx_images_file(path) || extension == ".bin";
  check(!binary || splits.empty() || is_training_split(splits[0]), "{}: a file of one part has no '{}' images",
        path.string(), splits.empty() ? "" : splits[0]);
  if (is_idx_images_file(path)) {
    return list_idx(path, how.labeled);
  }
  if (extension == ".bin") {
    return list_cifar({path});
  }
  constexpr std::array compressed = {".gz", ".xz", ".zst", ".bz2"};
  check(std::ranges::find(compressed, extension) == compressed.end(), "{}: the file is compressed: unpack it first",
        path.string());
  fail(
      "{}: not a data set: a folder of class folders, a .tar or .tar.gz of one, a .csv of path,label, CIFAR's .bin or "
      "MNIST's "
      "idx3-ubyte was expected",
      path.string());
}

// Extensions of files that a folder may have as its parts.
constexpr std::array part_extensions = {".tar", ".tar.gz", ".tgz", ".csv"};

// A name without the four digits of a year behind it.
std::string without_year(const std::string& name) {
  const std::size_t digits = name.size() - std::min(name.size(), name.find_last_not_of("0123456789") + 1);
  return digits == 4 ? name.substr(0, name.size() - digits) : name;
}

// Whether images lie in a folder itself, as they do in a class folder.
bool holds_images(const fs::path& folder) {
  std::error_code unreadable;
  return std::ranges::any_of(fs::directory_iterator(folder, unreadable),
                             [](const fs::directory_entry& entry) { return io::is_image_name(entry.path()); });
}

// The folder of a part: that of its name, or, as COCO has it, with a year behind it ("train2017"); empty if there is
// none.
fs::path folder_of_part(const fs::path& folder, const std::string& name) {
  std::error_code error;
  if (fs::is_directory(folder / name, error)) {
    return folder / name;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error) && without_year(entry.path().filename().string()) == name) {
      return entry.path();
    }
  }
  return {};
}

// The images of a folder. Of one that `vitrail scenes` has written, those without labels are the pictures alone, and
// not their masks.
Listing list_images(const fs::path& folder, bool labeled) {
  std::error_code error;
  const fs::path pictures = folder / "images";
  const bool scenes = !labeled && fs::exists(folder / "scene.json", error) && fs::is_directory(pictures, error);
  return list_folder(scenes ? pictures : folder, labeled);
}

// Notes which folders of images lie beside the parts of a folder: they were probably meant to be in one of them.
void note_beside_parts(const fs::path& folder, Listing& part) {
  std::vector<std::string> beside;
  std::error_code unknown;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool is_part = std::ranges::find(known_splits(), without_year(name)) != known_splits().end();
    if (entry.is_directory(unknown) && !is_hidden(name) && !is_part && holds_images(entry.path())) {
      beside.push_back(name);
    }
  }
  if (!beside.empty()) {
    std::ranges::sort(beside, natural_less);
    part.notes.push_back(fmt::format("the images in {} lie beside the parts of '{}' and belong to none of them",
                                     io::quoted_list(beside, "and"), folder.string()));
  }
}

// The shards of a part of a folder, which its index counts if there is one.
Listing list_shards_of(const fs::path& folder, const std::string& part, const ListOptions& how) {
  const fs::path index = folder / (part + ".json");
  return list_shards(shards_of_part(folder, part), fs::exists(index) ? index : folder, how);
}

// Where the images of a part of a folder lie: in a folder, a file, shards or the files of CIFAR and MNIST.
struct PartPlace {
  std::string name;
  std::function<Listing()> list;
};

// All places of a part under one of its names, in the order in which they count.
std::vector<PartPlace> places_of_part(const fs::path& folder, const std::string& name, const ListOptions& how) {
  std::vector<PartPlace> places;
  if (const fs::path own = folder_of_part(folder, name); !own.empty()) {
    places.push_back({own.filename().string(), [=] {
                        Listing part = list_images(own, how.labeled);
                        note_beside_parts(folder, part);
                        return part;
                      }});
  }
  for (const char* extension : part_extensions) {
    if (const fs::path file = folder / (name + extension); fs::exists(file)) {
      places.push_back({name + extension, [=] { return list_file(file, {}, how); }});
    }
  }
  if (const std::vector<fs::path> shards = shards_of_part(folder, name); !shards.empty()) {
    places.push_back({shards.front().filename().string(), [=] { return list_shards_of(folder, name, how); }});
  }
  if (is_training_split(name) || name == "test") {
    if (const std::vector<fs::path> files = binary_files(folder, is_training_split(name)); !files.empty()) {
      places.push_back({files.front().filename().string(), [=] { return list_binary(files, how.labeled); }});
    }
  }
  return places;
}

// The part of a folder that has one of `names`, if there is one. What lies there under other names of the part, or in
// another form, is noted.
std::optional<Listing> find_split(const fs::path& folder, const std::vector<std::string>& names,
                                  const ListOptions& how) {
  std::vector<PartPlace> places;
  for (const std::string& name : names) {
    if (name == "test" && !places.empty()) {
      break;  // a part of its own
    }
    for (PartPlace& place : places_of_part(folder, name, how)) {
      if (std::ranges::find(places, place.name, &PartPlace::name) == places.end()) {  // binary files have no such names
        places.push_back(std::move(place));
      }
    }
  }
  if (places.empty()) {
    return std::nullopt;
  }
  Listing part = places.front().list();
  if (places.size() > 1) {
    std::vector<std::string> left;
    std::transform(places.begin() + 1, places.end(), std::back_inserter(left),
                   [](const PartPlace& place) { return place.name; });
    part.notes.push_back(fmt::format("'{}' has {} beside '{}', which alone is taken", folder.string(),
                                     io::quoted_list(left, "and"), places.front().name));
  }
  return part;
}

// All images of a folder without labels: of its binary files, or those that lie in it, or, if there are none, those of
// the files that are its parts. The images of an archive are then named by it too.
std::vector<Listing> list_unlabeled(const fs::path& folder, bool skip_broken) {
  std::vector<Listing> parts;
  for (const bool training : {true, false}) {
    if (const std::vector<fs::path> binary = binary_files(folder, training); !binary.empty()) {
      parts.push_back(list_binary(binary, false));
    }
  }
  if (parts.empty()) {
    parts.push_back(list_images(folder, false));
  }
  if (!parts[0].names.empty()) {
    return parts;
  }
  std::vector<Listing> files;
  for (const std::string& split : known_splits()) {
    for (const char* extension : part_extensions) {
      const fs::path file = folder / (split + extension);
      if (fs::exists(file)) {
        Listing& part = files.emplace_back(list_file(file, {}, {.labeled = false}));
        for (std::string& name : part.names) {
          name = io::is_tar_name(file) ? (file.filename() / name).string() : name;
        }
      }
    }
    if (!shards_of_part(folder, split).empty()) {
      files.push_back(list_shards_of(folder, split, {.labeled = false, .skip_broken = skip_broken}));
    }
  }
  return files.empty() ? parts : files;
}

// The names of the parts that a folder has.
std::vector<std::string> splits_in(const fs::path& folder) {
  std::vector<std::string> found;
  for (const std::string& name : known_splits()) {
    if (!folder_of_part(folder, name).empty() || !shards_of_part(folder, name).empty() ||
        std::any_of(part_extensions.begin(), part_extensions.end(),
                    [&](const char* extension) { return fs::exists(folder / (name + extension)); })) {
      found.push_back(name);
    }
  }
  for (const bool training : {true, false}) {
    if (!binary_files(folder, training).empty()) {
      found.emplace_back(training ? "train" : "test");
    }
  }
  return found;
}

// The files of CIFAR or MNIST of a folder that has no other of its `parts`, and so can be taken whole.
std::vector<fs::path> only_binary_files(const fs::path& folder, const std::vector<std::string>& parts) {
  return parts.size() == 1 ? binary_files(folder, is_training_split(parts[0])) : std::vector<fs::path>{};
}

// Whether a source is one archive on the web, of samples or of class folders, rather than several.
bool is_archive_on_the_web(const fs::path& source) {
  const std::string text = source.string();
  return io::is_url(text) && io::is_tar_name(source) && text.find('{') == std::string::npos &&
         text.find("::") == std::string::npos;
}

Listing list_source(const fs::path& source, const std::string& split, const ListOptions& how) {
  if (is_scene_source(source)) {
    return list_scenes(source, split, how.labeled);
  }
  std::error_code error;
  if (is_archive_on_the_web(source)) {
    return list_source(io::local_file(source), split, how);
  }
  if (is_shard_source(source)) {
    check(split.empty() || is_training_split(split),
          "{}: shards that are named are of one part: name those of '{}' too", source.string(), split);
    return list_shards(shards_named(source), source, how);
  }
  check(fs::exists(source, error), "{}: {}", source.string(), error ? error.message() : "no such file or folder");
  const std::vector<std::string> names = split.empty() ? std::vector<std::string>{} : names_of_split(split);
  if (!fs::is_directory(source, error)) {
    return list_file(source, names, how);
  }
  if (std::optional<Listing> part = find_split(source, names, how)) {
    return std::move(*part);
  }
  const std::vector<std::string> parts = splits_in(source);
  if (const auto files = only_binary_files(source, parts); split.empty() && !files.empty()) {
    return list_binary(files, how.labeled);
  }
  check(parts.empty(), "{}: the folder is split into parts ({}): choose one of them, or name its own folder or file{}",
        source.string(), fmt::join(parts, ", "), split.empty() ? "" : fmt::format(", since there is no '{}'", split));
  // A folder without parts serves as a whole for training, but must not serve for testing as well.
  check(split.empty() || is_training_split(split),
        "{}: there are no '{}' images: looked for the folders {} and for .tar, .tar.gz "
        "and .csv files of these names",
        source.string(), split, fmt::join(names, ", "));
  return list_images(source, how.labeled);
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const fs::path& source, const DatasetOptions& options) {
  Listing listing = list_source(source, options.split, {options.labeled, options.skip_broken});
  check(!listing.names.empty(), "{}: there are no images (.jpg, .jpeg, .png or .webp{})", source.string(),
        options.labeled ? " in class folders" : "");
  if (!options.labeled) {
    listing.classes = {"images"};
    listing.labels.assign(listing.names.size(), 0);
    return std::make_unique<ListedDataset>(std::move(listing));
  }
  const bool keeps_own = options.or_own_classes && !are_known_classes(listing, options.classes);
  if (!options.classes.empty() && !keeps_own) {
    use_classes(listing, options.classes, source.string());
  }
  check(options.allow_single_class || listing.classes.size() > 1,
        "{}: all images are of the class '{}'; at least two classes are needed", source.string(),
        listing.classes.empty() ? "" : listing.classes[0]);
  return std::make_unique<ListedDataset>(std::move(listing));
}

bool holds_images(const fs::path& file) {
  const std::string extension = io::lower_case(file.extension().native());
  return io::is_tar_name(file) || extension == ".csv" || extension == ".bin" || is_idx_images_file(file);
}

bool is_one_path(const fs::path& source) {
  return !is_scene_source(source) && !is_set_source(source) && !is_shard_source(source);
}

std::string absolute_source(const fs::path& source) {
  return is_one_path(source)       ? fs::absolute(source).lexically_normal().string()
         : is_shard_source(source) ? absolute_shards(source)
                                   : source.string();
}

bool has_parts(const fs::path& source) {
  if (is_scene_source(source)) {
    return true;
  }
  std::error_code error;
  if (!fs::is_directory(source, error)) {
    return is_table_of_parts(source);
  }
  const std::vector<std::string> parts = splits_in(source);
  return !parts.empty() && only_binary_files(source, parts).empty();
}

std::unique_ptr<Dataset> open_unlabeled(const fs::path& source, bool skip_broken) {
  if (is_archive_on_the_web(source)) {
    return open_unlabeled(io::local_file(source), skip_broken);
  }
  std::error_code error;
  const bool in_shards = is_shard_source(source);
  check(is_scene_source(source) || in_shards || fs::exists(source, error), "{}: {}", source.string(),
        error ? error.message() : "no such file or folder");
  const auto without_labels = [&](Listing listing) -> std::unique_ptr<Dataset> {
    check(!listing.names.empty(), "{}: there are no images (.jpg, .jpeg, .png or .webp)", source.string());
    listing.classes.clear();
    listing.labels.assign(listing.names.size(), unlabeled);
    return std::make_unique<ListedDataset>(std::move(listing));
  };
  if (is_scene_source(source)) {
    return without_labels(list_scenes(source, "", false));
  }
  if (in_shards) {
    return without_labels(list_shards(shards_named(source), source, {.labeled = false, .skip_broken = skip_broken}));
  }
  if (!fs::is_directory(source, error)) {
    return without_labels(list_file(source, {}, {.labeled = false}));
  }
  std::unique_ptr<Dataset> all;
  for (Listing& listing : list_unlabeled(source, skip_broken)) {
    auto part = without_labels(std::move(listing));
    all = all == nullptr ? std::move(part) : with_unlabeled(std::move(all), std::move(part));
  }
  return all;
}

std::unique_ptr<Dataset> dataset_of(Listing listing) { return std::make_unique<ListedDataset>(std::move(listing)); }

std::vector<std::string> notes_of(const std::vector<const Dataset*>& datasets) {
  std::vector<std::string> notes;
  std::int64_t passed_over = 0;
  for (const Dataset* dataset : datasets) {
    if (dataset == nullptr) {
      continue;
    }
    passed_over += dataset->passed_over();
    for (const std::string& note : dataset->notes()) {
      if (std::ranges::find(notes, note) == notes.end()) {
        notes.push_back(note);
      }
    }
  }
  if (passed_over > 0) {
    notes.push_back(passed_over == 1
                        ? "1 file that is not an image by its name was passed over"
                        : fmt::format("{} files that are not images by their names were passed over", passed_over));
  }
  return notes;
}

void for_spread_images(const Dataset& dataset, std::int64_t count, bool skip_broken,
                       const std::function<void(std::int64_t index, io::Image image)>& take) {
  const std::int64_t wanted = std::min(count, dataset.size());
  std::int64_t next = 0;  // that has not been looked at
  for (std::int64_t i = 0; i < wanted && next < dataset.size(); ++i) {
    next = std::max(next, i * dataset.size() / wanted);
    for (bool taken = false; !taken && next < dataset.size(); ++next) {
      try {
        take(next, dataset.image(next));
        taken = true;
      } catch (const Error&) {
        if (!skip_broken) {
          throw;
        }
      }
    }
  }
}

std::unique_ptr<Dataset> with_unlabeled(std::unique_ptr<Dataset> labeled, std::unique_ptr<Dataset> more) {
  return std::make_unique<JoinedDataset>(std::move(labeled), std::move(more));
}

}  // namespace vitrail::data
