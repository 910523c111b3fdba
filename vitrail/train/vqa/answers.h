/// \file
/// What a network for questions is trained on and measured by: tokens, known answers, loss and accuracy.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/pairs/question_batches.h"
#include "vitrail/data/pairs/questions.h"
#include "vitrail/models/joint/vqa_folder.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::train {

/// The `most` most frequent answers of the questions, the most frequent first; 0: all.
std::vector<std::string> frequent_answers(const data::ImageQuestions& questions, std::int64_t most);

/// The numbers of the answers that a network knows.
class KnownAnswers {
 public:
  explicit KnownAnswers(const std::vector<std::string>& answers);
  std::int64_t count() const { return std::ssize(numbers_); }
  bool knows(const std::string& answer) const { return numbers_.contains(answer); }
  bool knows_any(const data::Question& question) const;
  /// Writes to out[count()] how often each known answer was given, as shares that sum to 1. Without a known answer all
  /// are 0.
  void shares(const data::Question& question, float* out) const;

 private:
  std::map<std::string, std::int64_t, std::less<>> numbers_;
};

/// The questions without those of which `can_answer` denies that an answer can be given, and their number; images that
/// are left without a question stay.
std::int64_t keep_answerable(data::ImageQuestions& questions,
                             const std::function<bool(const data::Question&)>& can_answer);

/// The tokens of all questions, each cut to `longest`.
data::QuestionTokens tokens_of(const data::ImageQuestions& questions, const text::Tokenizer& tokenizer,
                               std::int64_t longest);
/// How many questions, of all or of a batch, have a word that the tokenizer does not know.
std::int64_t with_unknown_words(const data::QuestionTokens& tokens, const text::Tokenizer& tokenizer);
std::int64_t with_unknown_words(const data::QuestionBatch& batch, const text::Tokenizer& tokenizer);

/// The input of a network that a batch is.
models::VqaInput input_of(const data::QuestionBatch& batch);
/// The questions of a batch in its order.
std::vector<const data::Question*> questions_of(const data::QuestionBatch& batch,
                                                const data::ImageQuestions& questions);
/// The mean cross-entropy of the shares of the answers that people gave (KnownAnswers::shares()), a scalar f32.
Tensor answer_loss(const Tensor& logits, const std::vector<const data::Question*>& questions,
                   const KnownAnswers& answers);

/// The questions of one type.
struct TypeAccuracy {
  std::string type;
  std::int64_t count = 0;
  double accuracy = 0;  ///< per cent, data::vqa_accuracy()
};

/// How well questions are answered.
struct AnswerEvaluation {
  std::int64_t images = 0;
  std::int64_t count = 0;  ///< questions
  double accuracy = 0;     ///< per cent, data::vqa_accuracy()
  /// Per cent, official_vqa_accuracy(), if every question has the ten answers of VQA's data.
  std::optional<double> official;
  bool disagree = false;  ///< whether people gave several answers to a question
  double loss = 0;        ///< mean cross-entropy, of questions with a known answer; NaN if there are none
  std::vector<TypeAccuracy> types;
  std::int64_t unseen = 0;                                  ///< questions of which no answer is known to the network
  std::int64_t unknown_words = 0;                           ///< questions with a word that it has never read
  std::vector<std::pair<std::int64_t, std::string>> given;  ///< the id and the answer to each question
  std::vector<std::string> broken;
};

/// Adds up accuracies by type.
class AnswerTally {
 public:
  void add(const data::Question& question, const std::string& given);
  /// Fills in count, accuracy, official, disagree, types and given.
  void finish(AnswerEvaluation& evaluation);

 private:
  std::map<std::string, std::pair<std::int64_t, double>> types_;
  double official_ = 0;
  bool has_official_ = true;
  bool disagree_ = false;
  std::vector<std::pair<std::int64_t, std::string>> given_;
};

/// Lines for people: the accuracy of each type, and what was not known.
std::string answer_table(const AnswerEvaluation& evaluation);

}  // namespace vitrail::train
