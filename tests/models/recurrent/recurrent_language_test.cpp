#include "vitrail/models/recurrent/recurrent_language.h"

#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/models/text/golden_folder.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;
using ::testing::HasSubstr;

// A folder with the weights of torch's modules, and what they compute (tools/golden/recurrent_language.py).
class RecurrentLanguageVariant : public test::GoldenFolder {};

TEST_P(RecurrentLanguageVariant, GivesTorchsLogitsAndState) {
  const TextModel model = load_text_model(folder());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  expect_close(language_of(model).forward(golden.get("input_ids"), pass), golden.get("logits"), 1e-5);
  RecurrentTextState state;
  language_of(model).forward(golden.get("input_ids"), pass, &state);
  expect_close(state.state.h, golden.get("h_n"), 1e-5);
  EXPECT_EQ(state.state.c.defined(), golden.contains("c_n"));
  if (golden.contains("c_n")) {
    expect_close(state.state.c, golden.get("c_n"), 1e-5);
  }
  EXPECT_EQ(state.length(), 11);
  EXPECT_EQ(state.bytes(), (golden.contains("c_n") ? 2 : 1) * 2 * 3 * 8 * sizeof(float));
  nn::Pass half{.dtype = DType::bf16};
  expect_close(language_of(model).forward(golden.get("input_ids"), half), golden.get("logits"), 4e-2);
}

TEST_P(RecurrentLanguageVariant, HasTorchsLossAndGradients) {
  test::expect_golden_loss(load_text_model(folder()), expected());
}

TEST_P(RecurrentLanguageVariant, GoesOnFromItsStateAsFromTheWholeText) {
  const TextModel model = load_text_model(folder());
  const LanguageBody& body = language_of(model);
  const Tensor ids = expected().get("input_ids");
  nn::Pass pass;
  const Tensor whole = body.forward(ids, pass);
  const auto state = body.begin();
  expect_close(body.forward_last(ids.narrow(1, 0, 4), pass, *state), whole.select(1, 3), 1e-6);
  expect_close(body.forward(ids.narrow(1, 4, 1), pass, state.get()), whole.narrow(1, 4, 1), 1e-6);
  state->select({2, 0, 2});
  const Tensor rows = Tensor::from(std::vector<std::int64_t>{2, 0, 2}, {3});
  expect_close(body.forward(ops::index_select(ids, 0, rows).narrow(1, 5, 6), pass, state.get()),
               ops::index_select(whole, 0, rows).narrow(1, 5, 6), 1e-6);
}

TEST_P(RecurrentLanguageVariant, IsSavedToTheSameBitsAndFields) {
  test::expect_saved_alike(folder(), [](const fs::path& written) {
    EXPECT_TRUE(names_text_model(written.string()));
    EXPECT_FALSE(is_recurrent_folder(written));
  });
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentLanguageVariant,
                         testing::Values("recurrent_lstm", "recurrent_gru", "recurrent_rnn"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

// Multiplications are the elements of all weights but an embedding that is looked up.
TEST(RecurrentLanguage, CountsItsProductsForEveryCell) {
  for (const char* name : {"rnn", "lstm", "gru", "mut1", "mut2", "mut3", "nas"}) {
    for (const char* more : {"", R"(, "embedding_size": 5, "input_projection": true)", R"(, "embedding_size": 0)",
                             R"(, "proj_size": 6, "tie_word_embeddings": true, "embedding_size": 6)"}) {
      const std::string further = more;
      const bool adds_input = std::string(name) == "mut1" || std::string(name) == "mut2";
      const bool projects = std::string(name) == "lstm" || std::string(name) == "nas";
      if ((further.find("projection") != std::string::npos && !adds_input) ||
          (further.find("\"embedding_size\": 0") != std::string::npos && adds_input) ||
          (further.find("proj_size") != std::string::npos && !projects)) {
        continue;
      }
      const TextModel model = create_text_model(
          name, {.model_kwargs = R"({"vocab_size": 11, "hidden_size": 8, "num_layers": 2)" + further + "}"});
      const bool tied = further.find("tie") != std::string::npos;
      std::int64_t elements = 0;
      for (const nn::Parameter& parameter : model.net->parameters.all()) {
        const bool looked_up = parameter.name == "encoder.weight" && !tied;
        elements += parameter.value.rank() == 2 && !looked_up ? parameter.value.numel() : 0;
        EXPECT_EQ(parameter.name.find("_l1") != std::string::npos, model.net->layer_of(parameter.name) == 2);
      }
      EXPECT_EQ(model.net->flops(7), 7 * elements) << name << further;
      EXPECT_EQ(model.net->layer_of("encoder.weight"), 0);
      EXPECT_EQ(model.net->layer_of("decoder.bias"), 3);
      EXPECT_TRUE(model.net->is_head("decoder.bias"));
    }
  }
}

TEST(RecurrentLanguage, DropsWhatItReadsAndGivesInTrainingAlone) {
  const TextModel model = create_text_model(
      "gru", {.model_kwargs = R"({"vocab_size": 11, "hidden_size": 64, "num_layers": 1})", .drop = 0.5});
  const RecurrentLanguage& body = *as_recurrent(language_of(model));
  EXPECT_EQ(body.config().network.dropout, 0.5F);
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{1, 2, 3}, {1, 3});
  nn::Pass pass{.training = true};
  const auto zeros = [](const Tensor& x) {
    const std::vector<float> values = x.values();
    return std::count(values.begin(), values.end(), 0.0F);
  };
  EXPECT_GT(zeros(body.vectors()(ids, pass)), 60);
  nn::Pass still;
  EXPECT_EQ(zeros(body.vectors()(ids, still)), 0);
  expect_close(body.forward(ids, still), body.forward(ids, still), 0);
  EXPECT_GT(test::relative_error(body.forward(ids, pass), body.forward(ids, still)), 0.01);
}

TEST(RecurrentLanguage, SaysWhatCannotBe) {
  const auto error = [](const std::string& name, const std::string& kwargs) {
    return error_of([&] { create_text_model(name, {.model_kwargs = kwargs}); });
  };
  EXPECT_THAT(error("lstm", R"({"vocab_size": 9, "embedding_size": 5, "tie_word_embeddings": true})"),
              HasSubstr("wants embedding_size 5 to be the size of the state, 256"));
  EXPECT_THAT(error("gru", R"({"vocab_size": 9, "forget_bias": true})"), HasSubstr("has no field 'forget_bias'"));
  EXPECT_THAT(error("lstm", R"({"vocab_size": 9, "bidirectional": true})"), HasSubstr("has no field 'bidirectional'"));
  EXPECT_THAT(error("mut1", R"({"vocab_size": 9, "embedding_size": 5})"),
              HasSubstr("rnn: mut1 adds its input to its state, so their sizes must be equal, not 5 and 256"));
  const TextModel model = create_text_model("rnn", {.model_kwargs = R"({"vocab_size": 9, "hidden_size": 4})"});
  nn::Pass pass;
  EXPECT_THAT(error_of([&] {
                language_of(model).forward(Tensor::from(std::vector<std::int64_t>{1, 9}, {1, 2}), pass);
              }),
              HasSubstr("token 1 of text 0 is 9, but the vocabulary has the ids 0 … 8"));
  const TextModel gpt = create_text_model("gpt2", {.fill = nn::Fill::meta});
  EXPECT_EQ(as_recurrent(language_of(gpt)), nullptr);
}

}  // namespace
}  // namespace vitrail::models
