#include "vitrail/train/tasks/pretrain_mae.h"

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"
#include "vitrail/train/run/records.h"
#include "vitrail/train/tasks/registry.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

// Pre-training on 24 images that lie in a folder and in a folder inside of it, with no classes.
PretrainMaeOptions tiny_pretraining(const fs::path& folder) {
  const ClassifyOptions tiny = test::tiny_options(folder);  // makes the images
  if (!fs::exists(folder / "unlabelled")) {
    fs::create_directories(folder / "unlabelled/more");
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 8; ++i) {
        const fs::path from = folder / "data/train" / fmt::format("class{}", c) / fmt::format("{}.png", i);
        fs::copy_file(from, folder / "unlabelled" / (i < 4 ? "" : "more") / fmt::format("{}-{}.png", c, i));
      }
    }
  }
  PretrainMaeOptions options;
  options.data_dir = (folder / "unlabelled").string();
  options.output = tiny.output;
  options.experiment = "mae";
  options.model = tiny.model;
  options.model_kwargs = R"({"img_size": 8, "patch_size": 2, "embed_dim": 24, "depth": 2, "num_heads": 2})";
  options.decoder_dim = 16;
  options.decoder_depth = 1;
  options.decoder_heads = 2;
  options.batch_size = 4;
  options.epochs = 6;
  options.warmup_epochs = 1;
  options.lr = 3e-3;
  options.norm_pix_loss = false;
  options.images.crop_pct = 1;
  options.threads = 1;
  return options;
}

TEST(Pretraining, LearnsWithoutLabels) {
  const test::TemporaryFolder folder;
  const PretrainMaeOptions options = tiny_pretraining(folder.path());
  std::vector<double> losses;
  FitHooks hooks;
  hooks.on_step = [&](std::int64_t, double loss) { losses.push_back(loss); };
  const FitResult result = fit(options, hooks);
  ASSERT_EQ(losses.size(), 36U);
  EXPECT_LT(result.last_loss, 0.7 * losses.front());
  EXPECT_TRUE(result.figures.empty());
  EXPECT_GT(result.best_epoch, 0);
  for (const char* file : {"config.toml", "metrics.jsonl", "curves.svg", "best/config.json", "best/model.safetensors",
                           "best/preprocessor_config.json", "last/train-state.safetensors"}) {
    EXPECT_TRUE(fs::exists(result.folder / file)) << file;
  }
  EXPECT_TRUE(models::is_masked_autoencoder(models::open_masked_autoencoder((result.folder / "best").string())));
  const PretrainMaeOptions again = test::resumed<PretrainMaeOptions>(result.folder);
  EXPECT_EQ(again.mask_ratio, 0.75);
}

TEST(Pretraining, ResumesToTheSameBits) {
  const test::TemporaryFolder folder;
  PretrainMaeOptions options = tiny_pretraining(folder.path());
  options.epochs = 3;
  options.model_ema = true;
  options.experiment = "whole";
  fit(options);
  options.experiment = "stopped";
  test::fit_in_two_parts(options, 8);
  const auto checksum = [&](const char* run) {
    return weights_checksum(*models::open_masked_autoencoder((fs::path(options.output) / run / "last").string()).net);
  };
  EXPECT_EQ(checksum("whole"), checksum("stopped"));
}

// The loss of other images: the same in each evaluation of the same weights, however large its batches.
TEST(Pretraining, IsValidatedOnOtherImages) {
  const test::TemporaryFolder folder;
  PretrainMaeOptions options = tiny_pretraining(folder.path());
  options.val_dir = (folder / "data/validation").string();
  const FitResult result = fit(options);
  ASSERT_EQ(result.figures.size(), 1U);
  EXPECT_EQ(result.best_metric, result.figure("loss")) << "the last epoch is the best";
  options.experiment = "halves";
  options.validation_batch_size = 5;
  EXPECT_NEAR(fit(options).figure("loss"), result.figure("loss"), 1e-6);
  const History history = read_history(result.folder / "metrics.jsonl");
  ASSERT_EQ(history.evaluations.size(), 6U);
  EXPECT_LT(figure(history.evaluations.back().figures, "loss"), figure(history.evaluations.front().figures, "loss"));
  EXPECT_EQ(weights_checksum(*models::open_masked_autoencoder((result.folder / "best").string()).net),
            weights_checksum(*models::open_masked_autoencoder((result.folder / "last").string()).net));
}

// What earlier versions wrote: no task, but all options of all tasks.
TEST(Pretraining, GoesOnWithARunOfAnEarlierVersion) {
  const test::TemporaryFolder folder;
  PretrainMaeOptions options = tiny_pretraining(folder.path());
  options.epochs = 1;
  options.warmup_epochs = 0;
  const fs::path run = fit(options).folder;
  std::string config = io::read_text(run / "config.toml");
  config.replace(config.find("task = \"mae\""), 12, "");
  config.replace(config.find("[pretraining]\n"), 14, "mixup = 0.0\n\n[pretraining]\npretrain = \"mae\"\n");
  io::write_atomically(run / "config.toml", config);
  EXPECT_EQ(task_kind_of_run(run).name, "mae");
  PretrainMaeOptions more = test::resumed<PretrainMaeOptions>(run);
  more.epochs = 2;
  EXPECT_EQ(fit(more).epochs, 2);
  EXPECT_THAT(error_of([&] { test::resumed<ClassifyOptions>(run); }), HasSubstr("'task' is 'mae'"));
}

TEST(Pretraining, IsFineTunedAndProbed) {
  const test::TemporaryFolder folder;
  const fs::path encoder = fit(tiny_pretraining(folder.path())).folder / "best";
  const io::Safetensors before = io::Safetensors::open(encoder / "model.safetensors");
  ClassifyOptions options = test::tiny_options(folder.path());
  options.model = encoder.string();
  options.model_kwargs = "{}";
  options.epochs = 1;
  options.warmup_epochs = 0;
  options.linear_probe = true;
  const FitResult probed = fit(options);
  const models::Model model = models::load_model(probed.folder / "last");
  EXPECT_EQ(model.net->num_classes(), 3);
  test::expect_close(model.net->parameters.at("cls_token").value, before.get("vit.embeddings.cls_token"), 0);
  options.linear_probe = false;
  options.experiment = "tuned";
  const FitResult tuned = fit(options);
  EXPECT_GT(test::relative_error(models::load_model(tuned.folder / "last").net->parameters.at("cls_token").value,
                                 before.get("vit.embeddings.cls_token")),
            0);
}

TEST(Pretraining, GoesOnWithAFolder) {
  const test::TemporaryFolder folder;
  PretrainMaeOptions options = tiny_pretraining(folder.path());
  options.epochs = 1;
  options.warmup_epochs = 0;
  const FitResult first = fit(options);
  options.experiment = "second";
  options.model = (first.folder / "best").string();
  options.model_kwargs = "{}";
  options.mask_ratio = 0.5;
  const FitResult second = fit(options);
  const models::Model model = models::open_masked_autoencoder((second.folder / "best").string());
  EXPECT_EQ(models::masked_autoencoder(model)->config().mask_ratio, 0.5);
  EXPECT_EQ(models::masked_autoencoder(model)->config().decoder_dim, 16);
}

TEST(Pretraining, SaysWhatMakesNoSense) {
  const test::TemporaryFolder folder;
  const PretrainMaeOptions good = tiny_pretraining(folder.path());
  const auto refusal = [&](const std::function<void(PretrainMaeOptions&)>& spoil) {
    PretrainMaeOptions options = good;
    spoil(options);
    return error_of([&] { fit(options); });
  };
  EXPECT_THAT(refusal([](PretrainMaeOptions& o) { o.mask_ratio = 1; }), HasSubstr("--mask-ratio"));
  EXPECT_THAT(refusal([](PretrainMaeOptions& o) { o.decoder_heads = 3; }), HasSubstr("3 heads"));
  EXPECT_THAT(refusal([](PretrainMaeOptions& o) {
                o.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 24,
                                                                "num_heads": 2, "reg_tokens": 2})";
              }),
              HasSubstr("register tokens"));
  EXPECT_FALSE(fs::exists(fs::path(good.output) / good.experiment));
}

}  // namespace
}  // namespace vitrail::train
