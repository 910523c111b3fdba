/// \file
/// What changes a model's scores before the next token is chosen: transformers' logits processors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vitrail/generate/generation_config.h"

namespace vitrail::generate {

/// Changes the scores of all tokens that could follow `ids`, of which the first `prompt` are the prompt: logits, or, in
/// a beam search, their log-softmax. At most `most_new` tokens are added to the prompt. A token that must not follow
/// gets -∞. With do_sample, temperature and the filters of sampling follow (top_k, top_p, min_p, typical_p,
/// epsilon_cutoff, eta_cutoff), which leave at least `least` tokens. The order is that of transformers'
/// _get_logits_processor().
void process_scores(const GenerationConfig& config, std::span<const std::int64_t> ids, std::int64_t prompt,
                    std::int64_t most_new, std::int64_t least, std::span<float> scores);

/// The index of the first element whose cumulative share of e^score exceeds `uniform`, from [0, 1): a draw from the
/// distribution softmax(scores).
std::int64_t draw(std::span<const float> scores, double uniform);

}  // namespace vitrail::generate
