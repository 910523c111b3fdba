#include "tests/support/layers.h"

#include "vitrail/nn/attention/attention.h"
#include "vitrail/nn/attention/block.h"
#include "vitrail/nn/attention/pool.h"
#include "vitrail/nn/drop.h"
#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/norm.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

using test::expect_close;
using test::LayerCase;
using Inputs = std::vector<Tensor>;

// A layer of one input that needs no pass.
template <class Layer, class... Arguments>
void check_layer(const std::string& name, Arguments&&... arguments) {
  LayerCase layer_case(test::layer_cases(), name);
  const Layer layer(layer_case.scope(), std::forward<Arguments>(arguments)...);
  layer_case.check([&](const Inputs& in) { return layer(in[0]); }, {"x"});
}

// A layer of one input that takes a pass, in both precisions.
template <class Layer, class... Arguments>
void check_with_pass(const std::string& name, Arguments&&... arguments) {
  LayerCase layer_case(test::layer_cases(), name);
  const Layer layer(layer_case.scope(), std::forward<Arguments>(arguments)...);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Pass pass{.dtype = dtype};
    layer_case.check([&](const Inputs& in) { return layer(in[0], pass); }, {"x"}, dtype);
  }
}

TEST(Linear, AgreesWithTorch) {
  check_layer<Linear>("linear", 7, 5);
  check_layer<Linear>("linear_without_bias", 7, 5, false);
}

TEST(Linear, CountsMultiplyAccumulates) {
  ParameterStore store;
  EXPECT_EQ(Linear(Scope(store), 7, 5).flops(3), 3 * 7 * 5);
}

TEST(Conv2d, AgreesWithTorch) {
  check_layer<Conv2d>("conv2d", 4, 6, std::array<std::int64_t, 2>{3, 2},
                      ops::ConvOptions{.stride = {2, 1}, .padding = {1, 0}, .groups = 2});
}

TEST(Conv2d, RefusesGroupsThatDoNotDivide) {
  ParameterStore store;
  EXPECT_THROW(Conv2d(Scope(store), 4, 6, {3, 3}, {.groups = 4}), Error);
}

TEST(BatchNorm2d, InEvaluationUsesTheRunningStatistics) { check_with_pass<BatchNorm2d>("batch_norm", 3); }

TEST(BatchNorm2d, InTrainingUsesTheBatchAndUpdatesTheRunningStatistics) {
  LayerCase layer_case(test::layer_cases(), "batch_norm_training");
  const BatchNorm2d norm(layer_case.scope(), 3);
  const Pass pass{.training = true};
  layer_case.check([&](const Inputs& in) { return norm(in[0], pass); }, {"x"});
  expect_close(norm.running_mean, layer_case.get("after.running_mean"), 1e-5);
  expect_close(norm.running_var, layer_case.get("after.running_var"), 1e-5);
  EXPECT_EQ(*norm.num_batches_tracked.data<std::int64_t>(),
            *layer_case.get("after.num_batches_tracked").data<std::int64_t>());
}

TEST(BatchNorm2d, KeepsItsStatisticsWhereItIsFrozen) {
  ParameterStore store;
  const BatchNorm2d norm(Scope(store) / "bn", 3);
  const Tensor x = test::random_tensor({2, 3, 4, 4});
  const Pass evaluation;
  const Tensor expected = norm(x, evaluation);
  store.set_trainable("bn.weight", false);
  const Pass training{.training = true};
  expect_close(norm(x, training), expected, 0);
  expect_close(norm.running_mean, Tensor::zeros({3}), 0);
  EXPECT_EQ(*norm.num_batches_tracked.data<std::int64_t>(), 0);
  store.set_trainable("bn.weight", true);
  norm(x, training);
  EXPECT_EQ(*norm.num_batches_tracked.data<std::int64_t>(), 1);
}

TEST(Norms, AgreeWithTimm) {
  check_layer<LayerNorm>("layer_norm", 17);
  check_layer<RmsNorm>("rms_norm", 17);
  LayerCase token(test::layer_cases(), "token_norm");
  token.check([](const Inputs& in) { return TokenNorm()(in[0]); }, {"x"});
  check_layer<Norm>("rms_norm", 17, NormConfig{NormKind::rms, 1e-6F});
}

TEST(Norms, AreFoundByName) {
  EXPECT_EQ(norm_named("rmsnorm"), NormKind::rms);
  EXPECT_THROW(norm_named("groupnorm"), Error);
}

TEST(Mlp, AgreesWithTimm) { check_with_pass<Mlp>("mlp", MlpConfig{.dim = 10, .hidden = 23, .norm = NormConfig{}}); }

TEST(GluMlp, AgreesWithTimm) {
  check_with_pass<GluMlp>("glu", MlpConfig{.dim = 10, .hidden = 24, .activation = ops::Activation::sigmoid});
  check_with_pass<GluMlp>(
      "swiglu_packed",
      MlpConfig{
          .dim = 10, .hidden = 24, .activation = ops::Activation::silu, .norm = NormConfig{NormKind::rms, 1e-6F}});
}

TEST(SwiGlu, AgreesWithTimm) {
  check_with_pass<SwiGlu>(
      "swiglu",
      MlpConfig{.dim = 10, .hidden = 13, .activation = ops::Activation::silu, .fc1_bias = false, .fc2_bias = false});
}

TEST(Attention, AgreesWithTimm) {
  AttentionConfig config{.dim = 24, .num_heads = 3, .qkv_bias = true};
  check_with_pass<Attention>("attention", config);
  config = {.dim = 24, .num_heads = 3, .proj_bias = false, .qk_norm = NormConfig{}, .scale_norm = NormConfig{}};
  check_with_pass<Attention>("attention_normed", config);
}

TEST(Attention, TakesAnyDimensionsFusedAndApart) {
  AttentionConfig config{.dim = 10, .num_heads = 3, .key_dim = 4, .value_dim = 6, .out_dim = 8};
  config.fused = true;
  config.qkv_bias = true;
  check_with_pass<Attention>("attention_free_fused", config);
  config.fused = false;
  config.qkv_bias = false;
  config.qk_norm = NormConfig{};
  check_with_pass<Attention>("attention_free_apart", config);
}

TEST(CrossAttention, TakesAnyDimensionsFusedAndApart) {
  AttentionConfig config{.dim = 10, .context_dim = 14, .num_heads = 3, .key_dim = 4, .value_dim = 6, .out_dim = 8};
  config.qkv_bias = true;
  for (const bool fused : {true, false}) {
    config.fused = fused;
    config.qk_norm = fused ? std::optional(NormConfig{}) : std::nullopt;
    LayerCase layer_case(test::layer_cases(), fused ? "cross_attention_fused" : "cross_attention_apart");
    const CrossAttention attention(layer_case.scope(), config);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Pass pass{.dtype = dtype};
      layer_case.check([&](const Inputs& in) { return attention(in[0], in[1], pass); }, {"x", "context"}, dtype);
    }
  }
}

// What the layer makes of x, whether the recorder listens or not.
template <class Layer>
Tensor recorded_output(const Layer& layer, const Tensor& x, Recorder& recorder) {
  Pass pass;
  const Tensor without = layer(x, pass);
  pass.recorder = &recorder;
  const Tensor with = layer(x, pass);
  expect_close(with, without, 0);
  return with;
}

TEST(Attention, GivesItsMapToARecorderAndTheSameOutput) {
  ParameterStore store;
  AttentionConfig config{.dim = 12, .num_heads = 3, .qkv_bias = true};
  const Attention attention(Scope(store) / "encoder" / 3 / "self", config);
  const Attention other(Scope(store) / "decoder" / 3 / "self", config);
  const Tensor x = test::random_tensor({2, 5, 12});
  Recorder recorder(false, true);
  recorded_output(attention, x, recorder);
  recorded_output(other, x, recorder);
  recorded_output(attention, x, recorder);  // again: takes the place of the first
  ASSERT_EQ(recorder.attention().size(), 2U);
  EXPECT_EQ(recorder.attention()[0].name, "encoder.3.self");
  EXPECT_EQ(recorder.attention()[1].name, "decoder.3.self");
  EXPECT_THROW(recorder.attention().at("decoder.3.cross"), Error);
  const Tensor map = recorder.attention().at("encoder.3.self").value;
  ASSERT_EQ(map.shape(), (Shape{2, 3, 5, 5}));
  const std::vector<float> values = map.values();
  for (std::size_t row = 0; row < values.size(); row += 5) {
    EXPECT_NEAR(values[row] + values[row + 1] + values[row + 2] + values[row + 3] + values[row + 4], 1, 1e-5);
  }
}

TEST(Attention, RefusesAWidthThatItsHeadsDoNotDivide) {
  ParameterStore store;
  EXPECT_THROW(Attention(Scope(store), {.dim = 10, .num_heads = 3}), Error);
}

TEST(AttentionPoolLatent, AgreesWithTimm) {
  check_with_pass<AttentionPoolLatent>("attention_pool",
                                       AttentionPoolConfig{.dim = 24, .num_heads = 3, .mlp_ratio = 2});
}

// The map that a recorder gets says what is pooled: with it, values, projection and Mlp give the output.
TEST(AttentionPoolLatent, GivesItsMapToARecorderAndTheSameOutput) {
  ParameterStore store({3});
  const AttentionPoolLatent pool(Scope(store), {.dim = 12, .num_heads = 3, .mlp_ratio = 2});
  const Tensor x = test::random_tensor({2, 5, 12});
  Recorder recorder(false, true);
  const Tensor y = recorded_output(pool, x, recorder);
  EXPECT_TRUE(recorder.attention().empty());
  const Tensor map = recorder.pool_attention()[0].value;
  ASSERT_EQ(map.shape(), (Shape{2, 3, 1, 5}));
  expect_close(ops::sum(map, {3}), Tensor::full({2, 3, 1}, 1), 1e-5);
  const Tensor values = ops::narrow((*pool.attention.kv)(x), 2, 12, 12);  // behind the keys
  const Tensor by_head = ops::permute(ops::reshape(values, {2, 5, 3, 4}), {0, 2, 1, 3});
  const Tensor pooled = ops::permute(ops::matmul(map, by_head), {0, 2, 1, 3});  // [2, 1, 3, 4]
  const Tensor z = pool.attention.proj(ops::reshape(pooled, {2, 1, 12}));
  Pass pass;
  expect_close(ops::select(pool.mlp(pool.norm(z), pass, z), 1, 0), y, 1e-5);
  Recorder features(true, false);
  recorded_output(pool, x, features);
  EXPECT_TRUE(features.pool_attention().empty());
}

BlockConfig block_config() {
  return {.attention = {.dim = 24, .num_heads = 3, .qkv_bias = true}, .mlp = {.dim = 24, .hidden = 48}};
}

TEST(Block, AgreesWithTimm) {
  BlockConfig config = block_config();
  check_with_pass<Block>("block", config);
  config.init_values = 0.1F;
  check_with_pass<Block>("block_scaled", config);
  config.norm_place = NormPlace::res_post;
  check_with_pass<Block>("block_post_norm", config);
}

// A mask, lengths and a bias go through the block to its attention.
TEST(Block, GivesAttentionWhatItIsGiven) {
  ParameterStore store({5});
  const Block block(Scope(store), block_config());
  const Tensor x = test::random_tensor({2, 5, 24});
  const Tensor mask = Tensor::full({5}, 1, DType::boolean);
  mask.narrow(0, 3, 2).fill(0);
  const Tensor bias = Tensor::zeros({5});
  bias.narrow(0, 3, 2).fill(-INFINITY);
  Pass pass;
  const Tensor masked = block(x, pass, {.mask = mask});
  expect_close(block(x, pass, {.lengths = Tensor::from<std::int64_t>({3, 3}, {2})}), masked, 1e-6);
  expect_close(block(x, pass, {.bias = bias}), masked, 1e-6);
  EXPECT_GT(test::relative_error(block(x, pass), masked), 1e-4);
  EXPECT_THROW(block(x, pass, {.residual = x}), Error);
}

TEST(Block, ScalesItsBranchesWhereItsNormsStandBehind) {
  BlockConfig config = block_config();
  config.norm_place = NormPlace::post;
  config.init_values = 0.0F;
  ParameterStore store({5});
  const Block block(Scope(store), config);
  const Tensor x = test::random_tensor({2, 5, 24});
  Pass pass;
  expect_close(block(x, pass), block.norm2(block.norm1(x)), 1e-6);
}

TEST(Block, DropsItsBranchesForWholeSamplesInTraining) {
  BlockConfig config = block_config();
  config.drop_path = 0.5F;
  ParameterStore store({1});
  const Block block(Scope(store), config);
  const Tensor x = test::random_tensor({64, 3, 24});
  Pass pass{.training = true, .random = RandomStream(7)};
  const Tensor y = block(x, pass);
  int untouched = 0;
  for (std::int64_t b = 0; b < 64; ++b) {
    untouched += test::relative_error(y.select(0, b), x.select(0, b)) == 0 ? 1 : 0;
  }
  EXPECT_GT(untouched, 4);  // a quarter in the mean: both branches dropped
  EXPECT_LT(untouched, 32);
  Pass again{.training = true, .random = RandomStream(7)};
  expect_close(block(x, again), y, 0);
  Pass evaluation;
  EXPECT_GT(test::relative_error(block(x, evaluation), y), 1e-3);
}

TEST(PoolTokens, TakesTheTokensThatItsNameSays) {
  const Tensor x = Tensor::from<float>({9, 9, 1, -2, 3, 4, 5, 0}, {1, 4, 2});  // a prefix token and three patches
  expect_close(pool_tokens(x, Pool::token, 1), Tensor::from<float>({9, 9}, {1, 2}), 0);
  expect_close(pool_tokens(x, Pool::sum, 1), Tensor::from<float>({9, 2}, {1, 2}), 1e-6);
  expect_close(pool_tokens(x, Pool::avg, 1), Tensor::from<float>({3, 2.0F / 3}, {1, 2}), 1e-6);
  expect_close(pool_tokens(x, Pool::max, 1), Tensor::from<float>({5, 4}, {1, 2}), 0);
  expect_close(pool_tokens(x, Pool::avgmax, 1), Tensor::from<float>({4, 7.0F / 3}, {1, 2}), 1e-6);
  expect_close(pool_tokens(x, Pool::avg, 0), Tensor::from<float>({4.5F, 2.75F}, {1, 2}), 1e-6);
  expect_close(pool_tokens(x, Pool::none, 1), x, 0);
}

TEST(PoolTokens, HasTimmsNames) {
  EXPECT_EQ(pool_named(""), Pool::none);
  EXPECT_EQ(name_of(pool_named("avgmax")), "avgmax");
  EXPECT_THROW(pool_named("mean"), Error);
}

}  // namespace
}  // namespace vitrail::nn
