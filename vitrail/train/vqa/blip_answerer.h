/// \file
/// transformers' BlipForQuestionAnswering, which writes its answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/train/vqa/answerer.h"

namespace vitrail::train {

/// Answers that people gave to questions, as a decoder learns to write them.
struct WrittenAnswers {
  Tensor rows;     ///< [A] i64: the question that each answers
  Tensor read;     ///< [A, N] i64: [DEC] and the answer, filled up
  Tensor lengths;  ///< [A] i64: how many of these are real
  Tensor next;     ///< [A, N] i64: the answer and [SEP]
  Tensor shares;   ///< [A, N] f32: the share of the people who gave the answer; 0 behind it
};

/// Σ_a share(a) -log p(a), over answers to the questions of `context`, where p(a) is the product of the probabilities
/// of an answer's tokens: the loss of BLIP's train_vqa (Li et al. 2022; salesforce/BLIP, models/blip_vqa.py) without
/// its label smoothing, times the number of questions.
Tensor written_loss(const models::Blip& net, const models::Blip::Context& context, const WrittenAnswers& answers,
                    nn::Pass& pass);

class BlipAnswerer final : public Answerer {
 public:
  BlipAnswerer(models::BlipModel model, text::Tokenizer tokenizer);

  Tensor loss(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
              nn::Pass& pass) const override;
  bool can_answer(const data::Question& question) const override { return !shares(question).empty(); }
  nn::Network& network() override { return *model_.net; }
  std::string name() const override { return "blip"; }
  void prepare_images(const data::ImageOverrides& overrides) override { data::apply(overrides, model_.pretrained); }
  const models::PretrainedConfig& images() const override { return model_.pretrained; }
  std::int64_t longest_question() const override { return model_.net->config().text.max_positions; }
  void write(const std::filesystem::path& folder) const override;

 private:
  AnsweredQuestion answer_one(const Tensor& x, const std::string& question, const text::Encoding& encoding,
                              const AskOptions& options) const override;
  Said say(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
           DType dtype) const override;

  struct Share {
    std::vector<std::int64_t> ids;
    float share = 0;
  };
  std::vector<Share> shares(const data::Question& question) const;
  WrittenAnswers written(const std::vector<const data::Question*>& asked) const;
  models::Blip::Context context(const data::QuestionBatch& batch, nn::Pass& pass) const;
  std::string text_of(std::vector<std::int64_t> ids) const;

  models::BlipModel model_;
};

}  // namespace vitrail::train
