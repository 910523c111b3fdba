#include "vitrail/kernels/pack_weight.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/targets.h"

namespace vitrail {
namespace {

// Every element where oneDNN's format has it, zeros around the matrix, and nothing behind.
template <class T>
void expect_blocks(const std::string& target, std::int64_t rows, std::int64_t columns, std::int64_t width,
                   bool dense_rows) {
  constexpr std::int64_t per_word = 4 / sizeof(T);
  constexpr std::int64_t height = 16 * per_word;
  const std::int64_t stride = (dense_rows ? columns : rows) + 3;
  const Tensor elements = test::random_tensor({(dense_rows ? rows : columns) * stride}, 1);
  const kernels::PlainWeight matrix{elements.data<float>(), rows, columns, dense_rows ? stride : 1,
                                    dense_rows ? 1 : stride};
  const std::int64_t down = (rows + height - 1) / height;
  const std::int64_t across = (columns + width - 1) / width;
  std::vector<T> expected(static_cast<std::size_t>(down * across * height * width + 8), T(0.0F));
  std::fill(expected.end() - 8, expected.end(), T(7.0F));
  std::vector<T> packed(expected.size(), T(7.0F));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t block = c / width * down + r / height;
      const std::int64_t word = (block * 16 + r % height / per_word) * width + c % width;
      expected[static_cast<std::size_t>(word * per_word + r % per_word)] =
          T(matrix.data[r * matrix.row_stride + c * matrix.column_stride]);
    }
  }
  kernels::pack_weight(matrix, width, dtype_of<T>::value, packed.data());
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    wrong += static_cast<float>(packed[i]) == static_cast<float>(expected[i]) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0) << rows << " x " << columns << " in blocks of " << width << " on " << target
                      << (dense_rows ? ", rows" : ", columns") << " dense";
}

TEST(PackWeight, LaysTheMatrixOutInBlocks) {
  test::for_each_target([](const std::string& target) {
    for (const std::int64_t rows : {1, 16, 31, 32, 65}) {
      for (const std::int64_t columns : {1, 15, 64, 100, 193}) {
        for (const std::int64_t width : {16, 32, 48, 64}) {
          for (const bool dense_rows : {true, false}) {
            expect_blocks<float>(target, rows, columns, width, dense_rows);
            expect_blocks<bf16>(target, rows, columns, width, dense_rows);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace vitrail
