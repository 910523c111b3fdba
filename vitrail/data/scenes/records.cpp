#include "vitrail/data/scenes/records.h"

#include <fmt/core.h>

namespace vitrail::data {

namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string scene_file(std::int64_t index) { return fmt::format("{:06}.png", index); }

Json scene_info(const SceneFolder& what) {
  Json holdout = Json::array();
  for (const SceneKind& kind : what.scenes.holdout) {
    holdout.push_back(name_of(kind));
  }
  Json background = nullptr;
  if (what.scenes.background) {
    background = name_of(*what.scenes.background);
  }
  return {{"description", "rendered scenes"},
          {"seed", what.scenes.seed},
          {"first", what.first},
          {"count", what.count},
          {"size", what.side},
          {"objects", {what.scenes.fewest_objects, what.scenes.most_objects}},
          {"background", background},
          {"holdout", holdout},
          {"held_out", what.scenes.held_out},
          {"overlap", what.scenes.overlap},
          {"paraphrase", what.paraphrase},
          {"style", name_of(what.style)},
          {"task", name_of(what.scenes.task)}};
}

Json scene_images(const SceneFolder& what) {
  Json images = Json::array();
  for (std::int64_t i = what.first; i < what.first + what.count; ++i) {
    images.push_back({{"id", i}, {"file_name", scene_file(i)}, {"width", what.side}, {"height", what.side}});
  }
  return images;
}

Json coco_box(const SceneBox& box) { return {box.left, box.top, box.width(), box.height()}; }

Json attributes_of(const SceneObject& object) {
  Json json = {
      {"shape", name_of(object.kind.shape)}, {"color", name_of(object.kind.color)}, {"size", name_of(object.size)}};
  if (object.kind.shape == SceneShape::bird) {
    json["head"] = name_of(object.head);
    json["beak"] = name_of(object.beak);
    json["faces"] = object.faces_left ? "left" : "right";
  }
  return json;
}

Json scene_record(const Scene& scene, const DrawnScene& drawn, const std::string& file_name) {
  Json json = {{"index", scene.index}, {"file_name", file_name}};
  json["background"] = {{"sky", name_of(scene.background.sky)}};
  if (scene.background.ground) {
    json["background"]["ground"] = name_of(*scene.background.ground);
    json["background"]["horizon"] = scene.background.horizon * drawn.image.height / scene_side;
  }
  json["objects"] = Json::array();
  json["relations"] = Json::array();
  for (std::size_t i = 0; i < scene.objects.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i + 1);
    Json object = {{"number", number}};
    object.update(attributes_of(scene.objects[i]));
    object["bbox"] = coco_box(box_of_object(drawn.objects, drawn.image.width, number));
    object["area"] = area_of_object(drawn.objects, number);
    object["units"] = coco_box(scene.objects[i].box);
    json["objects"].push_back(std::move(object));
    for (std::size_t other = 0; other < scene.objects.size(); ++other) {
      const auto relation = relation_of(scene.objects[i], scene.objects[other]);
      if (relation == SceneRelation::left_of || relation == SceneRelation::above) {
        json["relations"].push_back({number, name_of(*relation), other + 1});
      }
    }
  }
  return json;
}

}  // namespace vitrail::data
