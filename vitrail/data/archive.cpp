// Class folders inside a tar archive, read where they lie.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "vitrail/data/sources.h"
#include "vitrail/io/tar.h"
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

}  // namespace

Listing list_tar(const fs::path& path, const std::vector<std::string>& splits, bool labeled) {
  const io::Tar tar = io::Tar::open(path);
  std::map<std::string, io::TarEntry, std::less<>> entries;
  std::vector<std::string> names;
  Listing listing;
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
  const bool whole = !labeled && splits.empty();
  listing.names = whole ? std::move(names) : choose_part(std::move(names), splits, path.string());
  std::sort(listing.names.begin(), listing.names.end(), natural_less);
  if (labeled) {
    label_by_folder(listing, path.string());
  }
  std::vector<io::TarEntry> images;
  images.reserve(listing.names.size());
  for (const std::string& name : listing.names) {
    images.push_back(entries.at(name));
  }
  listing.file = [path](std::int64_t) { return path; };
  listing.image = [tar, images = std::move(images)](std::int64_t i) {
    const io::TarEntry& entry = images[static_cast<std::size_t>(i)];
    return io::decode_image(tar.bytes(entry), entry.name);
  };
  return listing;
}

}  // namespace vitrail::data
