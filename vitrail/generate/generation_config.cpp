#include "vitrail/generate/generation_config.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/models/formats/generation_fields.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/tensor/error.h"

namespace vitrail::generate {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr io::Range ids_range{0, 1 << 28};
constexpr io::Range counts{0, 1 << 28};

// One value, which is of the kind `one`, a list of them, or null.
template <class T>
std::vector<T> read_some(io::Fields& f, const char* key, io::Kind one, io::Range range = {}) {
  if (f.is_unset(key)) {
    return {};
  }
  return f.kind(key) == one ? std::vector<T>{f.get<T>(key, range)} : f.get<std::vector<T>>(key, range);
}
std::vector<std::int64_t> read_ids(io::Fields& f, const char* key) {
  return read_some<std::int64_t>(f, key, io::Kind::integer, ids_range);
}

std::vector<std::vector<std::int64_t>> read_words(io::Fields& f) {
  std::vector<std::vector<std::int64_t>> words;
  if (f.is_unset("bad_words_ids")) {
    return words;
  }
  const Json& list = f.raw("bad_words_ids");
  check(list.is_array(), "{}: 'bad_words_ids' must be a list of lists of token ids", f.source());
  for (const Json& word : list) {
    bool good = word.is_array() && !word.empty();
    for (const Json& id : word) {
      good = good && id.is_number_integer() && id.get<std::int64_t>() >= 0;
    }
    check(good, "{}: 'bad_words_ids' must be a list of lists of token ids, but has {}", f.source(), word.dump());
    words.push_back(word.get<std::vector<std::int64_t>>());
  }
  return words;
}

EarlyStopping read_early_stopping(io::Fields& f) {
  if (f.kind("early_stopping") == io::Kind::string) {
    f.choice("early_stopping", "never", {"never"});
    return EarlyStopping::never;
  }
  return f.optional<bool>("early_stopping").value_or(false) ? EarlyStopping::at_once : EarlyStopping::heuristic;
}

// Fields of methods that are none of generate()'s, and the values at which they ask for nothing.
void check_left_out(io::Fields& f) {
  const std::array<std::pair<const char*, Json>, 15> none = {{{"num_beam_groups", 1},
                                                              {"diversity_penalty", 0.0},
                                                              {"penalty_alpha", 0.0},
                                                              {"guidance_scale", 1.0},
                                                              {"encoder_repetition_penalty", 1.0},
                                                              {"encoder_no_repeat_ngram_size", 0},
                                                              {"sequence_bias", nullptr},
                                                              {"watermarking_config", nullptr},
                                                              {"exponential_decay_length_penalty", nullptr},
                                                              {"top_h", nullptr},
                                                              {"max_time", nullptr},
                                                              {"token_healing", false},
                                                              {"constraints", nullptr},
                                                              {"force_words_ids", nullptr},
                                                              {"dola_layers", nullptr}}};
  for (const auto& [key, value] : none) {
    const bool asks = !f.is_unset(key) && f.raw(key) != value;
    check(!asks, "{}: '{}' asks for a way of generating that is not supported", f.source(), key);
  }
}

void read_tokens(io::Fields& f, GenerationConfig& c) {
  c.bos_token_id = f.optional<std::int64_t>("bos_token_id", ids_range);
  c.eos_token_id = read_ids(f, "eos_token_id");
  c.decoder_start_token_id = f.optional<std::int64_t>("decoder_start_token_id", ids_range);
  // Some configs have -1 for none.
  c.pad_token_id = f.optional<std::int64_t>("pad_token_id", {-1, 1 << 28});
  if (c.pad_token_id == -1) {
    c.pad_token_id.reset();
  }
}

// The fields that change what is generated, and differ from the defaults.
std::vector<std::string> differences(io::Fields& f) {
  std::vector<std::string> result;
  for (const auto& [key, value] : models::generation_defaults()) {
    if (!f.is_unset(key) && f.raw(key) != value && f.raw(key) != Json::array()) {
      result.push_back(fmt::format("{} {}", key, f.raw(key).dump()));
    }
  }
  return result;
}

}  // namespace

EarlyStopping early_stopping_named(std::string_view name) {
  const bool at_once = name == "true" || name == "True";  // as Python has them
  check(at_once || name == "false" || name == "False" || name == "never",
        "early_stopping is true, false or never, not '{}'", name);
  return at_once ? EarlyStopping::at_once : name == "never" ? EarlyStopping::never : EarlyStopping::heuristic;
}

fs::path generation_config_file(const fs::path& folder) {
  const fs::path own = folder / models::generation_file;
  return fs::exists(own) ? own : folder / models::config_file;
}

GenerationConfig read_generation_config(const fs::path& folder, std::vector<std::string>* said) {
  const fs::path path = generation_config_file(folder);
  return parse_generation_config(io::read_text(path), path.string(), said);
}

GenerationConfig parse_generation_config(std::string_view text, const std::string& source,
                                         std::vector<std::string>* said) {
  GenerationConfig c;
  const Json json = io::parse_json(text, source);
  io::Fields f(json, source);
  // null is transformers' way to leave a field at its default.
  const auto number = [&](const char* key, double fallback) { return f.optional<double>(key).value_or(fallback); };
  const auto count = [&](const char* key, std::int64_t fallback) {
    return f.optional<std::int64_t>(key, counts).value_or(fallback);
  };
  read_tokens(f, c);
  check_left_out(f);
  c.max_new_tokens = f.optional<std::int64_t>("max_new_tokens", counts);
  c.max_length = count("max_length", c.max_length);
  c.says_length = c.max_new_tokens || !f.is_unset("max_length");
  c.min_length = count("min_length", 0);
  c.min_new_tokens = f.optional<std::int64_t>("min_new_tokens", counts);
  c.do_sample = f.optional<bool>("do_sample").value_or(false);
  c.num_beams = count("num_beams", 1);
  c.says_beams = !f.is_unset("num_beams");
  c.num_return_sequences = count("num_return_sequences", 1);
  c.early_stopping = read_early_stopping(f);
  c.length_penalty = number("length_penalty", 1);
  c.temperature = number("temperature", 1);
  c.top_k = count("top_k", c.top_k);
  c.top_p = number("top_p", 1);
  c.min_p = f.optional<double>("min_p");
  c.typical_p = number("typical_p", 1);
  c.epsilon_cutoff = number("epsilon_cutoff", 0);
  c.eta_cutoff = number("eta_cutoff", 0);
  c.repetition_penalty = number("repetition_penalty", 1);
  c.no_repeat_ngram_size = count("no_repeat_ngram_size", 0);
  c.bad_words_ids = read_words(f);
  c.suppress_tokens = read_ids(f, "suppress_tokens");
  c.begin_suppress_tokens = read_ids(f, "begin_suppress_tokens");
  c.forced_bos_token_id = f.optional<std::int64_t>("forced_bos_token_id", ids_range);
  c.forced_eos_token_id = read_ids(f, "forced_eos_token_id");
  c.renormalize_logits = f.optional<bool>("renormalize_logits").value_or(false);
  c.stop_strings = read_some<std::string>(f, "stop_strings", io::Kind::string);
  try {
    validate(c);
  } catch (const Error& error) {
    fail("{}: {}", source, error.what());
  }
  if (said != nullptr) {
    *said = differences(f);
  }
  return c;
}

void give_length(GenerationConfig& config, std::int64_t positions) {
  constexpr std::int64_t usual = 512;
  if (!config.says_length && !config.max_new_tokens) {
    config.max_length = positions == models::unbounded_positions ? usual : positions;
  }
}

void validate(const GenerationConfig& c) {
  check(c.num_beams >= 1, "num_beams must be at least 1, not {}", c.num_beams);
  check(c.num_return_sequences >= 1, "num_return_sequences must be at least 1, not {}", c.num_return_sequences);
  check(c.num_beams == 1 || c.num_return_sequences <= c.num_beams,
        "num_return_sequences {} must not be more than num_beams {}", c.num_return_sequences, c.num_beams);
  check(c.num_return_sequences == 1 || c.num_beams > 1 || c.do_sample,
        "num_return_sequences {} would be the same text each time: it needs do_sample or num_beams",
        c.num_return_sequences);
  check(!c.do_sample || c.temperature > 0,
        "temperature must be above 0 with do_sample, not {}: without do_sample the "
        "most likely token is taken",
        c.temperature);
  check(c.top_p > 0 && c.top_p <= 1, "top_p must be above 0 and at most 1, not {}", c.top_p);
  check(c.top_k >= 0, "top_k must be at least 1, or 0 for all tokens, not {}", c.top_k);
  check(!c.min_p || (*c.min_p >= 0 && *c.min_p <= 1), "min_p must lie from 0 to 1, not {}", c.min_p.value_or(0));
  check(c.typical_p > 0 && c.typical_p <= 1, "typical_p must be above 0 and at most 1, not {}", c.typical_p);
  check(c.epsilon_cutoff >= 0 && c.epsilon_cutoff < 1, "epsilon_cutoff must be from 0 to below 1, not {}",
        c.epsilon_cutoff);
  check(c.eta_cutoff >= 0 && c.eta_cutoff < 1, "eta_cutoff must be from 0 to below 1, not {}", c.eta_cutoff);
  check(c.repetition_penalty > 0, "repetition_penalty must be above 0, not {}", c.repetition_penalty);
  check(std::ranges::find(c.stop_strings, "") == c.stop_strings.end(),
        "stop_strings has an empty one, behind which every text would end at once");
  check(c.no_repeat_ngram_size >= 0, "no_repeat_ngram_size must be at least 0, not {}", c.no_repeat_ngram_size);
  const auto check_forced = [&](std::string_view field, const std::vector<std::int64_t>& ids) {
    const bool all = std::ranges::all_of(
        ids, [&](std::int64_t id) { return std::ranges::find(c.suppress_tokens, id) != c.suppress_tokens.end(); });
    check(ids.empty() || !all, "{} {} is forced, and suppress_tokens forbids it", field, fmt::join(ids, ", "));
  };
  check_forced("forced_eos_token_id", c.forced_eos_token_id);
  if (c.forced_bos_token_id) {
    check_forced("forced_bos_token_id", {*c.forced_bos_token_id});
  }
  check(!c.max_new_tokens || *c.max_new_tokens >= 1, "max_new_tokens must be at least 1, not {}",
        c.max_new_tokens.value_or(0));
}

}  // namespace vitrail::generate
