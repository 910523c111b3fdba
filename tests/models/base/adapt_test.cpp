#include "vitrail/models/base/adapt.h"

#include "tests/support/golden.h"

namespace vitrail::models {
namespace {

// An image whose channels are all alike gives the same with any number of them.
TEST(WithChannels, KeepsTheSumOfContributions) {
  const Tensor weight = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3, 1, 1});
  EXPECT_EQ(with_channels(weight, 1).values(), (std::vector<float>{6, 15}));
  EXPECT_EQ(with_channels(weight, 3).values(), weight.values());
  const Tensor five = with_channels(weight, 5);
  ASSERT_EQ(five.shape(), (Shape{2, 5, 1, 1}));
  test::expect_close(
      five, Tensor::from(std::vector<float>{0.6F, 1.2F, 1.8F, 0.6F, 1.2F, 2.4F, 3, 3.6F, 2.4F, 3}, {2, 5, 1, 1}), 1e-6);
  EXPECT_EQ(with_channels(Tensor::zeros({2, 3, 4, 5, 6}), 2).shape(), (Shape{2, 2, 4, 5, 6}));  // of a video
}

TEST(WithChannels, LeavesAsItIsWhatIsNoWeight) {
  for (const Shape& shape : {Shape{4, 0, 2, 2}, Shape{0, 3, 2, 2}, Shape{4, 3, 0, 2}, Shape{4}, Shape{}}) {
    for (const std::int64_t channels : {1, 3, 5}) {
      EXPECT_EQ(with_channels(Tensor::zeros(shape), channels).shape(), shape) << channels;
    }
  }
}

}  // namespace
}  // namespace vitrail::models
