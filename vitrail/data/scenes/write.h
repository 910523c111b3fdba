/// \file
/// Scenes as a data set on disk.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "vitrail/data/scenes/sample.h"

namespace vitrail::data {

/// What is drawn: shapes and birds, or blood cells (sample_cells()).
enum class SceneStyle { shapes, cells };
inline constexpr std::array<std::string_view, 2> scene_styles = {"shapes", "cells"};
inline std::string_view name_of(SceneStyle style) { return scene_styles[static_cast<std::size_t>(style)]; }

/// Which scenes write_scenes() writes, and how.
struct SceneFolder {
  SceneStyle style = SceneStyle::shapes;  ///< of cells, `scenes` has a seed and nothing else
  SceneOptions scenes = {};
  std::int64_t first = 0;  ///< index of the first scene
  std::int64_t count = 1;
  std::int64_t side = 64;      ///< pixels
  std::int64_t captions = 5;   ///< of a scene
  std::int64_t questions = 8;  ///< of a scene
  bool paraphrase = false;     ///< questions in the several wordings of people
  /// Scenes of `validation/`, whose indices follow, if `scenes` has a task; 0: a tenth of `count`, and one at least.
  std::int64_t validation = 0;

  std::int64_t validation_count() const { return validation > 0 ? validation : std::max<std::int64_t>(1, count / 10); }
};

/// What is told of scenes that were written.
struct ScenesWritten {
  std::int64_t questions = 0;
  /// The share of the questions of the second half that GuessByText answers after the first half; 0 if there are none.
  double accuracy_by_text = 0;
};

/// The name of the image of a scene: "000007.png".
std::string scene_file(std::int64_t index);

/// The name of a contact sheet that may lie in the folder too.
inline constexpr const char* scene_preview = "preview.png";

/// Fills `folder`, which exists, with the scenes `first` … `first + count - 1`:
/// - `images/000000.png`, by the indices of the scenes,
/// - `masks/000000.png`: the number of the object at each pixel, from 1; 0 is the background,
/// - `captions.json` and `instances.json` (COCO; categories are shapes; a record also names colour and size),
/// - `heads.json` (COCO: the heads of birds; `object` is the number of the bird),
/// - `vqa_questions.json` and `vqa_annotations.json` (VQA v2: ten answers, which agree; a record also has the numbers
///   of the objects that the question is about, and their boxes, or those of their heads),
/// - `scene.json`: background, objects and relations of each scene,
/// - `count.csv`: how many objects each image has, and, if each has one, `kind.csv`: which (as path,label).
///
/// Of SceneStyle::cells there are images, masks (the last of the cells at a pixel), `instances.json` (a category a kind
/// of cell; boxes and outlines are those of whole cells, also where others overlap them) and `scene.json`.
///
/// Scenes of a task become class folders instead, `train/same/000000.png` …, `validation/different/000010.png` …,
/// beside a `scene.json`.
///
/// `advance` is called with the number of scenes done, and may throw to end the work. Nothing is synced: AtomicFolder
/// does. Throws Error if a file cannot be written, and as sample_scene() and draw_scene() do.
ScenesWritten write_scenes(const std::filesystem::path& folder, const SceneFolder& what,
                           const std::function<void(std::int64_t done)>& advance = {});

/// Whether a folder has been written by write_scenes().
bool is_scene_folder(const std::filesystem::path& folder);

/// A file or folder inside of such a folder that is neither written by write_scenes() nor its scene_preview; empty:
/// there is none.
std::filesystem::path foreign_in_scenes(const std::filesystem::path& folder);

}  // namespace vitrail::data
