#include "vitrail/kernels/added_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/targets.h"
#include "vitrail/kernels/pack_weight.h"

namespace vitrail {
namespace {

// Against sums in f64; what lies around c stays as it is.
void expect_sums(const std::string& target, std::int64_t rows, std::int64_t depth, std::int64_t columns, bool bias,
                 bool relu) {
  const Tensor a = test::random_tensor({rows, depth}, 1);
  const Tensor weight = test::random_tensor({depth, columns}, 2);
  const Tensor shift = test::random_tensor({columns}, 3);
  const Tensor before = test::random_tensor({rows * columns}, 4);
  constexpr std::int64_t around = 8;
  std::vector<float> c(static_cast<std::size_t>(rows * columns + 2 * around), 7.0F);
  std::copy_n(before.data<float>(), rows * columns, c.begin() + around);
  const std::int64_t blocks = (columns + 63) / 64;
  std::vector<float> packed(static_cast<std::size_t>(blocks * 64 * ((depth + 15) / 16 * 16)));
  kernels::pack_weight({weight.data<float>(), depth, columns, columns, 1}, 64, DType::f32, packed.data());
  kernels::add_product({.rows = rows,
                        .depth = depth,
                        .columns = columns,
                        .a = a.data<float>(),
                        .weight = packed.data(),
                        .bias = bias ? shift.data<float>() : nullptr,
                        .relu = relu,
                        .c = c.data() + around});
  double worst = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < columns; ++i) {
      double sum = before.data<float>()[r * columns + i] + (bias ? shift.data<float>()[i] : 0.0F);
      for (std::int64_t p = 0; p < depth; ++p) {
        sum += static_cast<double>(a.data<float>()[r * depth + p]) * weight.data<float>()[p * columns + i];
      }
      sum = relu ? std::max(sum, 0.0) : sum;
      worst = std::max(worst, std::abs(sum - c[static_cast<std::size_t>(around + r * columns + i)]));
    }
  }
  EXPECT_LT(worst, 1e-6 * static_cast<double>(depth + 4))
      << rows << " x " << depth << " x " << columns << " on " << target;
  EXPECT_EQ(std::count(c.begin(), c.begin() + around, 7.0F), around);
  EXPECT_EQ(std::count(c.end() - around, c.end(), 7.0F), around);
}

TEST(AddedProduct, AddsToWhatIsThere) {
  test::for_each_target([](const std::string& target) {
    for (const std::int64_t rows : {1, 5, 6, 67}) {
      for (const std::int64_t depth : {1, 16, 37}) {
        for (const std::int64_t columns : {1, 16, 63, 64, 100, 193}) {
          expect_sums(target, rows, depth, columns, rows != 5, depth != 16);
        }
      }
    }
    expect_sums(target, 200, 80, 128, true, true);   // threads share the rows
    expect_sums(target, 40, 300, 200, false, true);  // and here the columns
  });
}

TEST(AddedProduct, KeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> packed(64 * 16, 1.0F);
  const std::vector<float> a(1, 1.0F);
  std::vector<float> c(64, -3.0F);
  c[5] = nan;
  kernels::add_product({.rows = 1,
                        .depth = 1,
                        .columns = 64,
                        .a = a.data(),
                        .weight = packed.data(),
                        .bias = nullptr,
                        .relu = true,
                        .c = c.data()});
  EXPECT_TRUE(std::isnan(c[5]));
  EXPECT_EQ(c[6], 0);
}

}  // namespace
}  // namespace vitrail
