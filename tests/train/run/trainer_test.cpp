#include "vitrail/train/run/trainer.h"

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
#include "vitrail/autograd/tape.h"
#include "vitrail/io/file.h"
#include "vitrail/models/base/owner.h"
#include "vitrail/models/model.h"
#include "vitrail/models/swin/swin.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/tensor/allocator.h"
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

TEST(Fit, WritesTheWholeRunFolder) {
  const test::TemporaryFolder folder;
  const FitResult result = fit(tiny_options(folder.path()));
  const fs::path run = folder / "runs/tiny";
  EXPECT_EQ(result.folder, run);
  EXPECT_EQ(result.steps, 18);
  EXPECT_EQ(result.epochs, 3);
  EXPECT_GT(result.figure("top5"), 0);
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

// A rate of zero leaves all as it was at first: the classifier of other classes is new, that of the same ones is kept.
TEST(Fit, GivesOtherClassesANewClassifier) {
  const test::TemporaryFolder folder;
  const ClassifyOptions options = tiny_options(folder.path());
  fit(options);
  ClassifyOptions tuned = options;
  tuned.model = (folder / "runs/tiny/best").string();
  tuned.model_kwargs = "{}";
  tuned.lr = tuned.schedule.warmup_lr = tuned.weight_decay = 0;
  const auto weight_after = [&](const char* experiment, const char* name) {
    tuned.experiment = experiment;
    fit(tuned);
    return models::load_model(folder / "runs" / experiment / "best").net->parameters.find(name)->value.values();
  };
  const models::Model before = models::load_model(tuned.model);
  const auto weight_before = [&](const char* name) { return before.net->parameters.find(name)->value.values(); };
  EXPECT_EQ(weight_after("same", "head.weight"), weight_before("head.weight"));
  for (const char* part : {"data/train", "data/validation"}) {
    fs::rename(folder / part / "class1", folder / part / "bird");
  }
  EXPECT_NE(weight_after("others", "head.weight"), weight_before("head.weight"));
  EXPECT_EQ(weight_after("body", "norm.weight"), weight_before("norm.weight"));
}

TEST(Fit, LearnsATinyDataSetByHeart) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.epochs = 20;
  options.lr = 3e-3;
  options.drop = 0;
  options.drop_path = 0;
  options.augment.no_aug = true;
  options.smoothing = 0;
  options.val_split = "train";
  EXPECT_EQ(fit(options).figure("top1"), 100);
}

// A network with batch norms, a hybrid, windows, Mlps alone: each learns, and its run folder holds what it has learned.
TEST(Fit, TrainsBackbonesOfEveryKind) {
  const test::TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> backbones = {
      {"resnet18", R"({"img_size": 32, "layers": [1, 1, 1, 1], "channels": [8, 16, 24, 32]})"},
      {"vit_tiny_r_s16_p8_224", R"({"img_size": 32, "patch_size": 2, "embed_dim": 24, "depth": 2, "num_heads": 2})"},
      {"swin_tiny_patch4_window7_224",
       R"({"img_size": 16, "patch_size": 2, "window_size": 4, "embed_dim": 12, "depths": [1, 1], "num_heads": [2, 2]})"},
      {"mixer_s32_224", R"({"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_blocks": 2})"},
  };
  for (const auto& [model, kwargs] : backbones) {
    SCOPED_TRACE(model);
    ClassifyOptions options = tiny_options(folder.path());
    options.experiment = options.model = model;
    options.model_kwargs = kwargs;
    options.drop = options.smoothing = 0;
    options.drop_path.reset();
    options.augment.no_aug = true;
    options.epochs = 6;
    options.lr = 3e-3;
    const FitResult result = fit(options);
    const std::vector<nlohmann::json> lines = json_lines(result.folder / "metrics.jsonl");
    ASSERT_EQ(lines.size(), 42U) << "36 steps and 6 evaluations";
    EXPECT_LT(lines[41].at("loss").get<double>(), 0.85 * lines[6].at("loss").get<double>());
    const models::Model trained = models::load_model(result.folder / "last");
    EXPECT_EQ(trained.architecture, model);
    const auto validation = data::open_dataset(folder / "data/validation");
    EXPECT_NEAR(evaluate(trained, *validation).loss, result.figure("loss"), 1e-4);
  }
}

TEST(StochasticDepth, IsTheModelsOwnUnlessARateIsGiven) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.model = "swin_tiny_patch4_window7_224";
  options.model_kwargs = R"({"img_size": 16, "patch_size": 2, "window_size": 4, "embed_dim": 12, "depths": [1, 1],
                             "num_heads": [2, 2]})";
  const auto rate_of = [](Task& task) {
    auto& model = dynamic_cast<models::ImageModel&>(task.network());
    return models::body_of<models::SwinTransformer>(model)->config().drop_path_rate;
  };
  using Rate = std::optional<double>;
  for (const auto& [given, expected] : {std::pair{Rate(), 0.1}, {Rate(0), 0.0}, {Rate(0.3), 0.3}}) {
    options.drop_path = given;
    const std::unique_ptr<Task> fresh = options.make({});
    EXPECT_EQ(rate_of(*fresh), expected);
    const fs::path saved = folder / fmt::format("saved-{}", expected);
    fresh->save(saved);
    EXPECT_EQ(rate_of(*options.make(saved)), expected) << "of a run that is resumed";
  }
}

TEST(Fit, ConfigRepeatsTheRun) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()));
  ClassifyOptions again = test::options_in<ClassifyOptions>(folder / "runs/tiny/config.toml");
  again.experiment = "again";
  fit(again);
  EXPECT_EQ(weights_of(folder / "runs/tiny/last"), weights_of(folder / "runs/again/last"));
  EXPECT_EQ(untimed(folder / "runs/tiny/metrics.jsonl"), untimed(folder / "runs/again/metrics.jsonl"));
}

// Another program can repeat such a run step by step: images in the order of their names, as they are.
TEST(Fit, TrainsOnTheSortedFilesInOrder) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.augment.no_aug = options.no_shuffle = true;
  options.schedule.sched = "none";
  options.smoothing = 0;
  options.drop_path = options.drop = 0.0;
  options.epochs = 2;
  models::CreateOptions create;
  create.model_kwargs = options.model_kwargs;
  create.num_classes = 3;
  create.seed = 3;
  models::Model model = models::create_model(options.model, create);
  models::save_model(model, folder / "start");
  options.model = (folder / "start").string();
  options.model_kwargs = "{}";
  fit(options);

  optim::Optimizer optimizer(
      model.net->parameters, {.opt = "adamw"},
      optim::groups_by_weight_decay(model.net->parameters, options.weight_decay,
                                    [&](const std::string& name) { return model.net->no_weight_decay(name); }));
  std::vector<double> losses;
  for (int step = 0; step < 12; ++step) {
    const Tensor x = Tensor::empty({4, 3, 8, 8});
    const Tensor labels = Tensor::empty({4}, DType::i64);
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t index = (4 * step + i) % 24;
      const io::Image image =
          io::read_image(folder / "data/train" / fmt::format("class{}", index / 8) / fmt::format("{}.png", index % 8));
      labels.data<std::int64_t>()[i] = index / 8;
      for (std::int64_t p = 0; p < 64; ++p) {
        for (std::int64_t c = 0; c < 3; ++c) {
          const float value = static_cast<float>(image.pixels[static_cast<std::size_t>(3 * p + c)]) / 255;
          x.data<float>()[(i * 3 + c) * 64 + p] = (value - 0.5F) / 0.5F;
        }
      }
    }
    model.net->parameters.zero_grad();
    nn::Pass pass{.training = true};
    autograd::Tape tape;
    const Tensor loss = ops::cross_entropy(model.net->forward(x, pass), labels);
    tape.backward(loss);
    optimizer.step(*options.lr);
    losses.push_back(loss.item());
  }
  std::size_t step = 0;
  for (const nlohmann::json& line : json_lines(folder / "runs/tiny/metrics.jsonl")) {
    if (line.contains("lr")) {
      ASSERT_LT(step, losses.size());
      EXPECT_NEAR(line.at("loss").get<double>(), losses[step], 1e-5) << "step " << step;
      EXPECT_EQ(line.at("lr"), 1e-3);
      ++step;
    }
  }
  EXPECT_EQ(step, losses.size());
}

TEST(Fit, TrainsAlikeWithGradientCheckpointing) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.drop_path = options.drop = 0;
  fit(options);
  options.grad_checkpointing = true;
  options.experiment = "again";
  fit(options);
  const std::vector<nlohmann::json> one = json_lines(folder / "runs/tiny/metrics.jsonl");
  const std::vector<nlohmann::json> two = json_lines(folder / "runs/again/metrics.jsonl");
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i].at("loss").get<double>(), two[i].at("loss").get<double>(), 1e-4) << "line " << i;
  }
}

TEST(Fit, TakesTheInputSizeAsTimmDoes) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.epochs = 1;
  options.warmup_epochs = 0;
  options.input_size = {1, 12, 8};
  fit(options);
  const models::Model model = models::load_model(folder / "runs/tiny/last");
  EXPECT_EQ(model.pretrained.channels, 1);
  EXPECT_EQ(model.pretrained.height, 12);
  EXPECT_EQ(model.pretrained.width, 8);
  options.input_size = {3, 8};
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("--input-size takes three numbers"));
}

TEST(FineTuning, TakesAnotherHeadAndImageSize) {
  const test::TemporaryFolder folder;
  fit(tiny_options(folder.path()));
  test::write_images(folder / "five/train", 4, 5);
  test::write_images(folder / "five/validation", 2, 5, 1);
  ClassifyOptions options = tiny_options(folder.path());
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
  ClassifyOptions options = tiny_options(folder.path());
  fit(options);
  options.pretrained_path = (folder / "runs/tiny/last").string();
  options.experiment = "probe";
  options.linear_probe = true;
  fit(options);
  const models::Model before = models::load_model(folder / "runs/tiny/last");
  const models::Model after = models::load_model(folder / "runs/probe/last");
  for (const nn::Parameter& parameter : before.net->parameters.all()) {
    const bool same = parameter.value.values() == after.net->parameters.at(parameter.name).value.values();
    EXPECT_EQ(same, !before.net->is_head(parameter.name)) << parameter.name;
  }
}

TEST(Fit, StopsAtALossThatIsNotFinite) {
  const test::AllowNonFinite allow;
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.optimizer.opt = "sgd";
  options.lr = 1e30;
  options.warmup_epochs = 0;
  EXPECT_THAT(error_of([&] { fit(options); }),
              AllOf(::testing::ContainsRegex("the loss is (NaN|infinite) in step"), HasSubstr("learning rate"),
                    HasSubstr("--lr"), HasSubstr("is whole")));
  options = test::resumed<ClassifyOptions>(folder / "runs/tiny");
  options.lr = 1e-3;
  EXPECT_EQ(fit(options).steps, 18) << "the checkpoint from before is intact";
}

TEST(Fit, RefusesDataThatCannotBeTrainedOn) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  const auto error_with = [&](auto&& change) {
    ClassifyOptions changed = options;
    change(changed);
    const std::string words = error_of([&] { fit(changed); });
    EXPECT_FALSE(fs::exists(folder / "runs")) << "nothing is written: " << words;
    return words;
  };
  EXPECT_THAT(error_with([](auto& o) { o.data_dir = ""; }), HasSubstr("--data-dir is missing"));
  EXPECT_THAT(error_with([&](auto& o) { o.data_dir = (folder / "nowhere").string(); }), HasSubstr("nowhere"));
  EXPECT_THAT(error_with([](auto& o) { o.num_classes = 2; }), HasSubstr("3 classes"));
  EXPECT_THAT(error_with([](auto& o) { o.freeze = {"no_such."}; }), HasSubstr("--freeze no_such."));
  EXPECT_THAT(error_with([](auto& o) { o.model = "vit_tinny_patch16_224"; }), HasSubstr("vit_tiny_patch16_224"));
  EXPECT_THAT(error_with([](auto& o) { o.epochs = 0; }), HasSubstr("--epochs"));

  test::write_images(folder / "one/train", 4, 1);
  test::write_images(folder / "one/validation", 4, 1);
  EXPECT_THAT(error_with([&](auto& o) { o.data_dir = (folder / "one").string(); }), HasSubstr("class"));
  fs::create_directories(folder / "data/train/empty");
  EXPECT_THAT(error_with([](auto&) {}), HasSubstr("empty"));
}

TEST(Fit, DoesNotTouchARunThatExists) {
  const test::TemporaryFolder folder;
  const ClassifyOptions options = tiny_options(folder.path());
  fit(options, stop_after(1));
  const std::string before = io::read_text(folder / "runs/tiny/metrics.jsonl");
  EXPECT_THAT(error_of([&] { fit(options); }), AllOf(HasSubstr("--resume"), HasSubstr("--experiment")));
  EXPECT_EQ(io::read_text(folder / "runs/tiny/metrics.jsonl"), before);
}

TEST(Fit, NumbersRunsWithoutName) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.experiment = "";
  const fs::path first = fit(options, stop_after(1)).folder;
  const fs::path second = fit(options, stop_after(1)).folder;
  EXPECT_NE(first, second);
  EXPECT_THAT(first.string(), HasSubstr("-vit_tiny_patch16_224-8"));
}

TEST(Fit, SaysWhenTheFolderCannotBeWritten) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  std::ofstream(folder / "file") << "not a folder";
  options.output = (folder / "file").string();
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr((folder / "file").string()));
}

TEST(Fit, SurvivesAFullDisk) {
  const test::TemporaryFolder folder;
  const ClassifyOptions options = tiny_options(folder.path());
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
  EXPECT_EQ(fit(test::resumed<ClassifyOptions>(folder / "runs/tiny")).steps, 18);
}

TEST(Fit, SaysWhatToDoWhenMemoryRunsOut) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
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

TEST(Fit, LeavesBrokenImagesOutIfAllowed) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  std::ofstream(folder / "data/train/class1/3.png") << "no image";
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("3.png"));
  options.skip_broken = true;
  options.experiment = "skipping";
  EXPECT_EQ(fit(options).epochs, 3);
}

TEST(Fit, KeepsTheLowestLossWithoutValidation) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.val_split = "";
  const FitResult result = fit(options);
  EXPECT_TRUE(result.figures.empty());
  EXPECT_GT(result.best_epoch, 0);
  EXPECT_TRUE(fs::exists(folder / "runs/tiny/best/model.safetensors"));
}

TEST(Fit, TrainsBothHeadsOfADistilledModel) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.model = "deit_tiny_distilled_patch16_224";
  fit(options);
  const std::vector<nlohmann::json> lines = json_lines(folder / "runs/tiny/metrics.jsonl");
  EXPECT_LT(lines[20].at("loss"), lines[6].at("loss"));
}

}  // namespace
}  // namespace vitrail::train
