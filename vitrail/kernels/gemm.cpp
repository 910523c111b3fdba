#include "vitrail/kernels/gemm.h"

#include "vitrail/kernels/onednn.h"
#include "vitrail/kernels/widen.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::kernels {
namespace {

using onednn::Compiled;
using onednn::Desc;

enum Kind : std::int64_t { plain_product = 1, packed_product, weight_gradient_product };

// A view of `x` that oneDNN can describe: copied if a matrix is repeated inside or neither of its dimensions is dense.
Tensor describable(const Tensor& x) {
  const auto dense = [&](int dim) { return x.size(dim) == 1 || x.stride(dim) == 1; };
  const auto repeated = [&](int dim) { return x.size(dim) > 1 && x.stride(dim) == 0; };
  return repeated(-1) || repeated(-2) || !(dense(-1) || dense(-2)) ? x.contiguous() : x;
}

// Leading dimensions in which one operand is repeated (stride 0) shrink to 1; where both are, one is copied.
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

// Strides in which dimensions of size 1 have the value of a dense tensor.
Desc description(const Tensor& x) {
  Shape strides = x.strides();
  for (int d = x.rank() - 1; d >= 0; --d) {
    if (x.size(d) == 1) {
      strides[d] = d == x.rank() - 1 ? 1 : x.size(d + 1) * strides[d + 1];
    }
  }
  return onednn::describe(x.shape(), strides, x.dtype());
}

// Merges the leading dimensions of the three operands into one where their strides allow.
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
    return dnnl::matmul::primitive_desc({description(a), description(b), description(c)}, onednn::attributes(),
                                        onednn::engine());
  });
}

void append(dnnl::post_ops& after, Activation activation) {
  using dnnl::algorithm;
  switch (activation) {
    case Activation::identity:
      return;
    case Activation::relu:
      return after.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
    case Activation::gelu:
      return after.append_eltwise(1, algorithm::eltwise_gelu_erf, 0, 0);
    case Activation::gelu_tanh:
      return after.append_eltwise(1, algorithm::eltwise_gelu_tanh, 0, 0);
    case Activation::quick_gelu:
      return after.append_eltwise(1, algorithm::eltwise_swish, 1.702F, 0);
    case Activation::silu:
      return after.append_eltwise(1, algorithm::eltwise_swish, 1, 0);
    case Activation::tanh:
      return after.append_eltwise(1, algorithm::eltwise_tanh, 0, 0);
    case Activation::sigmoid:
      return after.append_eltwise(1, algorithm::eltwise_logistic, 0, 0);
  }
}

dnnl::post_ops post_ops(const Epilogue& epilogue) {
  dnnl::post_ops after;
  append(after, epilogue.activation);
  if (epilogue.residual.defined()) {
    after.append_binary(dnnl::algorithm::binary_add, description(epilogue.residual));
  }
  return after;
}

}  // namespace

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
    // Nothing to add up: the same as one column of zeros.
    const Tensor none = Tensor::zeros({c.size(0), 1}, a.dtype());
    return matmul_packed(none, Tensor::zeros({1, c.size(1)}), epilogue, c);
  }
  if (!onednn::computes(a.dtype())) {
    const Tensor wide = Tensor::empty(c.shape());
    const Tensor residual = widened_if_defined(epilogue.residual);
    matmul_packed(widened(a), weight, {epilogue.bias, epilogue.activation, residual}, wide);
    narrow_into(wide, c);
    return;
  }
  const Tensor bias = epilogue.bias.defined() ? epilogue.bias.contiguous() : Tensor();
  const Tensor& residual = epilogue.residual;
  const Shape bias_shape{1, c.size(1)};
  const auto primitive = onednn::compiled(
      onednn::Key{packed_product, bias.defined(), static_cast<std::int64_t>(epilogue.activation)}.add(a).add(c).add(
          residual),
      [&] {
        auto attributes = onednn::attributes();
        attributes.set_post_ops(post_ops(epilogue));
        const Desc weights = onednn::any_layout(weight.shape(), a.dtype());
        if (bias.defined()) {
          const Desc row = onednn::describe(bias_shape, bias_shape.contiguous_strides(), DType::f32);
          return dnnl::matmul::primitive_desc({description(a), weights, row, description(c)}, attributes,
                                              onednn::engine());
        }
        return dnnl::matmul::primitive_desc({description(a), weights, description(c)}, attributes, onednn::engine());
      });
  const onednn::Packed packed = onednn::packed(weight, primitive->weights);
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
  Profile::flops(2.0 * static_cast<double>(c.numel()) * static_cast<double>(a.size(-1)));
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
  if (x.numel() == 0) {  // no inputs: only the bias has a gradient
    return weight_gradient(Tensor::zeros({dy.size(0), 1}, dy.dtype()), dy, Tensor::empty({dy.size(1), 1}), dbias);
  }
  if (!onednn::computes(x.dtype())) {
    weight_gradient(widened(x), widened(dy), dweight, dbias);
    return;
  }
  const auto primitive = onednn::compiled(onednn::Key{weight_gradient_product, dbias.defined()}.add(x).add(dy), [&] {
    using Forward = dnnl::inner_product_forward;
    using Backward = dnnl::inner_product_backward_weights;
    const Desc in = description(x);
    const Desc out = description(dy);
    const Desc weights = description(dweight);
    const Desc any = onednn::any_layout(dweight.shape(), x.dtype());
    const Forward::primitive_desc hint({dnnl::prop_kind::forward_training, in, any, out}, onednn::engine());
    return dbias.defined() ? Backward::primitive_desc({in, weights, description(dbias), out}, onednn::attributes(),
                                                      onednn::engine(), hint)
                           : Backward::primitive_desc({in, weights, out}, onednn::attributes(), onednn::engine(), hint);
  });
  onednn::Arguments arguments{{DNNL_ARG_SRC, onednn::view(x, description(x))},
                              {DNNL_ARG_DIFF_DST, onednn::view(dy, description(dy))},
                              {DNNL_ARG_DIFF_WEIGHTS, onednn::view(dweight, description(dweight))}};
  if (dbias.defined()) {
    arguments.emplace(DNNL_ARG_DIFF_BIAS, onednn::view(dbias));
  }
  Profile::flops(2.0 * static_cast<double>(x.numel()) * static_cast<double>(dy.size(1)));
  primitive->run(std::move(arguments));
}

}  // namespace vitrail::kernels
