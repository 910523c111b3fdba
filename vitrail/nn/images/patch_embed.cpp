#include "vitrail/nn/images/patch_embed.h"

#include "vitrail/ops/images/patches.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {

PatchEmbed::PatchEmbed(const Scope& scope, const Size2& size, std::int64_t channels, std::int64_t dim, bool bias)
    : patch(size), proj(scope / "proj", channels, dim, size, {.stride = size}, bias) {}

Tensor PatchEmbed::operator()(const Tensor& x) const {
  check(x.rank() == 4 && x.size(1) == proj.weight.size(1), "the model takes images [B, {}, H, W], not {}",
        proj.weight.size(1), x.shape());
  return embed(ops::extract_patches(x, patch));
}

Tensor PatchEmbed::embed(const Tensor& patches) const {
  const std::int64_t dim = proj.weight.size(0);
  return ops::linear(patches, ops::reshape(proj.weight, {dim, proj.weight.numel() / dim}), proj.bias);
}

Tensor PatchEmbed::by_convolution(const Tensor& x) const {
  const Tensor y = proj(x);  // [B, D, rows, columns]
  return ops::transpose(ops::reshape(y, {y.size(0), y.size(1), y.size(2) * y.size(3)}), 1, 2);
}

}  // namespace vitrail::nn
