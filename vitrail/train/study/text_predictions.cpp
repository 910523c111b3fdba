#include "vitrail/train/study/text_predictions.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/choice.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/order.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/unknown.h"
#include "vitrail/train/finite.h"

namespace vitrail::train {
namespace {

std::int64_t positions_of(const models::TextModel& model) { return model.net->shape().max_positions; }

// The tokens of a target: itself if it is one, otherwise the first that it is made of.
std::int64_t target_token(const text::Tokenizer& tokenizer, const std::string& target) {
  if (const auto id = tokenizer.id_of(target)) {
    return *id;
  }
  const text::Encoding pieces = cutting_tokenizer(tokenizer, 0).encode(target, false);
  check(pieces.size() > 0, "the target '{}' has no tokens", target);
  return pieces.ids.front();
}

text::Tokenizer tokenizer_for(const models::TextModel& model, const text::Tokenizer& tokenizer, bool truncate) {
  const std::int64_t most = positions_of(model);
  return cutting_tokenizer(tokenizer, truncate && most < models::unbounded_positions ? most : 0);
}

// The texts, none of which is too long.
std::vector<TextIds> checked(std::vector<TextIds> texts, const models::TextModel& model) {
  const std::int64_t most = positions_of(model);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    check(texts[i].size() <= most, "text {} has {} tokens, but the model is made for at most {}: --truncate cuts it",
          i + 1, texts[i].size(), most);
  }
  return texts;
}

}  // namespace

std::vector<TextIds> encode_for(const models::TextModel& model, const text::Tokenizer& tokenizer,
                                std::span<const std::string> texts, bool truncate) {
  return checked(encode_texts(tokenizer_for(model, tokenizer, truncate), texts), model);
}

std::vector<TextIds> encode_for(const models::TextModel& model, const text::Tokenizer& tokenizer,
                                std::span<const text::LabelledText> texts, bool truncate) {
  return checked(encode_texts(tokenizer_for(model, tokenizer, truncate), texts), model);
}

void classify_in_batches(const models::TextModel& model, std::span<const TextIds> texts, const TextRunOptions& options,
                         const TakeOutputs& take) {
  const models::TextClassifier& classifier = models::classifier_of(model);
  run_in_batches(
      texts, takes_types(model), options,
      [&](const models::EncoderInput& batch) {
        nn::Pass pass{.dtype = options.dtype};
        return classifier.classify(batch, pass);
      },
      take);
}

Tensor classify_texts(const models::TextModel& model, const text::Tokenizer& tokenizer,
                      std::span<const text::LabelledText> texts, bool truncate, const TextRunOptions& options) {
  const models::TextClassifier& classifier = models::classifier_of(model);
  check(!classifier.each_token(), "{} labels tokens, not texts", model.architecture);
  const std::vector<TextIds> ids = encode_for(model, tokenizer, texts, truncate);
  const Tensor result = Tensor::empty({std::ssize(ids), classifier.num_labels()});
  classify_in_batches(model, ids, options, [&](const Tensor& logits, std::int64_t first, std::int64_t count) {
    check_finite(logits);
    result.narrow(0, first, count).copy_from(models::class_scores(model.problem_type, logits));
  });
  return result;
}

std::vector<std::vector<TokenLabel>> label_tokens(const models::TextModel& model, const text::Tokenizer& tokenizer,
                                                  std::span<const std::string> texts, bool truncate,
                                                  const TextRunOptions& options) {
  const models::TextClassifier& classifier = models::classifier_of(model);
  check(classifier.each_token(), "{} labels texts, not tokens", model.architecture);
  const std::vector<TextIds> ids = encode_for(model, tokenizer, texts, truncate);
  const std::vector<std::string> labels = models::labels_of(model);
  const std::optional<std::int64_t> unknown = text::unknown_token(tokenizer);
  std::vector<std::vector<TokenLabel>> result;
  classify_in_batches(model, ids, options, [&](const Tensor& logits, std::int64_t first, std::int64_t count) {
    const ops::Ordered best = ops::topk(models::class_scores(model.problem_type, logits), 1);
    const float* score = best.values.data<float>();
    const std::int64_t* label = best.indices.data<std::int64_t>();
    for (auto t = static_cast<std::size_t>(first); t < static_cast<std::size_t>(first + count); ++t) {
      const text::Encoding encoding = cutting_tokenizer(tokenizer, ids[t].size()).encode(texts[t]);
      std::vector<TokenLabel>& found = result.emplace_back();
      for (std::size_t i = 0; i < encoding.size(); ++i, ++score, ++label) {
        if (!encoding.special[i]) {
          const auto [begin, end] = encoding.offsets[i];
          found.push_back({labels[static_cast<std::size_t>(*label)], *score, static_cast<std::int64_t>(i),
                           encoding.ids[i] == unknown ? text::code_points(texts[t], begin, end) : encoding.tokens[i],
                           begin, end});
        }
      }
    }
  });
  return result;
}

std::int64_t mask_token(const text::Tokenizer& tokenizer) {
  for (const char* name : {"[MASK]", "<mask>"}) {
    if (const auto id = tokenizer.id_of(name)) {
      return *id;
    }
  }
  fail("the tokenizer has no token for what is masked: neither [MASK] nor <mask>");
}

std::vector<std::vector<FilledMask>> fill_masks(const models::TextModel& model, const text::Tokenizer& tokenizer,
                                                const std::string& text, std::int64_t top_k,
                                                std::span<const std::string> targets, bool truncate, DType dtype) {
  const models::EncoderNetwork& net = models::encoder_of(model);
  const std::int64_t mask = mask_token(tokenizer);
  const TextIds ids = encode_texts(tokenizer_for(model, tokenizer, truncate), std::span(&text, 1)).front();
  check(ids.size() <= positions_of(model),
        "the text '{}' has {} tokens, but the model is made for at most {}: --truncate cuts it", io::shown(text),
        ids.size(), positions_of(model));
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    if (ids.ids[static_cast<std::size_t>(i)] == mask) {
      places.push_back(i);
    }
  }
  check(!places.empty(), "there is no {} in {}'{}'", tokenizer.token_of(mask),
        ids.size() == positions_of(model) ? fmt::format("the first {} tokens of ", positions_of(model)) : "",
        io::shown(text));
  std::set<std::int64_t> compared;
  for (const std::string& target : targets) {
    compared.insert(target_token(tokenizer, target));
  }
  const std::vector<std::int64_t> wanted(compared.begin(), compared.end());  // empty: all tokens
  const TextIds* const only = &ids;
  const autograd::NoGrad no_grad;
  nn::Pass pass{.dtype = dtype};
  const Tensor states = net.body(packed_batch(std::span(&only, 1), takes_types(model)), pass);
  const std::int64_t count = std::ssize(places);
  const Tensor masked = ops::index_select(ops::select(states, 0, 0), 0, Tensor::from(places, {count}));
  const std::vector<float> p = ops::softmax(net.masked_logits(masked), -1).values();
  const std::int64_t vocab = net.shape().vocab_size;
  std::vector<std::vector<FilledMask>> result;
  for (std::int64_t m = 0; m < count; ++m) {
    const std::span<const float> row =
        std::span(p).subspan(static_cast<std::size_t>(m * vocab), static_cast<std::size_t>(vocab));
    std::vector<float> scores(wanted.empty() ? row.begin() : row.end(), row.end());
    for (const std::int64_t token : wanted) {
      scores.push_back(row[static_cast<std::size_t>(token)]);
    }
    std::vector<FilledMask>& filled = result.emplace_back();
    for (const std::int64_t i : kernels::largest(scores, top_k)) {
      const std::int64_t token = wanted.empty() ? i : wanted[static_cast<std::size_t>(i)];
      std::vector<std::int64_t> whole = ids.ids;
      whole[static_cast<std::size_t>(places[static_cast<std::size_t>(m)])] = token;
      const bool known = tokenizer.has(token);
      filled.push_back({.score = scores[static_cast<std::size_t>(i)],
                        .token = token,
                        .token_str = known ? tokenizer.decode(std::span(&token, 1), false) : "",
                        .sequence = known ? tokenizer.decode(whole, count == 1) : ""});
    }
  }
  return result;
}

}  // namespace vitrail::train
