#include "tests/models/timm_variant.h"

#include <algorithm>
#include <cmath>

#include "tests/models/trials.h"
#include "vitrail/kernels/cpu.h"

namespace vitrail::models {
namespace {

TEST_P(TimmVariant, GivesTimmsLogits) {
  const Model model = load();
  nn::Pass pass;
  test::expect_close(model.net->forward(expected().get("x"), pass), expected().get("logits"), 1e-4);
}

TEST_P(TimmVariant, GivesTimmsLogitsInBf16) {
  const Model model = load();
  nn::Pass pass{.dtype = DType::bf16};
  const Tensor logits = model.net->forward(expected().get("x"), pass);
  EXPECT_EQ(logits.dtype(), DType::f32);
  // Without bf16 instructions each product is rounded once more.
  test::expect_close(logits, expected().get("logits"), kernels::has_bf16() ? 2e-2 : 3e-2);
}

// The recorder gets what timm has, no more and no less.
TEST_P(TimmVariant, RecordsTimmsFeaturesAndAttention) {
  const Model model = load();
  nn::Recorder recorder(true, true);
  nn::Pass pass{.recorder = &recorder};
  model.net->forward(expected().get("x"), pass);
  const io::Safetensors golden = expected();
  const auto check = [&](const std::string& what, const nn::Records& recorded) {
    std::size_t count = 0;
    for (const std::string& name : golden.names()) {
      if (name.starts_with(what + ".")) {
        const auto index = static_cast<std::size_t>(std::stoi(name.substr(what.size() + 1)));
        ASSERT_LT(index, recorded.size()) << name;
        test::expect_close(recorded[index].value, golden.get(name), 1e-4, name);
        ++count;
      }
    }
    EXPECT_EQ(recorded.size(), count) << what;
  };
  check("features", recorder.features());
  check("attention", recorder.attention());
}

TEST_P(TimmVariant, HasTimmsGradients) {
  const Model model = load();
  for (const bool checkpoint : {false, true}) {
    model.net->parameters.zero_grad();
    nn::Pass pass{.checkpoint = checkpoint};
    autograd::Tape tape;
    const Tensor logits = model.net->forward(expected().get("x"), pass);
    tape.backward(logits, expected().get("seed"));
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const std::string name = "grad." + parameter.name;
      if (expected().contains(name)) {
        test::expect_gradient(autograd::grad(parameter.value), expected().get(name), 1e-3, name);
      } else {
        EXPECT_FALSE(autograd::grad(parameter.value).defined()) << name;
      }
    }
  }
}

// A gradient in bf16 differs by the rounding of every layer behind it: as a whole it has the right direction and
// length.
TEST_P(TimmVariant, HasTimmsGradientsInBf16) {
  const Model model = load();
  nn::Pass pass{.dtype = DType::bf16};
  autograd::Tape tape;
  tape.backward(model.net->forward(expected().get("x"), pass), expected().get("seed"));
  double difference = 0, length = 0;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    const std::string name = "grad." + parameter.name;
    if (expected().contains(name)) {
      const std::vector<float> gradient = autograd::grad(parameter.value).values();
      const std::vector<float> reference = expected().get(name).values();
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        difference += std::pow(gradient[i] - reference[i], 2);
        length += std::pow(reference[i], 2);
      }
    }
  }
  const io::Safetensors golden = test::golden("models/training.safetensors");
  const std::string variant = GetParam();
  const std::string name = (variant.starts_with("mvit_video") ? "mvit" : variant) + ".bf16";  // torchvision's are alike
  const double torch = golden.contains(name)         ? golden.get(name).item()
                       : expected().contains("bf16") ? expected().get("bf16").item()
                                                     : 0;
  EXPECT_LE(std::sqrt(difference / length), std::max(2 * torch, kernels::has_bf16() ? 4e-2 : 6e-2));
}

TEST_P(TimmVariant, KnowsTimmsFactsAboutItsParameters) {
  const Model model = load();
  const nlohmann::json facts = io::read_json(folder() / "facts.json");
  EXPECT_EQ(model.net->parameters.count(), facts["parameters"].get<std::int64_t>());
  EXPECT_EQ(model.net->num_features(), facts["num_features"].get<std::int64_t>());
  const auto no_decay = facts["no_weight_decay"].get<std::vector<std::string>>();
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (parameter.buffer) {
      continue;
    }
    const std::string& name = parameter.name;
    EXPECT_EQ(model.net->layer_of(name), facts["layers"].at(name).get<std::int64_t>()) << name;
    const bool expected_free = std::ranges::find(no_decay, name) != no_decay.end();
    EXPECT_EQ(model.net->no_weight_decay(name), expected_free) << name;
  }
}

// A checkpoint may hold anything under a name: an Error, or a tensor that does not fit either.
TEST_P(TimmVariant, MakesNothingOfEmptyTensors) {
  const Model model = load();
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    const Shape& shape = parameter.value.shape();
    for (int dim = 0; dim < shape.rank(); ++dim) {
      const Tensor empty = Tensor::zeros(shape.with(dim, 0), parameter.value.dtype());
      try {
        EXPECT_NE(adapted(model, parameter.name, empty, {32, 32}).shape(), shape) << parameter.name << ", " << dim;
      } catch (const Error& error) {
        EXPECT_FALSE(std::string(error.what()).empty());
      }
    }
  }
}

TEST_P(TimmVariant, SavesAndLoadsToTheSameBits) {
  const Model model = load();
  const test::TemporaryFolder folder;
  save_model(model, folder / "saved");
  const Model again = load_model(folder / "saved");
  expect_same_parameters(again, model);
  EXPECT_EQ(again.pretrained.mean, model.pretrained.mean);
  EXPECT_EQ(again.pretrained.height, model.pretrained.height);
  EXPECT_EQ(again.pretrained.crop_pct, model.pretrained.crop_pct);
  nn::Pass pass;
  test::expect_close(again.net->forward(expected().get("x"), pass), expected().get("logits"), 1e-4);
}

}  // namespace
}  // namespace vitrail::models
