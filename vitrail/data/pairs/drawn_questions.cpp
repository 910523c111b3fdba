#include "vitrail/data/pairs/drawn_questions.h"

#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "vitrail/data/pairs/places.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/questions.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/side_by_side.h"

namespace vitrail::data {
namespace {

std::vector<Question> questions_about(const Scene& scene, const SceneFolder& what, bool boxes) {
  std::vector<Question> result;
  const DrawnScene drawn = boxes ? draw_scene(scene, what.side) : DrawnScene();
  for (SceneQuestion& asked : scene_questions(scene, what.questions, what.paraphrase)) {
    Question question{.id = 0,
                      .text = std::move(asked.text),
                      .answers = {asked.answer},
                      .answer = asked.answer,
                      .type = std::string(name_of(asked.type)),
                      .about = {}};
    if (boxes) {
      question.about = drawn_boxes(mask_of(drawn, asked.part), what.side, asked.about);
    }
    result.push_back(std::move(question));
  }
  return result;
}

}  // namespace

ImageQuestions drawn_questions(const std::filesystem::path& source, const std::string& split, bool boxes) {
  SceneFolder what = read_scene_source(source, {"captions"});
  check(what.style == SceneStyle::shapes, "{}: there are no questions about scenes of cells", source.string());
  std::tie(what.first, what.count) = range_of_part(what, split);
  Listing listing;
  ImageQuestions result;
  for (std::int64_t i = 0; i < what.count; ++i) {
    listing.names.push_back(scene_file(what.first + i));
  }
  result.questions.resize(static_cast<std::size_t>(what.count));
  side_by_side(result.questions.size(), static_cast<int>(std::thread::hardware_concurrency()), [&](std::size_t i) {
    const Scene scene = sample_scene(what.scenes, what.first + static_cast<std::int64_t>(i));
    result.questions[i] = questions_about(scene, what, boxes);
  });
  std::int64_t id = 0;
  for (std::vector<Question>& own : result.questions) {
    for (Question& question : own) {
      question.id = ++id;
    }
  }
  listing.labels.assign(listing.names.size(), unlabeled);
  listing.file = [source](std::int64_t) { return source; };
  listing.image = [what](std::int64_t i) { return scene_image(what, what.first + i); };
  result.images = dataset_of(std::move(listing));
  return result;
}

}  // namespace vitrail::data
