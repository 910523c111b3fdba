#include "vitrail/data/scenes/questions.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "vitrail/data/scenes/mention.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/data/scenes/wordings.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

constexpr std::int64_t tries = 24;         // to find a question with an answer
constexpr std::int64_t often_counted = 5;  // numbers below this are equally frequent answers
constexpr std::int64_t about_as_near = scene_side / 16;

using Asked = std::optional<SceneQuestion>;

std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }

// Twice the middle of an object, so that it needs no rounding.
std::pair<std::int64_t, std::int64_t> middle_of(const SceneObject& object) {
  return {object.box.left + object.box.right, object.box.top + object.box.bottom};
}

// By how much two objects are apart, along the axis on which that is more.
std::int64_t distance_of(const SceneObject& a, const SceneObject& b) {
  const auto [ax, ay] = middle_of(a);
  const auto [bx, by] = middle_of(b);
  return std::max(std::abs(ax - bx), std::abs(ay - by)) / 2;
}

// The corner of the scene that an object lies in: "top left".
std::string corner_of(const SceneObject& object) {
  const auto [x, y] = middle_of(object);
  return fmt::format("{} {}", y < scene_side ? "top" : "bottom", x < scene_side ? "left" : "right");
}

// What is drawn for one purpose in a scene.
Draws draws_for(const Scene& scene, std::string_view purpose) {
  return Draws(Philox(mix(scene.seed, hash(purpose)), static_cast<std::uint64_t>(scene.index)));
}

class Asker {
 public:
  explicit Asker(const Scene& scene) : scene_(scene), draws_(draws_for(scene, "questions about a scene")) {}

  Asked ask(SceneQuestionType type) {
    switch (type) {
      case SceneQuestionType::count:
        return count();
      case SceneQuestionType::existence:
        return existence();
      case SceneQuestionType::background:
        return background();
      case SceneQuestionType::attribute:
        return attribute();
      case SceneQuestionType::part:
        return part();
      case SceneQuestionType::relation:
        return relation();
      case SceneQuestionType::comparison:
        return comparison();
      case SceneQuestionType::species:
        return species();
    }
    return {};
  }

 private:
  bool coin() { return draws_.integer(0, 2) == 0; }
  template <class Items>
  const auto& one_of(const Items& items) {
    return items[static_cast<std::size_t>(draws_.integer(0, std::ssize(items)))];
  }
  SceneShape any_shape() { return static_cast<SceneShape>(draws_.integer(0, std::ssize(scene_shapes))); }
  SceneColor any_color() { return static_cast<SceneColor>(draws_.integer(0, std::ssize(scene_colors))); }

  // The first of some drawn questions that has this answer; the last of them if none has it.
  Asked with_answer(const std::string& answer, const std::function<Asked()>& drawn) {
    Asked question;
    for (std::int64_t i = 0; i < tries && !(question && question->answer == answer); ++i) {
      if (Asked next = drawn()) {
        question = std::move(next);
      }
    }
    return question;
  }

  // Attributes of something that may or may not be there.
  Mention any_mention() {
    Mention mention{.shape = coin() ? one_of(scene_.objects).kind.shape : any_shape()};
    if (coin()) {
      mention.color = coin() ? one_of(scene_.objects).kind.color : any_color();
    }
    if (draws_.integer(0, 4) == 0) {
      mention.size = coin() ? SceneSize::small : SceneSize::large;
    }
    return mention;
  }

  // The shortest of some descriptions that fits this object and no other.
  std::optional<Mention> unique(std::size_t object, const std::vector<Mention>& mentions) const {
    for (const Mention& mention : mentions) {
      if (objects_that_fit(scene_, mention) == std::vector{object}) {
        return mention;
      }
    }
    return {};
  }

  Asked count() {
    return with_answer(std::to_string(draws_.integer(0, often_counted)), [&] {
      Mention mention = any_mention();
      if (coin()) {  // there are more things than birds
        mention.shape.reset();
      }
      const std::vector<std::size_t> found = objects_that_fit(scene_, mention);
      return Asked({.type = SceneQuestionType::count,
                    .text = fmt::format("how many {} are there?", mention.plural()),
                    .answer = std::to_string(found.size()),
                    .about = found});
    });
  }

  Asked existence() {
    return with_answer(yes_or_no(coin()), [&] {
      Mention mention = any_mention();
      mention.color = mention.color.value_or(any_color());
      const std::vector<std::size_t> found = objects_that_fit(scene_, mention);
      return Asked({.type = SceneQuestionType::existence,
                    .text = fmt::format("is there {}?", with_article(mention.words())),
                    .answer = yes_or_no(!found.empty()),
                    .about = found});
    });
  }

  Asked background() {
    const SceneBackground& behind = scene_.background;
    const bool ground = behind.ground && coin();
    return Asked({.type = SceneQuestionType::background,
                  .text = fmt::format("what colour is the {}?", !behind.ground ? "background"
                                                                : ground       ? "ground"
                                                                               : "sky"),
                  .answer = std::string(name_of(ground ? *behind.ground : behind.sky))});
  }

  Asked attribute() {
    const auto at = static_cast<std::size_t>(draws_.integer(0, std::ssize(scene_.objects)));
    const SceneObject& object = scene_.objects[at];
    const auto [color, shape] = object.kind;
    std::string asked;
    std::string answer;
    std::vector<Mention> mentions;
    switch (draws_.integer(0, 4)) {
      case 0:
        asked = "shape";
        answer = name_of(shape);
        mentions = {{.color = color}, {.size = object.size, .color = color}};
        break;
      case 1:
        asked = "size";
        answer = name_of(object.size);
        mentions = {{.shape = shape}, {.color = color, .shape = shape}};
        break;
      default:
        asked = "colour";
        answer = name_of(color);
        mentions = {{.shape = shape}, {.size = object.size, .shape = shape}};
        break;
    }
    const auto mention = unique(at, mentions);
    if (!mention) {
      return {};
    }
    return Asked({.type = SceneQuestionType::attribute,
                  .text = fmt::format("what {} is the {}?", asked, mention->words()),
                  .answer = std::move(answer),
                  .about = {at}});
  }

  Asked part() {
    const std::vector<std::size_t> birds = objects_that_fit(scene_, {.shape = SceneShape::bird});
    if (birds.empty()) {
      return {};
    }
    const std::size_t at = one_of(birds);
    const SceneObject& bird = scene_.objects[at];
    const auto mention = unique(at, {{.shape = SceneShape::bird},
                                     {.size = bird.size, .shape = SceneShape::bird},
                                     {.color = bird.kind.color, .shape = SceneShape::bird},
                                     {.size = bird.size, .color = bird.kind.color, .shape = SceneShape::bird}});
    if (!mention) {
      return {};
    }
    SceneQuestion question{
        .type = SceneQuestionType::part, .text = {}, .answer = {}, .about = {at}, .part = ScenePart::head};
    const std::int64_t which = draws_.integer(0, 4);
    if (which == 0) {
      question.text = fmt::format("which way does the {} face?", mention->words());
      question.answer = bird.faces_left ? "left" : "right";
    } else {
      const bool beak = which == 1;
      question.text = fmt::format("what colour is the {} of the {}?", beak ? "beak" : "head", mention->words());
      question.answer = name_of(beak ? bird.beak : bird.head);
      question.part = beak ? ScenePart::beak : ScenePart::head;
    }
    return question;
  }

  Asked relation() {
    const std::int64_t wanted = draws_.integer(0, std::ssize(scene_shapes) + 1);
    const std::string answer = wanted < std::ssize(scene_shapes)
                                   ? std::string(scene_shapes[static_cast<std::size_t>(wanted)])
                                   : std::string("nothing");
    return with_answer(answer, [&]() -> Asked {
      const auto at = static_cast<std::size_t>(draws_.integer(0, std::ssize(scene_.objects)));
      const SceneObject& anchor = scene_.objects[at];
      const auto relation = static_cast<SceneRelation>(draws_.integer(0, std::ssize(scene_relations)));
      const auto [color, shape] = anchor.kind;
      const auto mention =
          unique(at, {{.color = color, .shape = shape}, {.size = anchor.size, .color = color, .shape = shape}});
      if (!mention) {
        return {};
      }
      std::vector<std::size_t> there;  // on that side, the nearest first
      for (std::size_t i = 0; i < scene_.objects.size(); ++i) {
        if (i != at && relation_of(scene_.objects[i], anchor) == relation) {
          there.push_back(i);
        }
      }
      const auto distance = [&](std::size_t i) { return distance_of(scene_.objects[i], anchor); };
      std::ranges::stable_sort(there, std::less<>(), distance);
      const auto also_near = [&](std::size_t i) {
        return distance(i) - distance(there[0]) < about_as_near &&
               scene_.objects[i].kind.shape != scene_.objects[there[0]].kind.shape;
      };
      if (std::ranges::any_of(there, also_near)) {
        return {};
      }
      SceneQuestion question{.type = SceneQuestionType::relation,
                             .text = fmt::format("what is {} the {}?", name_of(relation), mention->words()),
                             .answer = "nothing",
                             .about = {at}};
      if (!there.empty()) {
        question.answer = name_of(scene_.objects[there[0]].kind.shape);
        question.about.push_back(there[0]);
      }
      return question;
    });
  }

  Asked comparison() {
    return with_answer(yes_or_no(coin()), [&]() -> Asked {
      const SceneShape first = any_shape();
      const SceneShape second = any_shape();
      if (first == second) {
        return {};
      }
      std::vector<std::size_t> about = objects_that_fit(scene_, {.shape = first});
      const std::vector<std::size_t> others = objects_that_fit(scene_, {.shape = second});
      const auto more = about.size() > others.size();
      about.insert(about.end(), others.begin(), others.end());
      return Asked({.type = SceneQuestionType::comparison,
                    .text = fmt::format("are there more {} than {}?", Mention{.shape = first}.plural(),
                                        Mention{.shape = second}.plural()),
                    .answer = yes_or_no(more),
                    .about = std::move(about)});
    });
  }

  Asked species() {
    return with_answer(yes_or_no(coin()), [&]() -> Asked {
      // Birds that are alone in their corners.
      std::vector<std::size_t> birds = objects_that_fit(scene_, {.shape = SceneShape::bird});
      const std::vector<std::size_t> all = birds;
      std::erase_if(birds, [&](std::size_t i) {
        return std::ranges::any_of(
            all, [&](std::size_t j) { return i != j && corner_of(scene_.objects[i]) == corner_of(scene_.objects[j]); });
      });
      if (birds.size() < 2) {
        return {};
      }
      const std::size_t a = one_of(birds);
      const std::size_t b = one_of(birds);
      if (a == b) {
        return {};
      }
      return Asked({.type = SceneQuestionType::species,
                    .text = fmt::format("is the {} bird the same species as the {} bird?", corner_of(scene_.objects[a]),
                                        corner_of(scene_.objects[b])),
                    .answer = yes_or_no(same_species(scene_.objects[a], scene_.objects[b])),
                    .about = {a, b}});
    });
  }

  const Scene& scene_;
  Draws draws_;
};

}  // namespace

std::vector<SceneQuestion> scene_questions(const Scene& scene, std::int64_t count, bool paraphrase) {
  std::vector<SceneQuestion> questions;
  if (scene.objects.empty()) {
    return questions;
  }
  Asker asker(scene);
  constexpr std::int64_t types = std::ssize(scene_question_types);
  const std::int64_t first = scene.index % types;  // all types are equally frequent, however few are asked
  for (std::int64_t i = 0; std::ssize(questions) < count && i < tries * types; ++i) {
    Asked question = asker.ask(static_cast<SceneQuestionType>((first + i) % types));
    const auto same = [&](const SceneQuestion& other) { return other.text == question->text; };
    if (question && std::ranges::none_of(questions, same)) {
      questions.push_back(std::move(*question));
    }
  }
  if (paraphrase) {
    Draws draws = draws_for(scene, "wordings of questions about a scene");
    for (SceneQuestion& question : questions) {
      const std::vector<std::string> wordings = wordings_of(question.text);
      question.text = wordings[static_cast<std::size_t>(draws.integer(0, std::ssize(wordings)))];
    }
  }
  return questions;
}

void GuessByText::guess(const SceneQuestion& question) {
  ++guessed_;
  const auto answers = seen_.find(question.text);
  if (answers != seen_.end()) {
    const auto most = std::ranges::max_element(answers->second, {}, [](const auto& entry) { return entry.second; });
    right_ += most->first == question.answer ? 1 : 0;
  }
}

std::vector<std::string> scene_answers() {
  std::set<std::string> answers = {"yes", "no", "nothing", "left", "right"};
  answers.insert(scene_colors.begin(), scene_colors.end());
  answers.insert(scene_shapes.begin(), scene_shapes.end());
  answers.insert(scene_sizes.begin(), scene_sizes.end());
  for (std::int64_t i = 0; i <= most_scene_objects; ++i) {
    answers.insert(std::to_string(i));
  }
  return {answers.begin(), answers.end()};
}

}  // namespace vitrail::data
