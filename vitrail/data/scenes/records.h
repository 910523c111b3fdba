/// \file
/// What files say of scenes. It is not for use outside of vitrail/data/scenes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/scene.h"
#include "vitrail/data/scenes/write.h"

namespace vitrail::data {

/// What a scene folder holds, apart from scene_preview.
inline constexpr const char* images_folder = "images";
inline constexpr const char* masks_folder = "masks";
inline constexpr const char* captions_file = "captions.json";
inline constexpr const char* instances_file = "instances.json";
inline constexpr const char* heads_file = "heads.json";
inline constexpr const char* questions_file = "vqa_questions.json";
inline constexpr const char* answers_file = "vqa_annotations.json";
inline constexpr const char* scenes_file = "scene.json";
inline constexpr const char* counts_file = "count.csv";
inline constexpr const char* kinds_file = "kind.csv";
inline constexpr const char* training_folder = "train";
inline constexpr const char* validation_folder = "validation";

/// How scenes were made.
nlohmann::ordered_json scene_info(const SceneFolder& what);
/// COCO's "images".
nlohmann::ordered_json scene_images(const SceneFolder& what);
/// COCO's "bbox".
nlohmann::ordered_json coco_box(const SceneBox& box);
/// What an object is.
nlohmann::ordered_json attributes_of(const SceneObject& object);
/// What scene.json says of a scene. Of each pair of relations, such as "left of" and "right of", the first is listed.
nlohmann::ordered_json scene_record(const Scene& scene, const DrawnScene& drawn, const std::string& file_name);

// Writers of scenes of one kind, each of which does a part of what write_scenes() does.

void write_cells(const std::filesystem::path& folder, const SceneFolder& what,
                 const std::function<void(std::int64_t done)>& advance);
void write_classes(const std::filesystem::path& folder, const SceneFolder& what,
                   const std::function<void(std::int64_t done)>& advance);

}  // namespace vitrail::data
