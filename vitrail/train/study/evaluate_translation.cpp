#include "vitrail/train/study/evaluate_translation.h"

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/text/score/segments.h"

namespace vitrail::train {
namespace {

text::Segments segments_of(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) {
    all += line + "\n";
  }
  return text::parse_segments(all, "the translations");
}

}  // namespace

Tensor translation_loss(const models::Translator& model, const PairBatch& batch, nn::Pass& pass, float smoothing) {
  const Tensor logits = model.logits(batch.sources, batch.targets, pass);
  return ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), batch.labels, smoothing);
}

double mean_translation_loss(const models::Translator& model, const SentencePairs& pairs, std::int64_t batch_tokens,
                             DType dtype, const std::function<void(std::int64_t)>& advance) {
  const autograd::NoGrad no_grad;
  double sum = 0;
  std::int64_t tokens = 0;
  std::int64_t done = 0;
  for (std::vector<data::Pick>& picks : pairs.plan(batch_tokens, false, 0)(0)) {
    done += std::ssize(picks);
    const PairBatch batch = pairs.begin({.picks = std::move(picks)});
    nn::Pass pass{.dtype = dtype};
    sum += static_cast<double>(translation_loss(model, batch, pass).item()) * static_cast<double>(batch.tokens);
    tokens += batch.tokens;
    if (advance) {
      advance(done);
    }
  }
  return sum / static_cast<double>(tokens);
}

text::BleuScore translation_bleu(const std::vector<generate::LineTranslations>& translations,
                                 const text::ParallelText& text) {
  std::vector<std::string> lines;
  lines.reserve(translations.size());
  for (const generate::LineTranslations& line : translations) {
    lines.push_back(line.best.front().text);
  }
  return text::bleu(segments_of(lines), {segments_of(text.target)});
}

SpecialTokens special_tokens(const generate::GenerationConfig& config) {
  check(!config.eos_token_id.empty(), "no eos_token_id says with which token translations end");
  return {.start = generate::start_token(config),
          .end = config.eos_token_id.front(),
          .padding = config.pad_token_id.value_or(config.eos_token_id.front())};
}

}  // namespace vitrail::train
