/// \file
/// What the kernels that call oneDNN share: its engine, cached primitives, packed weights. For this folder's sources
/// only; nothing outside needs oneDNN's headers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <unordered_map>

#include "vitrail/kernels/cpu/onednn_version.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels::onednn {

using Desc = dnnl::memory::desc;
using Arguments = std::unordered_map<int, dnnl::memory>;

dnnl::stream& stream();  ///< the stream of this thread

/// oneDNN's data type for `dtype`; Error if it has none.
dnnl::memory::data_type type_of(DType dtype);

/// Whether oneDNN computes in `dtype` on this CPU: it refuses bf16 below AVX-512, and its products in i8 are exact only
/// with VNNI or AMX instructions (without them, sums of pairs saturate at 16 bits).
bool computes(DType dtype);

/// oneDNN's description of memory: shape, strides (in elements) and dtype.
Desc describe(const Tensor& tensor);
Desc describe(const Shape& shape, const Shape& strides, DType dtype);
/// A description that leaves the layout to the primitive.
Desc any_layout(const Shape& shape, DType dtype);
/// oneDNN's view of the tensor's elements, which are not copied; with `desc`, in the layout that it describes.
dnnl::memory view(const Tensor& tensor);
dnnl::memory view(const Tensor& tensor, const Desc& desc);
/// Uninitialized memory for a layout that a primitive chose, from vitrail's allocator.
Tensor allocate(const Desc& desc);

/// The key of a cached primitive: everything that it depends on, as numbers.
class Key {
 public:
  Key() = default;
  Key(std::initializer_list<std::int64_t> numbers) {
    for (const std::int64_t number : numbers) {
      add(number);
    }
  }
  Key& add(std::int64_t number) {
    check(count_ < numbers_.size(), "a primitive's key is too long");
    numbers_[count_++] = number;
    return *this;
  }
  Key& add(const Shape& shape);
  Key& add(const Tensor& tensor);  ///< dtype, shape, strides; or that it is undefined
  bool operator==(const Key& other) const;
  std::size_t hash() const;

 private:
  std::array<std::int64_t, 80> numbers_;
  std::size_t count_ = 0;
};

/// A primitive with the layouts that it chose. It holds no state, so threads may share it.
struct Compiled {
  explicit Compiled(const dnnl::primitive_desc_base& desc);

  /// Runs on this thread's stream with a scratchpad from vitrail's allocator.
  void run(Arguments arguments) const;

  dnnl::primitive primitive;
  Desc source, weights, destination, workspace;
  Desc diff_source, diff_weights, diff_destination;
  Desc scratchpad;
  bool reference;  ///< oneDNN has only its slow reference code for these layouts
};

/// The primitive of `key`, made by `make` at the first call with that key and cached from then on. (oneDNN has a cache
/// too, but needs a whole description for each lookup.) The scratchpad must be provided by the user: see attributes().
std::shared_ptr<const Compiled> compiled(Key key, const std::function<dnnl::primitive_desc_base()>& make);

/// Attributes of a primitive whose scratchpad the caller provides.
dnnl::primitive_attr attributes();

/// A weight in the layout of some primitive.
struct Packed {
  Tensor elements;
  dnnl::memory memory;  ///< oneDNN's view of the elements
};

/// `weight` (a parameter, or a view of one) in the layout that a primitive wants, converted to that layout's dtype. The
/// packed weight is made once and cached with the weight's storage until Tensor::touch(), unless a TransientPacking is
/// in effect on this thread and the weight is used once. Each view of a storage has packed weights of its own, one for
/// each layout and dtype.
Packed packed(const Tensor& weight, const Desc& layout);
/// Whether a weight is multiplied as it lies: one of bf16 or i8, which is held so for inference, while a
/// TransientPacking is in effect on this thread. oneDNN then packs a part of it at a time.
bool multiplies_as_it_lies(const Tensor& weight);
/// The inverse of packing: copies `from`, which a primitive has left in its own layout, to `to`.
void unpack(const dnnl::memory& from, const Tensor& to);

}  // namespace vitrail::kernels::onednn
