// Features, nearest neighbours among them (tools/golden/knn.py), and the linear probe on them.
#include "vitrail/train/study/features.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/features.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/train/study/knn.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden;
using test::golden_path;
using test::tiny_options;
using test::weights_of;
using ::testing::HasSubstr;

// A model folder in which every weight is far from where it began.
fs::path write_model(const fs::path& folder, const char* name = "vit_tiny_patch16_224") {
  models::CreateOptions options;
  options.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 2})";
  options.num_classes = 3;
  models::Model model = models::create_model(name, options);
  model.pretrained.crop_pct = 1;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    parameter.value.copy_from(test::random_tensor(parameter.value.shape(), hash(parameter.name), 0.3F));
    parameter.value.touch();
  }
  models::save_model(model, folder);
  return folder;
}

// timm's features without a head are those that its head takes.
TEST(WithoutHead, GivesWhatTheHeadTakes) {
  nn::Pass pass;
  for (const std::string name : {"plain", "avg", "reg4", "relpos", "map", "rectangles", "padded", "distilled"}) {
    const models::Model model = models::load_model(golden_path("models") / name);
    const io::Safetensors expected = golden("models/" + name + "/expected.safetensors");
    const models::Model trunk = models::without_head(model);
    EXPECT_EQ(trunk.net->num_classes(), 0);
    const Tensor features = trunk.net->forward(expected.get("x"), pass);
    ASSERT_EQ(features.shape(), (Shape{2, model.net->num_features()})) << name;
    if (name != "distilled") {  // whose two heads take a token each
      const nn::ParameterStore& p = model.net->parameters;
      expect_close(ops::linear(features, p.at("head.weight").value, p.at("head.bias").value), expected.get("logits"),
                   1e-4, name);
    }
  }
  const models::Model headless = models::load_model(golden_path("models/features"));
  const io::Safetensors expected = golden("models/features/expected.safetensors");
  expect_close(models::without_head(headless).net->forward(expected.get("x"), pass), expected.get("logits"), 1e-4);
}

TEST(WithoutHead, PoolsAsItIsTold) {
  const models::Model model = models::load_model(golden_path("models/plain"));
  const Tensor x = golden("models/plain/expected.safetensors").get("x");
  nn::Pass pass;
  const Tensor token = models::without_head(model, "token").net->forward(x, pass);
  expect_close(token, models::without_head(model).net->forward(x, pass), 0);
  // The mean of the patches behind the final norm.
  const Tensor mean = models::without_head(model, "avg").net->forward(x, pass);
  nn::Recorder recorder(true, false);
  nn::Pass recorded{.recorder = &recorder};
  model.net->forward(x, recorded);
  const Tensor last = recorder.features().at("blocks.1").value;  // [2, 17, 24], before the norm
  const std::vector<float> weight = model.net->parameters.at("norm.weight").value.values();
  const std::vector<float> bias = model.net->parameters.at("norm.bias").value.values();
  for (std::int64_t b = 0; b < 2; ++b) {
    std::vector<double> sum(24);
    for (std::int64_t n = 1; n < 17; ++n) {
      const std::vector<float> row = last.select(0, b).select(0, n).values();
      double average = 0;
      double variance = 0;
      for (const float value : row) {
        average += value / 24.0;
      }
      for (const float value : row) {
        variance += (value - average) * (value - average) / 24;
      }
      for (std::size_t d = 0; d < 24; ++d) {
        sum[d] += ((row[d] - average) / std::sqrt(variance + 1e-6) * weight[d] + bias[d]) / 16;
      }
    }
    for (std::int64_t d = 0; d < 24; ++d) {
      EXPECT_NEAR(mean.select(0, b).values()[static_cast<std::size_t>(d)], sum[static_cast<std::size_t>(d)], 1e-4);
    }
  }
  const models::Model gap = models::load_model(golden_path("models/reg4"));  // normed behind the pooling
  EXPECT_EQ(models::without_head(gap, "max").net->parameters.find("norm.weight"), nullptr);
  EXPECT_THAT(error_of([&] { models::without_head(model, "map"); }), HasSubstr("need 'attn_pool."));
  EXPECT_THAT(error_of([&] { models::without_head(model, "sideways"); }), HasSubstr("sideways"));
}

TEST(Embed, GoesOverADataSetInItsOrder) {
  const test::TemporaryFolder folder;
  test::write_images(folder / "data", 4, 3);
  std::ofstream(folder / "data/class1/2.png") << "no image";
  const auto dataset = data::open_dataset(folder / "data");
  const models::Model model = models::load_model(write_model(folder / "model"));
  const models::Model trunk = models::without_head(model);
  EvaluateOptions options;
  options.batch_size = 5;
  options.skip_broken = true;
  const Features features = embed(trunk, *dataset, options);
  ASSERT_EQ(features.x.shape(), (Shape{11, 24}));
  EXPECT_EQ(features.names[0], "class0/0.png");
  EXPECT_EQ(features.names[6], "class1/3.png");
  EXPECT_EQ(features.broken.size(), 1U);
  const data::Transform transform = data::eval_transform(model.pretrained);
  for (std::int64_t i = 0; i < 11; ++i) {
    const std::int64_t index = features.indices[static_cast<std::size_t>(i)];
    EXPECT_EQ(features.labels.data<std::int64_t>()[i], index / 4);
    nn::Pass pass;
    const Tensor alone = trunk.net->forward(transform(dataset->image(index)).unsqueeze(0), pass);
    expect_close(features.x.narrow(0, i, 1), alone, 1e-5);
  }
  save_features(folder / "f.safetensors", features, {{"format", "pt"}});
  const Features again = load_features(folder / "f.safetensors");
  EXPECT_EQ(again.x.values(), features.x.values());
  EXPECT_EQ(again.labels.values(), features.labels.values());
  EXPECT_EQ(again.names, features.names);
  EXPECT_EQ(again.classes, (std::vector<std::string>{"class0", "class1", "class2"}));
  EXPECT_THAT(error_of([&] { embed(model, *dataset, options); }), HasSubstr("has a classifier"));
  const auto wrong = [&](const io::NamedTensors& tensors, const std::map<std::string, std::string>& metadata = {}) {
    io::save_safetensors(folder / "wrong.safetensors", tensors, metadata);
    return error_of([&] { load_features(folder / "wrong.safetensors"); });
  };
  EXPECT_THAT(wrong({{"features", features.x}}), HasSubstr("no tensor 'labels'"));
  EXPECT_THAT(wrong({{"features", features.x}, {"labels", features.labels.narrow(0, 0, 3)}}), HasSubstr("i64 [11]"));
  EXPECT_THAT(wrong({{"features", features.x}, {"labels", features.labels}}, {{"names", "[1]"}}),
              HasSubstr("not a list of strings"));
  EXPECT_THAT(wrong({{"features", features.x}, {"labels", features.labels}}, {{"names", "[\"a\"]"}}),
              HasSubstr("1 names for 11 images"));
}

Features golden_features(const std::string& prefix) {
  const io::Safetensors file = golden("knn.safetensors");
  Features features;
  features.x = file.get(prefix + "x");
  features.labels = file.get(prefix + "labels");
  return features;
}

TEST(Knn, VotesAsInDino) {
  const io::Safetensors file = golden("knn.safetensors");
  KnnOptions options;
  options.k = {1, 5, 20, 100};
  for (const KnnResult& result : knn(golden_features(""), golden_features("test_"), options)) {
    const std::string name = "k" + std::to_string(result.k);
    const auto numbers = [&](const std::string& what) {
      const Tensor tensor = file.get(name + what);
      const auto span = tensor.span<std::int64_t>();
      return std::vector<std::int64_t>(span.begin(), span.end());
    };
    EXPECT_EQ(result.predictions, numbers(".predictions")) << name;
    EXPECT_EQ(result.majorities, numbers(".majorities")) << name;
    const std::vector<float> accuracies = file.get(name + ".accuracies").values();
    EXPECT_NEAR(result.top1, accuracies[0], 1e-4) << name;
    EXPECT_NEAR(result.top5, accuracies[1], 1e-4) << name;
    EXPECT_NEAR(result.majority_top1, accuracies[2], 1e-4) << name;
  }
}

TEST(Knn, TakesLabelsOfAnyStride) {
  const auto with_a_column = [](Features features) {
    const Tensor column = Tensor::zeros({features.labels.size(0), 2}, DType::i64).select(1, 0);
    column.copy_from(features.labels);
    features.labels = column;
    return features;
  };
  const Features features = golden_features("");
  const Features test = golden_features("test_");
  const KnnResult expected = knn(features, test, KnnOptions()).front();
  const KnnResult result = knn(with_a_column(features), with_a_column(test), KnnOptions()).front();
  EXPECT_EQ(result.predictions, expected.predictions);
  EXPECT_EQ(result.top1, expected.top1);
}

TEST(Knn, RefusesWhatCannotBeCompared) {
  const Features features = golden_features("");
  const auto refusal = [&](auto&& change) {
    Features test = golden_features("test_");
    KnnOptions options;
    change(test, options);
    return error_of([&] { knn(features, test, options); });
  };
  EXPECT_THAT(refusal([](auto&, auto& options) { options.k = {151}; }), HasSubstr("-k 151"));
  EXPECT_THAT(refusal([](auto&, auto& options) { options.temperature = 0; }), HasSubstr("temperature"));
  EXPECT_THAT(refusal([](auto& test, auto&) { test.x = test.x.narrow(1, 0, 8); }), HasSubstr("of width 16"));
  EXPECT_THAT(refusal([](auto& test, auto&) {
                test.labels = test.labels.clone();
                test.labels.template data<std::int64_t>()[3] = data::unlabeled;
              }),
              HasSubstr("has no label"));
  EXPECT_THAT(refusal([](auto& test, auto&) {
                test.x = test.x.clone();
                test.x.template data<float>()[17] = NAN;
              }),
              HasSubstr("image 1 hold NaN"));
}

// The probe of a run is the same as one on the features that embed() gives.
TEST(LinearProbe, EqualsOneOnEmbeddedFeatures) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.model = write_model(folder / "model").string();
  options.model_kwargs = "{}";
  options.linear_probe = options.augment.no_aug = options.no_shuffle = true;
  options.drop_path = options.drop = 0;
  options.schedule.sched = "none";
  options.epochs = 4;
  options.smoothing = 0;
  options.num_classes = 3;
  std::vector<double> losses;
  FitHooks hooks;
  hooks.on_step = [&](std::int64_t, double loss) { losses.push_back(loss); };
  const FitResult result = fit(options, hooks);

  const models::Model start = models::load_model(folder / "model");
  const Features features =
      embed(models::without_head(start), *data::open_dataset(folder / "data/train"), EvaluateOptions{});
  nn::ParameterStore store;
  const Tensor weight = store.add("head.weight", {3, 24}, nn::Init::zeros());
  const Tensor bias = store.add("head.bias", {3}, nn::Init::zeros());
  weight.copy_from(start.net->parameters.at("head.weight").value);
  bias.copy_from(start.net->parameters.at("head.bias").value);
  optim::Optimizer optimizer(store, {.opt = "adamw"},
                             optim::groups_by_weight_decay(store, options.weight_decay, [](auto&) { return false; }));
  ASSERT_EQ(losses.size(), 24U);
  for (std::int64_t step = 0; step < 24; ++step) {
    const std::int64_t begin = 4 * (step % 6);
    store.zero_grad();
    autograd::Tape tape;
    const Tensor loss = ops::cross_entropy(ops::linear(features.x.narrow(0, begin, 4), weight, bias),
                                           features.labels.narrow(0, begin, 4));
    tape.backward(loss);
    optimizer.step(*options.lr);
    EXPECT_NEAR(losses[static_cast<std::size_t>(step)], loss.item(), 1e-5) << step;
  }
  const models::Model probed = models::load_model(result.folder / "last");
  expect_close(probed.net->parameters.at("head.weight").value, weight, 1e-5);
  expect_close(probed.net->parameters.at("blocks.0.attn.qkv.weight").value,
               start.net->parameters.at("blocks.0.attn.qkv.weight").value, 0);
  // What the run found on the features is what the whole model does with the images.
  const Evaluation whole = evaluate(probed, *data::open_dataset(folder / "data/validation"));
  EXPECT_EQ(whole.top1, result.figure("top1"));
  EXPECT_NEAR(whole.loss, result.figure("loss"), 1e-5);
}

TEST(LinearProbe, IsTheSameWithAndWithoutFeaturesComputedOnce) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.pretrained_path = write_model(folder / "model").string();
  options.model_kwargs = "{}";
  options.linear_probe = options.augment.no_aug = options.model_ema = true;
  options.drop_path = options.drop = 0;
  const FitResult once = fit(options);
  options.experiment = "whole";
  options.model_kwargs = R"({"attn_drop_rate": 0})";  // which keeps the model running as a whole
  const FitResult whole = fit(options);
  EXPECT_EQ(once.steps, whole.steps);
  EXPECT_NEAR(once.last_loss, whole.last_loss, 1e-4);
  EXPECT_NEAR(once.figure("loss"), whole.figure("loss"), 1e-4);

  options.model_kwargs = "{}";
  options.experiment = "stopped";
  std::int64_t seen = 0;
  FitHooks hooks;
  hooks.on_step = [&](std::int64_t step, double) { seen = step; };
  hooks.should_stop = [&] { return seen >= 8; };
  const fs::path run = fit(options, hooks).folder;
  EXPECT_EQ(fit(test::resumed<ClassifyOptions>(run)).steps, once.steps);
  EXPECT_EQ(weights_of(run / "last"), weights_of(once.folder / "last")) << "to the same bits";

  options.experiment = "stopped at once";
  hooks.should_stop = [] { return true; };
  EXPECT_EQ(fit(options, hooks).steps, 0) << "while features are computed";
  EXPECT_EQ(fit(test::resumed<ClassifyOptions>(folder / "runs/stopped at once")).steps, once.steps);

  std::ofstream(folder / "data/train/class1/3.png") << "no image";
  options.experiment = "broken";
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("3.png"));
  options.experiment = "skipping";
  options.skip_broken = true;
  EXPECT_EQ(fit(options).epochs, 3);
}

TEST(Evaluate, TellsADistilledModelsHeadsApart) {
  const test::TemporaryFolder folder;
  test::write_images(folder / "data", 7, 3);
  const auto dataset = data::open_dataset(folder / "data");
  const models::Model model = models::load_model(write_model(folder / "model", "deit_tiny_distilled_patch16_224"));
  const Evaluation both = evaluate(model, *dataset);
  ASSERT_EQ(both.heads.size(), 2U);
  // A model whose two heads are the same one has its accuracy.
  for (const bool second : {false, true}) {
    const data::Transform transform = data::eval_transform(model.pretrained);
    double right = 0;
    double mean_right = 0;
    double loss = 0;
    for (std::int64_t i = 0; i < dataset->size(); ++i) {
      nn::Pass pass;
      const std::vector<Tensor> heads = model.net->forward_heads(transform(dataset->image(i)).unsqueeze(0), pass);
      const std::vector<float> own = heads[second ? 1 : 0].values();
      const std::vector<float> mean = model.net->forward(transform(dataset->image(i)).unsqueeze(0), pass).values();
      const auto best = [](const std::vector<float>& v) { return std::max_element(v.begin(), v.end()) - v.begin(); };
      right += best(own) == dataset->label(i) ? 1 : 0;
      mean_right += best(mean) == dataset->label(i) ? 1 : 0;
      loss += ops::cross_entropy(heads[second ? 1 : 0], Tensor::from<std::int64_t>({dataset->label(i)}, {1})).item();
    }
    EXPECT_NEAR(both.heads[second ? 1 : 0].top1, 100 * right / 21, 1e-9);
    EXPECT_NEAR(both.heads[second ? 1 : 0].loss, loss / 21, 1e-4);
    EXPECT_NEAR(both.top1, 100 * mean_right / 21, 1e-9);
  }
  EXPECT_NE(both.heads[0].loss, both.heads[1].loss);
  EXPECT_TRUE(evaluate(models::load_model(write_model(folder / "one")), *dataset).heads.empty());
}

}  // namespace
}  // namespace vitrail::train
