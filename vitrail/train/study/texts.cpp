#include "vitrail/train/study/texts.h"

#include <algorithm>
#include <numeric>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/text/encoder_network.h"

namespace vitrail::train {

text::Tokenizer cutting_tokenizer(const text::Tokenizer& tokenizer, std::int64_t max_length) {
  const auto cut = max_length > 0 ? std::optional(text::Truncation{.max_length = max_length}) : std::nullopt;
  return tokenizer.with_padding(std::nullopt).with_truncation(cut);
}

std::vector<TextIds> encode_texts(const text::Tokenizer& tokenizer, std::span<const std::string> texts) {
  std::vector<TextIds> result;
  result.reserve(texts.size());
  for (text::Encoding& encoding : tokenizer.encode_batch(texts, true, kernels::threads())) {
    check(encoding.size() > 0, "text {} has no tokens", result.size() + 1);
    result.push_back({std::move(encoding.ids), std::move(encoding.type_ids)});
  }
  return result;
}

models::EncoderInput padded_batch(std::span<const TextIds* const> texts, bool with_types) {
  std::int64_t longest = 0;
  for (const TextIds* text : texts) {
    longest = std::max(longest, text->size());
  }
  const std::int64_t count = std::ssize(texts);
  models::EncoderInput batch{.ids = Tensor::zeros({count, longest}, DType::i64),
                             .types = with_types ? Tensor::zeros({count, longest}, DType::i64) : Tensor(),
                             .lengths = Tensor::empty({count}, DType::i64)};
  for (std::int64_t b = 0; b < count; ++b) {
    const TextIds& text = *texts[static_cast<std::size_t>(b)];
    batch.lengths.data<std::int64_t>()[b] = text.size();
    std::ranges::copy(text.ids, batch.ids.data<std::int64_t>() + b * longest);
    if (with_types) {
      std::ranges::copy(text.types, batch.types.data<std::int64_t>() + b * longest);
    }
  }
  return batch;
}

bool takes_types(const models::TextModel& model) {
  const auto* encoder = dynamic_cast<const models::EncoderNetwork*>(model.net.get());
  return encoder != nullptr && encoder->body.config().type_vocab_size > 0;
}

void run_in_batches(std::span<const TextIds> texts, bool with_types, const TextRunOptions& options,
                    const std::function<void(const models::EncoderInput&, std::span<const std::size_t>)>& work) {
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return texts[a].size() > texts[b].size(); });
  const autograd::NoGrad no_grad;
  const auto most = static_cast<std::size_t>(options.batch_size);
  for (std::size_t begin = 0; begin < order.size(); begin += most) {
    const std::span<const std::size_t> indices = std::span(order).subspan(begin, std::min(most, order.size() - begin));
    std::vector<const TextIds*> batch;
    for (const std::size_t index : indices) {
      batch.push_back(&texts[index]);
    }
    work(padded_batch(batch, with_types), indices);
    if (options.progress) {
      options.progress(static_cast<std::int64_t>(begin + indices.size()), std::ssize(texts));
    }
  }
}

Tensor embed_texts(const models::SentenceModel& model, const text::Tokenizer& tokenizer,
                   std::span<const std::string> texts, const TextRunOptions& options) {
  std::vector<std::string> prompted(texts.begin(), texts.end());
  for (std::string& text : prompted) {
    text.insert(0, model.prompt);
  }
  const std::vector<TextIds> ids = encode_texts(cutting_tokenizer(tokenizer, model.max_seq_length), prompted);
  const Tensor result = Tensor::empty({std::ssize(ids), models::encoder_of(model.model).body.config().dim});
  run_in_batches(ids, takes_types(model.model), options,
                 [&](const models::EncoderInput& batch, std::span<const std::size_t> indices) {
                   nn::Pass pass{.dtype = options.dtype};
                   const Tensor vectors = model.embed(batch, pass);
                   for (std::size_t b = 0; b < indices.size(); ++b) {
                     result.select(0, static_cast<std::int64_t>(indices[b]))
                         .copy_from(vectors.select(0, static_cast<std::int64_t>(b)));
                   }
                 });
  return result;
}

}  // namespace vitrail::train
