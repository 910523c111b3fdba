#include "vitrail/ops/images/patches.h"

#include <cstring>
#include <utility>

#include "vitrail/autograd/tape.h"

namespace vitrail::ops {
namespace {

// How runs of p₁ pixels, the rows of patches, are laid out in images and in patches.
struct PatchLayout {
  Shape image;  // [B, C, H, W]
  std::array<std::int64_t, 2> patch;
  std::int64_t rows;
  std::int64_t columns;

  Shape patches() const { return {image[0], rows * columns, image[1] * patch[0] * patch[1]}; }
};

// Calls copy(offset in the images, offset in the patches) for each run; a thread takes whole rows of an image's
// patches.
template <class Copy>
void for_each_run(const PatchLayout& l, Copy copy) {
  const std::int64_t channels = l.image[1];
  const std::int64_t height = l.image[2];
  const std::int64_t width = l.image[3];
  const std::int64_t features = channels * l.patch[0] * l.patch[1];
  const std::int64_t bands = l.image[0] * l.rows;
#pragma omp parallel for schedule(static) if (bands * features * l.columns > 1 << 14)
  for (std::int64_t band = 0; band < bands; ++band) {
    const std::int64_t sample = band / l.rows;
    const std::int64_t first_row = band % l.rows * l.patch[0];
    for (std::int64_t column = 0; column < l.columns; ++column) {
      std::int64_t to = (band * l.columns + column) * features;
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        std::int64_t from = ((sample * channels + channel) * height + first_row) * width + column * l.patch[1];
        for (std::int64_t row = 0; row < l.patch[0]; ++row, from += width, to += l.patch[1]) {
          copy(from, to);
        }
      }
    }
  }
}

}  // namespace

Tensor extract_patches(const Tensor& x, const std::array<std::int64_t, 2>& patch) {
  check(x.rank() == 4, "patches are cut from images [B, C, H, W], not from {}", x.shape());
  const PatchLayout layout{x.shape(), patch, x.size(2) / patch[0], x.size(3) / patch[1]};
  check(layout.rows > 0 && layout.columns > 0, "an image of {}x{} holds no patch of {}x{}", x.size(2), x.size(3),
        patch[0], patch[1]);
  const Tensor images = x.contiguous();
  const Tensor y = Tensor::empty(layout.patches(), x.dtype());
  visit(x.dtype(), [&]<class T>(T) {
    const T* in = images.data<T>();
    T* out = y.data<T>();
    const std::size_t run = static_cast<std::size_t>(patch[1]) * sizeof(T);
    for_each_run(layout, [=](std::int64_t from, std::int64_t to) { std::memcpy(out + to, in + from, run); });
  });
  return autograd::record("extract_patches", y, {&x}, [layout, dx = autograd::Gradient(x)](const Tensor& dy) {
    const Tensor grad = Tensor::zeros(layout.image, dy.dtype());
    const Tensor dense = dy.contiguous();
    visit(dy.dtype(), [&]<class T>(T) {
      const T* in = dense.data<T>();
      T* out = grad.data<T>();
      const std::size_t run = static_cast<std::size_t>(layout.patch[1]) * sizeof(T);
      for_each_run(layout, [=](std::int64_t to, std::int64_t from) { std::memcpy(out + to, in + from, run); });
    });
    dx.add(grad);
  });
}

}  // namespace vitrail::ops
