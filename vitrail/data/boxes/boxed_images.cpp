#include "vitrail/data/boxes/boxed_images.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/data/boxes/listings.h"
#include "vitrail/data/dataset_part.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/codecs.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr double border_tolerance = 1;  // pixels by which a box may lie beside its image without a word

// Adds an image once, of which several objects may be found one after the other.
void note_image(std::vector<std::string>& names, const std::string& name) {
  if (names.empty() || names.back() != name) {
    names.push_back(name);
  }
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}
bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::vector<fs::path> sorted_files(const fs::path& folder, const std::function<bool(const fs::path&)>& wanted) {
  std::vector<fs::path> result;
  if (is_folder(folder)) {
    std::error_code unreadable;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable)) {
      if (!is_hidden(entry.path().filename()) && wanted(entry.path()) && is_file(entry.path())) {
        result.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(result, [](const fs::path& a, const fs::path& b) { return natural_less(a.string(), b.string()); });
  return result;
}

std::vector<fs::path> annotations_in(const fs::path& folder) {
  return sorted_files(folder, [](const fs::path& path) { return path.extension() == ".xml"; });
}

// The file of a folder that is no part of others. Beside questions.json, annotations.json has VQA's answers.
std::optional<fs::path> own_coco_file(const fs::path& folder) {
  for (const char* name : {"instances.json", "_annotations.coco.json"}) {
    if (is_file(folder / name)) {
      return folder / name;
    }
  }
  const fs::path plain = folder / "annotations.json";
  return is_file(plain) && !is_file(folder / "questions.json") ? std::optional(plain) : std::nullopt;
}

// annotations/instances_*.json, by what follows the underscore.
Parts coco_parts(const fs::path& folder) {
  constexpr std::string_view begin = "instances_";
  Parts parts;
  for (const fs::path& file : sorted_files(folder / "annotations", [&](const fs::path& path) {
         return path.extension() == ".json" && path.stem().string().starts_with(begin);
       })) {
    parts.push_back({file.stem().string().substr(begin.size()), fmt::format("'{}'", file.filename().string()), file});
  }
  return parts;
}

bool is_voc_tree(const fs::path& folder) { return is_folder(folder / "Annotations"); }

// Whether images lie in the folder with a .xml beside them.
bool has_xml_beside_images(const fs::path& folder) { return !annotations_in(folder).empty(); }

// Whether a list of VOC says of each image whether it has objects of one class: "000012 -1".
bool is_of_one_class(const fs::path& folder, const fs::path& list) {
  if (list.stem().string().find('_') == std::string::npos) {
    return false;
  }
  for (const std::string& line : io::read_lines(list)) {
    const std::string whole(io::trimmed(line));
    if (!whole.empty()) {
      const std::string number = whole.substr(whole.find_last_of(" \t") + 1);
      return number != whole && (number == "-1" || number == "0" || number == "1") &&
             !is_file(folder / "Annotations" / (whole + ".xml"));
    }
  }
  return false;
}

// The lists of images that VOC has in ImageSets/Main, but for those of one class.
Parts voc_parts(const fs::path& folder) {
  Parts parts;
  for (const fs::path& path : sorted_files(folder / "ImageSets" / "Main", [&](const fs::path& file) {
         return file.extension() == ".txt" && !is_of_one_class(folder, file);
       })) {
    parts.push_back({path.stem().string(), fmt::format("'{}'", path.filename().string()), path});
  }
  sort_parts(parts);
  return parts;
}

// The images of a folder in VOC's layout, or those that one of voc_parts() lists.
BoxListing list_voc_tree(const fs::path& folder, bool skip_broken, const fs::path& list = {}) {
  VocFiles files{{}, {folder / "JPEGImages", folder / "images", folder}, true, skip_broken};
  if (list.empty()) {
    files.annotations = annotations_in(folder / "Annotations");
    BoxListing all = list_voc(files);
    if (const Parts parts = voc_parts(folder); parts.size() > 1) {
      all.notes.push_back(fmt::format("takes all images of '{}', whose parts are {}: --split chooses one",
                                      folder.string(), names_in(parts)));
    }
    return all;
  }
  files.all = false;
  std::map<std::string, int> line_of;
  int number = 0;
  for (const std::string& line : io::read_lines(list)) {
    ++number;
    // A name may have blanks; in lists of one class a number stands behind it.
    const std::string whole(io::trimmed(line));
    const std::string name =
        is_file(folder / "Annotations" / (whole + ".xml")) ? whole : whole.substr(0, whole.find_first_of(" \t"));
    if (name.empty()) {
      continue;
    }
    const auto [first, is_new] = line_of.emplace(name, number);
    check(is_new, "{}: line {} names {}, as line {} does", list.string(), number, name, first->second);
    const fs::path annotation = folder / "Annotations" / (name + ".xml");
    check(is_file(annotation), "{}: line {} names {}, which does not exist", list.string(), number,
          annotation.string());
    files.annotations.push_back(annotation);
  }
  return list_voc(files);
}

// A folder as a whole, whichever layout it has; nothing if it has none.
std::optional<BoxListing> list_whole(const fs::path& folder, bool skip_broken) {
  if (const auto file = own_coco_file(folder)) {
    return list_coco_boxes(*file, skip_broken);
  }
  if (is_voc_tree(folder)) {
    return list_voc_tree(folder, skip_broken);
  }
  if (has_xml_beside_images(folder)) {
    return list_voc({annotations_in(folder), {folder}, true, skip_broken});
  }
  return std::nullopt;
}

bool is_boxed_folder(const fs::path& folder) {
  return own_coco_file(folder) || is_voc_tree(folder) || has_xml_beside_images(folder);
}

// The parts of a folder: files of COCO, lists of VOC, and subfolders that have boxes.
Parts parts_with_boxes(const fs::path& folder, const std::string& split) {
  Parts parts = coco_parts(folder);
  std::ranges::move(voc_parts(folder), std::back_inserter(parts));
  std::ranges::move(part_folders(folder, split, is_boxed_folder), std::back_inserter(parts));
  sort_parts(parts);
  return parts;
}

BoxListing list_part(const fs::path& source, const Part& part, bool skip_broken) {
  return part.path.extension() == ".txt" ? list_voc_tree(source, skip_broken, part.path)
         : is_folder(part.path)          ? list_whole(part.path, skip_broken).value()
                                         : list_coco_boxes(part.path, skip_broken);
}

BoxListing list_boxes(const fs::path& source, const std::string& split, bool skip_broken) {
  if (is_scene_source(source)) {
    return list_scene_boxes(source, split);
  }
  std::error_code error;
  check(fs::exists(source, error), "{}: {}", source.string(), error ? error.message() : "no such file or folder");
  if (!is_folder(source)) {
    check(source.extension() == ".json",
          "{}: boxes are a .json in COCO's layout, or a folder in that or in Pascal VOC's", source.string());
    check(split.empty() || is_training_split(split), "{}: a file has no part '{}'", source.string(), split);
    return list_coco_boxes(source, skip_broken);
  }
  const Parts parts = parts_with_boxes(source, split);
  const bool whole = is_boxed_folder(source);
  // VOC's lists say what there is to train on, unless none of them is called after a part.
  const bool has_lists = !own_coco_file(source) && std::ranges::any_of(voc_parts(source), [](const Part& part) {
    return is_part_name(part.name);
  });
  check(whole || !parts.empty(),
        "{}: there are no images with boxes: neither instances.json, annotations/instances_NAME.json or "
        "_annotations.coco.json (COCO), nor Annotations/ or a .xml beside each image (Pascal VOC)",
        source.string());
  if (split.empty() && !whole) {
    check_whole(parts, source.string(), false);
  }
  std::vector<std::string> notes;
  const Part* part =
      split.empty() ? nullptr : choose_part(parts, split, source.string(), notes, {.whole = whole && !has_lists});
  BoxListing result = part == nullptr ? list_whole(source, skip_broken).value() : list_part(source, *part, skip_broken);
  check(part == nullptr || !result.images.empty(), "{}: there are no images in {}", source.string(),
        part == nullptr ? "" : part->shown);
  std::ranges::move(notes, std::back_inserter(result.notes));
  return result;
}

// Images as they are listed. Boxes are of the pixels as they are stored, as torchvision's CocoDetection reads them,
// unless the size of the annotation is that of the image as its EXIF data turn it.
class BoxedFiles final : public Dataset {
 public:
  explicit BoxedFiles(BoxListing listing) : images_(std::move(listing.images)), image_(std::move(listing.image)) {}
  std::int64_t size() const override { return std::ssize(images_); }
  io::Image image(std::int64_t index) const override {
    const ListedImage& listed = images_.at(static_cast<std::size_t>(index));
    if (image_) {
      return image_(index);
    }
    const auto fits = [&](const io::Image& image) {
      return listed.width == 0 || (image.width == listed.width && image.height == listed.height);
    };
    io::Decoded stored = io::decode_as_stored(io::read_bytes(listed.path), listed.path.string());
    io::Image image = fits(stored.image) ? std::move(stored.image)
                                         : io::apply_orientation(std::move(stored.image), stored.orientation);
    check(fits(image), "{}: the image has {} x {} pixels, but its annotation says {} x {}", listed.path.string(),
          image.width, image.height, listed.width, listed.height);
    return image;
  }
  std::int64_t label(std::int64_t /*index*/) const override { return unlabeled; }
  std::string name(std::int64_t index) const override { return images_.at(static_cast<std::size_t>(index)).name; }
  fs::path file(std::int64_t index) const override { return images_.at(static_cast<std::size_t>(index)).path; }
  const std::vector<std::string>& classes() const override { return none_; }

 private:
  std::vector<ListedImage> images_;
  std::function<io::Image(std::int64_t)> image_;
  std::vector<std::string> none_;
};

// The class of each category among those that are wanted.
std::vector<std::int64_t> classes_of(const BoxListing& listing, const std::vector<std::string>& wanted,
                                     const std::string& source) {
  std::vector<std::int64_t> result(listing.categories.size());
  std::vector<bool> used(result.size(), false);
  for (const ListedImage& image : listing.images) {
    for (const ListedObject& object : image.objects) {
      used[object.category] = true;
    }
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto found = std::ranges::find(wanted, listing.categories[i]);
    check(found != wanted.end() || !used[i], "{}: the class '{}' is none of those expected: {}", source,
          listing.categories[i], fmt::join(wanted, ", "));
    result[i] = found - wanted.begin();
  }
  return result;
}

}  // namespace

std::int64_t BoxedImages::count() const {
  return std::accumulate(objects.begin(), objects.end(), std::int64_t{0}, [](std::int64_t total, const auto& own) {
    return total + std::ranges::count(own, false, &BoxedObject::crowd);
  });
}

const std::vector<BoxedObject>& BoxedImages::judged(std::int64_t index) const {
  const auto written = as_written.find(index);
  return written == as_written.end() ? objects.at(static_cast<std::size_t>(index)) : written->second;
}

BoxedImages part_of(const BoxedImages& whole, std::vector<std::int64_t> indices) {
  BoxedImages result = whole;
  result.objects.clear();
  result.ids.clear();
  result.as_written.clear();
  for (const std::int64_t index : indices) {
    if (const auto written = whole.as_written.find(index); written != whole.as_written.end()) {
      result.as_written.emplace(std::ssize(result.ids), written->second);
    }
    result.objects.push_back(whole.objects.at(static_cast<std::size_t>(index)));
    result.ids.push_back(whole.ids.at(static_cast<std::size_t>(index)));
  }
  result.images = std::make_shared<DatasetPart>(whole.images, std::move(indices));
  return result;
}

BoxedImages open_boxed_images(const fs::path& source, const BoxedOptions& options) {
  BoxListing listing = list_boxes(source, options.split, options.skip_broken);
  check(!listing.images.empty(), "{}: there are no images", source.string());
  BoxedImages result;
  if (options.classes.empty()) {
    // Categories of which nothing is drawn, such as the heading of Roboflow's files, are classes all the same.
    result.classes = listing.categories;
    result.category_ids = listing.category_ids;
    if (!result.category_ids.empty() && result.category_ids.back() > std::ssize(result.classes)) {
      result.notes.push_back(
          fmt::format("the ids of the categories go up to {}: by their order they become {}, which keep their names",
                      result.category_ids.back(), io::counted(std::ssize(result.classes), "classes")));
    }
  } else {
    result.classes = options.classes;
  }
  const std::vector<std::int64_t> class_of = classes_of(listing, result.classes, source.string());
  if (!options.classes.empty()) {
    // Classes that the file does not declare get ids behind its own.
    std::int64_t next = listing.category_ids.empty() ? 1 : std::ranges::max(listing.category_ids) + 1;
    for (const std::string& name : result.classes) {
      const auto declared = std::ranges::find(listing.categories, name) - listing.categories.begin();
      result.category_ids.push_back(declared < std::ssize(listing.categories)
                                        ? listing.category_ids[static_cast<std::size_t>(declared)]
                                        : next++);
    }
  }
  std::vector<std::string> empty;   // images with boxes of no area
  std::vector<std::string> across;  // images with boxes that lie across their borders
  std::int64_t left_out = 0;
  std::int64_t cut_off = 0;
  std::int64_t background = 0;
  for (const ListedImage& image : listing.images) {
    std::vector<BoxedObject>& objects = result.objects.emplace_back();
    std::vector<BoxedObject> written;
    bool changed = false;
    result.ids.push_back(image.id);
    background += image.objects.empty() ? 1 : 0;
    for (const ListedObject& object : image.objects) {
      Box box = object.box;
      written.push_back(
          {box, class_of[object.category], object.area.value_or(box.area()), object.crowd, object.difficult});
      if (image.width > 0) {
        const auto width = static_cast<double>(image.width);
        const auto height = static_cast<double>(image.height);
        box = {std::clamp(box.x0, 0.0, width), std::clamp(box.y0, 0.0, height), std::clamp(box.x1, 0.0, width),
               std::clamp(box.y1, 0.0, height)};
      }
      const bool crosses =
          box.x0 != object.box.x0 || box.y0 != object.box.y0 || box.x1 != object.box.x1 || box.y1 != object.box.y1;
      changed = changed || crosses || box.empty();
      if (box.empty()) {
        ++left_out;
        note_image(empty, image.name);
        continue;
      }
      if (image.width > 0 && std::max({-object.box.x0, -object.box.y0, object.box.x1 - box.x1,
                                       object.box.y1 - box.y1}) > border_tolerance) {
        ++cut_off;
        note_image(across, image.name);
      }
      objects.push_back(written.back());
      objects.back().box = box;
      objects.back().area = object.area.value_or(box.area());
    }
    if (changed && listing.in_coco_layout) {
      result.as_written.emplace(std::ssize(result.ids) - 1, std::move(written));
    }
  }
  if (left_out > 0) {
    result.notes.push_back(fmt::format("left out {} without an area inside of the image: {}",
                                       io::counted(left_out, "boxes"), io::some_of(empty)));
  }
  if (cut_off > 0) {
    result.notes.push_back(
        fmt::format("cut off {} at the borders of the image: {}", io::counted(cut_off, "boxes"), io::some_of(across)));
  }
  if (background > 0) {
    result.notes.push_back(fmt::format("{} {} no box: nothing is to be found there", io::counted(background, "images"),
                                       background == 1 ? "has" : "have"));
  }
  std::ranges::move(listing.notes, std::back_inserter(result.notes));
  result.images = std::make_shared<BoxedFiles>(std::move(listing));
  return result;
}

bool has_boxes(const fs::path& source) {
  if (is_scene_source(source)) {
    return read_scene_source(source).scenes.task == SceneTask::none;
  }
  if (!is_folder(source)) {
    return source.extension() == ".json";
  }
  return is_boxed_folder(source) || !parts_with_boxes(source, "").empty();
}

Parts parts_of_boxes(const fs::path& source) {
  return is_scene_source(source) || !is_folder(source) ? Parts() : parts_with_boxes(source, "");
}

}  // namespace vitrail::data
