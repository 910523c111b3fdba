#include "vitrail/ops/math/where.h"

#include <algorithm>
#include <array>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/operand.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/ops/math/broadcast.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/tensor/strided.h"

namespace vitrail::ops {
namespace {

constexpr std::int64_t block_of_choices = 1024;

// The elements [begin, begin + count) of operand `k`: where they lie, if they lie side by side, or else their copies.
template <class T>
const T* block_of(const Loops& loops, int k, const T* data, std::int64_t begin, std::int64_t count, T* copies) {
  if (data == nullptr) {
    std::fill_n(copies, count, T{});
    return copies;
  }
  if (loops.shape.rank() == 1 && loops.strides[static_cast<std::size_t>(k)].back() == 1) {
    return data + begin;
  }
  gather_elements(loops, k, data, begin, count, copies);
  return copies;
}

template <class T>
void choose(const kernels::Operand& condition, const kernels::Operand& a, const kernels::Operand& b, T* out,
            const Shape& shape) {
  const std::array<Shape, 3> strides = {condition.strides, a.strides, b.strides};
  const Loops loops(shape, strides);
  kernels::parallel_for(
      shape.numel(), 1 << 14, kernels::lines, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
        std::array<bool, block_of_choices> of_condition;
        std::array<std::array<T, block_of_choices>, 2> of_values;
        for (std::int64_t i = begin; i < end; i += block_of_choices) {
          const std::int64_t n = std::min(end - i, block_of_choices);
          const bool* const c = block_of(loops, 0, static_cast<const bool*>(condition.data), i, n, of_condition.data());
          const T* const x = block_of(loops, 1, static_cast<const T*>(a.data), i, n, of_values[0].data());
          const T* const y = block_of(loops, 2, static_cast<const T*>(b.data), i, n, of_values[1].data());
          for (std::int64_t j = 0; j < n; ++j) {
            out[i + j] = c[j] ? x[j] : y[j];
          }
        }
      });
}

// The choice over `shape`; an undefined tensor stands for zeros.
Tensor chosen(const Tensor& condition, const Tensor& a, const Tensor& b, const Shape& shape, DType dtype) {
  const auto operand = [&](const Tensor& x) {
    return x.defined() ? kernels::Operand{x.raw(), x.expand(shape).strides()}
                       : kernels::Operand{nullptr, shape.contiguous_strides()};
  };
  Tensor y = Tensor::empty(shape, dtype);
  if (y.numel() == 0) {
    return y;
  }
  Profile::traffic(y.numel(), dtype, 3);
  const auto choose_as = [&]<class T>(T) {
    choose<T>(operand(condition), operand(a), operand(b), reinterpret_cast<T*>(y.raw()), shape);
  };
  switch (size_of(dtype)) {
    case 1:
      choose_as(std::uint8_t{});
      break;
    case 2:
      choose_as(std::uint16_t{});
      break;
    case 4:
      choose_as(std::uint32_t{});
      break;
    default:
      choose_as(std::uint64_t{});
  }
  return y;
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check(condition.dtype() == DType::boolean, "where() needs a condition of bool, not {}", name_of(condition.dtype()));
  check(a.dtype() == b.dtype(), "where() needs two operands of one dtype, not {} and {}: cast one of them",
        name_of(a.dtype()), name_of(b.dtype()));
  const Shape shape = broadcast(condition.shape(), broadcast(a.shape(), b.shape()));
  Tensor y = chosen(condition, a, b, shape, a.dtype());
  if (!is_floating(a.dtype())) {
    return y;
  }
  return autograd::record(
      "where", y, {&a, &b},
      [condition = condition.detach(), da = autograd::Gradient(a), db = autograd::Gradient(b)](const Tensor& dy) {
        if (da.wanted()) {
          da.add(sum_to(chosen(condition, dy, {}, dy.shape(), dy.dtype()), da.shape()));
        }
        if (db.wanted()) {
          db.add(sum_to(chosen(condition, {}, dy, dy.shape(), dy.dtype()), db.shape()));
        }
      });
}

}  // namespace vitrail::ops
