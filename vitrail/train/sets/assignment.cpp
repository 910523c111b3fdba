#include "vitrail/train/sets/assignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

// An assignment that grows by a row at a time, each row by a shortest path of reduced costs to a free column. There are
// at least as many columns as rows.
class GrowingAssignment {
 public:
  GrowingAssignment(std::vector<double> costs, std::size_t rows, std::size_t columns)
      : costs_(std::move(costs)),
        columns_(columns),
        row_price_(rows, 0),
        column_price_(columns, 0),
        column_of_(rows, none),
        row_of_(columns, none),
        distance_(columns),
        reached_from_(columns, none) {
    for (std::size_t row = 0; row < rows; ++row) {
      add(row);
    }
  }
  const std::vector<std::size_t>& column_of() const { return column_of_; }

 private:
  void add(std::size_t new_row) {
    std::vector<std::size_t> rows_seen;
    std::vector<std::size_t> columns_seen;
    double length = 0;
    const std::size_t free_column = shortest_path(new_row, rows_seen, columns_seen, length);
    // Prices that make all pairs of the path cost nothing.
    for (const std::size_t row : rows_seen) {
      row_price_[row] += row == new_row ? length : length - distance_[column_of_[row]];
    }
    for (const std::size_t column : columns_seen) {
      column_price_[column] -= length - distance_[column];
    }
    // Along the path, each row gives its column to the row before.
    std::size_t column = free_column;
    std::size_t row = none;
    while (row != new_row) {
      row = reached_from_[column];
      row_of_[column] = row;
      std::swap(column_of_[row], column);
    }
  }

  // Dijkstra's algorithm from a row to the nearest free column. Columns are looked at from the last on, and of equally
  // near ones a free one is taken, else the first that was seen: ties are broken as scipy's do.
  std::size_t shortest_path(std::size_t row, std::vector<std::size_t>& rows_seen,
                            std::vector<std::size_t>& columns_seen, double& length) {
    std::vector<std::size_t> left(columns_);
    std::iota(left.rbegin(), left.rend(), std::size_t{0});
    std::ranges::fill(distance_, infinite);
    while (true) {
      rows_seen.push_back(row);
      std::size_t nearest = 0;
      double least = infinite;
      for (std::size_t i = 0; i < left.size(); ++i) {
        const std::size_t column = left[i];
        const double through = length + costs_[row * columns_ + column] - row_price_[row] - column_price_[column];
        if (through < distance_[column]) {
          distance_[column] = through;
          reached_from_[column] = row;
        }
        if (distance_[column] < least || (distance_[column] == least && row_of_[column] == none)) {
          least = distance_[column];
          nearest = i;
        }
      }
      length = least;
      const std::size_t column = left[nearest];
      columns_seen.push_back(column);
      if (row_of_[column] == none) {
        return column;
      }
      row = row_of_[column];
      left[nearest] = left.back();
      left.pop_back();
    }
  }

  std::vector<double> costs_;
  std::size_t columns_;
  std::vector<double> row_price_;
  std::vector<double> column_price_;
  std::vector<std::size_t> column_of_;
  std::vector<std::size_t> row_of_;
  std::vector<double> distance_;
  std::vector<std::size_t> reached_from_;
};

}  // namespace

Assignment assign(std::span<const float> costs, std::int64_t rows, std::int64_t columns) {
  check(rows >= 0 && columns >= 0 && std::ssize(costs) == rows * columns,
        "an assignment of {} rows to {} columns needs as many costs as pairs, not {}", rows, columns, costs.size());
  const bool turned = columns < rows;  // rows and columns change places
  const auto fewer = static_cast<std::size_t>(turned ? columns : rows);
  const auto more = static_cast<std::size_t>(turned ? rows : columns);
  std::vector<double> finite(costs.size());
  for (std::size_t i = 0; i < fewer; ++i) {
    for (std::size_t j = 0; j < more; ++j) {
      const float cost = turned ? costs[j * fewer + i] : costs[i * more + j];
      finite[i * more + j] = std::isfinite(cost) ? cost : std::numeric_limits<float>::max();
    }
  }
  const GrowingAssignment found(std::move(finite), fewer, more);
  Assignment result;
  for (std::size_t i = 0; i < fewer; ++i) {
    result.rows.push_back(static_cast<std::int64_t>(i));
    result.columns.push_back(static_cast<std::int64_t>(found.column_of()[i]));
  }
  if (turned) {
    std::swap(result.rows, result.columns);
    std::vector<std::size_t> order(fewer);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return result.rows[i]; });
    Assignment sorted;
    for (const std::size_t i : order) {
      sorted.rows.push_back(result.rows[i]);
      sorted.columns.push_back(result.columns[i]);
    }
    return sorted;
  }
  return result;
}

}  // namespace vitrail::train
