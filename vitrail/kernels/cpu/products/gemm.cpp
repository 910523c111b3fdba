#include "vitrail/kernels/gemm.h"

#include <algorithm>
#include <array>

#include "vitrail/kernels/added_product.h"
#include "vitrail/kernels/cast.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/cpu/onednn.h"
#include "vitrail/kernels/cpu/products/tile_products.h"
#include "vitrail/kernels/elementwise.h"
#include "vitrail/kernels/few_rows.h"
#include "vitrail/kernels/pair_weight_gradient.h"
#include "vitrail/kernels/reduce.h"
#include "vitrail/kernels/row_sum.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::kernels {
namespace {

using onednn::Compiled;
using onednn::Desc;

enum Kind : std::int64_t { plain_product = 1, packed_product, weight_gradient_product, left_product };

// A tensor equal to `x` that oneDNN can describe: x itself, or a copy if a matrix has repeated rows or columns (stride
// 0), or if neither of its dimensions is dense.
Tensor describable(const Tensor& x) {
  const auto dense = [&](int dim) { return x.size(dim) == 1 || x.stride(dim) == 1; };
  const auto repeated = [&](int dim) { return x.size(dim) > 1 && x.stride(dim) == 0; };
  return repeated(-1) || repeated(-2) || !(dense(-1) || dense(-2)) ? x.contiguous() : x;
}

// Narrows leading dimensions in which one operand is repeated (stride 0) to size 1, since the product broadcasts them;
// if both are repeated, one is copied.
void shrink_repeated(Tensor& a, Tensor& b) {
  for (int d = 0; d < a.rank() - 2; ++d) {
    const auto repeated = [d](const Tensor& x) { return x.size(d) > 1 && x.stride(d) == 0; };
    if (repeated(b)) {
      b = a.size(d) > 1 && !repeated(a) ? b.narrow(d, 0, 1) : b.contiguous();
    }
    if (repeated(a)) {
      a = b.size(d) > 1 ? a.narrow(d, 0, 1) : a.contiguous();
    }
  }
}

// Describes x with the strides of a dense tensor for its dimensions of size 1.
Desc description(const Tensor& x) {
  Shape strides = x.strides();
  for (int d = x.rank() - 1; d >= 0; --d) {
    if (x.size(d) == 1) {
      strides[d] = d == x.rank() - 1 ? 1 : x.size(d + 1) * strides[d + 1];
    }
  }
  return onednn::describe(x.shape(), strides, x.dtype());
}

// Merges the leading dimensions of the three operands into one where their strides allow it.
void merge_batch(Tensor& a, Tensor& b, Tensor& c) {
  for (int d = c.rank() - 4; d >= 0; --d) {
    const auto mergeable = [d](const Tensor& x, const Tensor& whole) {
      return x.size(d) == whole.size(d) && x.size(d + 1) == whole.size(d + 1) &&
             (x.size(d) == 1 || x.size(d + 1) == 1 || x.stride(d) == x.size(d + 1) * x.stride(d + 1));
    };
    if (mergeable(a, c) && mergeable(b, c) && mergeable(c, c)) {
      for (Tensor* x : {&a, &b, &c}) {
        *x = x->reshape(x->shape().removed(d).with(d, x->size(d) * x->size(d + 1)));
      }
    }
  }
}

std::shared_ptr<const Compiled> compiled_product(const Tensor& a, const Tensor& b, const Tensor& c) {
  return onednn::compiled(onednn::Key{plain_product}.add(a).add(b).add(c), [&] {
    return onednn::forward_desc<dnnl::matmul>(onednn::attributes(), description(a), description(b), description(c));
  });
}

void append(dnnl::post_ops& after, Activation activation) {
  using dnnl::algorithm;
  switch (activation) {
    case Activation::identity:
      return;
    case Activation::relu:
      return onednn::append_activation(after, algorithm::eltwise_relu);
    case Activation::gelu:
      return onednn::append_activation(after, algorithm::eltwise_gelu_erf);
    case Activation::gelu_tanh:
      return onednn::append_activation(after, algorithm::eltwise_gelu_tanh);
    case Activation::quick_gelu:
      return onednn::append_activation(after, algorithm::eltwise_swish, 1.702F);
    case Activation::silu:
      return onednn::append_activation(after, algorithm::eltwise_swish, 1);
    case Activation::tanh:
      return onednn::append_activation(after, algorithm::eltwise_tanh);
    case Activation::sigmoid:
      return onednn::append_activation(after, algorithm::eltwise_logistic);
  }
}

dnnl::post_ops post_ops(const Epilogue& epilogue) {
  dnnl::post_ops after;
  append(after, epilogue.activation);
  if (epilogue.residual.defined()) {
    after.append_binary(dnnl::algorithm::binary_add, description(epilogue.residual));
  }
  append(after, epilogue.last);
  return after;
}

// Computes out = function(a, b) over the shape of a; in place if out is a.
void combine(Elementwise function, const Tensor& a, const Tensor& b, const Tensor& out) {
  const std::array operands = {Operand{a.raw(), a.strides()}, Operand{b.raw(), b.expand(a.shape()).strides()}};
  elementwise(function, operands, out.raw(), a.shape(), out.dtype());
}

// Computes matmul_packed_left() in steps, where oneDNN has no fast code for the whole.
void left_product_in_steps(const Tensor& weight, const Tensor& a, const Epilogue& epilogue, const Tensor& c) {
  for (std::int64_t i = 0; i < c.size(0); ++i) {
    matmul(weight, a.select(0, i), c.select(0, i));
  }
  if (epilogue.bias.defined()) {
    combine(Elementwise::add, c, epilogue.bias.unsqueeze(1), c);
  }
  if (epilogue.activation != Activation::identity) {
    activation_forward(epilogue.activation, c.raw(), c.raw(), c.numel(), c.dtype());
  }
  if (epilogue.residual.defined()) {
    combine(Elementwise::add, c, epilogue.residual, c);
  }
}

// Sums x [K, ...] over its first dimension.
void sum_first(const Tensor& x, const Tensor& out) {
  const std::array operands = {Operand{x.raw(), x.strides()}};
  reduce(Reduction::sum, operands, out.raw(), out.unsqueeze(0).expand(x.shape()).strides(), x.shape(), DType::f32);
}

// Whether a layout is that of a dense f32 matrix, row by row, which oneDNN chooses on CPUs without AVX-512.
bool is_plain(const Desc& layout, const Shape& shape) {
  return layout == onednn::describe(shape, shape.contiguous_strides(), DType::f32);
}

// The layout of a matrix [K, N] whose rows lie no power of two apart. Where N is a multiple of 512, a column of a dense
// one lies in the same few places of the first cache, and products of up to some 300 rows take twice the time.
Desc spread_rows(const Shape& shape) {
  constexpr std::int64_t cache_line = 16;  // numbers
  const bool collides = shape[1] % (4 * cache_line) == 0;
  return onednn::describe(shape, {shape[1] + (collides ? cache_line : 0), 1}, DType::f32);
}

// Computes c = last(a · weight + bias + c) in f32, by add_product(): oneDNN would wait for the elements that it adds
// to.
void add_product_in_place(const Tensor& a, const Tensor& weight, const Tensor& bias, const Epilogue& epilogue,
                          const Tensor& c) {
  const Desc blocks({weight.size(0), weight.size(1)}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::BA16a64b);
  const onednn::Packed packed = onednn::packed(weight, blocks);
  Profile::traffic(a.numel() + weight.numel() + 2 * c.numel(), DType::f32, 1);
  add_product({.rows = c.size(0),
               .depth = a.size(1),
               .columns = c.size(1),
               .a = a.data<float>(),
               .weight = reinterpret_cast<const float*>(packed.elements.raw()),
               .bias = bias.defined() ? bias.data<float>() : nullptr,
               .relu = epilogue.last == Activation::relu,
               .c = c.data<float>()});
}

// Whether vitrail's own products of pairs compute the gradient dyᵀ x of a weight faster than oneDNN. Where oneDNN has
// no AMX, they are faster by up to a fifth if the weight is tall and there are enough rows.
bool pairs_are_faster(const Tensor& x, const Tensor& dy) {
  constexpr std::int64_t enough_rows = 512;
  return x.dtype() == DType::bf16 && has_pair_products() && !has_amx() && x.size(0) >= enough_rows &&
         dy.size(1) > x.size(1);
}

}  // namespace

bool adds_in_place(const Epilogue& epilogue, DType dtype) {
  return dtype == DType::f32 && epilogue.activation == Activation::identity &&
         (epilogue.last == Activation::identity || epilogue.last == Activation::relu);
}

void matmul(const Tensor& a, const Tensor& b, const Tensor& c) {
  if (c.numel() == 0) {
    return;
  }
  if (a.size(-1) == 0) {
    c.fill(0);
    return;
  }
  if (!onednn::computes(a.dtype())) {
    const Tensor wide = Tensor::empty(c.shape());
    matmul(widened(a), widened(b), wide);
    narrow_into(wide, c);
    return;
  }
  check(c.is_contiguous(), "matmul: the product must be contiguous");
  Tensor left = describable(a);
  Tensor right = describable(b);
  Tensor product = c;
  shrink_repeated(left, right);
  merge_batch(left, right, product);
  auto primitive = compiled_product(left, right, product);
  if (primitive->reference && !(left.is_contiguous() && right.is_contiguous())) {
    left = left.contiguous();
    right = right.contiguous();
    primitive = compiled_product(left, right, product);
  }
  Profile::flops(2.0 * static_cast<double>(c.numel()) * static_cast<double>(a.size(-1)));
  primitive->run({{DNNL_ARG_SRC, onednn::view(left, description(left))},
                  {DNNL_ARG_WEIGHTS, onednn::view(right, description(right))},
                  {DNNL_ARG_DST, onednn::view(product, description(product))}});
}

void matmul_packed(const Tensor& a, const Tensor& weight, const Epilogue& epilogue, const Tensor& c) {
  if (c.numel() == 0) {
    return;
  }
  if (a.size(-1) == 0) {
    // The sum has no terms, which is the same as one column of zeros.
    const Tensor none = Tensor::zeros({c.size(0), 1}, a.dtype());
    return matmul_packed(none, Tensor::zeros({1, c.size(1)}), epilogue, c);
  }
  if (fits_few_rows(a, weight, epilogue, c)) {
    return matmul_few_rows(a, weight, epilogue, c);
  }
  if (!onednn::computes(a.dtype())) {
    const Tensor wide = Tensor::empty(c.shape());
    const Tensor residual = widened_if_defined(epilogue.residual);
    matmul_packed(widened(a), weight.dtype() == DType::f32 ? weight : widened(weight),
                  {epilogue.bias, epilogue.activation, residual, epilogue.last}, wide);
    narrow_into(wide, c);
    return;
  }
  const Tensor bias = epilogue.bias.defined() ? epilogue.bias.contiguous() : Tensor();
  const Tensor& residual = epilogue.residual;
  Profile::flops(2.0 * static_cast<double>(c.numel()) * static_cast<double>(a.size(-1)));
  if (residual.defined() && residual.raw() == c.raw()) {
    check(adds_in_place(epilogue, a.dtype()) && c.dtype() == DType::f32 && a.is_contiguous() && c.is_contiguous(),
          "matmul_packed: the residual cannot be written over");
    return add_product_in_place(a, weight, bias, epilogue, c);
  }
  const Shape bias_shape{1, c.size(1)};
  const bool lies = onednn::multiplies_as_it_lies(weight);
  const auto primitive = onednn::compiled(
      onednn::Key{packed_product, lies, bias.defined(), static_cast<std::int64_t>(epilogue.activation),
                  static_cast<std::int64_t>(epilogue.last)}
          .add(a)
          .add(c)
          .add(residual),
      [&] {
        auto attributes = onednn::attributes();
        attributes.set_post_ops(post_ops(epilogue));
        const auto with = [&](const Desc& weights) {
          if (bias.defined()) {
            const Desc row = onednn::describe(bias_shape, bias_shape.contiguous_strides(), DType::f32);
            return onednn::forward_desc<dnnl::matmul>(attributes, description(a), weights, row, description(c));
          }
          return onednn::forward_desc<dnnl::matmul>(attributes, description(a), weights, description(c));
        };
        if (lies) {
          return with(description(weight));
        }
        const auto chosen = with(onednn::any_layout(weight.shape(), a.dtype()));
        return is_plain(chosen.weights_desc(), weight.shape()) ? with(spread_rows(weight.shape())) : chosen;
      });
  const onednn::Packed packed = lies ? onednn::Packed{weight, onednn::view(weight, description(weight))}
                                     : onednn::packed(weight, primitive->weights);
  onednn::Arguments arguments{{DNNL_ARG_SRC, onednn::view(a, description(a))},
                              {DNNL_ARG_WEIGHTS, packed.memory},
                              {DNNL_ARG_DST, onednn::view(c, description(c))}};
  if (bias.defined()) {
    arguments.emplace(DNNL_ARG_BIAS, onednn::view(bias.reshape(bias_shape)));
  }
  if (residual.defined()) {
    arguments.emplace(
        DNNL_ARG_ATTR_MULTIPLE_POST_OP(epilogue.activation == Activation::identity ? 0 : 1) | DNNL_ARG_SRC_1,
        onednn::view(residual, description(residual)));
  }
  primitive->run(std::move(arguments));
}

void weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& dweight, const Tensor& dbias) {
  if (dy.numel() == 0) {
    dweight.fill(0);
    if (dbias.defined()) {
      dbias.fill(0);
    }
    return;
  }
  if (x.numel() == 0) {  // there are no inputs: only the bias has a gradient
    return weight_gradient(Tensor::zeros({dy.size(0), 1}, dy.dtype()), dy, Tensor::empty({dy.size(1), 1}), dbias);
  }
  if (!onednn::computes(x.dtype())) {
    weight_gradient(widened(x), widened(dy), dweight, dbias);
    return;
  }
  Profile::flops(2.0 * static_cast<double>(x.numel()) * static_cast<double>(dy.size(1)));
  if (pairs_are_faster(x, dy)) {
    return pair_weight_gradient(x, dy, dweight, dbias);
  }
  const auto primitive = onednn::compiled(onednn::Key{weight_gradient_product, dbias.defined()}.add(x).add(dy), [&] {
    using Backward = dnnl::inner_product_backward_weights;
    const Desc in = description(x);
    const Desc out = description(dy);
    const Desc weights = description(dweight);
    const Desc any = onednn::any_layout(dweight.shape(), x.dtype());
    const dnnl::primitive_attr attributes = onednn::attributes();
    const auto hint =
        onednn::forward_desc<dnnl::inner_product_forward>(attributes, dnnl::prop_kind::forward_training, in, any, out);
    return dbias.defined() ? onednn::backward_desc<Backward>(hint, attributes, in, weights, description(dbias), out)
                           : onednn::backward_desc<Backward>(hint, attributes, in, weights, out);
  });
  onednn::Arguments arguments{{DNNL_ARG_SRC, onednn::view(x, description(x))},
                              {DNNL_ARG_DIFF_DST, onednn::view(dy, description(dy))},
                              {DNNL_ARG_DIFF_WEIGHTS, onednn::view(dweight, description(dweight))}};
  if (dbias.defined()) {
    arguments.emplace(DNNL_ARG_DIFF_BIAS, onednn::view(dbias));
  }
  primitive->run(std::move(arguments));
}

void matmul_packed_left(const Tensor& weight, const Tensor& a, const Epilogue& epilogue, const Tensor& c) {
  check(epilogue.last == Activation::identity, "matmul_packed_left: nothing can be done behind the residual");
  if (c.numel() == 0) {
    return;
  }
  if (a.numel() == 0) {  // the sum has no terms: the same as one row of zeros
    const Tensor none = Tensor::zeros({c.size(0), 1, c.size(2)}, a.dtype());
    return matmul_packed_left(Tensor::zeros({c.size(1), 1}), none, epilogue, c);
  }
  const auto in_f32 = [&] {
    const Tensor wide = Tensor::empty(c.shape());
    const Tensor residual = widened_if_defined(epilogue.residual);
    matmul_packed_left(weight, widened(a),
                       {.bias = epilogue.bias, .activation = epilogue.activation, .residual = residual}, wide);
    narrow_into(wide, c);
  };
  if (!onednn::computes(a.dtype())) {
    return in_f32();
  }
  const Tensor bias = epilogue.bias.defined() ? epilogue.bias.contiguous().reshape({1, c.size(1), 1}) : Tensor();
  const Tensor& residual = epilogue.residual;
  // oneDNN's source is the weight, one for the whole batch, and the batch takes the place of oneDNN's weights, so that
  // nothing is transposed. In bf16 the weight is converted once a step.
  const bool transposed = weight.stride(1) != 1;
  const Tensor plain = (transposed ? weight.transpose(0, 1) : weight).contiguous();
  const Shape dense = plain.shape().contiguous_strides();
  const Desc left = onednn::describe(
      {1, weight.size(0), weight.size(1)},
      transposed ? Shape{weight.numel(), 1, weight.size(0)} : Shape{weight.numel(), weight.size(1), 1}, a.dtype());
  const auto primitive = onednn::compiled(
      onednn::Key{left_product, transposed, bias.defined(), static_cast<std::int64_t>(epilogue.activation)}
          .add(a)
          .add(c)
          .add(residual),
      [&] {
        dnnl::post_ops after;
        if (bias.defined()) {
          after.append_binary(dnnl::algorithm::binary_add, description(bias));
        }
        append(after, epilogue.activation);
        if (residual.defined()) {
          after.append_binary(dnnl::algorithm::binary_add, description(residual));
        }
        auto attributes = onednn::attributes();
        attributes.set_post_ops(after);
        return onednn::forward_desc<dnnl::matmul>(attributes, left, description(a), description(c));
      });
  if (primitive->reference) {
    return a.dtype() == DType::f32 ? left_product_in_steps(weight, a, epilogue, c) : in_f32();
  }
  const onednn::Packed packed = a.dtype() == DType::f32
                                    ? onednn::Packed{plain, onednn::view(plain)}
                                    : onednn::packed(plain, onednn::describe(plain.shape(), dense, a.dtype()));
  Profile::flops(2.0 * static_cast<double>(c.numel()) * static_cast<double>(weight.size(1)));
  onednn::Arguments arguments{{DNNL_ARG_SRC, {left, onednn::engine(), packed.elements.raw()}},
                              {DNNL_ARG_WEIGHTS, onednn::view(a, description(a))},
                              {DNNL_ARG_DST, onednn::view(c, description(c))}};
  int place = 0;
  if (bias.defined()) {
    arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(place++) | DNNL_ARG_SRC_1, onednn::view(bias, description(bias)));
  }
  place += epilogue.activation == Activation::identity ? 0 : 1;
  if (residual.defined()) {
    arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(place) | DNNL_ARG_SRC_1,
                      onednn::view(residual, description(residual)));
  }
  primitive->run(std::move(arguments));
}

void weight_gradient_left(const Tensor& x, const Tensor& dy, const Tensor& dweight, const Tensor& dbias) {
  if (dbias.defined()) {
    sum_rows(dy, dbias);
  }
  // Computes the products of a few samples at once, and then their sum, so that the operands are read as they lie.
  constexpr std::int64_t at_once = 16;
  dweight.fill(0);
  for (std::int64_t begin = 0; begin < dy.size(0) && dweight.numel() > 0; begin += at_once) {
    const std::int64_t count = std::min(at_once, dy.size(0) - begin);
    const Tensor parts = Tensor::empty(dweight.shape().inserted(0, count));
    matmul(dy.narrow(0, begin, count), x.narrow(0, begin, count).transpose(1, 2), parts);
    const Tensor sum = begin == 0 ? dweight : Tensor::empty(dweight.shape());
    sum_first(parts, sum);
    if (begin > 0) {
      combine(Elementwise::add, dweight, sum, dweight);
    }
  }
}

}  // namespace vitrail::kernels
