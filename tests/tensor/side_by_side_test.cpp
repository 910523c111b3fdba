#include "vitrail/tensor/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <omp.h>

namespace vitrail::test {
namespace {

TEST(SideBySide, DoesEachPieceOnceWithOneThreadInside) {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> done(7);
    std::atomic<int> inside{0};
    side_by_side(done.size(), threads, [&](std::size_t i) {
      ++done[i];
      inside = std::max<int>(inside, omp_get_max_threads());
    });
    for (const std::atomic<int>& times : done) {
      EXPECT_EQ(times, 1);
    }
    EXPECT_EQ(inside, threads == 1 ? before : 1);
    EXPECT_EQ(omp_get_max_threads(), before);
  }
  side_by_side(0, 4, [](std::size_t) { FAIL(); });
}

// With as many threads as pieces, each piece waits for the others, so that this ends only if they do run at once.
TEST(SideBySide, RunsPiecesAtOnce) {
  std::atomic<int> there{0};
  side_by_side(3, 3, [&](std::size_t) {
    for (++there; there < 3;) {
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(there, 3);
}

TEST(SideBySide, ThrowsWhatAPieceThrowsAndLeavesOutTheRest) {
  std::atomic<int> begun{0};
  EXPECT_THROW(side_by_side(1000, 2,
                            [&](std::size_t) {
                              ++begun;
                              throw std::runtime_error("a piece failed");
                            }),
               std::runtime_error);
  EXPECT_LE(begun, 2);
}

}  // namespace
}  // namespace vitrail::test
