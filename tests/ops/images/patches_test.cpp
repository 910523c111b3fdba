#include "vitrail/ops/images/patches.h"

#include "tests/support/gradients.h"

namespace vitrail::ops {
namespace {

using test::expect_close;

TEST(ExtractPatches, FlattensChannelThenRowThenColumn) {
  std::vector<float> values(2 * 2 * 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  const Tensor patches = extract_patches(Tensor::from(values, {1, 2, 2, 4}), {2, 2});
  expect_close(patches, Tensor::from<float>({0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15}, {1, 2, 8}), 0);
}

TEST(ExtractPatches, LeavesOutWhatIsNoWholePatch) {
  const Tensor x = test::random_tensor({2, 3, 7, 11});
  expect_close(extract_patches(x, {3, 4}), extract_patches(x.narrow(2, 0, 6).narrow(3, 0, 8), {3, 4}), 0);
  EXPECT_THROW(extract_patches(x, {8, 1}), Error);
  EXPECT_THROW(extract_patches(x.select(0, 0), {1, 1}), Error);
}

TEST(ExtractPatches, TakesStridedImagesAndBothPrecisions) {
  const Tensor x = test::random_tensor({2, 6, 5, 3});
  expect_close(extract_patches(x.permute({0, 3, 1, 2}), {2, 5}),
               extract_patches(x.permute({0, 3, 1, 2}).contiguous(), {2, 5}), 0);
  const Tensor half = Tensor::full({1, 2, 4, 4}, 0.5, DType::bf16);
  EXPECT_EQ(extract_patches(half, {2, 2}).dtype(), DType::bf16);
}

TEST(ExtractPatches, GivesGradientsBackToTheirPixels) {
  test::check_gradients(
      [](const std::vector<Tensor>& in) {
        return extract_patches(in[0], {2, 3});
      },
      {test::random_tensor({2, 3, 5, 7})});
}

}  // namespace
}  // namespace vitrail::ops
