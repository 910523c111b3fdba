/// \file
/// Whether a network that answers a question looks at what the question is about.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vitrail/data/pairs/question_batches.h"
#include "vitrail/data/pairs/questions.h"
#include "vitrail/models/joint/vqa_folder.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::train {

/// How far the attention of the first word, [CLS], is from what questions are about: attention_loss() of the mean over
/// the heads of a layer's attention to the picture, `map` [B, H, N, M] or, with equally many questions about each
/// picture side by side, [S, H, B N / S, M] f32.
Tensor question_attention_loss(const Tensor& map, const data::QuestionBatch& batch,
                               const std::vector<const data::Question*>& questions, std::int64_t side);

/// Of right answers to questions whose objects are known, how many looked at one of these.
struct TargetCount {
  std::int64_t count = 0;  ///< right answers
  std::int64_t hits = 0;   ///< of which the patch with the most attention touches one of the boxes
  double chance = 0;       ///< the sum of the shares of patches that touch one
};

/// The counts of one kind of map, over all questions and for each type.
struct OnTarget {
  std::string map;  ///< "layer 2": the mean over heads and words; "layer 2, [CLS]": of the state that answers;
                    ///< "gradient-weighted": AnsweredQuestion::weighted
  TargetCount all;
  std::map<std::string, TargetCount> types;
};

/// Looks at all questions with boxes that the network answers right. Empty for a network that has no attention to
/// pictures, and for questions without boxes.
std::vector<OnTarget> attention_on_target(const models::VqaModel& model, const text::Tokenizer& tokenizer,
                                          const data::ImageQuestions& questions, const EvaluateOptions& options);
/// Lines for people: a row a map, a column a type.
std::string on_target_table(const std::vector<OnTarget>& maps);

}  // namespace vitrail::train
