// Models with batch norms in training, where these take the batch's own statistics (tools/golden/training.py).
#include "tests/models/timm_variant.h"

namespace vitrail::models {
namespace {

class BatchStatistics : public TimmVariant {};

// Logits, every gradient, and the running statistics, which follow once, checkpoints or not.
TEST_P(BatchStatistics, GivePytorchsGradients) {
  const std::string start = GetParam() + std::string(".batch.");
  const io::Safetensors golden = test::golden("models/training.safetensors");
  for (const bool checkpoint : {false, true}) {
    const Model model = load();
    nn::Pass pass{.training = true, .checkpoint = checkpoint};
    autograd::Tape tape;
    const Tensor logits = model.net->forward(golden.get(start + "x"), pass);
    test::expect_close(logits, golden.get(start + "logits"), 1e-4);
    tape.backward(logits, golden.get(start + "seed"));
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const std::string& name = parameter.name;
      if (!parameter.buffer) {
        test::expect_gradient(autograd::grad(parameter.value), golden.get(start + "grad." + name), 1e-3, name);
      } else if (parameter.value.dtype() == DType::f32) {
        test::expect_close(parameter.value, golden.get(start + name), 1e-4, name);
      } else {
        EXPECT_EQ(*parameter.value.data<std::int64_t>(), 1) << name;  // num_batches_tracked
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BatchStatistics,
                         testing::Values("resnet_basic", "resnet_bottleneck", "resnetv2_basic", "botnet", "resnet_nl",
                                         "resnet_nl_gaussian", "resnet_nl_concatenation", "resnet_nl_dot_product",
                                         "resnet_sagan", "hybrid_resnetd", "hybrid_conv_stem"),
                         variant_name);

}  // namespace
}  // namespace vitrail::models
