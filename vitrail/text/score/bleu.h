/// \file
/// BLEU (Papineni et al. 2002), as sacrebleu 2.6 computes it (Post 2018).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/text/score/segments.h"

namespace vitrail::text {

/// The version of sacrebleu whose scores these are; signatures end with it.
inline constexpr const char* sacrebleu_version = "2.6.0";

struct BleuOptions {
  /// How a line is cut into words: "13a" (mteval-v13a, of the Workshops on Machine Translation), "intl" (mteval-v14,
  /// by Unicode's categories), "zh", "char" or "none" (between white space).
  std::string tokenize = "13a";
  bool lowercase = false;
  /// What an order without matches counts (Chen and Cherry 2014): "exp" halves it each time (NIST's smoothing), "floor"
  /// takes `smooth_value` for the matches, "add-k" adds it to matches and totals beyond the first order, "none"
  /// nothing.
  std::string smooth_method = "exp";
  std::optional<double> smooth_value = {};  ///< for "floor" 0.1 and for "add-k" 1 by default
  bool effective_order = false;             ///< leave out orders that are longer than the text: for single sentences
};

struct BleuScore {
  double score = 0;                ///< from 0 to 100
  std::vector<double> counts;      ///< matches of 1- to 4-grams; no whole numbers after add-k
  std::vector<double> totals;      ///< n-grams of the hypotheses
  std::vector<double> precisions;  ///< in percent, smoothed
  double brevity_penalty = 1;
  std::int64_t hypothesis_length = 0;
  std::int64_t reference_length = 0;  ///< of the reference nearest in length, for each segment
};

/// The names that `tokenize` and `smooth_method` may have.
const std::vector<std::string>& bleu_tokenizers();
const std::vector<std::string>& bleu_smooth_methods();

/// The line as the tokenizer of this name cuts it, its words with one space between them.
std::u32string bleu_tokenized(const std::u32string& line, const std::string& tokenizer);

/// The score of a corpus: `references` has one or several translations of all segments. Throws Error for unknown names
/// in the options, and unless all have the same number of segments, and at least one.
BleuScore bleu(const Segments& hypotheses, const std::vector<Segments>& references, const BleuOptions& options = {});

/// sacrebleu's signature: "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0".
std::string bleu_signature(const BleuOptions& options, std::size_t references);

/// A signature of BLEU's or chrF's with the short names of its parts: "#:1|c:mixed|e:no|tok:13a|s:exp|v:2.6.0".
std::string short_signature(const std::string& signature);

/// What sacrebleu prints behind the score: "75.4/60.0/51.6/43.9 (BP = 1.000 ratio = 1.064 hyp_len = 167 ref_len =
/// 157)".
std::string bleu_details(const BleuScore& score);

}  // namespace vitrail::text
