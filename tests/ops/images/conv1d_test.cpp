#include "vitrail/ops/images/conv1d.h"

#include <gtest/gtest.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gradients.h"

namespace vitrail::test {
namespace {

void expect_golden_sequences(DType dtype, double tolerance) {
  for_each_case(
      "conv1d",
      [&](const Case& one) {
        const std::vector<std::int64_t> settings = one.numbers("settings");
        const ops::Conv1dOptions options{settings[0], settings[1], settings[2], settings[3]};
        expect_golden(one, {"x"}, {"weight", "bias"}, dtype, tolerance, [&](const Operands& in) {
          return ops::conv1d(in.at("x"), in.at("weight"), in.at("bias"), options);
        });
      },
      "ops/order.safetensors");
}

TEST(Conv1d, GivesPyTorchsValuesAndGradients) { expect_golden_sequences(DType::f32, 1e-5); }
TEST(Conv1d, GivesThemInBf16) { expect_golden_sequences(DType::bf16, 3e-2); }

TEST(Conv1d, HasTheGradientsOfFiniteDifferences) {
  const ops::Conv1dOptions options{.stride = 2, .padding = 1, .dilation = 2, .groups = 2};
  check_gradients([&](const std::vector<Tensor>& in) { return ops::conv1d(in[0], in[1], in[2], options); },
                  {random_tensor({2, 4, 9}, 1), random_tensor({6, 2, 3}, 2), random_tensor({6}, 3)});
}

TEST(Conv1d, SaysWhatItTakes) {
  EXPECT_EQ(error_of([] {
              ops::conv1d(Tensor::zeros({2, 3}), Tensor::zeros({4, 3, 1}));
            }),
            "conv1d() needs a sequence [B, C, L] and a weight [O, C / groups, K], not [2, 3] and [4, 3, 1]");
}

}  // namespace
}  // namespace vitrail::test
