#include "vitrail/train/study/knn.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/order.h"
#include "vitrail/ops/products/matmul.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t similarities_at_once = std::int64_t{1} << 24;  // as f32: 64 MiB

// The rows of x scaled to length 1; a row of zeros stays so.
Tensor normalized(const Tensor& x) {
  Tensor result = x.contiguous().clone();
  const std::int64_t width = x.size(1);
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    float* row = result.data<float>() + i * width;
    double squares = 0;
    for (std::int64_t d = 0; d < width; ++d) {
      squares += static_cast<double>(row[d]) * static_cast<double>(row[d]);
    }
    const auto scale = static_cast<float>(1 / std::max(std::sqrt(squares), 1e-12));
    for (std::int64_t d = 0; d < width; ++d) {
      row[d] *= scale;
    }
  }
  return result;
}

struct Votes {
  std::vector<double> weighted;  // [C]
  std::vector<double> counted;
};

std::int64_t first_of_largest(const std::vector<double>& votes) {
  return std::max_element(votes.begin(), votes.end()) - votes.begin();
}

// How many classes come before `label`; more than any number of classes if it has no vote.
std::int64_t rank_of(std::int64_t label, const std::vector<double>& votes) {
  const double own = votes[static_cast<std::size_t>(label)];
  std::int64_t rank = 0;
  for (std::int64_t c = 0; c < std::ssize(votes); ++c) {
    const double other = votes[static_cast<std::size_t>(c)];
    rank += other > own || (other == own && c < label) ? 1 : 0;
  }
  return own > 0 ? rank : std::numeric_limits<std::int64_t>::max();
}

void check_options(const Features& training, const KnnOptions& options) {
  check(!options.k.empty(), "knn needs a number of neighbours");
  for (const std::int64_t k : options.k) {
    check(k >= 1 && k <= training.x.size(0), "-k {} neighbours are asked for among {} training images", k,
          training.x.size(0));
  }
  check(options.temperature > 0 && std::isfinite(options.temperature), "the temperature must be positive, but is {}",
        options.temperature);
}

}  // namespace

std::vector<KnnResult> knn(const Features& training, const Features& test, const KnnOptions& options) {
  const auto classes = static_cast<std::size_t>(classes_of(training, test));
  check_options(training, options);
  const autograd::NoGrad no_grad;
  const Tensor bank = normalized(training.x).transpose(0, 1);  // [D, N]
  const Tensor queries = normalized(test.x);
  const Tensor bank_labels = training.labels.contiguous();
  const Tensor labels = test.labels.contiguous();
  const std::int64_t count = training.x.size(0);
  const std::int64_t tests = test.x.size(0);
  const std::int64_t most = *std::ranges::max_element(options.k);

  std::vector<KnnResult> results(options.k.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].k = options.k[i];
  }
  const std::int64_t chunk = std::max<std::int64_t>(1, similarities_at_once / count);
  for (std::int64_t begin = 0; begin < tests; begin += chunk) {
    const std::int64_t size = std::min(chunk, tests - begin);
    const ops::Ordered nearest = ops::topk(ops::matmul(queries.narrow(0, begin, size), bank), most);
    for (std::int64_t i = 0; i < size; ++i) {
      const float* const similarities = nearest.values.data<float>() + i * most;
      const std::int64_t* const neighbours = nearest.indices.data<std::int64_t>() + i * most;
      const std::int64_t label = labels.data<std::int64_t>()[begin + i];
      for (KnnResult& result : results) {
        Votes votes{std::vector<double>(classes), std::vector<double>(classes)};
        for (std::int64_t n = 0; n < result.k; ++n) {
          const auto c = static_cast<std::size_t>(bank_labels.data<std::int64_t>()[neighbours[n]]);
          // Similarities count relative to the nearest neighbour's, which keeps the exponentials from overflowing.
          votes.weighted[c] += std::exp(static_cast<double>(similarities[n] - similarities[0]) / options.temperature);
          ++votes.counted[c];
        }
        const std::int64_t rank = rank_of(label, votes.weighted);
        result.predictions.push_back(first_of_largest(votes.weighted));
        result.majorities.push_back(first_of_largest(votes.counted));
        result.top1 += rank < 1 ? 1 : 0;
        result.top5 += rank < 5 ? 1 : 0;
        result.majority_top1 += result.majorities.back() == label ? 1 : 0;
      }
    }
  }
  for (KnnResult& result : results) {
    for (double* share : {&result.top1, &result.top5, &result.majority_top1}) {
      *share *= 100.0 / static_cast<double>(tests);
    }
  }
  return results;
}

}  // namespace vitrail::train
