#include "vitrail/models/mlp/linear_classifier.h"

#include <gmock/gmock.h>

#include "tests/models/trials.h"
#include "vitrail/ops/products/linear.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using test::random_tensor;

TEST(LinearClassifier, MapsThePixels) {
  const Model model = create_model("linear", with(R"({"img_size": [4, 6], "num_classes": 3})"));
  const auto parameter = [&](const char* name) { return model.net->parameters.at(name).value; };
  const Tensor x = random_tensor({2, 3, 4, 6});
  nn::Pass pass;
  expect_close(model.net->forward(x, pass),
               ops::linear(x.reshape({2, 72}), parameter("head.weight"), parameter("head.bias")), 1e-6);
  const Model pixels = create_model("linear", with(R"({"img_size": [4, 6], "num_classes": 0})"));
  expect_close(pixels.net->forward(x, pass), x.reshape({2, 72}), 0);
  EXPECT_EQ(pixels.net->num_features(), 72);
  EXPECT_EQ(pixels.net->parameters.count(), 0);
}

TEST(LinearClassifier, NamesTheArgumentThatIsWrong) {
  expect_refused("linear", R"({"img_size": 4096})", "more numbers than a layer can take");
  expect_refused("linear", R"({"embed_dim": 5})", "'embed_dim'");
  const Model model = create_model("linear", with(R"({"img_size": 8})"));
  EXPECT_EQ(error_of_forward(model, {2, 3, 8, 9}), "the model takes images [B, 3, 8, 8], not [2, 3, 8, 9]");
}

}  // namespace
}  // namespace vitrail::models
