#include "vitrail/tensor/allocator.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::test {
namespace {

constexpr std::size_t mib = 1 << 20;

Allocator& allocator() { return Allocator::instance(); }

TEST(Allocator, GivesAlignedMemoryOfAnySize) {
  for (const std::size_t bytes : {0UL, 1UL, 63UL, 64UL, 511UL, 513UL, 4097UL, 3 * mib + 5}) {
    void* block = allocator().allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U);
    std::memset(block, 0xab, bytes);
    allocator().release(block, bytes);
  }
}

TEST(Allocator, KeepsFreedBlocksForSizesThatAreNearlyEqual) {
  const Tensor warm = Tensor::empty({300000});
  const auto before = allocator().statistics().system_allocations;
  const std::byte* place = nullptr;
  {
    const Tensor first = Tensor::empty({1000000});
    place = first.raw();
  }
  EXPECT_EQ(Tensor::empty({1000000}).raw(), place);
  EXPECT_EQ(Tensor::empty({999000}).raw(), place);
  for (int step = 0; step < 10; ++step) {
    const Tensor again = Tensor::empty({1000000});
  }
  EXPECT_LE(allocator().statistics().system_allocations, before + 1);
}

TEST(Allocator, ServesWhatShrinksFromWhatIsThere) {
  allocator().trim();
  { const Tensor first = Tensor::empty({4000000}); }
  const Allocator::Statistics before = allocator().statistics();
  for (std::int64_t size = 4000000; size > 2100000; size -= 100000) {
    const Tensor less = Tensor::empty({size});
    EXPECT_EQ(allocator().statistics().cached, 0U) << "the whole block is in use";
  }
  const Allocator::Statistics after = allocator().statistics();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.in_use, before.in_use);
  EXPECT_EQ(after.cached, before.cached);
  { const Tensor small = Tensor::empty({1000000}); }
  EXPECT_EQ(allocator().statistics().system_allocations, before.system_allocations + 1) << "less than half of it";
}

TEST(Allocator, ReportsWhatIsInUseItsPeakAndWhatIsCached) {
  allocator().trim();
  EXPECT_EQ(allocator().statistics().cached, 0U);
  const std::size_t before = allocator().statistics().in_use;
  allocator().reset_peak();
  {
    const Tensor one = Tensor::empty({static_cast<std::int64_t>(mib)}, DType::u8);
    const Tensor two = Tensor::empty({static_cast<std::int64_t>(2 * mib)}, DType::u8);
    EXPECT_EQ(allocator().statistics().in_use, before + 3 * mib);
  }
  const Allocator::Statistics after = allocator().statistics();
  EXPECT_EQ(after.in_use, before);
  EXPECT_EQ(after.peak, before + 3 * mib);
  EXPECT_EQ(after.cached, 3 * mib);
  allocator().reset_peak();
  EXPECT_EQ(allocator().statistics().peak, before);
  allocator().trim();
  EXPECT_EQ(allocator().statistics().cached, 0U);
}

TEST(Allocator, KeepsALimitAndGivesTheCacheBackFirst) {
  allocator().trim();
  allocator().set_limit(allocator().statistics().in_use + 8 * mib);
  { const Tensor cached = Tensor::empty({static_cast<std::int64_t>(5 * mib)}, DType::u8); }
  EXPECT_NO_THROW(Tensor::empty({static_cast<std::int64_t>(7 * mib)}, DType::u8));  // only without what was cached
  EXPECT_THAT(error_of([] { Tensor::empty({static_cast<std::int64_t>(9 * mib)}, DType::u8); }),
              testing::StartsWith("out of memory: "));
  allocator().set_limit(0);
  EXPECT_NO_THROW(Tensor::empty({static_cast<std::int64_t>(9 * mib)}, DType::u8));
  allocator().trim();
}

TEST(Allocator, SaysThatTheSystemHasNoMoreMemory) {
  EXPECT_THAT(error_of([] { Tensor::empty({std::int64_t{1} << 50}); }), testing::StartsWith("out of memory: "));
  EXPECT_THAT(error_of([] { allocator().allocate(std::numeric_limits<std::size_t>::max()); }),
              testing::StartsWith("out of memory: "));
  EXPECT_EQ(error_of([] {
              Tensor::empty({std::int64_t{1} << 40, std::int64_t{1} << 40});
            }),
            "a tensor cannot have the shape [1099511627776, 1099511627776]");
  EXPECT_EQ(error_of([] { Tensor::empty({3, -1}); }), "a tensor cannot have the shape [3, -1]");
}

TEST(Allocator, ServesManyThreads) {
  const std::size_t before = allocator().statistics().in_use;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 500; ++i) {
        const Tensor x = Tensor::full({100 + i % 7 * 100}, t);
        const std::vector<float> values = x.values();
        ASSERT_EQ(values.front(), static_cast<float>(t));
        ASSERT_EQ(values.back(), static_cast<float>(t));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(allocator().statistics().in_use, before);
}

}  // namespace
}  // namespace vitrail::test
