#include "vitrail/data/scenes/questions.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "vitrail/data/scenes/mention.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/data/scenes/wordings.h"

namespace vitrail::data {
namespace {

// The words of a text without its question mark.
std::vector<std::string> words_of(std::string text) {
  EXPECT_EQ(text.back(), '?') << text;
  text.pop_back();
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

// What the words [begin, end) describe, singular or plural, read back.
std::vector<const SceneObject*> described(const Scene& scene, const std::vector<std::string>& words, std::size_t begin,
                                          std::size_t end) {
  std::vector<const SceneObject*> found;
  for (const SceneObject& object : scene.objects) {
    const bool fits = std::all_of(words.begin() + static_cast<std::ptrdiff_t>(begin),
                                  words.begin() + static_cast<std::ptrdiff_t>(end), [&](std::string word) {
                                    word = word.ends_with("s") ? word.substr(0, word.size() - 1) : word;
                                    return word == "thing" || word == name_of(object.size) ||
                                           word == name_of(object.kind.color) || word == name_of(object.kind.shape);
                                  });
    if (fits) {
      found.push_back(&object);
    }
  }
  return found;
}

std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }

// The answer as it follows from the text and the scene, without the code that asks.
std::string answer_to(const Scene& scene, const SceneQuestion& question) {
  const std::vector<std::string> words = words_of(question.text);
  const std::size_t end = words.size();
  const auto only = [&](std::size_t first, std::size_t last) {
    const auto found = described(scene, words, first, last);
    EXPECT_EQ(found.size(), 1U) << question.text;
    return *found.at(0);
  };
  switch (question.type) {
    case SceneQuestionType::count:  // how many … are there
      return std::to_string(described(scene, words, 2, end - 2).size());
    case SceneQuestionType::existence:  // is there a …
      return yes_or_no(!described(scene, words, 3, end).empty());
    case SceneQuestionType::background:  // what colour is the …
      EXPECT_EQ(words.back() == "background", !scene.background.ground) << question.text;
      return std::string(name_of(words.back() == "ground" ? *scene.background.ground : scene.background.sky));
    case SceneQuestionType::attribute: {  // what … is the …
      const SceneObject object = only(4, end);
      return std::string(words[1] == "colour"  ? name_of(object.kind.color)
                         : words[1] == "shape" ? name_of(object.kind.shape)
                                               : name_of(object.size));
    }
    case SceneQuestionType::part: {
      if (words[1] == "way") {  // which way does the … face
        return only(4, end - 1).faces_left ? "left" : "right";
      }
      const SceneObject bird = only(7, end);  // what colour is the head of the …
      return std::string(name_of(words[4] == "head" ? bird.head : bird.beak));
    }
    case SceneQuestionType::relation: {  // what is left of the …
      const auto the = static_cast<std::size_t>(std::ranges::find(words, "the") - words.begin());
      const SceneObject anchor = only(the + 1, end);
      std::map<std::int64_t, std::string> by_distance;
      for (const SceneObject& object : scene.objects) {
        const auto relation = relation_of(object, anchor);
        if (!(object == anchor) && relation && name_of(*relation).substr(0, 4) == words[2].substr(0, 4)) {
          const std::int64_t x = std::abs(object.box.left + object.box.right - anchor.box.left - anchor.box.right);
          const std::int64_t y = std::abs(object.box.top + object.box.bottom - anchor.box.top - anchor.box.bottom);
          by_distance[std::max(x, y)] = name_of(object.kind.shape);
        }
      }
      return by_distance.empty() ? "nothing" : by_distance.begin()->second;
    }
    case SceneQuestionType::comparison: {  // are there more … than …
      const auto than = static_cast<std::size_t>(std::ranges::find(words, "than") - words.begin());
      return yes_or_no(described(scene, words, 3, than).size() > described(scene, words, than + 1, end).size());
    }
    case SceneQuestionType::species: {  // is the top right bird the same species as the bottom left bird
      const auto bird_in = [&](const std::string& row, const std::string& column) {
        std::vector<SceneObject> there;
        for (const SceneObject& object : scene.objects) {
          if (object.kind.shape == SceneShape::bird &&
              (object.box.top + object.box.bottom < scene_side) == (row == "top") &&
              (object.box.left + object.box.right < scene_side) == (column == "left")) {
            there.push_back(object);
          }
        }
        EXPECT_EQ(there.size(), 1U) << question.text;
        return there.at(0);
      };
      const SceneObject a = bird_in(words[2], words[3]);
      const SceneObject b = bird_in(words[10], words[11]);
      return yes_or_no(a.kind.color == b.kind.color && a.head == b.head);
    }
  }
  return "";
}

TEST(SceneQuestions, HaveTheAnswersThatFollowFromTheScene) {
  const std::vector<std::string> answers = scene_answers();
  std::map<SceneQuestionType, std::map<std::string, int>> given;
  GuessByText guess;
  for (std::int64_t index = 0; index < 2000; ++index) {
    const Scene scene = sample_scene({}, index);
    const std::vector<SceneQuestion> questions = scene_questions(scene);
    EXPECT_EQ(questions.size(), 8U);
    std::set<std::string> texts;
    for (const SceneQuestion& question : questions) {
      EXPECT_EQ(question.answer, answer_to(scene, question)) << index << ": " << question.text;
      EXPECT_TRUE(std::ranges::binary_search(answers, question.answer)) << question.answer;
      EXPECT_TRUE(texts.insert(question.text).second) << question.text;
      ++given[question.type][question.answer];
      index < 1000 ? guess.learn(question) : guess.guess(question);
    }
  }
  EXPECT_EQ(given.size(), scene_question_types.size());
  for (const auto type : {SceneQuestionType::existence, SceneQuestionType::comparison, SceneQuestionType::species}) {
    const int yes = given[type]["yes"];
    const int no = given[type]["no"];
    EXPECT_GT(yes, 0.35 * (yes + no)) << name_of(type);
    EXPECT_GT(no, 0.35 * (yes + no)) << name_of(type);
  }
  EXPECT_EQ(guess.guessed(), 8000);
  EXPECT_LT(guess.accuracy(), 0.4);
  EXPECT_GT(guess.accuracy(), 0.2);
  EXPECT_LE(answers.size(), 35U);
}

TEST(SceneQuestions, AreAboutObjectsThatCarryTheAnswer) {
  for (std::int64_t index = 0; index < 300; ++index) {
    const Scene scene = sample_scene({}, index);
    for (const SceneQuestion& question : scene_questions(scene)) {
      for (const std::size_t object : question.about) {
        ASSERT_LT(object, scene.objects.size());
      }
      if (question.type == SceneQuestionType::count) {
        EXPECT_EQ(std::to_string(question.about.size()), question.answer);
      } else if (question.type == SceneQuestionType::part) {
        EXPECT_EQ(question.part, question.text.find("beak") == std::string::npos ? ScenePart::head : ScenePart::beak);
        EXPECT_EQ(scene.objects[question.about.at(0)].kind.shape, SceneShape::bird);
      } else if (question.type == SceneQuestionType::relation) {
        EXPECT_EQ(question.about.size(), question.answer == "nothing" ? 1U : 2U);
      } else if (question.type == SceneQuestionType::background) {
        EXPECT_TRUE(question.about.empty());
      }
    }
  }
}

TEST(SceneQuestions, FollowFromTheSceneAlone) {
  const Scene scene = sample_scene({}, 3);
  const auto texts = [](const std::vector<SceneQuestion>& questions) {
    std::vector<std::string> result;
    for (const SceneQuestion& question : questions) {
      result.push_back(question.text + question.answer);
    }
    return result;
  };
  const auto eight = texts(scene_questions(scene));
  EXPECT_EQ(texts(scene_questions(scene)), eight);
  EXPECT_EQ(texts(scene_questions(scene, 3)), std::vector(eight.begin(), eight.begin() + 3));
  EXPECT_TRUE(scene_questions(scene, 0).empty());
  EXPECT_TRUE(scene_questions({}, 8).empty());
}

// The words of a text that tell what it is about, in their order.
std::vector<std::string> telling_words(std::string text) {
  std::erase(text, '?');
  std::vector<std::string> words = words_of(text + "?");
  const auto says_little = [](std::string& word) {
    word = word.ends_with("s") && word != "is" ? word.substr(0, word.size() - 1) : word;
    word = word == "object" ? "thing" : word;
    const auto among = [&](const auto& names) { return std::ranges::find(names, word) != names.end(); };
    return !among(scene_colors) && !among(scene_shapes) &&
           !among(std::set<std::string>{"thing", "head", "beak", "sky", "ground", "background", "top", "bottom"});
  };
  std::erase_if(words, says_little);
  return words;
}

TEST(SceneQuestions, AreTheSameInOtherWords) {
  std::map<SceneQuestionType, int> reworded;
  for (std::int64_t index = 0; index < 300; ++index) {
    const Scene scene = sample_scene({}, index);
    const std::vector<SceneQuestion> plain = scene_questions(scene);
    const std::vector<SceneQuestion> other = scene_questions(scene, 8, true);
    ASSERT_EQ(other.size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(other[i].type, plain[i].type);
      EXPECT_EQ(other[i].answer, plain[i].answer);
      EXPECT_EQ(other[i].about, plain[i].about);
      EXPECT_EQ(other[i].part, plain[i].part);
      EXPECT_EQ(telling_words(other[i].text), telling_words(plain[i].text)) << other[i].text;
      reworded[plain[i].type] += other[i].text == plain[i].text ? 0 : 1;
      EXPECT_GE(wordings_of(plain[i].text).size(), 3U) << plain[i].text;
      EXPECT_EQ(wordings_of(plain[i].text).front(), plain[i].text);
    }
  }
  for (const auto& [type, count] : reworded) {
    EXPECT_GT(count, 30) << name_of(type);
  }
  EXPECT_EQ(reworded.size(), scene_question_types.size());
}

TEST(WordingsOf, KeepWhatIsAskedAbout) {
  const auto has = [](const char* question, const char* wording) {
    return std::ranges::count(wordings_of(question), wording) == 1;
  };
  EXPECT_TRUE(has("how many small birds are there?", "how many small birds are in this image?"));
  EXPECT_TRUE(has("how many red things are there?", "how many red objects do you see?"));
  EXPECT_TRUE(has("what colour is the sky?", "what is the colour of the sky?"));
  EXPECT_TRUE(has("what colour is the head of the large bird?", "what is the color of the head of the large bird?"));
  EXPECT_TRUE(has("is the top right bird the same species as the bottom left bird?",
                  "are the top right bird and the bottom left bird of the same species?"));
  EXPECT_TRUE(has("what is left of the red circle?", "what is to the left of the red circle?"));
  EXPECT_EQ(wordings_of("who are you?"), std::vector<std::string>{"who are you?"});
  EXPECT_EQ(wordings_of("what colour is the ?").size(), 1U);
  EXPECT_EQ(wordings_of("how many  are there?").size(), 1U);
  EXPECT_EQ(wordings_of("").size(), 1U);
}

TEST(GuessByText, TakesTheMostFrequentAnswer) {
  GuessByText guess;
  const auto question = [](const char* text, const char* answer) {
    return SceneQuestion{.type = SceneQuestionType::count, .text = text, .answer = answer};
  };
  EXPECT_EQ(guess.accuracy(), 0);
  for (const char* answer : {"1", "2", "2"}) {
    guess.learn(question("how many?", answer));
  }
  guess.guess(question("how many?", "2"));
  guess.guess(question("how many?", "1"));
  guess.guess(question("why?", "1"));
  guess.guess(question("how many?", "2"));
  EXPECT_EQ(guess.accuracy(), 0.5);
}

}  // namespace
}  // namespace vitrail::data
