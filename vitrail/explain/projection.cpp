#include "vitrail/explain/projection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/kernels/tsne.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"
#include "vitrail/tensor/symmetric.h"

namespace vitrail::explain {
namespace {

constexpr std::int64_t exaggerated_iterations = 250;  // scikit-learn's, as all constants of t-SNE here
constexpr std::int64_t iterations_between_checks = 50;
constexpr double smallest_gradient = 1e-7;
constexpr double perplexity_tolerance = 1e-5;
constexpr int perplexity_steps = 100;

void check_points(const Tensor& x) {
  check(x.rank() == 2 && x.dtype() == DType::f32 && x.size(0) > 0 && x.size(1) > 0,
        "points to project have the shape [N, D] f32, not {} {}", x.shape(), name_of(x.dtype()));
  const std::span<const float> values = x.span<float>();
  const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  check(bad == values.end(), "row {} of the points to project has a number that is not finite",
        (bad - values.begin()) / x.size(1));
}

Tensor mean_of(const Tensor& x) {
  std::vector<double> sums(static_cast<std::size_t>(x.size(1)));
  const float* row = x.data<float>();
  for (std::int64_t i = 0; i < x.size(0); ++i, row += x.size(1)) {
    std::transform(sums.begin(), sums.end(), row, sums.begin(), std::plus<>());
  }
  Tensor mean = Tensor::empty({x.size(1)});
  std::ranges::transform(sums, mean.data<float>(),
                         [&](double sum) { return static_cast<float>(sum / static_cast<double>(x.size(0))); });
  return mean;
}

Tensor centered(const Tensor& x, const Tensor& mean) {
  Tensor result = x.clone();
  float* row = result.data<float>();
  for (std::int64_t i = 0; i < x.size(0); ++i, row += x.size(1)) {
    std::transform(row, row + x.size(1), mean.data<float>(), row, std::minus<>());
  }
  return result;
}

double dot(const float* a, const float* b, std::int64_t n) {
  return std::inner_product(a, a + n, b, 0.0, std::plus<>(),
                            [](float x, float y) { return static_cast<double>(x) * static_cast<double>(y); });
}

// Makes the rows of q [M, D] orthogonal and of length 1, one after the other (twice, for the sake of rounding).
void orthonormalize(const Tensor& q) {
  const std::int64_t d = q.size(1);
  for (std::int64_t i = 0; i < q.size(0); ++i) {
    float* row = q.data<float>() + i * d;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t j = 0; j < i; ++j) {
        const float* other = q.data<float>() + j * d;
        const auto along = static_cast<float>(dot(row, other, d));
        std::transform(row, row + d, other, row, [along](float a, float b) { return a - along * b; });
      }
      const double length = std::sqrt(dot(row, row, d));
      const auto scale = static_cast<float>(length > 0 ? 1 / length : 0);
      std::transform(row, row + d, row, [scale](float a) { return scale * a; });
    }
  }
}

// Turns the rows of q [M, D], which are orthonormal, to the directions of largest variance within the space that they
// span, in falling order (Rayleigh-Ritz).
Tensor turned(const Tensor& q, const Tensor& x) {
  const std::int64_t m = q.size(0);
  const Tensor along = ops::matmul(q, x.transpose(0, 1)).contiguous();  // [M, N]
  std::vector<double> variance(static_cast<std::size_t>(m * m));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const double value = dot(along.data<float>() + i * x.size(0), along.data<float>() + j * x.size(0), x.size(0));
      variance[static_cast<std::size_t>(i * m + j)] = variance[static_cast<std::size_t>(j * m + i)] = value;
    }
  }
  const std::vector<double> v = symmetric_eigen(std::move(variance), m).vectors;
  const std::vector<float> rotation(v.begin(), v.end());
  return ops::matmul(Tensor::from(rotation, {m, m}), q).contiguous();
}

// The largest change of one of the first `count` rows, whatever their signs.
double change(const Tensor& before, const Tensor& after, std::int64_t count) {
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t d = before.size(1);
    const float* a = before.data<float>() + i * d;
    const float* b = after.data<float>() + i * d;
    const float sign = dot(a, b, d) < 0 ? -1.0F : 1.0F;
    const double square = std::inner_product(a, a + d, b, 0.0, std::plus<>(), [sign](float x, float y) {
      const auto difference = static_cast<double>(x - sign * y);
      return difference * difference;
    });
    largest = std::max(largest, std::sqrt(square));
  }
  return largest;
}

// The squared distances of rows begin … end - 1 of x [N, D], which has mean 0, to all rows: [end - begin, N].
Tensor squared_distances(const Tensor& x, const std::vector<float>& squares, std::int64_t begin, std::int64_t end) {
  Tensor result = ops::matmul(x.narrow(0, begin, end - begin), x.transpose(0, 1)).contiguous();
  const std::int64_t n = x.size(0);
  kernels::parallel_for(end - begin, kernels::rows_worth_a_thread(n), [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) {
      float* row = result.data<float>() + i * n;
      const float own = squares[static_cast<std::size_t>(begin + i)];
      for (std::int64_t j = 0; j < n; ++j) {
        row[j] = std::max(0.0F, own + squares[static_cast<std::size_t>(j)] - 2 * row[j]);
      }
      row[begin + i] = 0;
    }
  });
  return result;
}

std::vector<float> squares_of(const Tensor& x) {
  std::vector<float> squares;
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const float* row = x.data<float>() + i * x.size(1);
    squares.push_back(static_cast<float>(dot(row, row, x.size(1))));
  }
  return squares;
}

// Calls use(first row, squared distances [rows, N]) for all rows of x, some at a time.
template <class Use>
void for_distances(const Tensor& x, Use use) {
  constexpr std::int64_t rows = 256;
  const Tensor points = centered(x, mean_of(x));
  const std::vector<float> squares = squares_of(points);
  for (std::int64_t begin = 0; begin < x.size(0); begin += rows) {
    use(begin, squared_distances(points, squares, begin, std::min(begin + rows, x.size(0))));
  }
}

// Makes squared distances of point i to all n points its similarities to them, p_j|i, a Gaussian of the wanted
// perplexity (scikit-learn's _binary_search_perplexity).
void make_similar(float* row, std::int64_t i, std::int64_t n, double perplexity) {
  const double wanted = std::log(perplexity);
  double beta = 1;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::vector<double> p(static_cast<std::size_t>(n));
  for (int step = 0; step < perplexity_steps; ++step) {
    double sum = 0;
    double weighted = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double distance = static_cast<double>(row[j]);
      const double value = j == i ? 0 : std::exp(-distance * beta);
      p[static_cast<std::size_t>(j)] = value;
      sum += value;
      weighted += distance * value;
    }
    sum = sum == 0 ? 1e-8 : sum;
    for (double& value : p) {
      value /= sum;
    }
    const double excess = std::log(sum) + beta * weighted / sum - wanted;
    if (std::abs(excess) <= perplexity_tolerance) {
      break;
    }
    if (excess > 0) {
      low = beta;
      beta = std::isinf(high) ? 2 * beta : (beta + high) / 2;
    } else {
      high = beta;
      beta = std::isinf(low) ? beta / 2 : (beta + low) / 2;
    }
  }
  std::ranges::transform(p, row, [](double value) { return static_cast<float>(value); });
}

// The similarities p_ij of the points, [N, N]; their sum is 1.
Tensor similarities(const Tensor& x, double perplexity) {
  const std::int64_t n = x.size(0);
  Tensor p = Tensor::empty({n, n});
  for_distances(x, [&](std::int64_t begin, const Tensor& distances) {
    std::ranges::copy(distances.span<float>(), p.data<float>() + begin * n);
    kernels::parallel_for(distances.size(0), 1, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t i = begin + first; i < begin + last; ++i) {
        make_similar(p.data<float>() + i * n, i, n, perplexity);
      }
    });
  });
  float* values = p.data<float>();
  constexpr std::int64_t tile = 64;
  for (std::int64_t top = 0; top < n; top += tile) {
    for (std::int64_t left = 0; left <= top; left += tile) {
      for (std::int64_t i = top; i < std::min(top + tile, n); ++i) {
        for (std::int64_t j = left; j < std::min(left + tile, i); ++j) {
          const float both = (values[i * n + j] + values[j * n + i]) / (2 * static_cast<float>(n));
          values[i * n + j] = values[j * n + i] = std::max(both, 2.2e-16F);
        }
      }
    }
  }
  return p;
}

// Σ p log(p / q) of a map of points.
double divergence(const Tensor& p, const std::vector<float>& x, const std::vector<float>& y, double z) {
  const std::int64_t n = p.size(0);
  std::vector<double> rows(static_cast<std::size_t>(n));
  kernels::parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto own = static_cast<std::size_t>(i);
      for (std::int64_t j = 0; j < n; ++j) {
        const auto other = static_cast<std::size_t>(j);
        const double dx = static_cast<double>(x[own]) - static_cast<double>(x[other]);
        const double dy = static_cast<double>(y[own]) - static_cast<double>(y[other]);
        const double similar = static_cast<double>(p.data<float>()[i * n + j]);
        rows[own] += j == i ? 0 : similar * std::log(similar * z * (1 + dx * dx + dy * dy));
      }
    }
  });
  return std::accumulate(rows.begin(), rows.end(), 0.0);
}

// The points of a map while it is improved, by gradient descent with momentum and a gain for each coordinate.
class Descent {
 public:
  Descent(const Tensor& start, double rate)
      : rate_(rate), x_(column(start, 0)), y_(column(start, 1)), update_(2 * x_.size()), gain_(update_.size(), 1) {}

  // One step against the gradient; returns its length.
  double step(const Tensor& p, double exaggeration, double momentum) {
    const auto n = static_cast<std::int64_t>(x_.size());
    attraction_.resize(update_.size());
    repulsion_.resize(update_.size());
    z_ = kernels::tsne_forces({n, x_.data(), y_.data(), p.data<float>()}, attraction_.data(), repulsion_.data());
    double length = 0;
    for (std::size_t k = 0; k < update_.size(); ++k) {
      const double gradient =
          4 * (exaggeration * static_cast<double>(attraction_[k]) - static_cast<double>(repulsion_[k]) / z_);
      length += gradient * gradient;
      gain_[k] = std::max(0.01, update_[k] * gradient < 0 ? gain_[k] + 0.2 : gain_[k] * 0.8);
      update_[k] = momentum * update_[k] - rate_ * gain_[k] * gradient;
      float& coordinate = k % 2 == 0 ? x_[k / 2] : y_[k / 2];
      coordinate += static_cast<float>(update_[k]);
    }
    return std::sqrt(length);
  }

  void forget() {
    std::ranges::fill(update_, 0);
    std::ranges::fill(gain_, 1);
  }

  double divergence_from(const Tensor& p) {
    const auto n = static_cast<std::int64_t>(x_.size());
    z_ = kernels::tsne_forces({n, x_.data(), y_.data(), p.data<float>()}, attraction_.data(), repulsion_.data());
    return divergence(p, x_, y_, z_);
  }

  Tensor points() const {
    Tensor result = Tensor::empty({std::ssize(x_), 2});
    for (std::size_t i = 0; i < x_.size(); ++i) {
      result.data<float>()[2 * i] = x_[i];
      result.data<float>()[2 * i + 1] = y_[i];
    }
    return result;
  }

 private:
  static std::vector<float> column(const Tensor& start, std::int64_t which) { return start.select(1, which).values(); }

  double rate_;
  double z_ = 0;
  std::vector<float> x_;
  std::vector<float> y_;
  std::vector<double> update_;
  std::vector<double> gain_;
  std::vector<float> attraction_;
  std::vector<float> repulsion_;
};

// The first two principal components, the first of which gets a standard deviation of 1e-4.
Tensor starting_points(const Tensor& x) {
  Tensor start = pca(x, 2).coordinates;
  const std::span<float> values = start.span<float>();
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); i += 2) {
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  const double deviation = std::sqrt(sum / static_cast<double>(x.size(0)));
  check(deviation > 0, "all points to project are the same");
  for (float& value : values) {
    value = static_cast<float>(static_cast<double>(value) / deviation * 1e-4);
  }
  return start;
}

}  // namespace

Pca pca(const Tensor& x, std::int64_t count) {
  check_points(x);
  const std::int64_t most = std::min(x.size(0), x.size(1));
  check(count >= 1 && count <= most, "{} of {} numbers have at most {}, not {}", io::counted(x.size(0), "points"),
        x.size(1), io::counted(most, "principal components"), count);
  const autograd::NoGrad no_grad;
  Pca result;
  result.mean = mean_of(x);
  const Tensor points = centered(x, result.mean);
  // Subspace iteration: a few more directions than asked for are drawn towards those of large variance.
  const std::int64_t width = std::min(most, count + 8);
  Tensor q = Tensor::empty({width, x.size(1)});
  const Philox draws(0, hash("principal components"));
  for (std::int64_t i = 0; i < q.numel(); ++i) {
    q.data<float>()[i] = draws.normal(static_cast<std::uint64_t>(i));
  }
  orthonormalize(q);
  for (int iteration = 0; iteration < 300; ++iteration) {
    const Tensor along = ops::matmul(q, points.transpose(0, 1));         // [M, N]
    Tensor next = ops::matmul(along.contiguous(), points).contiguous();  // [M, D]
    orthonormalize(next);
    next = turned(next, points);
    const double changed = change(q, next, count);
    q = next;
    if (changed < 2e-6) {
      break;
    }
  }
  result.components = q.narrow(0, 0, count).clone();
  const std::int64_t d = x.size(1);
  for (std::int64_t i = 0; i < count; ++i) {
    float* row = result.components.data<float>() + i * d;
    const float largest = *std::max_element(row, row + d, [](float a, float b) { return std::abs(a) < std::abs(b); });
    if (largest < 0) {
      std::transform(row, row + d, row, std::negate<>());
    }
  }
  result.coordinates = ops::matmul(points, result.components.transpose(0, 1)).contiguous();
  const double total = dot(points.data<float>(), points.data<float>(), points.numel());
  for (std::int64_t k = 0; k < count; ++k) {
    const Tensor column = result.coordinates.select(1, k).contiguous();
    const double variance = dot(column.data<float>(), column.data<float>(), x.size(0));
    result.explained_variance_ratio.push_back(total > 0 ? variance / total : 0);
  }
  return result;
}

Tsne tsne(const Tensor& x, const TsneOptions& options, const std::function<void(std::int64_t done)>& advance) {
  check_points(x);
  const std::int64_t n = x.size(0);
  check(n <= most_tsne_points, "t-SNE compares every point with every other and takes at most {} points, not {}",
        most_tsne_points, n);
  check(options.perplexity > 0 && options.perplexity < static_cast<double>(n),
        "the perplexity must be above 0 and below the number of points, {}, but is {}", n, options.perplexity);
  check(x.size(1) >= 2, "t-SNE needs points of two numbers or more, not of one");
  const autograd::NoGrad no_grad;
  const Tensor p = similarities(x, options.perplexity);
  Descent map(starting_points(x),
              options.learning_rate.value_or(std::max(static_cast<double>(n) / options.early_exaggeration / 4, 50.0)));
  Tsne result;
  bool early = true;
  while (result.iterations < options.iterations) {
    const double length = map.step(p, early ? options.early_exaggeration : 1, early ? 0.5 : 0.8);
    ++result.iterations;
    if (advance) {
      advance(result.iterations);
    }
    const bool settled = result.iterations % iterations_between_checks == 0 && length <= smallest_gradient;
    if (settled && !early) {
      break;
    }
    // Exaggeration ends earlier where it pulls all points together: more of it would leave no difference between them.
    if (early && (settled || result.iterations == exaggerated_iterations)) {
      early = false;
      map.forget();  // scikit-learn begins anew here
    }
  }
  result.kl_divergence = map.divergence_from(p);
  result.coordinates = map.points();
  return result;
}

double trustworthiness(const Tensor& x, const Tensor& y, std::int64_t neighbors) {
  check_points(x);
  check_points(y);
  const std::int64_t n = x.size(0);
  check(y.size(0) == n, "{} points have a map of {}", n, y.size(0));
  check(neighbors >= 1 && 2 * neighbors < n, "neighbours are to be fewer than half of the {} points, not {}", n,
        neighbors);
  const autograd::NoGrad no_grad;
  std::vector<std::int64_t> near(static_cast<std::size_t>(n * neighbors));
  for_distances(y, [&](std::int64_t begin, const Tensor& distances) {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < distances.size(0); ++i) {
      const float* row = distances.data<float>() + i * n;
      order.resize(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::erase(order, begin + i);
      std::partial_sort(order.begin(), order.begin() + neighbors, order.end(),
                        [row](std::int64_t a, std::int64_t b) { return row[a] < row[b]; });
      std::copy_n(order.begin(), neighbors, near.begin() + (begin + i) * neighbors);
    }
  });
  double penalty = 0;
  for_distances(x, [&](std::int64_t begin, const Tensor& distances) {
    for (std::int64_t i = 0; i < distances.size(0); ++i) {
      const float* row = distances.data<float>() + i * n;
      for (std::int64_t k = 0; k < neighbors; ++k) {
        const float distance = row[near[static_cast<std::size_t>((begin + i) * neighbors + k)]];
        const auto rank = std::count_if(row, row + n, [distance](float other) { return other < distance; });
        penalty += static_cast<double>(std::max<std::int64_t>(rank - neighbors, 0));  // the point itself counts as 1
      }
    }
  });
  const auto k = static_cast<double>(neighbors);
  const auto count = static_cast<double>(n);
  return 1 - 2 * penalty / (count * k * (2 * count - 3 * k - 1));
}

}  // namespace vitrail::explain
