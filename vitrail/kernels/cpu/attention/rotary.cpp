#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/attention/rotary.cpp"
#include "vitrail/kernels/rotary.h"

#include <cstring>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// Calls body(j, partners, part) for the elements j of a row of `width`, a vector at a time as for_lanes() does;
// `partners` are the other elements of their pairs in x.
template <class T, class Body>
HWY_INLINE void for_pairs(const T* x, std::int64_t width, RotaryPairs pairs, Body&& body) {
  const F32 d;
  if (pairs == RotaryPairs::halves) {
    const std::int64_t half = width / 2;
    for (const std::int64_t shift : {half, -half}) {
      const std::int64_t begin = shift > 0 ? 0 : half;
      for_lanes(d, half, [&](std::int64_t i, auto part) HWY_ATTR {
        body(begin + i, load(d, x + begin + i + shift, part), part);
      });
    }
    return;
  }
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t j = 0; j < width; ++j) {
    body(j, load(d, x + (j ^ 1)), Whole{});
  }
#else
  for_lanes(d, width,
            [&](std::int64_t j, auto part) HWY_ATTR { body(j, hn::Shuffle2301(load(d, x + j, part)), part); });
#endif
}

// Rotates one row: y[j] = x[j] cos[j] + x[partner of j] sin[j], or, if `back`, with - in place of +.
void turn_row(const void* x, const float* cosines, const float* sines, void* y, std::int64_t width, RotaryPairs pairs,
              bool back, DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    const auto direction = hn::Set(d, back ? -1.0F : 1.0F);
    for_pairs(from, width, pairs, [&](std::int64_t j, V<F32> partner, auto part) HWY_ATTR {
      const auto sine = hn::Mul(load(d, sines + j, part), direction);
      const auto own = hn::Mul(load(d, from + j, part), load(d, cosines + j, part));
      store(hn::MulAdd(partner, sine, own), d, to + j, part);
    });
  });
}

// Adds one row to the sums: sums[j] += y[j] dy[partner of j].
void cross_row(const void* y, const void* dy, float* sums, std::int64_t width, RotaryPairs pairs, DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    const T* result = static_cast<const T*>(y);
    for_pairs(static_cast<const T*>(dy), width, pairs, [&](std::int64_t j, V<F32> partner, auto part) HWY_ATTR {
      store(hn::MulAdd(load(d, result + j, part), partner, load(d, sums + j, part)), d, sums + j, part);
    });
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(turn_row);
HWY_EXPORT(cross_row);

const std::byte* row_of(const Tensor& x, std::int64_t b, std::int64_t n, std::int64_t part, std::int64_t head) {
  const std::int64_t offset = b * x.stride(0) + n * x.stride(1) + part * x.stride(2) + head * x.stride(3);
  return x.raw() + offset * static_cast<std::int64_t>(size_of(x.dtype()));
}

// The offset of the row of a token and head in the tables.
std::int64_t table_row(const RotaryTables& tables, std::int64_t n, std::int64_t head) {
  const Tensor& t = tables.cosines;
  return ((t.size(0) == 1 ? 0 : head) * t.size(1) + n - tables.prefix) * t.size(2);
}

}  // namespace

void rotary(const Tensor& x, const RotaryTables& tables, std::int64_t turned, bool back, const Tensor& y) {
  const std::int64_t tokens = x.size(1);
  const std::int64_t parts = x.size(2);
  const std::int64_t heads = x.size(3);
  const std::int64_t width = x.size(4);
  const std::size_t row_bytes = static_cast<std::size_t>(width) * size_of(x.dtype());
  const float* cosines = tables.cosines.data<float>();
  const float* sines = tables.sines.data<float>();
  Profile::traffic(x.numel(), x.dtype(), 2);
  parallel_for(x.size(0) * tokens, rows_worth_a_thread(parts * heads * width),
               [&](std::int64_t begin, std::int64_t end, int) {
                 for (std::int64_t token = begin; token < end; ++token) {
                   const std::int64_t b = token / tokens;
                   const std::int64_t n = token % tokens;
                   for (std::int64_t part = 0; part < parts; ++part) {
                     for (std::int64_t head = 0; head < heads; ++head) {
                       const std::byte* from = row_of(x, b, n, part, head);
                       auto* to = const_cast<std::byte*>(row_of(y, b, n, part, head));
                       if (part >= turned || n < tables.prefix) {
                         std::memcpy(to, from, row_bytes);
                         continue;
                       }
                       const std::int64_t row = table_row(tables, n, head);
                       HWY_DYNAMIC_DISPATCH(turn_row)
                       (from, cosines + row, sines + row, to, width, tables.pairs, back, x.dtype());
                     }
                   }
                 }
               });
}

void rotary_angle_gradient(const Tensor& y, const Tensor& dy, const RotaryTables& tables, std::int64_t turned,
                           const Tensor& dangles) {
  const std::int64_t groups = tables.cosines.size(0);
  const std::int64_t positions = tables.cosines.size(1);
  const std::int64_t width = y.size(4);
  const std::int64_t half = width / 2;
  Profile::traffic(y.numel(), y.dtype(), 2);
  parallel_for(positions, 1, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<float> sums;
    for (std::int64_t n = begin; n < end; ++n) {
      sums.assign(static_cast<std::size_t>(groups * width), 0);
      for (std::int64_t b = 0; b < y.size(0); ++b) {
        for (std::int64_t part = 0; part < turned; ++part) {
          for (std::int64_t head = 0; head < y.size(3); ++head) {
            float* to = sums.data() + (groups == 1 ? 0 : head) * width;
            const std::int64_t token = n + tables.prefix;
            HWY_DYNAMIC_DISPATCH(cross_row)
            (row_of(y, b, token, part, head), row_of(dy, b, token, part, head), to, width, tables.pairs, y.dtype());
          }
        }
      }
      for (std::int64_t group = 0; group < groups; ++group) {
        const float* from = sums.data() + group * width;
        float* to = dangles.data<float>() + (group * positions + n) * half;
        for (std::int64_t i = 0; i < half; ++i) {
          to[i] = tables.pairs == RotaryPairs::halves ? from[i] - from[i + half] : from[2 * i] - from[2 * i + 1];
        }
      }
    }
  });
}

}  // namespace vitrail::kernels
#endif
