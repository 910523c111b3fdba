#include "vitrail/models/text/encoder.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/nn/attention/block_names.h"
#include "vitrail/nn/positions/absolute_position.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {
namespace {

using test::error_of;
using test::expect_close;

EncoderConfig small_encoder() {
  EncoderConfig c{.vocab_size = 11, .max_positions = 8, .dim = 16, .depth = 2};
  c.block.attention = {.dim = 16, .num_heads = 2, .qkv_bias = true};
  c.block.mlp = {.dim = 16, .hidden = 20};
  c.block.norm_place = nn::NormPlace::post;
  c.positions.added = nn::TokenPositionKind::learned;
  c.type_vocab_size = 2;
  c.embedding_norm = nn::NormConfig{};
  c.names = {.embedding = "tokens",
             .positions = "places",
             .types = "types",
             .embedding_norm = "start",
             .blocks = "layer",
             .norm = "end"};
  return c;
}

const Tensor& some_ids() {
  static const Tensor ids = Tensor::from<std::int64_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {2, 5});
  return ids;
}

TEST(Encoder, GivesTextsWithPaddingWhatTheyGetAlone) {
  nn::ParameterStore store;
  const Encoder encoder(nn::Scope(store), small_encoder());
  nn::Pass pass;
  const Tensor types = Tensor::from<std::int64_t>({0, 0, 1, 1, 1, 0, 1, 1, 0, 0}, {2, 5});
  const Tensor both =
      encoder({.ids = some_ids(), .types = types, .lengths = Tensor::from<std::int64_t>({5, 3}, {2})}, pass);
  const auto alone = [&](std::int64_t text, std::int64_t length) {
    const auto part = [&](const Tensor& of) { return of.narrow(0, text, 1).narrow(1, 0, length); };
    expect_close(both.narrow(0, text, 1).narrow(1, 0, length),
                 encoder({.ids = part(some_ids()), .types = part(types)}, pass), 1e-6);
  };
  alone(0, 5);
  alone(1, 3);
}

TEST(Encoder, TakesTypeZeroWhereThereAreNone) {
  nn::ParameterStore store;
  const Encoder encoder(nn::Scope(store), small_encoder());
  nn::Pass pass;
  expect_close(encoder({.ids = some_ids()}, pass),
               encoder({.ids = some_ids(), .types = Tensor::zeros({2, 5}, DType::i64)}, pass), 0);
}

// Every token sees the others, so that without positions their order says nothing.
TEST(Encoder, KnowsNoOrderWithoutPositions) {
  EncoderConfig config = small_encoder();
  config.positions.added = nn::TokenPositionKind::none;
  nn::ParameterStore store;
  const Encoder encoder(nn::Scope(store), config);
  nn::Pass pass;
  const Tensor forth = encoder({.ids = Tensor::from<std::int64_t>({3, 1, 4}, {1, 3})}, pass);
  const Tensor back = encoder({.ids = Tensor::from<std::int64_t>({4, 1, 3}, {1, 3})}, pass);
  expect_close(back.narrow(1, 0, 1), forth.narrow(1, 2, 1), 1e-6);
  expect_close(back.narrow(1, 1, 1), forth.narrow(1, 1, 1), 1e-6);
}

TEST(Encoder, ScalesEmbeddedTokensAndAddsPositions) {
  EncoderConfig config{
      .dim = 6, .depth = 0, .embedding_scale = 2, .positions = {.added = nn::TokenPositionKind::sines}};
  const Tensor x = test::random_tensor({2, 3, 6});
  nn::Pass pass;
  const auto run = [&](const EncoderConfig& with) {
    nn::ParameterStore store;
    return Encoder(nn::Scope(store), with)({.embedded = x}, pass);
  };
  expect_close(run(config), x * 2.0F + nn::sine_positions(3, 6), 1e-6);
  config.positions.added = nn::TokenPositionKind::sine_halves;
  const std::vector<float> sines = nn::sine_positions(3, 6).values();
  std::vector<float> halves;
  for (std::size_t row = 0; row < 18; row += 6) {
    for (const std::size_t column : {0, 2, 4, 1, 3, 5}) {
      halves.push_back(sines[row + column]);
    }
  }
  expect_close(run(config), x * 2.0F + Tensor::from(halves, {3, 6}), 1e-6);
}

TEST(Encoder, CountsPositionsFromItsOffset) {
  EncoderConfig config = small_encoder();
  config.depth = 0;
  config.embedding_norm.reset();
  config.positions.offset = 2;
  nn::ParameterStore store;
  const Encoder encoder(nn::Scope(store), config);
  EXPECT_EQ(store.at("places.weight").value.size(0), 10);
  nn::Pass pass;
  const Tensor one = encoder({.ids = Tensor::from<std::int64_t>({7}, {1, 1})}, pass);
  const Tensor expected = store.at("tokens.weight").value.select(0, 7) + store.at("places.weight").value.select(0, 2) +
                          store.at("types.weight").value.select(0, 0);
  expect_close(one.reshape({16}), expected, 1e-6);
}

TEST(Encoder, IsRecordedAndNumbersItsLayers) {
  EncoderConfig config = small_encoder();
  config.block.norm_place = nn::NormPlace::pre;
  config.norm = nn::NormConfig{};
  nn::ParameterStore store;
  const Encoder encoder(nn::Scope(store) / "model", config);
  nn::Recorder recorder(true, true);
  nn::Pass pass{.recorder = &recorder};
  const Tensor out = encoder({.ids = some_ids(), .lengths = Tensor::from<std::int64_t>({5, 3}, {2})}, pass);
  EXPECT_EQ(recorder.features()[1].name, "layer.1");
  EXPECT_GT(test::relative_error(out, recorder.features()[1].value), 0.1);  // the last norm
  const Tensor map = recorder.attention()[0].value;
  EXPECT_EQ(recorder.attention()[0].name, "model.layer.0.attn");
  EXPECT_EQ(map.shape(), (Shape{2, 2, 5, 5}));
  for (std::int64_t n = 0; n < 5; ++n) {
    EXPECT_EQ(map.select(0, 1).select(0, 0).select(0, n).select(0, 3).item(), 0);
    EXPECT_EQ(map.select(0, 1).select(0, 1).select(0, n).select(0, 4).item(), 0);
  }
  EXPECT_EQ(encoder.layer_of("places.weight"), 0);
  EXPECT_EQ(encoder.layer_of("start.bias"), 0);
  EXPECT_EQ(encoder.layer_of("layer.1.norm1.bias"), 2);
  EXPECT_EQ(encoder.layer_of("end.bias"), 3);
}

TEST(Encoder, SaysWhatIsWrongWithItsInput) {
  nn::ParameterStore store;
  const Encoder encoder(nn::Scope(store), small_encoder());
  nn::Pass pass;
  const auto error = [&](const EncoderInput& input) { return error_of([&] { encoder(input, pass); }); };
  EXPECT_EQ(error({.ids = Tensor::from<std::int64_t>({1, 2, 11, 3}, {1, 4})}),
            "token 2 of text 0 is 11, but the vocabulary has the ids 0 … 10");
  EXPECT_EQ(error({.ids = Tensor::zeros({1, 9}, DType::i64)}),
            "the text has 9 tokens, but the model is made for at most 8");
  EXPECT_EQ(error({.ids = some_ids(), .types = Tensor::zeros({2, 4}, DType::i64)}),
            "the types of tokens must be [2, 5] i64, not [2, 4] i64");
  EXPECT_EQ(error({.ids = some_ids(), .types = Tensor::from<std::int64_t>({0, 0, 1, 1, 1, 0, 2, 1, 0, 0}, {2, 5})}),
            "token 1 of text 1 has the type 2, but the model has the types 0 … 1");
  EXPECT_EQ(error({.ids = some_ids(), .lengths = Tensor::from<std::int64_t>({5}, {1})}),
            "attention: the lengths must be [2] i64, not [1] i64");
  EXPECT_EQ(error({.embedded = Tensor::zeros({1, 2, 3})}),
            "the encoder takes embedded tokens [B, N, 16], not [1, 2, 3]");
  EncoderConfig bare = small_encoder();
  bare.vocab_size = 0;
  bare.type_vocab_size = 0;
  nn::ParameterStore other;
  const Encoder of_states(nn::Scope(other), bare);
  EXPECT_EQ(error_of([&] { of_states({.ids = some_ids()}, pass); }),
            "the encoder has no embedding of tokens: it takes embedded ones");
  EXPECT_EQ(error_of([&] {
              of_states({.types = Tensor::zeros({1, 2}, DType::i64), .embedded = Tensor::zeros({1, 2, 16})}, pass);
            }),
            "the model's tokens have no types");
}

}  // namespace
}  // namespace vitrail::models
