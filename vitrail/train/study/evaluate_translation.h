/// \file
/// How well a network translates.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/generate/translate.h"
#include "vitrail/models/text/translator.h"
#include "vitrail/text/parallel_text.h"
#include "vitrail/text/score/bleu.h"
#include "vitrail/train/study/sentence_pairs.h"

namespace vitrail::train {

/// The mean cross-entropy of the labels of a batch that counts, a scalar f32.
Tensor translation_loss(const models::Translator& model, const PairBatch& batch, nn::Pass& pass, float smoothing = 0);

/// The mean cross-entropy of a token of the targets, in nats, without smoothing, in batches of `batch_tokens`.
/// `advance` is called with the number of pairs that are done. Of several ranks each takes a part of the batches.
double mean_translation_loss(const models::Translator& model, const SentencePairs& pairs, std::int64_t batch_tokens,
                             DType dtype, const std::function<void(std::int64_t pairs)>& advance = {},
                             dist::Communicator* ranks = nullptr);

/// The best translation of each line by `translate`, of which each rank (null: this process alone) gives it a part.
std::vector<std::string> translate_together(
    const std::vector<std::string>& lines,
    const std::function<std::vector<generate::LineTranslations>(const std::vector<std::string>& lines)>& translate,
    dist::Communicator* ranks);

/// sacrebleu's score of translations of the sources by the targets; each line's best one counts.
text::BleuScore translation_bleu(const std::vector<std::string>& translations, const text::ParallelText& text);
text::BleuScore translation_bleu(const std::vector<generate::LineTranslations>& translations,
                                 const text::ParallelText& text);

/// The tokens that a translator is told of, by its generation config. Throws Error if it has no end.
SpecialTokens special_tokens(const generate::GenerationConfig& config);

}  // namespace vitrail::train
