/// \file
/// Images cut into patches.
#pragma once

#include <array>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// The patches of x [B, C, H, W], each flattened in the order channel, row, column: [B, rows · columns, C p₀ p₁] with
/// rows = ⌊H / p₀⌋ and columns = ⌊W / p₁⌋. Pixels beyond the last whole patch are left out. Error if there is none.
Tensor extract_patches(const Tensor& x, const std::array<std::int64_t, 2>& patch);

}  // namespace vitrail::ops
