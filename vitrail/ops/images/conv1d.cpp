#include "vitrail/ops/images/conv1d.h"

#include "vitrail/ops/images/conv.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::ops {

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& options) {
  check(x.rank() == 3 && weight.rank() == 3,
        "conv1d() needs a sequence [B, C, L] and a weight [O, C / groups, K], not {} and {}", x.shape(),
        weight.shape());
  return squeeze(conv2d(unsqueeze(x, 2), unsqueeze(weight, 2), bias,
                        {.stride = {1, options.stride},
                         .padding = {0, options.padding},
                         .dilation = {1, options.dilation},
                         .groups = options.groups}),
                 2);
}

}  // namespace vitrail::ops
