#include "vitrail/cli/use/generate_flags.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

#include "vitrail/cli/texts.h"

namespace vitrail::cli {

using generate::GenerationConfig;

namespace {

constexpr std::int64_t usual_new_tokens = 100;  // if neither the model nor the user says how many

template <class T, class Field>
void take(const std::optional<T>& flag, Field& field) {
  if (flag) {
    field = *flag;
  }
}

}  // namespace

void add_sampling_flags(CLI::App& command, GenerateFlags& flags) {
  command
      .add_flag("--do-sample", flags.do_sample,
                "Draw each token from its distribution instead of taking the most likely")
      ->group("Sampling");
  const auto number = [&](const char* name, std::optional<double>& field, const char* help) {
    command.add_option(name, field, help)->check(finite())->group("Sampling")->type_name("X");
  };
  number("--temperature", flags.temperature, "Divide the logits by this: below 1 is more certain");
  command.add_option("--top-k", flags.top_k, "Draw from the K most likely tokens; 0: all")
      ->check(whole_number())
      ->group("Sampling")
      ->type_name("K");
  number("--top-p", flags.top_p, "Draw from the fewest tokens whose probabilities reach this");
  number("--min-p", flags.min_p, "Draw from tokens at least this share as likely as the most likely one");
  number("--typical-p", flags.typical_p, "Draw from the tokens of typical information that reach this probability");
  number("--repetition-penalty", flags.repetition_penalty, "Make tokens that have occurred less likely; 1: not");
  command.add_option("--seed", flags.seed, "Of the draws, which differ from line to line of --prompts (default: 0)")
      ->check(at_least(0))
      ->group("Sampling")
      ->type_name("N");
}

void add_search_flags(CLI::App& command, GenerateFlags& flags) {
  const auto count = [&](const char* name, std::optional<std::int64_t>& field, const char* help, int least = 1) {
    command.add_option(name, field, help)->check(at_least(least))->type_name("N")->group("Search");
  };
  count("--max-new-tokens", flags.max_new_tokens, "Most tokens to add (default: the model's, or 100)");
  count("--min-new-tokens", flags.min_new_tokens, "Tokens to add before a text may end", 0);
  count("--num-beams", flags.num_beams, "Beams of a beam search; 1: none");
  count("--num-return-sequences", flags.num_return_sequences, "Texts for each prompt");
  count("--no-repeat-ngram-size", flags.no_repeat_ngram_size, "No sequence of N tokens comes twice; 0: any may", 0);
  command
      .add_option("--length-penalty", flags.length_penalty,
                  "Beams are compared by log-probability / length to this power")
      ->check(finite())
      ->type_name("X")
      ->group("Search");
  command
      .add_option("--early-stopping", flags.early_stopping,
                  "When a beam search ends: true, with enough finished beams; never, if none can become better; false, "
                  "if none is likely to")
      ->check(CLI::IsMember({"true", "false", "never"}))
      ->type_name("WHEN")
      ->group("Search");
  command
      .add_option(
          "--prompt-lookup-num-tokens", flags.prompt_lookup_num_tokens,
          "Read up to N tokens at once that followed the same words before: the same text, often sooner; 0: not")
      ->check(whole_number())
      ->type_name("N")
      ->group("Search");
  command
      .add_option("--max-matching-ngram-size", flags.max_matching_ngram_size,
                  "Most words that prompt lookup compares (default: 2)")
      ->check(at_least(1))
      ->type_name("N")
      ->group("Search");
  command.add_flag("--slide", flags.slide, "Go on beyond the model's positions, with the last half of them in view")
      ->group("Search");
  command.add_option("--stop", flags.stop, "End a text behind this word: one a flag, which may be given several times")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->group("Search");
}

GenerationConfig own_config(const std::filesystem::path& folder, const GenerateFlags& flags) {
  std::vector<std::string> said;
  GenerationConfig config = generate::read_generation_config(folder, &said);
  say_generation_config(generate::generation_config_file(folder).string(), std::move(said),
                        {{"do_sample", flags.do_sample},
                         {"num_beams", flags.num_beams.has_value()},
                         {"num_return_sequences", flags.num_return_sequences.has_value()},
                         {"early_stopping", !flags.early_stopping.empty()},
                         {"length_penalty", flags.length_penalty.has_value()},
                         {"temperature", flags.temperature.has_value()},
                         {"top_k", flags.top_k.has_value()},
                         {"top_p", flags.top_p.has_value()},
                         {"min_p", flags.min_p.has_value()},
                         {"typical_p", flags.typical_p.has_value()},
                         {"repetition_penalty", flags.repetition_penalty.has_value()},
                         {"no_repeat_ngram_size", flags.no_repeat_ngram_size.has_value()},
                         {"min_new_tokens", flags.min_new_tokens.has_value()},
                         {"stop_strings", !flags.stop.empty()},
                         {"max_new_tokens", flags.max_new_tokens.has_value()},
                         {"max_length", flags.max_new_tokens.has_value()}});
  return config;
}

GenerationConfig config_of(const GenerateFlags& flags, GenerationConfig own, std::int64_t prompt,
                           std::int64_t positions) {
  GenerationConfig c = std::move(own);
  take(flags.max_new_tokens, c.max_new_tokens);
  take(flags.min_new_tokens, c.min_new_tokens);
  take(flags.top_k, c.top_k);
  take(flags.num_beams, c.num_beams);
  take(flags.num_return_sequences, c.num_return_sequences);
  take(flags.no_repeat_ngram_size, c.no_repeat_ngram_size);
  take(flags.temperature, c.temperature);
  take(flags.top_p, c.top_p);
  take(flags.min_p, c.min_p);
  take(flags.typical_p, c.typical_p);
  take(flags.repetition_penalty, c.repetition_penalty);
  take(flags.length_penalty, c.length_penalty);
  c.do_sample = c.do_sample || flags.do_sample;
  if (!flags.early_stopping.empty()) {
    c.early_stopping = generate::early_stopping_named(flags.early_stopping);
  }
  as_generation_usage([&] { generate::validate(c); });
  if (!c.max_new_tokens && !c.says_length) {
    c.max_new_tokens =
        flags.slide ? usual_new_tokens : std::clamp<std::int64_t>(positions - prompt, 1, usual_new_tokens);
  }
  return c;
}

void note_idle_flags(const GenerateFlags& flags, const GenerationConfig& config) {
  if (!config.do_sample) {
    note_idle({{"--temperature", flags.temperature.has_value()},
               {"--top-k", flags.top_k.has_value()},
               {"--top-p", flags.top_p.has_value()},
               {"--min-p", flags.min_p.has_value()},
               {"--typical-p", flags.typical_p.has_value()},
               {"--seed", flags.seed.has_value()}},
              "--do-sample");
  }
  if (config.num_beams == 1) {
    note_idle(
        {{"--length-penalty", flags.length_penalty.has_value()}, {"--early-stopping", !flags.early_stopping.empty()}},
        "--num-beams");
  }
  if (flags.prompt_lookup_num_tokens == 0) {
    note_idle({{"--max-matching-ngram-size", flags.max_matching_ngram_size.has_value()}}, "--prompt-lookup-num-tokens");
  }
}

}  // namespace vitrail::cli
