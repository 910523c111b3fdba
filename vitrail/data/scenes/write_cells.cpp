// Folders of scenes of cells.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/data/scenes/cells.h"
#include "vitrail/data/scenes/record_file.h"
#include "vitrail/data/scenes/records.h"
#include "vitrail/io/file.h"
#include "vitrail/io/gray_png.h"

namespace vitrail::data {
namespace {

nlohmann::ordered_json categories_of_cells() {
  auto categories = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < cell_kinds.size(); ++i) {
    categories.push_back({{"id", i + 1}, {"name", cell_kinds[i]}, {"supercategory", "cell"}});
  }
  return categories;
}

}  // namespace

void write_cells(const std::filesystem::path& folder, const SceneFolder& what,
                 const std::function<void(std::int64_t done)>& advance) {
  using Json = nlohmann::ordered_json;
  const Json info = scene_info(what);
  RecordFile instances(folder / instances_file,
                       {{"info", info}, {"images", scene_images(what)}, {"categories", categories_of_cells()}},
                       "annotations");
  RecordFile scenes(folder / scenes_file, {{"info", info}}, "scenes");
  io::make_folder(folder / images_folder);
  io::make_folder(folder / masks_folder);
  std::int64_t last_instance = 0;
  for (std::int64_t i = 0; i < what.count; ++i) {
    const CellScene scene = sample_cells(what.scenes.seed, what.first + i);
    const DrawnScene drawn = draw_cells(scene, what.side);
    const std::string name = scene_file(scene.index);
    write_bytes(folder / images_folder / name, io::encode_png(drawn.image));
    write_bytes(folder / masks_folder / name, io::encode_gray_png(drawn.objects, what.side, what.side));
    Json record = {{"index", scene.index}, {"file_name", name}, {"objects", Json::array()}};
    for (const Cell& cell : scene.cells) {
      const std::vector<std::uint8_t> mask = mask_of_cell(cell, what.side);
      const Json box = coco_box(box_of_object(mask, what.side, 1));
      instances.add({{"id", ++last_instance},
                     {"image_id", scene.index},
                     {"category_id", static_cast<std::int64_t>(cell.kind) + 1},
                     {"bbox", box},
                     {"area", area_of_object(mask, 1)},
                     {"iscrowd", 0},
                     {"segmentation", outlines_of_object(mask, what.side, 1)}});
      record["objects"].push_back({{"number", record["objects"].size() + 1},
                                   {"class", name_of(cell.kind)},
                                   {"bbox", box},
                                   {"units", coco_box(cell.box)}});
    }
    scenes.add(record);
    if (advance) {
      advance(i + 1);
    }
  }
  instances.finish();
  scenes.finish();
}

}  // namespace vitrail::data
