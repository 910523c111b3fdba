#include "vitrail/train/finite.h"

#include <algorithm>
#include <cmath>

#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

constexpr const char* diverged =
    "the model gives NaN where numbers were expected: its weights are not finite, or far too large, as after a "
    "training "
    "whose learning rate was too high";

}  // namespace

void check_finite(const Tensor& outputs) {
  const Tensor rows = outputs.contiguous();
  check(std::ranges::all_of(rows.span<float>(), [](float value) { return std::isfinite(value); }), diverged);
}

void check_finite(double loss) { check(!std::isnan(loss), diverged); }

}  // namespace vitrail::train
