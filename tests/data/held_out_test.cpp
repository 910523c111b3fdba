#include "vitrail/data/held_out.h"

#include <algorithm>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vitrail::data {
namespace {

TEST(HeldOut, TakesTheShareOfEachClass) {
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < 60; ++i) {
    classes.push_back(i % 3 == 0 ? 7 : -1);  // 20 of one, 40 of none
  }
  const HeldOut drawn = hold_out(classes, 0.1, 0);
  EXPECT_EQ(drawn.held.size(), 6U);
  EXPECT_EQ(std::ranges::count_if(drawn.held, [](std::int64_t i) { return i % 3 == 0; }), 2);
  EXPECT_TRUE(std::ranges::is_sorted(drawn.held));
  EXPECT_TRUE(std::ranges::is_sorted(drawn.learned));
  std::vector<std::int64_t> all;
  std::ranges::merge(drawn.held, drawn.learned, std::back_inserter(all));
  std::vector<std::int64_t> expected(60);
  std::ranges::generate(expected, [i = std::int64_t{0}]() mutable { return i++; });
  EXPECT_EQ(all, expected);
  EXPECT_EQ(hold_out(classes, 0.1, 0).held, drawn.held);
  EXPECT_NE(hold_out(classes, 0.1, 1).held, drawn.held);
  EXPECT_TRUE(hold_out(std::vector<std::int64_t>{-1, -1}, 0.1, 0).held.empty());
}

}  // namespace
}  // namespace vitrail::data
