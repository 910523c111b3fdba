#include "vitrail/cli/use/eval_translation.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/interrupted.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/generate/generation_config.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/tensor/clock.h"
#include "vitrail/text/parallel_text.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/sources/pair_parts.h"
#include "vitrail/train/study/evaluate_translation.h"

namespace vitrail::cli {

void add_translation_flags(CLI::App& command, TranslationFlags& flags) {
  const char* group = "Translators";
  command
      .add_option(
          "--src", flags.src,
          "Texts to translate, or for vectors of sentences, a sentence a line; or a table of pairs, without --tgt")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--tgt", flags.tgt, "Their translations, or partners, line by line")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--num-beams", flags.num_beams, "Beams of the search (default: the model's; of captions: 1)")
      ->check(at_least(1))
      ->type_name("N")
      ->group(group);
  command.add_option("--batch-tokens", flags.batch_tokens, "Most tokens of a batch (default: 4096)")
      ->check(at_least(1))
      ->type_name("N")
      ->group(group);
}

void evaluate_translator(const std::string& model_name, const TranslationFlags& flags, const std::string& split,
                         bool skip_broken, const ComputeFlags& compute, bool json) {
  const train::Interrupt interrupt;
  const std::filesystem::path folder = train::model_of(model_name);
  const DType dtype = compute.apply();
  std::vector<std::string> notes;
  std::int64_t skipped = 0;
  const text::ParallelText text = train::read_pairs_of({.name = split, .asked = true}, flags.src, flags.tgt, notes,
                                                       skip_broken ? &skipped : nullptr);
  if (skipped > 0) {
    notes.push_back(train::skipped_pairs_summary(skipped));
  }
  std::ranges::for_each(notes, say_note);
  const models::TextModel model = models::load_text_model(folder);
  const models::Translator& body = models::translator_of(model);
  const text::Tokenizer tokenizer = open_tokenizer(folder, body.source_vocab_size());
  const text::Tokenizer cutting = tokenizer.with_truncation(text::Truncation{.max_length = body.max_positions()});
  const auto sources = tokenizer.encode_batch(text.source, true, kernels::threads());
  if (const auto cut = std::ranges::count_if(
          sources, [&](const text::Encoding& line) { return std::ssize(line.ids) > body.max_positions(); });
      cut > 0) {
    say("note: {} of more than {} tokens, for which the model is made, {} cut, and left out of the loss\n",
        io::counted(cut, "lines"), body.max_positions(), cut == 1 ? "is" : "are");
  }
  generate::GenerationConfig config = generate::read_generation_config(folder);
  config.num_beams = flags.num_beams.value_or(config.num_beams);
  const std::int64_t batch_tokens = flags.batch_tokens.value_or(4096);
  generate::give_length(config, body.max_positions());
  const train::SentencePairs pairs(text, tokenizer, text::load_target_tokenizer(folder), train::special_tokens(config),
                                   body.max_positions(), kernels::threads());
  train::Progress progress(stderr);
  progress.begin("evaluating", pairs.count() + std::ssize(text.source));
  const auto advance = [&](std::int64_t done) {
    if (progress.terminal()) {
      progress.update(done, "");
    }
    end_if_interrupted(&progress);
  };
  const double loss = train::mean_translation_loss(body, pairs, batch_tokens, dtype, advance);
  generate::TranslateOptions options;
  options.batch_tokens = batch_tokens;
  options.generate.dtype = dtype;
  options.generate.interrupted = train::Interrupt::requested;
  options.advance = [&](std::int64_t lines) { advance(pairs.count() + lines); };
  const auto begin = std::chrono::steady_clock::now();
  const auto translations = generate::translate(body, cutting, config, text.source, options);
  const double seconds = seconds_since(begin);
  advance(pairs.count() + std::ssize(text.source));  // throws if it was interrupted
  progress.end();
  const text::BleuScore score = train::translation_bleu(translations, text);
  const std::string signature = text::bleu_signature({}, 1);
  const double pace = static_cast<double>(text.source.size()) / seconds;
  if (json) {
    const nlohmann::ordered_json result = {{"model", model_name},
                                           {"src", flags.src},
                                           {"tgt", flags.tgt},
                                           {"pairs", text.source.size()},
                                           {"loss", loss},
                                           {"bleu", score.score},
                                           {"signature", signature},
                                           {"num_beams", config.num_beams},
                                           {"lines_per_second", pace}};
    print_json(result);
    return;
  }
  fmt::print("BLEU {:.2f} {}   loss {:.4f} a token   {}, {:.0f} a second with {}\n{}\n", score.score,
             text::bleu_details(score), loss, io::counted(std::ssize(text.source), "pairs"), pace,
             io::counted(config.num_beams, "beams"), signature);
}

}  // namespace vitrail::cli
