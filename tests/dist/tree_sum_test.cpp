#include "vitrail/dist/tree_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dist/thread_ranks.h"
#include "tests/support/errors.h"
#include "vitrail/dist/link.h"
#include "vitrail/dist/number_sum.h"
#include "vitrail/dist/square_sum.h"
#include "vitrail/tensor/random.h"

namespace vitrail {
namespace {

using dist::Node;
using dist::TreeSum;

TEST(Tree, NodesSplitAtTheLargestPowerOfTwo) {
  EXPECT_EQ((Node{0, 8}.middle()), 4);
  EXPECT_EQ((Node{0, 6}.middle()), 4);
  EXPECT_EQ((Node{4, 7}.middle()), 6);
  EXPECT_EQ((Node{2, 4}.middle()), 3);
}

TEST(Tree, LeavesInARowAreAFewNodes) {
  EXPECT_EQ(dist::nodes_of(8, 0, 8), (std::vector<Node>{{0, 8}}));
  EXPECT_EQ(dist::nodes_of(8, 0, 4), (std::vector<Node>{{0, 4}}));
  EXPECT_EQ(dist::nodes_of(6, 2, 4), (std::vector<Node>{{2, 4}}));
  EXPECT_EQ(dist::nodes_of(8, 1, 7), (std::vector<Node>{{1, 2}, {2, 4}, {4, 6}, {6, 7}}));
  EXPECT_TRUE(dist::nodes_of(8, 3, 3).empty());
}

TEST(Tree, LeavesAreSpreadEvenly) {
  std::int64_t next = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const auto [first, last] = dist::leaves_of(8, rank, 3);
    EXPECT_EQ(first, next);
    EXPECT_GE(last - first, 2);
    next = last;
  }
  EXPECT_EQ(next, 8);
}

// Numbers of very different size, so that every order of addition has other bits.
Tensor leaf_of(std::int64_t leaf, std::int64_t count) {
  const Tensor x = Tensor::empty({count});
  Draws draws(Philox(7, static_cast<std::uint64_t>(leaf)));
  for (std::int64_t i = 0; i < count; ++i) {
    x.data<float>()[i] = static_cast<float>(std::exp(draws.uniform(-8, 8)) * draws.uniform(-1, 1));
  }
  return x;
}

// The sum that each of so many ranks gets, by rank.
std::vector<std::vector<float>> sums(int ranks, std::int64_t leaves, std::int64_t count, DType wire,
                                     std::vector<std::size_t>* bytes = nullptr) {
  std::vector<std::vector<float>> result(static_cast<std::size_t>(ranks));
  if (bytes != nullptr) {
    bytes->resize(static_cast<std::size_t>(ranks));
  }
  test::on_ranks(ranks, [&](test::ThreadRank& self) {
    TreeSum sum(self, count, wire, dist::first_free_tag, "the sum");
    for (int again = 0; again < 2; ++again) {  // a sum can be used again
      sum.begin(leaves);
      const auto [first, last] = dist::leaves_of(leaves, self.rank(), self.size());
      for (std::int64_t leaf = first; leaf < last; ++leaf) {
        sum.progress();
        sum.add(leaf_of(leaf, count));
      }
      result[static_cast<std::size_t>(self.rank())] = sum.finish().values();
    }
    if (bytes != nullptr) {
      (*bytes)[static_cast<std::size_t>(self.rank())] = self.bytes_sent / 2;
    }
  });
  return result;
}

TEST(TreeSum, HasTheSameBitsOnAnyNumberOfRanks) {
  for (const std::int64_t leaves : {1, 4, 6, 12}) {
    for (const std::int64_t count : {1, 17, 1000}) {
      const std::vector<float> expected = sums(1, leaves, count, DType::f32).front();
      for (int ranks = 2; ranks <= 5; ++ranks) {
        for (const std::vector<float>& sum : sums(ranks, leaves, count, DType::f32)) {
          EXPECT_EQ(sum, expected) << leaves << " leaves of " << count << " on " << ranks << " ranks";
        }
      }
    }
  }
}

TEST(TreeSum, IsTheSum) {
  const std::vector<float> sum = sums(3, 5, 100, DType::f32).front();
  for (std::int64_t i = 0; i < 100; ++i) {
    double expected = 0;
    double size = 0;
    for (std::int64_t leaf = 0; leaf < 5; ++leaf) {
      const double x = leaf_of(leaf, 100).data<float>()[i];
      expected += x;
      size += std::abs(x);
    }
    EXPECT_NEAR(sum[static_cast<std::size_t>(i)], expected, 1e-6 * size);
  }
}

TEST(TreeSum, SendsRoundedNumbersInHalfTheBytesAndIsTheSameOnAllRanks) {
  std::vector<std::size_t> bytes;
  std::vector<std::size_t> rounded_bytes;
  const std::vector<float> exact = sums(4, 4, 1000, DType::f32, &bytes).front();
  const std::vector<std::vector<float>> rounded = sums(4, 4, 1000, DType::bf16, &rounded_bytes);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(rounded[rank], rounded[0]);
    EXPECT_EQ(rounded_bytes[rank], bytes[rank] / 2);
  }
  double size = 0;
  double error = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    size += std::abs(exact[i]);
    error += std::abs(rounded[0][i] - exact[i]);
  }
  EXPECT_LT(error, 5e-3 * size);
  EXPECT_GT(error, 0);
}

TEST(TreeSum, SendsNoMoreThanItMust) {
  std::vector<std::size_t> bytes;
  sums(4, 4, 16 * 400, DType::f32, &bytes);
  for (const std::size_t sent : bytes) {
    EXPECT_EQ(sent, 2 * 3 * 16 * 100 * sizeof(float));  // 2 (p - 1) / p of the vector
  }
}

TEST(TreeSum, GivesEachRankItsPartAtHalfTheTraffic) {
  for (const std::int64_t count : {1, 1000, 16 * 400}) {
    const std::vector<float> expected = sums(1, 4, count, DType::f32).front();
    test::on_ranks(4, [&](test::ThreadRank& self) {
      TreeSum sum(self, count, DType::f32, dist::first_free_tag, "the sum", dist::Share::part);
      sum.begin(4);
      sum.add(leaf_of(self.rank(), count));
      const auto [first, last] = dist::part_of(count, self.rank(), 4);
      EXPECT_THAT(sum.finish().values(), testing::ElementsAreArray(expected.begin() + first, expected.begin() + last));
      EXPECT_EQ(self.bytes_sent, static_cast<std::size_t>(count - (last - first)) * sizeof(float));
    });
  }
}

TEST(SumOfSquares, HasTheSameBitsOnAnyNumberOfRanks) {
  std::vector<Tensor> vectors;
  double exact = 0;
  for (const std::int64_t count : {0, 1, 16, 100, 7000}) {
    vectors.push_back(leaf_of(count, count));
    for (const float x : vectors.back().values()) {
      exact += static_cast<double>(x) * x;
    }
  }
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (const bool whole : {true, false}) {
      test::on_ranks(ranks, [&](test::ThreadRank& self) {
        std::vector<dist::Held> held;
        for (const Tensor& one : vectors) {
          const auto [first, last] = dist::part_of(one.numel(), self.rank(), self.size());
          held.push_back({whole ? one : one.narrow(0, first, last - first), one.numel()});
        }
        const double sum = dist::sum_of_squares(self, held, "a test");
        EXPECT_NEAR(sum, exact, 1e-12 * exact);
        const std::unique_ptr<dist::Communicator> alone = dist::alone();
        std::vector<dist::Held> all;
        for (const Tensor& one : vectors) {
          all.push_back({one, one.numel()});
        }
        EXPECT_EQ(sum, dist::sum_of_squares(*alone, all, "a test")) << ranks << " ranks";
      });
    }
  }
}

TEST(Link, IsMeasured) {
  test::on_ranks(3, [](test::ThreadRank& self) {
    const std::vector<dist::Link> links = dist::measure_links(self);
    EXPECT_EQ(links.size(), self.rank() == 0 ? 2U : 0U);
    for (const dist::Link& link : links) {
      EXPECT_GT(link.latency, 0);
      EXPECT_GT(link.per_message, 0);
      EXPECT_GT(link.bytes_per_second, 0);
      EXPECT_GE(link.cpu_per_byte, 0);
    }
    EXPECT_GT(dist::measure_sum(self, 1 << 16, DType::bf16), 0);
  });
}

TEST(Ranks, GiveEachOtherWhatTheyHave) {
  test::on_ranks(3, [](test::ThreadRank& self) {
    const std::string own(static_cast<std::size_t>(self.rank()) * 5, static_cast<char>('a' + self.rank()));
    EXPECT_THAT(dist::all_gather(self, own, "a test"), testing::ElementsAre("", "bbbbb", "cccccccccc"));
  });
}

TEST(Ranks, SayWhoHasNotCome) {
  const std::string error = test::error_of([] {
    test::on_ranks(3, [](test::ThreadRank& self) {
      self.timeout = 0.05;
      if (self.rank() != 2) {
        dist::all_gather(self, "here", "step 40");
      }
    });
  });
  EXPECT_THAT(error, testing::HasSubstr("at step 40 for the rank 2"));
}

TEST(Ranks, AreOneWithoutALauncher) {
  const std::unique_ptr<dist::Communicator> self = dist::started_ranks();
  EXPECT_EQ(self->size(), 1);
  EXPECT_THAT(dist::all_gather(*self, "alone", "a test"), testing::ElementsAre("alone"));
}

TEST(NumberSum, IsTheSameForTheRanksThatTakePart) {
  test::on_ranks(4, [](test::ThreadRank& self) {
    const std::vector<int> members = {0, 2, 3};
    std::vector<double> numbers = {1.0 + self.rank(), 1e-17 * self.rank()};
    if (self.rank() != 1) {
      dist::add_up(self, members, numbers, dist::first_free_tag, "a test");
      EXPECT_EQ(numbers, (std::vector<double>{8, 0.0 + 2e-17 + 3e-17}));
    }
    const std::vector<int> alone = {self.rank()};
    std::vector<double> own = {0.5};
    dist::add_up(self, alone, own, dist::first_free_tag, "a test");
    EXPECT_EQ(own, std::vector{0.5});
  });
}

}  // namespace
}  // namespace vitrail
