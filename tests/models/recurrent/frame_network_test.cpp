#include "vitrail/models/recurrent/frame_network.h"

#include <cmath>
#include <numbers>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/model.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

using test::error_of;
using test::expect_close;
using test::random_tensor;
using ::testing::HasSubstr;

Tensor loss_with(const Tensor& outputs, const Tensor& targets, const FrameTarget& target) {
  if (target.kind != FrameTarget::Kind::angle) {
    return ops::cross_entropy(outputs, targets);
  }
  std::vector<float> points;
  std::vector<std::int64_t> bins;
  for (const float degrees : targets.values()) {
    const float radians = degrees * std::numbers::pi_v<float> / 180;
    points.insert(points.end(), {std::cos(radians), std::sin(radians)});
    bins.push_back(target.bins == 0 ? 0 : std::lround(degrees / 360 * static_cast<float>(target.bins)) % target.bins);
  }
  return target.bins > 0 ? ops::cross_entropy(outputs, Tensor::from(bins, {std::ssize(bins)}))
                         : ops::multiply(ops::mse_loss(outputs, Tensor::from(points, outputs.shape())), 2);
}

// Outputs, and the gradients of a loss, are those of torch's modules over the frames of sequences of unequal length.
TEST(FrameNetwork, AgreesWithTorch) {
  for (const char* name : {"frames_sequence", "frames_frames", "frames_angle", "frames_bins"}) {
    const std::unique_ptr<FrameNetwork> model = load_frame_network(test::golden_path("models/" + std::string(name)));
    const io::Safetensors expected = test::golden("models/" + std::string(name) + "/expected.safetensors");
    autograd::Tape tape;
    nn::Pass pass;
    const Tensor outputs = model->outputs(expected.get("x"), expected.get("lengths"), pass);
    expect_close(outputs, expected.get("outputs"), 1e-5, name);
    const Tensor loss = loss_with(outputs, expected.get("targets"), model->target);
    expect_close(loss, expected.get("loss"), 1e-5, name);
    tape.backward(loss);
    for (const nn::Parameter& parameter : model->parameters.all()) {
      expect_close(autograd::grad(parameter.value), expected.get("grad." + parameter.name), 1e-4, parameter.name);
    }
  }
}

std::unique_ptr<FrameNetwork> small_network(FrameTarget target, const std::string& network) {
  CreateOptions options;
  options.num_classes = 0;
  options.model_kwargs = R"({"img_size": 8, "hidden_size": 10, "rows": 2})";
  return std::make_unique<FrameNetwork>(create_model("gru_rows", options), network, std::move(target), "the network");
}

// What a network says about a sequence does not depend on the sequences beside it.
TEST(FrameNetwork, ReadsSequencesOfUnequalLengthEachByItself) {
  for (const auto kind : {FrameTarget::Kind::sequence, FrameTarget::Kind::frames}) {
    const auto model = small_network({.kind = kind, .classes = {"a", "b", "c"}},
                                     R"({"architecture": "lstm", "hidden_size": 6, "bidirectional": true})");
    const Tensor x = random_tensor({6, 3, 8, 8}, 1);
    nn::Pass pass;
    const Tensor all = model->outputs(x, Tensor::from<std::int64_t>({1, 3, 2}, {3}), pass);
    const Tensor one = model->outputs(x.narrow(0, 1, 3).contiguous(), Tensor::from<std::int64_t>({3}, {1}), pass);
    const bool each = kind == FrameTarget::Kind::frames;
    expect_close(one, all.narrow(0, 1, each ? 3 : 1).contiguous(), 1e-6);
    EXPECT_EQ(all.shape(), (Shape{each ? 6 : 3, 3}));
  }
}

TEST(FrameNetwork, IsSavedToTheSameBits) {
  const test::TemporaryFolder folder;
  FrameTarget target{.kind = FrameTarget::Kind::angle, .classes = {}, .bins = 8, .circular = true};
  const auto model = small_network(target, R"({"architecture": "mut3", "hidden_size": 6, "num_layers": 2})");
  save_frame_network(*model, folder / "model");
  EXPECT_TRUE(is_frame_network_folder(folder / "model"));
  const std::unique_ptr<FrameNetwork> again = load_frame_network(folder / "model");
  ASSERT_EQ(again->parameters.all().size(), model->parameters.all().size());
  for (const nn::Parameter& parameter : model->parameters.all()) {
    expect_close(again->parameters.at(parameter.name).value, parameter.value, 0, parameter.name);
  }
  EXPECT_EQ(again->target.kind, target.kind);
  EXPECT_EQ(again->target.bins, 8);
  EXPECT_TRUE(again->target.circular);
  EXPECT_EQ(again->encoder.pretrained.mean, model->encoder.pretrained.mean);
  EXPECT_FALSE(is_frame_network_folder(folder / "nowhere"));
  EXPECT_LT(model->layer_of("rnn.weight_ih_l0"), model->layer_of("sequence.rnn.weight_hr_l0"));
  EXPECT_LT(model->layer_of("sequence.rnn.weight_hr_l0"), model->layer_of("sequence.rnn.weight_hr_l1"));
  EXPECT_EQ(model->layer_of("sequence.head.bias"), model->depth() + 1);
}

TEST(FrameNetwork, SaysWhatCannotBe) {
  const FrameTarget target{.kind = FrameTarget::Kind::sequence, .classes = {"a", "b"}};
  const auto creating = [&](const std::string& network) { return error_of([&] { small_network(target, network); }); };
  EXPECT_THAT(creating(R"({"architecture": "gru", "hidden_size": 4, "layers": 2})"), HasSubstr("unknown key 'layers'"));
  EXPECT_THAT(creating(R"({"architecture": "grru", "hidden_size": 4})"), HasSubstr("grru"));
  EXPECT_THAT(error_of([&] { small_network({}, R"({"architecture": "gru", "hidden_size": 4})"); }),
              HasSubstr("no classes to tell apart"));
  CreateOptions options;
  options.num_classes = 3;
  EXPECT_EQ(error_of([&] { FrameNetwork(create_model("gru_rows", options), "{}", target, "the network"); }),
            "the network: the image model of a recurrent network has no classifier");
  EXPECT_EQ(error_of([&] { target_named("angel", "--target"); }),
            "--target must be sequence, frames or angle, not 'angel'");
  const auto model = small_network(target, R"({"architecture": "gru", "hidden_size": 4})");
  nn::Pass pass;
  EXPECT_EQ(error_of([&] {
              model->outputs(random_tensor({4, 3, 8, 8}), Tensor::from<std::int64_t>({3, 2}, {2}), pass);
            }),
            "the sequences have 5 frames together, but there are 4 images");
}

}  // namespace
}  // namespace vitrail::models
