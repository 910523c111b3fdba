#include "vitrail/data/held_out.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vitrail::data {
namespace {

std::string name_of_item(std::int64_t i) { return fmt::format("{}.png", i); }

TEST(HeldOut, TakesTheShareOfEachClass) {
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < 60; ++i) {
    classes.push_back(i % 3 == 0 ? 7 : -1);  // 20 of one, 40 of none
  }
  const HeldOut drawn = hold_out(classes, name_of_item, 0.1);
  EXPECT_EQ(drawn.held.size(), 6U);
  EXPECT_EQ(std::ranges::count_if(drawn.held, [](std::int64_t i) { return i % 3 == 0; }), 2);
  EXPECT_TRUE(std::ranges::is_sorted(drawn.held));
  EXPECT_TRUE(std::ranges::is_sorted(drawn.learned));
  std::vector<std::int64_t> all;
  std::ranges::merge(drawn.held, drawn.learned, std::back_inserter(all));
  std::vector<std::int64_t> expected(60);
  std::ranges::generate(expected, [i = std::int64_t{0}]() mutable { return i++; });
  EXPECT_EQ(all, expected);
  EXPECT_EQ(hold_out(classes, name_of_item, 0.1).held, drawn.held);
  EXPECT_NE(hold_out(classes, name_of_item, 0.1, 1).held, drawn.held);
  EXPECT_TRUE(hold_out(std::vector<std::int64_t>{-1, -1}, name_of_item, 0.1).held.empty());
}

TEST(HeldOut, TakesSomeOfSmallClassesTogether) {
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < 120; ++i) {
    classes.push_back(i / 4);
  }
  const HeldOut drawn = hold_out(classes, name_of_item, 0.1);
  EXPECT_EQ(drawn.held.size(), 12U);
  std::set<std::int64_t> of;
  for (const std::int64_t i : drawn.held) {
    of.insert(i / 4);
  }
  EXPECT_EQ(of.size(), 12U) << "one of a class";
  const HeldOut half = hold_out(std::vector<std::int64_t>{0, 1, 1, 1}, name_of_item, 0.5);
  EXPECT_EQ(half.learned.front(), 0) << "the only one of its class is learned from";
}

TEST(HeldOut, GoesByNamesAlone) {
  std::vector<std::int64_t> classes(50);
  std::vector<std::int64_t> turned(50);
  for (std::int64_t i = 0; i < 50; ++i) {
    classes[static_cast<std::size_t>(i)] = i % 2;
    turned[static_cast<std::size_t>(49 - i)] = 1 - i % 2;  // the classes have other numbers too
  }
  const HeldOut drawn = hold_out(classes, name_of_item, 0.2);
  HeldOut other = hold_out(
      turned, [](std::int64_t i) { return name_of_item(49 - i); }, 0.2);
  std::ranges::transform(other.held, other.held.begin(), [](std::int64_t i) { return 49 - i; });
  std::ranges::sort(other.held);
  EXPECT_EQ(other.held, drawn.held);
  // What is held out of 50 is mostly held out of 60 as well.
  std::vector<std::int64_t> more(60);
  for (std::int64_t i = 0; i < 60; ++i) {
    more[static_cast<std::size_t>(i)] = i % 2;
  }
  const HeldOut grown = hold_out(more, name_of_item, 0.2);
  std::vector<std::int64_t> both;
  std::ranges::set_intersection(drawn.held, grown.held, std::back_inserter(both));
  EXPECT_GE(both.size(), 7U);
}

}  // namespace
}  // namespace vitrail::data
