#include "vitrail/ops/products/matmul.h"

#include "tests/ops/golden_cases.h"
#include "tests/support/gradients.h"

namespace vitrail::test {
namespace {

using ops::matmul;

void expect_golden_matmul(DType dtype, double tolerance) {
  for_each_case("matmul", [&](const Case& one) {
    expect_golden(one, {"a", "b"}, {}, dtype, tolerance,
                  [](const Operands& in) { return matmul(in.at("a"), in.at("b")); });
  });
}

TEST(Matmul, GivesPyTorchsValuesAndGradients) { expect_golden_matmul(DType::f32, 1e-5); }
TEST(Matmul, GivesThemInBf16) { expect_golden_matmul(DType::bf16, 2e-2); }

TEST(Matmul, HasTheGradientsOfFiniteDifferences) {
  const auto product = [](const std::vector<Tensor>& in) { return matmul(in[0], in[1]); };
  check_gradients(product, {random_tensor({2, 1, 7, 5}, 1), random_tensor({3, 5, 6}, 2)});
  check_gradients(product, {random_tensor({2, 3, 5}, 1), random_tensor({5, 4}, 2)});
}

TEST(Matmul, ReadsStridedOperands) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor a = as(random_tensor({2, 9, 3, 4, 8}, 1), dtype);  // q inside qkv [B, N, 3, H, d]
    const Tensor q = a.select(2, 0).transpose(1, 2);                // [2, 4, 9, 8]
    const Tensor k = a.select(2, 1).transpose(1, 2);
    expect_close(matmul(q, k.transpose(2, 3)), matmul(q.clone(), k.transpose(2, 3).clone()), 1e-2);
    const Tensor w = as(random_tensor({5, 7}, 2), dtype);
    const Tensor v = as(random_tensor({5, 3}, 3), dtype);
    expect_close(matmul(w.transpose(0, 1), v), matmul(w.transpose(0, 1).clone(), v), 1e-2);
    const Tensor sparse = as(random_tensor({4, 6, 2}, 4), dtype).select(2, 1);  // no dense dimension
    expect_close(matmul(sparse, sparse.transpose(0, 1)), matmul(sparse.clone(), sparse.transpose(0, 1).clone()), 1e-2);
    const Tensor repeated = as(random_tensor({1, 3, 4}, 5), dtype).expand({5, 3, 4});
    expect_close(matmul(repeated, repeated.transpose(1, 2)),
                 matmul(repeated.clone(), repeated.clone().transpose(1, 2).clone()), 1e-2);
    const Tensor row = as(random_tensor({1, 4}, 6), dtype).expand({3, 4});
    expect_close(matmul(row, row.transpose(0, 1)), matmul(row.clone(), row.clone().transpose(0, 1).clone()), 1e-2);
  }
}

TEST(Matmul, TakesEmptyOperands) {
  EXPECT_EQ(matmul(Tensor::empty({0, 3}), Tensor::empty({3, 4})).shape(), (Shape{0, 4}));
  EXPECT_EQ(matmul(Tensor::empty({2, 0, 3, 5}), Tensor::empty({5, 4})).shape(), (Shape{2, 0, 3, 4}));
  Tensor a = Tensor::empty({2, 3, 0});
  Tensor b = Tensor::empty({2, 0, 4});
  autograd::require_grad(a);
  autograd::require_grad(b);
  autograd::Tape tape;
  const Tensor c = matmul(a, b);
  expect_close(c, Tensor::zeros({2, 3, 4}), 0, "nothing to add up");
  tape.backward(c, Tensor::full({2, 3, 4}, 1));
  EXPECT_EQ(autograd::grad(a).shape(), a.shape());
  EXPECT_EQ(autograd::grad(b).shape(), b.shape());
}

TEST(Matmul, SaysWhatDoesNotFit) {
  try {
    matmul(Tensor::zeros({2, 3}), Tensor::zeros({4, 5}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "matmul: [2, 3] · [4, 5]: the inner sizes 3 and 4 differ");
  }
  EXPECT_THROW(matmul(Tensor::zeros({2, 3}), Tensor::zeros({3, 2}, DType::bf16)), Error);
  EXPECT_THROW(matmul(Tensor::zeros({}), Tensor::zeros({3})), Error);
  EXPECT_THROW(matmul(Tensor::zeros({2, 2, 3}), Tensor::zeros({3, 3, 2})), Error);
}

}  // namespace
}  // namespace vitrail::test
