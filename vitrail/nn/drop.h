// Random omission in training. Each use takes a random stream of its own from the pass.
#pragma once

#include "vitrail/nn/pass.h"
#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/dropout.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// Elements are zeroed with probability `p` in training, the others divided by 1 - p (Srivastava et al. 2014).
struct Dropout {
  float p = 0;

  bool active(const Pass& pass) const { return pass.training && p > 0; }
  Tensor operator()(const Tensor& x, Pass& pass) const {
    return active(pass) ? ops::dropout(x, p, pass.random.next()) : x;
  }
};

// Stochastic depth: whole samples of x [B, ...] are zeroed with probability `p` in training, the others divided by
// 1 - p (Huang et al. 2016).
struct DropPath {
  float p = 0;

  bool active(const Pass& pass) const { return pass.training && p > 0; }
  Tensor operator()(const Tensor& x, Pass& pass) const {
    return active(pass) ? ops::drop_path(x, p, pass.random.next()) : x;
  }
};

// x + drop_path(branch(x)). Where no sample is dropped the branch adds x itself, as the last step of its last product:
// it is called with what it is to add.
template <class Branch>
Tensor add_branch(const Tensor& x, const DropPath& drop_path, Pass& pass, Branch&& branch) {
  return drop_path.active(pass) ? x + drop_path(branch(Tensor()), pass) : branch(x);
}

}  // namespace vitrail::nn
