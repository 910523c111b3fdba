#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "vitrail/data/boxes/listings.h"
#include "vitrail/data/coco/coco_file.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* root_name = "annotation";

pugi::xml_node child_of(const pugi::xml_node& node, const char* name, const std::string& source) {
  const pugi::xml_node child = node.child(name);
  check(!child.empty(), "{}: <{}> has no <{}>", source, node.name(), name);
  return child;
}

double number_in(const pugi::xml_node& node, const char* name, const std::string& source) {
  const std::string text = child_of(node, name, source).text().get();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  check(end != text.c_str() && std::string_view(end).find_first_not_of(" \t\r\n") == std::string_view::npos &&
            std::isfinite(value) && std::abs(value) < 1e7,
        "{}: <{}> is '{}', expected a number of pixels", source, name, text);
  return value;
}

fs::path image_of(const fs::path& annotation, const std::string& name, const VocFiles& files) {
  const std::vector<fs::path>& folders = files.image_folders;
  std::vector<std::string> names;
  if (!name.empty()) {
    names.push_back(fs::path(name).filename().string());
  }
  for (const char* extension : {".jpg", ".jpeg", ".png", ".webp", ".JPG", ".JPEG", ".PNG"}) {
    names.push_back(annotation.stem().string() + extension);
  }
  std::error_code error;
  for (const fs::path& folder : folders) {
    for (const std::string& candidate : names) {
      if (io::is_image_name(candidate) && fs::is_regular_file(folder / candidate, error)) {
        return folder / candidate;
      }
    }
  }
  check(files.skip_broken, "{}: the image '{}' does not exist in '{}' {}", annotation.string(), names.front(),
        folders.front().string(), missing_image_remedy);
  return folders.front() / (annotation.stem().string() + ".jpg");
}

// The images of the folder in which those of the listing lie that have no annotation.
std::vector<std::string> without_annotation(const BoxListing& listing) {
  std::set<std::string> known;
  for (const ListedImage& image : listing.images) {
    known.insert(image.name);
  }
  std::vector<std::string> result;
  std::error_code error;  // an image may be missing
  const auto there = std::ranges::find_if(
      listing.images, [&](const ListedImage& image) { return fs::is_regular_file(image.path, error); });
  if (there == listing.images.end()) {
    return result;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(there->path.parent_path())) {
    std::string name = entry.path().filename().string();
    if (io::is_image_name(name) && !is_hidden(entry.path().filename()) && !known.contains(name)) {
      result.push_back(std::move(name));
    }
  }
  std::ranges::sort(result, natural_less);
  return result;
}

struct NamedObject {
  ListedObject object;
  std::string name;
};

NamedObject read_object(const pugi::xml_node& node, const std::string& source) {
  NamedObject result;
  result.name = child_of(node, "name", source).text().get();
  check(!result.name.empty(), "{}: an <object> has an empty <name>", source);
  const pugi::xml_node box = child_of(node, "bndbox", source);
  result.object.box = {number_in(box, "xmin", source), number_in(box, "ymin", source), number_in(box, "xmax", source),
                       number_in(box, "ymax", source)};
  result.object.difficult = node.child("difficult").text().as_int() != 0;
  return result;
}

// The ids of the images: the numbers at the ends of their names, or, unless all have one of their own, their places.
void number_images(std::vector<ListedImage>& images) {
  std::vector<std::string> names;
  std::ranges::transform(images, std::back_inserter(names), &ListedImage::name);
  const std::map<std::string, std::int64_t> ids = ids_in_names(names);
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i].id = ids.empty() ? static_cast<std::int64_t>(i) + 1 : ids.at(names[i]);
  }
}

}  // namespace

BoxListing list_voc(const VocFiles& files) {
  BoxListing result;
  std::vector<std::pair<std::size_t, std::string>> names;  // of the objects, with their images
  std::map<std::string, std::size_t> classes;
  std::map<fs::path, fs::path> annotation_of;
  for (const fs::path& path : files.annotations) {
    const std::string source = path.string();
    const std::string text = io::read_text(path);
    pugi::xml_document document;
    const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
    check(static_cast<bool>(parsed), "{}: line {}: {}", source,
          1 + std::count(text.begin(), text.begin() + std::clamp<std::ptrdiff_t>(parsed.offset, 0, std::ssize(text)),
                         '\n'),
          parsed.description());
    const pugi::xml_node root = document.child(root_name);
    check(!root.empty(), "{}: there is no <{}>, as Pascal VOC's files have it", source, root_name);
    ListedImage image;
    image.path = image_of(path, root.child("filename").text().get(), files);
    image.name = image.path.filename().string();
    const auto [earlier, is_first] = annotation_of.emplace(image.path, path);
    check(is_first, "{}: its image '{}' is that of '{}' too", source, image.name, earlier->second.filename().string());
    if (const pugi::xml_node size = root.child("size"); !size.empty()) {
      image.width = static_cast<std::int64_t>(number_in(size, "width", source));
      image.height = static_cast<std::int64_t>(number_in(size, "height", source));
    }
    for (const pugi::xml_node& node : root.children("object")) {
      NamedObject named = read_object(node, source);
      classes.emplace(named.name, 0);
      names.emplace_back(result.images.size(), std::move(named.name));
      image.objects.push_back(named.object);
    }
    result.images.push_back(std::move(image));
  }
  number_images(result.images);
  std::vector<std::string> sorted;
  sorted.reserve(classes.size());
  for (const auto& [name, number] : classes) {
    sorted.push_back(name);
  }
  std::ranges::sort(sorted, natural_less);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    classes[sorted[i]] = i;
    result.categories.push_back(sorted[i]);
    result.category_ids.push_back(static_cast<std::int64_t>(i) + 1);
  }
  if (files.all && !result.images.empty()) {
    const std::vector<std::string> bare = without_annotation(result);
    if (!bare.empty()) {
      result.notes.push_back(fmt::format("passed over {} without an annotation: {}",
                                         io::counted(std::ssize(bare), "images"), io::some_of(bare)));
    }
  }
  std::size_t next = 0;
  for (ListedImage& image : result.images) {
    for (ListedObject& object : image.objects) {
      object.category = classes[names[next++].second];
    }
  }
  return result;
}

}  // namespace vitrail::data
