// Twenty steps of AdamW on one batch give PyTorch's losses (tools/golden/training.py).
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/model.h"
#include "vitrail/models/vit/mae.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/optim/optimizer.h"

namespace vitrail {
namespace {

const io::Safetensors& golden_training() {
  static const io::Safetensors file = test::golden("models/training.safetensors");
  return file;
}

// The losses before each of as many steps as `variant` has in the fixture.
void check_losses(models::ImageModel& net, const std::string& variant,
                  const std::function<Tensor(nn::Pass& pass)>& loss_of) {
  const auto groups = optim::groups_by_weight_decay(net.parameters, 0.05,
                                                    [&](const std::string& name) { return net.no_weight_decay(name); });
  optim::Optimizer optimizer(net.parameters, {.opt = "adamw"}, groups);
  const std::vector<float> expected = golden_training().get(variant + ".losses").values();
  ASSERT_EQ(expected.size(), 20U);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    net.parameters.zero_grad();
    nn::Pass pass{.training = true};
    autograd::Tape tape;
    const Tensor loss = loss_of(pass);
    tape.backward(loss);
    optimizer.step(1e-3);
    EXPECT_NEAR(loss.item(), expected[step], 1e-3 * expected[step]) << variant << ", step " << step;
  }
}

class TwentySteps : public testing::TestWithParam<const char*> {};

TEST_P(TwentySteps, OfAdamWGivePytorchsLosses) {
  const std::string variant = GetParam();
  models::CreateOptions options;
  options.drop_path_rate = 0;
  const models::Model model = models::load_model(test::golden_path("models") / variant, options);
  const Tensor x = golden_training().get(variant + ".x");
  std::vector<std::int64_t> classes(static_cast<std::size_t>(x.size(0)));
  for (std::size_t i = 0; i < classes.size(); ++i) {
    classes[i] = static_cast<std::int64_t>(i) % model.net->num_classes();
  }
  const Tensor labels = Tensor::from<std::int64_t>(classes, {x.size(0)});
  check_losses(*model.net, variant,
               [&](nn::Pass& pass) { return ops::cross_entropy(model.net->forward(x, pass), labels); });
}

INSTANTIATE_TEST_SUITE_P(Models, TwentySteps,
                         testing::Values("plain", "deit3", "swin", "mvit_avg", "mixer", "resnet_groups"),
                         [](const auto& info) { return std::string(info.param); });

TEST(TwentyStepsOf, AMaskedAutoencoderGiveTransformersLosses) {
  const models::Model model = models::open_masked_autoencoder((test::golden_path("models") / "hf_mae").string());
  const models::MaskedAutoencoder& mae = *models::masked_autoencoder(model);
  const Tensor x = golden_training().get("hf_mae.x");
  const models::Masking masking = mae.masking(golden_training().get("hf_mae.noise"));
  check_losses(*model.net, "hf_mae", [&](nn::Pass& pass) { return mae.loss(x, masking, pass); });
}

}  // namespace
}  // namespace vitrail
