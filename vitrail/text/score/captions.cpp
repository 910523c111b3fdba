#include "vitrail/text/score/captions.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <unordered_map>

#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/score/segments.h"

namespace vitrail::text {
namespace {

constexpr std::size_t longest_ngram = 4;

// A caption as one code point a word, so that sequences of words are parts of it.
using Sentence = std::u32string;

// The captions that are scored together, with their words numbered.
class CaptionWords {
 public:
  Sentence sentence(const std::string& caption) {
    Sentence result;
    for (const std::u32string& line : parse_segments(caption, "a caption")) {
      for (const std::u32string_view word : words_of(line)) {
        result += number_.emplace(word, static_cast<char32_t>(number_.size())).first->second;
      }
    }
    return result;
  }

 private:
  std::unordered_map<std::u32string, char32_t> number_;
};

// The captions of one image.
struct Captioned {
  Sentence candidate;
  std::vector<Sentence> references;
};

// How often a sentence has each n-gram; [n - 1].
using Counts = std::array<NgramCounts, longest_ngram>;

Counts caption_ngrams(const Sentence& sentence) {
  Counts counts;
  for (std::size_t n = 0; n < longest_ngram; ++n) {
    count_character_ngrams(sentence, static_cast<int>(n + 1), counts[n]);
  }
  return counts;
}

// BLEU-1 … BLEU-4 of a corpus: bleu_scorer.py with option='closest'.
std::array<double, longest_ngram> bleu_of(const std::vector<Captioned>& images) {
  constexpr double small = 1e-9;
  constexpr double tiny = 1e-15;
  std::array<std::int64_t, longest_ngram> guess = {};
  std::array<std::int64_t, longest_ngram> correct = {};
  std::int64_t length = 0;
  std::int64_t reference_length = 0;
  for (const Captioned& image : images) {
    const auto words = std::ssize(image.candidate);
    const auto distance = [&](const Sentence& reference) {
      return std::pair(std::abs(std::ssize(reference) - words), std::ssize(reference));
    };
    length += words;
    reference_length += std::ssize(std::ranges::min(image.references, {}, distance));
    const Counts counts = caption_ngrams(image.candidate);
    for (std::size_t n = 0; n < longest_ngram; ++n) {
      guess[n] += std::max<std::int64_t>(0, words - static_cast<std::int64_t>(n));
      NgramCounts most;  // in one reference
      for (const Sentence& reference : image.references) {
        NgramCounts of_one;
        count_character_ngrams(reference, static_cast<int>(n + 1), of_one);
        for (const auto& [ngram, count] : of_one) {
          most[ngram] = std::max(most[ngram], count);
        }
      }
      for (const auto& [ngram, count] : counts[n]) {
        const auto found = most.find(ngram);
        correct[n] += found == most.end() ? 0 : std::min(found->second, count);
      }
    }
  }
  const double ratio = (static_cast<double>(length) + tiny) / (static_cast<double>(reference_length) + small);
  const double penalty = ratio < 1 ? std::exp(1 - 1 / ratio) : 1;
  std::array<double, longest_ngram> scores = {};
  double product = 1;
  for (std::size_t n = 0; n < longest_ngram; ++n) {
    product *= (static_cast<double>(correct[n]) + tiny) / (static_cast<double>(guess[n]) + small);
    scores[n] = std::pow(product, 1 / static_cast<double>(n + 1)) * penalty;
  }
  return scores;
}

// The length of the longest common subsequence.
std::size_t common_length(const Sentence& a, const Sentence& b) {
  std::vector<std::size_t> lengths(b.size() + 1, 0);
  for (const char32_t word : a) {
    std::size_t above_left = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = lengths[j];
      lengths[j] = word == b[j - 1] ? above_left + 1 : std::max(above, lengths[j - 1]);
      above_left = above;
    }
  }
  return lengths.back();
}

// ROUGE-L of an image: rouge.py. It cuts an empty text into one empty word.
double rouge_l_of(const Captioned& image) {
  constexpr double beta = 1.2;
  double precision = 0;
  double recall = 0;
  for (const Sentence& reference : image.references) {
    const bool both_empty = image.candidate.empty() && reference.empty();
    const double common = both_empty ? 1 : static_cast<double>(common_length(reference, image.candidate));
    precision = std::max(precision, common / static_cast<double>(std::max<std::size_t>(1, image.candidate.size())));
    recall = std::max(recall, common / static_cast<double>(std::max<std::size_t>(1, reference.size())));
  }
  if (precision == 0 || recall == 0) {
    return 0;
  }
  return (1 + beta * beta) * precision * recall / (recall + beta * beta * precision);
}

// CIDEr-D: cider_scorer.py.
class Cider {
 public:
  explicit Cider(const std::vector<Captioned>& images) : log_images_(std::log(static_cast<double>(images.size()))) {
    for (const Captioned& image : images) {
      NgramCounts of_image;
      for (const Sentence& reference : image.references) {
        for (std::size_t n = 0; n < longest_ngram; ++n) {
          count_character_ngrams(reference, static_cast<int>(n + 1), of_image);
        }
      }
      for (const auto& [ngram, count] : of_image) {
        ++documents_[ngram];
      }
    }
  }

  double score(const Captioned& image) const {
    const Vector candidate = vector_of(image.candidate);
    double sum = 0;
    for (const Sentence& reference : image.references) {
      sum += similarity(candidate, vector_of(reference));
    }
    return 10 * sum / static_cast<double>(longest_ngram) / static_cast<double>(image.references.size());
  }

 private:
  struct Vector {
    std::array<std::unordered_map<std::u32string_view, double>, longest_ngram> weights;
    std::array<double, longest_ngram> norms = {};
    double bigrams = 0;
  };

  Vector vector_of(const Sentence& sentence) const {
    Vector vector;
    const Counts counts = caption_ngrams(sentence);
    for (std::size_t n = 0; n < longest_ngram; ++n) {
      double squares = 0;
      for (const auto& [ngram, count] : counts[n]) {
        const auto found = documents_.find(ngram);
        const double frequency = found == documents_.end() ? 0 : std::log(static_cast<double>(found->second));
        const double weight = static_cast<double>(count) * (log_images_ - frequency);
        vector.weights[n][ngram] = weight;
        squares += weight * weight;
        vector.bigrams += n == 1 ? static_cast<double>(count) : 0;
      }
      vector.norms[n] = std::sqrt(squares);
    }
    return vector;
  }

  // The sum over n of the similarities of two captions.
  static double similarity(const Vector& candidate, const Vector& reference) {
    constexpr double sigma = 6;
    double sum = 0;
    for (std::size_t n = 0; n < longest_ngram; ++n) {
      double product = 0;
      for (const auto& [ngram, weight] : candidate.weights[n]) {
        const auto other = reference.weights[n].find(ngram);
        product += other == reference.weights[n].end() ? 0 : std::min(weight, other->second) * other->second;
      }
      const double norms = candidate.norms[n] * reference.norms[n];
      sum += norms != 0 ? product / norms : product;
    }
    const double longer = candidate.bigrams - reference.bigrams;
    return sum * std::exp(-longer * longer / (2 * sigma * sigma));
  }

  double log_images_ = 0;
  NgramCounts documents_;
};

double mean_score(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

CaptionScores caption_scores(const std::vector<std::string>& candidates,
                             const std::vector<std::vector<std::string>>& references) {
  check(candidates.size() == references.size(), "{} cannot be scored by the references of {}",
        io::counted(std::ssize(candidates), "captions"), io::counted(std::ssize(references), "images"));
  check(!candidates.empty(), "there are no captions to score");
  CaptionWords words;
  std::vector<Captioned> images(candidates.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    check(!references[i].empty(), "image {} has no references", i);
    images[i].candidate = words.sentence(candidates[i]);
    images[i].references.reserve(references[i].size());
    for (const std::string& reference : references[i]) {
      images[i].references.push_back(words.sentence(reference));
    }
  }
  CaptionScores scores{.bleu = bleu_of(images)};
  const Cider cider(images);
  scores.rouge_l_of.reserve(images.size());
  scores.cider_of.reserve(images.size());
  for (const Captioned& image : images) {
    scores.rouge_l_of.push_back(rouge_l_of(image));
    scores.cider_of.push_back(cider.score(image));
  }
  scores.rouge_l = mean_score(scores.rouge_l_of);
  scores.cider = mean_score(scores.cider_of);
  return scores;
}

}  // namespace vitrail::text
