#include "vitrail/kernels/strided.h"

#include <algorithm>

#include "vitrail/tensor/error.h"

namespace vitrail::kernels {

Loops::Loops(const Shape& full, std::span<const Shape> full_strides) {
  check(full_strides.size() <= max_operands, "a loop nest takes {} operands at most", max_operands);
  const auto joins = [&](int outer, int inner) {
    return std::ranges::all_of(
        full_strides, [&](const Shape& s) { return s.begin()[outer] == s.begin()[inner] * full.begin()[inner]; });
  };
  // From the innermost dimension outwards; `Shape` grows at its front.
  int before = -1;  // the dimension of `full` that was taken last
  for (int d = full.rank() - 1; d >= 0; --d) {
    if (full[d] == 1) {
      continue;
    }
    if (before >= 0 && joins(d, before)) {
      shape[0] *= full[d];
    } else {
      shape = shape.inserted(0, full[d]);
      for (std::size_t k = 0; k < full_strides.size(); ++k) {
        strides[k] = strides[k].inserted(0, full_strides[k][d]);
      }
    }
    before = d;
  }
  if (shape.rank() == 0) {
    shape = {1};
    strides.fill({1});
  }
}

}  // namespace vitrail::kernels
