#include "vitrail/kernels/layout.h"

#include "vitrail/kernels/onednn.h"

namespace vitrail::kernels {

void copy_layout(const Tensor& from, const Tensor& to) {
  check(from.shape() == to.shape() && from.dtype() == to.dtype(), "copy_layout: {} {} is not {} {}", from.shape(),
        name_of(from.dtype()), to.shape(), name_of(to.dtype()));
  if (from.numel() == 0) {
    return;
  }
  if (!onednn::computes(from.dtype())) {
    return to.copy_from(from);
  }
  enum : std::int64_t { reorder = 10 };
  onednn::compiled(onednn::Key{reorder}.add(from).add(to), [&] {
    return dnnl::reorder::primitive_desc(onednn::engine(), onednn::describe(from), onednn::engine(),
                                         onednn::describe(to), onednn::attributes());
  })->run({{DNNL_ARG_FROM, onednn::view(from)}, {DNNL_ARG_TO, onednn::view(to)}});
}

Tensor row_major(const Tensor& x) {
  if (x.is_contiguous() || !is_floating(x.dtype())) {
    return x.contiguous();
  }
  Tensor result = Tensor::empty_like(x);
  copy_layout(x, result);
  return result;
}

Tensor empty_channels_last(const Shape& shape, DType dtype) {
  return Tensor::empty({shape[0], shape[2], shape[3], shape[1]}, dtype).permute({0, 3, 1, 2});
}

bool is_channels_last(const Tensor& x) { return x.rank() == 4 && !x.is_contiguous() && pixels(x).is_contiguous(); }

Tensor channels_last(const Tensor& x) {
  if (pixels(x).is_contiguous()) {
    return x.detach();
  }
  const Tensor result = empty_channels_last(x.shape(), x.dtype());
  copy_layout(x, result);
  return result;
}

}  // namespace vitrail::kernels
