/// \file
/// A model that answers questions about images, with its tokenizer and what it looked at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/pairs/question_batches.h"
#include "vitrail/data/pairs/questions.h"
#include "vitrail/io/image.h"
#include "vitrail/models/joint/vqa_folder.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/pass.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/vqa/answers.h"

namespace vitrail::train {

/// An answer, and how likely the model finds it.
struct GivenAnswer {
  std::string text;
  double probability = 0;
};

/// How a question was answered.
struct AnsweredQuestion {
  std::vector<GivenAnswer> best;   ///< the likeliest first
  std::vector<std::string> words;  ///< what looks at the picture: its tokens, or of vqa_one the whole question
  nn::Size2 grid = {0, 0};         ///< of the patches
  std::vector<Tensor> maps;        ///< of each layer that looks at the picture: [H, words, patches]; empty if none does
  /// [words, patches]: of the last such layer, how much the scores of its attention raise the answer that was given,
  /// ∂ logit / ∂ score where that is positive, over all heads; undefined if there are no layers of their own for it.
  Tensor weighted;
};

/// How a question is to be answered.
struct AskOptions {
  std::int64_t best = 5;  ///< answers
  bool maps = false;      ///< what was looked at
  DType dtype = DType::f32;
};

/// A network that answers questions: a VqaAnswerer or a BlipAnswerer.
class Answerer {
 public:
  virtual ~Answerer() = default;
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;

  /// Changes how images are prepared. Throws Error, naming the flag, for numbers that do not fit.
  virtual void prepare_images(const data::ImageOverrides& overrides) = 0;
  /// Throws Error, naming them, if the question has words that the model has never read, or if it is empty or too long.
  AnsweredQuestion answer(const io::Image& image, const std::string& question, const AskOptions& options) const;
  AnswerEvaluation evaluate(const data::ImageQuestions& questions, const EvaluateOptions& options) const;

  /// The loss of a batch, whose questions are `asked`: a scalar, the mean over the questions of
  ///
  /// ```text
  /// -Σ_a share(a) log p(a)
  /// ```
  ///
  /// over the answers a that the model can give, share(a) of the people who gave one of them. Each question must have
  /// one (can_answer()).
  virtual Tensor loss(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
                      nn::Pass& pass) const = 0;
  /// Whether the model can give one of the answers that people gave.
  virtual bool can_answer(const data::Question& question) const = 0;
  virtual nn::Network& network() = 0;
  virtual std::string name() const = 0;
  virtual const models::PretrainedConfig& images() const = 0;  ///< how images are prepared
  virtual std::int64_t longest_question() const = 0;           ///< tokens
  /// Writes the files that load_answerer() reads into a folder that exists.
  virtual void write(const std::filesystem::path& folder) const = 0;
  /// The model of a VqaAnswerer; null of another.
  virtual const models::VqaModel* vqa() const { return nullptr; }

  const text::Tokenizer& tokenizer() const { return tokenizer_; }

 protected:
  explicit Answerer(text::Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  /// What a model says to the questions of a batch, and the sum of their losses; what can_answer() denies adds nothing.
  struct Said {
    std::vector<std::string> answers;
    double loss = 0;
  };

 private:
  virtual AnsweredQuestion answer_one(const Tensor& x, const std::string& question, const text::Encoding& encoding,
                                      const AskOptions& options) const = 0;
  virtual Said say(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
                   DType dtype) const = 0;

  text::Tokenizer tokenizer_;
};

/// Whether load_answerer() loads a folder.
bool answers_questions(const std::filesystem::path& folder);
/// Loads the folder of a network of `vitrail train --task vqa`, or of transformers' BlipForQuestionAnswering. Throws
/// Error if it is of another kind.
std::unique_ptr<Answerer> load_answerer(const std::filesystem::path& folder);

}  // namespace vitrail::train
