#include "vitrail/data/sets/sets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::data {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DrawnSets, AreNumbersAndTheSameSorted) {
  const Sets sets = open_sets("sets:task=sort,count=200,size=3-6", "train");
  EXPECT_EQ(sets.count, 200);
  EXPECT_EQ(sets.input_size, 1);
  EXPECT_THAT(sets.labels, ElementsAre("1", "2", "3", "4", "5", "6"));
  std::vector<std::int64_t> sizes(7);
  for (std::int64_t i = 0; i < sets.count; ++i) {
    SetExample example = sets.example(i);
    ++sizes.at(example.elements.size());
    std::ranges::sort(example.elements);
    EXPECT_EQ(example.elements, example.values);
    EXPECT_EQ(example.labels.front(), 0);
    EXPECT_EQ(example.labels.back(), std::ssize(example.labels) - 1);
    EXPECT_GE(example.values.front(), 0);
    EXPECT_LT(example.values.back(), 1);
  }
  EXPECT_THAT(sizes, ElementsAre(0, 0, 0, testing::Gt(20), testing::Gt(20), testing::Gt(20), testing::Gt(20)));
}

TEST(DrawnSets, ArePointsAroundCentres) {
  const Sets sets = open_sets("sets:task=centres,count=50,centres=3,points=400,spread=0.02", "train");
  EXPECT_THAT(sets.labels, ElementsAre("centre"));
  for (std::int64_t i = 0; i < 5; ++i) {
    const SetExample example = sets.example(i);
    ASSERT_EQ(example.labels.size(), 3);
    ASSERT_EQ(example.elements.size(), 2 * 3 * 400);
    for (std::size_t c = 0; c < 3; ++c) {  // the points near a centre have it as their mean, and the deviation
      const double x = example.values[2 * c];
      const double y = example.values[2 * c + 1];
      std::vector<std::array<double, 2>> near;
      for (std::size_t p = 0; p < example.elements.size(); p += 2) {
        const double dx = example.elements[p] - x;
        const double dy = example.elements[p + 1] - y;
        if (std::hypot(dx, dy) < 0.04) {
          near.push_back({dx, dy});
        }
      }
      EXPECT_GT(near.size(), 300);  // all but 14 % of 400
      double mean = 0;
      for (const auto& [dx, dy] : near) {
        mean += (dx + dy) / static_cast<double>(near.size());
      }
      EXPECT_NEAR(mean, 0, 0.006);
    }
  }
}

TEST(DrawnSets, DependOnSeedAndIndexAlone) {
  const Sets train = open_sets("sets:task=sort,count=10", "train");
  const Sets validation = open_sets("sets:task=sort,count=10,validation=4", "validation");
  EXPECT_EQ(validation.count, 4);
  EXPECT_EQ(open_sets("sets:task=sort,count=20", "train").example(12).elements, validation.example(2).elements);
  EXPECT_EQ(open_sets("sets:task=sort,count=20,start=5", "").example(0).elements, train.example(5).elements);
  EXPECT_NE(open_sets("sets:task=sort,count=20,seed=1", "").example(0).elements, train.example(0).elements);
}

TEST(DrawnSets, SayWhatIsWrongWithTheirSource) {
  const auto error = [](const std::string& source) { return error_of([&] { open_sets(source, "train"); }); };
  EXPECT_THAT(error("sets:count=3"), HasSubstr("sets:count=3: 'task' is missing: sort or centres"));
  EXPECT_THAT(error("sets:task=sort"), HasSubstr("'count' is missing"));
  EXPECT_THAT(error("sets:task=sorting,count=3"), HasSubstr("'task' is 'sort' or 'centres', not 'sorting'"));
  EXPECT_THAT(error("sets:task=sort,count=3,sizes=4"), HasSubstr("there is no field 'sizes' (did you mean 'size'?)"));
  EXPECT_THAT(error("sets:task=sort,count=3,size=8-2"), HasSubstr("'size' is from 1 to 1000, not '8-2'"));
  EXPECT_THAT(error("sets:task=sort,count=3,points=2"), HasSubstr("'points' is for task=centres"));
  EXPECT_THAT(error("sets:task=centres,count=3,size=2"), HasSubstr("'size' is for task=sort"));
  EXPECT_THAT(error("sets:task=centres,count=3,spread=wide"), HasSubstr("'spread' is a number from 0 to 1"));
  EXPECT_THAT(error("sets:task=centres,count=3,centres=90"), HasSubstr("there is no room for 90 centres"));
  EXPECT_THAT(error("/no/such.jsonl"), HasSubstr("is no .jsonl of sets"));
  EXPECT_THAT(error_of([] { open_sets("sets:task=sort,count=3", "", {"centre"}); }),
              HasSubstr("are not the network's (centre)"));
}

class SetFile : public testing::Test {
 protected:
  Sets read(const std::string& text, const std::vector<std::string>& labels = {}) {
    std::ofstream(folder_ / "sets.jsonl") << text;
    return open_sets(folder_ / "sets.jsonl", "train", labels);
  }
  std::string error(const std::string& text, const std::vector<std::string>& labels = {}) {
    return error_of([&] { read(text, labels); });
  }
  // A line with these elements, and nothing to say of them.
  static std::string without(const std::string& set) { return "{\"set\": " + set + ", \"targets\": []}\n"; }
  test::TemporaryFolder folder_;
};

TEST_F(SetFile, IsRead) {
  const Sets sets = read(
      "{\"set\": [[1, 2], [3, 4]], \"targets\": [{\"class\": \"b\", \"values\": [5]}, {\"class\": \"a\", \"values\": "
      "[6]}]}\n\n{\"set\": [[7, 8]], \"targets\": []}\n");
  EXPECT_EQ(sets.count, 2);
  EXPECT_EQ(sets.input_size, 2);
  EXPECT_EQ(sets.output_size, 1);
  EXPECT_EQ(sets.most_elements, 2);
  EXPECT_THAT(sets.labels, ElementsAre("b", "a"));
  EXPECT_THAT(sets.example(0).values, ElementsAre(5, 6));
  EXPECT_THAT(sets.example(1).elements, ElementsAre(7, 8));
}

TEST_F(SetFile, SaysWhereItIsWrong) {
  EXPECT_THAT(error(""), HasSubstr("there is no set in it"));
  EXPECT_THAT(error(without("[[1]]") + "{\"sett\": [[1]]}"), HasSubstr("sets.jsonl, line 2: it has no \"set\""));
  EXPECT_THAT(error(without("[[1], [2, 3]]")),
              HasSubstr("line 1: an element has 2 numbers, the ones before it have 1"));
  EXPECT_THAT(error(without("[[1]]") + "{\"set\": [[1]]}"), HasSubstr("sets.jsonl, line 2: it has no \"targets\""));
  EXPECT_THAT(error("{\"set\": [[1]], \"target\": []}"),
              HasSubstr("sets.jsonl, line 1: there is a key \"target\", but only \"set\" and \"targets\""));
  EXPECT_EQ(open_sets(folder_ / "sets.jsonl", "", {}, false).count, 1) << "nothing is to be learned";
  EXPECT_THAT(error(without("[[\"x\"]]")), HasSubstr("an element has something that is no finite number"));
  EXPECT_THAT(error("{\"set\": [[1]], \"targets\": [{\"values\": [1]}]}"), HasSubstr("a target has a \"class\""));
  EXPECT_THAT(error("{\"set\": [[1]], \"targets\": [{\"class\": \"c\", \"values\": [1]}]}", {"a"}),
              HasSubstr("a target is of the class 'c', which the network does not know"));
  EXPECT_THAT(error("{\"set\": [[1]"), HasSubstr("line 1"));
}

TEST(SetOfText, IsNumbersOrLists) {
  EXPECT_THAT(set_of_text("[0.5, 0.25]").example(0).elements, ElementsAre(0.5F, 0.25F));
  EXPECT_EQ(set_of_text("[[1, 2], [3, 4], [5, 6]]").input_size, 2);
  EXPECT_THAT(error_of([] { set_of_text("[]"); }), HasSubstr("has no elements"));
  EXPECT_THAT(error_of([] { set_of_text("[1, [2, 3]]"); }), HasSubstr("has 2 numbers, the ones before it have 1"));
}

TEST(SetBatches, ArePaddedAndComeInTheOrderOfThePlan) {
  const Sets sets = open_sets("sets:task=sort,count=50", "train");
  LoaderOptions loading;
  loading.batch_size = 16;
  const auto loader = set_loader(sets, loading);
  loader->start_epoch(0);
  std::int64_t seen = 0;
  for (SetBatch batch; loader->next(batch);) {
    for (std::size_t b = 0; b < batch.indices.size(); ++b, ++seen) {
      EXPECT_EQ(batch.indices[b], seen);
      const std::vector<float> elements = sets.example(seen).elements;
      ASSERT_TRUE(batch.mask.defined());
      const auto row = batch.x.select(0, static_cast<std::int64_t>(b)).values();
      for (std::size_t i = 0; i < row.size(); ++i) {
        const bool there = i < elements.size();
        EXPECT_EQ(row[i], there ? elements[i] : 0);
        EXPECT_EQ(batch.mask.data<bool>()[b * row.size() + i], there);
      }
    }
  }
  EXPECT_EQ(seen, 50);
  EXPECT_FALSE(batch_of_sets({sets.example(0), sets.example(0)}, 1).mask.defined());
}

}  // namespace
}  // namespace vitrail::data
