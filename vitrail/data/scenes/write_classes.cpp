// Folders of scenes by their classes.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/scenes/record_file.h"
#include "vitrail/data/scenes/records.h"
#include "vitrail/io/file.h"

namespace vitrail::data {

void write_classes(const std::filesystem::path& folder, const SceneFolder& what,
                   const std::function<void(std::int64_t done)>& advance) {
  RecordFile scenes(folder / scenes_file, {{"info", scene_info(what)}}, "scenes");
  std::int64_t index = what.first;
  for (const auto& [part, count] :
       {std::pair(training_folder, what.count), std::pair(validation_folder, what.validation_count())}) {
    io::make_folder(folder / part);
    std::set<std::string> made;  // a class folder without images is an error to those who read it
    for (std::int64_t i = 0; i < count; ++i, ++index) {
      const Scene scene = sample_scene(what.scenes, index);
      const DrawnScene drawn = draw_scene(scene, what.side);
      const std::string name = scene_class(what.scenes.task, scene);
      if (made.insert(name).second) {
        io::make_folder(folder / part / name);
      }
      const std::string path = fmt::format("{}/{}/{}", part, name, scene_file(index));
      write_bytes(folder / path, io::encode_png(drawn.image));
      scenes.add(scene_record(scene, drawn, path));
      if (advance) {
        advance(index - what.first + 1);
      }
    }
  }
  scenes.finish();
}

}  // namespace vitrail::data
