#include "vitrail/kernels/batch_norm.h"

#include <bit>

#include "vitrail/kernels/layout.h"
#include "vitrail/kernels/onednn.h"
#include "vitrail/kernels/widen.h"

namespace vitrail::kernels {
namespace {

using Forward = dnnl::batch_normalization_forward;
using Backward = dnnl::batch_normalization_backward;

enum Kind : std::int64_t { forward = 30, gradient };

onednn::Key key_of(Kind kind, const Tensor& x, bool training, float eps) {
  return onednn::Key{kind, training, std::bit_cast<std::int32_t>(eps)}.add(x);
}

dnnl::normalization_flags flags_of(bool training) {
  using Flags = dnnl::normalization_flags;
  return training ? Flags::use_scale_shift : Flags::use_scale_shift | Flags::use_global_stats;
}

Forward::primitive_desc forward_desc(const Tensor& x, bool training, float eps) {
  return {{dnnl::prop_kind::forward_training, onednn::describe(x), eps, flags_of(training)},
          onednn::attributes(),
          onednn::engine()};
}

}  // namespace

void batch_norm(const Tensor& x, const Tensor& scale_shift, const Tensor& mean, const Tensor& variance, bool training,
                float eps, const Tensor& y) {
  if (!onednn::computes(x.dtype())) {
    const Tensor wide = empty_channels_last(y.shape(), DType::f32);
    batch_norm(widened(x), scale_shift, mean, variance, training, eps, wide);
    return narrow_into(wide, y);
  }
  onednn::compiled(key_of(forward, x, training, eps), [&] { return forward_desc(x, training, eps); })
      ->run({{DNNL_ARG_SRC, onednn::view(x)},
             {DNNL_ARG_SCALE_SHIFT, onednn::view(scale_shift)},
             {DNNL_ARG_MEAN, onednn::view(mean)},
             {DNNL_ARG_VARIANCE, onednn::view(variance)},
             {DNNL_ARG_DST, onednn::view(y)}});
}

void batch_norm_gradient(const Tensor& x, const Tensor& scale_shift, const Tensor& mean, const Tensor& variance,
                         bool training, float eps, const Tensor& dy, const Tensor& dx, const Tensor& dscale_shift) {
  if (!onednn::computes(x.dtype())) {
    const Tensor wide = empty_channels_last(dx.shape(), DType::f32);
    batch_norm_gradient(widened(x), scale_shift, mean, variance, training, eps, widened(dy), wide, dscale_shift);
    return narrow_into(wide, dx);
  }
  onednn::compiled(key_of(gradient, x, training, eps),
                   [&] {
                     const auto hint = forward_desc(x, training, eps);
                     return Backward::primitive_desc({dnnl::prop_kind::backward, onednn::describe(dy),
                                                      onednn::describe(x), eps, flags_of(training)},
                                                     onednn::attributes(), onednn::engine(), hint);
                   })
      ->run({{DNNL_ARG_SRC, onednn::view(x)},
             {DNNL_ARG_SCALE_SHIFT, onednn::view(scale_shift)},
             {DNNL_ARG_MEAN, onednn::view(mean)},
             {DNNL_ARG_VARIANCE, onednn::view(variance)},
             {DNNL_ARG_DIFF_DST, onednn::view(dy)},
             {DNNL_ARG_DIFF_SRC, onednn::view(dx)},
             {DNNL_ARG_DIFF_SCALE_SHIFT, onednn::view(dscale_shift)}});
}

}  // namespace vitrail::kernels
