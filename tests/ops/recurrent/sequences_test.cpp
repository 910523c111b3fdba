#include "vitrail/ops/recurrent/sequences.h"

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"

namespace vitrail::test {
namespace {

using ::testing::ElementsAre;

Tensor lengths(const std::vector<std::int64_t>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

TEST(Sequences, AreSortedByLength) {
  const auto steps = ops::steps_of(4, 6, lengths({2, 5, 1, 5}));
  EXPECT_THAT(steps->order, ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(steps->sizes, ElementsAre(4, 3, 2, 2, 2));
  EXPECT_THAT(steps->offsets, ElementsAre(0, 4, 7, 9, 11, 13));
  EXPECT_THAT(steps->sorting().values(), ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(steps->unsorting().values(), ElementsAre(2, 0, 3, 1));
  EXPECT_FALSE(steps->equal());
  EXPECT_TRUE(ops::steps_of(3, 2)->equal());
}

TEST(Sequences, ArePackedStepByStep) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3, 1});
  const auto steps = ops::steps_of(2, 3, lengths({1, 3}));
  const Tensor rows = ops::pack(x, steps);
  EXPECT_THAT(rows.values(), ElementsAre(4, 1, 5, 6));
  EXPECT_THAT(ops::unpack(rows, steps).values(), ElementsAre(1, 0, 0, 4, 5, 6));
  const Tensor time_first = x.transpose(0, 1);
  EXPECT_THAT(ops::pack(time_first, steps, ops::Layout::time_first).values(), ElementsAre(4, 1, 5, 6));
  EXPECT_THAT(ops::unpack(rows, steps, ops::Layout::time_first).values(), ElementsAre(1, 4, 0, 5, 0, 6));
}

TEST(Sequences, ComeBackFromPacking) {
  const Tensor x = random_tensor({3, 4, 5});
  for (const auto layout : {ops::Layout::batch_first, ops::Layout::time_first}) {
    const auto steps = layout == ops::Layout::batch_first ? ops::steps_of(3, 4) : ops::steps_of(4, 3);
    expect_close(ops::unpack(ops::pack(x, steps, layout), steps, layout), x, 0);
  }
}

TEST(Sequences, HaveTheGradientsOfFiniteDifferences) {
  const auto steps = ops::steps_of(3, 4, lengths({2, 4, 1}));
  for (const auto layout : {ops::Layout::batch_first, ops::Layout::time_first}) {
    const Shape shape = layout == ops::Layout::batch_first ? Shape{3, 4, 2} : Shape{4, 3, 2};
    check_gradients([&](const std::vector<Tensor>& in) { return ops::pack(in[0], steps, layout); },
                    {random_tensor(shape)});
    check_gradients([&](const std::vector<Tensor>& in) { return ops::unpack(in[0], steps, layout); },
                    {random_tensor({7, 2})});
  }
}

TEST(Sequences, RefuseWhatDoesNotFit) {
  const auto steps = ops::steps_of(3, 4, lengths({2, 4, 1}));
  EXPECT_EQ(error_of([&] {
              ops::pack(random_tensor({4, 3, 2}), steps);
            }),
            "pack: 3 sequences of 4 steps cannot be [4, 3, 2]");
  EXPECT_EQ(error_of([&] {
              ops::unpack(random_tensor({8, 2}), steps);
            }),
            "unpack: 7 rows of sequences cannot be [8, 2]");
  EXPECT_EQ(error_of([] {
              ops::steps_of(2, 4, lengths({4, 5}));
            }),
            "the length of sequence 1 is 5, which must lie in 1 … 4");
  EXPECT_EQ(error_of([] { ops::steps_of(2, 4, random_tensor({2})); }),
            "the lengths of 2 sequences must be [2] i64, not [2] f32");
  EXPECT_EQ(error_of([] { ops::steps_of(0, 4); }),
            "a recurrent network needs at least one sequence of one step, not 0 of 4");
}

}  // namespace
}  // namespace vitrail::test
