#include "vitrail/models/formats/generation_fields.h"

namespace vitrail::models {

const std::vector<std::pair<const char*, nlohmann::json>>& generation_defaults() {
  static const std::vector<std::pair<const char*, nlohmann::json>> fields = {{"do_sample", false},
                                                                             {"num_beams", 1},
                                                                             {"num_return_sequences", 1},
                                                                             {"early_stopping", false},
                                                                             {"length_penalty", 1.0},
                                                                             {"temperature", 1.0},
                                                                             {"top_k", 50},
                                                                             {"top_p", 1.0},
                                                                             {"min_p", nullptr},
                                                                             {"typical_p", 1.0},
                                                                             {"repetition_penalty", 1.0},
                                                                             {"no_repeat_ngram_size", 0},
                                                                             {"max_new_tokens", nullptr},
                                                                             {"max_length", 20},
                                                                             {"min_length", 0},
                                                                             {"min_new_tokens", nullptr},
                                                                             {"epsilon_cutoff", 0.0},
                                                                             {"eta_cutoff", 0.0},
                                                                             {"bad_words_ids", nullptr},
                                                                             {"suppress_tokens", nullptr},
                                                                             {"begin_suppress_tokens", nullptr},
                                                                             {"forced_bos_token_id", nullptr},
                                                                             {"forced_eos_token_id", nullptr},
                                                                             {"renormalize_logits", false},
                                                                             {"stop_strings", nullptr}};
  return fields;
}

}  // namespace vitrail::models
