/// \file
/// A network of `vitrail train --task vqa`, which chooses among the answers that it has learnt.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/train/vqa/answerer.h"

namespace vitrail::train {

class VqaAnswerer final : public Answerer {
 public:
  VqaAnswerer(models::VqaModel model, text::Tokenizer tokenizer)
      : Answerer(std::move(tokenizer)), model_(std::move(model)), answers_(model_.answers) {}

  /// Lets loss() add so much of question_attention_loss(). Throws Error if the network's question does not look at the
  /// picture in layers of its own.
  void guide_attention(double weight);

  Tensor loss(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
              nn::Pass& pass) const override;
  bool can_answer(const data::Question& question) const override { return answers_.knows_any(question); }
  nn::Network& network() override { return *model_.net; }
  std::string name() const override { return model_.name; }
  void prepare_images(const data::ImageOverrides& overrides) override { data::apply(overrides, model_.pretrained); }
  const models::PretrainedConfig& images() const override { return model_.pretrained; }
  std::int64_t longest_question() const override { return model_.net->config().max_positions; }
  void write(const std::filesystem::path& folder) const override;
  const models::VqaModel* vqa() const override { return &model_; }

 private:
  AnsweredQuestion answer_one(const Tensor& x, const std::string& question, const text::Encoding& encoding,
                              const AskOptions& options) const override;
  Said say(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
           DType dtype) const override;

  models::VqaModel model_;
  KnownAnswers answers_;
  double attention_weight_ = 0;
};

}  // namespace vitrail::train
