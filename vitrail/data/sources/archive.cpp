// Class folders inside a tar archive, and the samples of shards, read where they lie.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/ranges.h>

#include "vitrail/data/shards/shards.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// The first folder on the way to an image that is one of a part: those in it may be classes of the same names.
struct PartFolder {
  std::string part;
  bool holds = false;  // the image itself
};

std::optional<PartFolder> part_folder_of(const std::string& image, const std::string& split) {
  const fs::path folder = fs::path(image).parent_path();
  for (auto at = folder.begin(); at != folder.end(); ++at) {
    if (is_part_name(at->string(), split)) {
      return PartFolder{at->string(), std::next(at) == folder.end()};
    }
  }
  return std::nullopt;
}

// The images that lie in a folder of each part, or of the part `split`.
std::map<std::string, std::vector<std::string>> images_by_part(const std::vector<std::string>& images,
                                                               const std::string& split) {
  std::map<std::string, std::vector<std::string>> images_of;
  for (const std::string& image : images) {
    if (const auto folder = part_folder_of(image, split)) {
      images_of[folder->part].push_back(image);
    }
  }
  return images_of;
}

Parts parts_among(const std::map<std::string, std::vector<std::string>>& images_of) {
  std::vector<std::string> names;
  std::ranges::transform(images_of, std::back_inserter(names), [](const auto& part) { return part.first; });
  return parts_named(names);
}

// The images of an archive that lie in folders of a part, or all images if `split` is "".
std::vector<std::string> choose_images(std::vector<std::string> images, const std::string& split,
                                       const std::string& source, std::vector<std::string>& notes) {
  const auto images_of = images_by_part(images, split);
  const Parts parts = parts_among(images_of);
  if (split.empty()) {
    check_whole(parts, source);
    return images;
  }
  const Part* part =
      choose_part(parts, split, source, notes, {.looked_for = ": the archive has no folder of this name"});
  return part == nullptr ? images : images_of.at(part->name);
}

// An image in an archive.
struct Place {
  const io::Tar* tar = nullptr;
  const io::TarEntry* entry = nullptr;
};

// Has the images of an archive or of several be fetched, those at once between which little lies.
void fetch(std::vector<Place> places) {
  constexpr std::size_t little = std::size_t{128} << 10;  // bytes, which a disk reads faster than it skips them
  std::ranges::sort(places, {}, [](const Place& one) { return std::pair(one.tar, one.entry->offset); });
  for (auto first = places.begin(); first != places.end();) {
    auto last = first;
    for (auto next = last + 1; next != places.end() && next->tar == last->tar &&
                               next->entry->offset <= last->entry->offset + last->entry->size + little;
         ++next) {
      last = next;
    }
    first->tar->fetch(*first->entry, *last->entry);
    first = last + 1;
  }
}

// Labels by what the samples say. If all say numbers, these are the labels, of as many classes as `names` has, or as
// the largest needs; otherwise the classes are the names that occur.
void label_by_numbers(Listing& listing, const std::vector<std::string>& class_of, const std::vector<std::string>& names,
                      const std::string& source) {
  std::vector<std::int64_t> numbers;
  for (const std::string& one : class_of) {
    std::int64_t number = 0;
    const auto [end, status] = std::from_chars(one.data(), one.data() + one.size(), number);
    if (status != std::errc() || end != one.data() + one.size() || number < 0) {
      label_by_name(listing, class_of);
      return;
    }
    numbers.push_back(number);
  }
  constexpr std::int64_t most_classes = 1000000;
  const std::int64_t largest = numbers.empty() ? -1 : *std::ranges::max_element(numbers);
  check(largest < (names.empty() ? most_classes : std::ssize(names)), "{}: a sample has the class {}, but there are {}",
        source, largest, names.empty() ? most_classes : std::ssize(names));
  listing.classes = names;
  for (std::int64_t i = 0; names.empty() && i <= largest; ++i) {
    listing.classes.push_back(fmt::format("{}", i));
  }
  listing.labels = std::move(numbers);
}

}  // namespace

void add_notes_of(const io::Tar& tar, std::vector<std::string>& notes) {
  if (const std::vector<std::string>& lost = tar.lost_links(); !lost.empty()) {
    notes.push_back(fmt::format("{}: {} to no file in it left out, such as '{}'", tar.source(),
                                io::counted(std::ssize(lost), "links"), lost.front()));
  }
  if (const std::vector<std::string>& replaced = tar.replaced(); !replaced.empty()) {
    notes.push_back(fmt::format("{}: {} left out, as later ones have the same names, such as '{}'", tar.source(),
                                io::counted(std::ssize(replaced), "files"), replaced.front()));
  }
}

Listing list_shards(const std::vector<fs::path>& files, const fs::path& source, const ListOptions& how) {
  Shards shards = open_shards(files, source, how.skip_broken);
  Listing listing;
  listing.notes = shards.left_out;
  std::ranges::for_each(shards.files, [&](const io::Tar& tar) { add_notes_of(tar, listing.notes); });
  listing.passed_over = shards.passed_over;
  std::vector<std::string> class_of;
  for (const ShardSample& sample : shards.samples) {
    check(!how.labeled || !sample.cls.empty(), "{}: the sample '{}' has no class: a file '{}.cls' was expected",
          shards.files[sample.shard].source(), sample.key, sample.key);
    const fs::path file = shards.files[sample.shard].source();
    listing.names.push_back(source == file ? sample.image.name : (file.filename() / sample.image.name).string());
    class_of.push_back(sample.cls);
  }
  if (how.labeled) {
    label_by_numbers(listing, class_of, shards.classes, source.string());
  }
  const auto held = std::make_shared<const Shards>(std::move(shards));
  listing.image = [held](std::int64_t i) {
    const ShardSample& sample = held->samples[static_cast<std::size_t>(i)];
    return io::decode_image(held->files[sample.shard].bytes(sample.image),
                            (held->files[sample.shard].source() / fs::path(sample.image.name)).string());
  };
  listing.file = [held](std::int64_t i) {
    return held->files[held->samples[static_cast<std::size_t>(i)].shard].source();
  };
  listing.encoded = [held](std::int64_t i) {
    const ShardSample& sample = held->samples[static_cast<std::size_t>(i)];
    const auto bytes = held->files[sample.shard].bytes(sample.image);
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  };
  listing.will_read = [held](std::span<const std::int64_t> indices) {
    std::vector<Place> places;
    places.reserve(indices.size());
    for (const std::int64_t i : indices) {
      const ShardSample& sample = held->samples[static_cast<std::size_t>(i)];
      places.push_back({&held->files[sample.shard], &sample.image});
    }
    fetch(std::move(places));
  };
  return listing;
}

Parts parts_of_archive(const fs::path& file) {
  const io::Tar tar = io::Tar::open(file);
  std::vector<std::string> images;
  for (const io::TarEntry& entry : tar.entries()) {
    if (!is_hidden(entry.name) && io::is_image_name(entry.name)) {
      images.push_back(entry.name);
    }
  }
  return holds_samples(tar) ? Parts() : parts_among(images_by_part(images, ""));
}

Listing list_tar(const fs::path& path, const std::string& split, const ListOptions& how) {
  const io::Tar tar = io::Tar::open(path);
  if (holds_samples(tar)) {
    check(split.empty() || is_training_split(split),
          "{}: an archive of samples is of one part: it has no '{}' images; name an archive that has them in its place",
          path.string(), split);
    return list_shards({path}, path, how);
  }
  std::map<std::string, io::TarEntry, std::less<>> entries;
  std::vector<std::string> names;
  Listing listing;
  add_notes_of(tar, listing.notes);
  std::string inside;
  for (const io::TarEntry& entry : tar.entries()) {
    if (is_hidden(entry.name)) {
      continue;
    }
    if (const std::string name = fs::path(entry.name).filename().string();
        name == "scene.json" || name.starts_with("instances") || name.starts_with("captions")) {
      inside = entry.name;
    }
    if (io::is_image_name(entry.name)) {
      entries.emplace(entry.name, entry);
      names.push_back(entry.name);
    } else {
      ++listing.passed_over;
    }
  }
  if (!inside.empty() && inside.ends_with(".json")) {
    listing.notes.push_back(fmt::format(
        "{}: '{}' in it is not read: unpack the archive for boxes, captions or questions", path.string(), inside));
  }
  const bool whole = !how.labeled && split.empty();
  listing.names = whole ? std::move(names) : choose_images(std::move(names), split, path.string(), listing.notes);
  std::sort(listing.names.begin(), listing.names.end(), natural_less);
  if (how.labeled) {
    for (const std::string& name : listing.names) {
      const auto folder = split.empty() ? std::nullopt : part_folder_of(name, split);
      check(!folder || !folder->holds, "{}: the image {} lies outside of any class folder", path.string(), name);
    }
    label_by_folder(listing, path.string());
  }
  std::vector<io::TarEntry> images;
  images.reserve(listing.names.size());
  for (const std::string& name : listing.names) {
    images.push_back(entries.at(name));
  }
  listing.file = [path](std::int64_t) { return path; };
  const auto held = std::make_shared<const std::vector<io::TarEntry>>(std::move(images));
  listing.image = [tar, path, held](std::int64_t i) {
    const io::TarEntry& entry = (*held)[static_cast<std::size_t>(i)];
    return io::decode_image(tar.bytes(entry), (path / entry.name).string());
  };
  listing.encoded = [tar, held](std::int64_t i) {
    const auto bytes = tar.bytes((*held)[static_cast<std::size_t>(i)]);
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  };
  listing.will_read = [tar, held](std::span<const std::int64_t> indices) {
    std::vector<Place> places;
    places.reserve(indices.size());
    for (const std::int64_t i : indices) {
      places.push_back({&tar, &(*held)[static_cast<std::size_t>(i)]});
    }
    fetch(std::move(places));
  };
  return listing;
}

}  // namespace vitrail::data
