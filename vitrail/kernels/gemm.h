// Matrix products (oneDNN).
#pragma once

#include <cstdint>

#include "vitrail/kernels/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// c = a · b. a [..., M, K], b [..., K, N], c [..., M, N] of one rank ≥ 2, all f32 or a and b bf16 and c bf16 or f32;
// sums run in f32. A leading dimension of a or b may be 1 where c's is larger. c contiguous, a and b of any strides:
// operands in which neither of the last two dimensions is dense are copied first.
void matmul(const Tensor& a, const Tensor& b, const Tensor& c);

// What is done to a product before it is stored. (A ReLU may make 0 of NaN here: oneDNN's does.)
struct Epilogue {
  Tensor bias;  // [N] f32 or undefined: added to every row
  Activation activation = Activation::identity;
  Tensor residual;                         // [M, N] of the product's dtype or undefined: added behind the activation;
                                           // may be the product itself if adds_in_place()
  Activation last = Activation::identity;  // behind the residual; not for matmul_packed_left()
};

// Whether matmul_packed() can write over the residual: in f32, with nothing before it and at most a ReLU behind. (In
// bf16 oneDNN is slower so than with memory of its own for the product.)
bool adds_in_place(const Epilogue& epilogue, DType dtype);

// c = last(activation(a · weight + bias) + residual), where `weight` [K, N] f32 is a parameter or a transposed view of
// one: it is packed in a's dtype at the first use and after every Tensor::touch(). a [M, K] and c [M, N] f32 or bf16.
void matmul_packed(const Tensor& a, const Tensor& weight, const Epilogue& epilogue, const Tensor& c);

// The gradients of a linear map's parameters: dweight = dyᵀ x and, if dbias is defined, dbias = the sum of dy's rows.
//   x [M, K], dy [M, N], both f32 or both bf16, contiguous; dweight [N, K] f32, dbias [N] f32, contiguous.
void weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& dweight, const Tensor& dbias);

// The same with the weight on the left, for each matrix of a batch: c[i] = activation(weight · a[i] + bias 1ᵀ) +
// residual[i]. `weight` [M, K] f32 is a parameter or a transposed view of one, a [B, K, N], c and residual [B, M, N]
// f32 or bf16, contiguous; bias [M] f32 is added to every column.
void matmul_packed_left(const Tensor& weight, const Tensor& a, const Epilogue& epilogue, const Tensor& c);

// The gradients of its parameters: dweight = Σ_i dy[i] x[i]ᵀ and, if dbias is defined, dbias = the sum of all columns.
//   x [B, K, N], dy [B, M, N], both f32 or both bf16, contiguous; dweight [M, K] f32, dbias [M] f32, contiguous.
void weight_gradient_left(const Tensor& x, const Tensor& dy, const Tensor& dweight, const Tensor& dbias);

// While one lives on a thread, a packed weight is given back after the product that it was made for. For a training
// step on one batch, which uses each form once and then changes the weights: its memory then holds one of them at a
// time.
class PackForOneUse {
 public:
  explicit PackForOneUse(bool on = true);  // false: kept again, inside the life of another
  ~PackForOneUse();
  PackForOneUse(const PackForOneUse&) = delete;
  PackForOneUse& operator=(const PackForOneUse&) = delete;

 private:
  bool before_;
};

// How many times weights have been packed in this process: once a step and form if all goes well.
std::uint64_t packings();

}  // namespace vitrail::kernels
