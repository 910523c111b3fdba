// `vitrail translate` translates texts line by line.
#include "vitrail/generate/translate.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/interrupted.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t lines_together = 2048;  // that are read, translated and printed together

struct TranslateFlags {
  std::string model;
  std::string input = "-";
  ComputeFlags compute;
  std::optional<DType> cache_dtype;
  std::optional<std::int64_t> num_beams, n_best, max_length, no_repeat_ngram_size;
  std::optional<double> length_penalty;
  std::string penalty;  // empty: hf
  std::string early_stopping;
  std::optional<std::uint64_t> seed;
  std::int64_t batch_size = 0;
  std::int64_t batch_tokens = generate::TranslateOptions().batch_tokens;
  bool alignment = false;
  bool truncate = false;
  bool skip_broken = false;
  bool json = false;
};

// The model's own config, with what the flags change.
generate::GenerationConfig translation_config(const TranslateFlags& flags, const fs::path& folder,
                                              std::int64_t positions) {
  std::vector<std::string> said;
  generate::GenerationConfig c = generate::read_generation_config(folder, &said);
  say_generation_config(generate::generation_config_file(folder).string(), std::move(said),
                        {{"num_beams", flags.num_beams.has_value()},
                         {"num_return_sequences", flags.n_best.has_value()},
                         {"no_repeat_ngram_size", flags.no_repeat_ngram_size.has_value()},
                         {"length_penalty", flags.length_penalty.has_value()},
                         {"early_stopping", !flags.early_stopping.empty()},
                         {"max_length", flags.max_length.has_value()},
                         {"max_new_tokens", flags.max_length.has_value()}});
  check_usage(flags.max_length.value_or(0) <= positions, "--max-length is {}, but the model is made for {} tokens",
              flags.max_length.value_or(0), positions);
  c.num_beams = flags.num_beams.value_or(c.num_beams);
  c.num_return_sequences = flags.n_best.value_or(c.num_return_sequences);
  c.no_repeat_ngram_size = flags.no_repeat_ngram_size.value_or(c.no_repeat_ngram_size);
  c.length_penalty = flags.length_penalty.value_or(c.length_penalty);
  c.early_stopping =
      flags.early_stopping.empty() ? c.early_stopping : generate::early_stopping_named(flags.early_stopping);
  if (flags.max_length) {
    c.max_length = *flags.max_length;
    c.says_length = true;
    c.max_new_tokens.reset();
  }
  generate::give_length(c, positions);
  as_generation_usage([&] { generate::validate(c); }, {{"num_return_sequences", "--n-best"}});
  if (c.num_beams == 1) {
    note_idle({{"--length-penalty", flags.length_penalty.has_value()},
               {"--penalty", !flags.penalty.empty()},
               {"--early-stopping", !flags.early_stopping.empty()}},
              "--num-beams");
  }
  if (!c.do_sample) {
    note_idle({{"--seed", flags.seed.has_value()}}, "do_sample in generation_config.json");
  }
  return c;
}

class LineTranslator {
 public:
  explicit LineTranslator(const TranslateFlags& flags)
      : flags_(flags),
        folder_(train::model_of(flags.model)),
        dtype_(flags.compute.apply()),
        model_(load(flags, folder_, dtype_)),
        body_(models::translator_of(model_)),
        tokenizer_(tokenizer_for(flags, folder_, body_)),
        config_(translation_config(flags, folder_, body_.max_positions())) {
    check_usage(body_.keeps_keys() || !flags.cache_dtype, "'{}' keeps no keys and values: it takes no --cache-dtype",
                flags.model);
  }

  // Translates lines, which come after `first` others, and prints what comes of them.
  void run(const std::vector<std::string>& lines, std::int64_t first, train::Progress& progress) {
    generate::TranslateOptions options;
    options.batch_lines = flags_.batch_size;
    options.batch_tokens = flags_.batch_tokens;
    options.alignment = flags_.alignment;
    options.generate.dtype = dtype_;
    options.generate.seed = flags_.seed.value_or(0);
    options.generate.cache_dtype = flags_.cache_dtype;
    options.generate.penalty = flags_.penalty == "wu" ? generate::LengthPenalty::wu : generate::LengthPenalty::hf;
    options.generate.interrupted = train::Interrupt::requested;
    options.advance = [&](std::int64_t done) {
      if (progress.terminal()) {
        progress.update(first + done, "");
      }
    };
    std::vector<generate::LineTranslations> translated;
    try {
      translated = generate::translate(body_, tokenizer_, config_, lines, options, first + 1);
    } catch (const Error& error) {
      fail("{}: {}", flags_.input == "-" ? "standard input" : flags_.input, error.what());
    }
    if (train::Interrupt::requested()) {
      return;
    }
    progress.end();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string text = flags_.json ? json_of(lines[i], translated[i]) : plain_of(first + i, translated[i]);
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
    std::fflush(stdout);
  }

 private:
  static models::TextModel load(const TranslateFlags& flags, const fs::path& folder, DType dtype) {
    check_trained_on_texts(folder, flags.model);
    return models::load_text_model(folder, {.weights = flags.compute.int8 ? DType::i8 : dtype});
  }

  static text::Tokenizer tokenizer_for(const TranslateFlags& flags, const fs::path& folder,
                                       const models::Translator& model) {
    const text::Tokenizer whole = open_tokenizer(folder, model.source_vocab_size());
    return flags.truncate ? whole.with_truncation(text::Truncation{.max_length = model.max_positions()}) : whole;
  }

  // A line, or of several translations a line each in Moses' form: "0 ||| text ||| score".
  std::string plain_of(std::size_t number, const generate::LineTranslations& line) const {
    std::string result;
    for (const generate::TranslatedLine& one : line.best) {
      result += config_.num_return_sequences > 1 ? fmt::format("{} ||| {} ||| {:.4f}", number, one.text, one.score)
                                                 : one.text;
      if (flags_.alignment) {
        std::vector<std::string> pairs;
        for (const auto& [source, target] : one.alignment) {
          pairs.push_back(fmt::format("{}-{}", source, target));
        }
        result += fmt::format(" ||| {}", fmt::join(pairs, " "));
      }
      result += "\n";
    }
    return result;
  }
  std::string json_of(const std::string& source, const generate::LineTranslations& line) const {
    nlohmann::ordered_json json = {{"source", source}, {"tokens", line.tokens}};
    for (const generate::TranslatedLine& one : line.best) {
      nlohmann::ordered_json translation = {{"text", one.text}, {"ids", one.ids}};
      translation["tokens"] = nlohmann::ordered_json::array();
      for (const std::int64_t id : one.ids) {
        translation["tokens"].push_back(tokenizer_.has(id) ? tokenizer_.token_of(id) : "");
      }
      if (config_.num_beams > 1) {
        translation["score"] = one.score;
      }
      if (flags_.alignment) {
        translation["alignment"] = one.alignment;
      }
      json["translations"].push_back(std::move(translation));
    }
    return json.dump() + "\n";
  }

  const TranslateFlags& flags_;
  fs::path folder_;
  DType dtype_;
  models::TextModel model_;
  const models::Translator& body_;
  text::Tokenizer tokenizer_;
  generate::GenerationConfig config_;
};

// The lines of a file, or of standard input, some at a time. A terminal's are taken one by one. What is broken becomes
// an empty line, so that those behind it keep their numbers.
class LineSource {
 public:
  LineSource(const std::string& name, bool skip_broken)
      : name_(name), from_input_(name == "-"), skip_broken_(skip_broken) {
    most_ = from_input_ && isatty(STDIN_FILENO) != 0 ? 1 : lines_together;
    if (!from_input_) {
      std::error_code none;
      check(std::filesystem::exists(name, none) || name.find(' ') == std::string::npos,
            "there is no file '{0}': a text is translated by `echo {1} | vitrail translate MODEL -`", name,
            io::shell_word(name));
      text_ = io::read_text(name);
      check(!text_.empty(), "{}: the text is empty", name);
      total_ = std::count(text_.begin(), text_.end(), '\n') + (text_.ends_with('\n') ? 0 : 1);
    }
  }
  std::int64_t total() const { return total_; }    // 0: not known
  std::int64_t broken() const { return broken_; }  // lines so far
  std::vector<std::string> next() {
    std::vector<std::string> lines;
    for (std::string line; lines.size() < most_ && take(line);) {
      lines.push_back(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
      ++number_;
      if (skip_broken_ && text::find_invalid_utf8(lines.back()) != std::string::npos) {
        lines.back().clear();
        ++broken_;
      }
      text::check_line(lines.back(), from_input_ ? "standard input" : name_, number_);
    }
    return lines;
  }

 private:
  bool take(std::string& line) {
    if (from_input_) {
      return io::next_input_line(line);
    }
    if (at_ >= text_.size()) {
      return false;
    }
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    line = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }

  std::string name_;
  bool from_input_;
  bool skip_broken_;
  std::int64_t broken_ = 0;
  std::size_t number_ = 0;  // of the last line
  std::size_t most_ = 0;
  std::string text_;
  std::size_t at_ = 0;
  std::int64_t total_ = 0;
};

void translate_lines(const TranslateFlags& flags) {
  check_usage(flags.n_best.value_or(1) == 1 || flags.num_beams.value_or(2) > 1,
              "--n-best {} needs a --num-beams above 1, which finds more than one", flags.n_best.value_or(1));
  const train::Interrupt interrupt;
  LineSource source(flags.input, flags.skip_broken);
  LineTranslator translator(flags);
  train::Progress progress(stderr);
  if (source.total() > 0) {
    progress.begin("translating", source.total());
  }
  std::int64_t done = 0;
  for (std::vector<std::string> lines = source.next(); !lines.empty(); lines = source.next()) {
    translator.run(lines, done, progress);
    done += std::ssize(lines);
    end_if_interrupted(&progress);
  }
  progress.end();
  if (const std::int64_t broken = source.broken(); broken > 0) {
    say_note(fmt::format("{} that {} not UTF-8 {}", io::counted(broken, "lines"), broken == 1 ? "is" : "are",
                         broken == 1 ? "is taken for an empty one" : "are taken for empty ones"));
  }
}

}  // namespace

void add_translate(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("translate", "Translate texts line by line with an encoder–decoder");
  const auto flags = std::make_shared<TranslateFlags>();
  command.add_option("MODEL", flags->model, "Folder of a translator and its tokenizer, or a run folder")
      ->required()
      ->type_name("");
  command.add_option("FILE", flags->input, "Texts, a sentence a line; -: from stdin")->type_name("");
  const auto count = [&](const char* name, std::optional<std::int64_t>& field, const char* help, int least = 1) {
    command.add_option(name, field, help)->check(at_least(least))->type_name("N")->group("Search");
  };
  count("--num-beams", flags->num_beams,
        "Beams of the search; 1: the most likely token each time (default: the model's)");
  count("--n-best", flags->n_best, "Translations for each line, as 'line ||| text ||| score'");
  count("--max-length", flags->max_length,
        "Most tokens of a translation, the one that it begins with included (default: the model's)", 2);
  count("--no-repeat-ngram-size", flags->no_repeat_ngram_size, "No sequence of N tokens comes twice; 0: any may", 0);
  command
      .add_option("--length-penalty", flags->length_penalty,
                  "Translations are compared by log-probability over their --penalty with this exponent (default: the "
                  "model's)")
      ->check(finite())
      ->type_name("ALPHA")
      ->group("Search");
  command
      .add_option(
          "--penalty", flags->penalty,
          "Divide by the length to the power of ALPHA (hf, the default), or by (5 + length) / 6 to it (wu: Wu et al. "
          "2016)")
      ->check(CLI::IsMember({"hf", "wu"}))
      ->type_name("KIND")
      ->group("Search");
  command.add_option("--early-stopping", flags->early_stopping, "When a beam search ends: see `vitrail generate`")
      ->check(CLI::IsMember({"true", "false", "never"}))
      ->type_name("WHEN")
      ->group("Search");
  add_seed_flag(command, flags->seed);
  command
      .add_option("-b,--batch-size", flags->batch_size, "Most lines of a batch; 0: no limit but that of --batch-tokens")
      ->check(at_least(0))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--batch-tokens", flags->batch_tokens, "Most tokens of the lines of a batch")
      ->check(at_least(1))
      ->capture_default_str()
      ->type_name("N");
  command.add_flag("--alignment", flags->alignment,
                   "Print which token of the line each token of the translation looks at most: '0-0 1-2 …'");
  command.add_flag("--truncate", flags->truncate, "Cut lines that are longer than the model's positions");
  command.add_flag("--skip-broken", flags->skip_broken,
                   "Take lines that are not UTF-8 for empty ones, and say how many they are");
  command.add_flag("--json", flags->json, "Print an object for each line: tokens, translations, scores, alignments");
  add_compute_flags_with_int8(command, flags->compute);
  add_cache_flag(command, flags->cache_dtype);
  add_examples(command, {"vitrail translate runs/de-en test.de > test.out",
                         "echo 'Ein Hund läuft.' | vitrail translate runs/de-en --num-beams 8 --n-best 3",
                         "vitrail translate opus-mt-de-en news.de --penalty wu --length-penalty 0.6 --json"});
  command.callback([flags] { translate_lines(*flags); });
}

}  // namespace vitrail::cli
