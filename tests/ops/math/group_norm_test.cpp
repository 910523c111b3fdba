#include "tests/ops/golden_cases.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/math/norm.h"

namespace vitrail::test {
namespace {

using ops::group_norm;

void expect_golden_group_norm(DType dtype, double tolerance) {
  const io::Safetensors file = golden("ops/group_norm.safetensors");
  for (const char* name : {"plain", "odd", "instance", "layer", "shifted", "many_pixels"}) {
    const Case one(file, name);
    ASSERT_TRUE(one.exists()) << name;
    expect_golden(one, {"x"}, {"weight", "bias"}, dtype, tolerance, [&](const Operands& in) {
      return group_norm(in.at("x"), one.numbers("groups").front(), in.at("weight"), in.at("bias"), 1e-5F);
    });
  }
}

TEST(GroupNorm, GivesPyTorchsValuesAndGradients) { expect_golden_group_norm(DType::f32, 2e-5); }
TEST(GroupNorm, GivesThemInBf16) { expect_golden_group_norm(DType::bf16, 2e-2); }

TEST(GroupNorm, HasTheGradientsOfFiniteDifferences) {
  const auto norm = [](const std::vector<Tensor>& in) { return group_norm(in[0], 2, in[1], in[2], 1e-5F); };
  check_gradients(norm, {random_tensor({2, 6, 4, 3}, 1), random_tensor({6}, 2), random_tensor({6}, 3)}, 5e-3);
}

TEST(GroupNorm, SaysWhatDoesNotFit) {
  EXPECT_THROW(group_norm(random_tensor({2, 6, 2, 2}), 4, {}, {}, 1e-5F), Error);
  EXPECT_THROW(group_norm(random_tensor({2, 6, 2, 2}), 0, {}, {}, 1e-5F), Error);
  EXPECT_THROW(group_norm(random_tensor({2, 6}), 2, {}, {}, 1e-5F), Error);
  EXPECT_THROW(group_norm(random_tensor({2, 6, 2, 2}), 2, Tensor::zeros({5}), {}, 1e-5F), Error);
}

}  // namespace
}  // namespace vitrail::test
