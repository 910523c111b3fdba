#include "vitrail/train/trainer.h"

#include <csignal>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "tests/support/errors.h"
#include "tests/support/finite.h"
#include "tests/support/xml.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"
#include "vitrail/tensor/allocator.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::tiny_options;
using test::weights_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<nlohmann::json> json_lines(const fs::path& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

// The records of a run without its timings.
std::vector<nlohmann::json> untimed(const fs::path& path) {
  std::vector<nlohmann::json> lines = json_lines(path);
  for (nlohmann::json& line : lines) {
    line.erase("images_per_second");
  }
  return lines;
}

// Stops after `step` updates.
FitHooks stop_after(std::int64_t step) {
  FitHooks hooks;
  auto seen = std::make_shared<std::int64_t>(0);
  hooks.on_step = [seen](std::int64_t now, double) { *seen = now; };
  hooks.should_stop = [seen, step] { return *seen >= step; };
  return hooks;
}

TEST(Fit, WritesTheWholeRunFolder) {
  const test::TemporaryFolder folder;
  const FitResult result = fit(tiny_options(folder.path()));
  const fs::path run = folder / "runs/tiny";
  EXPECT_EQ(result.folder, run);
  EXPECT_EQ(result.steps, 18);
  EXPECT_EQ(result.epochs, 3);
  EXPECT_EQ(result.evaluation.count, 12);
  for (const char* name : {"config.toml", "metrics.jsonl", "curves.svg", "best/config.json", "best/model.safetensors",
                           "last/config.json", "last/model.safetensors", "last/train-state.safetensors"}) {
    EXPECT_TRUE(fs::exists(run / name)) << name;
  }
  EXPECT_EQ(test::xml_fault(io::read_text(run / "curves.svg")), "");
  const auto is_events = [](const auto& entry) { return entry.path().filename().string().starts_with("events.out"); };
  EXPECT_EQ(std::ranges::count_if(fs::directory_iterator(run), is_events), 1);

  const std::vector<nlohmann::json> lines = json_lines(run / "metrics.jsonl");
  ASSERT_EQ(lines.size(), 21U) << "18 steps and 3 evaluations";
  EXPECT_EQ(lines[0].at("step"), 1);
  EXPECT_EQ(lines[0].at("epoch"), 1);
  EXPECT_GT(lines[0].at("images_per_second"), 0);
  EXPECT_EQ(lines[6].at("epoch"), 1);
  EXPECT_EQ(lines[6].at("step"), 6);
  EXPECT_GE(lines[6].at("top5"), lines[6].at("top1"));
  EXPECT_LT(lines[20].at("loss"), lines[6].at("loss")) << "it has learned";
  EXPECT_EQ(models::load_model(run / "best").pretrained.label_names,
            (std::vector<std::string>{"class0", "class1", "class2"}));
}

TEST(Fit, LearnsATinyDataSetByHeart) {
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  options.epochs = 20;
  options.lr = 3e-3;
  options.drop = 0;
  options.drop_path = 0;
  options.no_aug = true;
  options.smoothing = 0;
  options.val_split = "train";
  EXPECT_EQ(fit(options).evaluation.top1, 100);
}

TEST(Fit, ConfigRepeatsTheRun) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()));
  TrainOptions again = options_from_toml(folder / "runs/tiny/config.toml");
  again.experiment = "again";
  fit(again);
  EXPECT_EQ(weights_of(folder / "runs/tiny/last"), weights_of(folder / "runs/again/last"));
  EXPECT_EQ(untimed(folder / "runs/tiny/metrics.jsonl"), untimed(folder / "runs/again/metrics.jsonl"));
}

// Everything that has a state or draws random numbers is on.
TrainOptions busy_options(const fs::path& folder) {
  TrainOptions options = tiny_options(folder);
  options.model_ema = true;
  options.model_ema_decay = 0.9;
  options.mixup = 0.2;
  options.cutmix = 1;
  options.clip_grad = 1;
  return options;
}

class Resume : public ::testing::TestWithParam<int> {};

TEST_P(Resume, GoesOnToTheSameBits) {
  const test::TemporaryFolder folder;
  TrainOptions options = busy_options(folder.path());
  options.grad_accum_steps = 1 + GetParam() % 2;
  options.opt = GetParam() % 3 == 0 ? "sgd" : "adamw";
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
  result = fit(resume_options(run), stop_after(GetParam() + 2));
  EXPECT_EQ(result.steps, GetParam() + 2);
  result = fit(resume_options(run / "last"));
  EXPECT_FALSE(result.stopped);
  for (const char* model : {"last", "best"}) {
    EXPECT_EQ(weights_of(folder / "runs/tiny" / model), weights_of(run / model)) << model;
  }
  EXPECT_EQ(untimed(folder / "runs/tiny/metrics.jsonl"), untimed(run / "metrics.jsonl"));
}

INSTANTIATE_TEST_SUITE_P(AtStep, Resume, ::testing::Values(1, 3, 5, 6));

TEST(Resume, TrainsForMoreEpochsThanPlanned) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()));
  TrainOptions options = resume_options(folder / "runs/tiny");
  options.epochs = 4;
  EXPECT_EQ(fit(options).steps, 24);
  EXPECT_EQ(json_lines(folder / "runs/tiny/metrics.jsonl").size(), 28U);
}

TEST(Resume, CutsOffRecordsOfStepsThatAreLost) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()), stop_after(4));
  std::ofstream(folder / "runs/tiny/metrics.jsonl", std::ios::app) << "{\"step\": 5, \"epoch\": 1, \"lo";
  fit(resume_options(folder / "runs/tiny"));
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
    const std::string words = error_of([&] { fit(resume_options(run)); });
    std::ofstream(path, std::ios::binary) << whole;
    return words;
  };
  const auto truncate = [](std::string& text) { text.resize(text.size() - 5); };
  const auto flip = [](std::string& text) { text[text.size() - 6] ^= 1; };
  EXPECT_THAT(damaged("model.safetensors", truncate), HasSubstr("model.safetensors"));
  EXPECT_THAT(damaged("train-state.safetensors", truncate), HasSubstr("train-state.safetensors"));
  EXPECT_THAT(damaged("train-state.safetensors", flip), HasSubstr("is damaged"));
  EXPECT_THAT(damaged("model.safetensors", flip), HasSubstr("does not match the model beside it"));
  EXPECT_EQ(fit(resume_options(run)).steps, 18);
}

TEST(Resume, RefusesWhatIsNoRun) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { resume_options(folder / "nothing"); }), HasSubstr("is not a run folder"));
}

TEST(FineTuning, TakesAnotherHeadAndPictureSize) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()));
  test::write_pictures(folder / "five/train", 4, 5);
  test::write_pictures(folder / "five/validation", 2, 5, 1);
  TrainOptions options = tiny_options(folder.path());
  options.data_dir = (folder / "five").string();
  options.experiment = "tuned";
  options.model = (folder / "runs/tiny/best").string();
  options.model_kwargs = "{}";
  options.img_size = 16;
  options.layer_decay = 0.75;
  fit(options);
  const models::Model tuned = models::load_model(folder / "runs/tuned/last");
  EXPECT_EQ(tuned.net->num_classes(), 5);
  EXPECT_EQ(tuned.pretrained.height, 16);
  EXPECT_EQ(tuned.net->parameters.at("pos_embed").value.size(1), 17);
}

TEST(FineTuning, LeavesFrozenWeightsAlone) {
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  fit(options);
  options.pretrained_path = (folder / "runs/tiny/last").string();
  options.experiment = "probe";
  options.linear_probe = true;
  fit(options);
  const models::Model before = models::load_model(folder / "runs/tiny/last");
  const models::Model after = models::load_model(folder / "runs/probe/last");
  for (const nn::Parameter& parameter : before.net->parameters.all()) {
    const bool same = parameter.value.values() == after.net->parameters.at(parameter.name).value.values();
    EXPECT_EQ(same, !before.net->is_classifier(parameter.name)) << parameter.name;
  }
}

TEST(Fit, StopsAtALossThatIsNotFinite) {
  const test::AllowNonFinite allow;
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  options.opt = "sgd";
  options.lr = 1e30;
  options.warmup_epochs = 0;
  EXPECT_THAT(error_of([&] { fit(options); }),
              AllOf(HasSubstr("the loss is"), HasSubstr("learning rate"), HasSubstr("--lr"), HasSubstr("is whole")));
  options = resume_options(folder / "runs/tiny");
  options.lr = 1e-3;
  EXPECT_EQ(fit(options).steps, 18) << "the checkpoint from before is intact";
}

TEST(Fit, RefusesDataThatCannotBeTrainedOn) {
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  const auto error_with = [&](auto&& change) {
    TrainOptions changed = options;
    change(changed);
    const std::string words = error_of([&] { fit(changed); });
    EXPECT_FALSE(fs::exists(folder / "runs")) << "nothing is written: " << words;
    return words;
  };
  EXPECT_THAT(error_with([](auto& o) { o.batch_size = 25; }), HasSubstr("--batch-size 25 is more than the 24"));
  EXPECT_THAT(error_with([](auto& o) { o.data_dir = ""; }), HasSubstr("--data-dir is missing"));
  EXPECT_THAT(error_with([&](auto& o) { o.data_dir = (folder / "nowhere").string(); }), HasSubstr("nowhere"));
  EXPECT_THAT(error_with([](auto& o) { o.num_classes = 2; }), HasSubstr("3 classes"));
  EXPECT_THAT(error_with([](auto& o) { o.freeze = {"no_such."}; }), HasSubstr("--freeze no_such."));
  EXPECT_THAT(error_with([](auto& o) { o.model = "vit_tinny_patch16_224"; }), HasSubstr("vit_tiny_patch16_224"));
  EXPECT_THAT(error_with([](auto& o) { o.epochs = 0; }), HasSubstr("--epochs"));

  test::write_pictures(folder / "one/train", 4, 1);
  test::write_pictures(folder / "one/validation", 4, 1);
  EXPECT_THAT(error_with([&](auto& o) { o.data_dir = (folder / "one").string(); }), HasSubstr("class"));
  fs::create_directories(folder / "data/train/empty");
  EXPECT_THAT(error_with([](auto&) {}), HasSubstr("empty"));
}

TEST(Fit, DoesNotTouchARunThatExists) {
  const test::TemporaryFolder folder;
  const TrainOptions options = tiny_options(folder.path());
  fit(options, stop_after(1));
  const std::string before = io::read_text(folder / "runs/tiny/metrics.jsonl");
  EXPECT_THAT(error_of([&] { fit(options); }), AllOf(HasSubstr("--resume"), HasSubstr("--experiment")));
  EXPECT_EQ(io::read_text(folder / "runs/tiny/metrics.jsonl"), before);
}

TEST(Fit, NumbersRunsWithoutName) {
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  options.experiment = "";
  const fs::path first = fit(options, stop_after(1)).folder;
  const fs::path second = fit(options, stop_after(1)).folder;
  EXPECT_NE(first, second);
  EXPECT_THAT(first.string(), HasSubstr("-vit_tiny_patch16_224-8"));
}

TEST(Fit, SaysWhenTheFolderCannotBeWritten) {
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  std::ofstream(folder / "file") << "not a folder";
  options.output = (folder / "file").string();
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr((folder / "file").string()));
}

TEST(Fit, SurvivesAFullDisk) {
  const test::TemporaryFolder folder;
  const TrainOptions options = tiny_options(folder.path());
  FitHooks hooks;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  hooks.on_step = [&](std::int64_t step, double) {
    if (step == 8) {  // from here on no file can grow beyond a few bytes, as on a disk that is full
      const rlimit full{2000, before.rlim_max};
      setrlimit(RLIMIT_FSIZE, &full);
    }
  };
  const std::string words = error_of([&] { fit(options, hooks); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_THAT(words, AllOf(HasSubstr("cannot write"), HasSubstr("the checkpoint of step 6 is whole")));
  EXPECT_EQ(fit(resume_options(folder / "runs/tiny")).steps, 18);
}

TEST(Fit, SaysWhatToDoWhenMemoryRunsOut) {
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  Allocator& allocator = Allocator::instance();
  FitHooks hooks;
  hooks.on_step = [&](std::int64_t step, double) {
    if (step == 2) {
      allocator.trim();
      allocator.set_limit(allocator.statistics().in_use + 1000);
    }
  };
  const std::string words = error_of([&] { fit(options, hooks); });
  allocator.set_limit(0);
  EXPECT_THAT(words, AllOf(HasSubstr("out of memory"), HasSubstr("--batch-size below 4")));
}

TEST(Fit, LeavesBrokenPicturesOutIfAllowed) {
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  std::ofstream(folder / "data/train/class1/3.png") << "no picture";
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("3.png"));
  options.skip_broken = true;
  options.experiment = "skipping";
  EXPECT_EQ(fit(options).epochs, 3);
}

TEST(Fit, KeepsTheLowestLossWithoutValidation) {
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  options.val_split = "";
  const FitResult result = fit(options);
  EXPECT_EQ(result.evaluation.count, 0);
  EXPECT_GT(result.best_epoch, 0);
  EXPECT_TRUE(fs::exists(folder / "runs/tiny/best/model.safetensors"));
}

TEST(Fit, TrainsBothHeadsOfADistilledModel) {
  const test::TemporaryFolder folder;
  TrainOptions options = tiny_options(folder.path());
  options.model = "deit_tiny_distilled_patch16_224";
  fit(options);
  const std::vector<nlohmann::json> lines = json_lines(folder / "runs/tiny/metrics.jsonl");
  EXPECT_LT(lines[20].at("loss"), lines[6].at("loss"));
}

}  // namespace
}  // namespace vitrail::train
