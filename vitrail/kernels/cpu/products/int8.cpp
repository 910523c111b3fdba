#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/products/int8.cpp"
#include "vitrail/kernels/int8.h"

#include <algorithm>
#include <array>
#include <limits>

#include "vitrail/kernels/cpu/onednn.h"
#include "vitrail/kernels/cpu/products/int8_pairs.h"
#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

using I32 = hn::RebindToSigned<F32>;

HWY_INLINE void store_int8(F32 d, V<F32> v, std::int8_t* q, Whole = {}) {
  const auto limit = hn::Set(d, 127.0F);
  const auto inside = hn::Max(hn::Neg(limit), hn::Min(limit, v));
  const hn::Rebind<std::int8_t, F32> d8;
  hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(inside)), d8, q);
}

HWY_INLINE void store_int8(F32 d, V<F32> v, std::int8_t* q, std::int64_t count) {
  HWY_ALIGN std::int8_t lanes[hn::MaxLanes(d)];
  store_int8(d, v, lanes);
  for (std::int64_t i = 0; i < count; ++i) {
    q[i] = lanes[i];
  }
}

HWY_INLINE V<F32> load_sums(F32 d, const std::int32_t* sums, Whole = {}) {
  return hn::ConvertTo(d, hn::LoadU(I32(), sums));
}

HWY_INLINE V<F32> load_sums(F32 d, const std::int32_t* sums, std::int64_t count) {
  HWY_ALIGN std::int32_t lanes[hn::MaxLanes(d)] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    lanes[i] = sums[i];
  }
  return load_sums(d, lanes);
}

template <class T>
void quantize_row_typed(const T* x, const float* fixed, std::int8_t* q, float& scale, std::int64_t width) {
  const F32 d;
  auto largest = hn::Zero(d);
  auto odd = hn::Zero(d);  // NaN as soon as an element is not finite
  for_lanes(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto v = load(d, x + i, part);
    largest = hn::Max(largest, hn::Abs(v));
    odd = hn::Add(odd, hn::Sub(v, v));
  });
  const float check = sum_of(d, odd);
  scale = fixed != nullptr ? *fixed : max_of(d, largest) / 127.0F;
  if (check != 0) {  // it is NaN, and so shall the results of the row be
    scale = check;
    std::fill_n(q, width, std::int8_t{0});
    return;
  }
  scale = scale >= std::numeric_limits<float>::min() ? scale : 1.0F;
  const auto factor = hn::Set(d, 1.0F / scale);
  for_lanes(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    store_int8(d, hn::Mul(load(d, x + i, part), factor), q + i, part);
  });
}

void quantize_row(const void* x, DType dtype, const float* fixed, std::int8_t* q, float& scale, std::int64_t width) {
  visit_floating(dtype,
                 [&]<class T>(T) HWY_ATTR { quantize_row_typed(static_cast<const T*>(x), fixed, q, scale, width); });
}

template <class T>
void finish_row_typed(const std::int32_t* sums, float scale, const float* scales, const float* bias, const T* residual,
                      T* y, std::int64_t width) {
  const F32 d;
  const auto row = hn::Set(d, scale);
  for_lanes(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    auto v = hn::Mul(hn::Mul(load_sums(d, sums + i, part), row), load(d, scales + i, part));
    if (bias != nullptr) {
      v = hn::Add(v, load(d, bias + i, part));
    }
    if (residual != nullptr) {
      v = hn::Add(v, load(d, residual + i, part));
    }
    store(v, d, y + i, part);
  });
}

void finish_row(const std::int32_t* sums, float scale, const float* scales, const float* bias, const void* residual,
                void* y, std::int64_t width, DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    finish_row_typed(sums, scale, scales, bias, static_cast<const T*>(residual), static_cast<T*>(y), width);
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/activation.h"
#include "vitrail/kernels/elementwise.h"
#include "vitrail/kernels/few_rows.h"

namespace vitrail::kernels {
namespace {
HWY_EXPORT(quantize_row);
HWY_EXPORT(finish_row);

enum Kind : std::int64_t { int8_product = 40 };

std::byte* row_of(const Tensor& x, std::int64_t row) {
  return static_cast<std::byte*>(x.raw()) + static_cast<std::size_t>(row * x.size(1)) * size_of(x.dtype());
}

}  // namespace

void int8_sums(const Tensor& a, const Tensor& weight, const Tensor& sums) {
  if (fits_int8_few_rows(a, weight)) {
    return int8_few_rows(a, weight, sums);
  }
  if (!onednn::computes(DType::i8)) {
    return int8_sums_in_pairs(a, weight, sums);
  }
  const Tensor columns = weight.transpose(0, 1);
  const bool lies = onednn::multiplies_as_it_lies(columns);
  const auto primitive = onednn::compiled(onednn::Key{int8_product, lies}.add(a).add(columns.shape()), [&] {
    return onednn::forward_desc<dnnl::matmul>(
        onednn::attributes(), onednn::describe(a),
        lies ? onednn::describe(columns) : onednn::any_layout(columns.shape(), DType::i8), onednn::describe(sums));
  });
  const onednn::Packed packed =
      lies ? onednn::Packed{columns, onednn::view(columns)} : onednn::packed(columns, primitive->weights);
  Profile::flops(2.0 * static_cast<double>(sums.numel()) * static_cast<double>(a.size(1)));
  primitive->run(
      {{DNNL_ARG_SRC, onednn::view(a)}, {DNNL_ARG_WEIGHTS, packed.memory}, {DNNL_ARG_DST, onednn::view(sums)}});
}

void quantize_rows(const Tensor& x, const Tensor& fixed, const Tensor& q, const Tensor& scales) {
  const std::int64_t width = x.size(1);
  const float* scale = fixed.defined() ? fixed.data<float>() : nullptr;
  Profile::traffic(x.numel(), x.dtype(), 1);
  Profile::traffic(x.numel(), DType::i8, 1);
  parallel_for(x.size(0), rows_worth_a_thread(width), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      HWY_DYNAMIC_DISPATCH(quantize_row)
      (row_of(x, row), x.dtype(), scale, q.data<std::int8_t>() + row * width, scales.data<float>()[row], width);
    }
  });
}

void matmul_int8(const Tensor& a, const Tensor& a_scales, const Tensor& weight, const Tensor& weight_scales,
                 const Epilogue& epilogue, const Tensor& c) {
  if (c.numel() == 0) {
    return;
  }
  const std::int64_t width = c.size(1);
  const Tensor sums = Tensor::empty(c.shape(), DType::i32);
  int8_sums(a, weight, sums);
  // Row by row, so that each step of the epilogue finds the row in the cache.
  const bool plain = epilogue.activation == Activation::identity;
  const bool adds = epilogue.residual.defined();
  const float* bias = epilogue.bias.defined() ? epilogue.bias.data<float>() : nullptr;
  Profile::traffic(c.numel(), DType::i32, 1);
  Profile::traffic(c.numel(), c.dtype(), adds ? 2 : 1);
  parallel_for(c.size(0), rows_worth_a_thread(width), [&](std::int64_t begin, std::int64_t end, int) {
    const Profile::Pause pause;  // the traffic of the kernels below has been counted above
    for (std::int64_t row = begin; row < end; ++row) {
      std::byte* y = row_of(c, row);
      const std::byte* residual = adds ? row_of(epilogue.residual, row) : nullptr;
      HWY_DYNAMIC_DISPATCH(finish_row)
      (sums.data<std::int32_t>() + row * width, a_scales.data<float>()[row], weight_scales.data<float>(), bias,
       plain ? residual : nullptr, y, width, c.dtype());
      if (!plain) {
        activation_forward(epilogue.activation, y, y, width, c.dtype());
        if (adds) {
          const std::array operands = {Operand{y, {1}}, Operand{residual, {1}}};
          elementwise(Elementwise::add, operands, y, {width}, c.dtype());
        }
      }
      if (epilogue.last != Activation::identity) {
        activation_forward(epilogue.last, y, y, width, c.dtype());
      }
    }
  });
}

}  // namespace vitrail::kernels
#endif
