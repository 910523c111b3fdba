/// \file
/// Matrix products (oneDNN).
#pragma once

#include <cstdint>

#include "vitrail/kernels/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// c = a · b for a [..., M, K], b [..., K, N] and c [..., M, N] of one rank ≥ 2. All are f32, or a and b bf16 and c
/// bf16 or f32; sums run in f32. A leading dimension of a or b may be 1 where c's is larger. c is contiguous, a and b
/// have any strides: operands in which neither of the last two dimensions is dense are copied first.
void matmul(const Tensor& a, const Tensor& b, const Tensor& c);

/// What is done to a product before it is stored. (A ReLU may turn NaN into 0 here: oneDNN's does.)
struct Epilogue {
  Tensor bias = {};  ///< [N] f32 or undefined: added to every row
  Activation activation = Activation::identity;
  /// [M, N] of the product's dtype, added after the activation; or undefined. It may be the product's own memory if
  /// adds_in_place().
  Tensor residual = {};
  Activation last = Activation::identity;  ///< after the residual; not for matmul_packed_left()
};

/// Whether the residual of matmul_packed() may be the memory of the product: in f32, without an activation before it
/// and with at most a ReLU after it. (In bf16 oneDNN is slower in place than with separate memory.)
bool adds_in_place(const Epilogue& epilogue, DType dtype);

/// c = last(activation(a · weight + bias) + residual), where `weight` [K, N] is a parameter or a transposed view of
/// one, in f32, or in bf16 if a is: it is packed in a's dtype at the first use and after every Tensor::touch(), unless
/// it fits_few_rows() as it lies. a [M, K] and c [M, N] f32 or bf16.
void matmul_packed(const Tensor& a, const Tensor& weight, const Epilogue& epilogue, const Tensor& c);

/// The gradients of the parameters of a linear map y = x weightᵀ + bias: dweight = dyᵀ x and, if dbias is defined,
/// dbias = the sum of dy's rows. x [M, K] and dy [M, N] are both f32 or both bf16, contiguous; dweight [N, K] and dbias
/// [N] are f32, contiguous.
void weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& dweight, const Tensor& dbias);

/// matmul_packed() with the weight on the left, for each matrix of a batch: c[i] = activation(weight · a[i] + bias 1ᵀ)
/// + residual[i]. `weight` [M, K] f32 is a parameter or a transposed view of one; a [B, K, N], c and residual [B, M, N]
/// are f32 or bf16, contiguous; bias [M] f32 is added to every column.
void matmul_packed_left(const Tensor& weight, const Tensor& a, const Epilogue& epilogue, const Tensor& c);

/// The gradients of the parameters of matmul_packed_left(): dweight = Σ_i dy[i] x[i]ᵀ and, if dbias is defined, dbias =
/// the sum of all columns of dy. x [B, K, N] and dy [B, M, N] are both f32 or both bf16, contiguous; dweight [M, K] and
/// dbias [M] are f32, contiguous.
void weight_gradient_left(const Tensor& x, const Tensor& dy, const Tensor& dweight, const Tensor& dbias);

/// While a TransientPacking is alive on a thread, a packed weight is freed after the product that it was made for,
/// instead of being cached. It is meant for a training step on one batch, which uses each packed form once and then
/// changes the weights: only one of them then takes memory at a time. A form that is used again before the weight
/// changes (in a recurrence, for several crops, because it is frozen) is cached from its second use on until the
/// change, and after that from its first use on, for as long as each version is used more than once. Weights that are
/// held in bf16 or i8 are not packed at all then.
class TransientPacking {
 public:
  /// With `on` false, packed weights are cached again, inside the lifetime of another TransientPacking.
  explicit TransientPacking(bool on = true);
  ~TransientPacking();
  TransientPacking(const TransientPacking&) = delete;
  TransientPacking& operator=(const TransientPacking&) = delete;

 private:
  bool before_;
};

/// How often weights have been packed in this process: ideally once per training step and packed form.
std::uint64_t packings();

/// Whether a product throws Error if its weight has been changed since it was packed, and Tensor::touch() has not been
/// called. This reads the whole weight for each product, so it is on in debug builds only, unless it is set here.
void set_check_touched(bool on);

}  // namespace vitrail::kernels
