#include "vitrail/tensor/shape.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace vitrail::test {
namespace {

TEST(Shape, CountsFromBothEnds) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape.back(), 4);
  EXPECT_EQ(shape.numel(), 24);
  EXPECT_EQ(shape.str(), "[2, 3, 4]");
  EXPECT_EQ(fmt::format("{}", shape), "[2, 3, 4]");
  EXPECT_EQ(error_of([&] { (void)shape[3]; }), "dimension 3 of the shape [2, 3, 4] does not exist");
  EXPECT_EQ(error_of([&] { (void)shape[-4]; }), "dimension -4 of the shape [2, 3, 4] does not exist");
}

TEST(Shape, OfAScalarHasOneElement) {
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape().str(), "[]");
  EXPECT_EQ((Shape{3, 0}).numel(), 0);
}

TEST(Shape, ChangesBySizesAndDimensions) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.with(1, 7), (Shape{2, 7, 4}));
  EXPECT_EQ(shape.inserted(0, 9), (Shape{9, 2, 3, 4}));
  EXPECT_EQ(shape.inserted(3, 9), (Shape{2, 3, 4, 9}));
  EXPECT_EQ(shape.inserted(-1, 9), (Shape{2, 3, 4, 9}));
  EXPECT_EQ(shape.inserted(-2, 9), (Shape{2, 3, 9, 4}));
  EXPECT_EQ(shape.removed(-2), (Shape{2, 4}));
  EXPECT_EQ(shape.contiguous_strides(), (Shape{12, 4, 1}));
  EXPECT_FALSE(shape == (Shape{2, 3}));
  EXPECT_EQ(error_of([&] { (void)shape.inserted(5, 1); }), "a dimension cannot be put at 5 of the shape [2, 3, 4]");
  const Shape full = {1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(error_of([&] { (void)full.inserted(0, 1); }), "a tensor has at most 8 dimensions");
  EXPECT_EQ(error_of([] { (void)Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }), "a tensor has at most 8 dimensions, not 9");
}

TEST(Shape, BroadcastsAsNumPy) {
  EXPECT_EQ(broadcast({2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast({}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({1}, {0}), Shape{0});
  EXPECT_EQ(error_of([] {
              (void)broadcast({2, 3}, {2, 4});
            }),
            "the shapes [2, 3] and [2, 4] cannot be broadcast together");
}

}  // namespace
}  // namespace vitrail::test
