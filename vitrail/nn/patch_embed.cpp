#include "vitrail/nn/patch_embed.h"

#include "vitrail/ops/linear.h"
#include "vitrail/ops/shape.h"

namespace vitrail::nn {

Tensor extract_patches(const Tensor& x, const Size2& patch) {
  check(x.rank() == 4, "patches are cut from pictures [B, C, H, W], not from {}", x.shape());
  const std::int64_t rows = x.size(2) / patch[0];
  const std::int64_t columns = x.size(3) / patch[1];
  check(rows > 0 && columns > 0, "a picture of {}x{} holds no patch of {}x{}", x.size(2), x.size(3), patch[0],
        patch[1]);
  Tensor whole = x;
  if (rows * patch[0] != x.size(2)) {
    whole = ops::narrow(whole, 2, 0, rows * patch[0]);
  }
  if (columns * patch[1] != x.size(3)) {
    whole = ops::narrow(whole, 3, 0, columns * patch[1]);
  }
  const Tensor tiles = ops::reshape(whole, {x.size(0), x.size(1), rows, patch[0], columns, patch[1]});
  return ops::reshape(ops::permute(tiles, {0, 2, 4, 1, 3, 5}),
                      {x.size(0), rows * columns, x.size(1) * patch[0] * patch[1]});
}

PatchEmbed::PatchEmbed(const Scope& scope, const Size2& size, std::int64_t channels, std::int64_t dim, bool bias)
    : patch(size), proj(scope / "proj", channels, dim, size, {.stride = size}, bias) {}

Tensor PatchEmbed::operator()(const Tensor& x) const {
  check(x.rank() == 4 && x.size(1) == proj.weight.size(1), "the model takes pictures [B, {}, H, W], not {}",
        proj.weight.size(1), x.shape());
  const std::int64_t dim = proj.weight.size(0);
  return ops::linear(extract_patches(x, patch), ops::reshape(proj.weight, {dim, proj.weight.numel() / dim}), proj.bias);
}

Tensor PatchEmbed::by_convolution(const Tensor& x) const {
  const Tensor y = proj(x);  // [B, D, rows, columns]
  return ops::transpose(ops::reshape(y, {y.size(0), y.size(1), y.size(2) * y.size(3)}), 1, 2);
}

}  // namespace vitrail::nn
