// Differentiable rearrangements. Those that can be views are views.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

Tensor reshape(const Tensor& x, const Shape& shape);  // one size may be -1
Tensor permute(const Tensor& x, std::initializer_list<int> dims);
Tensor transpose(const Tensor& x, int dim0, int dim1);
Tensor expand(const Tensor& x, const Shape& shape);
Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length);
Tensor select(const Tensor& x, int dim, std::int64_t index);
Tensor unsqueeze(const Tensor& x, int dim);
Tensor squeeze(const Tensor& x, int dim);
Tensor contiguous(const Tensor& x);
Tensor concat(const std::vector<Tensor>& parts, int dim);
// Parts of the given lengths along `dim`; the lengths add up to its size.
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& lengths, int dim);
Tensor stack(const std::vector<Tensor>& parts, int dim);
// x with `before` and `after` elements of `value` added along `dim`.
Tensor pad(const Tensor& x, int dim, std::int64_t before, std::int64_t after, float value = 0);
Tensor flip(const Tensor& x, int dim);
// Cyclic shift along `dim`: element i goes to (i + shift) mod size (torch.roll).
Tensor roll(const Tensor& x, int dim, std::int64_t shift);

}  // namespace vitrail::ops
