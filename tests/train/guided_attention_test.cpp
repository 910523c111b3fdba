#include "vitrail/train/guided_attention.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "vitrail/autograd/tape.h"

namespace vitrail::train {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(TouchedPatches, AreThoseThatABoxReachesInto) {
  // A grid of two rows and four columns: a patch is half as high and a quarter as wide as the image.
  EXPECT_THAT(touched_patches({{0.3, 0.1, 0.6, 0.4}}, {2, 4}),
              ElementsAre(false, true, true, false, false, false, false, false));
  EXPECT_THAT(touched_patches({{0, 0, 0.25, 0.5}, {0.9, 0.9, 1, 1}}, {2, 4}),
              ElementsAre(true, false, false, false, false, false, false, true));
  EXPECT_THAT(touched_patches({}, {2, 4}), Each(false));
  EXPECT_THAT(touched_patches({{0, 0, 0, 0}}, {2, 4}), Each(false));
}

TEST(TouchedPatches, EndWhereABoxEnds) {
  // Pixels 8 … 40 of 96, in patches of 8: what rounding leaves of the last edge touches no other patch.
  const data::Box box = data::Box{8, 8, 40, 40}.scaled(1.0 / 96, 1.0 / 96);
  const std::vector<bool> touched = touched_patches({box}, {12, 12});
  EXPECT_EQ(std::ranges::count(touched, true), 16);
  EXPECT_TRUE(touched[12 + 1] && touched[4 * 12 + 4]);
}

TEST(AttentionLoss, IsTheMeanOverRowsThatHaveATarget) {
  Tensor rows = Tensor::from(std::vector<float>{0.5F, 0.25F, 0.25F, 0.1F, 0.2F, 0.7F, 0.3F, 0.3F, 0.4F}, {3, 3});
  autograd::Tape tape;
  autograd::require_grad(rows);
  const Tensor loss = attention_loss(rows, {{true, true, false}, {false, false, false}, {false, false, true}});
  EXPECT_NEAR(loss.data<float>()[0], -((std::log(0.5) + std::log(0.25)) / 2 + std::log(0.4)) / 2, 1e-5);
  tape.backward(loss);
  const Tensor gradient = autograd::grad(rows);
  EXPECT_NEAR(gradient.data<float>()[0], -0.25 / 0.5, 1e-5);
  EXPECT_NEAR(gradient.data<float>()[8], -0.5 / 0.4, 1e-5);
  EXPECT_EQ(gradient.data<float>()[4], 0);
  EXPECT_EQ(attention_loss(rows.detach(), {{false, false, false}, {false, false, false}, {false, false, false}})
                .data<float>()[0],
            0);
}

TEST(AttentionLoss, SaysWhatDoesNotFit) {
  const Tensor rows = Tensor::full({2, 3}, 0.3F);
  EXPECT_EQ(test::error_of([&] { attention_loss(rows, {{true, true, false}}); }), "2 rows of attention have 1 targets");
  EXPECT_EQ(test::error_of([&] {
              attention_loss(rows, {{true, true}, {true, true}});
            }),
            "attention to 3 places has a target of 2");
}

}  // namespace
}  // namespace vitrail::train
