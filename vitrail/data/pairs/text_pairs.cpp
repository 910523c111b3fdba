#include "vitrail/data/pairs/text_pairs.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "vitrail/data/dataset_part.h"
#include "vitrail/data/pairs/pair_listings.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/shards/shards.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/web/download.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// Erases the empty ones among texts, and their places if they have any. The number of them.
std::size_t erase_empty(std::vector<std::string>& texts, TextPlaces* places) {
  for (std::size_t i = texts.size(); places != nullptr && i-- > 0;) {
    if (texts[i].empty()) {
      places->erase(places->begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return std::erase(texts, "");
}

// Throws Error if a text is not UTF-8 or, with `skip_broken`, empties it; the number of such ones.
std::size_t empty_broken(std::vector<std::string>& texts, const std::string& image, const std::string& source,
                         bool skip_broken) {
  std::size_t broken = 0;
  for (std::string& text : texts) {
    if (io::as_utf8(text) != text) {
      check(skip_broken, "{}: the text of '{}' is not UTF-8: '{}' (--skip-broken leaves such texts out)", source, image,
            io::as_utf8(text));
      text.clear();
      ++broken;
    }
  }
  return broken;
}

// The pairs of a listing; images without a text are left out and counted.
TextPairs pairs_of(PairListing listing, const std::string& source, bool skip_broken) {
  Listing kept;
  TextPairs result;
  std::vector<std::int64_t> chosen;
  std::int64_t without = 0;
  std::int64_t empty = 0;
  std::int64_t broken = 0;
  for (std::size_t i = 0; i < listing.texts.size(); ++i) {
    std::vector<std::string>& texts = listing.texts[i];
    const std::size_t unreadable = empty_broken(texts, listing.images.names[i], source, skip_broken);
    const std::size_t erased = erase_empty(texts, listing.places.empty() ? nullptr : &listing.places[i]);
    broken += static_cast<std::int64_t>(unreadable);
    if (texts.empty()) {
      ++without;
      continue;
    }
    empty += static_cast<std::int64_t>(erased - unreadable);
    kept.names.push_back(std::move(listing.images.names[i]));
    result.texts.push_back(std::move(texts));
    if (!listing.places.empty()) {
      result.places.push_back(std::move(listing.places[i]));
    }
    chosen.push_back(static_cast<std::int64_t>(i));
  }
  if (broken > 0) {
    listing.images.notes.push_back(fmt::format("{}: {} that {} not UTF-8 {} left out", source,
                                               io::counted(broken, "texts"), broken == 1 ? "is" : "are",
                                               broken == 1 ? "is" : "are"));
  }
  check(!chosen.empty(), "{}: there are no images with texts{}", source,
        broken > 0
            ? fmt::format(" but for {} that {} not UTF-8", io::counted(broken, "texts"), broken == 1 ? "is" : "are")
            : "");
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
  return list_pair_shards(shards);
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
  PairListing result = part == nullptr ? list_pair_shards(shards) : list_pairs_of(folder, *part, options);
  std::ranges::move(notes, std::back_inserter(result.images.notes));
  return result;
}

PairListing list_pairs(const fs::path& source, const std::string& split, const TextPairsOptions& options) {
  if (is_scene_source(source)) {
    return list_described_scenes(read_scene_source(source, {"questions", "paraphrase"}), source.string(),
                                 options.places);
  }
  std::error_code error;
  if (!fs::exists(source, error) && is_shard_source(source)) {
    check(split.empty() || is_training_split(split),
          "{}: shards that are named are of one part: name those of '{}' too", source.string(), split);
    return list_pair_shards(shards_named(source));
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
    return list_pair_shards({own});
  }
  check(own.extension() == ".json",
        "{}: pairs of images and texts are a .json in COCO's layout, a .csv of path,caption, a .tar of WebDataset, or "
        "a folder with one of them",
        source.string());
  return list_coco_captions(own, options);
}

}  // namespace

std::int64_t TextPairs::count() const {
  return std::accumulate(texts.begin(), texts.end(), std::int64_t{0},
                         [](std::int64_t total, const auto& own) { return total + std::ssize(own); });
}

TextPairs described_scenes(const SceneFolder& what, const std::string& source, bool places) {
  return pairs_of(list_described_scenes(what, source, places), source, false);
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
  return pairs_of(list_pairs(source, split, options), source.string(), options.skip_broken);
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
