#include "vitrail/train/guided_attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

// Of a patch: less than this is what rounding makes of boxes that end where the patch begins.
constexpr double least_overlap = 1e-6;

}  // namespace

std::vector<bool> touched_patches(const std::vector<data::Box>& boxes, const nn::Size2& grid) {
  const auto [rows, columns] = grid;
  std::vector<bool> result(static_cast<std::size_t>(rows * columns));
  for (const data::Box& relative : boxes) {
    const data::Box box = relative.scaled(static_cast<double>(columns), static_cast<double>(rows));
    for (std::int64_t y = 0; y < rows; ++y) {
      for (std::int64_t x = 0; x < columns; ++x) {
        const data::Box patch = {static_cast<double>(x), static_cast<double>(y), static_cast<double>(x + 1),
                                 static_cast<double>(y + 1)};
        if (std::min(patch.x1, box.x1) - std::max(patch.x0, box.x0) > least_overlap &&
            std::min(patch.y1, box.y1) - std::max(patch.y0, box.y0) > least_overlap) {
          result[static_cast<std::size_t>(y * columns + x)] = true;
        }
      }
    }
  }
  return result;
}

Tensor attention_loss(const Tensor& probabilities, const std::vector<std::vector<bool>>& targets) {
  const std::int64_t places = probabilities.size(1);
  check(std::ssize(targets) == probabilities.size(0), "{} rows of attention have {} targets", probabilities.size(0),
        targets.size());
  const Tensor wanted = Tensor::zeros(probabilities.shape());
  std::int64_t guided = 0;  // rows
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const std::vector<bool>& target = targets[row];
    check(std::ssize(target) == places, "attention to {} places has a target of {}", places, target.size());
    const auto marked = std::ranges::count(target, true);
    guided += marked > 0 ? 1 : 0;
    std::ranges::transform(target, wanted.data<float>() + static_cast<std::int64_t>(row) * places,
                           [&](bool is_marked) { return is_marked ? 1 / static_cast<float>(marked) : 0; });
  }
  constexpr float least = 1e-6F;  // a probability that is rounded to 0 has a logarithm
  const Tensor sum = ops::sum(wanted * ops::log(probabilities + least), {0, 1});
  return sum * (-1 / static_cast<float>(std::max<std::int64_t>(guided, 1)));
}

}  // namespace vitrail::train
