#include "vitrail/explain/attention.h"

#include "tests/support/golden.h"

namespace vitrail::explain {
namespace {

using test::expect_close;

// One class token and a 1 x 2 grid; every row sums to 1.
Attention two_layers() {
  Attention attention;
  attention.layout = {.prefix = 1, .rows = 1, .columns = 2, .class_token = true};
  attention.layers.push_back(Tensor::from<float>({0.2F, 0.3F, 0.5F, 0.1F, 0.8F, 0.1F, 0.6F, 0.2F, 0.2F,  //
                                                  0.4F, 0.1F, 0.5F, 0.3F, 0.6F, 0.1F, 0.2F, 0.2F, 0.6F},
                                                 {1, 2, 3, 3}));
  attention.layers.push_back(Tensor::from<float>({1.0F, 0.0F, 0.0F, 0.0F, 0.5F, 0.5F, 0.5F, 0.25F, 0.25F,  //
                                                  0.0F, 0.5F, 0.5F, 0.0F, 0.5F, 0.5F, 0.5F, 0.25F, 0.25F},
                                                 {1, 2, 3, 3}));
  attention.places.assign(2, {.prefix = 1, .queries = {1, 2}, .keys = {1, 2}});
  return attention;
}

// Windows of 2 x 2 on a grid of 3 x 4, shifted by 1: every token sees key k of its window with weight k.
Attention shifted_windows() {
  Attention attention;
  attention.layout = {.prefix = 0, .rows = 3, .columns = 4, .class_token = false};
  attention.places = {{.prefix = 0, .queries = {3, 4}, .keys = {3, 4}, .window = {2, 2}, .shift = {1, 1}}};
  const Tensor probabilities = Tensor::empty({4, 1, 4, 4});
  for (std::int64_t i = 0; i < probabilities.numel(); ++i) {
    probabilities.data<float>()[i] = static_cast<float>(i % 4);
  }
  attention.layers = {probabilities};
  return attention;
}

// Rolled by (1, 1), the rows are 1, 2, 0 and a filled up one, the columns 1, 2, 3, 0.
TEST(AttentionMap, PutsWindowsBackOnTheGrid) {
  const Query inside{.kind = Query::Kind::patch, .row = 1, .column = 2};  // in the window of rows 1, 2 and columns 1, 2
  expect_close(attention_map(shifted_windows(), 0, 0, inside),
               Tensor::from<float>({0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 3, 0}, {3, 4}), 1e-6);
  const Query corner{
      .kind = Query::Kind::patch, .row = 0, .column = 0};  // of row 0 and what is filled up; columns 3, 0
  expect_close(attention_map(shifted_windows(), 0, 0, corner),
               Tensor::from<float>({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {3, 4}), 1e-6);
  // All queries: a window of four tokens counts four times, one of two tokens and two filled up twice.
  const Tensor mean = attention_map(shifted_windows(), 0, 0);
  expect_close(mean.narrow(0, 2, 1), Tensor::from<float>({12.0F / 12, 8.0F / 12, 12.0F / 12, 8.0F / 12}, {1, 4}), 1e-6);
  EXPECT_FALSE(can_roll_out(shifted_windows()));
  EXPECT_THROW(rollout(shifted_windows()), Error);
}

TEST(AttentionMap, ShowsKeysOfACoarserGrid) {
  Attention attention;
  attention.layout = {.prefix = 0, .rows = 4, .columns = 4, .class_token = false};
  attention.places = {{.prefix = 0, .queries = {2, 2}, .keys = {1, 2}}};
  attention.layers = {Tensor::from<float>({0.1F, 0.9F, 0.2F, 0.8F, 0.3F, 0.7F, 0.4F, 0.6F}, {1, 1, 4, 2})};
  const Query query{.kind = Query::Kind::patch, .row = 3, .column = 1};  // covered by the token in row 1, column 0
  expect_close(attention_map(attention, 0, 0, query), Tensor::from<float>({0.3F, 0.7F}, {1, 2}), 1e-6);
}

TEST(AttentionMap, ShowsTheClassTokensRowOfOneHead) {
  expect_close(attention_map(two_layers(), 0, 1), Tensor::from<float>({0.1F, 0.5F}, {1, 2}), 1e-6);
}

TEST(AttentionMap, AveragesTheHeads) {
  expect_close(attention_map(two_layers(), 0, all_heads), Tensor::from<float>({0.2F, 0.5F}, {1, 2}), 1e-6);
}

TEST(AttentionMap, ShowsAChosenPatch) {
  const Query query{.kind = Query::Kind::patch, .row = 0, .column = 1};
  expect_close(attention_map(two_layers(), 0, 0, query), Tensor::from<float>({0.2F, 0.2F}, {1, 2}), 1e-6);
}

TEST(AttentionMap, AveragesThePatchesWhereThereIsNoClassToken) {
  Attention attention = two_layers();
  attention.layout.class_token = false;
  expect_close(attention_map(attention, 0, 0), Tensor::from<float>({0.5F, 0.15F}, {1, 2}), 1e-6);
}

TEST(AttentionMap, NamesWhatDoesNotExist) {
  EXPECT_THROW(attention_map(two_layers(), 2, 0), Error);
  EXPECT_THROW(attention_map(two_layers(), 0, 2), Error);
  EXPECT_THROW(attention_map(two_layers(), 0, 0, {.kind = Query::Kind::patch, .row = 1, .column = 0}), Error);
}

// By hand: mean heads, mix with the identity, multiply the second layer's matrix by the first's; row 0.
TEST(Rollout, IsTheProductOfTheMixedLayers) {
  // Layer means: row 0 of the second is (0.5, 0.25, 0.25); mixed (0.75, 0.125, 0.125).
  // First layer mixed: (0.65, 0.1, 0.25), (0.1, 0.85, 0.05), (0.2, 0.1, 0.7).
  const float left = 0.75F * 0.1F + 0.125F * 0.85F + 0.125F * 0.1F;
  const float right = 0.75F * 0.25F + 0.125F * 0.05F + 0.125F * 0.7F;
  expect_close(rollout(two_layers()), Tensor::from<float>({left, right}, {1, 2}), 1e-6);
}

}  // namespace
}  // namespace vitrail::explain
