#include "vitrail/generate/translate.h"

#include <algorithm>
#include <mutex>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/tensor/side_by_side.h"

namespace vitrail::generate {
namespace {

using Ids = std::vector<std::int64_t>;

// The tokens of lines as the model reads them, and what it is to be told of them.
struct Sources {
  std::vector<Ids> ids;
  std::vector<std::vector<std::string>> tokens;
  std::vector<std::size_t> order;  // of the lines that are not empty: by descending length
};

Sources encode_lines(const models::Translator& model, const text::Tokenizer& tokenizer,
                     std::span<const std::string> lines, std::int64_t first_line) {
  Sources sources;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::int64_t number = first_line + static_cast<std::int64_t>(i);
    text::Encoding encoding;
    if (lines[i].find_first_not_of(" \t\r\n") != std::string::npos) {
      try {
        encoding = tokenizer.encode(lines[i]);
      } catch (const Error& error) {
        fail("line {}: {}", number, error.what());
      }
      sources.order.push_back(i);
    }
    check(std::ssize(encoding.ids) <= model.max_positions(),
          "line {} has {} tokens, but the model is made for at most {}: `vitrail translate --truncate` cuts it", number,
          encoding.ids.size(), model.max_positions());
    sources.ids.push_back(std::move(encoding.ids));
    sources.tokens.push_back(std::move(encoding.tokens));
  }
  std::ranges::stable_sort(sources.order,
                           [&](std::size_t a, std::size_t b) { return sources.ids[a].size() > sources.ids[b].size(); });
  return sources;
}

// The source token that each token of a translation looks at most.
std::vector<std::pair<std::int64_t, std::int64_t>> align(const models::Translator& model, const Ids& source,
                                                         std::int64_t start, const Ids& translation, DType dtype) {
  Ids read = {start};
  read.insert(read.end(), translation.begin(), translation.end() - 1);
  nn::Recorder recorder(false, true);
  nn::Pass pass{.dtype = dtype, .recorder = &recorder};
  model.forward({Tensor::from(source, {1, std::ssize(source)})}, {Tensor::from(read, {1, std::ssize(read)})}, pass);
  // The last map is that of the last block's attention to the source: [1, H, N, M].
  const Tensor map = ops::mean(recorder.attention()[recorder.attention().size() - 1].value, {0, 1});
  const Tensor most = ops::argmax(map, 1);
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (std::int64_t n = 0; n < most.numel(); ++n) {
    result.emplace_back(most.data<std::int64_t>()[n], n);
  }
  return result;
}

// Lines of similar length, which are translated together.
std::vector<std::span<const std::size_t>> batches_of(const Sources& sources, const TranslateOptions& options) {
  std::vector<std::span<const std::size_t>> result;
  for (std::span<const std::size_t> left = sources.order; !left.empty(); left = left.subspan(result.back().size())) {
    const std::size_t longest = sources.ids[left.front()].size();
    const std::size_t most = options.batch_lines > 0 ? static_cast<std::size_t>(options.batch_lines) : left.size();
    result.push_back(left.first(std::clamp<std::size_t>(static_cast<std::size_t>(options.batch_tokens) / longest, 1,
                                                        std::min(most, left.size()))));
  }
  return result;
}

std::string text_of(const text::Tokenizer& tokenizer, const Ids& ids) {
  Ids known;  // what stands for no token of the tokenizer is no text, as in transformers
  std::ranges::copy_if(ids, std::back_inserter(known), [&](std::int64_t id) { return tokenizer.has(id); });
  return tokenizer.decode(known);
}

// The translations of the lines of these numbers; none of any if the run is interrupted.
std::vector<std::vector<TranslatedLine>> translate_together(const models::Translator& model,
                                                            const text::Tokenizer& tokenizer,
                                                            const GenerationConfig& config, const Sources& sources,
                                                            std::span<const std::size_t> numbers,
                                                            std::int64_t first_line, const TranslateOptions& options) {
  const autograd::NoGrad no_grad;
  const std::int64_t start = start_token(config);
  GenerateOptions own = options.generate;
  models::TextRow row;
  for (const std::size_t number : numbers) {
    const Ids& ids = sources.ids[number];
    row.add(ids);
    own.numbers.push_back(first_line + static_cast<std::int64_t>(number) - 1);
    if (options.most_growth > 0) {
      own.limits.push_back(static_cast<std::int64_t>(options.most_growth * static_cast<double>(ids.size())) + 10);
    }
  }
  const models::Translation batch(model, row.texts(), own.dtype);
  const auto sequences = generate_batch(batch, std::vector<Ids>(numbers.size(), Ids{start}), config, own);
  std::vector<std::vector<TranslatedLine>> result;
  if (own.interrupted && own.interrupted()) {
    return result;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::vector<TranslatedLine>& best = result.emplace_back();
    for (const Sequence& sequence : sequences[i]) {
      TranslatedLine one{text_of(tokenizer, sequence.ids), sequence.ids, sequence.score, {}};
      if (options.alignment && !sequence.ids.empty()) {
        one.alignment = align(model, sources.ids[numbers[i]], start, sequence.ids, own.dtype);
      }
      best.push_back(std::move(one));
    }
  }
  return result;
}

}  // namespace

std::int64_t start_token(const GenerationConfig& config) {
  const std::optional<std::int64_t> start =
      config.decoder_start_token_id ? config.decoder_start_token_id : config.bos_token_id;
  check(start.has_value(), "neither decoder_start_token_id nor bos_token_id says with which token translations begin");
  return *start;
}

std::vector<LineTranslations> translate(const models::Translator& model, const text::Tokenizer& tokenizer,
                                        const GenerationConfig& config, std::span<const std::string> lines,
                                        const TranslateOptions& options, std::int64_t first_line) {
  check(!options.alignment || model.has_attention(),
        "the model looks at no token of the source, so that there is no alignment");
  Sources sources = encode_lines(model, tokenizer, lines, first_line);
  std::vector<LineTranslations> result(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    result[i].tokens = std::move(sources.tokens[i]);
    if (sources.ids[i].empty()) {
      result[i].best.resize(1);
    }
  }
  const std::vector<std::span<const std::size_t>> batches = batches_of(sources, options);
  std::int64_t done = std::ssize(lines) - std::ssize(sources.order);
  std::mutex mutex;  // of `done`, and of what is called with it
  const auto translate_batch = [&](std::size_t i) {
    if (options.generate.interrupted && options.generate.interrupted()) {
      return;
    }
    const std::span<const std::size_t> numbers = batches[i];
    std::vector<std::vector<TranslatedLine>> best =
        translate_together(model, tokenizer, config, sources, numbers, first_line, options);
    for (std::size_t at = 0; at < best.size(); ++at) {
      result[numbers[at]].best = std::move(best[at]);
    }
    const std::lock_guard lock(mutex);
    done += std::ssize(best);
    if (options.advance) {
      options.advance(done);
    }
  };
  batches_side_by_side(batches.size(), kernels::threads(), translate_batch);
  return result;
}

}  // namespace vitrail::generate
