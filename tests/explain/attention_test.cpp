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
                                                 {2, 3, 3}));
  attention.layers.push_back(Tensor::from<float>({1.0F, 0.0F, 0.0F, 0.0F, 0.5F, 0.5F, 0.5F, 0.25F, 0.25F,  //
                                                  0.0F, 0.5F, 0.5F, 0.0F, 0.5F, 0.5F, 0.5F, 0.25F, 0.25F},
                                                 {2, 3, 3}));
  return attention;
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
