// What makes a decoder one: no token sees a later one.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/text/text_model.h"
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
