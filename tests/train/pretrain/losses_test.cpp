// Losses, temperatures and momenta of the methods without labels are the references' (tools/golden/self_supervised.py).
#include "vitrail/train/pretrain/losses.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/train/pretrain/dino.h"
#include "vitrail/train/pretrain/mocov3.h"

namespace vitrail::train {
namespace {

using test::expect_close;
using ::testing::HasSubstr;

const io::Safetensors& golden_losses() {
  static const io::Safetensors file = test::golden("self_supervised/losses.safetensors");
  return file;
}

Tensor golden_leaf(const std::string& name) {
  Tensor tensor = golden_losses().get(name).clone();
  autograd::require_grad(tensor);
  return tensor;
}

void expect_loss(const Tensor& loss, const std::string& name) {
  const float expected = golden_losses().get(name).item();
  EXPECT_NEAR(loss.item(), expected, 1e-5 * std::abs(expected)) << name;
}

TEST(SelfSupervisedLosses, NtXentIsLightlys) {
  for (const float temperature : {0.1F, 0.5F}) {
    const Tensor z0 = golden_leaf("z0");
    const Tensor z1 = golden_leaf("z1");
    autograd::Tape tape;
    const Tensor loss = nt_xent(z0, z1, temperature);
    const std::string name = fmt::format("nt_xent.{}", temperature);
    expect_loss(loss, name);
    tape.backward(loss);
    expect_close(autograd::grad(z0), golden_losses().get(name + ".dz0"), 1e-5);
    expect_close(autograd::grad(z1), golden_losses().get(name + ".dz1"), 1e-5);
  }
}

TEST(SelfSupervisedLosses, ContrastiveLossIsMocos) {
  for (const float temperature : {0.1F, 0.5F}) {
    const Tensor q = golden_leaf("z0");
    const Tensor k = golden_leaf("z1");
    autograd::Tape tape;
    const Tensor loss = contrastive_loss(q, k, temperature);
    const std::string name = fmt::format("contrastive.{}", temperature);
    expect_loss(loss, name);
    tape.backward(loss);
    expect_close(autograd::grad(q), golden_losses().get(name + ".dq"), 1e-5);
    EXPECT_FALSE(autograd::grad(k).defined()) << "keys get no gradient";
  }
}

TEST(SelfSupervisedLosses, DinosAreThoseOfItsCode) {
  PretrainDinoOptions options;
  options.epochs = 3;
  options.warmup_teacher_temp_epochs = 2;
  options.teacher_temp = 0.07;
  Tensor center = golden_losses().get("dino.center");
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const double temperature = options.teacher_temperature(epoch);
    EXPECT_NEAR(temperature, golden_losses().get("dino.temperatures").values()[static_cast<std::size_t>(epoch)], 1e-7);
    const std::string name = fmt::format("dino.{}", epoch);
    const Tensor student = golden_leaf(name + ".student");
    const Tensor teacher = golden_losses().get(name + ".teacher");
    autograd::Tape tape;
    const Tensor loss = dino_loss(student, dino_targets(teacher, center, temperature), 4);
    expect_loss(loss, name);
    tape.backward(loss);
    expect_close(autograd::grad(student), golden_losses().get(name + ".dstudent"), 1e-5, name);
    center = dino_center(center, teacher);
    expect_close(center, golden_losses().get(name + ".center"), 1e-6, name);
  }
}

TEST(SelfSupervisedLosses, MomentaAndPositionsAreTheReferences) {
  const std::vector<float> moco = golden_losses().get("mocov3.momentum").values();
  const std::vector<float> dino = golden_losses().get("cosine_scheduler.momentum").values();
  for (std::size_t t = 0; t < moco.size(); ++t) {
    const double share = static_cast<double>(t) / static_cast<double>(moco.size());
    EXPECT_NEAR(mocov3_momentum(0.99, share), moco[t], 1e-6);
    EXPECT_NEAR(optim::cosine_between(0.996, 1, share), dino[t], 1e-6);
  }
  expect_close(mocov3_positions(3, 3, 16), golden_losses().get("mocov3.positions"), 1e-6);
}

TEST(SelfSupervisedLosses, SayWhatTheyCannotCompare) {
  const Tensor one = Tensor::zeros({1, 4});
  EXPECT_THAT(test::error_of([&] { nt_xent(one, one, 0.5F); }), HasSubstr("a batch of 1 has none to compare with"));
  EXPECT_THAT(test::error_of([&] { contrastive_loss(one, one, 0.5F); }), HasSubstr("a batch of 1"));
  EXPECT_THAT(test::error_of([&] { nt_xent(one, Tensor::zeros({2, 4}), 0.5F); }), HasSubstr("[1, 4] and [2, 4]"));
  EXPECT_THAT(test::error_of([&] { dino_loss(one, one, 1); }), HasSubstr("there is only one"));
}

// The losses of images and texts, by transformers (tools/golden/clip.py), of logits scale · cos(image, text) + bias.
TEST(PairLosses, AreTransformers) {
  const io::Safetensors golden = test::golden("models/joint/losses.safetensors");
  const auto leaf = [&](const std::string& name) {
    Tensor tensor = golden.get(name).clone();
    autograd::require_grad(tensor);
    return tensor;
  };
  for (const std::string kind : {"clip", "siglip"}) {
    const Tensor images = leaf("images");
    const Tensor texts = leaf("texts");
    const Tensor scale = leaf(kind + ".logit_scale");
    const Tensor bias = kind == "siglip" ? leaf("siglip.logit_bias") : Tensor();
    autograd::Tape tape;
    const Tensor cosines = ops::matmul(ops::normalize(images), ops::transpose(ops::normalize(texts), 0, 1));
    Tensor logits = cosines * ops::exp(scale);
    logits = bias.defined() ? logits + bias : logits;
    const Tensor loss = kind == "clip" ? clip_loss(logits) : siglip_loss(logits);
    EXPECT_NEAR(loss.item(), golden.get(kind + ".loss").item(), 1e-5) << kind;
    tape.backward(loss);
    expect_close(autograd::grad(images), golden.get(kind + ".grad.images"), 1e-5, kind);
    expect_close(autograd::grad(texts), golden.get(kind + ".grad.texts"), 1e-5, kind);
    expect_close(autograd::grad(scale), golden.get(kind + ".grad.logit_scale"), 1e-5, kind);
    if (bias.defined()) {
      expect_close(logits, golden.get("siglip.logits_per_image"), 1e-5);
      expect_close(autograd::grad(bias), golden.get("siglip.grad.logit_bias"), 1e-5);
    }
  }
}

TEST(PairLosses, SayWhatIsWrong) {
  EXPECT_EQ(test::error_of([] {
              clip_loss(Tensor::zeros({1, 1}));
            }),
            "CLIP's loss compares pairs with one another: a batch of 1 has none to compare with");
  EXPECT_EQ(test::error_of([] {
              siglip_loss(Tensor::zeros({2, 3}));
            }),
            "the loss of images and texts takes logits [N, N] of as many texts as images, not [2, 3]");
}

}  // namespace
}  // namespace vitrail::train
