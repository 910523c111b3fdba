#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/train/tasks/classify.h"
#include "vitrail/train/tasks/frames.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

ClassifyOptions valid() {
  ClassifyOptions options;
  options.data_dir = "images";
  return options;
}

TEST(Options, SurviveConfigTomlToTheBit) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = valid();
  options.data_dir = "C:\\my \"images\"\nof 'cats' – 猫";
  options.model_kwargs = R"({"img_size":32})";
  options.lr = 0.1 + 0.2;
  options.weight_decay = 1e-7;
  options.epochs = 7;
  options.num_classes = 3;
  options.optimizer.betas = std::array{0.9, 0.95};
  options.schedule.decay_milestones = {};
  options.freeze = {"patch_embed.", "blocks.0."};
  options.schedule.on_updates = false;
  write_config(folder.path(), options, {{"cpu", "Z80 \\ \x01"}}, {"images", {loss_figure()}, "loss"});
  const ClassifyOptions back = test::options_in<ClassifyOptions>(folder / "config.toml");
  EXPECT_TRUE(changed_options(folder / "config.toml", options).empty());
  EXPECT_EQ(read_facts(folder / "config.toml").at("cpu"), "Z80 \\ \x01");
  EXPECT_EQ(read_record_kind(folder / "config.toml")->figures.front().name, "loss");
  EXPECT_EQ(back.data_dir, options.data_dir);
  EXPECT_EQ(back.lr, options.lr);
  EXPECT_EQ(back.clip_grad, std::nullopt);
  EXPECT_EQ(back.freeze, options.freeze);
  EXPECT_TRUE(back.schedule.decay_milestones.empty());
}

// A run may take another optimizer if that keeps the same of each parameter, and may end its average, but not begin
// one.
TEST(Options, AreSettledWhereTheStateDependsOnThem) {
  const test::TemporaryFolder folder;
  const auto refusal = [&](const auto& begin, const auto& change) -> std::string {
    ClassifyOptions options = valid();
    begin(options);
    write_config(folder.path(), options, {}, {"images", {loss_figure()}, "loss"});
    change(options);
    return error_of([&] { changed_options(folder / "config.toml", options); });
  };
  const auto nothing = [](ClassifyOptions&) {};
  const auto sgd = [](ClassifyOptions& o) { o.optimizer.opt = "sgd"; };
  const auto no_momentum = [](ClassifyOptions& o) { o.optimizer.momentum = 0; };
  const auto average = [](ClassifyOptions& o) { o.model_ema = true; };
  EXPECT_EQ(refusal(nothing, [](ClassifyOptions& o) { o.optimizer.opt = "lamb"; }), "no error");
  EXPECT_EQ(refusal(nothing, no_momentum), "no error") << "AdamW has none";
  EXPECT_EQ(refusal(average, [](ClassifyOptions& o) { o.model_ema = false; }), "no error");
  EXPECT_EQ(refusal(sgd, [](ClassifyOptions& o) { o.optimizer.opt = "momentum"; }), "no error");
  EXPECT_EQ(refusal(sgd, [](ClassifyOptions& o) { o.optimizer.momentum = 0.5; }), "no error");
  EXPECT_THAT(refusal(sgd, no_momentum), HasSubstr("has --momentum 0.9 and cannot go on with 0"));
  EXPECT_THAT(refusal(nothing, sgd), HasSubstr("has --opt \"adamw\" and cannot go on with \"sgd\": begin a new one"));
  EXPECT_THAT(refusal(nothing, [](ClassifyOptions& o) { o.optimizer.opt = "lion"; }), HasSubstr("--opt"));
  EXPECT_THAT(refusal(nothing, average), HasSubstr("has --model-ema false and cannot go on with true"));
  EXPECT_THAT(refusal(nothing, [](ClassifyOptions& o) { o.linear_probe = true; }), HasSubstr("--linear-probe"));
}

TEST(Options, ReadWhatAPersonWrites) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "mine.toml") << "epochs = 5\n[optimizer]\nlr = 1\nclip_grad = 0.5\n";
  const ClassifyOptions options = test::options_in<ClassifyOptions>(folder / "mine.toml");
  EXPECT_EQ(options.epochs, 5);
  EXPECT_EQ(options.lr, 1.0);
  EXPECT_EQ(options.clip_grad, 0.5);
}

// Without a rate the model has its own, and 0 turns that off: the file knows one from the other.
TEST(Options, TellNoStochasticDepthFromTheModelsOwn) {
  const test::TemporaryFolder folder;
  const fs::path file = folder / "config.toml";
  using Rate = std::optional<double>;
  for (const Rate rate : {Rate(), Rate(0), Rate(0.2)}) {
    ClassifyOptions options = valid();
    options.drop_path = rate;
    write_config(folder.path(), options, {}, {});
    EXPECT_EQ(test::options_in<ClassifyOptions>(file).drop_path, rate);
    ClassifyOptions other = valid();
    other.drop_path = 0.5;
    EXPECT_EQ(test::options_in(file, other).drop_path, rate ? rate : Rate(0.5)) << "what is not set is left alone";
  }
  std::ofstream(file) << "[model]\ndrop = 0.0\ndrop_path = 0.0\n";  // as runs were written when 0 was the default
  EXPECT_EQ(test::options_in<ClassifyOptions>(file).drop_path, Rate(0));
  ClassifyOptions wrong = valid();
  wrong.drop_path = 1;
  EXPECT_THAT(error_of([&] { validate(wrong); }), HasSubstr("--drop-path must be from 0 to below 1, but is 1"));
}

// Without --val-split, frames evaluate on the part that there is, or hold out a share; an empty one holds out nothing,
// unless the share is given too.
TEST(Options, HoldOutAShareWhereThereIsNoPart) {
  const test::TemporaryFolder folder;
  FrameTaskOptions options;
  options.data_dir = "sequences";
  write_config(folder.path(), options, {}, {});
  EXPECT_EQ(test::options_in<FrameTaskOptions>(folder / "config.toml").held_out(), 0.2) << "as it was";
  const auto with = [&](const std::string& split, std::optional<double> share) {
    options.val_split = split;
    options.val_share = share;
    return std::pair(options.has_part_apart(), options.held_out());
  };
  const std::string own = options.val_split;
  EXPECT_EQ(with("test", {}), std::pair(true, 0.0));
  EXPECT_EQ(with("", {}), std::pair(false, 0.0));
  EXPECT_EQ(with("", 0.2), std::pair(false, 0.2)) << "as older runs say it";
  EXPECT_EQ(with("validation", 0.2), std::pair(true, 0.0)) << "likewise";
  EXPECT_EQ(with(own, 0), std::pair(false, 0.0));
  std::filesystem::create_directories(folder / "parts" / "Train");
  options.data_dir = (folder / "parts").string();
  EXPECT_EQ(with(own, {}), std::pair(false, 0.2)) << "a part for training alone";
  std::filesystem::create_directories(folder / "parts" / "Val");
  EXPECT_EQ(with(own, {}), std::pair(true, 0.0));
  EXPECT_EQ(with(own, 0.3), std::pair(false, 0.3)) << "it was asked for";
  EXPECT_EQ(with(own, 0), std::pair(false, 0.0));
}

TEST(Options, NameWhatIsWrongInConfigToml) {
  const test::TemporaryFolder folder;
  const auto error_with = [&](const char* text) {
    std::ofstream(folder / "mine.toml") << text;
    return error_of([&] { test::options_in<ClassifyOptions>(folder / "mine.toml"); });
  };
  EXPECT_THAT(error_with("[batches]\nbatchsize = 3"), HasSubstr("batchsize"));
  EXPECT_THAT(error_with("epochs = \"many\""), HasSubstr("epochs"));
  EXPECT_THAT(error_with("epochs = 1.5"), HasSubstr("epochs"));
  EXPECT_THAT(error_with("scale = [1, \"x\"]"), HasSubstr("scale"));
  EXPECT_THAT(error_with("epochs = "), HasSubstr("mine.toml"));
}

TEST(Options, AreCheckedByTheNamesOfTheFlags) {
  EXPECT_NO_THROW(validate(valid()));
  const auto error_with = [](auto&& change) {
    ClassifyOptions options = valid();
    change(options);
    return error_of([&] { validate(options); });
  };
  EXPECT_THAT(error_with([](auto& o) { o.batch_size = 0; }), HasSubstr("--batch-size must be at least 1, but is 0"));
  EXPECT_THAT(error_with([](auto& o) { o.smoothing = 1; }), HasSubstr("--smoothing"));
  EXPECT_THAT(error_with([](auto& o) { o.augment.hflip = std::nan(""); }), HasSubstr("--hflip"));
  EXPECT_THAT(error_with([](auto& o) { o.optimizer.opt = "adamm"; }), HasSubstr("--opt must be one of adamw, "));
  EXPECT_THAT(error_with([](auto& o) { o.augment.aa = "rnd-m9"; }), HasSubstr("did you mean 'rand'"));
  EXPECT_THAT(error_with([](auto& o) { o.aug_repeats = 0.5; }), HasSubstr("--aug-repeats"));
  EXPECT_THAT(error_with([](auto& o) { o.mixup_mode = "element"; }), HasSubstr("batch, pair, elem, half"));
  EXPECT_THAT(error_with([](auto& o) { o.tta = 1; }), HasSubstr("--tta takes 0"));
  EXPECT_THAT(error_with([](auto& o) { o.schedule.sched = "cosin"; }), HasSubstr("--sched"));
  EXPECT_THAT(error_with([](auto& o) { o.augment.scale = std::pair(1.0, 0.5); }), HasSubstr("--scale"));
  EXPECT_THAT(error_with([](auto& o) { o.warmup_epochs = 100; }), HasSubstr("--warmup-epochs"));
  EXPECT_THAT(error_with([](auto& o) { o.experiment = "a/b"; }), HasSubstr("--experiment"));
  EXPECT_THAT(error_with([](auto& o) { o.eval_metric = "f1"; }), HasSubstr("--eval-metric"));
}

TEST(LearningRate, WarmsUpForUpdatesUnlessItIsToldEpochs) {
  ClassifyOptions options;
  options.warmup_steps = 30;
  EXPECT_DOUBLE_EQ(schedule_of(options, 20).warmup_epochs, 1.5);
  options.warmup_epochs = 3;
  EXPECT_DOUBLE_EQ(schedule_of(options, 20).warmup_epochs, 3);
}

TEST(LearningRate, GrowsWithTheBatchAsTimmHasIt) {
  ClassifyOptions options;
  options.batch_size = 64;
  options.grad_accum_steps = 4;
  EXPECT_DOUBLE_EQ(learning_rate(options), 1e-3) << "at --lr-base-size";
  options.grad_accum_steps = 1;
  EXPECT_DOUBLE_EQ(learning_rate(options), 5e-4) << "by the square root for AdamW";
  options.optimizer.opt = "sgd";
  EXPECT_DOUBLE_EQ(learning_rate(options), 0.025) << "linear for SGD";
  options.optimizer.opt = "lamb";
  EXPECT_DOUBLE_EQ(learning_rate(options), 5e-4) << "as AdamW's, which timm has alike";
  options.optimizer.opt = "lion";
  EXPECT_DOUBLE_EQ(learning_rate(options), 2.5e-5) << "its own, linear";
  options.optimizer.opt = "sgd";
  options.lr_base_scale = "sqrt";
  EXPECT_DOUBLE_EQ(learning_rate(options), 0.05);
  options.lr_base = 0.2;
  EXPECT_DOUBLE_EQ(learning_rate(options), 0.1);
  options.lr = 3;
  EXPECT_DOUBLE_EQ(learning_rate(options), 3);
}

}  // namespace
}  // namespace vitrail::train
