#include "vitrail/data/dataset.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "vitrail/data/scenes/source.h"
#include "vitrail/data/scenes/source_fields.h"
#include "vitrail/data/shards/shards.h"
#include "vitrail/data/sources/folder_parts.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/web/download.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

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
  void will_read(std::span<const std::int64_t> indices) const override {
    if (listing_.will_read) {
      listing_.will_read(indices);
    }
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
  void will_read(std::span<const std::int64_t> indices) const override {
    std::vector<std::int64_t> labeled;
    std::vector<std::int64_t> more;
    for (const std::int64_t index : indices) {
      index < labeled_->size() ? labeled.push_back(index) : more.push_back(index - labeled_->size());
    }
    labeled_->will_read(labeled);
    more_->will_read(more);
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
    parts.push_back(list_images(folder, {.labeled = false, .skip_broken = skip_broken}));
  }
  if (!parts[0].names.empty()) {
    return parts;
  }
  std::vector<Listing> files;
  for (const Part& part : parts_in(folder)) {
    if (!fs::is_directory(part.path)) {
      Listing& listing = files.emplace_back(list_part(folder, part, {.labeled = false, .skip_broken = skip_broken}));
      for (std::string& name : listing.names) {
        name = io::is_tar_name(part.path) && part_of_shard(part.path).empty() ? (part.path.filename() / name).string()
                                                                              : name;
      }
    }
  }
  return files.empty() ? parts : files;
}

// The files of CIFAR or MNIST of a folder that has no other of its `parts`, and so can be taken whole.
std::vector<fs::path> only_binary_files(const fs::path& folder, const Parts& parts) {
  return parts.size() == 1 ? binary_files(folder, is_training_split(parts[0].name)) : std::vector<fs::path>{};
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
  if (!fs::is_directory(source, error)) {
    return list_file(source, split, how);
  }
  const Parts parts = parts_in(source, split);
  if (split.empty()) {
    if (const std::vector<fs::path> files = only_binary_files(source, parts); !files.empty()) {
      return list_binary(files, how.labeled);
    }
    check_whole(parts, source.string(), false);
    return list_images(source, how);
  }
  std::vector<std::string> notes;
  const std::string looked_for =
      fmt::format(": looked for the folders {} and for .tar, .tar.gz, .csv and .tsv files of these names",
                  fmt::join(names_of_split(split), ", "));
  const Part* part = choose_part(parts, split, source.string(), notes, {.looked_for = looked_for});
  Listing listing = part == nullptr ? list_images(source, how) : list_part(source, *part, how);
  check(part == nullptr || !listing.names.empty(), "{}: there are no images in {}", source.string(),
        part == nullptr ? "" : part->shown);
  std::ranges::move(notes, std::back_inserter(listing.notes));
  return listing;
}

// What two names of one class probably have in common: without blanks around it, capital letters, and zeros in front.
std::string plain_class(const std::string& name) {
  const std::string lower = io::lower_case(io::trimmed(name));
  const std::size_t first = lower.find_first_not_of('0');
  const bool number = !lower.empty() && lower.find_first_not_of("0123456789") == std::string::npos;
  return !number ? lower : first == std::string::npos ? "0" : lower.substr(first);
}

// Notes classes that were probably meant to be one.
void note_classes_alike(Listing& listing, const std::string& source) {
  std::map<std::string, std::string> known;
  for (const std::string& name : listing.classes) {
    if (const auto [other, fresh] = known.emplace(plain_class(name), name); !fresh) {
      const bool letters = io::lower_case(name) == io::lower_case(other->second);
      listing.notes.push_back(fmt::format("{}: the classes '{}' and '{}' differ in {} alone", source, other->second,
                                          name, letters ? "capital letters" : "blanks or zeros in front"));
    }
  }
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
  note_classes_alike(listing, source.string());
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
  return io::is_tar_name(file) || io::is_table_name(file) || extension == ".bin" || is_idx_images_file(file);
}

bool is_one_path(const fs::path& source) {
  return !is_scene_source(source) && !is_set_source(source) && !is_shard_source(source);
}

std::string absolute_source(const fs::path& source) {
  return is_one_path(source)       ? fs::absolute(source).lexically_normal().string()
         : is_shard_source(source) ? absolute_shards(source)
                                   : source.string();
}

Parts parts_of_images(const fs::path& source) {
  std::error_code error;
  if (is_scene_source(source)) {
    return {};
  }
  if (!fs::is_directory(source, error)) {
    return parts_of_table(source);
  }
  Parts parts = parts_in(source);
  return only_binary_files(source, parts).empty() ? parts : Parts();
}

bool has_parts(const fs::path& source) {
  const Parts parts = parts_of_images(source);
  return is_scene_source(source) || parts.size() > (fs::is_directory(source) ? 0 : 1);
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
    return without_labels(list_file(source, {}, {.labeled = false, .skip_broken = skip_broken}));
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

std::string digest_of_names(const Dataset& dataset) {
  std::uint64_t digest = 0;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    digest = mix(mix(digest, hash(dataset.name(i))), static_cast<std::uint64_t>(dataset.label(i)));
  }
  return fmt::format("{:016x}", digest);
}

std::unique_ptr<Dataset> with_unlabeled(std::unique_ptr<Dataset> labeled, std::unique_ptr<Dataset> more) {
  return std::make_unique<JoinedDataset>(std::move(labeled), std::move(more));
}

}  // namespace vitrail::data
