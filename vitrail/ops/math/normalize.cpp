#include "vitrail/ops/math/normalize.h"

#include <limits>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::ops {

Tensor normalize(const Tensor& x, float eps) {
  const Tensor squares = sum(multiply(x, x), {-1}, true);
  return multiply(x, rsqrt(clamp(squares, eps * eps, std::numeric_limits<float>::max())));
}

}  // namespace vitrail::ops
