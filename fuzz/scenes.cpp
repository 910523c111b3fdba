// Any bytes as a scene.json, as a caption of a scene and as the fields of a source of scenes: an Error, or scenes of
// objects that captions can be judged by.
#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/data/scenes/read.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/scenes/truth.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(scenes)(const std::uint8_t* data, std::size_t size) {
  using namespace vitrail;
  static const Folder folder("scenes");
  static const data::Scene scene = data::sample_scene({}, 0);
  const MemoryLimit limit;
  const auto text = text_of(data, size);
  const data::SceneVerdict verdict = data::caption_truth(text, scene);
  require((verdict.truth == data::SceneTruth::holds) == verdict.reason.empty());
  folder.write("scene.json", text);
  try {
    for (const auto& [index, one] : data::read_scenes(folder.path() / "scene.json")) {
      require(one.index == index);
      data::caption_truth("a red bird left of two circles", one);
    }
  } catch (const Error&) {
  }
  try {
    require(data::read_scene_source("scenes:" + std::string(text)).count > 0);
  } catch (const Error&) {
  }
  return 0;
}
