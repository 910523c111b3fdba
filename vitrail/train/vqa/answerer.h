/// \file
/// A model that answers questions about images, of either kind, with its tokenizer and what it looked at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/io/image.h"
#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/models/joint/vqa_folder.h"
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

/// A network of `vitrail train --task vqa`, or transformers' BlipForQuestionAnswering.
class Answerer {
 public:
  /// Loads a folder. Throws Error if it is of another kind.
  explicit Answerer(const std::filesystem::path& folder);

  /// Changes how images are prepared. Throws Error, naming the flag, for numbers that do not fit.
  void prepare_images(const data::ImageOverrides& overrides);

  /// Throws Error, naming them, if the question has words that the model has never read, or if it is empty or too long.
  AnsweredQuestion answer(const io::Image& image, const std::string& question, const AskOptions& options) const;
  /// Answers all questions. A Blip writes its answers greedily; its loss is NaN.
  AnswerEvaluation evaluate(const data::ImageQuestions& questions, const EvaluateOptions& options) const;

  const models::VqaModel* vqa() const { return vqa_ ? &*vqa_ : nullptr; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  AnsweredQuestion of_vqa(const Tensor& x, const text::Encoding& question, const std::string& text,
                          const AskOptions& options) const;
  AnsweredQuestion of_blip(const Tensor& x, const text::Encoding& question, const AskOptions& options) const;
  AnswerEvaluation evaluate_blip(const data::ImageQuestions& questions, const EvaluateOptions& options) const;

  std::optional<models::VqaModel> vqa_;
  std::optional<models::BlipModel> blip_;
  std::optional<text::Tokenizer> tokenizer_;
};

/// Whether a folder is one that an Answerer loads.
bool answers_questions(const std::filesystem::path& folder);

}  // namespace vitrail::train
