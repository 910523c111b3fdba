#include "vitrail/train/study/evaluate_translation.h"

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/text/score/segments.h"
#include "vitrail/train/study/share_batches.h"

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
                             DType dtype, const std::function<void(std::int64_t)>& advance, dist::Communicator* ranks) {
  const autograd::NoGrad no_grad;
  JudgedBatches judged;
  std::int64_t done = 0;
  std::int64_t number = 0;
  for (std::vector<data::Pick>& picks : pairs.plan(batch_tokens, false, 0)(0)) {
    done += std::ssize(picks);
    if (is_own_batch(ranks, number)) {
      const PairBatch batch = pairs.begin({.picks = std::move(picks)});
      nn::Pass pass{.dtype = dtype};
      dist::Packer packer;
      packer.put(static_cast<double>(translation_loss(model, batch, pass).item()));
      packer.put(batch.tokens);
      judged[number] = packer.bytes();
    }
    ++number;
    if (advance) {
      advance(done);
    }
  }
  LossMean found;
  for (const auto& [batch, bytes] : gather_judged(ranks, std::move(judged))) {
    dist::Unpacker unpacker(bytes);
    const auto loss = unpacker.get<double>();
    found.add({loss, unpacker.get<std::int64_t>()});
  }
  return found.mean();
}

std::vector<std::string> translate_together(
    const std::vector<std::string>& lines,
    const std::function<std::vector<generate::LineTranslations>(const std::vector<std::string>& lines)>& translate,
    dist::Communicator* ranks) {
  std::vector<std::string> own;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < std::ssize(lines); ++i) {
    if (is_own_batch(ranks, i)) {
      own.push_back(lines[static_cast<std::size_t>(i)]);
      numbers.push_back(i);
    }
  }
  JudgedBatches translated;  // each line is a batch by itself
  const std::vector<generate::LineTranslations> translations = translate(own);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    translated[numbers[i]] = translations[i].best.front().text;
  }
  std::vector<std::string> all;
  all.reserve(lines.size());
  for (const auto& [number, text] : gather_judged(ranks, std::move(translated))) {
    all.push_back(text);
  }
  return all;
}

text::BleuScore translation_bleu(const std::vector<std::string>& translations, const text::ParallelText& text) {
  return text::bleu(segments_of(translations), {segments_of(text.target)});
}

text::BleuScore translation_bleu(const std::vector<generate::LineTranslations>& translations,
                                 const text::ParallelText& text) {
  std::vector<std::string> lines;
  lines.reserve(translations.size());
  for (const generate::LineTranslations& line : translations) {
    lines.push_back(line.best.front().text);
  }
  return translation_bleu(lines, text);
}

SpecialTokens special_tokens(const generate::GenerationConfig& config) {
  check(!config.eos_token_id.empty(), "no eos_token_id says with which token translations end");
  return {.start = generate::start_token(config),
          .end = config.eos_token_id.front(),
          .padding = config.pad_token_id.value_or(config.eos_token_id.front())};
}

}  // namespace vitrail::train
