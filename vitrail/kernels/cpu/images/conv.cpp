#include "vitrail/kernels/conv.h"

#include <array>
#include <atomic>
#include <utility>

#include "vitrail/kernels/cast.h"
#include "vitrail/kernels/conv_weight_gradient.h"
#include "vitrail/kernels/cpu/onednn.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/kernels/reduce.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::kernels {
namespace {

using onednn::Desc;
using Dims = dnnl::memory::dims;

enum Kind : std::int64_t { forward = 20, input_gradient, weight_gradient };

// oneDNN's description of images. The stride of a dimension with one element tells nothing, but oneDNN goes
// by it: images of one pixel need those of channels-last, else it has slow reference code alone.
Desc describe(const Tensor& x) {
  if (!pixels(x).is_contiguous()) {
    return onednn::describe(x);
  }
  const std::int64_t row = x.size(3) * x.size(1);
  return onednn::describe(x.shape(), {x.size(2) * row, 1, row, x.size(1)}, x.dtype());
}

dnnl::memory view(const Tensor& x) { return onednn::view(x, describe(x)); }

onednn::Key key_of(Kind kind, const Tensor& x, const Tensor& weight, const Tensor& y, const ConvGeometry& geometry) {
  onednn::Key key{kind, geometry.groups};
  for (const auto& pair : {geometry.stride, geometry.padding, geometry.dilation}) {
    key.add(pair[0]).add(pair[1]);
  }
  return key.add(x).add(weight.shape()).add(y);
}

// The weight with its groups as a dimension of their own, as oneDNN takes them: [G, O / G, C / G, kH, kW]; for one
// group the weight itself.
Tensor grouped(const Tensor& weight, std::int64_t groups) {
  return groups == 1
             ? weight
             : weight.reshape({groups, weight.size(0) / groups, weight.size(1), weight.size(2), weight.size(3)});
}

Desc bias_layout(std::int64_t outputs) { return onednn::describe({outputs}, {1}, DType::f32); }

// The geometry by oneDNN's conventions: dilation counts the gaps between the taps.
struct Words {
  explicit Words(const ConvGeometry& g)
      : stride{g.stride[0], g.stride[1]},
        dilation{g.dilation[0] - 1, g.dilation[1] - 1},
        padding{g.padding[0], g.padding[1]} {}
  Dims stride, dilation, padding;
};

constexpr auto direct = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc conv_desc(const Tensor& x, const Tensor& weight, bool bias,
                                                    const ConvGeometry& geometry, const Tensor& y,
                                                    const ConvEpilogue& epilogue = {}) {
  using Forward = dnnl::convolution_forward;
  constexpr auto kind = dnnl::prop_kind::forward_training;
  const Desc in = describe(x);
  const Desc out = describe(y);
  const Desc weights = onednn::any_layout(grouped(weight, geometry.groups).shape(), x.dtype());
  const Words g(geometry);
  dnnl::primitive_attr attributes = onednn::attributes();
  dnnl::post_ops after;
  if (epilogue.add) {  // as a sum: without AVX, a binary post-op reads the wrong elements (oneDNN 2.6)
    after.append_sum(1);
  }
  if (epilogue.relu) {
    onednn::append_activation(after, dnnl::algorithm::eltwise_relu);
  }
  attributes.set_post_ops(after);
  return bias ? onednn::forward_desc<Forward>(attributes, kind, direct, in, weights, bias_layout(y.size(1)), out,
                                              g.stride, g.dilation, g.padding, g.padding)
              : onednn::forward_desc<Forward>(attributes, kind, direct, in, weights, out, g.stride, g.dilation,
                                              g.padding, g.padding);
}

std::atomic<std::uint64_t> slow_count = 0;

void run(const onednn::Compiled& primitive, onednn::Arguments arguments) {
  if (primitive.reference) {
    ++slow_count;
  }
  primitive.run(std::move(arguments));
}

// Counts the multiply-accumulates of a convolution with this weight and result, each as two operations.
void count_flops(const Tensor& weight, const Tensor& y) {
  const std::int64_t taps = weight.numel() / weight.size(0);
  Profile::flops(2.0 * static_cast<double>(y.numel()) * static_cast<double>(taps));
}

// sums [C] = Σ x [B, C, H, W] over all samples and pixels.
void sum_pixels(const Tensor& x, const Tensor& sums) {
  const std::array operands = {Operand{x.raw(), x.strides()}};
  reduce(Reduction::sum, operands, sums.raw(), {0, 1, 0, 0}, x.shape(), DType::f32);
}

}  // namespace

void convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& geometry,
                 const Tensor& y, const ConvEpilogue& epilogue) {
  if (!onednn::computes(x.dtype())) {
    const Tensor wide = epilogue.add ? widened(y) : empty_channels_last(y.shape(), DType::f32);
    convolution(widened(x), weight, bias, geometry, wide, epilogue);
    return narrow_into(wide, y);
  }
  const auto primitive =
      onednn::compiled(key_of(forward, x, weight, y, geometry).add(bias.defined()).add(epilogue.add).add(epilogue.relu),
                       [&] { return conv_desc(x, weight, bias.defined(), geometry, y, epilogue); });
  const onednn::Packed packed = onednn::packed(grouped(weight, geometry.groups), primitive->weights);
  onednn::Arguments arguments{{DNNL_ARG_SRC, view(x)}, {DNNL_ARG_WEIGHTS, packed.memory}, {DNNL_ARG_DST, view(y)}};
  if (bias.defined()) {
    arguments.emplace(DNNL_ARG_BIAS, onednn::view(bias));
  }
  count_flops(weight, y);
  run(*primitive, std::move(arguments));
}

void convolution_input_gradient(const Tensor& dy, const Tensor& weight, const ConvGeometry& geometry,
                                const Tensor& dx) {
  if (!onednn::computes(dy.dtype())) {
    const Tensor wide = empty_channels_last(dx.shape(), DType::f32);
    convolution_input_gradient(widened(dy), weight, geometry, wide);
    return narrow_into(wide, dx);
  }
  const auto primitive = onednn::compiled(key_of(input_gradient, dx, weight, dy, geometry), [&] {
    const auto hint = conv_desc(dx, weight, false, geometry, dy);
    const Desc weights = onednn::any_layout(grouped(weight, geometry.groups).shape(), dx.dtype());
    const Words g(geometry);
    return onednn::backward_desc<dnnl::convolution_backward_data>(hint, onednn::attributes(), direct, describe(dx),
                                                                  weights, describe(dy), g.stride, g.dilation,
                                                                  g.padding, g.padding);
  });
  const onednn::Packed packed = onednn::packed(grouped(weight, geometry.groups), primitive->weights);
  count_flops(weight, dy);
  run(*primitive, {{DNNL_ARG_DIFF_DST, view(dy)}, {DNNL_ARG_WEIGHTS, packed.memory}, {DNNL_ARG_DIFF_SRC, view(dx)}});
}

void convolution_weight_gradient(const Tensor& x, const Tensor& dy, const ConvGeometry& geometry, const Tensor& dweight,
                                 const Tensor& dbias) {
  if (!onednn::computes(x.dtype())) {
    return convolution_weight_gradient(widened(x), widened(dy), geometry, dweight, dbias);
  }
  if (x.dtype() == DType::f32 && geometry.groups == 1) {
    count_flops(dweight, dy);
    Profile::traffic(x.numel() + dy.numel() + dweight.numel(), DType::f32, 1);
    if (dbias.defined()) {
      sum_pixels(dy, dbias);
    }
    return one_group_weight_gradient(x, dy, geometry, dweight);
  }
  const Tensor plain = grouped(dweight, geometry.groups);
  const auto primitive = onednn::compiled(key_of(weight_gradient, x, dweight, dy, geometry).add(dbias.defined()), [&] {
    using Backward = dnnl::convolution_backward_weights;
    const auto hint = conv_desc(x, dweight, dbias.defined(), geometry, dy);
    const Desc weights = onednn::any_layout(plain.shape(), DType::f32);
    const Desc in = describe(x);
    const Desc out = describe(dy);
    const Words g(geometry);
    return dbias.defined() ? onednn::backward_desc<Backward>(hint, onednn::attributes(), direct, in, weights,
                                                             bias_layout(dy.size(1)), out, g.stride, g.dilation,
                                                             g.padding, g.padding)
                           : onednn::backward_desc<Backward>(hint, onednn::attributes(), direct, in, weights, out,
                                                             g.stride, g.dilation, g.padding, g.padding);
  });
  // dweight is computed in the primitive's own layout and then rearranged, since the weight is small compared with the
  // images.
  const Tensor blocked = onednn::allocate(primitive->diff_weights);
  const dnnl::memory result = onednn::view(blocked, primitive->diff_weights);
  onednn::Arguments arguments{{DNNL_ARG_SRC, view(x)}, {DNNL_ARG_DIFF_DST, view(dy)}, {DNNL_ARG_DIFF_WEIGHTS, result}};
  if (dbias.defined()) {
    arguments.emplace(DNNL_ARG_DIFF_BIAS, onednn::view(dbias));
  }
  count_flops(dweight, dy);
  run(*primitive, std::move(arguments));
  onednn::unpack(result, plain);
}

std::uint64_t slow_convolutions() { return slow_count; }

}  // namespace vitrail::kernels
