#include "vitrail/data/pairs/text_pairs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/coco/coco_file.h"
#include "vitrail/data/scenes/describe.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/sources.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// Images and texts as a layout lists them, also such as have no text.
struct PairListing {
  Listing images;
  std::vector<std::vector<std::string>> texts;
};

// The pairs of a listing; images without a text are left out and counted.
TextPairs pairs_of(PairListing listing, const std::string& source) {
  Listing kept;
  TextPairs result;
  std::vector<std::int64_t> places;
  std::int64_t without = 0;
  std::int64_t empty = 0;
  for (std::size_t i = 0; i < listing.texts.size(); ++i) {
    std::vector<std::string>& texts = listing.texts[i];
    const std::size_t erased = std::erase(texts, "");
    if (texts.empty()) {
      ++without;
      continue;
    }
    empty += static_cast<std::int64_t>(erased);
    kept.names.push_back(std::move(listing.images.names[i]));
    result.texts.push_back(std::move(texts));
    places.push_back(static_cast<std::int64_t>(i));
  }
  check(!places.empty(), "{}: there are no images with texts", source);
  kept.labels.assign(places.size(), unlabeled);
  kept.passed_over = listing.images.passed_over;
  if (without > 0) {
    kept.notes.push_back(fmt::format("{}: {} without a text {} left out", source, io::counted(without, "images"),
                                     without == 1 ? "is" : "are"));
  }
  if (empty > 0) {
    kept.notes.push_back(fmt::format("{}: {} left out", source, io::counted(empty, "empty texts")));
  }
  kept.image = [image = std::move(listing.images.image), places = std::move(places)](std::int64_t i) {
    return image(places[static_cast<std::size_t>(i)]);
  };
  result.images = dataset_of(std::move(kept));
  return result;
}

std::function<io::Image(std::int64_t)> reader_of(std::vector<fs::path> paths) {
  return [paths = std::move(paths)](std::int64_t i) { return io::read_image(paths[static_cast<std::size_t>(i)]); };
}

PairListing list_coco(const fs::path& path) {
  const CocoFile file(path, {"images", "annotations"}, "captions");
  PairListing result;
  std::vector<fs::path> paths;
  const CocoPlaces images =
      file.read_images([&](io::Fields&, std::int64_t, const std::string& name, const fs::path& image) {
        paths.push_back(image);
        result.images.names.push_back(name);
      });
  result.texts.resize(paths.size());
  const auto read_text = [&](io::Fields& f) {
    const std::size_t image = CocoFile::image_of(f, images);
    result.texts[image].emplace_back(io::trimmed(f.get<std::string>("caption")));
  };
  file.read_with_ids("annotations", read_text, true);
  result.images.image = reader_of(std::move(paths));
  return result;
}

std::optional<std::size_t> caption_column(const io::CsvRow& header) {
  return column_named(header, {"caption", "text", "title", "description", "sentence"});
}

// `part` says which rows are taken, but for what the header says of them.
PairListing list_captions_csv(const fs::path& file, TablePart part) {
  const std::string source = file.string();
  const std::vector<io::CsvRow> rows = io::parse_csv(io::read_text(file), source);
  check(!rows.empty(), "{}: the file is empty; lines of path,caption were expected", source);
  std::size_t path = 0;
  std::size_t text = 1;
  if (is_table_header(rows[0])) {
    const auto paths = path_column(rows[0]);
    const auto texts = caption_column(rows[0]);
    check(paths && texts,
          "{}: line 1 names neither an image nor the columns 'path' and 'caption' (also understood: file, filename, "
          "image; text, title)",
          source);
    path = *paths;
    text = *texts;
    part.first = 1;
    part.split = split_column(rows[0]);
  }
  part.columns = std::max(path, text) + 1;
  PairListing result;
  std::vector<fs::path> images;
  std::map<std::string, std::size_t> place_of;
  for (const io::CsvRow* row : rows_of(rows, part, source)) {
    const std::string& name = row->fields[path];
    const auto [place, is_new] = place_of.emplace(name, images.size());
    if (is_new) {
      images.push_back(image_of_row(file, *row, path));
      result.images.names.push_back(name);
      result.texts.emplace_back();
    }
    result.texts[place->second].emplace_back(io::trimmed(row->fields[text]));
  }
  result.images.image = reader_of(std::move(images));
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
    const io::Tar tar = io::Tar::open(shard);
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
PairListing list_described_scenes(const SceneFolder& what, const std::string& source) {
  check(what.style == SceneStyle::shapes, "{}: scenes of cells have no captions", source);
  PairListing result;
  result.images.names.reserve(static_cast<std::size_t>(what.count));
  result.texts.reserve(static_cast<std::size_t>(what.count));
  for (std::int64_t index = what.first; index < what.first + what.count; ++index) {
    result.images.names.push_back(scene_file(index));
    result.texts.push_back(scene_captions(sample_scene(what.scenes, index), what.captions));
  }
  result.images.image = [what](std::int64_t i) { return scene_image(what, what.first + i); };
  return result;
}

PairListing list_pairs(const fs::path& source) {
  if (is_scene_source(source)) {
    return list_described_scenes(read_scene_source(source), source.string());
  }
  std::error_code error;
  check(fs::exists(source, error), "{}: {}", source.string(), error ? error.message() : "no such file or folder");
  if (!fs::is_directory(source)) {
    if (io::is_tar_name(source)) {
      return list_shards({source});
    }
    const std::string extension = source.extension().string();
    check(
        extension == ".json" || extension == ".csv",
        "{}: pairs of images and texts are a .json in COCO's layout, a .csv of path,caption, a .tar of WebDataset, or "
        "a folder with one of them",
        source.string());
    return extension == ".json" ? list_coco(source) : list_captions_csv(source, {.mixed = true});
  }
  if (fs::exists(source / "captions.json")) {
    return list_coco(source / "captions.json");
  }
  if (fs::exists(source / "captions.csv")) {
    return list_captions_csv(source / "captions.csv", {.mixed = true});
  }
  std::vector<fs::path> shards;
  for (const fs::directory_entry& entry : fs::directory_iterator(source)) {
    if (io::is_tar_name(entry.path()) && !is_hidden(entry.path().filename())) {
      shards.push_back(entry.path());
    }
  }
  check(!shards.empty(),
        "{}: there are no pairs of images and texts: neither captions.json, nor captions.csv, nor .tar "
        "shards of WebDataset",
        source.string());
  std::ranges::sort(shards, [](const fs::path& a, const fs::path& b) { return natural_less(a.string(), b.string()); });
  return list_shards(shards);
}

// Some images of another data set.
class ChosenImages final : public Dataset {
 public:
  ChosenImages(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {}
  std::int64_t size() const override { return std::ssize(indices_); }
  io::Image image(std::int64_t index) const override { return whole_->image(at(index)); }
  std::int64_t label(std::int64_t index) const override { return whole_->label(at(index)); }
  std::string name(std::int64_t index) const override { return whole_->name(at(index)); }
  const std::vector<std::string>& classes() const override { return whole_->classes(); }
  std::vector<std::string> notes() const override { return whole_->notes(); }

 private:
  std::int64_t at(std::int64_t index) const { return indices_.at(static_cast<std::size_t>(index)); }
  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> indices_;
};

}  // namespace

std::int64_t TextPairs::count() const {
  return std::accumulate(texts.begin(), texts.end(), std::int64_t{0},
                         [](std::int64_t total, const auto& own) { return total + std::ssize(own); });
}

TextPairs described_scenes(const SceneFolder& what, const std::string& source) {
  return pairs_of(list_described_scenes(what, source), source);
}

TextPairs open_text_pairs(const fs::path& source) { return pairs_of(list_pairs(source), source.string()); }

bool is_captions_table(const fs::path& file) {
  const std::vector<io::CsvRow> rows = io::parse_csv(io::read_text(file), file.string());
  return rows.empty() || !is_table_header(rows[0]) || caption_column(rows[0]) || !label_column(rows[0]);
}

TextPairs open_captions_table(const fs::path& file, const std::string& split) {
  TablePart part;
  part.names = split.empty() ? std::vector<std::string>() : names_of_split(split);
  return pairs_of(list_captions_csv(file, std::move(part)), file.string());
}

TextPairs part_of(const TextPairs& pairs, std::vector<std::int64_t> indices) {
  TextPairs result;
  for (const std::int64_t index : indices) {
    result.texts.push_back(pairs.texts.at(static_cast<std::size_t>(index)));
  }
  result.images = std::make_shared<ChosenImages>(pairs.images, std::move(indices));
  return result;
}

}  // namespace vitrail::data
