#include "vitrail/kernels/layout.h"

#include <algorithm>
#include <numeric>

#include "vitrail/kernels/cpu/onednn.h"

namespace vitrail::kernels {

Order order_of(const Tensor& x) {
  if (x.is_contiguous()) {
    return {};
  }
  Order order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return x.stride(a) > x.stride(b); });
  return along(order, x).is_contiguous() ? order : Order{};
}

Tensor empty_in(const Order& order, const Shape& shape, DType dtype) {
  if (order.empty()) {
    return Tensor::empty(shape, dtype);
  }
  Shape in_memory = shape;
  Order back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    in_memory[static_cast<int>(i)] = shape[order[i]];
    back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  return Tensor::empty(in_memory, dtype).permute(std::span<const int>(back));
}

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

Tensor channels_last(const Tensor& x) {
  if (pixels(x).is_contiguous()) {
    return x.detach();
  }
  const Tensor result = empty_channels_last(x.shape(), x.dtype());
  copy_layout(x, result);
  return result;
}

}  // namespace vitrail::kernels
