#include "vitrail/train/study/spread.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

// A symmetric tridiagonal matrix: `off[i]` couples i and i + 1.
struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> off;
};

// Reduces a symmetric matrix by Householder reflections, one column after the other.
Tridiagonal tridiagonal_of(std::vector<double> a, std::size_t n) {
  Tridiagonal result{std::vector<double>(n), std::vector<double>(n)};
  std::vector<double> v(n);
  std::vector<double> p(n);
  for (std::size_t k = 0; k + 2 < n; ++k) {
    double norm = 0;
    for (std::size_t i = k + 1; i < n; ++i) {
      v[i] = a[i * n + k];
      norm += v[i] * v[i];
    }
    const double alpha = v[k + 1] > 0 ? -std::sqrt(norm) : std::sqrt(norm);
    const double length = norm - alpha * v[k + 1];  // half of |v - alpha e|²
    result.off[k] = alpha;
    if (length <= 0) {
      result.off[k] = v[k + 1];
      continue;
    }
    v[k + 1] -= alpha;
    double along = 0;
    for (std::size_t i = k + 1; i < n; ++i) {
      double sum = 0;
      for (std::size_t j = k + 1; j < n; ++j) {
        sum += a[i * n + j] * v[j];
      }
      p[i] = sum / length;
      along += v[i] * p[i];
    }
    for (std::size_t i = k + 1; i < n; ++i) {
      p[i] -= v[i] * along / (2 * length);
    }
    for (std::size_t i = k + 1; i < n; ++i) {
      for (std::size_t j = k + 1; j < n; ++j) {
        a[i * n + j] -= v[i] * p[j] + p[i] * v[j];
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    result.diagonal[i] = a[i * n + i];
  }
  if (n >= 2) {
    result.off[n - 2] = a[(n - 1) * n + n - 2];
  }
  return result;
}

// One QL step with an implicit shift on the rows first … last, which are not decoupled.
void ql_step(Tridiagonal& t, std::size_t first, std::size_t last) {
  auto& [d, e] = t;
  double g = (d[first + 1] - d[first]) / (2 * e[first]);
  double r = std::hypot(g, 1.0);
  g = d[last] - d[first] + e[first] / (g + std::copysign(r, g));
  double s = 1;
  double c = 1;
  double p = 0;
  for (std::size_t i = last; i-- > first;) {
    const double f = s * e[i];
    const double b = c * e[i];
    r = std::hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= p;
      e[last] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0;
}

}  // namespace

std::vector<double> symmetric_eigenvalues(std::vector<double> matrix, std::size_t n) {
  check(matrix.size() == n * n, "a matrix of {} x {} has not {} elements", n, n, matrix.size());
  Tridiagonal t = tridiagonal_of(std::move(matrix), n);
  constexpr int most_steps = 100;  // a few are enough
  for (std::size_t first = 0; first < n; ++first) {
    for (int step = 0; step < most_steps; ++step) {
      std::size_t last = first;
      while (last + 1 < n) {
        const double size = std::abs(t.diagonal[last]) + std::abs(t.diagonal[last + 1]);
        if (std::abs(t.off[last]) <= 1e-15 * size || t.off[last] == 0) {
          break;
        }
        ++last;
      }
      if (last == first) {
        break;
      }
      ql_step(t, first, last);
    }
  }
  std::ranges::sort(t.diagonal);
  return t.diagonal;
}

EmbeddingSpread embedding_spread(const Tensor& x) {
  check(x.rank() == 2 && x.dtype() == DType::f32 && x.size(0) >= 2 && x.size(1) >= 1,
        "the spread of embeddings needs two or more of them, f32 [N, D], not {} {}", name_of(x.dtype()), x.shape());
  const autograd::NoGrad no_grad;
  const Tensor dense = x.contiguous();
  check(std::ranges::all_of(dense.span<float>(), [](float value) { return std::isfinite(value); }),
        "the embeddings hold NaN or infinity");
  const Tensor unit = ops::normalize(dense);
  const std::int64_t n = x.size(0);
  const std::int64_t d = x.size(1);
  float* values = unit.data<float>();
  EmbeddingSpread spread;
  for (std::int64_t j = 0; j < d; ++j) {
    double sum = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += static_cast<double>(values[i * d + j]);
    }
    const double mean = sum / static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const double rest = static_cast<double>(values[i * d + j]) - mean;
      squares += rest * rest;
      values[i * d + j] = static_cast<float>(rest);
    }
    spread.deviation += std::sqrt(squares / static_cast<double>(n - 1));
  }
  spread.deviation /= std::sqrt(static_cast<double>(d));
  // The squared singular values are the eigenvalues of the smaller Gram matrix.
  const Tensor turned = unit.transpose(0, 1);
  const std::vector<float> gram = (n < d ? ops::matmul(unit, turned) : ops::matmul(turned, unit)).values();
  const auto side = static_cast<std::size_t>(std::min(n, d));
  std::vector<double> singular = symmetric_eigenvalues({gram.begin(), gram.end()}, side);
  const double least = singular.back() * 1e-7;  // what rounding leaves of the zeros
  double total = 0;
  for (double& value : singular) {
    value = value > least ? std::sqrt(value) : 0;
    total += value;
  }
  if (total < 1e-6) {
    return spread;
  }
  double entropy = 0;
  for (const double value : singular) {
    entropy -= value > 0 ? value / total * std::log(value / total) : 0;
  }
  spread.effective_rank = std::exp(entropy);
  return spread;
}

std::vector<FigureKind> spread_kinds() {
  return {{.name = "deviation",
           .label = "deviation",
           .decimals = 3,
           .higher_is_better = true,
           .chart = "Spread of the embedding",
           .axis = "standard deviation · √width",
           .axis_max = 1},
          {.name = "effective_rank",
           .label = "effective rank",
           .decimals = 1,
           .higher_is_better = true,
           .chart = "Effective rank of the embedding",
           .axis = "effective rank"}};
}

Figures spread_figures(const EmbeddingSpread& spread) {
  return {{"deviation", spread.deviation}, {"effective_rank", spread.effective_rank}};
}

std::string collapse_of_spread(const EmbeddingSpread& spread, std::int64_t width, std::string_view further) {
  if (spread.deviation < 0.02) {
    return fmt::format(
        "collapse: all images have nearly the same embedding (deviation {:.3f} of 1): try a smaller --lr, more "
        "--warmup-epochs or a larger --batch-size",
        spread.deviation);
  }
  if (spread.effective_rank < 2) {
    return fmt::format(
        "collapse: the embedding differs in hardly more than one direction (effective rank {:.1f} of {}): try a larger "
        "--batch-size{}",
        spread.effective_rank, width, further);
  }
  return "";
}

}  // namespace vitrail::train
