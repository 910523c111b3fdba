#include "vitrail/generate/processors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/kernels/choice.h"
#include "vitrail/tensor/error.h"

namespace vitrail::generate {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

using History = std::span<const std::int64_t>;
using Scores = std::span<float>;

float& at(Scores scores, std::int64_t id) { return scores[static_cast<std::size_t>(id)]; }

// A token that begins texts and is never predicted (Image GPT's) has none.
bool has_score(Scores scores, std::int64_t id) { return id < std::ssize(scores); }

void forbid(Scores scores, std::int64_t id) {
  if (has_score(scores, id)) {
    at(scores, id) = minus_infinity;
  }
}

void forbid(Scores scores, const std::vector<std::int64_t>& ids) {
  for (const std::int64_t id : ids) {
    forbid(scores, id);
  }
}

// CTRL (Keskar et al. 2019, section 4.1): each token that occurs already is made less likely, once.
void penalize_repetition(Scores scores, History ids, double penalty) {
  std::vector<std::int64_t> unique(ids.begin(), ids.end());
  std::ranges::sort(unique);
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  const auto factor = static_cast<float>(penalty);
  for (const std::int64_t id : unique) {
    if (has_score(scores, id)) {
      float& score = at(scores, id);
      score = score < 0 ? score * factor : score / factor;
    }
  }
}

// Forbids what would complete an n-gram that has occurred.
void forbid_repeated_ngrams(Scores scores, History ids, std::int64_t size) {
  const auto n = static_cast<std::size_t>(size);
  if (ids.size() < n) {
    return;
  }
  const History end = ids.last(n - 1);
  for (std::size_t i = 0; i + n <= ids.size(); ++i) {
    if (std::ranges::equal(ids.subspan(i, n - 1), end)) {
      forbid(scores, ids[i + n - 1]);
    }
  }
}

void forbid_words(Scores scores, History ids, const GenerationConfig& config) {
  for (const std::vector<std::int64_t>& word : config.bad_words_ids) {
    const bool ends = word.size() == 1 && std::ranges::find(config.eos_token_id, word[0]) != config.eos_token_id.end();
    const std::size_t before = word.size() - 1;
    if (!ends && before <= ids.size() && std::ranges::equal(ids.last(before), History(word).first(before))) {
      forbid(scores, word.back());
    }
  }
}

// All scores but those of `ids` become -∞.
void force(Scores scores, const std::vector<std::int64_t>& ids) {
  std::ranges::fill(scores, minus_infinity);
  for (const std::int64_t id : ids) {
    check(has_score(scores, id), "the token {} that is forced is one that the model never predicts", id);
    at(scores, id) = 0;
  }
}

// The tokens that a filter may still remove, by ascending score.
std::vector<std::int64_t> ascending(std::span<const float> scores) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < std::ssize(scores); ++i) {
    if (scores[static_cast<std::size_t>(i)] != minus_infinity) {
      order.push_back(i);
    }
  }
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
    return scores[static_cast<std::size_t>(a)] < scores[static_cast<std::size_t>(b)];
  });
  return order;
}

// softmax of the scores.
std::vector<double> probabilities(std::span<const float> scores) {
  const double most = *std::ranges::max_element(scores);
  std::vector<double> result;
  result.reserve(scores.size());
  double sum = 0;
  for (const float score : scores) {
    result.push_back(std::exp(static_cast<double>(score) - most));
    sum += result.back();
  }
  for (double& p : result) {
    p /= sum;
  }
  return result;
}

void keep_top_k(Scores scores, std::int64_t k) {
  if (k >= std::ssize(scores)) {
    return;
  }
  const float kth = at(scores, kernels::largest(scores, k).back());
  for (float& score : scores) {
    score = score < kth ? minus_infinity : score;
  }
}

// Nucleus sampling (Holtzman et al. 2020): the fewest tokens whose probabilities reach top_p.
void keep_top_p(Scores scores, double top_p, std::int64_t least) {
  const std::vector<std::int64_t> order = ascending(scores);
  const std::vector<double> p = probabilities(scores);
  double sum = 0;
  for (std::int64_t i = 0; i < std::ssize(order) - least; ++i) {
    sum += p[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
    if (sum <= 1 - top_p) {
      at(scores, order[static_cast<std::size_t>(i)]) = minus_infinity;
    }
  }
}

// Removes the tokens that `removes` names by index and probability, but not the `least` most likely ones.
template <class Removes>
void remove(Scores scores, std::int64_t least, Removes&& removes) {
  const std::vector<double> p = probabilities(scores);
  std::vector<bool> keeps(scores.size(), false);
  for (const std::int64_t i : kernels::largest(scores, least)) {
    keeps[static_cast<std::size_t>(i)] = true;
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!keeps[i] && removes(p[i])) {
      scores[i] = minus_infinity;
    }
  }
}

double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (const double value : p) {
    sum -= value > 0 ? value * std::log(value) : 0;
  }
  return sum;
}

// Locally typical sampling (Meister et al. 2023): the tokens whose information is nearest to its mean, up to this mass.
void keep_typical(Scores scores, double mass, std::int64_t least) {
  const std::vector<double> p = probabilities(scores);
  const double mean = entropy(p);
  const auto distance = [&](std::int64_t i) { return std::abs(-std::log(p[static_cast<std::size_t>(i)]) - mean); };
  std::vector<std::int64_t> order = ascending(scores);
  std::ranges::sort(order);
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return distance(a) < distance(b); });
  double sum = 0;
  std::size_t last = 0;  // the first whose sum reaches the mass, which stays
  while (last + 1 < order.size() && (sum += p[static_cast<std::size_t>(order[last])]) < mass) {
    ++last;
  }
  for (std::size_t i = last + 1; i < order.size(); ++i) {
    if (static_cast<std::int64_t>(i) >= least && distance(order[i]) > distance(order[last])) {
      at(scores, order[i]) = minus_infinity;
    }
  }
}

void filter(const GenerationConfig& config, std::int64_t least, Scores scores) {
  if (config.temperature != 1) {
    for (float& score : scores) {
      score /= static_cast<float>(config.temperature);
    }
  }
  if (config.top_k > 0) {
    keep_top_k(scores, std::max(config.top_k, least));
  }
  if (config.top_p < 1) {
    keep_top_p(scores, config.top_p, least);
  }
  if (config.min_p) {
    const std::vector<double> p = probabilities(scores);
    const double bound = *config.min_p * *std::ranges::max_element(p);
    remove(scores, least, [&](double probability) { return probability < bound; });
  }
  if (config.typical_p < 1) {
    keep_typical(scores, config.typical_p, least);
  }
  if (config.epsilon_cutoff > 0) {
    remove(scores, least, [&](double probability) { return probability < config.epsilon_cutoff; });
  }
  if (config.eta_cutoff > 0) {  // Hewitt et al. 2022
    const double spread = std::exp(-entropy(probabilities(scores)));
    const double bound = std::min(config.eta_cutoff, std::sqrt(config.eta_cutoff) * spread);
    remove(scores, least, [&](double probability) { return probability < bound; });
  }
}

// log_softmax
void renormalize(Scores scores) {
  const float most = *std::ranges::max_element(scores);
  if (most == minus_infinity) {
    return;  // nothing is left over
  }
  double sum = 0;
  for (const float score : scores) {
    sum += std::exp(static_cast<double>(score - most));
  }
  const auto log_sum = static_cast<float>(most + std::log(sum));
  std::ranges::for_each(scores, [&](float& score) { score -= log_sum; });
}

}  // namespace

void process_scores(const GenerationConfig& config, History ids, std::int64_t prompt, std::int64_t most_new,
                    std::int64_t least, Scores scores) {
  check(std::ranges::none_of(scores, [](float score) { return std::isnan(score); }),
        "the model gives NaN for the next token: its weights are not finite, or far too large");
  const std::int64_t length = std::ssize(ids);
  if (config.repetition_penalty != 1) {
    penalize_repetition(scores, ids, config.repetition_penalty);
  }
  if (config.no_repeat_ngram_size > 0) {
    forbid_repeated_ngrams(scores, ids, config.no_repeat_ngram_size);
  }
  forbid_words(scores, ids, config);
  if (config.min_new_tokens ? length - prompt < *config.min_new_tokens : length < config.min_length) {
    forbid(scores, config.eos_token_id);
  }
  if (config.forced_bos_token_id && length == 1) {
    force(scores, {*config.forced_bos_token_id});
  }
  if (!config.forced_eos_token_id.empty() && length == prompt + most_new - 1) {
    force(scores, config.forced_eos_token_id);
  }
  forbid(scores, config.suppress_tokens);
  if (length == prompt + (prompt > 1 || !config.forced_bos_token_id ? 0 : 1)) {
    forbid(scores, config.begin_suppress_tokens);
  }
  if (config.do_sample) {
    filter(config, least, scores);
  }
  if (config.renormalize_logits) {
    renormalize(scores);
  }
}

std::int64_t draw(std::span<const float> scores, double uniform) {
  const float most = *std::ranges::max_element(scores);
  std::vector<float> weights(scores.size());
  std::ranges::transform(scores, weights.begin(), [most](float score) { return std::exp(score - most); });
  return kernels::draw(weights, uniform);
}

}  // namespace vitrail::generate
