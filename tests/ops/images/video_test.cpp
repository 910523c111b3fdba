// Convolution and pooling of videos, and depthwise convolution of tokens.
#include "tests/ops/golden_cases.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/images/conv3d.h"
#include "vitrail/ops/images/depthwise.h"

namespace vitrail::test {
namespace {

using ops::Conv3dOptions;
using ops::DepthwiseOptions;
using ops::Pool3dOptions;
using ops::Size3;

constexpr const char* file = "ops/video.safetensors";

Size3 triple(const std::vector<std::int64_t>& numbers, std::size_t first) {
  return {numbers[first], numbers[first + 1], numbers[first + 2]};
}

class Precision : public testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
  double tolerance() const { return dtype() == DType::f32 ? 1e-5 : 2e-2; }
};

TEST_P(Precision, Conv3dGivesPyTorchsValuesAndGradients) {
  for_each_case(
      "conv3d",
      [&](const Case& one) {
        const auto n = one.numbers("options");
        const Conv3dOptions options{triple(n, 0), triple(n, 3), n[6]};
        expect_golden(one, {"x"}, {"weight", "bias"}, dtype(), tolerance(), [&](const Operands& in) {
          return ops::conv3d(in.at("x"), in.at("weight"), in.at("bias"), options);
        });
      },
      file);
}

TEST_P(Precision, Pool3dGivesPyTorchsValuesAndGradients) {
  for (const bool max : {true, false}) {
    for_each_case(
        max ? "max_pool3d" : "avg_pool3d",
        [&](const Case& one) {
          const auto n = one.numbers("options");
          const Pool3dOptions options{triple(n, 0), triple(n, 3), triple(n, 6)};
          expect_golden(one, {"x"}, {}, dtype(), tolerance(), [&](const Operands& in) {
            return max ? ops::max_pool3d(in.at("x"), options) : ops::avg_pool3d(in.at("x"), options);
          });
        },
        file);
  }
}

TEST_P(Precision, DepthwiseConvGivesPyTorchsValuesAndGradients) {
  for_each_case(
      "depthwise",
      [&](const Case& one) {
        const auto n = one.numbers("options");
        const DepthwiseOptions options{triple(n, 0), triple(n, 3), triple(n, 6), n[9]};
        expect_golden(one, {"x"}, {"weight"}, dtype(), tolerance(),
                      [&](const Operands& in) { return ops::depthwise_conv(in.at("x"), in.at("weight"), options); });
      },
      file);
}

INSTANTIATE_TEST_SUITE_P(Video, Precision, testing::Values(DType::f32, DType::bf16),
                         [](const testing::TestParamInfo<DType>& info) { return std::string(name_of(info.param)); });

TEST(DepthwiseConv, ReadsAPartOfAProjectionWhereItLies) {
  const Tensor qkv = random_tensor({2, 1 + 6 * 7, 36}, 1);
  const Tensor weight = random_tensor({4, 1, 3, 3}, 2);
  const DepthwiseOptions options{.grid = {1, 6, 7}, .padding = {0, 1, 1}, .prefix = 1};
  const Tensor part = qkv.narrow(2, 12, 12);
  expect_close(ops::depthwise_conv(part, weight, options), ops::depthwise_conv(part.clone(), weight, options), 0);
}

TEST(DepthwiseConv, HasTheGradientsOfFiniteDifferences) {
  const auto strided = [](const std::vector<Tensor>& in) {
    return ops::depthwise_conv(in[0], in[1],
                               {.grid = {2, 4, 3}, .stride = {1, 2, 1}, .padding = {1, 1, 0}, .prefix = 1});
  };
  check_gradients(strided, {random_tensor({2, 25, 6}, 1), random_tensor({3, 1, 3, 3, 2}, 2)});
}

TEST(DepthwiseConv, NamesTheOperandThatDoesNotFit) {
  const Tensor x = random_tensor({1, 12, 6}, 1);
  EXPECT_THROW(ops::depthwise_conv(x, random_tensor({4, 1, 3, 3}, 2), {.grid = {1, 3, 4}}), Error);
  EXPECT_THROW(ops::depthwise_conv(x, random_tensor({6, 1, 3, 3}, 2), {.grid = {1, 4, 4}}), Error);
  EXPECT_THROW(ops::depthwise_conv(x, random_tensor({6, 1, 5, 3}, 2), {.grid = {1, 3, 4}}), Error);
  EXPECT_THROW(ops::depthwise_conv(x, random_tensor({6, 2, 3, 3}, 2), {.grid = {1, 3, 4}}), Error);
}

TEST(Conv3d, NamesTheOperandThatDoesNotFit) {
  const Tensor x = random_tensor({1, 2, 3, 6, 6}, 1);
  EXPECT_THROW(ops::conv3d(x.select(2, 0), random_tensor({4, 2, 3, 3, 3}, 2)), Error);
  EXPECT_THROW(ops::conv3d(x, random_tensor({4, 3, 3, 3, 3}, 2)), Error);
  EXPECT_THROW(ops::conv3d(x, random_tensor({4, 2, 4, 3, 3}, 2)), Error);
  EXPECT_THROW(ops::conv3d(x, random_tensor({4, 2, 3, 3, 3}, 2), {}, {.stride = {0, 1, 1}}), Error);
}

}  // namespace
}  // namespace vitrail::test
