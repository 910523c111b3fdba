/// \file
/// All that differs between the interfaces of oneDNN 2 and 3, said once for both. For this folder's sources only.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace vitrail::kernels::onednn {

const dnnl::engine& engine();

/// Whether oneDNN may use all instructions of `isa` here. (Newer instruction sets have the bits of the older ones.)
inline bool may_use(dnnl::cpu_isa isa) {
  const auto wanted = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

#if DNNL_VERSION_MAJOR >= 3

/// The description of a forward primitive, whose `operands` (algorithm, layouts, geometry) are in oneDNN's order.
template <class Primitive, class... Operands>
typename Primitive::primitive_desc forward_desc(const dnnl::primitive_attr& attributes, const Operands&... operands) {
  return {engine(), operands..., attributes};
}

/// The description of a backward primitive; `hint` describes its forward primitive.
template <class Primitive, class Hint, class... Operands>
typename Primitive::primitive_desc backward_desc(const Hint& hint, const dnnl::primitive_attr& attributes,
                                                 const Operands&... operands) {
  return {engine(), operands..., hint, attributes};
}

/// Appends an activation to what is done to a result.
inline void append_activation(dnnl::post_ops& after, dnnl::algorithm algorithm, float alpha = 0) {
  after.append_eltwise(algorithm, alpha, 0);
}

inline dnnl::memory::dims dims_of(const dnnl::memory::desc& layout) { return layout.get_dims(); }
inline dnnl::memory::data_type type_of(const dnnl::memory::desc& layout) { return layout.get_data_type(); }

#else

template <class Primitive, class... Operands>
typename Primitive::primitive_desc forward_desc(const dnnl::primitive_attr& attributes, const Operands&... operands) {
  return {typename Primitive::desc(operands...), attributes, engine()};
}

template <class Primitive, class Hint, class... Operands>
typename Primitive::primitive_desc backward_desc(const Hint& hint, const dnnl::primitive_attr& attributes,
                                                 const Operands&... operands) {
  return {typename Primitive::desc(operands...), attributes, engine(), hint};
}

inline void append_activation(dnnl::post_ops& after, dnnl::algorithm algorithm, float alpha = 0) {
  after.append_eltwise(1, algorithm, alpha, 0);
}

inline dnnl::memory::dims dims_of(const dnnl::memory::desc& layout) { return layout.dims(); }
inline dnnl::memory::data_type type_of(const dnnl::memory::desc& layout) { return layout.data_type(); }

#endif

}  // namespace vitrail::kernels::onednn
