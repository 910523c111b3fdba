#include "vitrail/models/recurrent/row_network.h"

#include <gmock/gmock.h>

#include "tests/models/trials.h"
#include "tests/support/errors.h"
#include "vitrail/models/base/owner.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using test::random_tensor;

// From a state of zeros, the vanilla network of one step is a dense layer of all pixels.
TEST(RowNetwork, OfOneStepIsADenseLayer) {
  const Model model =
      create_model("rnn_rows", with(R"({"img_size": 8, "rows": 8, "hidden_size": 5, "num_classes": 3})"));
  const auto parameter = [&](const char* name) { return model.net->parameters.at(name).value; };
  EXPECT_EQ(parameter("rnn.weight_ih_l0").shape(), (Shape{5, 3 * 8 * 8}));
  const Tensor x = random_tensor({4, 3, 8, 8});
  const Tensor bias = ops::add(parameter("rnn.bias_ih_l0"), parameter("rnn.bias_hh_l0"));
  const Tensor hidden = ops::tanh(ops::linear(x.reshape({4, 192}), parameter("rnn.weight_ih_l0"), bias));
  nn::Pass pass;
  expect_close(model.net->forward(x, pass), ops::linear(hidden, parameter("head.weight"), parameter("head.bias")),
               1e-6);
  EXPECT_EQ(model.net->token_layout(8, 8).rows, 1);
}

// What a step reads are the rows of all channels, from above; what is classified has seen all of them.
TEST(RowNetwork, ReadsRowsFromAbove) {
  for (const bool both : {false, true}) {
    const std::string kwargs = R"({"img_size": [6, 4], "rows": 2, "hidden_size": 5, "num_layers": 2, "num_classes": 3,
                                   "bidirectional": )";
    const Model model = create_model("lstm_rows", with(kwargs + (both ? "true}" : "false}")));
    const auto& body = known_body<RowNetwork>(*model.net);
    const Tensor x = random_tensor({2, 3, 6, 4});
    nn::Pass pass;
    const Tensor features = body.forward_features(x, pass);
    EXPECT_EQ(features.shape(), (Shape{2, 3, both ? 10 : 5}));
    // Rows further down change later outputs of the first direction alone.
    const Tensor changed = x.clone();
    changed.narrow(2, 4, 2).copy_from(random_tensor({2, 3, 2, 4}, 9));
    const Tensor after = body.forward_features(changed, pass);
    if (!both) {
      expect_close(after.narrow(1, 0, 2), features.narrow(1, 0, 2), 0);
    }
    EXPECT_GT(test::relative_error(after.select(1, 2), features.select(1, 2)), 1e-2);
    EXPECT_GT(test::relative_error(body.forward(changed, pass), body.forward(x, pass)), 1e-3);
    EXPECT_EQ(model.net->layer_of("rnn.weight_hh_l1"), 2);
    EXPECT_EQ(model.net->layer_of("head.bias"), 3);
  }
}

TEST(RowNetwork, RepeatsItsTrainingPassFromTheSameRandomStream) {
  const Model model = create_model(
      "gru_rows", with(R"({"img_size": 8, "hidden_size": 12, "num_layers": 2, "dropout": 0.3, "drop_rate": 0.2})"));
  expect_repeatable_training(model, random_tensor({4, 3, 8, 8}), "rnn.weight_ih_l0");
}

TEST(RowNetwork, NamesTheArgumentThatIsWrong) {
  expect_refused("lstm_rows", R"({"rows": 5})", "an image of 32 rows cannot be read 5 rows at a time");
  expect_refused("lstm_rows", R"({"img_size": 4096, "rows": 4096})", "more numbers than a step can read");
  expect_refused("lstm_rows", R"({"embed_dim": 5})", "'embed_dim'");
  expect_refused("rnn_rows", R"({"forget_bias": true})", "'forget_bias'");
  const Model model = create_model("rnn_rows", with(R"({"img_size": 8})"));
  EXPECT_EQ(error_of_forward(model, {2, 3, 8, 9}), "the model takes images [B, 3, 8, 8], not [2, 3, 8, 9]");
}

}  // namespace
}  // namespace vitrail::models
