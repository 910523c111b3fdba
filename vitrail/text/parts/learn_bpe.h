/// \file
/// The merges of a BPE model, learned from counted words.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace vitrail::text {

struct BpeLearning {
  std::int64_t vocab_size = 30'000;
  std::int64_t min_frequency = 0;           ///< a pair that is rarer is not joined
  std::vector<std::string> special_tokens;  ///< the first tokens
  std::set<char32_t> alphabet;              ///< characters that are tokens even if no word has them
  std::string continuing_subword_prefix;    ///< of every character of a word but the first
  std::string end_of_word_suffix;           ///< of the last character of a word
};

struct LearnedBpe {
  std::vector<std::string> tokens;  ///< by id
  std::vector<std::pair<std::string, std::string>> merges;
};

/// Joins the most frequent pair of neighbours again and again, among equally frequent ones that of the smallest ids,
/// exactly as `BpeTrainer` of Hugging Face's tokenizers (models/bpe/trainer.rs). Throws Error if the special tokens and
/// the alphabet alone are more than `vocab_size`.
LearnedBpe learn_bpe(const std::map<std::string, std::int64_t>& words, const BpeLearning& options);

}  // namespace vitrail::text
