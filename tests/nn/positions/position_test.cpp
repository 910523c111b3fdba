#include "vitrail/nn/positions/position.h"

#include "tests/support/gradients.h"
#include "tests/support/layers.h"
#include "vitrail/nn/images/patch_embed.h"

namespace vitrail::nn {
namespace {

using test::expect_close;
using test::LayerCase;
using Inputs = std::vector<Tensor>;

TEST(SincosPositions, AreThoseOfMae) {
  const Tensor positions = sincos_positions({3, 4}, 16, 2);
  ASSERT_EQ(positions.shape(), (Shape{1, 14, 16}));
  expect_close(positions.select(0, 0).narrow(0, 2, 12), test::layer_cases().get("sincos"), 1e-6);
  for (const float value : positions.narrow(1, 0, 2).values()) {
    EXPECT_EQ(value, 0);
  }
  EXPECT_THROW(sincos_positions({3, 4}, 18, 0), Error);
}

TEST(ResamplePositions, AgreesWithTimm) {
  const Tensor x = test::layer_cases().get("resample.x");
  expect_close(resample_positions(x, {4, 6}, {3, 2}, 2), test::layer_cases().get("resample.smaller"), 1e-5);
  expect_close(resample_positions(x, {4, 6}, {7, 9}, 2), test::layer_cases().get("resample.larger"), 1e-5);
  expect_close(resample_positions(x, {4, 6}, {2, 11}, 2), test::layer_cases().get("resample.mixed"), 1e-5);
  expect_close(resample_positions(x, {4, 6}, {4, 6}, 2), x, 0);
  EXPECT_THROW(resample_positions(x, {4, 5}, {3, 2}, 2), Error);
}

// tools/golden/self_supervised.py: DINO's code resizes by a scale factor with 0.1 patches added.
TEST(ResamplePositions, AgreesWithDino) {
  const io::Safetensors file = test::golden("self_supervised/losses.safetensors");
  const Tensor x = file.get("dino.positions");
  for (const Size2 to : {Size2{2, 2}, Size2{6, 10}, Size2{3, 7}}) {
    const std::string key = "dino.positions." + std::to_string(to[0]) + "x" + std::to_string(to[1]);
    Tensor positions = x.clone();
    autograd::require_grad(positions);
    autograd::Tape tape;
    const Tensor y = resample_positions(positions, {4, 4}, to, 1, PositionResize::dino);
    expect_close(y, file.get(key), 1e-5, key);
    tape.backward(y, file.get(key + ".w"));
    expect_close(autograd::grad(positions), file.get(key + ".gradient"), 1e-5, key);
  }
  expect_close(resample_positions(x, {4, 4}, {4, 4}, 1, PositionResize::dino), x, 0);
}

// Shapes from a file are not to be trusted.
TEST(ResamplePositions, RefusesWhatIsNoTable) {
  for (const Shape& shape : {Shape{1, 17, 0}, Shape{17, 24}, Shape{1, 16, 24}, Shape{2, 17, 24}}) {
    EXPECT_THROW(resample_positions(Tensor::zeros(shape), {4, 4}, {2, 2}, 1), Error) << shape.str();
  }
}

TEST(ResamplePositions, IsDifferentiable) {
  test::check_gradients(
      [](const Inputs& in) {
        return resample_positions(in[0], {3, 2}, {4, 5}, 1);
      },
      {test::random_tensor({1, 7, 4})});
}

TEST(ResampleBiasTable, AgreesWithTimm) {
  const Tensor x = test::layer_cases().get("table.x");
  expect_close(resample_bias_table(x, {4, 5}, {7, 6}), test::layer_cases().get("table.larger"), 1e-5);
  expect_close(resample_bias_table(x, {4, 5}, {3, 3}), test::layer_cases().get("table.smaller"), 1e-5);
  expect_close(resample_bias_table(x, {4, 5}, {4, 5}), x, 0);
}

TEST(ResampleBiasTable, RefusesWhatIsNoTable) {
  for (const Shape& shape : {Shape{49, 0}, Shape{0, 2}, Shape{48, 2}, Shape{49}}) {
    EXPECT_THROW(resample_bias_table(Tensor::zeros(shape), {4, 4}, {3, 3}), Error) << shape.str();
  }
}

TEST(RelativePositionIndex, AgreesWithTimm) {
  const Tensor index = relative_position_index({3, 2}, true);
  const Tensor expected = test::layer_cases().get("index");
  ASSERT_EQ(index.shape(), expected.shape());
  EXPECT_EQ(index.values(), expected.values());
}

template <class Layer, class... Arguments>
void check_bias(const std::string& name, Arguments&&... arguments) {
  LayerCase layer_case(test::layer_cases(), name);
  const Layer layer(layer_case.scope(), std::forward<Arguments>(arguments)...);
  Pass pass;
  layer_case.check([&](const Inputs& in) { return layer(pass) + in[0]; }, {"x"});
}

TEST(RelPosBias, AgreesWithTimm) { check_bias<RelPosBias>("rel_pos_bias", Size2{3, 4}, 2, true); }

TEST(RelPosMlp, AgreesWithTimm) {
  check_bias<RelPosMlp>("rel_pos_mlp", Size2{3, 4}, 2, 8, 1, false);
  check_bias<RelPosMlp>("rel_pos_mlp_swin", Size2{4, 3}, 2, 8, 0, true);
}

TEST(PatchEmbed, IsALinearMapOfPatchesAndTheConvolutionThatEqualsIt) {
  for (const Size2 patch : {Size2{4, 4}, Size2{3, 5}, Size2{1, 1}}) {
    ParameterStore store({1});
    const PatchEmbed embed(Scope(store), patch, 3, 7);
    const Tensor x = test::random_tensor({2, 3, 13, 17});
    const Tensor y = embed(x);
    const Size2 grid = embed.grid(13, 17);
    ASSERT_EQ(y.shape(), (Shape{2, grid[0] * grid[1], 7}));
    expect_close(y, embed.by_convolution(x), 1e-5);

    // And so are their gradients.
    const Tensor dy = test::random_tensor(y.shape(), 9);
    const auto gradients = [&](const auto& function) {
      store.zero_grad();
      Tensor input = x.clone();
      autograd::require_grad(input);
      autograd::Tape tape;
      tape.backward(function(input), dy);
      return std::vector<Tensor>{autograd::grad(input), autograd::grad(embed.proj.weight),
                                 autograd::grad(embed.proj.bias)};
    };
    const std::vector<Tensor> linear = gradients([&](const Tensor& in) { return embed(in); });
    const std::vector<Tensor> convolution = gradients([&](const Tensor& in) { return embed.by_convolution(in); });
    for (std::size_t i = 0; i < linear.size(); ++i) {
      expect_close(linear[i], convolution[i], 1e-5, "gradient " + std::to_string(i));
    }
  }
}

TEST(PatchEmbed, SaysWhatItTakes) {
  ParameterStore store;
  const PatchEmbed embed(Scope(store), {4, 4}, 3, 7);
  EXPECT_THROW(embed(test::random_tensor({2, 1, 8, 8})), Error);
  EXPECT_THROW(embed(test::random_tensor({2, 3, 3, 8})), Error);
  EXPECT_THROW(embed(test::random_tensor({3, 8, 8})), Error);
}

}  // namespace
}  // namespace vitrail::nn
