#include "vitrail/ops/shape/embedding.h"

#include <gmock/gmock.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "vitrail/kernels/cpu.h"

namespace vitrail::test {
namespace {

void expect_golden_rows(DType dtype, double tolerance) {
  const io::Safetensors file = golden("ops/embedding.safetensors");
  const Case rows(file, "embedding");
  expect_golden(rows, {"x"}, {}, dtype, tolerance,
                [&](const Operands& in) { return ops::embedding(in.at("x"), rows["indices"]); });
  for (int i = 0; i < 3; ++i) {
    const Case slices(file, "index_select." + std::to_string(i));
    expect_golden(slices, {"x"}, {}, dtype, tolerance, [&](const Operands& in) {
      return ops::index_select(in.at("x"), static_cast<int>(slices.numbers("dim").front()), slices["indices"]);
    });
    const Case elements(file, "gather." + std::to_string(i));
    expect_golden(elements, {"x"}, {}, dtype, tolerance, [&](const Operands& in) {
      return ops::gather(in.at("x"), static_cast<int>(elements.numbers("dim").front()), elements["indices"]);
    });
  }
}

TEST(Embedding, GivesPyTorchsValuesAndGradients) { expect_golden_rows(DType::f32, 1e-6); }
TEST(Embedding, GivesThemInBf16) { expect_golden_rows(DType::bf16, 1e-2); }

TEST(Embedding, HasTheGradientsOfFiniteDifferences) {
  const Tensor indices = Tensor::from(std::vector<std::int64_t>{2, 0, 2, 2}, {4});
  check_gradients([&](const std::vector<Tensor>& in) { return ops::embedding(in[0], indices); },
                  {random_tensor({3, 5})});
}

TEST(Embedding, GivesTheRowOfPaddingNoGradient) {
  Tensor table = random_tensor({4, 3});
  autograd::require_grad(table);
  autograd::Tape tape;
  const Tensor rows = ops::embedding(table, Tensor::from<std::int64_t>({1, 3, 1, 0}, {4}), 1);
  EXPECT_EQ(rows.narrow(0, 0, 1).values(), table.narrow(0, 1, 1).values());
  tape.backward(rows, Tensor::from<float>(std::vector<float>(12, 1.0F), {4, 3}));
  EXPECT_EQ(autograd::grad(table).values(), (std::vector<float>{1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(error_of([&] { ops::embedding(table, Tensor::from<std::int64_t>({1}, {1}), 4); }),
            "embedding() of [4, 3] has no row 4 for padding");
}

TEST(Embedding, AddsRepeatedRowsInOneOrderForAnyNumberOfThreads) {
  Tensor table = random_tensor({10, 65});
  std::vector<std::int64_t> numbers;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    numbers.push_back(Philox(1, 2).word(i) % 10);
  }
  const Tensor indices = Tensor::from(numbers, {5000});
  autograd::require_grad(table);
  const auto gradient = [&](int threads) {
    kernels::set_threads(threads);
    autograd::zero_grad(table);
    autograd::Tape tape;
    const Tensor y = ops::embedding(table, indices);
    tape.backward(y, random_tensor(y.shape(), 3));
    return autograd::grad(table).values();
  };
  const int threads = kernels::threads();
  const std::vector<float> one = gradient(1);
  EXPECT_EQ(gradient(2), one);
  EXPECT_EQ(gradient(2), one);
  kernels::set_threads(threads);
}

TEST(Embedding, TakesNoIndicesAndStridedTables) {
  const Tensor table = random_tensor({5, 4});
  EXPECT_EQ(ops::embedding(table, Tensor::empty({2, 0}, DType::i64)).shape(), (Shape{2, 0, 4}));
  const Tensor indices = Tensor::from(std::vector<std::int64_t>{3, 1}, {2});
  EXPECT_EQ(ops::embedding(table.transpose(0, 1), indices).values(),
            ops::embedding(table.transpose(0, 1).clone(), indices).values());
}

TEST(Embedding, NamesTheIndexThatIsOutside) {
  const Tensor table = random_tensor({5, 4});
  const Tensor indices = Tensor::from(std::vector<std::int64_t>{1, 2, 5, 0}, {2, 2});
  EXPECT_EQ(error_of([&] { ops::embedding(table, indices); }),
            "embedding(): the index 5 at position 2 of [2, 2] does not lie in [0, 5)");
  EXPECT_EQ(error_of([&] { ops::index_select(table, 1, Tensor::from(std::vector<std::int64_t>{-1}, {1})); }),
            "index_select(): the index -1 at position 0 of [1] does not lie in [0, 4)");
  EXPECT_EQ(error_of([&] { ops::gather(table, 0, indices); }),
            "gather() along dimension 0 of [5, 4] cannot take indices of the shape [2, 2]");
  EXPECT_EQ(error_of([&] { ops::embedding(table, table); }), "embedding() needs indices of i64, not f32");
}

}  // namespace
}  // namespace vitrail::test
