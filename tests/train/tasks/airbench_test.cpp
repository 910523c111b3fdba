// The recipe of airbench94 against its reference (tools/golden/airbench.py), and as a run.
#include "vitrail/models/convnet/airbench.h"

#include <cmath>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/images.h"
#include "tests/train/tiny.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/train/run/learner.h"

namespace vitrail::train {
namespace {

using test::weights_of;

const io::Safetensors& golden_airbench() {
  static const io::Safetensors file = test::golden("airbench.safetensors");
  return file;
}

// The reference's narrow network with the parameters and buffers PREFIX.NAME of the fixture.
models::Model narrow(const std::string& prefix) {
  models::CreateOptions options;
  options.model_kwargs = R"({"widths": [12, 16, 20], "num_classes": 10})";
  models::Model model = models::create_model("airbench94", options);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    parameter.value.copy_from(golden_airbench().get(prefix + "." + parameter.name));
    parameter.value.touch();
  }
  return model;
}

std::vector<io::Image> fixture_images() {
  const Tensor bytes = golden_airbench().get("images");
  std::vector<io::Image> images;
  const std::vector<float> values = bytes.values();
  for (std::size_t n = 0; n < 32; ++n) {
    io::Image& image = images.emplace_back(32, 32);
    for (std::size_t i = 0; i < 32 * 32; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        image.pixels[3 * i + c] = static_cast<std::uint8_t>(values[(n * 3 + c) * 1024 + i]);
      }
    }
  }
  return images;
}

TEST(AirbenchRecipe, AveragesOverViewsAsTheReference) {
  const models::Model model = narrow("tta");
  for (const auto& [tta, level] : {std::pair(0, "0"), {2, "1"}, {6, "2"}}) {
    test::expect_close(predict(model, fixture_images(), DType::f32, 8, tta),
                       golden_airbench().get(std::string("probabilities.") + level), 1e-4, level);
  }
  EXPECT_EQ(test::error_of([] { check_tta(3); }),
            "--tta takes 0 (the image alone), 2 (and its mirror image) or 6 (both also moved by a pixel), not 3");
}

// Twelve steps: decoupled hyper-parameters, scaled biases, the schedule, lookahead (after updates 5 and 10, and in the
// end), and a bias that is trained in the first three epochs alone.
TEST(AirbenchRecipe, TakesTheReferencesSteps) {
  const models::Model model = narrow("start");
  RunOptions options;
  options.optimizer.opt = "sgd";
  options.optimizer.momentum = 0.85;
  options.decoupled = true;
  options.lr = 11.5;
  options.weight_decay = 0.0153;
  options.weight_decay_all = true;
  options.bias_scaler = 64;
  options.batch_size = 16;
  options.epochs = 6;
  options.schedule.sched = "warmup_linear";
  options.warmup_steps = 2;
  options.schedule.warmup_lr = 0.2 * 11.5;
  options.schedule.min_lr = 0.07 * 11.5;
  options.lookahead = 5;
  Learner learner(options, *model.net, 2, DType::f32);
  const data::Transform transform = data::eval_transform(model.pretrained);
  const std::vector<io::Image> images = fixture_images();
  const Tensor order = golden_airbench().get("batches");
  const Tensor labels = golden_airbench().get("labels");
  const std::vector<float> losses = golden_airbench().get("losses").values();
  const std::vector<float> rates = golden_airbench().get("rates").values();
  for (std::int64_t step = 0; step < 12; ++step) {
    const Tensor x = Tensor::empty({16, 3, 32, 32});
    std::vector<std::int64_t> classes;
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t index = order.data<std::int64_t>()[step * 16 + i];
      transform.apply(images[static_cast<std::size_t>(index)], 0, 0, 0, x.data<float>() + i * 3 * 32 * 32);
      classes.push_back(labels.data<std::int64_t>()[index]);
    }
    if (step >= 3 * 2) {
      model.net->parameters.set_trainable("0.bias", false);
    }
    EXPECT_NEAR(learner.lr(step), rates[static_cast<std::size_t>(step)], 1e-6) << step;
    const double loss = learner
                            .step(
                                [&](nn::Pass& pass) {
                                  return ops::cross_entropy(model.net->forward(x, pass),
                                                            Tensor::from<std::int64_t>(classes, {16}), 0.2F);
                                },
                                static_cast<std::uint64_t>(step), step)
                            .loss;
    EXPECT_NEAR(loss, losses[static_cast<std::size_t>(step)], 1e-3) << step;
  }
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    test::expect_close(parameter.value, golden_airbench().get("end." + parameter.name), 2e-3, parameter.name);
  }
}

ClassifyOptions airbench_options(const std::filesystem::path& folder) {
  ClassifyOptions options = test::tiny_options(folder);
  options.model = "airbench94";
  options.model_kwargs = R"({"img_size": 26, "widths": [4, 4, 4]})";
  options.drop = 0;
  options.drop_path.reset();
  options.augment.train_crop_mode = "src";
  options.augment.crop_padding = 2;
  options.augment.color_jitter = {0};
  options.augment.alternating_flip = true;
  options.optimizer.opt = "sgd";
  options.decoupled = true;
  options.lr = 2;
  options.bias_scaler = 8;
  options.weight_decay_all = true;
  options.schedule.sched = "warmup_linear";
  options.lookahead = 4;
  options.tta = 6;
  return options;
}

std::vector<float> value_in(const std::filesystem::path& folder, const std::string& name) {
  return models::load_model(folder).net->parameters.at(name).value.values();
}

TEST(AirbenchRecipe, WhitensOnceAndThenLeavesFiltersAndBiasAlone) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = airbench_options(folder.path());
  options.epochs = 1;
  options.warmup_epochs = 0;
  const FitResult first = fit(options);
  const Tensor filters = models::load_model(first.folder / "last").net->parameters.at("0.weight").value;
  models::CreateOptions same;
  same.model_kwargs = options.model_kwargs;
  same.seed = 42;
  const models::Model fresh = models::create_model("airbench94", same);
  EXPECT_GT(test::relative_error(filters, fresh.net->parameters.at("0.weight").value), 0.1);
  // The second half are the negatives of the first.
  test::expect_close(filters.narrow(0, 12, 12), filters.narrow(0, 0, 12) * -1.0F, 0);
  EXPECT_NE(value_in(first.folder / "last", "0.bias"), std::vector<float>(24, 0));

  options.experiment = "unbiased";
  options.whiten_bias_epochs = 0;
  options.lookahead = 0;
  const FitResult unbiased = fit(options);
  EXPECT_EQ(value_in(unbiased.folder / "last", "0.bias"), std::vector<float>(24, 0));
  EXPECT_EQ(value_in(unbiased.folder / "last", "0.weight"), filters.values());

  // A run that starts from weights keeps their filters.
  options.experiment = "tuned";
  test::write_images(folder / "other" / "train", 8, 3, 5);
  test::write_images(folder / "other" / "validation", 4, 3, 6);
  options.data_dir = (folder / "other").string();
  options.model = (first.folder / "last").string();
  EXPECT_EQ(value_in(fit(options).folder / "last", "0.weight"), filters.values());
}

TEST(AirbenchRecipe, GoesOnToTheSameBits) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = airbench_options(folder.path());
  options.whiten_bias_epochs = 2;
  fit(options);
  for (const std::int64_t steps : {3, 7, 13}) {
    options.experiment = fmt::format("stopped{}", steps);
    test::fit_in_two_parts(options, steps);
    EXPECT_EQ(weights_of(folder / "runs/tiny/last"), weights_of(folder / "runs" / options.experiment / "last"));
  }
}

TEST(AirbenchRecipe, SaysWhatDoesNotGoTogether) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = test::tiny_options(folder.path());
  options.whiten_bias_epochs = 2;
  EXPECT_EQ(test::error_of([&] { fit(options); }),
            "--whiten-bias-epochs is for models whose first layer whitens patches, such as airbench94, not for "
            "vit_tiny_patch16_224");
  options.whiten_bias_epochs.reset();
  options.decoupled = true;
  EXPECT_EQ(test::error_of([&] { fit(options); }),
            "--decoupled is for --opt sgd with --lr, without --weight-decay-end");
  options.decoupled = false;
  options.bias_scaler = 2;
  options.weight_decay_end = 0.4;
  EXPECT_EQ(test::error_of([&] { fit(options); }), "--bias-scaler and --weight-decay-end exclude each other");
}

}  // namespace
}  // namespace vitrail::train
