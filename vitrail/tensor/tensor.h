/// \file
/// The n-dimensional array that everything else works on.
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
struct Slot;  // the autograd state of a tensor; see vitrail/autograd/tape.h
}

/// A tensor is a cheap handle on shared storage with a shape, strides and a dtype. Copies share the elements; clone()
/// copies them. The views below (reshape, transpose, narrow, expand …) share them too and are not differentiable:
/// vitrail/ops/shape/shape.h has differentiable functions of the same names.
class Tensor {
 public:
  Tensor() = default;  ///< undefined: no storage, no shape; what needs elements then throws Error, naming the call

  static Tensor empty(const Shape& shape, DType dtype = DType::f32);
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
  static Tensor scalar(float value) { return full({}, value); }
  static Tensor empty_like(const Tensor& other) { return empty(other.shape(), other.dtype()); }
  /// A tensor of `shape` with a copy of `values` in row-major order; Error unless there are shape.numel() of them.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape);
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  /// A read-only contiguous tensor over memory that `owner` keeps alive (for example a memory-mapped file).
  static Tensor borrow(const void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  ///< in elements
  int rank() const { return shape_.rank(); }
  std::int64_t size(int dim) const { return shape_[dim]; }
  std::int64_t stride(int dim) const { return strides_[dim]; }
  std::int64_t numel() const { return shape_.numel(); }
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  bool is_contiguous() const;
  Storage& storage() const { return *storage_of("storage"); }
  /// Whether the elements are visible elsewhere: to other handles, or to the owner of borrowed memory.
  bool is_shared() const { return storage_.use_count() > 1 || storage_of("is_shared")->is_borrowed(); }
  std::int64_t offset() const { return offset_; }  ///< position of the first element in the storage, in elements

  /// A pointer to the first element. Error unless T is the C++ type of the dtype.
  template <class T>
  T* data() const {
    storage_of("data");
    check(dtype_of<T>::value == dtype_, "the tensor holds {}, not {}", name_of(dtype_), name_of(dtype_of<T>::value));
    return reinterpret_cast<T*>(raw());
  }
  std::byte* raw() const { return storage_of("raw")->data() + offset_ * static_cast<std::int64_t>(size_of(dtype_)); }
  /// All elements in row-major order. Error unless the tensor is contiguous and T is the C++ type of the dtype.
  template <class T>
  std::span<T> span() const {
    storage_of("span");
    check(is_contiguous(), "the tensor {} is not contiguous", shape_);
    return {data<T>(), static_cast<std::size_t>(numel())};
  }
  /// A copy of all elements in row-major order, as floats whatever the dtype and strides: for tests and reports.
  std::vector<float> values() const;
  /// The element of a tensor that has only one; Error for any other tensor.
  float item() const;

  // Views: they share the elements of this tensor (but reshape() copies them if it must).

  Tensor reshape(const Shape& shape) const;  ///< one size may be -1 (inferred); copies if the strides allow no view
  Tensor transpose(int dim0, int dim1) const;
  Tensor permute(std::span<const int> dims) const;
  Tensor permute(std::initializer_list<int> dims) const { return permute(std::span(dims.begin(), dims.size())); }
  Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  Tensor select(int dim, std::int64_t index) const;  ///< the slice at `index`, without dimension `dim`
  Tensor expand(const Shape& shape) const;  ///< broadcasts: adds dimensions in front, repeats those of size 1 (stride
                                            ///< 0)
  Tensor unsqueeze(int dim) const;          ///< inserts a dimension of size 1 before `dim`
  Tensor squeeze(int dim) const;            ///< removes dimension `dim`, whose size must be 1

  Tensor contiguous() const;                   ///< this tensor if it is contiguous, else a copy
  Tensor clone() const;                        ///< a contiguous copy
  void copy_from(const Tensor& source) const;  ///< copies a tensor of the same dtype, broadcast to this shape
  void fill(double value) const;

  /// Declares that the elements have been changed in place: data derived from them (see Storage) becomes stale.
  /// In debug builds a product throws Error if its weight was changed without this call since it was packed.
  void touch() const { storage_of("touch")->touch(); }

  // For the autograd layer.

  const std::shared_ptr<autograd::Slot>& slot() const { return slot_; }
  void set_slot(std::shared_ptr<autograd::Slot> slot) { slot_ = std::move(slot); }
  Tensor detach() const;  ///< a handle on the same elements, without gradient

 private:
  // The storage, which a defined tensor has. Throws Error, naming the call that needs it, if the tensor is undefined.
  Storage* storage_of(const char* call) const {
    if (storage_ == nullptr) [[unlikely]] {
      fail_undefined(call);
    }
    return storage_.get();
  }
  [[noreturn]] static void fail_undefined(const char* call);
  Tensor view(const Shape& shape, const Shape& strides, std::int64_t offset) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  Shape strides_;
  std::int64_t offset_ = 0;
  DType dtype_ = DType::f32;
  std::shared_ptr<autograd::Slot> slot_;
};

/// Calls `function` with a value of the C++ type of `dtype`: `visit(dtype, [&]<class T>(T) { … })`.
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
