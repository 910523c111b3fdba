/// \file
/// GPT-2 as the decoder of another model's states.
#pragma once

#include "vitrail/io/json.h"
#include "vitrail/models/text/cross_decoder.h"

namespace vitrail::models {

/// The decoder that a GPT2Config with add_cross_attention describes. Its parameters have the names of transformers'
/// GPT2LMHeadModel: `transformer.wte`, `transformer.h.0.crossattention.{q_attn,c_attn,c_proj}`, `lm_head`.
CrossDecoderConfig read_gpt2_cross_decoder(io::Fields& config);

}  // namespace vitrail::models
