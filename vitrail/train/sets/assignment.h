/// \file
/// The linear assignment problem.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrail::train {

/// Pairs of a row and a column, in the order of the rows.
struct Assignment {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
};

/// The assignment of rows to columns of a matrix costs [rows, columns] whose sum of costs is least: each row gets a
/// column of its own, or, if there are fewer columns, each column a row. It is found by shortest augmenting paths
/// (Crouse 2016, "On implementing 2D rectangular assignment algorithms"), and is scipy's linear_sum_assignment also
/// where several are equally good. A cost that is NaN or infinite counts as the largest float, so that its pair is
/// taken last. Throws Error unless there are rows · columns costs.
Assignment assign(std::span<const float> costs, std::int64_t rows, std::int64_t columns);

}  // namespace vitrail::train
