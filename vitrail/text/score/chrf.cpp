#include "vitrail/text/score/chrf.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "vitrail/tensor/error.h"
#include "vitrail/text/score/bleu.h"

namespace vitrail::text {
namespace {

// The n-grams of one order: of a hypothesis, of a reference, and those that both have.
struct Matches {
  std::int64_t hypothesis = 0;
  std::int64_t reference = 0;
  std::int64_t both = 0;
};

// A segment as it is counted: its characters and, apart from punctuation, its words.
struct Prepared {
  std::u32string characters;
  std::u32string words;
};

bool is_ascii_punctuation(char32_t c) {
  return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') || (c >= U'{' && c <= U'~');
}

// Parts one sign of punctuation from a word, the last one if there is one at its end.
std::u32string without_punctuation(std::u32string_view line) {
  std::vector<std::u32string_view> words;
  for (const std::u32string_view word : words_of(line)) {
    const std::size_t cut = word.size() == 1                     ? 0
                            : is_ascii_punctuation(word.back())  ? word.size() - 1
                            : is_ascii_punctuation(word.front()) ? 1
                                                                 : 0;
    if (cut > 0) {
      words.push_back(word.substr(0, cut));
    }
    words.push_back(word.substr(cut));
  }
  return with_single_spaces(words);
}

Prepared prepare(const std::u32string& segment, const ChrfOptions& options) {
  const std::u32string line = options.lowercase ? lowercased(segment) : segment;
  Prepared result{line, options.word_order > 0 ? without_punctuation(line) : U""};
  if (!options.whitespace) {
    std::erase_if(result.characters, is_white_space);
  }
  return result;
}

// The counts of all orders: of characters, then of words.
std::vector<NgramCounts> counts_of(const Prepared& segment, const ChrfOptions& options) {
  std::vector<NgramCounts> counts(static_cast<std::size_t>(options.char_order + options.word_order));
  for (int n = 1; n <= options.char_order; ++n) {
    count_character_ngrams(segment.characters, n, counts[static_cast<std::size_t>(n - 1)]);
  }
  for (int n = 1; n <= options.word_order; ++n) {
    count_word_ngrams(segment.words, n, counts[static_cast<std::size_t>(options.char_order + n - 1)]);
  }
  return counts;
}

Matches matches_of(const NgramCounts& hypothesis, const NgramCounts& reference) {
  Matches matches;
  for (const auto& [ngram, count] : hypothesis) {
    const auto found = reference.find(ngram);
    matches.hypothesis += reference.empty() ? 0 : count;  // an order that the reference does not have counts nothing
    matches.both += found == reference.end() ? 0 : std::min(count, found->second);
  }
  for (const auto& [ngram, count] : reference) {
    matches.reference += count;
  }
  return matches;
}

// The F-score, from 0 to 100 (sacrebleu's CHRF._compute_f_score).
double f_score(const std::vector<Matches>& orders, const ChrfOptions& options) {
  constexpr double eps = 1e-16;
  const double factor = static_cast<double>(options.beta) * options.beta;
  const auto mean = [&](double precision, double recall) {
    const double weight = factor * precision + recall;
    return weight > 0 ? (1 + factor) * precision * recall / weight : eps;
  };
  double sum = 0;
  double precisions = 0;
  double recalls = 0;
  double effective = 0;
  for (const Matches& order : orders) {
    const auto both = static_cast<double>(order.both);
    const double precision = order.hypothesis > 0 ? both / static_cast<double>(order.hypothesis) : eps;
    const double recall = order.reference > 0 ? both / static_cast<double>(order.reference) : eps;
    sum += mean(precision, recall);
    if (order.hypothesis > 0 && order.reference > 0) {
      precisions += precision;
      recalls += recall;
      effective += 1;
    }
  }
  if (options.eps_smoothing) {
    return 100 * sum / static_cast<double>(orders.size());
  }
  return precisions + recalls > 0 ? 100 * mean(precisions / effective, recalls / effective) : 0;
}

}  // namespace

double chrf(const Segments& hypotheses, const std::vector<Segments>& references, const ChrfOptions& options) {
  check(options.char_order >= 1 && options.word_order >= 0 && options.beta >= 1,
        "chrF has a character order and a beta from 1 on, and a word order from 0 on, not {}, {} and {}",
        options.char_order, options.beta, options.word_order);
  check(!hypotheses.empty() && !references.empty(), "chrF needs at least one segment and one reference");
  for (const Segments& reference : references) {
    check_parallel(hypotheses, "the hypotheses", reference, "a reference");
  }
  std::vector<Matches> total(static_cast<std::size_t>(options.char_order + options.word_order));
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const Prepared hypothesis = prepare(hypotheses[i], options);
    const std::vector<NgramCounts> counts = counts_of(hypothesis, options);
    std::vector<Matches> best;
    double best_score = -1;
    for (const Segments& reference : references) {
      const Prepared prepared = prepare(reference[i], options);
      const std::vector<NgramCounts> wanted = counts_of(prepared, options);
      std::vector<Matches> orders;
      for (std::size_t n = 0; n < counts.size(); ++n) {
        orders.push_back(matches_of(counts[n], wanted[n]));
      }
      if (const double score = f_score(orders, options); score > best_score) {
        best_score = score;
        best = std::move(orders);
      }
    }
    for (std::size_t n = 0; n < total.size(); ++n) {
      total[n].hypothesis += best[n].hypothesis;
      total[n].reference += best[n].reference;
      total[n].both += best[n].both;
    }
  }
  return f_score(total, options);
}

std::string chrf_name(const ChrfOptions& options) {
  return fmt::format("chrF{}{}", options.beta, std::string(static_cast<std::size_t>(options.word_order), '+'));
}

std::string chrf_signature(const ChrfOptions& options, std::size_t references) {
  return fmt::format("nrefs:{}|case:{}|eff:{}|nc:{}|nw:{}|space:{}|version:{}", references,
                     options.lowercase ? "lc" : "mixed", options.eps_smoothing ? "no" : "yes", options.char_order,
                     options.word_order, options.whitespace ? "yes" : "no", sacrebleu_version);
}

}  // namespace vitrail::text
