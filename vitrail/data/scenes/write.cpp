#include "vitrail/data/scenes/write.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/scenes/describe.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/questions.h"
#include "vitrail/data/scenes/record_file.h"
#include "vitrail/data/scenes/records.h"
#include "vitrail/io/file.h"
#include "vitrail/io/gray_png.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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
  return {{"info", scene_info(what)}, {"images", scene_images(what)}, {"categories", categories}};
}

constexpr int answers_of_a_question = 10;

Json vqa_head(const SceneFolder& what) {
  return {{"info", scene_info(what)}, {"task_type", "Open-Ended"}, {"data_type", "scenes"}};
}

// The files of a scene folder, which grow scene by scene.
class SceneFiles {
 public:
  SceneFiles(const fs::path& folder, const SceneFolder& what)
      : folder_(folder),
        what_(what),
        captions_(folder / captions_file, {{"info", scene_info(what)}, {"images", scene_images(what)}}, "annotations"),
        instances_(folder / instances_file, coco_head(what, categories_of_shapes()), "annotations"),
        heads_(folder / heads_file, coco_head(what, one_category("head")), "annotations"),
        questions_(folder / questions_file, vqa_head(what), "questions"),
        answers_(folder / answers_file, vqa_head(what), "annotations"),
        scenes_(folder / scenes_file, {{"info", scene_info(what)}}, "scenes"),
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
    for (const SceneCaption& caption : scene_captions(scene, what_.captions)) {
      captions_.add({{"id", ++last_caption_},
                     {"image_id", scene.index},
                     {"caption", caption.text},
                     {"boxes", boxes_of(drawn.objects, caption.about)}});
    }
    for (std::size_t i = 0; i < scene.objects.size(); ++i) {
      add_instance(scene, i, drawn);
    }
    for (const SceneQuestion& question : scene_questions(scene, what_.questions, what_.paraphrase)) {
      add_question(scene, question, drawn);
    }
    scenes_.add(scene_record(scene, drawn, name));
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
    for (const std::size_t i : question.about) {
      numbers.push_back(i + 1);
    }
    answers_.add({{"question_id", id},
                  {"image_id", scene.index},
                  {"question_type", name_of(question.type)},
                  {"answer_type", answer_type(question.answer)},
                  {"multiple_choice_answer", question.answer},
                  {"answers", answers},
                  {"objects", numbers},
                  {"boxes", boxes_of(mask_of(drawn, question.part), question.about)}});
    if (2 * (scene.index - what_.first) < what_.count) {
      guess_.learn(question);
    } else {
      guess_.guess(question);
    }
  }

  Json boxes_of(const std::vector<std::uint8_t>& mask, const std::vector<std::size_t>& objects) const {
    Json boxes = Json::array();
    for (const SceneBox& box : boxes_of_objects(mask, what_.side, objects)) {
      boxes.push_back(coco_box(box));
    }
    return boxes;
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
  if (what.style == SceneStyle::cells || what.scenes.task != SceneTask::none) {
    (what.style == SceneStyle::cells ? write_cells : write_classes)(folder, what, advance);
    return {};
  }
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
  const auto has = [&](const char* first, const char* second) {
    return fs::is_directory(folder / first, error) && fs::is_directory(folder / second, error);
  };
  return fs::is_regular_file(folder / scenes_file, error) &&
         (has(images_folder, masks_folder) || has(training_folder, validation_folder));
}

fs::path foreign_in_scenes(const fs::path& folder) {
  const std::set<std::string> files = {captions_file, instances_file, heads_file, questions_file, answers_file,
                                       scenes_file,   counts_file,    kinds_file, scene_preview};
  const std::set<std::string> folders = {images_folder, masks_folder, training_folder, validation_folder};
  const auto is_image = [](const fs::path& path) {
    return path.extension() == ".png" &&
           std::ranges::all_of(path.stem().string(), [](char c) { return c >= '0' && c <= '9'; });
  };
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!folders.contains(name) && !files.contains(name)) {
      return entry.path();
    }
    for (const fs::directory_entry& inner :
         folders.contains(name) ? fs::recursive_directory_iterator(entry.path()) : fs::recursive_directory_iterator()) {
      if (!inner.is_directory() && !is_image(inner.path())) {
        return inner.path();
      }
    }
  }
  return {};
}

}  // namespace vitrail::data
