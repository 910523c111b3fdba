#include "vitrail/text/score/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unicode/uchar.h>

#include "vitrail/io/suggest.h"
#include "vitrail/tensor/error.h"

namespace vitrail::text {
namespace {

constexpr std::size_t max_order = 4;         // of n-grams
constexpr double log_of_zero = -9999999999;  // sacrebleu's: its exponential is 0

using CharacterTest = bool (*)(char32_t);

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_no_digit(char32_t c) { return !is_digit(c); }
bool is_stop(char32_t c) { return c == U'.' || c == U','; }
bool is_dash(char32_t c) { return c == U'-'; }

// What 13a parts from words: ASCII's signs but for ' - . and ,
bool is_sign(char32_t c) {
  return (c >= U'{' && c <= U'~') || (c >= U'[' && c <= U'`') || (c >= U' ' && c <= U'&') || (c >= U'(' && c <= U'+') ||
         (c >= U':' && c <= U'@') || c == U'/';
}

bool has_category(char32_t c, std::uint32_t mask) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0; }
bool is_punctuation(char32_t c) { return has_category(c, U_GC_P_MASK); }
bool is_symbol(char32_t c) { return has_category(c, U_GC_S_MASK); }
bool is_no_number(char32_t c) { return !has_category(c, U_GC_N_MASK); }

// What the tokenizer "zh" of sacrebleu takes for Chinese. It writes two blocks beyond U+FFFF with five digits behind
// \u, which Python reads as four and a letter: so U+2001 to U+2A6D count, among them the quotation marks, and the
// ideographs of Extension B do not.
bool counts_as_chinese(char32_t c) {
  constexpr std::pair<char32_t, char32_t> ranges[] = {
      {0x2001, 0x2a6d}, {0x2e80, 0x2eff}, {0x2f00, 0x2fdf}, {0x2ff0, 0x2fff}, {0x3000, 0x303f}, {0x3100, 0x312f},
      {0x31a0, 0x31bf}, {0x31c0, 0x31ef}, {0x3200, 0x33ff}, {0x3400, 0x4db5}, {0x4e00, 0x9fbb}, {0xf900, 0xfa2d},
      {0xfa30, 0xfa6a}, {0xfa70, 0xfad9}, {0xfe10, 0xfe1f}, {0xfe30, 0xfe4f}, {0xff00, 0xffef}};
  return std::ranges::any_of(ranges, [&](const auto& range) { return c >= range.first && c <= range.second; });
}

// Puts spaces around each character that passes.
std::u32string apart(const std::u32string& line, CharacterTest test) {
  std::u32string result;
  for (const char32_t c : line) {
    result += test(c) ? std::u32string{U' ', c, U' '} : std::u32string{c};
  }
  return result;
}

// Puts spaces around one of two neighbours that pass, from left to right as a regular expression finds them: the second
// of a pair is no first of the next.
std::u32string pairs_apart(const std::u32string& line, CharacterTest first, CharacterTest second, bool around_first) {
  std::u32string result;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i + 1 == line.size() || !first(line[i]) || !second(line[i + 1])) {
      result += line[i];
      continue;
    }
    const char32_t a = line[i];
    const char32_t b = line[++i];
    result += around_first ? std::u32string{U' ', a, U' ', b} : std::u32string{a, U' ', b, U' '};
  }
  return result;
}

// The part that 13a and zh share (sacrebleu's TokenizerRegexp).
std::u32string western(std::u32string line) {
  line = apart(line, is_sign);
  line = pairs_apart(line, is_no_digit, is_stop, false);
  line = pairs_apart(line, is_stop, is_no_digit, true);
  return pairs_apart(line, is_digit, is_dash, false);
}

void replace_all(std::u32string& line, std::u32string_view from, std::u32string_view to) {
  for (std::size_t at = line.find(from); at != std::u32string::npos; at = line.find(from, at + to.size())) {
    line.replace(at, from.size(), to);
  }
}

std::u32string by_13a(std::u32string line) {
  replace_all(line, U"<skipped>", U"");
  replace_all(line, U"&quot;", U"\"");
  replace_all(line, U"&amp;", U"&");
  replace_all(line, U"&lt;", U"<");
  replace_all(line, U"&gt;", U">");
  return western(U" " + line + U" ");
}

std::u32string by_intl(std::u32string line) {
  line = pairs_apart(line, is_no_number, is_punctuation, false);
  line = pairs_apart(line, is_punctuation, is_no_number, true);
  return apart(line, is_symbol);
}

struct BleuCutter {
  std::string name;
  std::function<std::u32string(std::u32string)> cut;
};

const std::vector<BleuCutter>& bleu_cutters() {
  static const std::vector<BleuCutter> all = {
      {"13a", by_13a},
      {"intl", by_intl},
      {"zh", [](const std::u32string& line) { return western(apart(line, counts_as_chinese)); }},
      {"char", [](const std::u32string& line) { return apart(line, [](char32_t) { return true; }); }},
      {"none", [](std::u32string line) { return line; }}};
  return all;
}

// The n-grams of a segment of all orders together: words tell their orders apart.
NgramCounts ngrams_of(std::u32string_view line) {
  NgramCounts counts;
  for (std::size_t n = 1; n <= max_order; ++n) {
    count_word_ngrams(line, static_cast<int>(n), counts);
  }
  return counts;
}

std::size_t order_of(std::u32string_view ngram) {
  return static_cast<std::size_t>(std::ranges::count(ngram, U' '));  // counted from 0
}

std::int64_t length_of(std::u32string_view line) {
  return line.empty() ? 0 : 1 + static_cast<std::int64_t>(std::ranges::count(line, U' '));
}

// Adds the matches of a segment, whose words have one space between them.
void count_segment(const std::u32string& hypothesis, const std::vector<std::u32string>& references, BleuScore& score) {
  NgramCounts allowed;  // of each n-gram as many as the reference has that has the most
  std::int64_t nearest = -1;
  const std::int64_t length = length_of(hypothesis);
  for (const std::u32string& reference : references) {
    for (const auto& [ngram, count] : ngrams_of(reference)) {
      std::int64_t& most = allowed[ngram];
      most = std::max(most, count);
    }
    const std::int64_t own = length_of(reference);
    const std::int64_t closer = std::abs(length - nearest) - std::abs(length - own);
    nearest = nearest < 0 || closer > 0 || (closer == 0 && own < nearest) ? own : nearest;
  }
  score.hypothesis_length += length;
  score.reference_length += nearest;
  for (const auto& [ngram, count] : ngrams_of(hypothesis)) {
    const std::size_t n = order_of(ngram);
    score.totals[n] += static_cast<double>(count);
    const auto found = allowed.find(ngram);
    score.counts[n] += static_cast<double>(found == allowed.end() ? 0 : std::min(count, found->second));
  }
}

double smooth_value_of(const BleuOptions& options) {
  return options.smooth_value.value_or(options.smooth_method == "floor" ? 0.1 : 1.0);
}

// Fills in what follows from the counts (sacrebleu's BLEU.compute_bleu).
void compute(BleuScore& score, const BleuOptions& options) {
  const auto hypothesis = static_cast<double>(score.hypothesis_length);
  const auto reference = static_cast<double>(score.reference_length);
  if (hypothesis < reference) {
    score.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  }
  if (std::ranges::all_of(score.counts, [](double count) { return count == 0; })) {
    return;
  }
  const double value = smooth_value_of(options);
  double halving = 1;
  std::size_t orders = max_order;
  for (std::size_t n = 0; n < max_order; ++n) {
    if (options.smooth_method == "add-k" && n > 0) {
      score.counts[n] += value;
      score.totals[n] += value;
    }
    if (score.totals[n] == 0) {
      break;
    }
    if (options.effective_order) {
      orders = n + 1;
    }
    if (score.counts[n] > 0) {
      score.precisions[n] = 100 * score.counts[n] / score.totals[n];
    } else if (options.smooth_method == "exp") {
      halving *= 2;
      score.precisions[n] = 100 / (halving * score.totals[n]);
    } else if (options.smooth_method == "floor") {
      score.precisions[n] = 100 * value / score.totals[n];
    }
  }
  double sum = 0;
  for (std::size_t n = 0; n < orders; ++n) {
    sum += score.precisions[n] == 0 ? log_of_zero : std::log(score.precisions[n]);
  }
  score.score = score.brevity_penalty * std::exp(sum / static_cast<double>(orders));
}

void check_name(const std::string& name, const std::vector<std::string>& names, const char* what) {
  check(std::ranges::find(names, name) != names.end(), "there is no {} '{}', only {}", what, name,
        io::quoted_list(names, "and"));
}

}  // namespace

const std::vector<std::string>& bleu_tokenizers() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const BleuCutter& tokenizer : bleu_cutters()) {
      result.push_back(tokenizer.name);
    }
    return result;
  }();
  return names;
}

const std::vector<std::string>& bleu_smooth_methods() {
  static const std::vector<std::string> names = {"exp", "floor", "add-k", "none"};
  return names;
}

std::u32string bleu_tokenized(const std::u32string& line, const std::string& tokenizer) {
  check_name(tokenizer, bleu_tokenizers(), "tokenizer");
  const std::u32string cut = std::ranges::find(bleu_cutters(), tokenizer, &BleuCutter::name)->cut(line);
  return with_single_spaces(words_of(cut));
}

BleuScore bleu(const Segments& hypotheses, const std::vector<Segments>& references, const BleuOptions& options) {
  check_name(options.smooth_method, bleu_smooth_methods(), "smoothing");
  check(!hypotheses.empty() && !references.empty(), "BLEU needs at least one segment and one reference");
  for (const Segments& reference : references) {
    check_parallel(hypotheses, "the hypotheses", reference, "a reference");
  }
  const auto prepared = [&](const std::u32string& line) {
    return bleu_tokenized(options.lowercase ? lowercased(line) : line, options.tokenize);
  };
  BleuScore score;
  score.counts = score.totals = score.precisions = std::vector<double>(max_order, 0);
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    std::vector<std::u32string> translations(references.size());
    std::ranges::transform(references, translations.begin(),
                           [&](const Segments& reference) { return prepared(reference[i]); });
    count_segment(prepared(hypotheses[i]), translations, score);
  }
  compute(score, options);
  return score;
}

std::string bleu_signature(const BleuOptions& options, std::size_t references) {
  const bool has_value = options.smooth_method == "floor" || options.smooth_method == "add-k";
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}{}|version:{}", references,
                     options.lowercase ? "lc" : "mixed", options.effective_order ? "yes" : "no", options.tokenize,
                     options.smooth_method, has_value ? fmt::format("[{:.2f}]", smooth_value_of(options)) : "",
                     sacrebleu_version);
}

std::string short_signature(const std::string& signature) {
  static const std::map<std::string, std::string, std::less<>> short_names = {
      {"nrefs", "#"}, {"case", "c"}, {"eff", "e"}, {"smooth", "s"}, {"space", "s"}, {"version", "v"}};
  std::string result;
  for (std::size_t begin = 0; begin < signature.size();) {
    const std::size_t colon = std::min(signature.find(':', begin), signature.size());
    const std::size_t end = std::min(signature.find('|', colon), signature.size() - 1) + 1;
    const std::string name = signature.substr(begin, colon - begin);
    const auto known = short_names.find(name);
    result += (known == short_names.end() ? name : known->second) + signature.substr(colon, end - colon);
    begin = end;
  }
  return result;
}

std::string bleu_details(const BleuScore& score) {
  const auto reference = static_cast<double>(score.reference_length);
  return fmt::format("{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", fmt::join(score.precisions, "/"),
                     score.brevity_penalty,
                     reference > 0 ? static_cast<double>(score.hypothesis_length) / reference : 0.0,
                     score.hypothesis_length, score.reference_length);
}

}  // namespace vitrail::text
