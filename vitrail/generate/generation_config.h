/// \file
/// How a text is generated: transformers' GenerationConfig.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::generate {

/// When a beam search with enough finished sequences ends.
enum class EarlyStopping {
  heuristic,  ///< false: once no running beam, at its present length, is better than the worst finished one
  at_once,    ///< true
  never       ///< "never": once no running beam can become better, whatever its length
};

/// By "false", "true" or "never"; throws Error for others.
EarlyStopping early_stopping_named(std::string_view name);

/// The fields of transformers' GenerationConfig by their names, with its defaults and meanings; an unset field changes
/// nothing.
struct GenerationConfig {
  std::optional<std::int64_t> max_new_tokens;
  std::int64_t max_length = 20;  ///< of prompt and new tokens together, unless max_new_tokens is set
  bool says_length = false;      ///< whether the file that was read has one of these two
  std::int64_t min_length = 0;
  std::optional<std::int64_t> min_new_tokens;  ///< counts instead of min_length
  bool do_sample = false;
  std::int64_t num_beams = 1;
  bool says_beams = false;  ///< whether the file that was read has num_beams
  std::int64_t num_return_sequences = 1;
  EarlyStopping early_stopping = EarlyStopping::heuristic;
  double length_penalty = 1;  ///< a finished beam's sum of log-probabilities is divided by its length to this power
  double temperature = 1;
  std::int64_t top_k = 50;  ///< of sampling; 0: all
  double top_p = 1;
  std::optional<double> min_p;
  double typical_p = 1;
  double epsilon_cutoff = 0;
  double eta_cutoff = 0;
  double repetition_penalty = 1;
  std::int64_t no_repeat_ngram_size = 0;
  std::vector<std::vector<std::int64_t>> bad_words_ids = {};
  std::vector<std::int64_t> suppress_tokens = {};
  std::vector<std::int64_t> begin_suppress_tokens = {};
  std::optional<std::int64_t> forced_bos_token_id;
  std::vector<std::int64_t> forced_eos_token_id = {};
  bool renormalize_logits = false;  ///< whether what is left over counts as all there is: a beam's scores are of that
  std::vector<std::string> stop_strings = {};  ///< behind which a text ends; whoever has a tokenizer looks for them
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_id = {};  ///< each of them ends a sequence
  /// With which the translations of an encoder–decoder begin; unset: bos_token_id.
  std::optional<std::int64_t> decoder_start_token_id;
  std::optional<std::int64_t> pad_token_id;  ///< fills up shorter texts of a batch; unset: the first eos_token_id

  /// The most tokens that are added to a prompt of this many.
  std::int64_t most_new_tokens(std::int64_t prompt) const {
    return max_new_tokens ? *max_new_tokens : max_length - prompt;
  }
};

/// Throws Error, naming the field, if a value is none that generation can work with: a temperature of 0 with sampling,
/// a top_p of 0, fewer beams than returned sequences …
void validate(const GenerationConfig& config);

/// Unless the config says how long texts become: as long as a model of so many positions is made for, 512 tokens if
/// that has no limit.
void give_length(GenerationConfig& config, std::int64_t positions);

/// generation_config.json of a model's folder or, if there is none, config.json, which has such fields in older
/// folders.
std::filesystem::path generation_config_file(const std::filesystem::path& folder);

/// Reads generation_config_file() of a model's folder. `said` gets the fields that differ from the defaults and so
/// change what is generated, as "temperature 0.6". Throws Error for values that are none, and for fields that ask for
/// what generate() does not do.
GenerationConfig read_generation_config(const std::filesystem::path& folder, std::vector<std::string>* said = nullptr);
/// The same of the text of such a file. Errors name `source`.
GenerationConfig parse_generation_config(std::string_view text, const std::string& source,
                                         std::vector<std::string>* said = nullptr);

}  // namespace vitrail::generate
