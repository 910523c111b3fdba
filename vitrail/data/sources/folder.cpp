// Images in folders named after their classes.
#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/data/sources/sources.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

class FolderWalk {
 public:
  FolderWalk(const fs::path& root, bool labeled) : labeled_(labeled) { visit(root, {}); }
  std::vector<std::string> images;  // relative to the root
  std::int64_t passed_over = 0;     // files that are not images by their names

 private:
  // Adds the images below `folder`, whose path from the root is `relative`. Throws Error for an empty class folder.
  void visit(const fs::path& folder, const fs::path& relative) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    check(!error, "the folder {} cannot be read: {}", folder.string(), error.message());
    check(std::find(above_.begin(), above_.end(), real) == above_.end(),
          "the folder {} contains itself through a symbolic link", folder.string());
    above_.push_back(real);
    const std::size_t before = images.size();
    bool has_folders = false;
    std::error_code unknown;  // for a broken link, which is not a folder
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const fs::path name = it->path().filename();
      if (is_hidden(name)) {
        continue;
      }
      if (it->is_directory(unknown)) {  // also through a symbolic link
        has_folders = true;
        visit(it->path(), relative / name);
      } else if (io::is_image_name(name) && !it->is_fifo(unknown) && !it->is_socket(unknown)) {
        images.push_back((relative / name).string());
      } else {
        ++passed_over;
      }
    }
    check(!error, "the folder {} cannot be read: {}", folder.string(), error.message());
    check(!labeled_ || has_folders || images.size() > before || relative.empty(),
          "the class folder {} has no images in it (.jpg, .jpeg, .png or .webp)", folder.string());
    above_.pop_back();
  }

  bool labeled_;
  std::vector<fs::path> above_;  // the open folders, to notice links that lead back up
};

std::optional<std::size_t> whole_number(const std::string& name) {
  std::size_t number = 0;
  const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), number);
  return status == std::errc() && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

bool is_hidden(const fs::path& path) {
  return std::any_of(path.begin(), path.end(), [](const fs::path& part) {
    return (part.native().starts_with('.') && part != "." && part != "..") || part == "__MACOSX";
  });
}

void label_by_name(Listing& listing, const std::vector<std::string>& class_of) {
  const std::set<std::string> unique(class_of.begin(), class_of.end());
  for (const std::string& name : unique) {
    check(io::as_utf8(name) == name, "the name of the class '{}' is not valid UTF-8: rename it", io::as_utf8(name));
  }
  listing.classes.assign(unique.begin(), unique.end());
  std::sort(listing.classes.begin(), listing.classes.end(), natural_less);
  std::vector<std::string> sorted(unique.begin(), unique.end());
  std::vector<std::int64_t> rank(sorted.size());
  for (std::size_t c = 0; c < listing.classes.size(); ++c) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), listing.classes[c]);
    rank[static_cast<std::size_t>(at - sorted.begin())] = static_cast<std::int64_t>(c);
  }
  listing.labels.clear();
  listing.labels.reserve(class_of.size());
  for (const std::string& name : class_of) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), name);
    listing.labels.push_back(rank[static_cast<std::size_t>(at - sorted.begin())]);
  }
}

void use_classes(Listing& listing, const std::vector<std::string>& classes, const std::string& source) {
  std::vector<std::int64_t> position(listing.classes.size(), -1);
  std::vector<bool> used(listing.classes.size(), false);
  for (const std::int64_t label : listing.labels) {
    used[static_cast<std::size_t>(label)] = true;
  }
  // Labels are the numbers of classes where neither they nor the classes' names can mean anything else.
  const auto is_known = [&](const std::string& name) { return std::ranges::find(classes, name) != classes.end(); };
  const bool numbered =
      std::ranges::none_of(listing.classes, is_known) &&
      std::ranges::none_of(classes, [](const std::string& name) { return whole_number(name).has_value(); });
  std::vector<std::string> by_place;
  for (std::size_t c = 0; c < listing.classes.size(); ++c) {
    const std::string& name = listing.classes[c];
    const auto at = std::find(classes.begin(), classes.end(), name);
    if (at != classes.end()) {
      position[c] = at - classes.begin();
    } else if (const auto number = numbered ? whole_number(name) : std::nullopt; number && *number < classes.size()) {
      position[c] = static_cast<std::int64_t>(*number);
      by_place.push_back(fmt::format("{} is {}", name, classes[*number]));
    } else {
      check(!used[c], "{}: the class '{}' is unknown{}: it is none of the {} ({}{})", source, name,
            io::did_you_mean(name, classes), io::counted(std::ssize(classes), "classes"),
            fmt::join(classes.begin(), classes.begin() + std::min<std::ptrdiff_t>(10, std::ssize(classes)), ", "),
            classes.size() > 10 ? ", …" : "");
    }
  }
  if (!by_place.empty()) {
    constexpr std::ptrdiff_t shown = 3;
    listing.notes.push_back(
        fmt::format("{}: its classes are numbers, which are taken for places among the {} that are expected: {}{}",
                    source, io::counted(std::ssize(classes), "classes"),
                    fmt::join(by_place.begin(), by_place.begin() + std::min(shown, std::ssize(by_place)), ", "),
                    std::ssize(by_place) > shown ? ", …" : ""));
  }
  for (std::int64_t& label : listing.labels) {
    label = position[static_cast<std::size_t>(label)];
  }
  listing.classes = classes;
}

bool are_known_classes(const Listing& listing, const std::vector<std::string>& classes) {
  const auto is_known = [&](const std::string& name) { return std::ranges::find(classes, name) != classes.end(); };
  const auto is_place = [&](const std::string& name) {
    return whole_number(name).value_or(classes.size()) < classes.size();
  };
  return std::ranges::all_of(listing.classes, is_known) ||
         (listing.classes.size() == classes.size() && std::ranges::all_of(listing.classes, is_place));
}

void label_by_folder(Listing& listing, const std::string& source) {
  std::vector<std::string> classes;
  classes.reserve(listing.names.size());
  std::map<std::string, std::set<std::string>> folders_of;  // each class
  for (const std::string& name : listing.names) {
    const fs::path folder = fs::path(name).parent_path();
    check(!folder.empty(), "{}: the image {} lies outside of any class folder", source, name);
    classes.push_back(folder.filename().string());
    folders_of[classes.back()].insert(folder.string());
  }
  label_by_name(listing, classes);
  const auto is_shared = [](const auto& one) { return one.second.size() > 1; };
  if (const auto shared = std::ranges::find_if(folders_of, is_shared); shared != folders_of.end()) {
    const auto others = std::ranges::count_if(folders_of, is_shared) - 1;
    listing.notes.push_back(
        fmt::format("folders of one name are one class, wherever they lie: {} are '{}'{}",
                    io::quoted_list({shared->second.begin(), shared->second.end()}, "and"), shared->first,
                    others == 0 ? "" : fmt::format(", and so with {}", io::counted(others, "other names"))));
  }
}

Listing list_folder(const fs::path& path, bool labeled) {
  Listing listing;
  FolderWalk walk(path, labeled);
  listing.names = std::move(walk.images);
  listing.passed_over = walk.passed_over;
  std::sort(listing.names.begin(), listing.names.end(), natural_less);
  if (labeled) {
    label_by_folder(listing, path.string());
  }
  listing.file = [path, names = listing.names](std::int64_t i) { return path / names[static_cast<std::size_t>(i)]; };
  listing.image = [file = listing.file](std::int64_t i) { return io::read_image(file(i)); };
  listing.encoded = [file = listing.file](std::int64_t i) { return io::read_bytes(file(i)); };
  return listing;
}

}  // namespace vitrail::data
