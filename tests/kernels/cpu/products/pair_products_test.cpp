// Products of pairs of bf16, by each way that this CPU has.
#include <cmath>
#include <vector>

#include "tests/support/golden.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/cpu/products/tile_products.h"

namespace vitrail {
namespace {

using kernels::Pair;

struct Product {
  std::int64_t rows, depth, columns;
  bool transposed;  // A lies with its rows side by side
  bool add;
};

Pair pair_of(float low, float high) {
  const auto bits = [](float value) { return static_cast<Pair>(bf16(value).bits); };
  return bits(low) | bits(high) << 16;
}

// What the product leaves in C, and what it should.
void expect_exact(const Product& p, kernels::MultiplyPairs* multiply) {
  // Small integers: every sum is exact, in any order.
  const auto number = [](std::int64_t i, std::int64_t seed) { return static_cast<float>((i * 37 + seed) % 9 - 4); };
  const auto a_at = [&](std::int64_t i, std::int64_t k) { return number(i * 2 * p.depth + k, 1); };
  const auto b_at = [&](std::int64_t k, std::int64_t j) { return number(k * p.columns + j, 5); };
  const std::int64_t a_row = p.transposed ? 1 : p.depth + 3;
  const std::int64_t a_depth = p.transposed ? p.rows + 5 : 1;
  const auto a_size = static_cast<std::size_t>((p.rows - 1) * a_row + (p.depth - 1) * a_depth + 1);  // no word more
  std::vector<Pair> a(a_size, pair_of(NAN, NAN));
  for (std::int64_t i = 0; i < p.rows; ++i) {
    for (std::int64_t k = 0; k < p.depth; ++k) {
      a[static_cast<std::size_t>(i * a_row + k * a_depth)] = pair_of(a_at(i, 2 * k), a_at(i, 2 * k + 1));
    }
  }
  std::vector<Pair> b;  // panels of 64 words
  for (std::int64_t first = 0; first < p.columns; first += 64) {
    for (std::int64_t k = 0; k < p.depth; ++k) {
      for (std::int64_t j = first; j < std::min<std::int64_t>(first + 64, p.columns); ++j) {
        b.push_back(pair_of(b_at(2 * k, j), b_at(2 * k + 1, j)));
      }
    }
  }
  const std::int64_t c_row = p.columns + 7;
  std::vector<float> c(static_cast<std::size_t>(p.rows * c_row + 100), 1000);
  multiply(p.rows, p.depth, a.data(), a_row, a_depth, b.data(), p.columns, c.data(), c_row, p.add);
  std::int64_t wrong = 0;
  for (std::size_t at = 0; at < c.size(); ++at) {
    const std::int64_t i = static_cast<std::int64_t>(at) / c_row;
    const std::int64_t j = static_cast<std::int64_t>(at) % c_row;
    float expected = 1000;
    if (i < p.rows && j < p.columns) {
      expected = p.add ? 1000 : 0;
      for (std::int64_t k = 0; k < 2 * p.depth; ++k) {
        expected += a_at(i, k) * b_at(k, j);
      }
    }
    wrong += c[at] == expected ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0) << "of " << p.rows << " x " << p.depth << " words x " << p.columns
                      << (p.transposed ? ", transposed" : "") << (p.add ? ", added" : "");
}

void expect_exact(kernels::MultiplyPairs* multiply) {
  for (const std::int64_t rows : {1, 5, 16, 17, 48, 63}) {
    for (const std::int64_t depth : {1, 15, 16, 17, 40}) {
      for (const std::int64_t columns : {16, 48, 64, 80, 192}) {
        for (const bool transposed : {false, true}) {
          for (const bool add : {false, true}) {
            expect_exact(Product{rows, depth, columns, transposed, add}, multiply);
          }
        }
      }
    }
  }
}

TEST(PairProducts, InVectors) {
  if (!kernels::has_pair_products()) {
    GTEST_SKIP() << "this CPU has no AVX512-BF16, or may not use it";
  }
  expect_exact(kernels::multiply_pairs_in_vectors);
}

TEST(PairProducts, InTiles) {
  if (!kernels::has_amx()) {
    GTEST_SKIP() << "this CPU has no AMX, or may not use it";
  }
  expect_exact(kernels::multiply_pairs_in_tiles);
}

}  // namespace
}  // namespace vitrail
