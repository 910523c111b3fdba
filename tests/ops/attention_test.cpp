#include "vitrail/ops/attention.h"

#include <cmath>
#include <limits>
#include <set>

#include <omp.h>

#include "tests/support/golden.h"
#include "tests/support/gradients.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/tensor/allocator.h"

namespace vitrail {
namespace {

using ops::attention;
using ops::attention_packed;
using ops::attention_probabilities;
using ops::AttentionOptions;
using test::expect_close;
using test::random_tensor;

Tensor as_bf16(const Tensor& x) {
  const std::vector<float> values = x.values();
  Tensor y = Tensor::empty(x.shape(), DType::bf16);
  std::transform(values.begin(), values.end(), y.data<bf16>(), [](float value) { return bf16(value); });
  return y;
}

Tensor as_f32(const Tensor& x) { return Tensor::from(x.values(), x.shape()); }

Tensor leaf(Tensor x) {
  autograd::require_grad(x);
  return x;
}

// The same bits.
void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(std::memcmp(a.contiguous().raw(), b.contiguous().raw(), a.bytes()), 0);
}

struct Results {
  Tensor out, dq, dk, dv, dbias;
};

Results run(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout, AttentionOptions options = {}) {
  const Tensor ql = leaf(q.detach()), kl = leaf(k.detach()), vl = leaf(v.detach());
  if (options.bias.defined()) {
    options.bias = leaf(options.bias.detach());
  }
  autograd::Tape tape;
  const Tensor out = attention(ql, kl, vl, options);
  tape.backward(out, dout);
  return {out, autograd::grad(ql), autograd::grad(kl), autograd::grad(vl),
          options.bias.defined() ? autograd::grad(options.bias) : Tensor()};
}

// One random problem of a shape.
struct Problem {
  Tensor q, k, v, dout;
  Problem(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t m, std::int64_t d, std::int64_t e)
      : q(random_tensor({b, h, n, d}, 1)),
        k(random_tensor({b, h, m, d}, 2)),
        v(random_tensor({b, h, m, e}, 3)),
        dout(random_tensor({b, h, n, e}, 4)) {}
  Results run(const AttentionOptions& options = {}) const { return vitrail::run(q, k, v, dout, options); }
};

class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

TEST(Attention, AgreesWithPyTorchInValuesAndGradients) {
  const io::Safetensors file = test::golden("ops/attention.safetensors");
  std::set<std::string> cases;
  for (const std::string& name : file.names()) {
    cases.insert(name.substr(0, name.rfind('.')));
  }
  ASSERT_GE(cases.size(), 25U);
  for (const std::string& name : cases) {
    const auto tensor = [&](const std::string& part) {
      return file.contains(name + "." + part) ? file.get(name + "." + part) : Tensor();
    };
    AttentionOptions options;
    options.scale = tensor("settings").data<float>()[0];
    options.causal = tensor("settings").data<float>()[1] != 0;
    options.mask = tensor("mask");
    options.bias = tensor("bias");
    const Tensor q = tensor("q"), k = tensor("k"), v = tensor("v"), dout = tensor("dout");
    const Results f32 = run(as_f32(q), as_f32(k), as_f32(v), as_f32(dout), options);
    const Results half = run(q, k, v, dout, options);
    const auto compare = [&](const char* part, const Tensor& single, const Tensor& twice) {
      const Tensor expected = tensor(part);
      const std::vector<float> values = expected.values();
      const bool vanishes = std::all_of(values.begin(), values.end(), [](float x) { return std::abs(x) < 1e-12F; });
      if (vanishes) {  // nothing to choose, as with one key: only the absolute error makes sense
        for (const float x : single.values()) {
          EXPECT_NEAR(x, 0, 1e-5) << name << " " << part;
        }
        return;
      }
      const double large = name == "large scores" ? 10 : 1;  // scores near 1000 cost three digits
      expect_close(single, expected, 1e-5 * large, name + " " + part);
      expect_close(twice, expected, 2e-2, name + " " + part + " in bf16");
    };
    compare("out", f32.out, half.out);
    compare("dq", f32.dq, half.dq);
    compare("dk", f32.dk, half.dk);
    compare("dv", f32.dv, half.dv);
    if (options.bias.defined()) {
      compare("dbias", f32.dbias, half.dbias);
    }
  }
}

}  // namespace
}  // namespace vitrail
