#include "vitrail/nn/positions/decomposed_rel_pos.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "vitrail/ops/images/interpolate.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

// The row of the table for each pair of a query's and a key's place, [queries · keys] i64.
Tensor distance_index(std::int64_t queries, std::int64_t keys) {
  const auto q = static_cast<float>(queries);
  const auto k = static_cast<float>(keys);
  const float q_ratio = std::max(k / q, 1.0F);
  const float k_ratio = std::max(q / k, 1.0F);
  const Tensor index = Tensor::empty({queries * keys}, DType::i64);
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const float distance = static_cast<float>(i) * q_ratio - static_cast<float>(j + 1 - keys) * k_ratio;
      index.data<std::int64_t>()[i * keys + j] = static_cast<std::int64_t>(distance);
    }
  }
  return index;
}

// q [B, N, H, D] · R [g, k, D] along one axis of the grid: [B, N, H, k], by one product for each place g of the axis.
Tensor along_axis(const Tensor& q, const Tensor& positions, const Size3& grid, int axis) {
  const std::int64_t heads = q.size(2);
  const std::int64_t dim = q.size(3);
  const std::int64_t size = grid[static_cast<std::size_t>(axis)];
  const std::int64_t outer = q.size(0) * (axis == 0 ? 1 : grid[0] * (axis == 1 ? 1 : grid[1]));
  const std::int64_t inner = q.size(1) * q.size(0) / outer / size * heads;
  const Tensor places =
      ops::reshape(ops::transpose(ops::reshape(q, {outer, size, inner, dim}), 0, 1), {size, outer * inner, dim});
  const Tensor products = ops::matmul(places, ops::transpose(positions, 1, 2));  // [size, outer · inner, k]
  const std::int64_t keys = positions.size(1);
  return ops::reshape(ops::transpose(ops::reshape(products, {size, outer, inner, keys}), 0, 1),
                      {q.size(0), q.size(1), heads, keys});
}

// A one for each key of the grid at its place along each axis that has a table: [1, prefix + M, 1, R].
Tensor one_hot_places(const Size3& keys, const std::array<Tensor, 3>& tables, std::int64_t prefix, DType dtype) {
  std::int64_t width = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    width += tables[axis].defined() ? keys[axis] : 0;
  }
  const std::int64_t count = keys[0] * keys[1] * keys[2];
  const Tensor places = Tensor::zeros({1, prefix + count, 1, width});
  for (std::int64_t j = 0; j < count; ++j) {
    const Size3 at = {j / (keys[1] * keys[2]), j / keys[2] % keys[1], j % keys[2]};
    float* row = places.data<float>() + (prefix + j) * width;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (tables[axis].defined()) {
        row[at[axis]] = 1;
        row += keys[axis];
      }
    }
  }
  return ops::cast(places, dtype);
}

// fvcore takes the count of an einsum from what numpy prints, which is rounded to four digits, and halves it.
std::int64_t einsum_flops(std::int64_t products) {
  const std::string printed = fmt::format("{:.3e}", 2 * static_cast<double>(products));
  return static_cast<std::int64_t>(std::strtod(printed.c_str(), nullptr) / 2);
}

}  // namespace

Tensor resized_rel_pos(const Tensor& table, std::int64_t length) {
  if (table.size(0) == length) {
    return table;
  }
  const std::int64_t dim = table.size(1);
  const Tensor rows = ops::reshape(ops::transpose(table, 0, 1), {1, dim, 1, table.size(0)});
  const Tensor wide = ops::interpolate(rows, 1, length, ops::Interpolation::bilinear);
  return ops::transpose(ops::reshape(wide, {dim, length}), 0, 1);
}

DecomposedRelPos::DecomposedRelPos(const Scope& scope, const Size3& lengths, std::int64_t head_dim, const Init& init) {
  constexpr std::array<const char*, 3> names = {"rel_pos_t", "rel_pos_h", "rel_pos_w"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (lengths[axis] > 0) {
      tables[axis] = scope.parameter(names[axis], {lengths[axis], head_dim}, init);
    }
  }
}

DecomposedRelPos::Columns DecomposedRelPos::operator()(const Tensor& q, const Size3& queries, const Size3& keys,
                                                       std::int64_t prefix, float scale) const {
  const Tensor patches = prefix == 0 ? q : ops::narrow(q, 1, prefix, q.size(1) - prefix);
  std::vector<Tensor> products;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (tables[axis].defined()) {
      const Tensor table = resized_rel_pos(tables[axis], relative_distances(queries[axis], keys[axis]));
      const Tensor rows = ops::embedding(table, distance_index(queries[axis], keys[axis])) * (1 / scale);
      const Tensor positions = ops::reshape(ops::cast(rows, q.dtype()), {queries[axis], keys[axis], q.size(3)});
      products.push_back(along_axis(patches, positions, queries, static_cast<int>(axis)));
    }
  }
  const Tensor scores = ops::concat(products, -1);
  return {prefix == 0 ? scores : ops::pad(scores, 1, prefix, 0), one_hot_places(keys, tables, prefix, q.dtype())};
}

std::int64_t DecomposedRelPos::flops(std::int64_t heads, const Size3& queries, const Size3& keys) const {
  std::int64_t total = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (tables[axis].defined()) {
      const std::int64_t products = heads * queries[0] * queries[1] * queries[2] * tables[axis].size(1) * keys[axis];
      total += axis == 0 ? products : einsum_flops(products);
    }
  }
  return total;
}

}  // namespace vitrail::nn
