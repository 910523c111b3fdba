#include "vitrail/ops/math/integers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <type_traits>

#include "vitrail/kernels/operand.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/tensor/strided.h"

namespace vitrail::ops {
namespace {

constexpr std::int64_t block_of_integers = 1024;

template <class T>
T floored(T a, T b) {
  if (b == -1) {  // of the smallest number, the quotient wraps around
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  }
  const T quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// out[i] = function(a[i], b[i]), where `function` is one of numbers without a sign, whose overflow is defined.
template <class T, class Function>
void map_integers(const T* a, const T* b, T* out, std::int64_t n, const Function& function) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = function(a[i], b[i]);
  }
}

template <class T>
void integer_block(IntegerFunction function, const T* a, const T* b, T* out, std::int64_t n) {
  using U = std::make_unsigned_t<T>;
  switch (function) {
    case IntegerFunction::add:
      return map_integers(a, b, out, n, [](T x, T y) { return static_cast<T>(U(x) + U(y)); });
    case IntegerFunction::subtract:
      return map_integers(a, b, out, n, [](T x, T y) { return static_cast<T>(U(x) - U(y)); });
    case IntegerFunction::multiply:
      return map_integers(a, b, out, n, [](T x, T y) { return static_cast<T>(U(x) * U(y)); });
    case IntegerFunction::floor_divide:
      return map_integers(a, b, out, n, [](T x, T y) { return floored(x, y); });
    case IntegerFunction::remainder:
      return map_integers(a, b, out, n, [](T x, T y) { return static_cast<T>(U(x) - U(floored(x, y)) * U(y)); });
    case IntegerFunction::maximum:
      return map_integers(a, b, out, n, [](T x, T y) { return std::max(x, y); });
    case IntegerFunction::minimum:
      return map_integers(a, b, out, n, [](T x, T y) { return std::min(x, y); });
  }
}

template <class T>
void integers_typed(IntegerFunction function, const kernels::Operand& a, const kernels::Operand& b, T* out,
                    const Shape& shape) {
  const std::array<Shape, 2> strides = {a.strides, b.strides};
  const Loops loops(shape, strides);
  const bool divides = function == IntegerFunction::floor_divide || function == IntegerFunction::remainder;
  std::atomic<bool> by_zero = false;
  kernels::parallel_for(
      shape.numel(), 1 << 14, kernels::lines, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
        std::array<std::array<T, block_of_integers>, 2> copies;
        const std::array<const T*, 2> data = {static_cast<const T*>(a.data), static_cast<const T*>(b.data)};
        for (std::int64_t i = begin; i < end; i += block_of_integers) {
          const std::int64_t n = std::min(end - i, block_of_integers);
          std::array<const T*, 2> in{};
          for (std::size_t k = 0; k < in.size(); ++k) {
            if (loops.shape.rank() == 1 && loops.strides[k].back() == 1) {
              in[k] = data[k] + i;
            } else {
              gather_elements(loops, static_cast<int>(k), data[k], i, n, copies[k].data());
              in[k] = copies[k].data();
            }
          }
          if (divides && std::find(in[1], in[1] + n, T{0}) != in[1] + n) {
            by_zero = true;
            return;
          }
          integer_block(function, in[0], in[1], out + i, n);
        }
      });
  check(!by_zero, "an integer cannot be divided by zero");
}

}  // namespace

Tensor of_integers(IntegerFunction function, const Tensor& a, const Tensor& b) {
  const Shape shape = broadcast(a.shape(), b.shape());
  Tensor result = Tensor::empty(shape, a.dtype());
  if (result.numel() == 0) {
    return result;
  }
  Profile::traffic(result.numel(), result.dtype(), 3);
  const kernels::Operand left{a.raw(), a.expand(shape).strides()};
  const kernels::Operand right{b.raw(), b.expand(shape).strides()};
  if (result.dtype() == DType::i64) {
    integers_typed(function, left, right, result.data<std::int64_t>(), shape);
  } else {
    integers_typed(function, left, right, result.data<std::int32_t>(), shape);
  }
  return result;
}

}  // namespace vitrail::ops
