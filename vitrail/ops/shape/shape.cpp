#include "vitrail/ops/shape/shape.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gather.h"
#include "vitrail/ops/math/blocks.h"
#include "vitrail/ops/math/broadcast.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;
using autograd::record;

// A copy of x whose slice i along `dim` is slice source[i] of x.
Tensor reorder(const Tensor& x, int dim, std::span<const std::int64_t> source) {
  const Tensor dense = x.contiguous();
  const Blocks blocks(x, dim);
  Tensor result = Tensor::empty_like(dense);
  kernels::gather_slices(dense.raw(), blocks.outer, blocks.size,
                         static_cast<std::size_t>(blocks.inner) * size_of(x.dtype()), source, result.raw());
  return result;
}

Tensor reversed(const Tensor& x, int dim) {
  std::vector<std::int64_t> source(static_cast<std::size_t>(x.size(dim)));
  std::iota(source.rbegin(), source.rend(), 0);
  return reorder(x, dim, source);
}

Tensor shifted(const Tensor& x, int dim, std::int64_t shift) {
  const std::int64_t size = x.size(dim);
  std::vector<std::int64_t> source(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    source[static_cast<std::size_t>(i)] = (((i - shift) % size) + size) % size;
  }
  return reorder(x, dim, source);
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  return record("reshape", x.reshape(shape), {&x},
                [dx = Gradient(x)](const Tensor& dy) { dx.add(dy.reshape(dx.shape())); });
}

Tensor permute(const Tensor& x, std::initializer_list<int> dims) {
  Tensor result = x.permute(dims);
  std::vector<int> inverse(dims.size());
  int to = 0;
  for (const int from : dims) {
    inverse[static_cast<std::size_t>(x.shape().wrap(from))] = to++;
  }
  return record("permute", std::move(result), {&x},
                [dx = Gradient(x), inverse](const Tensor& dy) { dx.add(dy.permute(std::span<const int>(inverse))); });
}

Tensor transpose(const Tensor& x, int dim0, int dim1) {
  return record("transpose", x.transpose(dim0, dim1), {&x},
                [dx = Gradient(x), dim0, dim1](const Tensor& dy) { dx.add(dy.transpose(dim0, dim1)); });
}

Tensor expand(const Tensor& x, const Shape& shape) {
  return record("expand", x.expand(shape), {&x},
                [dx = Gradient(x)](const Tensor& dy) { dx.add(sum_to(dy, dx.shape())); });
}

Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length) {
  return record("narrow", x.narrow(dim, start, length), {&x},
                [dx = Gradient(x), dim, start](const Tensor& dy) { dx.add_part(dim, start, dy); });
}

Tensor select(const Tensor& x, int dim, std::int64_t index) {
  const int at = x.shape().wrap(dim);
  return record("select", x.select(at, index), {&x},
                [dx = Gradient(x), at, index](const Tensor& dy) { dx.add_part(at, index, dy.unsqueeze(at)); });
}

Tensor unsqueeze(const Tensor& x, int dim) {
  return record("unsqueeze", x.unsqueeze(dim), {&x},
                [dx = Gradient(x)](const Tensor& dy) { dx.add(dy.reshape(dx.shape())); });
}

Tensor squeeze(const Tensor& x, int dim) {
  return record("squeeze", x.squeeze(dim), {&x},
                [dx = Gradient(x)](const Tensor& dy) { dx.add(dy.reshape(dx.shape())); });
}

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) {
    return x;
  }
  return record("contiguous", x.clone(), {&x}, [dx = Gradient(x)](const Tensor& dy) { dx.add(dy); });
}

Tensor concat(const std::vector<Tensor>& parts, int dim) {
  check(!parts.empty(), "concat() needs at least one tensor");
  const Tensor& first = parts.front();
  const int at = first.shape().wrap(dim);
  std::int64_t total = 0;
  const Tensor* differentiable = &first;
  for (const Tensor& part : parts) {
    check(part.dtype() == first.dtype(), "concat() needs tensors of one dtype, not {} and {}", name_of(first.dtype()),
          name_of(part.dtype()));
    check(part.rank() == first.rank() && part.shape().with(at, 0) == first.shape().with(at, 0),
          "concat() along dimension {} cannot join {} and {}", at, first.shape(), part.shape());
    total += part.size(at);
    differentiable = autograd::requires_grad(part) ? &part : differentiable;
  }
  Tensor result = Tensor::empty(first.shape().with(at, total), first.dtype());
  std::vector<Gradient> gradients;
  std::int64_t start = 0;
  for (const Tensor& part : parts) {
    result.narrow(at, start, part.size(at)).copy_from(part);
    gradients.emplace_back(part);
    start += part.size(at);
  }
  return record("concat", std::move(result), {differentiable}, [gradients, at](const Tensor& dy) {
    std::int64_t from = 0;
    for (const Gradient& gradient : gradients) {
      const std::int64_t length = gradient.shape()[at];
      if (gradient.wanted()) {
        gradient.add(dy.narrow(at, from, length));
      }
      from += length;
    }
  });
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& lengths, int dim) {
  const int at = x.shape().wrap(dim);
  const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  check(total == x.size(at), "split() of dimension {} of {} needs lengths that add up to {}, not {}", at, x.shape(),
        x.size(at), total);
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t length : lengths) {
    parts.push_back(x.narrow(at, start, length));
    start += length;
  }
  const auto whole = std::make_shared<Tensor>();  // the gradient of x, as soon as that of a part is written into it
  std::vector<Tensor> result =
      record("split", std::move(parts), {&x}, [dx = Gradient(x), lengths, at, whole](const std::vector<Tensor>& dys) {
        const auto some = std::ranges::find_if(dys, [](const Tensor& dy) { return dy.defined(); });
        Tensor joined = whole->defined() ? std::exchange(*whole, {}) : Tensor::empty(dx.shape(), some->dtype());
        std::int64_t from = 0;
        for (std::size_t i = 0; i < dys.size(); ++i) {
          const Tensor part = joined.narrow(at, from, lengths[i]);
          if (!dys[i].defined()) {
            part.fill(0);
          } else if (dys[i].raw() != part.raw()) {
            part.copy_from(dys[i]);
          }
          from += lengths[i];
        }
        dx.add(std::move(joined));
      });
  start = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (autograd::requires_grad(result[i])) {
      result[i].slot()->room = [whole, shape = x.shape(), at, start, length = lengths[i]](DType dtype) {
        if (!whole->defined()) {
          *whole = Tensor::empty(shape, dtype);
        }
        return whole->narrow(at, start, length);
      };
    }
    start += lengths[i];
  }
  return result;
}

Tensor stack(const std::vector<Tensor>& parts, int dim) {
  std::vector<Tensor> raised;
  raised.reserve(parts.size());
  for (const Tensor& part : parts) {
    raised.push_back(unsqueeze(part, dim));
  }
  check(!parts.empty(), "stack() needs at least one tensor");
  return concat(raised, dim);
}

Tensor pad(const Tensor& x, int dim, std::int64_t before, std::int64_t after, float value) {
  check(before >= 0 && after >= 0, "pad() cannot add {} and {} elements", before, after);
  const std::int64_t size = x.size(dim);
  Tensor result = Tensor::empty(x.shape().with(dim, before + size + after), x.dtype());
  result.narrow(dim, 0, before).fill(value);
  result.narrow(dim, before, size).copy_from(x);
  result.narrow(dim, before + size, after).fill(value);
  return record("pad", std::move(result), {&x},
                [dx = Gradient(x), dim, before, size](const Tensor& dy) { dx.add(dy.narrow(dim, before, size)); });
}

Tensor flip(const Tensor& x, int dim) {
  return record("flip", reversed(x, dim), {&x},
                [dx = Gradient(x), dim](const Tensor& dy) { dx.add(reversed(dy, dim)); });
}

Tensor roll(const Tensor& x, int dim, std::int64_t shift) {
  return record("roll", shifted(x, dim, shift), {&x},
                [dx = Gradient(x), dim, shift](const Tensor& dy) { dx.add(shifted(dy, dim, -shift)); });
}

}  // namespace vitrail::ops
