/// \file
/// Differentiable rearrangements of elements. Those that can be views are views.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// The functions below take tensors of any dtype. A dimension may be counted from the end (-1 is the last); one that
// does not exist is an Error, as is every shape, index or length that does not fit, and the message names both sides. A
// result that is called a view shares the elements of x.

/// The elements of x in another shape; one size may be -1 and follows from the others. A view where the strides allow
/// it, else a copy.
Tensor reshape(const Tensor& x, const Shape& shape);
Tensor permute(const Tensor& x, std::initializer_list<int> dims);  ///< view; dimension i of the result is dims[i] of x
Tensor transpose(const Tensor& x, int dim0, int dim1);             ///< view; the two dimensions are exchanged
Tensor expand(const Tensor& x, const Shape& shape);  ///< view; dimensions of size 1 (or new in front) are repeated

/// View of the elements [start, start + length) along `dim`.
Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length);
Tensor select(const Tensor& x, int dim, std::int64_t index);  ///< view of the slice at `index`, without `dim`
Tensor unsqueeze(const Tensor& x, int dim);                   ///< view with a dimension of size 1 before `dim`
Tensor squeeze(const Tensor& x, int dim);                     ///< view without `dim`, whose size is 1
Tensor contiguous(const Tensor& x);                           ///< x itself if it is dense in row-major order, else a
                                                              ///< copy

/// The tensors joined along `dim`, a copy. Their dtypes, and their shapes in all other dimensions, agree.
Tensor concat(const std::vector<Tensor>& parts, int dim);
/// Views of x of the given lengths along `dim`; the lengths add up to its size.
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& lengths, int dim);
Tensor stack(const std::vector<Tensor>& parts, int dim);  ///< tensors of one shape along a new dimension `dim`; a copy

/// x with `before` and `after` elements of `value` added along `dim`; a copy.
Tensor pad(const Tensor& x, int dim, std::int64_t before, std::int64_t after, float value = 0);
Tensor flip(const Tensor& x, int dim);  ///< x in reverse order along `dim`; a copy

/// x shifted cyclically along `dim`: element i goes to (i + shift) mod size (torch.roll); a copy.
Tensor roll(const Tensor& x, int dim, std::int64_t shift);

}  // namespace vitrail::ops
