// The n-dimensional array that everything else works on.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/shape.h"
#include "vitrail/tensor/storage.h"

namespace vitrail {

namespace autograd {
struct Slot;  // where the gradient of a tensor gathers; see vitrail/autograd/tape.h
}

// A cheap handle on shared storage with a shape, strides and a dtype. Copies share the elements; clone() copies them.
// The views below (reshape, transpose, narrow, expand …) share them too and are not differentiable: vitrail/ops/shape.h
// has the differentiable ones under the same names.
class Tensor {
 public:
  Tensor() = default;  // undefined: no storage, no shape

  static Tensor empty(const Shape& shape, DType dtype = DType::f32);
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
  static Tensor scalar(float value) { return full({}, value); }
  static Tensor empty_like(const Tensor& other) { return empty(other.shape(), other.dtype()); }
  // Copies the values; their number must be shape.numel().
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape);
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  // A read-only tensor over memory that `owner` keeps alive (a memory-mapped file).
  static Tensor borrow(const void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  // in elements
  int rank() const { return shape_.rank(); }
  std::int64_t size(int dim) const { return shape_[dim]; }
  std::int64_t stride(int dim) const { return strides_[dim]; }
  std::int64_t numel() const { return shape_.numel(); }
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  bool is_contiguous() const;
  Storage& storage() const { return *storage_; }
  // Whether others see the same elements: other handles, or whoever lent them.
  bool is_shared() const { return storage_.use_count() > 1 || storage_->is_borrowed(); }
  std::int64_t offset() const { return offset_; }  // of the first element in the storage, in elements

  // The first element. Error unless T is the dtype.
  template <class T>
  T* data() const {
    check(dtype_of<T>::value == dtype_, "the tensor holds {}, not {}", name_of(dtype_), name_of(dtype_of<T>::value));
    return reinterpret_cast<T*>(raw());
  }
  std::byte* raw() const { return storage_->data() + offset_ * static_cast<std::int64_t>(size_of(dtype_)); }
  // All elements in order. Error unless contiguous.
  template <class T>
  std::span<T> span() const {
    check(is_contiguous(), "the tensor {} is not contiguous", shape_);
    return {data<T>(), static_cast<std::size_t>(numel())};
  }
  // All elements in order as floats, whatever the dtype and strides: for tests and reports.
  std::vector<float> values() const;
  // The only element of a one-element tensor.
  float item() const;

  // Views.
  Tensor reshape(const Shape& shape) const;  // one size may be -1; copies if the strides do not allow a view
  Tensor transpose(int dim0, int dim1) const;
  Tensor permute(std::span<const int> dims) const;
  Tensor permute(std::initializer_list<int> dims) const { return permute(std::span(dims.begin(), dims.size())); }
  Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  Tensor select(int dim, std::int64_t index) const;  // narrow to one and drop the dimension
  Tensor expand(const Shape& shape) const;           // broadcast: new dimensions in front, size 1 repeated by stride 0
  Tensor unsqueeze(int dim) const;                   // a dimension of size 1 put before `dim`
  Tensor squeeze(int dim) const;                     // drops a dimension of size 1

  Tensor contiguous() const;                   // itself if contiguous, else a copy
  Tensor clone() const;                        // a contiguous copy
  void copy_from(const Tensor& source) const;  // element by element; same dtype, shape broadcast to this one's
  void fill(double value) const;

  // Says that the elements have been changed in place, so that what was derived from them is stale.
  void touch() const { storage_->touch(); }

  // The autograd layer's.
  const std::shared_ptr<autograd::Slot>& slot() const { return slot_; }
  void set_slot(std::shared_ptr<autograd::Slot> slot) { slot_ = std::move(slot); }
  Tensor detach() const;  // the same elements without gradient

 private:
  Tensor view(const Shape& shape, const Shape& strides, std::int64_t offset) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  Shape strides_;
  std::int64_t offset_ = 0;
  DType dtype_ = DType::f32;
  std::shared_ptr<autograd::Slot> slot_;
};

// Calls `function` with a value of the C++ type of `dtype`: visit(dtype, [&]<class T>(T) { … }).
template <class Function>
decltype(auto) visit(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f32:
      return function(float{});
    case DType::bf16:
      return function(bf16{});
    case DType::i8:
      return function(std::int8_t{});
    case DType::u8:
      return function(std::uint8_t{});
    case DType::i32:
      return function(std::int32_t{});
    case DType::i64:
      return function(std::int64_t{});
    case DType::boolean:
      return function(bool{});
  }
  fail("no such dtype: {}", static_cast<int>(dtype));
}

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  Tensor result = empty(shape, dtype_of<T>::value);
  check(static_cast<std::int64_t>(values.size()) == shape.numel(), "{} values do not fill the shape {}", values.size(),
        shape);
  if (!values.empty()) {
    std::memcpy(result.raw(), values.data(), values.size_bytes());
  }
  return result;
}

}  // namespace vitrail
