#include "vitrail/ops/images/conv3d.h"

#include "vitrail/ops/images/conv.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::ops {
namespace {

void check_video(const char* op, const Tensor& x) {
  check(is_floating(x.dtype()), "{}: x must be f32 or bf16, not {}", op, name_of(x.dtype()));
  check(x.rank() == 5, "{}: x must be [B, C, T, H, W], not {}", op, x.shape());
}

// The frames of x [B, C, T, H, W] as images [B T, C, H, W].
Tensor images_of(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3, 4}), {x.size(0) * x.size(2), x.size(1), x.size(3), x.size(4)});
}

// The inverse of images_of(), for videos of `frames` frames.
Tensor video_of(const Tensor& x, std::int64_t frames) {
  return permute(reshape(x, {x.size(0) / frames, frames, x.size(1), x.size(2), x.size(3)}), {0, 2, 1, 3, 4});
}

// The `kernel` frames that each frame of the result reads, as channels: [B, C, T, H, W] → [B T', C kT, H, W].
Tensor frames_under_kernel(const Tensor& x, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const Tensor padded = padding == 0 ? x : pad(x, 2, padding, padding);
  check(kernel <= padded.size(2), "conv3d: the kernel reaches over {} frames, but x {} with padding {} has only {}",
        kernel, x.shape(), padding, padded.size(2));
  const std::int64_t frames = (padded.size(2) - kernel) / stride + 1;
  const Tensor seen = Tensor::empty({frames * kernel}, DType::i64);
  for (std::int64_t i = 0; i < frames * kernel; ++i) {
    seen.data<std::int64_t>()[i] = i / kernel * stride + i % kernel;
  }
  const Tensor chosen =
      reshape(index_select(padded, 2, seen), {x.size(0), x.size(1), frames, kernel, x.size(3), x.size(4)});
  return reshape(permute(chosen, {0, 2, 1, 3, 4, 5}), {x.size(0) * frames, x.size(1) * kernel, x.size(3), x.size(4)});
}

// Windows are boxes, so the frames can be pooled one by one and then across frames; the first of equal elements in the
// order frame, row, column stays the first.
template <class Pool2d>
Tensor pool(const char* op, const Tensor& x, const Pool3dOptions& o, Pool2d&& pool2d) {
  check_video(op, x);
  const Tensor frames = video_of(pool2d(images_of(x), PoolOptions{.kernel = {o.kernel[1], o.kernel[2]},
                                                                  .stride = {o.stride[1], o.stride[2]},
                                                                  .padding = {o.padding[1], o.padding[2]}}),
                                 x.size(2));
  if (o.kernel[0] == 1 && o.stride[0] == 1 && o.padding[0] == 0) {
    return frames;
  }
  const std::int64_t rows = frames.size(3);
  const std::int64_t columns = frames.size(4);
  const Tensor y =
      pool2d(reshape(frames, {x.size(0), x.size(1), x.size(2), rows * columns}),
             PoolOptions{.kernel = {o.kernel[0], 1}, .stride = {o.stride[0], 1}, .padding = {o.padding[0], 0}});
  return reshape(y, {x.size(0), x.size(1), y.size(2), rows, columns});
}

}  // namespace

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv3dOptions& o) {
  check_video("conv3d", x);
  check(weight.rank() == 5 && weight.numel() > 0, "conv3d: the weight must be [O, C / groups, kT, kH, kW], not {}",
        weight.shape());
  check(o.stride[0] > 0 && o.padding[0] >= 0, "conv3d: stride must be positive and padding not negative, not {} and {}",
        o.stride[0], o.padding[0]);
  check(x.size(1) == weight.size(1) * o.groups, "conv3d: x {} has {} channels, but the weight {} in {} groups takes {}",
        x.shape(), x.size(1), weight.shape(), o.groups, weight.size(1) * o.groups);
  const Tensor images = frames_under_kernel(x, weight.size(2), o.stride[0], o.padding[0]);
  const Tensor flat =
      reshape(weight, {weight.size(0), weight.size(1) * weight.size(2), weight.size(3), weight.size(4)});
  const Tensor y =
      conv2d(images, flat, bias,
             {.stride = {o.stride[1], o.stride[2]}, .padding = {o.padding[1], o.padding[2]}, .groups = o.groups});
  const std::int64_t frames =
      x.size(0) == 0 ? (x.size(2) + 2 * o.padding[0] - weight.size(2)) / o.stride[0] + 1 : y.size(0) / x.size(0);
  return video_of(y, frames);
}

Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options) {
  return pool("max_pool3d", x, options,
              [](const Tensor& images, const PoolOptions& o) { return max_pool2d(images, o); });
}

Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options) {
  return pool("avg_pool3d", x, options,
              [](const Tensor& images, const PoolOptions& o) { return avg_pool2d(images, o); });
}

}  // namespace vitrail::ops
