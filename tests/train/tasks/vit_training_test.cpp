// Twenty steps of AdamW on one batch give PyTorch's losses (tools/golden/vit.py).
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/model.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/optim/optimizer.h"

namespace vitrail {
namespace {

void check_losses(const std::string& variant) {
  const io::Safetensors golden = test::golden("models/training.safetensors");
  const models::Model model = models::load_model(test::golden_path("models") / variant);
  models::ImageModel& net = *model.net;
  const auto groups = optim::groups_by_weight_decay(net.parameters, 0.05,
                                                    [&](const std::string& name) { return net.no_weight_decay(name); });
  optim::Optimizer optimizer(net.parameters, {.opt = "adamw"}, groups);
  const Tensor labels = Tensor::from<std::int64_t>({0, 1, 2, 3, 4, 5, 6, 0}, {8});
  const Tensor x = golden.get(variant + ".x");
  std::vector<float> losses;
  for (int step = 0; step < 20; ++step) {
    net.parameters.zero_grad();
    nn::Pass pass{.training = true};
    autograd::Tape tape;
    const Tensor loss = ops::cross_entropy(net.forward(x, pass), labels);
    tape.backward(loss);
    optimizer.step(1e-3);
    losses.push_back(loss.item());
  }
  const std::vector<float> expected = golden.get(variant + ".losses").values();
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected[i], 1e-3 * expected[i]) << variant << ", step " << i;
  }
}

TEST(VitTraining, TwentyStepsOfAdamWGivePytorchsLosses) {
  check_losses("plain");
  check_losses("deit3");
}

}  // namespace
}  // namespace vitrail
