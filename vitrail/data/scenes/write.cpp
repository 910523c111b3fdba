#include "vitrail/data/scenes/write.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/scenes/describe.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/questions.h"
#include "vitrail/io/file.h"
#include "vitrail/io/gray_png.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What a scene folder holds, apart from scene_preview.
constexpr const char* images_folder = "images";
constexpr const char* masks_folder = "masks";
constexpr const char* captions_file = "captions.json";
constexpr const char* instances_file = "instances.json";
constexpr const char* heads_file = "heads.json";
constexpr const char* questions_file = "vqa_questions.json";
constexpr const char* answers_file = "vqa_annotations.json";
constexpr const char* scenes_file = "scene.json";
constexpr const char* counts_file = "count.csv";
constexpr const char* kinds_file = "kind.csv";

// A file in a folder that is not in use yet: nothing need be synced or renamed.
class PlainFile {
 public:
  explicit PlainFile(fs::path path) : path_(std::move(path)), stream_(path_, std::ios::binary) { check_stream(); }
  void write(std::string_view text) { stream_.write(text.data(), std::ssize(text)); }
  void finish() {
    stream_.close();
    check_stream();
  }

 private:
  void check_stream() const {
    if (!stream_) {
      io::fail_writing(path_, errno);
    }
  }
  fs::path path_;
  std::ofstream stream_;
};

void write_bytes(const fs::path& path, std::span<const std::uint8_t> bytes) {
  PlainFile file(path);
  file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  file.finish();
}

// A JSON file of an object whose last member is a list, a line a record: `head` is the object without that member.
class RecordFile {
 public:
  RecordFile(const fs::path& path, const Json& head, std::string_view list) : file_(path) {
    const std::string text = head.dump();
    file_.write(fmt::format("{}{}\n\"{}\": [", text.substr(0, text.size() - 1), head.empty() ? "" : ",", list));
  }
  void add(const Json& record) {
    file_.write(first_ ? "\n" : ",\n");
    file_.write(record.dump());
    first_ = false;
  }
  void finish() {
    file_.write("\n]}\n");
    file_.finish();
  }

 private:
  PlainFile file_;
  bool first_ = true;
};

std::string scene_file(std::int64_t index) { return fmt::format("{:06}.png", index); }

Json info_of(const SceneFolder& what) {
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
          {"held_out", what.scenes.held_out}};
}

Json images_of(const SceneFolder& what) {
  Json images = Json::array();
  for (std::int64_t i = what.first; i < what.first + what.count; ++i) {
    images.push_back({{"id", i}, {"file_name", scene_file(i)}, {"width", what.side}, {"height", what.side}});
  }
  return images;
}

Json one_category(std::string_view name) {
  return Json::array({{{"id", 1}, {"name", name}, {"supercategory", "part"}}});
}

Json categories_of_shapes() {
  Json categories = Json::array();
  for (std::size_t i = 0; i < scene_shapes.size(); ++i) {
    categories.push_back({{"id", i + 1}, {"name", scene_shapes[i]}, {"supercategory", "object"}});
  }
  return categories;
}

// What a COCO file of annotations says before them.
Json coco_head(const SceneFolder& what, const Json& categories) {
  return {{"info", info_of(what)}, {"images", images_of(what)}, {"categories", categories}};
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

// What scene.json says of a scene. Of each pair of relations, such as "left of" and "right of", the first is listed.
Json json_of(const Scene& scene, const DrawnScene& drawn) {
  Json json = {{"index", scene.index}, {"file_name", scene_file(scene.index)}};
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

constexpr int answers_of_a_question = 10;

Json vqa_head(const SceneFolder& what) {
  return {{"info", info_of(what)}, {"task_type", "Open-Ended"}, {"data_type", "scenes"}};
}

// The files of a scene folder, which grow scene by scene.
class SceneFiles {
 public:
  SceneFiles(const fs::path& folder, const SceneFolder& what)
      : folder_(folder),
        what_(what),
        captions_(folder / captions_file, {{"info", info_of(what)}, {"images", images_of(what)}}, "annotations"),
        instances_(folder / instances_file, coco_head(what, categories_of_shapes()), "annotations"),
        heads_(folder / heads_file, coco_head(what, one_category("head")), "annotations"),
        questions_(folder / questions_file, vqa_head(what), "questions"),
        answers_(folder / answers_file, vqa_head(what), "annotations"),
        scenes_(folder / scenes_file, {{"info", info_of(what)}}, "scenes"),
        count_(folder / counts_file) {
    count_.write("path,label\n");
    if (what.scenes.most_objects == 1) {
      kind_.emplace(folder / kinds_file);
      kind_->write("path,label\n");
    }
    io::make_folder(folder / images_folder);
    io::make_folder(folder / masks_folder);
  }

  void add(const Scene& scene) {
    const DrawnScene drawn = draw_scene(scene, what_.side);
    const std::string name = scene_file(scene.index);
    write_bytes(folder_ / images_folder / name, io::encode_png(drawn.image));
    write_bytes(folder_ / masks_folder / name, io::encode_gray_png(drawn.objects, what_.side, what_.side));
    for (const std::string& caption : scene_captions(scene, what_.captions)) {
      captions_.add({{"id", ++last_caption_}, {"image_id", scene.index}, {"caption", caption}});
    }
    for (std::size_t i = 0; i < scene.objects.size(); ++i) {
      add_instance(scene, i, drawn);
    }
    for (const SceneQuestion& question : scene_questions(scene, what_.questions)) {
      add_question(scene, question, drawn);
    }
    scenes_.add(json_of(scene, drawn));
    count_.write(fmt::format("{}/{},{}\n", images_folder, name, scene.objects.size()));
    if (kind_) {
      kind_->write(fmt::format("{}/{},{}\n", images_folder, name, name_of(scene.objects[0].kind)));
    }
  }

  ScenesWritten finish() {
    captions_.finish();
    instances_.finish();
    heads_.finish();
    questions_.finish();
    answers_.finish();
    scenes_.finish();
    count_.finish();
    if (kind_) {
      kind_->finish();
    }
    written_.accuracy_by_text = guess_.accuracy();
    return written_;
  }

 private:
  void add_instance(const Scene& scene, std::size_t i, const DrawnScene& drawn) {
    const SceneObject& object = scene.objects[i];
    const auto number = static_cast<std::int64_t>(i + 1);
    const auto record = [&](std::int64_t id, std::int64_t category, const std::vector<std::uint8_t>& mask) {
      return Json{{"id", id},
                  {"image_id", scene.index},
                  {"category_id", category},
                  {"bbox", coco_box(box_of_object(mask, what_.side, number))},
                  {"area", area_of_object(mask, number)},
                  {"iscrowd", 0},
                  {"segmentation", outlines_of_object(mask, what_.side, number)}};
    };
    Json instance = record(++last_instance_, static_cast<std::int64_t>(object.kind.shape) + 1, drawn.objects);
    instance["attributes"] = attributes_of(object);
    instances_.add(instance);
    if (object.kind.shape == SceneShape::bird) {
      Json head = record(++last_head_, 1, drawn.heads);
      head["object"] = number;
      heads_.add(head);
    }
  }

  void add_question(const Scene& scene, const SceneQuestion& question, const DrawnScene& drawn) {
    const std::int64_t id = ++written_.questions;
    questions_.add({{"image_id", scene.index}, {"question", question.text}, {"question_id", id}});
    Json answers = Json::array();
    for (int person = 1; person <= answers_of_a_question; ++person) {
      answers.push_back({{"answer", question.answer}, {"answer_confidence", "yes"}, {"answer_id", person}});
    }
    Json numbers = Json::array();
    Json boxes = Json::array();
    for (const std::size_t i : question.about) {
      numbers.push_back(i + 1);
      boxes.push_back(coco_box(box_of_object(question.about_heads ? drawn.heads : drawn.objects, what_.side,
                                             static_cast<std::int64_t>(i + 1))));
    }
    answers_.add({{"question_id", id},
                  {"image_id", scene.index},
                  {"question_type", name_of(question.type)},
                  {"answer_type", answer_type(question.answer)},
                  {"multiple_choice_answer", question.answer},
                  {"answers", answers},
                  {"objects", numbers},
                  {"boxes", boxes}});
    if (2 * (scene.index - what_.first) < what_.count) {
      guess_.learn(question);
    } else {
      guess_.guess(question);
    }
  }

  // VQA v2's kinds of answers.
  static std::string_view answer_type(const std::string& answer) {
    if (answer == "yes" || answer == "no") {
      return "yes/no";
    }
    return std::ranges::all_of(answer, [](char c) { return c >= '0' && c <= '9'; }) ? "number" : "other";
  }

  fs::path folder_;
  const SceneFolder& what_;
  RecordFile captions_;
  RecordFile instances_;
  RecordFile heads_;
  RecordFile questions_;
  RecordFile answers_;
  RecordFile scenes_;
  PlainFile count_;
  std::optional<PlainFile> kind_;
  std::int64_t last_caption_ = 0;
  std::int64_t last_instance_ = 0;
  std::int64_t last_head_ = 0;
  ScenesWritten written_;
  GuessByText guess_;
};

}  // namespace

ScenesWritten write_scenes(const fs::path& folder, const SceneFolder& what,
                           const std::function<void(std::int64_t done)>& advance) {
  SceneFiles files(folder, what);
  for (std::int64_t i = 0; i < what.count; ++i) {
    files.add(sample_scene(what.scenes, what.first + i));
    if (advance) {
      advance(i + 1);
    }
  }
  return files.finish();
}

bool is_scene_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / scenes_file, error) && fs::is_directory(folder / images_folder, error) &&
         fs::is_directory(folder / masks_folder, error);
}

fs::path foreign_in_scenes(const fs::path& folder) {
  const std::set<std::string> own = {images_folder, masks_folder,   captions_file, instances_file,
                                     heads_file,    questions_file, answers_file,  scenes_file,
                                     counts_file,   kinds_file,     scene_preview};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!own.contains(entry.path().filename().string())) {
      return entry.path();
    }
  }
  for (const char* part : {images_folder, masks_folder}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / part)) {
      const std::string number = entry.path().stem().string();
      if (entry.path().extension() != ".png" ||
          !std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; })) {
        return entry.path();
      }
    }
  }
  return {};
}

}  // namespace vitrail::data
