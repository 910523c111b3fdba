// What models without positions learn of order: which of two tokens came first.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/optim/optimizer.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t tokens = 6;
constexpr std::int64_t question = tokens;  // stands behind the two

// All pairs of different tokens with the question behind them, and the first of each.
struct Pairs {
  Tensor ids, first;
  Pairs() {
    std::vector<std::int64_t> texts, answers;
    for (std::int64_t a = 0; a < tokens; ++a) {
      for (std::int64_t b = 0; b < tokens; ++b) {
        if (a != b) {
          texts.insert(texts.end(), {a, b, question});
          answers.push_back(a);
        }
      }
    }
    ids = Tensor::from(texts, {std::ssize(answers), 3});
    first = Tensor::from(answers, {std::ssize(answers)});
  }
};

// The loss of the answers after training, with logits [B, 3, V] of the texts.
double loss_after_training(const models::TextModel& model, const std::function<Tensor(const Tensor&, nn::Pass&)>& run) {
  const Pairs pairs;
  const auto groups = optim::groups_by_weight_decay(model.net->parameters, 0, [](const std::string&) { return true; });
  optim::Optimizer optimizer(model.net->parameters, {.opt = "adamw"}, groups);
  double loss = 0;
  for (int step = 0; step < 300; ++step) {
    nn::Pass pass{.training = true};
    autograd::Tape tape;
    const Tensor answers = ops::select(run(pairs.ids, pass), 1, 2);
    const Tensor mean = ops::cross_entropy(answers, pairs.first);
    loss = mean.item();
    tape.backward(mean);
    optimizer.step(5e-3);
    model.net->parameters.zero_grad();
  }
  return loss;
}

TEST(Order, IsLearnedByADecoderWithoutPositions) {
  const models::TextModel model = models::create_text_model(
      "gpt2", {.model_kwargs = R"({"pos_embed": "none", "vocab_size": 7, "n_layer": 2, "n_head": 2, "n_embd": 32})",
               .drop = 0});
  EXPECT_LT(loss_after_training(model, [&](const Tensor& ids,
                                           nn::Pass& pass) { return models::language_of(model).forward(ids, pass); }),
            0.1);
}

// It gives both orders the same answer, of which one is wrong: its loss is at least that of a coin.
TEST(Order, IsNotLearnedByAnEncoderWithoutPositions) {
  const auto loss_of = [](const std::string& positions) {
    const models::TextModel model = models::create_text_model(
        "bert-tiny", {.model_kwargs = R"({"pos_embed": ")" + positions +
                                      R"(", "vocab_size": 7, "hidden_size": 32, "intermediate_size": 64})",
                      .architecture = "BertForMaskedLM",
                      .drop = 0});
    const models::EncoderNetwork& bert = models::encoder_of(model);
    return loss_after_training(
        model, [&](const Tensor& ids, nn::Pass& pass) { return bert.masked_logits(bert.body({.ids = ids}, pass)); });
  };
  EXPECT_GE(loss_of("none"), std::log(2.0) - 1e-4);
  EXPECT_LT(loss_of("rel_bias"), 0.1);  // with positions it does
}

}  // namespace
}  // namespace vitrail::train
