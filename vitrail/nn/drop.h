/// \file
/// Dropout and stochastic depth, which act in training only. Each use takes a random stream of its own from the pass.
#pragma once

#include "vitrail/nn/pass.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/dropout.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// Dropout (Srivastava et al. 2014): in training, elements are zeroed with probability `p` and the others divided by
/// 1 - p.
struct Dropout {
  float p = 0;

  bool active(const Pass& pass) const { return pass.training && p > 0; }
  Tensor operator()(const Tensor& x, Pass& pass) const {
    return active(pass) ? ops::dropout(x, p, pass.random.next()) : x;
  }
};

/// Stochastic depth (Huang et al. 2016): in training, whole samples of x [B, ...] are zeroed with probability `p` and
/// the others divided by 1 - p.
struct DropPath {
  float p = 0;

  bool active(const Pass& pass) const { return pass.training && p > 0; }
  Tensor operator()(const Tensor& x, Pass& pass) const {
    return active(pass) ? ops::drop_path(x, p, pass.random.next()) : x;
  }
};

/// x + drop_path(f(x)), where branch(residual) computes f(x) + residual. If no samples are dropped, the branch is
/// called with x as its residual, so that its last product adds it; otherwise it is called with an undefined tensor.
template <class Branch>
Tensor add_branch(const Tensor& x, const DropPath& drop_path, Pass& pass, Branch&& branch) {
  return drop_path.active(pass) ? x + drop_path(branch(Tensor()), pass) : branch(x);
}

}  // namespace vitrail::nn
