#include "vitrail/data/pairs/text_pairs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/coco/coco_file.h"
#include "vitrail/data/dataset_part.h"
#include "vitrail/data/scenes/describe.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/shards/shards.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/web/download.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/side_by_side.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// Images and texts as a layout lists them, also such as have no text.
struct PairListing {
  Listing images;
  std::vector<std::vector<std::string>> texts;
  fs::path folder = {};                 // TextPairs::folder
  std::vector<TextPlaces> places = {};  // TextPairs::places
};

// Erases the empty ones among texts, and their places if they have any. The number of them.
std::size_t erase_empty(std::vector<std::string>& texts, TextPlaces* places) {
  for (std::size_t i = texts.size(); places != nullptr && i-- > 0;) {
    if (texts[i].empty()) {
      places->erase(places->begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return std::erase(texts, "");
}

// The pairs of a listing; images without a text are left out and counted.
TextPairs pairs_of(PairListing listing, const std::string& source) {
  Listing kept;
  TextPairs result;
  std::vector<std::int64_t> chosen;
  std::int64_t without = 0;
  std::int64_t empty = 0;
  for (std::size_t i = 0; i < listing.texts.size(); ++i) {
    std::vector<std::string>& texts = listing.texts[i];
    const std::size_t erased = erase_empty(texts, listing.places.empty() ? nullptr : &listing.places[i]);
    if (texts.empty()) {
      ++without;
      continue;
    }
    empty += static_cast<std::int64_t>(erased);
    kept.names.push_back(std::move(listing.images.names[i]));
    result.texts.push_back(std::move(texts));
    if (!listing.places.empty()) {
      result.places.push_back(std::move(listing.places[i]));
    }
    chosen.push_back(static_cast<std::int64_t>(i));
  }
  check(!chosen.empty(), "{}: there are no images with texts", source);
  kept.labels.assign(chosen.size(), unlabeled);
  kept.passed_over = listing.images.passed_over;
  kept.notes = std::move(listing.images.notes);
  if (without > 0) {
    kept.notes.push_back(fmt::format("{}: {} without a text {} left out", source, io::counted(without, "images"),
                                     without == 1 ? "is" : "are"));
  }
  if (empty > 0) {
    kept.notes.push_back(fmt::format("{}: {} left out", source, io::counted(empty, "empty texts")));
  }
  if (listing.images.file) {
    kept.file = [file = std::move(listing.images.file), chosen](std::int64_t i) {
      return file(chosen[static_cast<std::size_t>(i)]);
    };
  }
  kept.image = [image = std::move(listing.images.image), chosen = std::move(chosen)](std::int64_t i) {
    return image(chosen[static_cast<std::size_t>(i)]);
  };
  result.images = dataset_of(std::move(kept));
  result.folder = std::move(listing.folder);
  return result;
}

// Has a listing read its images from these files.
void read_from(std::vector<fs::path> paths, Listing& images) {
  images.file = [paths = std::move(paths)](std::int64_t i) { return paths[static_cast<std::size_t>(i)]; };
  images.image = [file = images.file](std::int64_t i) { return io::read_image(file(i)); };
}

PairListing list_coco(const fs::path& path, const TextPairsOptions& options) {
  const CocoFile file(path, {"images", "annotations"}, "captions", options.skip_broken);
  PairListing result;
  std::vector<fs::path> paths;
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes;
  const CocoPlaces images =
      file.read_images([&](io::Fields& f, std::int64_t, const std::string& name, const fs::path& image) {
        paths.push_back(image);
        result.images.names.push_back(name);
        if (options.places) {
          sizes.push_back({f.get<std::int64_t>("width", 0, {0, 1e7}), f.get<std::int64_t>("height", 0, {0, 1e7})});
        }
      });
  result.texts.resize(paths.size());
  result.places.resize(options.places ? paths.size() : 0);
  bool placed = false;  // whether any text is
  const auto read_text = [&](io::Fields& f) {
    const std::size_t image = CocoFile::image_of(f, images);
    result.texts[image].emplace_back(io::trimmed(f.get<std::string>("caption")));
    if (!options.places) {
      return;
    }
    std::vector<Box>& boxes = result.places[image].emplace_back(read_boxes(f));
    const auto [width, height] = sizes[image];
    check(boxes.empty() || (width > 0 && height > 0), "{}: it has boxes, but its image in 'images' no width and height",
          f.source());
    for (Box& box : boxes) {
      box = box.scaled(1 / static_cast<double>(width), 1 / static_cast<double>(height));
      placed = true;
    }
  };
  file.read_with_ids("annotations", read_text, true);
  if (!placed) {
    result.places.clear();
  }
  result.folder = fs::absolute(path).parent_path();
  read_from(std::move(paths), result.images);
  return result;
}

std::optional<std::size_t> caption_column(const io::CsvRow& header, const std::string& source) {
  return io::column_named(header, {"caption", "text", "title", "description", "sentence"}, source);
}

// `part` says which rows are taken, but for what the header says of them.
PairListing list_captions_csv(const fs::path& file, TablePart part) {
  const std::string source = file.string();
  const std::vector<io::CsvRow> rows = io::read_table(file);
  check(!rows.empty(), "{}: the file is empty; lines of path,caption were expected", source);
  std::size_t path = 0;
  std::size_t text = 1;
  if (is_table_header(rows[0])) {
    const auto paths = path_column(rows[0], source);
    const auto texts = caption_column(rows[0], source);
    check(paths && texts,
          "{}: line 1 names neither an image nor the columns 'path' and 'caption' (also understood: file, filename, "
          "image; text, title)",
          source);
    path = *paths;
    text = *texts;
    part.first = 1;
    part.split = io::part_column(rows, source);
  }
  part.columns = std::max(path, text) + 1;
  PairListing result;
  std::vector<fs::path> images;
  std::map<std::string, std::size_t> place_of;
  if (const Parts parts = parts_in(rows, part, source); part.mixed && parts.size() > 1) {
    result.images.notes.push_back(note_of_all(parts, source));
  }
  for (const io::CsvRow* row : rows_of(rows, part, source, result.images.notes)) {
    const std::string& name = row->fields[path];
    const auto [place, is_new] = place_of.emplace(name, images.size());
    if (is_new) {
      images.push_back(image_of_row(file, *row, path, part.skip_broken));
      result.images.names.push_back(name);
      result.texts.emplace_back();
    }
    result.texts[place->second].emplace_back(io::trimmed(row->fields[text]));
  }
  result.folder = fs::absolute(file).parent_path();
  read_from(std::move(images), result.images);
  return result;
}

// A sample of WebDataset is what has the same name up to the first dot behind the last slash.
std::string key_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return name.substr(0, name.find('.', slash == std::string::npos ? 0 : slash + 1));
}

PairListing list_shards(const std::vector<fs::path>& shards) {
  struct Member {
    io::Tar tar;
    io::TarEntry entry;
  };
  PairListing result;
  std::vector<Member> members;
  for (const fs::path& shard : shards) {
    const io::Tar tar = io::Tar::open(io::local_file(shard));
    add_notes_of(tar, result.images.notes);
    std::map<std::string, std::string> texts;
    for (const io::TarEntry& entry : tar.entries()) {
      if (entry.name.ends_with(".txt") && !is_hidden(entry.name)) {
        const auto bytes = tar.bytes(entry);
        texts[key_of(entry.name)] =
            io::trimmed({reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(bytes.size())});
      }
    }
    for (const io::TarEntry& entry : tar.entries()) {
      if (!io::is_image_name(entry.name) || is_hidden(entry.name)) {
        continue;
      }
      result.images.names.push_back(shards.size() > 1 ? (shard.filename() / entry.name).string() : entry.name);
      result.texts.push_back({texts[key_of(entry.name)]});
      members.push_back({tar, entry});
    }
  }
  result.images.image = [members = std::move(members)](std::int64_t i) {
    const Member& member = members[static_cast<std::size_t>(i)];
    return io::decode_image(member.tar.bytes(member.entry), member.entry.name);
  };
  return result;
}

// Scenes that are drawn when they are asked for, with the captions that their file would have.
PairListing list_described_scenes(const SceneFolder& what, const std::string& source, bool places) {
  check(what.style == SceneStyle::shapes, "{}: scenes of cells have no captions", source);
  const auto count = static_cast<std::size_t>(what.count);
  PairListing result;
  result.images.names.reserve(count);
  for (std::int64_t index = what.first; index < what.first + what.count; ++index) {
    result.images.names.push_back(scene_file(index));
  }
  result.texts.resize(count);
  result.places.resize(places ? count : 0);
  side_by_side(count, static_cast<int>(std::thread::hardware_concurrency()), [&](std::size_t i) {
    const Scene scene = sample_scene(what.scenes, what.first + static_cast<std::int64_t>(i));
    const DrawnScene drawn = places ? draw_scene(scene, what.side) : DrawnScene();
    for (SceneCaption& caption : scene_captions(scene, what.captions)) {
      if (places) {
        std::vector<Box>& boxes = result.places[i].emplace_back(drawn_boxes(drawn.objects, what.side, caption.about));
        std::ranges::transform(boxes, boxes.begin(), [&](const Box& box) {
          return box.scaled(1 / static_cast<double>(what.side), 1 / static_cast<double>(what.side));
        });
      }
      result.texts[i].push_back(std::move(caption.text));
    }
  });
  result.images.image = [what](std::int64_t i) { return scene_image(what, what.first + i); };
  return result;
}

// Whether texts lie in an archive, as far as it can be read.
bool has_texts_inside(const fs::path& archive) {
  try {
    const io::Tar tar = io::Tar::open(archive);
    return std::ranges::any_of(tar.entries(), [](const io::TarEntry& entry) { return entry.name.ends_with(".txt"); });
  } catch (const Error&) {
    return false;
  }
}

// The table of captions that a source is, or that a folder has; empty if there is none.
fs::path table_of(const fs::path& source) {
  if (io::is_table_name(source) && !fs::is_directory(source)) {
    return source;
  }
  return fs::exists(source / "captions.csv") && !fs::exists(source / "captions.json") ? source / "captions.csv"
                                                                                      : fs::path();
}

// The shards of a folder in natural order.
std::vector<fs::path> shards_in(const fs::path& folder) {
  std::vector<fs::path> shards;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (io::is_tar_name(entry.path()) && !is_hidden(entry.path().filename())) {
      shards.push_back(entry.path());
    }
  }
  std::ranges::sort(shards, [](const fs::path& a, const fs::path& b) { return natural_less(a.string(), b.string()); });
  return shards;
}

// Whether captions lie in a folder itself, and not in its parts.
bool has_own_captions(const fs::path& folder) {
  const std::vector<fs::path> shards = shards_in(folder);
  return io::is_file(folder / "captions.json") || io::is_file(folder / "captions.csv") ||
         (!shards.empty() && has_texts_inside(shards.front()));  // one stands for all
}

// Whether the first line of a table names a column of captions.
bool names_captions(const fs::path& table) {
  const std::vector<io::CsvRow> rows = io::read_table(table);
  return !rows.empty() && is_table_header(rows[0]) && caption_column(rows[0], table.string()) &&
         path_column(rows[0], table.string());
}

// The captions of a folder that are those of one part: annotations/captions_train2017.json, train.csv.
Parts files_of_parts(const fs::path& folder) {
  constexpr std::string_view begin = "captions_";
  Parts parts;
  for (const fs::path& place : {folder, folder / "annotations"}) {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(place, none)) {
      const std::string name = entry.path().filename().string();
      const std::string stem = entry.path().stem().string();
      const std::string extension = io::lower_case(entry.path().extension().native());
      if (extension == ".json" && name.starts_with(begin)) {
        parts.push_back({stem.substr(begin.size()), fmt::format("'{}'", name), entry.path()});
      } else if (io::is_table_name(entry.path()) && place == folder && is_part_name(stem) &&
                 names_captions(entry.path())) {
        parts.push_back({stem, fmt::format("'{}'", name), entry.path()});
      }
    }
  }
  std::ranges::sort(parts, {}, &Part::shown);
  return parts;
}

// The parts of a folder, each of which is a file or a folder of captions, or the shards of one name, of which its path
// is the first; none if no shard says its part.
Parts parts_with_texts(const fs::path& folder, const std::string& split = "") {
  Parts parts = part_folders(folder, split, has_own_captions);
  std::ranges::move(files_of_parts(folder), std::back_inserter(parts));
  if (parts.empty()) {
    for (const fs::path& shard : shards_in(folder)) {
      const std::string name = part_in_name(shard.filename().string());
      if (std::ranges::find(parts, name, &Part::name) == parts.end()) {
        parts.push_back({name, fmt::format("'{}'", shard.filename().string()), shard});
      }
    }
    if (std::ranges::all_of(parts, [](const Part& part) { return part.name.empty(); })) {
      parts.clear();
    }
  }
  sort_parts(parts);
  return parts;
}

PairListing list_pairs(const fs::path& source, const std::string& split, const TextPairsOptions& options);

PairListing list_pairs_of(const fs::path& folder, const Part& part, const TextPairsOptions& options) {
  if (!io::is_tar_name(part.path)) {
    return list_pairs(part.path, "", options);
  }
  std::vector<fs::path> shards = shards_in(folder);
  std::erase_if(shards, [&](const fs::path& shard) { return part_in_name(shard.filename().string()) != part.name; });
  return list_shards(shards);
}

// All parts of a folder, one after the other.
PairListing list_all_parts(const fs::path& folder, const Parts& parts, const TextPairsOptions& options) {
  PairListing all;
  std::vector<Listing> listings;
  for (const Part& part : parts) {
    PairListing listing = list_pairs_of(folder, part, options);
    std::ranges::move(listing.images.names, std::back_inserter(all.images.names));
    std::ranges::move(listing.texts, std::back_inserter(all.texts));
    std::ranges::move(listing.images.notes, std::back_inserter(all.images.notes));
    listings.push_back(std::move(listing.images));
    listings.back().labels.assign(listing.texts.size(), unlabeled);
  }
  const auto parts_images = std::make_shared<const std::vector<Listing>>(std::move(listings));
  const auto at = [parts_images](std::int64_t i) {
    auto own = parts_images->begin();
    for (; i >= std::ssize(own->labels); ++own) {
      i -= std::ssize(own->labels);
    }
    return std::pair(&*own, i);
  };
  all.images.image = [at](std::int64_t i) {
    const auto [own, place] = at(i);
    return own->image(place);
  };
  all.images.file = [at](std::int64_t i) {
    const auto [own, place] = at(i);
    return own->file ? own->file(place) : fs::path();
  };
  all.images.notes.push_back(note_of_all(parts, folder.string()));
  return all;
}

PairListing list_pairs_in(const fs::path& folder, const std::string& split, const TextPairsOptions& options) {
  const Parts parts = parts_with_texts(folder, split);
  std::vector<fs::path> shards = parts.empty() ? shards_in(folder) : std::vector<fs::path>();
  check(!parts.empty() || !shards.empty(),
        "{}: there are no pairs of images and texts: neither captions.json, annotations/captions_NAME.json nor "
        "captions.csv, nor .tar shards of WebDataset",
        folder.string());
  if (split.empty() && parts.size() > 1) {
    return list_all_parts(folder, parts, options);
  }
  std::vector<std::string> notes;
  const Part* part = parts.empty() && split.empty() ? nullptr
                     : split.empty()                ? &parts.front()
                                                    : choose_part(parts, split, folder.string(), notes);
  PairListing result = part == nullptr ? list_shards(shards) : list_pairs_of(folder, *part, options);
  std::ranges::move(notes, std::back_inserter(result.images.notes));
  return result;
}

PairListing list_pairs(const fs::path& source, const std::string& split, const TextPairsOptions& options) {
  if (is_scene_source(source)) {
    return list_described_scenes(read_scene_source(source, {"questions"}), source.string(), options.places);
  }
  std::error_code error;
  if (!fs::exists(source, error) && is_shard_source(source)) {
    check(split.empty() || is_training_split(split),
          "{}: shards that are named are of one part: name those of '{}' too", source.string(), split);
    return list_shards(shards_named(source));
  }
  check(fs::exists(source, error), "{}: {}", source.string(), error ? error.message() : "no such file or folder");
  if (const fs::path table = table_of(source); !table.empty()) {
    return list_captions_csv(table, {.part = split, .mixed = split.empty(), .skip_broken = options.skip_broken});
  }
  const bool folder = fs::is_directory(source);
  const fs::path own = folder ? source / "captions.json" : source;
  if (folder && !fs::exists(own)) {
    return list_pairs_in(source, split, options);
  }
  check(split.empty() || is_training_split(split), "{}: there is no part '{}' of it", source.string(), split);
  if (io::is_tar_name(own)) {
    return list_shards({own});
  }
  check(own.extension() == ".json",
        "{}: pairs of images and texts are a .json in COCO's layout, a .csv of path,caption, a .tar of WebDataset, or "
        "a folder with one of them",
        source.string());
  return list_coco(own, options);
}

}  // namespace

std::int64_t TextPairs::count() const {
  return std::accumulate(texts.begin(), texts.end(), std::int64_t{0},
                         [](std::int64_t total, const auto& own) { return total + std::ssize(own); });
}

TextPairs described_scenes(const SceneFolder& what, const std::string& source, bool places) {
  return pairs_of(list_described_scenes(what, source, places), source);
}

Parts parts_of_pairs(const fs::path& source) {
  std::error_code none;
  if (is_scene_source(source) || !fs::exists(source, none)) {
    return {};
  }
  if (const fs::path table = table_of(source); !table.empty()) {
    return parts_of_table(table);
  }
  return fs::exists(source / "captions.json") ? Parts() : parts_with_texts(source);
}

bool has_captions(const fs::path& source, const std::string& split) {
  if (is_scene_source(source)) {
    return false;
  }
  if (!fs::exists(source) && is_shard_source(source)) {
    return has_texts_inside(io::local_file(shards_named(source).front()));
  }
  if (!fs::is_directory(source)) {
    return source.extension() == ".json" || (io::is_table_file(source) && is_captions_table(source)) ||
           (io::is_tar_name(source) && fs::exists(source) && has_texts_inside(source));
  }
  return has_own_captions(source) || !files_of_parts(source).empty() ||
         !part_folders(source, split, has_own_captions).empty();
}

bool is_captions_table(const fs::path& file) {
  const std::vector<io::CsvRow> rows = io::read_table(file);
  return rows.empty() || !is_table_header(rows[0]) || caption_column(rows[0], file) ||
         (path_column(rows[0], file) && !label_column(rows[0], file) && !io::column_named(rows[0], {"question"}, file));
}

TextPairs open_text_pairs(const fs::path& source, const std::string& split, const TextPairsOptions& options) {
  return pairs_of(list_pairs(source, split, options), source.string());
}

TextPairs part_of(const TextPairs& pairs, std::vector<std::int64_t> indices) {
  TextPairs result;
  for (const std::int64_t index : indices) {
    result.texts.push_back(pairs.texts.at(static_cast<std::size_t>(index)));
    if (!pairs.places.empty()) {
      result.places.push_back(pairs.places.at(static_cast<std::size_t>(index)));
    }
  }
  result.images = std::make_shared<DatasetPart>(pairs.images, std::move(indices));
  return result;
}

}  // namespace vitrail::data
