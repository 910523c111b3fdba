#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/products/few_rows.cpp"
#include "vitrail/kernels/few_rows.h"

#include <algorithm>
#include <array>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

#ifndef VITRAIL_KERNELS_FEW_ROWS_ONCE
#define VITRAIL_KERNELS_FEW_ROWS_ONCE
namespace vitrail::kernels {
namespace {

// The operands of a product x · weightᵀ: x [rows, depth], weight [outputs, depth], sums [rows, outputs].
template <class X, class Weight, class Sum>
struct FewRows {
  std::int64_t rows, depth, outputs;
  const X* x;
  const Weight* weight;
  Sum* sums;
};

// So many rows of the weight are read at once. They lie far apart, so that each is a long stream for the prefetcher.
constexpr std::int64_t streams = 4;

// Calls tile(row, rows, output, outputs, apart) for tiles of at most `most_rows` rows by `streams` outputs that are
// `apart` rows of the weight apart, or by one output, which cover the outputs [begin, end).
template <class Tile>
HWY_INLINE void for_tiles(std::int64_t rows, std::int64_t most_rows, std::int64_t begin, std::int64_t end,
                          Tile&& tile) {
  const std::int64_t apart = (end - begin) / streams;
  for (std::int64_t n = begin; n < begin + apart; ++n) {
    for (std::int64_t r = 0; r < rows; r += most_rows) {
      tile(r, std::min(most_rows, rows - r), n, streams, apart);
    }
  }
  for (std::int64_t n = begin + streams * apart; n < end; ++n) {
    for (std::int64_t r = 0; r < rows; r += most_rows) {
      tile(r, std::min(most_rows, rows - r), n, std::int64_t{1}, std::int64_t{0});
    }
  }
}

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// The sums of a tile stay in registers, of which there are 32 or 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr std::int64_t most_dot_rows = 4;
#else
constexpr std::int64_t most_dot_rows = 2;
#endif

// The products of kRows rows of x, from `row` on, with kOutputs rows of the weight.
template <class T, int kRows, int kOutputs>
HWY_INLINE void dot_tile(const FewRows<float, T, float>& p, std::int64_t row, std::int64_t output, std::int64_t apart) {
  const F32 d;
  V<F32> sums[kRows][kOutputs];
  for (auto& of_row : sums) {
    for (auto& sum : of_row) {
      sum = hn::Zero(d);
    }
  }
  const float* const x = p.x + row * p.depth;
  const T* const weight = p.weight + output * p.depth;
  const std::int64_t step = apart * p.depth;
  for_lanes(d, p.depth, [&](std::int64_t k, auto part) HWY_ATTR {
    V<F32> w[kOutputs];
    for (int o = 0; o < kOutputs; ++o) {
      w[o] = load(d, weight + o * step + k, part);
    }
    for (int r = 0; r < kRows; ++r) {
      const auto v = load(d, x + r * p.depth + k, part);
      for (int o = 0; o < kOutputs; ++o) {
        sums[r][o] = hn::MulAdd(v, w[o], sums[r][o]);
      }
    }
  });
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) {
      p.sums[(row + r) * p.outputs + output + o * apart] = sum_of(d, sums[r][o]);
    }
  }
}

template <class T, int kRows>
HWY_INLINE void dot_rows(const FewRows<float, T, float>& p, std::int64_t row, std::int64_t output, std::int64_t outputs,
                         std::int64_t apart) {
  if (outputs == streams) {
    dot_tile<T, kRows, streams>(p, row, output, apart);
  } else {
    dot_tile<T, kRows, 1>(p, row, output, apart);
  }
}

template <class T>
void dots(const FewRows<float, T, float>& p, std::int64_t begin, std::int64_t end) {
  for_tiles(p.rows, most_dot_rows, begin, end,
            [&](std::int64_t row, std::int64_t rows, std::int64_t output, std::int64_t outputs, std::int64_t apart)
                HWY_ATTR {
                  if constexpr (most_dot_rows == 4) {
                    if (rows == 4) {
                      return dot_rows<T, 4>(p, row, output, outputs, apart);
                    }
                    if (rows == 3) {
                      return dot_rows<T, 3>(p, row, output, outputs, apart);
                    }
                  }
                  return rows == 2 ? dot_rows<T, 2>(p, row, output, outputs, apart)
                                   : dot_rows<T, 1>(p, row, output, outputs, apart);
                });
}

// x · weightᵀ for the outputs [begin, end).
void few_rows_part(const FewRows<float, void, float>& p, DType dtype, std::int64_t begin, std::int64_t end) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    dots<T>({p.rows, p.depth, p.outputs, p.x, static_cast<const T*>(p.weight), p.sums}, begin, end);
  });
}

// y = sums + bias + residual, of which the last two may be null.
void add_to_sums(const float* sums, const float* bias, const void* residual, void* y, std::int64_t n, DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
      auto v = load(d, sums + i, part);
      if (bias != nullptr) {
        v = hn::Add(v, load(d, bias + i, part));
      }
      if (residual != nullptr) {
        v = hn::Add(v, load(d, static_cast<const T*>(residual) + i, part));
      }
      store(v, d, static_cast<T*>(y) + i, part);
    });
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "vitrail/kernels/cast.h"
#include "vitrail/kernels/cpu/onednn.h"

namespace vitrail::kernels {
namespace {
HWY_EXPORT(few_rows_part);
HWY_EXPORT(add_to_sums);

// A weight that is smaller stays in the caches, in which a packed one serves better.
constexpr std::int64_t least_weight_bytes = 1 << 16;

// The grain for parallel_for() over rows of the weight of so many bytes.
std::int64_t outputs_worth_a_thread(std::int64_t row_bytes) { return least_weight_bytes / row_bytes + 1; }

bool is_dense_row_major(const Tensor& x) { return !x.defined() || x.is_contiguous(); }

std::byte* element(const Tensor& x, std::int64_t row, std::int64_t column) {
  return x.defined() ? x.raw() + static_cast<std::size_t>(row * x.size(1) + column) * size_of(x.dtype()) : nullptr;
}

// Does what the epilogue says with the sums of the outputs [begin, end) of each row.
void finish(const Tensor& sums, const Epilogue& epilogue, const Tensor& c, std::int64_t begin, std::int64_t end) {
  const Profile::Pause pause;  // the traffic has been counted
  const float* const bias = epilogue.bias.defined() ? epilogue.bias.data<float>() + begin : nullptr;
  const std::int64_t n = end - begin;
  for (std::int64_t row = 0; row < c.size(0); ++row) {
    auto* const sum = reinterpret_cast<float*>(element(sums, row, begin));
    std::byte* const y = element(c, row, begin);
    const std::byte* const residual = element(epilogue.residual, row, begin);
    if (epilogue.activation == Activation::identity) {
      HWY_DYNAMIC_DISPATCH(add_to_sums)(sum, bias, residual, y, n, c.dtype());
    } else {
      HWY_DYNAMIC_DISPATCH(add_to_sums)(sum, bias, nullptr, sum, n, DType::f32);
      activation_forward(epilogue.activation, sum, sum, n, DType::f32);
      HWY_DYNAMIC_DISPATCH(add_to_sums)(sum, nullptr, residual, y, n, c.dtype());
    }
    if (epilogue.last != Activation::identity) {
      activation_forward(epilogue.last, y, y, n, c.dtype());
    }
  }
}

#if defined(__x86_64__)
#define VITRAIL_VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

using Int8Rows = FewRows<std::int8_t, std::int8_t, std::int32_t>;

VITRAIL_VNNI inline __m512i load_int8(const std::int8_t* p, std::int64_t count) {
  return count >= 64 ? _mm512_loadu_si512(p)
                     : _mm512_maskz_loadu_epi8((std::uint64_t{1} << static_cast<unsigned>(count)) - 1, p);
}

// The instruction multiplies whole numbers without a sign by such with one. The weight is raised by 128 for it, which
// raises the sum by 128 times the sum of the row of x.
template <int kRows, int kOutputs>
VITRAIL_VNNI void int8_tile(const Int8Rows& p, std::int64_t row, std::int64_t output, std::int64_t apart) {
  __m512i sums[kRows][kOutputs];
  __m512i of_x[kRows];
  for (int r = 0; r < kRows; ++r) {
    of_x[r] = _mm512_setzero_si512();
    for (int o = 0; o < kOutputs; ++o) {
      sums[r][o] = _mm512_setzero_si512();
    }
  }
  const std::int8_t* const x = p.x + row * p.depth;
  const std::int8_t* const weight = p.weight + output * p.depth;
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  for (std::int64_t k = 0; k < p.depth; k += 64) {
    __m512i w[kOutputs];
    for (int o = 0; o < kOutputs; ++o) {
      w[o] = _mm512_xor_si512(load_int8(weight + o * apart * p.depth + k, p.depth - k), sign);
    }
    for (int r = 0; r < kRows; ++r) {
      const __m512i v = load_int8(x + r * p.depth + k, p.depth - k);
      of_x[r] = _mm512_dpbusd_epi32(of_x[r], sign, v);
      for (int o = 0; o < kOutputs; ++o) {
        sums[r][o] = _mm512_dpbusd_epi32(sums[r][o], w[o], v);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) {
      p.sums[(row + r) * p.outputs + output + o * apart] =
          _mm512_reduce_add_epi32(_mm512_sub_epi32(sums[r][o], of_x[r]));
    }
  }
}

template <int kRows>
void int8_rows(const Int8Rows& p, std::int64_t row, std::int64_t output, std::int64_t outputs, std::int64_t apart) {
  if (outputs == streams) {
    int8_tile<kRows, streams>(p, row, output, apart);
  } else {
    int8_tile<kRows, 1>(p, row, output, apart);
  }
}

void int8_part(const Int8Rows& p, std::int64_t begin, std::int64_t end) {
  constexpr auto tiles = std::array{&int8_rows<1>, &int8_rows<2>, &int8_rows<3>, &int8_rows<4>};
  for_tiles(p.rows, std::ssize(tiles), begin, end,
            [&](std::int64_t row, std::int64_t rows, std::int64_t output, std::int64_t outputs, std::int64_t apart) {
              tiles[static_cast<std::size_t>(rows - 1)](p, row, output, outputs, apart);
            });
}

bool has_vnni() {
  static const bool has = onednn::may_use(dnnl::cpu_isa::avx512_core_vnni) && __builtin_cpu_supports("avx512vnni") != 0;
  return has;
}
#undef VITRAIL_VNNI
#endif

}  // namespace

bool fits_few_rows(const Tensor& a, const Tensor& weight, const Epilogue& epilogue, const Tensor& c) {
  const Tensor lying = weight.transpose(0, 1);
  return a.size(0) <= most_few_rows && (a.dtype() == weight.dtype() || a.dtype() == DType::f32) &&
         lying.is_contiguous() && static_cast<std::int64_t>(weight.bytes()) >= least_weight_bytes &&
         a.is_contiguous() && c.is_contiguous() && is_dense_row_major(epilogue.bias) &&
         is_dense_row_major(epilogue.residual) &&
         (!epilogue.residual.defined() || epilogue.residual.dtype() == c.dtype());
}

void matmul_few_rows(const Tensor& a, const Tensor& weight, const Epilogue& epilogue, const Tensor& c) {
  const Tensor x = a.dtype() == DType::f32 ? a : widened(a);
  const bool in_place = epilogue.residual.defined() && epilogue.residual.raw() == c.raw();
  const Tensor sums = c.dtype() == DType::f32 && !in_place ? c : Tensor::empty(c.shape());
  const FewRows<float, void, float> p{a.size(0),       a.size(1),    c.size(1),
                                      x.data<float>(), weight.raw(), sums.data<float>()};
  Profile::flops(2.0 * static_cast<double>(c.numel()) * static_cast<double>(p.depth));
  Profile::traffic(weight.numel(), weight.dtype(), 1);
  parallel_for(p.outputs, outputs_worth_a_thread(p.depth * static_cast<std::int64_t>(size_of(weight.dtype()))),
               [&](std::int64_t begin, std::int64_t end, int) {
                 HWY_DYNAMIC_DISPATCH(few_rows_part)(p, weight.dtype(), begin, end);
                 finish(sums, epilogue, c, begin, end);
               });
}

#if defined(__x86_64__)

bool fits_int8_few_rows(const Tensor& a, const Tensor& weight) {
  return has_vnni() && a.size(0) <= most_few_rows && weight.is_contiguous() && a.is_contiguous() &&
         static_cast<std::int64_t>(weight.bytes()) >= least_weight_bytes;
}

void int8_few_rows(const Tensor& a, const Tensor& weight, const Tensor& sums) {
  const Int8Rows p{a.size(0),
                   a.size(1),
                   weight.size(0),
                   a.data<std::int8_t>(),
                   weight.data<std::int8_t>(),
                   sums.data<std::int32_t>()};
  Profile::flops(2.0 * static_cast<double>(sums.numel()) * static_cast<double>(p.depth));
  Profile::traffic(weight.numel(), DType::i8, 1);
  parallel_for(p.outputs, outputs_worth_a_thread(p.depth),
               [&](std::int64_t begin, std::int64_t end, int) { int8_part(p, begin, end); });
}

#else

bool fits_int8_few_rows(const Tensor&, const Tensor&) { return false; }
void int8_few_rows(const Tensor&, const Tensor&, const Tensor&) {}

#endif

}  // namespace vitrail::kernels
#endif
