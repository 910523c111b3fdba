#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/elementwise.cpp"
#include "vitrail/kernels/elementwise.h"

#include <array>
#include <cmath>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/tensor/strided.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// out[i] = function(in[i]…), lane by lane.
template <class T, class Function, class... In>
void map(std::int64_t n, void* out, const Function& function, const In*... in) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    store(function(load(d, static_cast<const T*>(in) + i, part)...), d, static_cast<T*>(out) + i, part);
  });
}

// out[i] = function(in[i]…) for a function of scalar floats, for what has no SIMD form here.
template <class T, class Function, class... In>
void map_floats(std::int64_t n, void* out, const Function& function, const In*... in) {
  for (std::int64_t i = 0; i < n; ++i) {
    static_cast<T*>(out)[i] = static_cast<T>(function(static_cast<float>(static_cast<const T*>(in)[i])...));
  }
}

template <class T>
void unary_block(Elementwise function, const void* a, void* out, std::int64_t n, float p, float q) {
  using X = V<F32>;
  const F32 d;
  const auto vp = hn::Set(d, p);
  const auto vq = hn::Set(d, q);
  switch (function) {
    case Elementwise::affine:
      return map<T>(
          n, out, [&](X x) HWY_ATTR { return hn::MulAdd(x, vp, vq); }, a);
    case Elementwise::clamp:
      // With the operands in this order, NaN stays NaN.
      return map<T>(
          n, out, [&](X x) HWY_ATTR { return hn::IfThenElse(hn::Lt(x, vp), vp, hn::IfThenElse(hn::Gt(x, vq), vq, x)); },
          a);
    case Elementwise::exp:
      return map<T>(
          n, out, [&](X x) HWY_ATTR { return exp(d, x); }, a);
    case Elementwise::sqrt:
      return map<T>(
          n, out, [&](X x) HWY_ATTR { return hn::Sqrt(x); }, a);
    case Elementwise::rsqrt:
      return map<T>(
          n, out, [&](X x) HWY_ATTR { return hn::Div(hn::Set(d, 1.0F), hn::Sqrt(x)); }, a);
    case Elementwise::abs:
      return map<T>(
          n, out, [&](X x) HWY_ATTR { return hn::Abs(x); }, a);
    case Elementwise::log:
      return map_floats<T>(
          n, out, [](float x) { return std::log(x); }, a);
    case Elementwise::power:
      if (p == 2.0F) {
        return map<T>(
            n, out, [&](X x) HWY_ATTR { return hn::Mul(x, x); }, a);
      }
      return map_floats<T>(
          n, out, [p](float x) { return std::pow(x, p); }, a);
    default:
      fail("not a function of one operand: {}", static_cast<int>(function));
  }
}

template <class T>
void binary_block(Elementwise function, const void* a, const void* b, void* out, std::int64_t n, float p, float q) {
  using X = V<F32>;
  const F32 d;
  const auto vp = hn::Set(d, p);
  const auto vq = hn::Set(d, q);
  switch (function) {
    case Elementwise::add:
      return map<T>(
          n, out, [&](X x, X y) HWY_ATTR { return hn::Add(x, y); }, a, b);
    case Elementwise::subtract:
      return map<T>(
          n, out, [&](X x, X y) HWY_ATTR { return hn::Sub(x, y); }, a, b);
    case Elementwise::multiply:
      return map<T>(
          n, out, [&](X x, X y) HWY_ATTR { return hn::Mul(hn::Mul(vp, x), y); }, a, b);
    case Elementwise::divide:
      return map<T>(
          n, out, [&](X x, X y) HWY_ATTR { return hn::Div(hn::Mul(vp, x), y); }, a, b);
    case Elementwise::maximum:
      return map<T>(
          n, out, [&](X x, X y) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y); }, a, b);
    case Elementwise::minimum:
      return map<T>(
          n, out, [&](X x, X y) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(x)), x, y); }, a, b);
    case Elementwise::equal:
      return map<T>(
          n, out, [&](X x, X y) HWY_ATTR { return hn::IfThenElseZero(hn::Eq(x, y), hn::Set(d, 1.0F)); }, a, b);
    case Elementwise::clamp_gradient:
      return map<T>(
          n, out, [&](X dy, X x) HWY_ATTR { return hn::IfThenElseZero(hn::And(hn::Ge(x, vp), hn::Le(x, vq)), dy); }, a,
          b);
    case Elementwise::rsqrt_gradient:
      return map<T>(
          n, out,
          [&](X dy, X y) HWY_ATTR { return hn::Mul(hn::Mul(hn::Set(d, -0.5F), dy), hn::Mul(y, hn::Mul(y, y))); }, a, b);
    case Elementwise::abs_gradient:
      return map<T>(
          n, out,
          [&](X dy, X x) HWY_ATTR {
            const auto zero = hn::Zero(d);
            return hn::IfThenElse(hn::Gt(x, zero), dy, hn::IfThenElseZero(hn::Lt(x, zero), hn::Neg(dy)));
          },
          a, b);
    case Elementwise::power_gradient:
      if (p == 2.0F) {
        return map<T>(
            n, out, [&](X dy, X x) HWY_ATTR { return hn::Mul(hn::Add(x, x), dy); }, a, b);
      }
      return map_floats<T>(
          n, out, [p](float dy, float x) { return p == 0 ? 0 : dy * p * std::pow(x, p - 1); }, a, b);
    default:
      fail("not a function of two operands: {}", static_cast<int>(function));
  }
}

template <class T>
void ternary_block(Elementwise function, const void* a, const void* b, const void* c, void* out, std::int64_t n) {
  using X = V<F32>;
  const F32 d;
  switch (function) {
    case Elementwise::negative_ratio:
      return map<T>(
          n, out, [&](X x, X y, X z) HWY_ATTR { return hn::Neg(hn::Div(hn::Mul(x, y), z)); }, a, b, c);
    case Elementwise::where_equal:
      return map<T>(
          n, out, [&](X x, X y, X z) HWY_ATTR { return hn::IfThenElseZero(hn::Eq(y, z), x); }, a, b, c);
    case Elementwise::where_winner:
      return map<T>(
          n, out,
          [&](X x, X y, X z) HWY_ATTR {
            const auto shared = hn::IfThenElse(hn::Eq(y, z), hn::Mul(x, hn::Set(d, 0.5F)), x);
            return hn::IfThenZeroElse(hn::Lt(y, z), shared);
          },
          a, b, c);
    default:
      fail("not a function of three operands: {}", static_cast<int>(function));
  }
}

}  // namespace

// out = function(in…) for `count` operands of `n` elements each, all dense.
void elementwise_block(Elementwise function, const std::array<const void*, 3>& in, std::size_t count, void* out,
                       std::int64_t n, DType dtype, float p, float q) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    if (count == 1) {
      unary_block<T>(function, in[0], out, n, p, q);
    } else if (count == 2) {
      binary_block<T>(function, in[0], in[1], out, n, p, q);
    } else {
      ternary_block<T>(function, in[0], in[1], in[2], out, n);
    }
  });
}

}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

HWY_EXPORT(elementwise_block);

constexpr std::int64_t short_row = 128;  // shorter rows are copied together into blocks of several
constexpr std::int64_t block = 1024;
constexpr std::int64_t grain = 1 << 14;  // least elements per thread

// Computes elements [begin, end) of the nest block by block; operands that are not dense are copied to a dense buffer
// first.
template <class T>
void elementwise_range(Elementwise function, const Loops& loops, std::span<const Operand> operands, T* out,
                       std::int64_t begin, std::int64_t end, DType dtype, float p, float q) {
  std::array<std::array<T, block>, 3> dense;
  const std::int64_t inner = loops.inner();
  const bool several_rows = inner < short_row;
  for (std::int64_t i = begin; i < end;) {
    // A block ends with its row unless rows are short. (If all operands are dense, the nest has one dimension, so one
    // row.)
    const std::int64_t n = std::min({end - i, block, several_rows ? block : inner - i % inner});
    std::array<const void*, 3> in{};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const T* data = static_cast<const T*>(operands[k].data);
      if (loops.strides[k].back() == 1 && (!several_rows || loops.shape.rank() == 1)) {
        in[k] = data + loops.offset(static_cast<int>(k), i);
      } else {
        gather_elements(loops, static_cast<int>(k), data, i, n, dense[k].data());
        in[k] = dense[k].data();
      }
    }
    HWY_DYNAMIC_DISPATCH(elementwise_block)(function, in, operands.size(), out + i, n, dtype, p, q);
    i += n;
  }
}

}  // namespace

void elementwise(Elementwise function, std::span<const Operand> operands, void* out, const Shape& shape, DType dtype,
                 float p, float q) {
  check(!operands.empty() && operands.size() <= 3, "elementwise() takes one to three operands, not {}",
        operands.size());
  const std::int64_t n = shape.numel();
  if (n == 0) {
    return;
  }
  Profile::traffic(n, dtype, static_cast<int>(operands.size()) + 1);
  std::array<Shape, 3> strides;
  std::ranges::transform(operands, strides.begin(), [](const Operand& operand) { return operand.strides; });
  const Loops loops(shape, std::span(strides).first(operands.size()));
  visit_floating(dtype, [&]<class T>(T) {
    parallel_for(n, grain, 64, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
      elementwise_range(function, loops, operands, static_cast<T*>(out), begin, end, dtype, p, q);
    });
  });
}

}  // namespace vitrail::kernels
#endif
