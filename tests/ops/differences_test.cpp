// Ops whose gradients no other test checks by finite differences.
#include <gtest/gtest.h>

#include "tests/support/gradients.h"
#include "vitrail/ops/images/conv.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::test {
namespace {

using Inputs = std::vector<Tensor>;

// Values far from each other, so that no step of the differences changes which one is the largest.
Tensor spread(const Shape& shape) {
  const Tensor x = random_tensor(shape, 5, 1e-3F);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data<float>()[i] += static_cast<float>((i * 7919) % 101) * 0.3F;
  }
  return x;
}

TEST(FiniteDifferences, OfPooling) {
  const ops::PoolOptions options{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}};
  check_gradients([&](const Inputs& in) { return ops::max_pool2d(in[0], options); }, {spread({2, 3, 7, 5})});
  check_gradients([&](const Inputs& in) { return ops::avg_pool2d(in[0], options); }, {random_tensor({2, 3, 7, 5}, 1)});
  check_gradients(
      [&](const Inputs& in) {
        return ops::adaptive_avg_pool2d(in[0], {3, 4});
      },
      {random_tensor({2, 3, 7, 5}, 2)});
}

TEST(FiniteDifferences, OfPickingElements) {
  const Tensor places = Tensor::from<std::int64_t>({2, 0, 2, 1, 1, 3}, {2, 3});
  check_gradients([&](const Inputs& in) { return ops::gather(in[0], 0, places); }, {random_tensor({4, 3}, 1)});
  const Tensor rows = Tensor::from<std::int64_t>({3, 0, 3}, {3});
  check_gradients([&](const Inputs& in) { return ops::index_select(in[0], 1, rows); }, {random_tensor({2, 4, 3}, 2)});
}

TEST(FiniteDifferences, OfMeanSquaredError) {
  check_gradients([](const Inputs& in) { return ops::mse_loss(in[0], in[1]); },
                  {random_tensor({3, 5}, 1), random_tensor({3, 5}, 2)});
}

TEST(FiniteDifferences, OfShapes) {
  const Inputs one = {random_tensor({2, 3, 4}, 1)};
  check_gradients([](const Inputs& in) { return ops::reshape(in[0], {4, -1}); }, one);
  check_gradients([](const Inputs& in) { return ops::permute(in[0], {2, 0, 1}); }, one);
  check_gradients([](const Inputs& in) { return ops::transpose(in[0], 0, 2); }, one);
  check_gradients([](const Inputs& in) { return ops::expand(ops::narrow(in[0], 1, 1, 1), {2, 5, 4}); }, one);
  check_gradients([](const Inputs& in) { return ops::select(in[0], 1, 2); }, one);
  check_gradients([](const Inputs& in) { return ops::squeeze(ops::unsqueeze(in[0], 1), 1); }, one);
  check_gradients([](const Inputs& in) { return ops::contiguous(ops::transpose(in[0], 0, 1)); }, one);
  check_gradients([](const Inputs& in) { return ops::pad(in[0], 1, 2, 1, 7); }, one);
  check_gradients([](const Inputs& in) { return ops::flip(in[0], 2); }, one);
  check_gradients([](const Inputs& in) { return ops::roll(in[0], 1, 2); }, one);
  const Inputs two = {random_tensor({2, 3}, 1), random_tensor({2, 3}, 2)};
  check_gradients([](const Inputs& in) { return ops::concat({in[0], in[1], in[0]}, 1); }, two);
  check_gradients([](const Inputs& in) { return ops::stack({in[1], in[0]}, 0); }, two);
  check_gradients([](const Inputs& in) { return ops::split(in[0], {1, 2}, 1)[1]; }, {two[0]});
}

}  // namespace
}  // namespace vitrail::test
