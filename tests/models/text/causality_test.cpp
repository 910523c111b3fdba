// What makes a decoder one: no token sees a later one.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

using test::expect_close;

constexpr std::int64_t length = 9;

// Small decoders of random weights, whose heads are not tied to the embeddings.
class Causality : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  TextModel model() const {
    const auto& [name, positions] = GetParam();
    const std::string sizes = std::string(name) == "gpt2" ? R"("n_embd": 24, "n_head": 3, "n_layer": 2)"
                              : std::string(name) == "bloom-560m"
                                  ? R"("hidden_size": 24, "n_head": 3, "n_layer": 2)"
                                  : R"("hidden_size": 24, "num_attention_heads": 6, "num_key_value_heads": 2,
                                       "num_hidden_layers": 2, "intermediate_size": 40)";
    const std::string chosen = std::string(positions).empty() ? "" : fmt::format(R"("pos_embed": "{}", )", positions);
    return create_text_model(name, {.model_kwargs = fmt::format(
                                        R"({{"vocab_size": 20, "tie_word_embeddings": false, {}{}}})", chosen, sizes)});
  }
  // A text whose tokens all differ, so that the row of a token in the embedding is that of a place.
  static Tensor text() {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < length; ++i) {
      ids.push_back((7 * i + 3) % 20);
    }
    return Tensor::from(ids, {1, length});
  }
};

TEST_P(Causality, LeavesLaterTokensNoGradient) {
  const TextModel decoder = model();
  const Tensor ids = text();
  const Tensor* embedding = nullptr;
  for (const nn::Parameter& parameter : decoder.net->parameters.all()) {
    const bool is_embedding = parameter.name.ends_with("wte.weight") ||
                              parameter.name.ends_with("word_embeddings.weight") ||
                              parameter.name.ends_with("embed_tokens.weight");
    embedding = is_embedding ? &parameter.value : embedding;
  }
  ASSERT_NE(embedding, nullptr);
  for (std::int64_t i = 0; i < length; ++i) {
    decoder.net->parameters.zero_grad();
    nn::Pass pass;
    autograd::Tape tape;
    const Tensor logits = ops::narrow(language_of(decoder).forward(ids, pass), 1, i, 1);
    tape.backward(logits, test::random_tensor(logits.shape(), 3));
    const Tensor gradient = autograd::grad(*embedding);
    for (std::int64_t j = 0; j < length; ++j) {
      const std::vector<float> row = gradient.select(0, ids.data<std::int64_t>()[j]).contiguous().values();
      const bool zero = std::ranges::all_of(row, [](float value) { return value == 0; });
      EXPECT_EQ(zero, j > i) << "of output " << i << " to input " << j;
    }
  }
}

TEST_P(Causality, GivesInOnePassWhatEachBeginningGivesAlone) {
  const TextModel decoder = model();
  nn::Pass pass;
  const Tensor whole = language_of(decoder).forward(text(), pass);
  for (std::int64_t n = 1; n <= length; ++n) {
    const Tensor alone = language_of(decoder).forward(text().narrow(1, 0, n), pass);
    expect_close(alone.narrow(1, n - 1, 1), whole.narrow(1, n - 1, 1), 1e-5);
  }
}

// Self-attention of queries, keys and values that are x Wq, x Wk, x Wv.
Tensor attend(const Tensor& queries, const Tensor& context, const std::array<Tensor, 3>& weights,
              const ops::AttentionOptions& options) {
  const auto heads = [](const Tensor& x, const Tensor& weight) {
    const Tensor y = ops::matmul(x, weight);
    return ops::permute(ops::reshape(y, {1, y.size(1), 2, y.size(2) / 2}), {0, 2, 1, 3});
  };
  const Tensor y =
      ops::attention(heads(queries, weights[0]), heads(context, weights[1]), heads(context, weights[2]), options);
  return ops::reshape(ops::permute(y, {0, 2, 1, 3}), {1, queries.size(1), -1});
}

// The strict form, in whose first layer token i sees the tokens j < i, predicts x_i from what comes before it, as the
// usual form (j ≤ i) does with the text shifted by one.
TEST(StrictCausality, IsThatOfTheShiftedText) {
  constexpr std::int64_t dim = 6;
  Tensor x = test::random_tensor({1, length, dim}, 1);
  autograd::require_grad(x);
  std::array<std::array<Tensor, 3>, 2> weights;
  for (std::size_t i = 0; i < 6; ++i) {
    weights[i / 3][i % 3] = test::random_tensor({dim, dim}, static_cast<unsigned>(2 + i));
  }
  Tensor below = Tensor::empty({length, length}, DType::boolean);    // j < i
  Tensor started = Tensor::empty({length, length}, DType::boolean);  // all but the place before the text
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      below.data<bool>()[i * length + j] = j < i;
      started.data<bool>()[i * length + j] = j > 0;
    }
  }
  const auto output = [&](bool strict) {
    const Tensor shifted = ops::pad(ops::narrow(x, 1, 0, length - 1), 1, 1, 0);
    const Tensor first = strict ? attend(shifted, x, weights[0], {.mask = below})
                                : attend(shifted, shifted, weights[0], {.causal = true, .mask = started});
    const Tensor states = shifted + first;
    return states + attend(states, states, weights[1], {.causal = true});
  };
  expect_close(output(true), output(false), 1e-6);
  for (std::int64_t i = 0; i < length; ++i) {
    std::vector<Tensor> gradients;
    for (const bool strict : {true, false}) {
      autograd::zero_grad(x);
      autograd::Tape tape;
      const Tensor one = ops::narrow(output(strict), 1, i, 1);
      tape.backward(one, test::random_tensor(one.shape(), 9));
      const Tensor gradient = autograd::grad(x);
      gradients.push_back(gradient.defined() ? gradient.clone() : Tensor::zeros(x.shape()));
      for (const float value : gradients.back().narrow(1, i, length - i).contiguous().values()) {
        EXPECT_EQ(value, 0) << "of output " << i;
      }
    }
    if (i > 0) {
      expect_close(gradients[0], gradients[1], 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Causality,
                         testing::Values(std::pair("gpt2", ""), std::pair("gpt2", "none"), std::pair("gpt2", "rope"),
                                         std::pair("gpt2", "alibi_learn"), std::pair("gpt2", "rel_bucket"),
                                         std::pair("gpt2", "rel_bias"), std::pair("bloom-560m", ""),
                                         std::pair("smollm2-135m", "")),
                         [](const testing::TestParamInfo<std::pair<const char*, const char*>>& info) {
                           std::string name = std::string(info.param.first) + "_" + info.param.second;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

}  // namespace
}  // namespace vitrail::models
