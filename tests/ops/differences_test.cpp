// Ops whose gradients no other test checks by finite differences.
#include <gtest/gtest.h>

#include "tests/support/gradients.h"
#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/images/conv.h"
#include "vitrail/ops/images/conv3d.h"
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

TEST(FiniteDifferences, OfVideos) {
  const ops::Conv3dOptions options{.stride = {1, 2, 1}, .padding = {1, 0, 1}, .groups = 2};
  check_gradients([&](const Inputs& in) { return ops::conv3d(in[0], in[1], in[2], options); },
                  {random_tensor({2, 4, 3, 5, 4}, 1), random_tensor({6, 2, 2, 3, 3}, 2), random_tensor({6}, 3)});
  const ops::Pool3dOptions pool{.kernel = {2, 3, 2}, .stride = {1, 2, 1}, .padding = {1, 1, 0}};
  check_gradients([&](const Inputs& in) { return ops::max_pool3d(in[0], pool); }, {spread({2, 2, 3, 5, 4})});
  check_gradients([&](const Inputs& in) { return ops::avg_pool3d(in[0], pool); }, {random_tensor({2, 2, 3, 5, 4}, 4)});
}

TEST(FiniteDifferences, OfSoftCrossEntropy) {
  const Tensor targets = ops::softmax(random_tensor({4, 7}, 2), 1);
  for (const float smoothing : {0.0F, 0.2F}) {
    check_gradients([&](const Inputs& in) { return ops::soft_cross_entropy(in[0], targets, smoothing); },
                    {random_tensor({4, 7}, 1)});
  }
}

TEST(FiniteDifferences, OfPackedAttention) {
  for (const bool causal : {false, true}) {
    check_gradients(
        [&](const Inputs& in) {
          ops::AttentionOptions options;
          options.causal = causal;
          options.bias = in[1];
          return ops::attention_packed(in[0], options);
        },
        {random_tensor({2, 5, 3, 2, 4}, 1), random_tensor({2, 5, 5}, 2)});
  }
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
