// Runs that go on where they were stopped.
#include <array>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/models/model.h"
#include "vitrail/train/run/trainer.h"
#include "vitrail/train/tasks/classify.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::json_lines;
using test::stop_after;
using test::tiny_options;
using test::untimed;
using test::weights_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Everything that has a state or draws random numbers is on.
ClassifyOptions busy_options(const fs::path& folder) {
  ClassifyOptions options = tiny_options(folder);
  options.model_ema = true;
  options.ema.decay = 0.9;
  options.mix.mixup = 0.2;
  options.mix.cutmix = 1;
  options.clip_grad = 1;
  return options;
}

class Resume : public ::testing::TestWithParam<int> {};

TEST_P(Resume, GoesOnToTheSameBits) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = busy_options(folder.path());
  options.grad_accum_steps = 1 + GetParam() % 2;
  options.optimizer.opt = GetParam() % 3 == 0 ? "sgd" : "adamw";
  options.amp = GetParam() % 4 == 1;
  options.threads = GetParam() == 3 ? 2 : 1;
  if (GetParam() == 5) {  // with what config.json cannot say
    options.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 2,
                               "pos_embed": "sincos2d"})";
  }
  fit(options);
  options.experiment = "stopped";
  FitResult result = fit(options, stop_after(GetParam()));
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.steps, GetParam());
  const fs::path run = folder / "runs/stopped";
  result = fit(test::resumed<ClassifyOptions>(run), stop_after(GetParam() + 2));
  EXPECT_EQ(result.steps, GetParam() + 2);
  result = fit(test::resumed<ClassifyOptions>(run / "last"));
  EXPECT_FALSE(result.stopped);
  for (const char* model : {"last", "best"}) {
    EXPECT_EQ(weights_of(folder / "runs/tiny" / model), weights_of(run / model)) << model;
  }
  EXPECT_EQ(untimed(folder / "runs/tiny/metrics.jsonl"), untimed(run / "metrics.jsonl"));
}

INSTANTIATE_TEST_SUITE_P(AtStep, Resume, ::testing::Values(1, 3, 5, 6));

// The ingredients of AugReg, DeiT-III and their kin together, with optimizers that keep other states.
TEST(Resume, GoesOnToTheSameBitsWithEveryAugmentation) {
  const std::vector<std::array<std::string, 3>> recipes = {
      {"lamb", "3a", "elem"}, {"lion", "rand-m9-mstd0.5-inc1", "batch"}, {"nadamw", "augmix", "half"}};
  for (const auto& [opt, policy, mode] : recipes) {
    const test::TemporaryFolder folder;
    ClassifyOptions options = busy_options(folder.path());
    options.optimizer.opt = opt;
    options.augment.aa = policy;
    options.aug_repeats = 3;
    options.mix.mixup = 0.8;
    options.mix.cutmix = 1;
    options.mixup_mode = mode;
    options.augment.reprob = 0.5;
    options.resplit = true;
    options.tta = 2;
    fit(options);
    options.experiment = "stopped";
    EXPECT_TRUE(fit(options, stop_after(8)).stopped);
    fit(test::resumed<ClassifyOptions>(folder / "runs/stopped"));
    EXPECT_EQ(weights_of(folder / "runs/tiny/last"), weights_of(folder / "runs/stopped/last")) << opt;
    EXPECT_EQ(untimed(folder / "runs/tiny/metrics.jsonl"), untimed(folder / "runs/stopped/metrics.jsonl")) << opt;
  }
}

// Rates of dropout that stand in the folder that a run began from, and in no flag.
TEST(Resume, GoesOnToTheSameBitsFromAFolderWithRates) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  const fs::path start = folder / "start";
  models::save_model(models::create_model(options.model, {.num_classes = 3, .model_kwargs = options.model_kwargs}),
                     start);
  nlohmann::json config = io::read_json(start / "config.json");
  config["model_args"]["proj_drop_rate"] = 0.3;
  config["model_args"]["drop_path_rate"] = 0.3;
  io::write_atomically(start / "config.json", config.dump());
  options.model = start.string();
  options.model_kwargs = "{}";
  options.drop = 0;
  options.drop_path.reset();
  fit(options);
  options.experiment = "stopped";
  EXPECT_TRUE(fit(options, stop_after(4)).stopped);
  fit(test::resumed<ClassifyOptions>(folder / "runs/stopped"));
  EXPECT_EQ(weights_of(folder / "runs/tiny/last"), weights_of(folder / "runs/stopped/last"));
  EXPECT_EQ(io::read_json(folder / "runs/tiny/best/config.json")["model_args"]["proj_drop_rate"], 0.3);
  options.experiment = "without";
  options.model_kwargs = R"({"proj_drop_rate": 0, "drop_path_rate": 0})";
  fit(options);
  EXPECT_NE(weights_of(folder / "runs/tiny/last"), weights_of(folder / "runs/without/last"));
}

TEST(Resume, TrainsForMoreEpochsThanPlanned) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()));
  ClassifyOptions options = test::resumed<ClassifyOptions>(folder / "runs/tiny");
  options.epochs = 4;
  EXPECT_EQ(fit(options).steps, 24);
  EXPECT_EQ(json_lines(folder / "runs/tiny/metrics.jsonl").size(), 28U);
}

TEST(Resume, MakesABestModelAgainThatWasDeleted) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.lr = 0;  // no epoch is better than the first
  options.warmup_epochs = 0;
  options.schedule.sched = "none";
  EXPECT_TRUE(fit(options, stop_after(8)).stopped);
  const fs::path run = folder / "runs/tiny";
  fs::remove_all(run / "best");
  const FitResult result = fit(test::resumed<ClassifyOptions>(run));
  EXPECT_EQ(result.best_epoch, 2);
  EXPECT_TRUE(fs::exists(run / "best/model.safetensors"));
  fs::remove_all(run / "best");
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  {
    Progress progress(stream);
    FitHooks hooks;
    hooks.progress = &progress;
    fit(test::resumed<ClassifyOptions>(run), hooks);
  }
  std::fclose(stream);
  EXPECT_THAT(std::string(text, size), HasSubstr("best was deleted after the last epoch"));
  std::free(text);
}

TEST(Resume, KeepsWhatWasChangedForTheNextTime) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()));
  const fs::path run = folder / "runs/tiny";
  ClassifyOptions options = test::resumed<ClassifyOptions>(run);
  options.epochs = 5;
  EXPECT_TRUE(fit(options, stop_after(20)).stopped);
  EXPECT_EQ(fit(test::resumed<ClassifyOptions>(run)).steps, 30) << "five epochs, without being told again";
  const auto refusal = [&](const auto& change) {
    ClassifyOptions changed = test::resumed<ClassifyOptions>(run);
    change(changed);
    return error_of([&] { fit(changed); });
  };
  EXPECT_THAT(refusal([](ClassifyOptions& o) { o.model = "vit_small_patch16_224"; }),
              AllOf(HasSubstr("--model \"vit_tiny_patch16_224\""), HasSubstr("cannot go on with")));
  EXPECT_THAT(refusal([](ClassifyOptions& o) { o.experiment = "other"; }), HasSubstr("--experiment"));
}

TEST(Resume, CutsOffRecordsOfStepsThatAreLost) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()), stop_after(4));
  std::ofstream(folder / "runs/tiny/metrics.jsonl", std::ios::app) << "{\"step\": 5, \"epoch\": 1, \"lo";
  fit(test::resumed<ClassifyOptions>(folder / "runs/tiny"));
  EXPECT_EQ(json_lines(folder / "runs/tiny/metrics.jsonl").size(), 21U);
}

TEST(Resume, RefusesADamagedCheckpoint) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()), stop_after(2));
  const fs::path run = folder / "runs/tiny";
  const auto damaged = [&](const char* name, auto&& damage) {
    const fs::path path = run / "last" / name;
    const std::string whole = io::read_text(path);
    std::string text = whole;
    damage(text);
    std::ofstream(path, std::ios::binary) << text;
    const std::string words = error_of([&] { fit(test::resumed<ClassifyOptions>(run)); });
    std::ofstream(path, std::ios::binary) << whole;
    return words;
  };
  const auto truncate = [](std::string& text) { text.resize(text.size() - 5); };
  const auto flip = [](std::string& text) { text[text.size() - 6] ^= 1; };
  EXPECT_THAT(damaged("model.safetensors", truncate), HasSubstr("model.safetensors"));
  EXPECT_THAT(damaged("train-state.safetensors", truncate), HasSubstr("train-state.safetensors"));
  EXPECT_THAT(damaged("train-state.safetensors", flip), HasSubstr("is damaged"));
  EXPECT_THAT(damaged("model.safetensors", flip), HasSubstr("does not match the model beside it"));
  EXPECT_EQ(fit(test::resumed<ClassifyOptions>(run)).steps, 18);
}

TEST(Resume, RefusesWhatIsNoRun) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { test::resumed<ClassifyOptions>(folder / "nothing"); }), HasSubstr("is not a run folder"));
}

}  // namespace
}  // namespace vitrail::train
