/// \file
/// Questions about scenes, with their answers and what they are about.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/scenes/scene.h"

namespace vitrail::data {

enum class SceneQuestionType { count, existence, background, attribute, part, relation, comparison, species };
inline constexpr std::array<std::string_view, 8> scene_question_types = {
    "count", "existence", "background", "attribute", "part", "relation", "comparison", "species"};
inline std::string_view name_of(SceneQuestionType type) { return scene_question_types[static_cast<std::size_t>(type)]; }

struct SceneQuestion {
  SceneQuestionType type = SceneQuestionType::count;
  std::string text;
  std::string answer;
  std::vector<std::size_t> about = {};  ///< objects, by their places in the scene; of the background: none
  ScenePart part = ScenePart::whole;    ///< of these objects
};

/// Questions of each type in turn, `count` in all or as many as the scene allows, which follow from the scene alone:
/// - count: "how many small birds are there?" (0, 1 …),
/// - existence: "is there a red circle?",
/// - background: "what colour is the sky?",
/// - attribute: "what colour is the small circle?", "what shape …", "what size …" (of the one object that is meant),
/// - part: "what colour is the head of the large bird?", the beak, or the side that it faces,
/// - relation: "what is left of the red circle?" (the shape of the nearest such object, or nothing; not asked where
///   two of different shapes are about equally near),
/// - comparison: "are there more circles than birds?",
/// - species: "is the top right bird the same species as the bottom left bird?" (by body and head).
///
/// The answer is drawn first, each as often as the others, and a question is looked for that has it: what most
/// questions of a type would have for an answer tells little of one. With `paraphrase` the same questions stand in one
/// of their wordings_of() each, drawn from the scene's seed and index too.
std::vector<SceneQuestion> scene_questions(const Scene& scene, std::int64_t count = 8, bool paraphrase = false);

/// How well questions are answered by their text alone: each with the answer that its text had most often before.
class GuessByText {
 public:
  void learn(const SceneQuestion& question) { ++seen_[question.text][question.answer]; }
  /// Counts a question, and whether the guess is its answer.
  void guess(const SceneQuestion& question);
  std::int64_t guessed() const { return guessed_; }
  /// The share of right guesses; 0 if there were none.
  double accuracy() const { return guessed_ > 0 ? static_cast<double>(right_) / static_cast<double>(guessed_) : 0; }

 private:
  std::map<std::string, std::map<std::string, std::int64_t>> seen_;
  std::int64_t guessed_ = 0;
  std::int64_t right_ = 0;
};

/// All answers that there are, by alphabet.
std::vector<std::string> scene_answers();

}  // namespace vitrail::data
