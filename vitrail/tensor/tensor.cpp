#include "vitrail/tensor/tensor.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "vitrail/tensor/strided.h"

namespace vitrail {

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  std::int64_t bytes = 8;  // per element of the widest dtype
  for (const std::int64_t size : shape) {
    const bool possible = size >= 0 && !__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes);
    check(possible, "a tensor cannot have the shape {}", shape);
  }
  Tensor result;
  result.shape_ = shape;
  result.strides_ = shape.contiguous_strides();
  result.dtype_ = dtype;
  result.storage_ = std::make_shared<Storage>(result.bytes());
  return result;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor result = empty(shape, dtype);
  if (result.numel() > 0) {
    std::memset(result.raw(), 0, result.bytes());
  }
  return result;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor result = empty(shape, dtype);
  result.fill(value);
  return result;
}

Tensor Tensor::borrow(const void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner) {
  Tensor result;
  result.shape_ = shape;
  result.strides_ = shape.contiguous_strides();
  result.dtype_ = dtype;
  result.storage_ = std::make_shared<Storage>(data, result.bytes(), std::move(owner));
  return result;
}

bool Tensor::is_contiguous() const {
  std::int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != step) {
      return numel() == 0;
    }
    step *= shape_[i];
  }
  return true;
}

void Tensor::fail_undefined(const char* call) {
  fail("{}() needs a tensor with elements, but this one is undefined", call);
}

std::vector<float> Tensor::values() const {
  storage_of("values");
  const Tensor dense = contiguous();
  return visit(dtype_, [&]<class T>(T) {
    std::vector<float> result;
    result.reserve(static_cast<std::size_t>(numel()));
    for (const T value : dense.span<T>()) {
      result.push_back(static_cast<float>(value));
    }
    return result;
  });
}

float Tensor::item() const {
  storage_of("item");
  check(numel() == 1, "item() needs a tensor with one element, not {}", shape_);
  return values().front();
}

Tensor Tensor::view(const Shape& shape, const Shape& strides, std::int64_t offset) const {
  Tensor result = *this;
  result.shape_ = shape;
  result.strides_ = strides;
  result.offset_ = offset;
  result.slot_ = nullptr;
  return result;
}

Tensor Tensor::detach() const { return view(shape_, strides_, offset_); }

Tensor Tensor::reshape(const Shape& wanted) const {
  storage_of("reshape");
  Shape shape = wanted;
  int free_dim = -1;
  std::int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      check(free_dim < 0, "only one size of {} may be -1", wanted);
      free_dim = i;
    } else {
      check(shape[i] >= 0, "the shape {} cannot become {}", shape_, wanted);
      known *= shape[i];
    }
  }
  if (free_dim >= 0) {
    check(known > 0 && numel() % known == 0, "the shape {} cannot become {}", shape_, wanted);
    shape[free_dim] = numel() / known;
  }
  check(shape.numel() == numel(), "the shape {} cannot become {}", shape_, wanted);
  if (!is_contiguous()) {
    // A non-contiguous tensor has a view of the new shape if each new dimension lies inside one run of old dimensions
    // that are contiguous with each other. The strides are found dimension by dimension, from the last.
    Shape strides = shape;
    int old_dim = rank() - 1;
    int new_dim = shape.rank() - 1;
    bool possible = numel() > 0;
    while (possible && old_dim >= 0) {
      std::int64_t run = shape_[old_dim];
      const std::int64_t base = strides_[old_dim];
      while (old_dim > 0 && (shape_[old_dim - 1] == 1 || strides_[old_dim - 1] == run * base)) {
        run *= shape_[--old_dim];
      }
      --old_dim;
      std::int64_t step = base;
      std::int64_t covered = 1;
      while (new_dim >= 0 && (covered < run || shape[new_dim] == 1)) {
        covered *= shape[new_dim];
        strides[new_dim] = step;
        step *= shape[new_dim--];
      }
      possible = covered == run;
    }
    return possible && new_dim < 0 ? view(shape, strides, offset_) : contiguous().reshape(shape);
  }
  return view(shape, shape.contiguous_strides(), offset_);
}

Tensor Tensor::transpose(int dim0, int dim1) const {
  storage_of("transpose");
  Shape shape = shape_;
  Shape strides = strides_;
  std::swap(shape[dim0], shape[dim1]);
  std::swap(strides[dim0], strides[dim1]);
  return view(shape, strides, offset_);
}

Tensor Tensor::permute(std::span<const int> dims) const {
  storage_of("permute");
  check(static_cast<int>(dims.size()) == rank(), "permute() of the shape {} needs {} dimensions, not {}", shape_,
        rank(), dims.size());
  Shape shape = shape_;
  Shape strides = strides_;
  unsigned seen = 0;
  for (int i = 0; i < rank(); ++i) {
    const int from = shape_.wrap(dims[static_cast<std::size_t>(i)]);
    check((seen & (1U << from)) == 0, "permute() names dimension {} twice", from);
    seen |= 1U << from;
    shape[i] = shape_[from];
    strides[i] = strides_[from];
  }
  return view(shape, strides, offset_);
}

Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const {
  storage_of("narrow");
  check(start >= 0 && length >= 0 && start + length <= size(dim), "[{}, {}) does not lie inside dimension {} of {}",
        start, start + length, dim, shape_);
  return view(shape_.with(dim, length), strides_, offset_ + start * stride(dim));
}

Tensor Tensor::select(int dim, std::int64_t index) const {
  storage_of("select");
  const Tensor one = narrow(dim, index, 1);
  return one.squeeze(dim);
}

Tensor Tensor::expand(const Shape& shape) const {
  storage_of("expand");
  check(shape.rank() >= rank() && broadcast(shape_, shape) == shape, "the shape {} cannot be expanded to {}", shape_,
        shape);
  Shape strides = shape;
  for (int i = 1; i <= shape.rank(); ++i) {
    strides[-i] = i <= rank() && shape_[-i] == shape[-i] ? strides_[-i] : 0;
  }
  return view(shape, strides, offset_);
}

Tensor Tensor::unsqueeze(int dim) const {
  storage_of("unsqueeze");
  return view(shape_.inserted(dim, 1), strides_.inserted(dim, 1), offset_);
}

Tensor Tensor::squeeze(int dim) const {
  storage_of("squeeze");
  check(size(dim) == 1, "dimension {} of {} has not the size 1", dim, shape_);
  return view(shape_.removed(dim), strides_.removed(dim), offset_);
}

Tensor Tensor::contiguous() const {
  storage_of("contiguous");
  return is_contiguous() ? *this : clone();
}

Tensor Tensor::clone() const {
  storage_of("clone");
  Tensor result = empty(shape_, dtype_);
  copy_strided(result.raw(), result.strides_, raw(), strides_, shape_, dtype_);
  return result;
}

void Tensor::copy_from(const Tensor& source) const {
  storage_of("copy_from");
  check(source.dtype() == dtype_, "cannot copy {} into {}: cast it first", name_of(source.dtype()), name_of(dtype_));
  const Tensor wide = source.expand(shape_);
  copy_strided(raw(), strides_, wide.raw(), wide.strides_, shape_, dtype_);
}

void Tensor::fill(double value) const {
  storage_of("fill");
  visit(dtype_, [&]<class T>(T) {
    if (is_contiguous()) {
      if constexpr (std::is_same_v<T, bf16>) {
        std::ranges::fill(span<T>(), bf16(static_cast<float>(value)));
      } else {
        std::ranges::fill(span<T>(), static_cast<T>(value));
      }
    } else {
      copy_from(full({}, value, dtype_));
    }
  });
}

}  // namespace vitrail
