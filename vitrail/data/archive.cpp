// Class folders inside a tar archive, and the samples of shards, read where they lie.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "vitrail/data/shards/shards.h"
#include "vitrail/data/sources.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

bool lies_in(const fs::path& image, const std::string& folder) {
  const fs::path above = image.parent_path();
  return std::find(above.begin(), above.end(), folder) != above.end();
}

// The images of the first of `splits` that the archive has a folder for, or all images if `splits` is empty.
std::vector<std::string> choose_part(std::vector<std::string> names, const std::vector<std::string>& splits,
                                     const std::string& source) {
  std::vector<std::string> parts;
  for (const std::string& part : known_splits()) {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return lies_in(name, part); })) {
      parts.push_back(part);
    }
  }
  for (const std::string& split : splits) {
    std::vector<std::string> part;
    std::copy_if(names.begin(), names.end(), std::back_inserter(part),
                 [&](const std::string& name) { return lies_in(name, split); });
    if (!part.empty()) {
      return part;
    }
  }
  check(parts.size() < 2 && (splits.empty() || parts.empty()),
        "{}: the archive is split into parts ({}): choose one of them", source, fmt::join(parts, ", "));
  check(splits.empty() || is_training_split(splits[0]), "{}: the archive has no folder '{}'", source,
        fmt::join(splits, "', '"));
  return names;
}

// Says which links of an archive lead to no file in it, and so are left out.
void note_lost_links(const io::Tar& tar, Listing& listing) {
  if (const std::vector<std::string>& lost = tar.lost_links(); !lost.empty()) {
    listing.notes.push_back(fmt::format("{}: {} to no file in it left out, such as '{}'", tar.source(),
                                        io::counted(std::ssize(lost), "links"), lost.front()));
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

Listing list_shards(const std::vector<fs::path>& files, const fs::path& source, const ListOptions& how) {
  Shards shards = open_shards(files, source, how.skip_broken);
  Listing listing;
  listing.notes = shards.left_out;
  std::ranges::for_each(shards.files, [&](const io::Tar& tar) { note_lost_links(tar, listing); });
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
    return io::decode_image(held->files[sample.shard].bytes(sample.image), sample.image.name);
  };
  listing.file = [held](std::int64_t i) {
    return held->files[held->samples[static_cast<std::size_t>(i)].shard].source();
  };
  listing.encoded = [held](std::int64_t i) {
    const ShardSample& sample = held->samples[static_cast<std::size_t>(i)];
    const auto bytes = held->files[sample.shard].bytes(sample.image);
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  };
  return listing;
}

Listing list_tar(const fs::path& path, const std::vector<std::string>& splits, const ListOptions& how) {
  const io::Tar tar = io::Tar::open(path);
  if (holds_samples(tar)) {
    return list_shards({path}, path, how);
  }
  std::map<std::string, io::TarEntry, std::less<>> entries;
  std::vector<std::string> names;
  Listing listing;
  note_lost_links(tar, listing);
  for (const io::TarEntry& entry : tar.entries()) {
    if (is_hidden(entry.name)) {
      continue;
    }
    if (io::is_image_name(entry.name)) {
      entries.emplace(entry.name, entry);
      names.push_back(entry.name);
    } else {
      ++listing.passed_over;
    }
  }
  const bool whole = !how.labeled && splits.empty();
  listing.names = whole ? std::move(names) : choose_part(std::move(names), splits, path.string());
  std::sort(listing.names.begin(), listing.names.end(), natural_less);
  if (how.labeled) {
    label_by_folder(listing, path.string());
  }
  std::vector<io::TarEntry> images;
  images.reserve(listing.names.size());
  for (const std::string& name : listing.names) {
    images.push_back(entries.at(name));
  }
  listing.file = [path](std::int64_t) { return path; };
  const auto held = std::make_shared<const std::vector<io::TarEntry>>(std::move(images));
  listing.image = [tar, held](std::int64_t i) {
    const io::TarEntry& entry = (*held)[static_cast<std::size_t>(i)];
    return io::decode_image(tar.bytes(entry), entry.name);
  };
  listing.encoded = [tar, held](std::int64_t i) {
    const auto bytes = tar.bytes((*held)[static_cast<std::size_t>(i)]);
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  };
  return listing;
}

}  // namespace vitrail::data
