#include "vitrail/train/vqa/answers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/wording.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/text/unknown.h"
#include "vitrail/train/vqa/official_accuracy.h"

namespace vitrail::train {

std::vector<std::string> frequent_answers(const data::ImageQuestions& questions, std::int64_t most) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& own : questions.questions) {
    for (const data::Question& question : own) {
      ++counts[question.answer];
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater{}, &std::pair<std::string, std::int64_t>::second);
  std::vector<std::string> answers;
  answers.reserve(sorted.size());
  for (auto& [answer, count] : sorted) {
    if (most == 0 || std::ssize(answers) < most) {
      answers.push_back(answer);
    }
  }
  return answers;
}

KnownAnswers::KnownAnswers(const std::vector<std::string>& answers) {
  for (const std::string& answer : answers) {
    numbers_.emplace(answer, std::ssize(numbers_));
  }
}

bool KnownAnswers::knows_any(const data::Question& question) const {
  return std::ranges::any_of(question.answers, [&](const std::string& answer) { return numbers_.contains(answer); });
}

void KnownAnswers::shares(const data::Question& question, float* out) const {
  std::fill_n(out, count(), 0.0F);
  float known = 0;
  for (const std::string& answer : question.answers) {
    if (const auto it = numbers_.find(answer); it != numbers_.end()) {
      out[it->second] += 1;
      ++known;
    }
  }
  for (std::int64_t i = 0; i < count() && known > 0; ++i) {
    out[i] /= known;
  }
}

std::int64_t keep_answerable(data::ImageQuestions& questions,
                             const std::function<bool(const data::Question&)>& can_answer) {
  std::int64_t left_out = 0;
  for (auto& own : questions.questions) {
    left_out += static_cast<std::int64_t>(std::erase_if(own, std::not_fn(can_answer)));
  }
  return left_out;
}

data::QuestionTokens tokens_of(const data::ImageQuestions& questions, const text::Tokenizer& tokenizer,
                               std::int64_t longest) {
  data::QuestionTokens tokens;
  tokens.reserve(questions.questions.size());
  for (const auto& own : questions.questions) {
    auto& of_image = tokens.emplace_back();
    of_image.reserve(own.size());
    for (const data::Question& question : own) {
      try {
        of_image.push_back(tokenizer.encode(question.text).ids);
      } catch (const Error& error) {
        fail("the question {}: {}", question.id, error.what());
      }
      of_image.back().resize(static_cast<std::size_t>(std::min(std::ssize(of_image.back()), longest)));
    }
  }
  return tokens;
}

std::int64_t with_unknown_words(const data::QuestionTokens& tokens, const text::Tokenizer& tokenizer) {
  const std::optional<std::int64_t> unknown = text::unknown_token(tokenizer);
  std::int64_t count = 0;
  for (const auto& of_image : tokens) {
    count += std::ranges::count_if(
        of_image, [&](const auto& ids) { return unknown && std::ranges::find(ids, *unknown) != ids.end(); });
  }
  return count;
}

std::int64_t with_unknown_words(const data::QuestionBatch& batch, const text::Tokenizer& tokenizer) {
  const std::optional<std::int64_t> unknown = text::unknown_token(tokenizer);
  const std::int64_t longest = batch.ids.size(1);
  std::int64_t count = 0;
  for (std::int64_t b = 0; unknown && b < batch.ids.size(0); ++b) {
    const std::int64_t* ids = batch.ids.data<std::int64_t>() + b * longest;
    count += std::find(ids, ids + longest, *unknown) != ids + longest ? 1 : 0;
  }
  return count;
}

models::VqaInput input_of(const data::QuestionBatch& batch) {
  return {batch.x, {batch.ids, batch.lengths, {}}, batch.rows, {}};
}

std::vector<const data::Question*> questions_of(const data::QuestionBatch& batch,
                                                const data::ImageQuestions& questions) {
  std::vector<const data::Question*> result;
  result.reserve(batch.places.size());
  const std::int64_t* rows = batch.rows.data<std::int64_t>();
  for (std::size_t b = 0; b < batch.places.size(); ++b) {
    const std::int64_t image = batch.indices[static_cast<std::size_t>(rows[b])];
    result.push_back(&questions.questions[static_cast<std::size_t>(image)][static_cast<std::size_t>(batch.places[b])]);
  }
  return result;
}

Tensor answer_loss(const Tensor& logits, const std::vector<const data::Question*>& questions,
                   const KnownAnswers& answers) {
  const Tensor targets = Tensor::empty({std::ssize(questions), answers.count()});
  for (std::size_t b = 0; b < questions.size(); ++b) {
    answers.shares(*questions[b], targets.data<float>() + static_cast<std::int64_t>(b) * answers.count());
  }
  return ops::soft_cross_entropy(logits, targets);
}

void AnswerTally::add(const data::Question& question, const std::string& given) {
  auto& [count, right] = types_[question.type];
  ++count;
  right += data::vqa_accuracy(question.answers, given);
  const std::vector<std::string>& said = question.said.empty() ? question.answers : question.said;
  has_official_ = has_official_ && said.size() == official_answers;
  official_ += has_official_ ? official_vqa_accuracy(said, given) : 0;
  disagree_ = disagree_ || std::ranges::any_of(said, [&](const std::string& one) { return one != said.front(); });
  given_.emplace_back(question.id, given);
}

void AnswerTally::finish(AnswerEvaluation& evaluation) {
  double right = 0;
  for (const auto& [type, own] : types_) {
    evaluation.types.push_back({type, own.first, 100 * own.second / static_cast<double>(own.first)});
    evaluation.count += own.first;
    right += own.second;
  }
  evaluation.accuracy = 100 * right / static_cast<double>(std::max<std::int64_t>(evaluation.count, 1));
  if (has_official_ && evaluation.count > 0) {
    evaluation.official = 100 * official_ / static_cast<double>(evaluation.count);
  }
  evaluation.disagree = disagree_;
  evaluation.given = std::move(given_);
}

std::string answer_table(const AnswerEvaluation& e) {
  std::string text = fmt::format("accuracy {:.2f} %   loss {}   {} about {}\n", e.accuracy,
                                 std::isnan(e.loss) ? "–" : fmt::format("{:.4f}", e.loss),
                                 io::counted(e.count, "questions"), io::counted(e.images, "images"));
  if (e.official && e.disagree) {
    text += fmt::format("{:.2f} % by VQA's own rules (ten people, words and numbers made alike)\n", *e.official);
  }
  if (e.unseen > 0) {
    text += fmt::format("{} of an answer that the model has never seen, and so cannot give\n",
                        io::counted(e.unseen, "questions"));
  }
  if (e.unknown_words > 0) {
    text += fmt::format("{} with a word that the model has never read\n", io::counted(e.unknown_words, "questions"));
  }
  std::size_t widest = 4;
  for (const TypeAccuracy& type : e.types) {
    widest = std::max(widest, type.type.size());
  }
  for (const TypeAccuracy& type : e.types) {
    text += fmt::format("  {:<{}}  {:6.2f} %  of {}\n", type.type.empty() ? "–" : type.type, widest, type.accuracy,
                        type.count);
  }
  return text;
}

}  // namespace vitrail::train
