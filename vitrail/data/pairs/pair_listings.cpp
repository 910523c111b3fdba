#include "vitrail/data/pairs/pair_listings.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "vitrail/data/coco/coco_file.h"
#include "vitrail/data/scenes/describe.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/web/download.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/side_by_side.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// Has a listing read its images from these files.
void read_from(std::vector<fs::path> paths, Listing& images) {
  images.file = [paths = std::move(paths)](std::int64_t i) { return paths[static_cast<std::size_t>(i)]; };
  images.image = [file = images.file](std::int64_t i) { return io::read_image(file(i)); };
}

// A sample of WebDataset is what has the same name up to the first dot behind the last slash.
std::string key_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return name.substr(0, name.find('.', slash == std::string::npos ? 0 : slash + 1));
}

}  // namespace

std::optional<std::size_t> caption_column(const io::CsvRow& header, const std::string& source) {
  return io::column_named(header, {"caption", "text", "title", "description", "sentence"}, source);
}

PairListing list_coco_captions(const fs::path& path, const TextPairsOptions& options) {
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

PairListing list_pair_shards(const std::vector<fs::path>& shards) {
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

}  // namespace vitrail::data
