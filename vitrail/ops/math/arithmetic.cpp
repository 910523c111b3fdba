#include "vitrail/ops/math/arithmetic.h"

#include <tuple>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/elementwise.h"
#include "vitrail/ops/math/broadcast.h"
#include "vitrail/ops/math/integers.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;
using autograd::record;
using kernels::Elementwise;

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  check(is_floating(a.dtype()) && a.dtype() == b.dtype(),
        "{}() needs two operands of f32 or two of bf16, not {} and {}: cast one of them", op, name_of(a.dtype()),
        name_of(b.dtype()));
}

bool are_integers(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && (a.dtype() == DType::i32 || a.dtype() == DType::i64);
}

Tensor divided(const char* op, IntegerFunction function, const Tensor& a, const Tensor& b) {
  check(are_integers(a, b), "{}() needs two operands of i32 or two of i64, not {} and {}: cast one of them", op,
        name_of(a.dtype()), name_of(b.dtype()));
  return of_integers(function, a, b);
}

// `tensor`, detached, if a backward function will read it; else undefined.
Tensor kept_if(bool wanted, const Tensor& tensor) { return wanted ? tensor.detach() : Tensor(); }

// The maximum or minimum of two tensors; the gradient goes to the operand that is larger or smaller.
Tensor extreme(const char* op, Elementwise function, const Tensor& a, const Tensor& b) {
  const bool larger = function == Elementwise::maximum;
  if (are_integers(a, b)) {
    return of_integers(larger ? IntegerFunction::maximum : IntegerFunction::minimum, a, b);
  }
  check_operands(op, a, b);
  return record(op, apply(function, {a, b}), {&a, &b},
                [larger, a = a.detach(), b = b.detach(), da = Gradient(a), db = Gradient(b)](const Tensor& dy) {
                  for (const auto& [gradient, own, other] : {std::tie(da, a, b), std::tie(db, b, a)}) {
                    if (gradient.wanted()) {
                      const Tensor& high = larger ? own : other;
                      const Tensor& low = larger ? other : own;
                      gradient.add(sum_to(apply(Elementwise::where_winner, {dy, high, low}), gradient.shape()));
                    }
                  }
                });
}

// A function of one tensor whose gradient is backward(dy, x; p, q).
Tensor of_input(const char* op, Elementwise function, Elementwise backward, const Tensor& x, float p = 1, float q = 0) {
  check_floating(op, x);
  return record(op, apply(function, {x}, p, q), {&x},
                [backward, x = x.detach(), dx = Gradient(x), p, q](const Tensor& dy) {
                  dx.add(apply(backward, {dy, x}, p, q));
                });
}

// A function of one tensor whose gradient is backward(dy, y; p), y the result.
Tensor of_result(const char* op, Elementwise function, Elementwise backward, const Tensor& x, float p = 1) {
  check_floating(op, x);
  Tensor result = apply(function, {x});
  return record(op, result, {&x}, [backward, y = result.detach(), dx = Gradient(x), p](const Tensor& dy) {
    dx.add(apply(backward, {dy, y}, p));
  });
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  if (are_integers(a, b)) {
    return of_integers(IntegerFunction::add, a, b);
  }
  check_operands("add", a, b);
  return record("add", apply(Elementwise::add, {a, b}), {&a, &b},
                [da = Gradient(a), db = Gradient(b)](const Tensor& dy) {
                  for (const Gradient& gradient : {da, db}) {
                    if (gradient.wanted()) {
                      gradient.add(sum_to(dy, gradient.shape()));
                    }
                  }
                });
}

Tensor subtract(const Tensor& a, const Tensor& b) {
  if (are_integers(a, b)) {
    return of_integers(IntegerFunction::subtract, a, b);
  }
  check_operands("subtract", a, b);
  return record("subtract", apply(Elementwise::subtract, {a, b}), {&a, &b},
                [da = Gradient(a), db = Gradient(b)](const Tensor& dy) {
                  if (da.wanted()) {
                    da.add(sum_to(dy, da.shape()));
                  }
                  if (db.wanted()) {
                    const Tensor sum = sum_to(dy, db.shape());
                    db.add(apply(Elementwise::affine, {sum}, -1.0F));
                  }
                });
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  if (are_integers(a, b)) {
    return of_integers(IntegerFunction::multiply, a, b);
  }
  check_operands("multiply", a, b);
  const Gradient da(a);
  const Gradient db(b);
  return record("multiply", apply(Elementwise::multiply, {a, b}), {&a, &b},
                [a = kept_if(db.wanted(), a), b = kept_if(da.wanted(), b), da, db](const Tensor& dy) {
                  if (da.wanted()) {
                    da.add(sum_product_to(dy, b, da.shape()));
                  }
                  if (db.wanted()) {
                    db.add(sum_product_to(dy, a, db.shape()));
                  }
                });
}

Tensor divide(const Tensor& a, const Tensor& b) {
  check_operands("divide", a, b);
  Tensor result = apply(Elementwise::divide, {a, b});
  const Gradient db(b);
  return record("divide", result, {&a, &b},
                [b = b.detach(), y = kept_if(db.wanted(), result), da = Gradient(a), db](const Tensor& dy) {
                  if (da.wanted()) {
                    da.add(sum_to(apply(Elementwise::divide, {dy, b}), da.shape()));
                  }
                  if (db.wanted()) {
                    db.add(sum_to(apply(Elementwise::negative_ratio, {dy, y, b}), db.shape()));
                  }
                });
}

Tensor floor_divide(const Tensor& a, const Tensor& b) {
  return divided("floor_divide", IntegerFunction::floor_divide, a, b);
}
Tensor remainder(const Tensor& a, const Tensor& b) { return divided("remainder", IntegerFunction::remainder, a, b); }

Tensor maximum(const Tensor& a, const Tensor& b) { return extreme("maximum", Elementwise::maximum, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extreme("minimum", Elementwise::minimum, a, b); }

Tensor add(const Tensor& a, float b) {
  check_floating("add", a);
  return record("add", apply(Elementwise::affine, {a}, 1.0F, b), {&a},
                [da = Gradient(a)](const Tensor& dy) { da.add(dy); });
}

Tensor multiply(const Tensor& a, float b) {
  check_floating("multiply", a);
  return record("multiply", apply(Elementwise::affine, {a}, b), {&a},
                [da = Gradient(a), b](const Tensor& dy) { da.add(apply(Elementwise::affine, {dy}, b)); });
}

Tensor negative(const Tensor& x) { return multiply(x, -1.0F); }

Tensor power(const Tensor& x, float exponent) {
  return of_input("power", Elementwise::power, Elementwise::power_gradient, x, exponent);
}
Tensor log(const Tensor& x) { return of_input("log", Elementwise::log, Elementwise::divide, x); }
Tensor abs(const Tensor& x) { return of_input("abs", Elementwise::abs, Elementwise::abs_gradient, x); }
Tensor clamp(const Tensor& x, float low, float high) {
  return of_input("clamp", Elementwise::clamp, Elementwise::clamp_gradient, x, low, high);
}
Tensor exp(const Tensor& x) { return of_result("exp", Elementwise::exp, Elementwise::multiply, x); }
Tensor sqrt(const Tensor& x) { return of_result("sqrt", Elementwise::sqrt, Elementwise::divide, x, 0.5F); }
Tensor rsqrt(const Tensor& x) { return of_result("rsqrt", Elementwise::rsqrt, Elementwise::rsqrt_gradient, x); }

}  // namespace vitrail::ops
