#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/attention/cosine.cpp"
#include "vitrail/kernels/cosine.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

constexpr float least_length = 1e-12F;  // as in torch.nn.functional.normalize

template <class T>
HWY_INLINE float length_of(const T* x, std::int64_t n) {
  const F32 d;
  return std::sqrt(sum_over(d, n, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
    const auto v = load(d, x + i, part);
    return hn::MulAdd(v, v, sum);
  }));
}

template <class T>
void forward_rows(const PackedHeads& s, const T* x, const float* scale, T* y, std::int64_t rows) {
  const F32 d;
  const std::int64_t width = s.heads * s.dim;
  for (std::int64_t row = 0; row < rows; ++row, x += 3 * width, y += 3 * width) {
    for (std::int64_t head = 0; head < 2 * s.heads; ++head) {
      const T* from = x + head * s.dim;
      T* to = y + head * s.dim;
      const float factor = (head < s.heads ? scale[head] : 1.0F) / std::max(length_of(from, s.dim), least_length);
      for_lanes(d, s.dim, [&](std::int64_t i, auto part) HWY_ATTR {
        store(hn::Mul(load(d, from + i, part), hn::Set(d, factor)), d, to + i, part);
      });
    }
    std::memcpy(y + 2 * width, x + 2 * width, static_cast<std::size_t>(width) * sizeof(T));
  }
}

// The gradients of scale · u with u = x / |x|: dx = scale / |x| (dy - u (u · dy)), dscale += u · dy.
template <class T>
void backward_rows(const PackedHeads& s, const T* x, const float* scale, const T* dy, T* dx, float* dscale,
                   std::int64_t rows) {
  const F32 d;
  const std::int64_t width = s.heads * s.dim;
  for (std::int64_t row = 0; row < rows; ++row, x += 3 * width, dy += 3 * width, dx += 3 * width) {
    for (std::int64_t head = 0; head < 2 * s.heads; ++head) {
      const std::int64_t at = head * s.dim;
      const float length = length_of(x + at, s.dim);
      const float inverse = 1 / std::max(length, least_length);
      const float along = inverse * sum_over(d, s.dim, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
                            return hn::MulAdd(load(d, x + at + i, part), load(d, dy + at + i, part), sum);
                          });
      const float factor = inverse * (head < s.heads ? scale[head] : 1.0F);
      if (head < s.heads) {
        dscale[head] += along;
      }
      const auto f = hn::Set(d, factor);
      const auto back = hn::Set(d, length > least_length ? along * inverse : 0.0F);  // a clamped length has no gradient
      for_lanes(d, s.dim, [&](std::int64_t i, auto part) HWY_ATTR {
        const auto v = hn::NegMulAdd(load(d, x + at + i, part), back, load(d, dy + at + i, part));
        store(hn::Mul(v, f), d, dx + at + i, part);
      });
    }
    std::memcpy(dx + 2 * width, dy + 2 * width, static_cast<std::size_t>(width) * sizeof(T));
  }
}

void forward(const PackedHeads& s, const void* qkv, const float* scale, void* y, std::int64_t begin, std::int64_t end) {
  const std::int64_t at = begin * 3 * s.heads * s.dim;
  visit_floating(s.dtype, [&]<class T>(T) HWY_ATTR {
    forward_rows(s, static_cast<const T*>(qkv) + at, scale, static_cast<T*>(y) + at, end - begin);
  });
}

void backward(const PackedHeads& s, const void* qkv, const float* scale, const void* dy, void* dqkv, float* dscale,
              std::int64_t begin, std::int64_t end) {
  const std::int64_t at = begin * 3 * s.heads * s.dim;
  visit_floating(s.dtype, [&]<class T>(T) HWY_ATTR {
    backward_rows(s, static_cast<const T*>(qkv) + at, scale, static_cast<const T*>(dy) + at, static_cast<T*>(dqkv) + at,
                  dscale, end - begin);
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

void cosine_forward(const PackedHeads& shape, const void* qkv, const float* scale, void* y) {
  parallel_for(shape.rows, rows_worth_a_thread(3 * shape.heads * shape.dim),
               [&](std::int64_t begin, std::int64_t end, int) {
                 HWY_DYNAMIC_DISPATCH(forward)(shape, qkv, scale, y, begin, end);
               });
}

void cosine_backward(const PackedHeads& shape, const void* qkv, const float* scale, const void* dy, void* dqkv,
                     float* dscale) {
  const std::int64_t grain = rows_worth_a_thread(3 * shape.heads * shape.dim);
  const auto heads = static_cast<std::size_t>(shape.heads);
  std::vector<float> sums(heads * static_cast<std::size_t>(threads_for(shape.rows, grain)), 0.0F);
  parallel_for(shape.rows, grain, [&](std::int64_t begin, std::int64_t end, int part) {
    HWY_DYNAMIC_DISPATCH(backward)
    (shape, qkv, scale, dy, dqkv, sums.data() + static_cast<std::size_t>(part) * heads, begin, end);
  });
  for (std::size_t head = 0; head < heads; ++head) {
    dscale[head] = 0;
    for (std::size_t at = head; at < sums.size(); at += heads) {
      dscale[head] += sums[at];
    }
  }
}

}  // namespace vitrail::kernels
#endif
