#include "vitrail/models/text/translator.h"

#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {

Tensor Translator::forward(const Texts& sources, const Texts& targets, nn::Pass& pass) const {
  return ops::cast(logits(sources, targets, pass), DType::f32);
}

std::unique_ptr<TextState> Translation::begin(std::optional<DType> cache) const {
  nn::Pass pass{.dtype = dtype_};
  return model_.begin(sources_, pass, cache);
}

Tensor Translation::forward(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  check(state == nullptr, "a translation goes on by forward_last()");
  return model_.forward(sources_, {ids}, pass);
}

TextOutputs run_translator(const Translator& translator, const TextInputs& inputs, nn::Pass& pass) {
  check(inputs.input_ids.defined() && inputs.decoder_input_ids.defined(),
        "an encoder–decoder reads 'input_ids' and 'decoder_input_ids' [B, N] i64, of which one is missing");
  check(!inputs.token_type_ids.defined(), "an encoder–decoder has no token types");
  return {{"logits", translator.forward({inputs.input_ids, lengths_of(inputs.attention_mask)},
                                        {inputs.decoder_input_ids}, pass)}};
}

SourcesLeft sources_left(const std::vector<std::int64_t>& indices, std::int64_t translations) {
  SourcesLeft left;
  for (const std::int64_t index : indices) {
    const std::int64_t source = index / translations;
    if (left.sources.empty() || left.sources.back() != source) {
      left.sources.push_back(source);
    }
  }
  left.each = left.sources.empty() ? 0 : std::ssize(indices) / std::ssize(left.sources);
  for (std::int64_t i = 0; i < std::ssize(indices); ++i) {
    const std::int64_t source = indices[static_cast<std::size_t>(i)] / translations;
    check(i / left.each < std::ssize(left.sources) && source == left.sources[static_cast<std::size_t>(i / left.each)],
          "translation {} is one of source {}: all sources must have equally many translations, side by side", i,
          source);
  }
  return left;
}

}  // namespace vitrail::models
