// Problems for the tests of attention: random ones, and their results with gradients.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/ops/attention/attention.h"

namespace vitrail::attention_test {

inline Tensor as_bf16(const Tensor& x) {
  const std::vector<float> values = x.values();
  Tensor y = Tensor::empty(x.shape(), DType::bf16);
  std::transform(values.begin(), values.end(), y.data<bf16>(), [](float value) { return bf16(value); });
  return y;
}

inline Tensor as_f32(const Tensor& x) { return Tensor::from(x.values(), x.shape()); }

inline Tensor leaf(Tensor x) {
  autograd::require_grad(x);
  return x;
}

// The same bits.
inline void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(std::memcmp(a.contiguous().raw(), b.contiguous().raw(), a.bytes()), 0);
}

struct Results {
  Tensor out, dq, dk, dv, dbias;
};

inline Results run(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout,
                   ops::AttentionOptions options = {}) {
  const Tensor ql = leaf(q.detach()), kl = leaf(k.detach()), vl = leaf(v.detach());
  if (options.bias.defined()) {
    options.bias = leaf(options.bias.detach());
  }
  autograd::Tape tape;
  const Tensor out = ops::attention(ql, kl, vl, options);
  tape.backward(out, dout);
  return {out, autograd::grad(ql), autograd::grad(kl), autograd::grad(vl),
          options.bias.defined() ? autograd::grad(options.bias) : Tensor()};
}

// One random problem of a shape.
struct Problem {
  Tensor q, k, v, dout;
  Problem(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t m, std::int64_t d, std::int64_t e)
      : q(test::random_tensor({b, h, n, d}, 1)),
        k(test::random_tensor({b, h, m, d}, 2)),
        v(test::random_tensor({b, h, m, e}, 3)),
        dout(test::random_tensor({b, h, n, e}, 4)) {}
  Results run(const ops::AttentionOptions& options = {}) const { return attention_test::run(q, k, v, dout, options); }
};

inline Tensor lengths_of(const std::vector<std::int64_t>& lengths) {
  return Tensor::from(lengths, {static_cast<std::int64_t>(lengths.size())});
}

}  // namespace vitrail::attention_test
