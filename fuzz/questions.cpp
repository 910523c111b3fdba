// Any bytes as questions about two images in VQA's layout, in turn as the questions and as their answers, and as a
// table: an Error, or questions about these images with answers.
#include "vitrail/data/pairs/questions.h"

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/error.h"

namespace {

constexpr const char* asked = R"({"questions": [{"question_id": 1, "image_id": 1, "question": "is it?"},
                                               {"question_id": 2, "image_id": 2, "question": "what?"}]})";
constexpr const char* answered = R"({"annotations": [
  {"question_id": 1, "image_id": 1, "multiple_choice_answer": "yes", "answers": [{"answer": "yes"}]},
  {"question_id": 2, "image_id": 2, "multiple_choice_answer": "no", "answers": [{"answer": "no"}]}]})";

void read_questions(const std::filesystem::path& source) {
  using namespace vitrail;
  try {
    const data::ImageQuestions read = data::open_questions(source);
    require(std::ssize(read.questions) == read.images->size() && read.count() > 0);
    for (const auto& own : read.questions) {
      require(!own.empty());
      for (const data::Question& question : own) {
        require(!question.answers.empty() && !question.answer.empty());
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace

FUZZ_TARGET(questions)(const std::uint8_t* data, std::size_t size) {
  static const Folder folder("questions");
  static const bool ready = [] {
    std::filesystem::create_directories(folder.path() / "images");
    for (const char* name : {"images/1.png", "images/2.png"}) {
      vitrail::io::write_png(folder.path() / name, vitrail::io::Image(20, 10));
    }
    return true;
  }();
  require(ready);
  const MemoryLimit limit;
  folder.write("questions.json", text_of(data, size));
  folder.write("annotations.json", answered);
  read_questions(folder.path() / "questions.json");
  folder.write("questions.json", asked);
  folder.write("annotations.json", text_of(data, size));
  read_questions(folder.path() / "questions.json");
  folder.write("questions.csv", text_of(data, size));
  read_questions(folder.path() / "questions.csv");
  return 0;
}
