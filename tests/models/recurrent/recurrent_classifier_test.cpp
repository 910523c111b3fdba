#include "vitrail/models/recurrent/recurrent_classifier.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using ::testing::HasSubstr;

TextModel small_classifier(const std::string& architecture, bool both, double drop = 0) {
  nlohmann::json kwargs = {{"vocab_size", 9},     {"hidden_size", 6},
                           {"num_layers", 2},     {"bidirectional", both},
                           {"embedding_size", 4}, {"id2label", {{"0", "a"}, {"1", "b"}, {"2", "c"}}}};
  return create_text_model("lstm", {.model_kwargs = kwargs.dump(), .architecture = architecture, .drop = drop});
}

// Texts of unequal length in one batch give what each gives alone; what is classified is torch's last state.
TEST(RecurrentClassifier, ReadsTextsOfUnequalLength) {
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{1, 2, 3, 4, 5, 8, 7, 0, 0, 0}, {2, 5});
  const Tensor lengths = Tensor::from(std::vector<std::int64_t>{5, 2}, {2});
  for (const bool both : {false, true}) {
    for (const bool each_token : {false, true}) {
      const TextModel model =
          small_classifier(each_token ? "RecurrentForTokenClassification" : "RecurrentForSequenceClassification", both);
      const TextClassifier& classifier = *model.net->classifier();
      EXPECT_EQ(classifier.num_labels(), 3);
      EXPECT_EQ(classifier.each_token(), each_token);
      nn::Pass pass;
      const Tensor logits = classifier.classify({.ids = ids, .lengths = lengths}, pass);
      const Tensor shorter = classifier.classify({.ids = ids.narrow(0, 1, 1).narrow(1, 0, 2)}, pass);
      expect_close(each_token ? logits.narrow(0, 1, 1).narrow(1, 0, 2) : logits.narrow(0, 1, 1), shorter, 1e-6);
      const auto& network = dynamic_cast<const RecurrentClassifier&>(*model.net);
      const nn::RecurrentOutput own = network.network(network.vectors(ids.narrow(0, 0, 1), pass), pass);
      const Tensor states = each_token ? own.output
                            : both     ? ops::concat({own.state.h.select(0, 2), own.state.h.select(0, 3)}, 1)
                                       : own.state.h.select(0, 1);
      expect_close(logits.narrow(0, 0, 1), ops::linear(states, network.head.weight, network.head.bias), 1e-6);
      const Tensor mask = Tensor::from(std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 1, 0, 0, 0}, {2, 5});
      expect_close(model.net->run({.input_ids = ids, .attention_mask = mask}, pass).front().second, logits, 0);
      EXPECT_EQ(model.net->layer_of("rnn.weight_hh_l1"), 2);
      EXPECT_EQ(model.net->layer_of("classifier.bias"), 3);
      EXPECT_EQ(model.net->flops(5), network.network.flops(5) + (each_token ? 5 : 1) * network.head.weight.numel());
    }
  }
}

// A language model that is loaded as a classifier keeps what both have.
TEST(RecurrentClassifier, TakesAPretrainedNetworkAlong) {
  const test::TemporaryFolder folder;
  const TextModel language =
      create_text_model("gru", {.model_kwargs = R"({"vocab_size": 9, "hidden_size": 6, "num_layers": 1})"});
  write_text_model(language, folder.path());
  const TextModel model = load_text_model(folder.path(), {.model_kwargs = R"({"id2label": {"0": "x", "1": "y"}})",
                                                          .architecture = "RecurrentForSequenceClassification"});
  for (const char* name : {"encoder.weight", "rnn.weight_ih_l0", "rnn.bias_hh_l0"}) {
    expect_close(model.net->parameters.at(name).value, language.net->parameters.at(name).value, 0, name);
  }
  EXPECT_EQ(model.net->language(), nullptr);
  const test::TemporaryFolder other;
  write_text_model(model, other.path());
  const TextModel again = load_text_model(other.path());
  EXPECT_EQ(again.architecture, "RecurrentForSequenceClassification");
  expect_close(again.net->parameters.at("classifier.weight").value, model.net->parameters.at("classifier.weight").value,
               0);
  EXPECT_NE(load_text_model(other.path(), {.architecture = "RecurrentForCausalLM"}).net->language(), nullptr);
}

TEST(RecurrentClassifier, SaysWhatCannotBe) {
  const TextModel model = small_classifier("RecurrentForTokenClassification", true);
  nn::Pass pass;
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{1, 9}, {1, 2});
  EXPECT_THAT(test::error_of([&] { model.net->classifier()->classify({.ids = ids}, pass); }),
              HasSubstr("is 9, but the vocabulary has the ids 0 … 8"));
  EXPECT_THAT(test::error_of([&] { model.net->classifier()->classify({.ids = ids, .types = ids}, pass); }),
              HasSubstr("takes token ids without types"));
  EXPECT_THAT(test::error_of([&] { language_of(model); }), HasSubstr("RecurrentForTokenClassification"));
}

}  // namespace
}  // namespace vitrail::models
