#include "vitrail/explain/patch_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::explain {
namespace {

// Points as dense rows.
class Rows {
 public:
  explicit Rows(const Tensor& x) : dense_(x.contiguous()), width_(x.size(1)) {}
  std::int64_t count() const { return dense_.size(0); }
  std::int64_t width() const { return width_; }
  std::span<const float> operator[](std::int64_t i) const {
    return {dense_.data<float>() + i * width_, static_cast<std::size_t>(width_)};
  }

 private:
  Tensor dense_;
  std::int64_t width_;
};

double squared_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return sum;
}

void check_tokens(const Tensor& x) {
  check(x.rank() == 2 && x.dtype() == DType::f32 && x.numel() > 0, "points are [N, D] f32, not {}", x.shape());
  check(std::ranges::all_of(x.contiguous().span<float>(), [](float value) { return std::isfinite(value); }),
        "a number of the points is not finite");
}

// The mean over the columns of their variances.
double mean_variance(const Rows& rows) {
  double total = 0;
  for (std::int64_t column = 0; column < rows.width(); ++column) {
    double sum = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      sum += static_cast<double>(rows[i][static_cast<std::size_t>(column)]);
    }
    const double mean = sum / static_cast<double>(rows.count());
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      const double difference = static_cast<double>(rows[i][static_cast<std::size_t>(column)]) - mean;
      squares += difference * difference;
    }
    total += squares / static_cast<double>(rows.count());
  }
  return total / static_cast<double>(rows.width());
}

// Gives each point the nearest centre, and returns their squared distances.
std::vector<double> assign_points(const Rows& rows, const Tensor& centers, std::vector<std::int64_t>& labels) {
  const Rows middles(centers);
  std::vector<double> distances(static_cast<std::size_t>(rows.count()));
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    double nearest = std::numeric_limits<double>::infinity();
    for (std::int64_t k = 0; k < middles.count(); ++k) {
      const double distance = squared_distance(rows[i], middles[k]);
      if (distance < nearest) {
        nearest = distance;
        labels[static_cast<std::size_t>(i)] = k;
      }
    }
    distances[static_cast<std::size_t>(i)] = nearest;
  }
  return distances;
}

// The means of the groups. Each empty one takes the point farthest from its centre out of its group.
Tensor group_means(const Rows& rows, std::int64_t count, const std::vector<std::int64_t>& labels,
                   const std::vector<double>& distances) {
  const auto width = static_cast<std::size_t>(rows.width());
  std::vector<double> sums(static_cast<std::size_t>(count) * width);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count));
  const auto add = [&](std::int64_t point, std::int64_t group, double sign) {
    for (std::size_t c = 0; c < width; ++c) {
      sums[static_cast<std::size_t>(group) * width + c] += sign * static_cast<double>(rows[point][c]);
    }
    sizes[static_cast<std::size_t>(group)] += sign > 0 ? 1 : -1;
  };
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    add(i, labels[static_cast<std::size_t>(i)], 1);
  }
  std::vector<std::int64_t> order;
  std::size_t taken = 0;
  for (std::int64_t group = 0; group < count; ++group) {
    if (sizes[static_cast<std::size_t>(group)] > 0) {
      continue;
    }
    if (order.empty()) {
      for (std::int64_t i = 0; i < rows.count(); ++i) {
        order.push_back(i);
      }
      std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
        return distances[static_cast<std::size_t>(a)] > distances[static_cast<std::size_t>(b)];
      });
    }
    const std::int64_t farthest = order[taken++];
    add(farthest, labels[static_cast<std::size_t>(farthest)], -1);
    add(farthest, group, 1);
  }
  Tensor means = Tensor::empty({count, rows.width()});
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto size = static_cast<double>(std::max<std::int64_t>(sizes[i / width], 1));
    means.data<float>()[i] = static_cast<float>(sums[i] / size);
  }
  return means;
}

}  // namespace

Tensor patch_tokens(const models::ImageModel& model, const Tensor& x, DType dtype) {
  check(x.rank() == 4 && x.size(0) == 1, "patch tokens are taken of one image [1, C, H, W], not {}", x.shape());
  nn::Pass pass;
  pass.dtype = dtype;
  const Tensor features = ops::cast(model.forward_features(x, pass), DType::f32);
  const models::TokenLayout layout = model.token_layout(x.size(2), x.size(3));
  const std::int64_t places = layout.rows * layout.columns;
  if (features.rank() == 3) {
    check(features.size(1) == layout.prefix + places, "the features {} do not belong to {} x {} patches",
          features.shape(), layout.rows, layout.columns);
    return features.select(0, 0)
        .narrow(0, layout.prefix, places)
        .contiguous()
        .reshape({layout.rows, layout.columns, features.size(2)});
  }
  check(features.rank() == 4, "the model's features {} are not on a grid", features.shape());
  const Tensor map = features.select(0, 0);
  const bool channels_last = map.size(0) == layout.rows && map.size(1) == layout.columns;
  return channels_last ? map.contiguous() : map.permute({1, 2, 0}).contiguous();
}

Tensor kmeans_start(const Tensor& x, std::int64_t count, std::uint64_t seed) {
  check_tokens(x);
  check(count >= 1 && count <= x.size(0), "{} points cannot be put into {} groups", x.size(0), count);
  const Rows rows(x);
  Draws draws(Philox(seed, hash("k-means++")));
  Tensor start = Tensor::empty({count, x.size(1)});
  std::vector<double> distances(static_cast<std::size_t>(rows.count()), std::numeric_limits<double>::infinity());
  std::int64_t chosen = draws.integer(0, rows.count());
  for (std::int64_t k = 0; k < count; ++k) {
    if (k > 0) {
      double total = 0;
      for (const double distance : distances) {
        total += distance;
      }
      check(total > 0, "there are only {} different points, not {}", k, count);
      double left = draws.uniform() * total;
      for (std::int64_t i = 0; i < rows.count(); ++i) {
        const double distance = distances[static_cast<std::size_t>(i)];
        if (distance > 0) {
          chosen = i;
          left -= distance;
          if (left < 0) {
            break;
          }
        }
      }
    }
    std::ranges::copy(rows[chosen], start.data<float>() + k * x.size(1));
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      double& nearest = distances[static_cast<std::size_t>(i)];
      nearest = std::min(nearest, squared_distance(rows[i], rows[chosen]));
    }
  }
  return start;
}

KMeans kmeans(const Tensor& x, const Tensor& start, std::int64_t max_iter, double tol) {
  check_tokens(x);
  check_tokens(start);
  check(start.size(1) == x.size(1) && start.size(0) <= x.size(0), "centres {} do not fit points {}", start.shape(),
        x.shape());
  const Rows rows(x);
  const double still = tol * mean_variance(rows);
  KMeans result;
  result.centers = start.contiguous();
  result.labels.assign(static_cast<std::size_t>(rows.count()), -1);
  bool settled = false;
  while (result.iterations < max_iter && !settled) {
    const std::vector<std::int64_t> before = result.labels;
    const std::vector<double> distances = assign_points(rows, result.centers, result.labels);
    const Tensor means = group_means(rows, start.size(0), result.labels, distances);
    double moved = 0;
    for (std::int64_t k = 0; k < start.size(0); ++k) {
      moved += squared_distance(Rows(means)[k], Rows(result.centers)[k]);
    }
    result.centers = means;
    ++result.iterations;
    settled = before == result.labels || moved <= still;
  }
  for (const double distance : assign_points(rows, result.centers, result.labels)) {
    result.inertia += distance;
  }
  return result;
}

std::vector<Match> mutual_matches(const Tensor& a, const Tensor& b) {
  check_tokens(a);
  check_tokens(b);
  check(a.size(1) == b.size(1), "tokens of {} and {} numbers cannot be compared", a.size(1), b.size(1));
  const Tensor cosines = ops::matmul(ops::normalize(a), ops::normalize(b).transpose(0, 1)).contiguous();
  const float* values = cosines.data<float>();
  const std::int64_t columns = b.size(0);
  std::vector<std::int64_t> of_column(static_cast<std::size_t>(columns));
  std::vector<std::int64_t> of_row(static_cast<std::size_t>(a.size(0)));
  for (std::int64_t i = 0; i < a.size(0); ++i) {
    std::int64_t& best = of_row[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < columns; ++j) {
      best = values[i * columns + j] > values[i * columns + best] ? j : best;
      std::int64_t& row = of_column[static_cast<std::size_t>(j)];
      row = values[i * columns + j] > values[row * columns + j] ? i : row;
    }
  }
  std::vector<Match> matches;
  for (std::int64_t i = 0; i < a.size(0); ++i) {
    const std::int64_t j = of_row[static_cast<std::size_t>(i)];
    if (of_column[static_cast<std::size_t>(j)] == i) {
      matches.push_back({i, j, static_cast<double>(values[i * columns + j])});
    }
  }
  std::ranges::stable_sort(matches,
                           [](const Match& one, const Match& other) { return one.similarity > other.similarity; });
  return matches;
}

}  // namespace vitrail::explain
