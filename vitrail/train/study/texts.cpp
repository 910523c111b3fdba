#include "vitrail/train/study/texts.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <type_traits>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/tensor/side_by_side.h"
#include "vitrail/train/study/share_batches.h"

namespace vitrail::train {

text::Tokenizer cutting_tokenizer(const text::Tokenizer& tokenizer, std::int64_t max_length) {
  const auto cut = max_length > 0 ? std::optional(text::Truncation{.max_length = max_length}) : std::nullopt;
  return tokenizer.with_padding(std::nullopt).with_truncation(cut);
}

text::Encoding encode_text(const text::Tokenizer& tokenizer, const text::LabelledText& text) {
  return text.second.empty() ? tokenizer.encode(text.text) : tokenizer.encode_pair(text.text, text.second);
}

TextCutter::TextCutter(const text::Tokenizer& tokenizer, std::int64_t most)
    : whole_(cutting_tokenizer(tokenizer, 0)), cutting_(cutting_tokenizer(tokenizer, most)), most_(most) {}

text::Encoding TextCutter::operator()(const text::LabelledText& text, std::int64_t& cut) const {
  text::Encoding encoding = encode_text(whole_, text);
  if (most_ == 0 || std::ssize(encoding.ids) <= most_) {
    return encoding;
  }
  ++cut;
  return encode_text(cutting_, text);
}

std::string TextCutter::note(std::int64_t cut, std::int64_t all, std::string_view items) const {
  return cut == 0 ? ""
                  : fmt::format("{} of {} {} more than {} tokens and {} cut", cut, io::counted(all, items),
                                cut == 1 ? "has" : "have", most_, cut == 1 ? "is" : "are");
}

namespace {

// What `encode` makes of each of the texts, by several threads.
template <class Text>
std::vector<TextIds> encode_each(std::span<const Text> texts,
                                 const std::function<text::Encoding(const text::LabelledText& text)>& encode) {
  std::vector<TextIds> result(texts.size());
  const auto labelled = [](const Text& text) {
    if constexpr (std::is_same_v<Text, std::string>) {
      return text::LabelledText{text, "", ""};
    } else {
      return text;
    }
  };
  side_by_side(texts.size(), kernels::threads(), [&](std::size_t i) {
    text::Encoding encoding = encode(labelled(texts[i]));
    result[i] = {std::move(encoding.ids), std::move(encoding.type_ids)};
  });
  for (std::size_t i = 0; i < texts.size(); ++i) {
    check(result[i].size() > 0, "text {} has no tokens: '{}'", i + 1, io::shown(labelled(texts[i]).text));
  }
  return result;
}

}  // namespace

std::vector<TextIds> encode_texts(const text::Tokenizer& tokenizer, std::span<const text::LabelledText> texts) {
  return encode_each(texts, [&](const text::LabelledText& text) { return encode_text(tokenizer, text); });
}

std::vector<TextIds> encode_texts(const text::Tokenizer& tokenizer, std::span<const std::string> texts) {
  return encode_each(texts, [&](const text::LabelledText& text) { return encode_text(tokenizer, text); });
}

std::vector<TextIds> encode_texts(const TextCutter& cutter, std::span<const std::string> texts, std::int64_t& cut) {
  std::atomic<std::int64_t> all_cut = 0;
  std::vector<TextIds> result = encode_each(texts, [&](const text::LabelledText& text) {
    std::int64_t this_cut = 0;
    text::Encoding encoding = cutter(text, this_cut);
    all_cut += this_cut;
    return encoding;
  });
  cut += all_cut;
  return result;
}

models::EncoderInput packed_batch(std::span<const TextIds* const> texts, bool with_types) {
  models::TextRow ids;
  models::TextRow types;
  for (const TextIds* text : texts) {
    ids.add(text->ids);
    if (with_types) {
      types.add(text->types);
    }
  }
  const models::Texts row = ids.texts();
  return {.ids = row.ids, .types = with_types ? types.texts().ids : Tensor(), .offsets = row.offsets};
}

bool takes_types(const models::TextModel& model) {
  const auto* encoder = dynamic_cast<const models::EncoderNetwork*>(model.net.get());
  return encoder != nullptr && encoder->body.config().type_vocab_size > 1;
}

namespace {

// Texts that follow each other, and are read together.
std::vector<std::span<const TextIds>> batches_of(std::span<const TextIds> texts, const TextRunOptions& options) {
  std::vector<std::span<const TextIds>> result;
  std::size_t begin = 0;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    tokens += texts[i].size();
    const bool last = i + 1 == texts.size();
    const bool full = options.batch_tokens ? last || tokens + texts[i + 1].size() > *options.batch_tokens
                                           : static_cast<std::int64_t>(i + 1 - begin) == options.batch_size;
    if (last || full) {
      result.push_back(texts.subspan(begin, i + 1 - begin));
      begin = i + 1;
      tokens = 0;
    }
  }
  return result;
}

}  // namespace

void run_in_batches(std::span<const TextIds> texts, bool with_types, const TextRunOptions& options,
                    const std::function<Tensor(const models::EncoderInput&)>& run, const TakeOutputs& take) {
  const std::vector<std::span<const TextIds>> batches = batches_of(texts, options);
  std::vector<std::size_t> mine;  // of the batches
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (is_own_batch(options.ranks, static_cast<std::int64_t>(i))) {
      mine.push_back(i);
    }
  }
  const bool alone = options.ranks == nullptr || options.ranks->size() == 1;
  std::mutex mutex;                       // of all that follows
  std::map<std::size_t, Tensor> waiting;  // outputs, until those of the batches before them are there
  JudgedBatches judged;                   // with others: the outputs
  std::size_t next = 0;
  std::int64_t taken = 0;
  std::int64_t done = 0;
  const auto take_next = [&](const Tensor& output) {
    const std::int64_t count = std::ssize(batches[next++]);
    take(output, taken, count);
    taken += count;
  };
  const auto run_one = [&](std::size_t own) {
    const std::size_t i = mine[own];
    const autograd::NoGrad no_grad;
    std::vector<const TextIds*> batch;
    std::ranges::transform(batches[i], std::back_inserter(batch), [](const TextIds& text) { return &text; });
    Tensor output = run(packed_batch(batch, with_types));
    const std::lock_guard lock(mutex);
    done += std::ssize(batch);
    if (alone) {
      waiting.emplace(i, std::move(output));
      for (auto first = waiting.begin(); first != waiting.end() && first->first == next; first = waiting.erase(first)) {
        take_next(first->second);
      }
    } else {
      dist::Packer packer;
      packer.put_tensor(output);
      judged.emplace(static_cast<std::int64_t>(i), packer.bytes());
    }
    if (options.progress) {
      options.progress(alone ? taken : std::min(done * options.ranks->size(), std::ssize(texts)), std::ssize(texts));
    }
  };
  batches_side_by_side(mine.size(), kernels::threads(), run_one);
  if (!alone) {
    for (const auto& [number, bytes] : gather_judged(options.ranks, std::move(judged))) {
      take_next(dist::Unpacker(bytes).get_tensor());
    }
  }
}

std::int64_t count_right(const Tensor& predicted, std::span<const std::int64_t> truth) {
  const std::span<const std::int64_t> ids = predicted.span<std::int64_t>();
  return std::inner_product(ids.begin(), ids.end(), truth.begin(), std::int64_t{0}, std::plus<>(), std::equal_to<>());
}

Tensor embed_texts(const models::SentenceModel& model, const text::Tokenizer& tokenizer,
                   std::span<const std::string> texts, const TextRunOptions& options, std::string* note) {
  std::vector<std::string> prompted(texts.begin(), texts.end());
  for (std::string& text : prompted) {
    text.insert(0, model.prompt);
  }
  const TextCutter cutter(tokenizer, model.max_seq_length);
  std::int64_t cut = 0;
  const std::vector<TextIds> ids = encode_texts(cutter, prompted, cut);
  if (note != nullptr) {
    *note = cutter.note(cut, std::ssize(ids), "texts");
  }
  const Tensor result = Tensor::empty({std::ssize(ids), models::encoder_of(model.model).body.config().dim});
  run_in_batches(
      ids, takes_types(model.model), options,
      [&](const models::EncoderInput& batch) {
        nn::Pass pass{.dtype = options.dtype};
        return model.embed(batch, pass);
      },
      [&](const Tensor& vectors, std::int64_t first, std::int64_t count) {
        result.narrow(0, first, count).copy_from(vectors);
      });
  return result;
}

}  // namespace vitrail::train
