#include "vitrail/models/text/text_network.h"

#include <array>

#include "vitrail/tensor/error.h"

namespace vitrail::models {

const char* name_of(TextAttentionKind kind) {
  return kind == TextAttentionKind::self      ? "attention"
         : kind == TextAttentionKind::decoder ? "decoder_attention"
                                              : "cross_attention";
}

TextOutputs TextNetwork::run(const TextInputs& inputs, nn::Pass& pass) const {
  check(inputs.input_ids.defined(), "a language model reads 'input_ids' [B, N] i64, which are missing");
  check(!inputs.token_type_ids.defined() && !inputs.decoder_input_ids.defined(),
        "a language model reads 'input_ids' and 'attention_mask' alone");
  lengths_of(inputs.attention_mask);
  return {{"logits", language()->forward(inputs.input_ids, pass)}};
}

std::vector<TextAttentionMap> TextNetwork::attention_maps(const nn::Recorder& recorder) const {
  std::vector<TextAttentionMap> result;
  std::array<std::int64_t, 3> counts = {};  // of each kind
  for (const nn::Recorded& record : recorder.attention()) {
    const TextAttentionKind kind = attention_kind(record.name);
    result.push_back({kind, counts.at(static_cast<std::size_t>(kind))++, record.value, record.name});
  }
  return result;
}

Tensor lengths_of(const Tensor& attention_mask) {
  if (!attention_mask.defined()) {
    return {};
  }
  check(attention_mask.rank() == 2 && attention_mask.dtype() == DType::i64,
        "'attention_mask' must be [B, N] i64, not {} {}", attention_mask.shape(), name_of(attention_mask.dtype()));
  const Tensor mask = attention_mask.contiguous();
  const Tensor lengths = Tensor::zeros({mask.size(0)}, DType::i64);
  for (std::int64_t b = 0; b < mask.size(0); ++b) {
    std::int64_t& length = lengths.data<std::int64_t>()[b];
    for (std::int64_t n = 0; n < mask.size(1); ++n) {
      const std::int64_t value = mask.data<std::int64_t>()[b * mask.size(1) + n];
      check(value == 0 || value == 1, "'attention_mask' of text {} is {} at token {}, expected 0 or 1", b, value, n);
      check(value == 0 || length == n, "'attention_mask' of text {}: padding stands before token {}, expected behind",
            b, n);
      length += value;
    }
    check(length > 0, "'attention_mask' of text {} hides all its tokens", b);
  }
  return lengths;
}

}  // namespace vitrail::models
