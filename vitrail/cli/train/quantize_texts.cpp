#include "vitrail/cli/train/quantize_texts.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/generate/generation_config.h"
#include "vitrail/generate/translate.h"
#include "vitrail/models/quantize.h"
#include "vitrail/models/text/sentence_model.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/parallel_text.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/sources/pair_parts.h"
#include "vitrail/train/study/evaluate_language.h"
#include "vitrail/train/study/evaluate_translation.h"
#include "vitrail/train/study/texts.h"
#include "vitrail/train/tasks/classify_text.h"
#include "vitrail/train/tasks/tag.h"

namespace vitrail::cli {
namespace {

using QuantizedJson = nlohmann::ordered_json;

constexpr std::int64_t longest_block = 1024;  // tokens that are in view, as of `vitrail eval`
constexpr std::int64_t tokens_at_once = 8192;

double perplexity_of(const std::filesystem::path& folder, const std::string& words, DType dtype) {
  const models::TextModel model = models::load_text_model(folder);
  const models::LanguageBody& body = models::language_of(model);
  const text::Tokenizer tokenizer = open_tokenizer(folder, body.vocab_size());
  const std::vector<std::int64_t> ids = tokenizer.encode(words, false).ids;
  const std::int64_t block = std::min(body.max_positions(), longest_block);
  const train::LanguageEvaluation result = train::evaluate_language(
      body, ids,
      {.block_size = block, .batch_size = std::max<std::int64_t>(1, tokens_at_once / block), .dtype = dtype});
  return std::exp(result.loss);
}

// The figure by which a classifier of texts or of words is judged, and its value on a file of them with their labels.
template <class Options>
std::pair<train::FigureKind, double> judged(const std::filesystem::path& folder, const QuantizeTextsFlags& flags,
                                            DType dtype) {
  Options options;
  options.data = options.val_data = flags.eval;
  options.skip_broken = flags.skip_broken;
  if constexpr (std::is_same_v<Options, train::ClassifyTextOptions>) {
    options.train_split.clear();
    options.val_split = flags.split;
    options.val_split_is_asked = !flags.split.empty();
  }
  const std::unique_ptr<train::Task> task = options.make(folder);
  train::Work work;
  work.dtype = dtype;
  const train::Figures figures = task->evaluate(work);
  const train::FigureKind kind = task->figures().front();
  return {kind, train::figure(figures, kind.name)};
}

std::pair<train::FigureKind, double> label_figure(const std::filesystem::path& folder, const QuantizeTextsFlags& flags,
                                                  bool each_token, DType dtype) {
  return each_token ? judged<train::TagOptions>(folder, flags, dtype)
                    : judged<train::ClassifyTextOptions>(folder, flags, dtype);
}

double bleu_of(const std::filesystem::path& folder, const text::ParallelText& text, DType dtype) {
  const models::TextModel model = models::load_text_model(folder);
  const models::Translator& body = models::translator_of(model);
  generate::GenerationConfig config = generate::read_generation_config(folder);
  generate::give_length(config, body.max_positions());
  generate::TranslateOptions options;
  options.generate.dtype = dtype;
  return train::translation_bleu(generate::translate(body, text::load_tokenizer(folder), config, text.source, options),
                                 text)
      .score;
}

// The vectors of texts, of length 1.
Tensor vectors_of(const std::filesystem::path& folder, const std::vector<std::string>& texts, DType dtype) {
  const models::SentenceModel model = models::open_sentence_model(folder.string());
  return ops::normalize(train::embed_texts(model, text::load_tokenizer(folder), texts, {.dtype = dtype}));
}

// The mean and the least cosine of the vectors of a text before and after.
QuantizedJson cosines_of(const Tensor& before, const Tensor& after) {
  double sum = 0;
  double least = 1;
  for (std::int64_t i = 0; i < before.size(0); ++i) {
    double cosine = 0;
    for (std::int64_t k = 0; k < before.size(1); ++k) {
      const std::int64_t at = i * before.size(1) + k;
      cosine += static_cast<double>(before.data<float>()[at]) * static_cast<double>(after.data<float>()[at]);
    }
    sum += cosine;
    least = std::min(least, cosine);
  }
  return {{"mean", sum / static_cast<double>(before.size(0))}, {"least", least}};
}

void print_comparison(const QuantizedJson& json) {
  if (json.contains("perplexity")) {
    const auto was = json["perplexity"]["float"].get<double>();
    const auto is = json["perplexity"]["int8"].get<double>();
    const double percent = std::round(1e4 * (is / was - 1)) / 100 + 0.0;  // and no negative zero
    fmt::print("  perplexity      {:.3f}, was {:.3f}: {:+.2f} %\n", is, was, percent);
  }
  if (json.contains("bleu")) {
    const auto was = json["bleu"]["float"].get<double>();
    const auto is = json["bleu"]["int8"].get<double>();
    fmt::print("  BLEU            {:.2f}, was {:.2f}: {:+.2f}\n", is, was, is - was);
  }
  if (json.contains("labels")) {
    const QuantizedJson& labels = json["labels"];
    const auto was = labels["float"].get<double>();
    const auto is = labels["int8"].get<double>();
    fmt::print("  {:<15} {:.2f} %, was {:.2f} %: {:+.2f}\n", labels["figure"].get<std::string>(), is, was, is - was);
  }
  if (json.contains("cosine")) {
    fmt::print("  vectors         cosine to those before {:.5f} in the mean, at least {:.5f}\n",
               json["cosine"]["mean"].get<double>(), json["cosine"]["least"].get<double>());
  }
}

}  // namespace

void quantize_texts(const std::filesystem::path& folder, const QuantizeTextsFlags& flags, const ComputeFlags& compute) {
  const models::TextModel model = models::load_text_model(folder);
  const bool translates = model.net->translator() != nullptr;
  const bool continues = model.net->language() != nullptr;
  check_usage(flags.src.empty() ? flags.tgt.empty() : text::are_pairs_named(flags.src, flags.tgt),
              "--src and --tgt go together: texts and their translations, unless --src is a table of both");
  check_usage(flags.src.empty() || translates, "--src and --tgt are for translators: --eval takes a text");
  check_usage(flags.eval.empty() || !translates, "a translator is compared on --src and --tgt, not on --eval");
  check_usage(flags.split.empty() ||
                  (!flags.eval.empty() && model.net->classifier() != nullptr && !model.net->classifier()->each_token()),
              "of models of texts --split is a part of the texts with labels of --eval: it has no effect here");
  const DType dtype = flags.compares() ? compute.apply() : DType::f32;
  std::int64_t broken = 0;
  std::int64_t* const skipped = flags.skip_broken ? &broken : nullptr;
  text::ParallelText pairs;
  if (!flags.src.empty()) {
    std::vector<std::string> notes;
    pairs = train::read_pairs_of({.name = "validation"}, flags.src, flags.tgt, notes, skipped);
    if (broken > 0) {
      notes.push_back(train::skipped_pairs_summary(broken));
    }
    std::ranges::for_each(notes, say_note);
  }
  const bool classifies = model.net->classifier() != nullptr;
  const bool each_token = classifies && model.net->classifier()->each_token();
  std::string running;             // of a language model
  std::vector<std::string> texts;  // of any other encoder
  if (!flags.eval.empty() && continues) {
    running = text::read_running_text(flags.eval, skipped);
    note_skipped_lines(broken);
  } else if (!flags.eval.empty() && !classifies) {
    texts = list_texts({flags.eval}, flags.skip_broken);
  }

  QuantizedJson json = {{"model", folder.string()}, {"output", flags.output}, {"activations", "token"}};
  Tensor vectors;
  if (!flags.src.empty()) {
    json["bleu"]["float"] = bleu_of(folder, pairs, dtype);
  } else if (!flags.eval.empty() && continues) {
    json["perplexity"]["float"] = perplexity_of(folder, running, dtype);
  } else if (!flags.eval.empty() && classifies) {
    const auto [kind, value] = label_figure(folder, flags, each_token, dtype);
    json["labels"] = {{"figure", kind.label}, {"float", value}};
  } else if (!flags.eval.empty()) {
    vectors = vectors_of(folder, texts, dtype);
  }
  const models::TextModel small = models::quantize(model);
  save_beside_files_of(folder, small, flags.output);
  json["bytes"] = {{"float", models::stored_bytes(*model.net, folder)}, {"int8", models::parameter_bytes(*small.net)}};
  if (json.contains("bleu")) {
    json["bleu"]["int8"] = bleu_of(flags.output, pairs, dtype);
  } else if (json.contains("perplexity")) {
    json["perplexity"]["int8"] = perplexity_of(flags.output, running, dtype);
  } else if (json.contains("labels")) {
    json["labels"]["int8"] = label_figure(flags.output, flags, each_token, dtype).second;
  } else if (vectors.defined()) {
    json["cosine"] = cosines_of(vectors, vectors_of(flags.output, texts, dtype));
  }
  if (flags.json) {
    print_json(json);
    return;
  }
  fmt::print("{}: weights by output in int8, activations by token\n", flags.output);
  fmt::print("  size            {:.1f} MB, was {:.1f} MB\n", json["bytes"]["int8"].get<double>() / 1e6,
             json["bytes"]["float"].get<double>() / 1e6);
  print_comparison(json);
}

}  // namespace vitrail::cli
