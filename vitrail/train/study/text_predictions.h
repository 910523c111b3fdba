/// \file
/// What models of text predict: classes, labels of tokens, and masked words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/text/text_model.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/study/texts.h"

namespace vitrail::train {

/// The ids of texts for `model`. Those that are longer than its positions are cut if `truncate`, or else an Error that
/// counts texts from 1.
std::vector<TextIds> encode_for(const models::TextModel& model, const text::Tokenizer& tokenizer,
                                std::span<const std::string> texts, bool truncate);
std::vector<TextIds> encode_for(const models::TextModel& model, const text::Tokenizer& tokenizer,
                                std::span<const text::LabelledText> texts, bool truncate);

/// run_in_batches() of a classifier: `take` gets the logits of texts [N, C], or of the tokens of the texts [1, T, C].
void classify_in_batches(const models::TextModel& model, std::span<const TextIds> texts, const TextRunOptions& options,
                         const TakeOutputs& take);

/// The models::class_scores() [N, C] f32 of texts, each alone or with its second one. Throws Error unless the model
/// tells classes of texts apart.
Tensor classify_texts(const models::TextModel& model, const text::Tokenizer& tokenizer,
                      std::span<const text::LabelledText> texts, bool truncate, const TextRunOptions& options = {});

/// The label of a token, by the names of transformers' token-classification pipeline.
struct TokenLabel {
  std::string entity;      ///< the label
  double score = 0;        ///< its probability
  std::int64_t index = 0;  ///< of the token among those of the text, special ones included
  std::string word;        ///< the token, or what stands in the text if the tokenizer does not know it
  std::int64_t start = 0;  ///< where it lies in the text, in code points
  std::int64_t end = 0;
};

/// The labels of the tokens of each text, without special ones. Throws Error unless the model tells classes of tokens
/// apart.
std::vector<std::vector<TokenLabel>> label_tokens(const models::TextModel& model, const text::Tokenizer& tokenizer,
                                                  std::span<const std::string> texts, bool truncate,
                                                  const TextRunOptions& options = {});

/// The id of the token that stands for a word that is masked: `[MASK]` or `<mask>`. Throws Error if there is none.
std::int64_t mask_token(const text::Tokenizer& tokenizer);

/// A token in the place of a mask, by the names of transformers' fill-mask pipeline.
struct FilledMask {
  double score = 0;
  std::int64_t token = 0;
  std::string token_str;
  std::string sequence;  ///< the text with it
};

/// The `top_k` likeliest tokens for each mask of a text. With `targets`, only these are compared; one that is no token
/// stands for the first of its tokens. A text that is longer than the model's positions is cut if `truncate`, or else
/// an Error. Throws Error if there is no mask in what is read, or if the model does not predict masked tokens.
std::vector<std::vector<FilledMask>> fill_masks(const models::TextModel& model, const text::Tokenizer& tokenizer,
                                                const std::string& text, std::int64_t top_k,
                                                std::span<const std::string> targets = {}, bool truncate = false,
                                                DType dtype = DType::f32);

}  // namespace vitrail::train
