// The runs of methods that learn from views: what they write, resume to and refuse.
#include "vitrail/train/pretrain/view_task.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/train/pretrain/dino.h"
#include "vitrail/train/pretrain/mocov3.h"
#include "vitrail/train/pretrain/simclr.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

// Three epochs of six batches of four images.
template <class Options>
Options tiny_views(const fs::path& folder) {
  const ClassifyOptions tiny = test::tiny_options(folder);  // makes the images
  Options options;
  options.data_dir = tiny.data_dir;
  options.output = tiny.output;
  options.experiment = options.kind();
  options.model = tiny.model;
  options.model_kwargs = R"({"img_size": 8, "patch_size": 2, "embed_dim": 24, "depth": 2, "num_heads": 2})";
  options.batch_size = 4;
  options.epochs = 3;
  options.warmup_epochs = 1;
  options.lr = 1e-3;
  options.images.crop_pct = 1;
  options.threads = 1;
  return options;
}

PretrainSimclrOptions tiny_simclr(const fs::path& folder) {
  auto options = tiny_views<PretrainSimclrOptions>(folder);
  options.hidden_dim = 16;
  options.projection_dim = 8;
  return options;
}

PretrainMocov3Options tiny_mocov3(const fs::path& folder) {
  auto options = tiny_views<PretrainMocov3Options>(folder);
  options.moco_mlp_dim = 16;
  options.moco_dim = 8;
  return options;
}

PretrainDinoOptions tiny_dino(const fs::path& folder) {
  auto options = tiny_views<PretrainDinoOptions>(folder);
  options.out_dim = 32;
  options.head_hidden_dim = 16;
  options.head_bottleneck_dim = 8;
  options.local_crops_number = 2;
  return options;
}

FitHooks stopping_after(std::int64_t steps) {
  FitHooks hooks;
  auto count = std::make_shared<std::int64_t>(0);
  hooks.should_stop = [count, steps] { return ++*count >= steps; };
  return hooks;
}

// A run that is stopped inside an epoch and goes on ends with the same bits as one that is not.
template <class Options>
void expect_resumed(Options options, const fs::path& folder) {
  options.knn_data = options.data_dir;
  options.knn_k = 3;
  const FitResult whole = fit(options);
  EXPECT_EQ(whole.steps, 18);
  EXPECT_GE(whole.figure("knn"), 0);
  EXPECT_GT(whole.figure("deviation"), 0);
  options.experiment = "stopped";
  EXPECT_TRUE(fit(options, stopping_after(8)).stopped);
  const fs::path run = folder / "runs/stopped";
  EXPECT_FALSE(fit(test::resumed<Options>(run)).stopped);
  for (const char* checkpoint : {"last", "best"}) {
    EXPECT_EQ(test::weights_of(whole.folder / checkpoint), test::weights_of(run / checkpoint)) << checkpoint;
  }
  const io::Safetensors expected = io::Safetensors::open(whole.folder / "last/train-state.safetensors");
  const io::Safetensors state = io::Safetensors::open(run / "last/train-state.safetensors");
  ASSERT_EQ(state.names(), expected.names());
  for (const std::string& name : state.names()) {
    EXPECT_EQ(state.get(name).values(), expected.get(name).values()) << name;
  }
}

TEST(PretrainingFromViews, ResumesToTheSameBits) {
  const test::TemporaryFolder simclr;
  expect_resumed(tiny_simclr(simclr.path()), simclr.path());
  const test::TemporaryFolder mocov3;
  expect_resumed(tiny_mocov3(mocov3.path()), mocov3.path());
  const test::TemporaryFolder dino;
  expect_resumed(tiny_dino(dino.path()), dino.path());
}

TEST(PretrainingFromViews, TakesConvolutionalNetworksToo) {
  const test::TemporaryFolder folder;
  const auto small = [](auto options) {
    options.model = "resnet18";
    options.model_kwargs = R"({"channels": [8, 8, 16, 16], "layers": [1, 1, 1, 1]})";
    options.img_size = 32;
    options.epochs = 1;
    options.warmup_epochs = 0;
    return options;
  };
  for (const char* stats : {"both", "view"}) {
    PretrainSimclrOptions simclr = small(tiny_simclr(folder.path()));
    simclr.batch_stats = stats;
    simclr.experiment = stats;
    EXPECT_EQ(fit(simclr).steps, 6);
  }
  EXPECT_EQ(fit(small(tiny_mocov3(folder.path()))).steps, 6);
  EXPECT_EQ(fit(small(tiny_dino(folder.path()))).steps, 6);
}

TEST(PretrainingFromViews, KeepsAnEncoderThatIsFineTuned) {
  const test::TemporaryFolder folder;
  PretrainDinoOptions options = tiny_dino(folder.path());
  options.epochs = 2;
  const FitResult run = fit(options);
  const models::Model encoder = models::load_model(run.folder / "best");
  EXPECT_EQ(encoder.net->num_classes(), 0);
  // What is kept is the teacher, which lags behind the student.
  const io::Safetensors state = io::Safetensors::open(run.folder / "last/train-state.safetensors");
  const io::Safetensors student = io::Safetensors::open(run.folder / "last/pretraining.safetensors");
  const models::Model last = models::load_model(run.folder / "last");
  const Tensor kept = last.net->parameters.at("blocks.1.mlp.fc1.weight").value;
  EXPECT_EQ(kept.values(), state.get("task.momentum.blocks.1.mlp.fc1.weight").values());
  EXPECT_NE(kept.values(), student.get("blocks.1.mlp.fc1.weight").values());
  ClassifyOptions tuning = test::tiny_options(folder.path());
  tuning.model = run.folder.string();
  tuning.model_kwargs = "{}";
  tuning.epochs = 1;
  tuning.warmup_epochs = 0;
  EXPECT_EQ(models::load_model(fit(tuning).folder / "last").net->num_classes(), 3);
}

TEST(PretrainingFromViews, MocoFreezesPositionsAndPatches) {
  const test::TemporaryFolder folder;
  PretrainMocov3Options options = tiny_mocov3(folder.path());
  const std::unique_ptr<Task> task = options.make({});
  const nn::ParameterStore& parameters = task->network().parameters;
  EXPECT_FALSE(parameters.at("pos_embed").trainable);
  EXPECT_FALSE(parameters.at("patch_embed.proj.weight").trainable);
  EXPECT_TRUE(parameters.at("cls_token").trainable);
  test::expect_close(parameters.at("pos_embed").value, mocov3_positions(4, 4, 24), 1e-6);
  options.stop_grad_conv1 = false;
  EXPECT_TRUE(options.make({})->network().parameters.at("patch_embed.proj.weight").trainable);
  for (const nn::Parameter& parameter : parameters.all()) {
    EXPECT_FALSE(task->network().no_weight_decay(parameter.name)) << parameter.name;
  }
}

// On grids that are no squares, and behind other tokens than the class token.
TEST(PretrainingFromViews, MocoWritesThePositionsThatItFreezes) {
  const test::TemporaryFolder folder;
  PretrainMocov3Options options = tiny_mocov3(folder.path());
  const auto positions_of = [&](const std::string& kwargs) {
    options.model_kwargs = kwargs;
    const std::unique_ptr<Task> task = options.make({});
    const nn::Parameter& positions = task->network().parameters.at("pos_embed");
    EXPECT_FALSE(positions.trainable) << kwargs;
    return positions.value;
  };
  const std::string rest = R"("patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 3)";
  test::expect_close(positions_of(R"({"img_size": [16, 8], )" + rest + "}"), mocov3_positions(4, 2, 24), 1e-6);
  test::expect_close(positions_of(R"({"img_size": 16, "class_token": false, "global_pool": "avg", )" + rest + "}"),
                     mocov3_positions(4, 4, 24, 0), 1e-6);
  test::expect_close(positions_of(R"({"img_size": 16, "reg_tokens": 2, )" + rest + "}"), mocov3_positions(4, 4, 24, 3),
                     1e-6);
  const Tensor wide = mocov3_positions(2, 3, 8, 0);  // [1, 6, 8]: the fourth patch is in row 1, column 0
  EXPECT_NEAR(wide.values()[3 * 8], std::sin(1.0), 1e-6);
  EXPECT_NEAR(wide.values()[3 * 8 + 4], 0, 1e-6);
}

// EVA has no weight_init, airbench94 no stochastic depth.
TEST(PretrainingFromViews, TakesModelsWithoutTimmsArguments) {
  const test::TemporaryFolder folder;
  PretrainMocov3Options moco = tiny_mocov3(folder.path());
  moco.model = "eva02_tiny_patch14_224";
  moco.model_kwargs = R"({"img_size": 16, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 3})";
  const std::unique_ptr<Task> task = moco.make({});
  const Tensor weight = task->network().parameters.at("blocks.0.attn.proj.weight").value;
  double square = 0;
  for (const float value : weight.values()) {
    square += static_cast<double>(value) * static_cast<double>(value);
  }
  const double bound = std::sqrt(6.0 / 48);  // of Xavier's uniform distribution, whose variance is bound² / 3
  EXPECT_NEAR(std::sqrt(square / 576), bound / std::sqrt(3.0), 0.02);
  PretrainDinoOptions dino = tiny_dino(folder.path());
  dino.model = "airbench94";
  dino.model_kwargs = "{}";
  dino.local_crops_number = 0;
  EXPECT_NO_THROW(dino.make({}));
  dino.drop_path = 0.1;
  EXPECT_THAT(test::error_of([&] { dino.make({}); }), HasSubstr("drop_path_rate"));
}

// The teacher's momentum reaches 1 at the end of all epochs: where the student rests, in the cool-down, the teacher
// goes less and less towards it. If the momentum went back to its beginning, it would arrive there.
TEST(PretrainingFromViews, KnowsTheEpochsThatTheScheduleAdds) {
  const test::TemporaryFolder folder;
  PretrainDinoOptions options = tiny_dino(folder.path());
  options.epochs = 1;
  options.warmup_epochs = 0;
  options.schedule.sched = "cosine";
  options.schedule.cooldown_epochs = 1;
  options.momentum_teacher = 0;
  options.checkpoint_hist = 9;
  const FitResult run = fit(options);
  const auto behind = [&](const std::string& checkpoint) {
    const fs::path at = run.folder / checkpoint;
    const std::string name = "blocks.1.mlp.fc1.weight";
    const std::vector<float> teacher = models::load_model(at).net->parameters.at(name).value.values();
    const std::vector<float> student = io::Safetensors::open(at / "pretraining.safetensors").get(name).values();
    float most = 0;
    for (std::size_t i = 0; i < teacher.size(); ++i) {
      most = std::max(most, std::abs(teacher[i] - student[i]));
    }
    return most;
  };
  EXPECT_GT(behind("last"), 0.05F * behind("epochs/0001"));
}

TEST(PretrainingFromViews, TellsACollapse) {
  const test::TemporaryFolder folder;
  PretrainDinoOptions options = tiny_dino(folder.path());
  options.teacher_temp = options.warmup_teacher_temp = 100;  // the teacher becomes uniform
  const std::unique_ptr<Task> task = options.make({});
  std::string said;
  Work work;
  work.begin = [](std::string_view, std::int64_t) {};
  work.advance = [](std::int64_t) {};
  work.say = [&](const std::string& line) { said += line; };
  const Figures figures = task->evaluate(work);
  EXPECT_NEAR(figure(figures, "teacher_entropy"), std::log(32.0), 1e-3);
  EXPECT_NEAR(figure(figures, "information"), 0, 1e-3);
  EXPECT_THAT(said, HasSubstr("the same probability for every image (entropy 3.466 of ln 32 = 3.466)"));
  EXPECT_THAT(said, HasSubstr("lower --teacher-temp"));
}

TEST(PretrainingFromViews, LeavesNothingOfARunThatCannotReadAnImage) {
  const test::TemporaryFolder folder;
  PretrainSimclrOptions options = tiny_simclr(folder.path());
  for (const auto& file : fs::recursive_directory_iterator(options.data_dir)) {
    if (file.is_regular_file()) {
      std::ofstream(file.path()) << "no image";
    }
  }
  for (const bool skip_broken : {false, true}) {
    options.skip_broken = skip_broken;
    const std::string error = error_of([&] { fit(options); });
    EXPECT_NE(error, "");
    EXPECT_THAT(error, Not(HasSubstr("is whole")));
    EXPECT_FALSE(fs::exists(fs::path(options.output) / "simclr"));
  }
}

TEST(PretrainingFromViews, ClipNoGradientByANormOfZero) {
  const test::TemporaryFolder folder;
  PretrainDinoOptions options = tiny_dino(folder.path());
  options.epochs = 1;
  options.warmup_epochs = 0;
  options.freeze_last_layer = 0;
  const auto weights = [&](std::optional<double> clip, const std::string& name) {
    options.clip_grad = clip;
    options.experiment = name;
    return test::weights_of(fit(options).folder / "last");
  };
  const auto none = weights(std::nullopt, "none");
  EXPECT_EQ(weights(0, "zero"), none);
  EXPECT_NE(weights(1e-6, "little"), none);
}

TEST(PretrainingFromViews, SaysWhatMakesNoSense) {
  const test::TemporaryFolder folder;
  const auto refusal = [](auto options, auto spoil) {
    spoil(options);
    return error_of([&] { fit(options); });
  };
  const PretrainDinoOptions dino = tiny_dino(folder.path());
  const PretrainSimclrOptions simclr = tiny_simclr(folder.path());
  EXPECT_THAT(refusal(simclr, [](auto& o) { o.batch_size = 1; }), HasSubstr("--batch-size 1 is too small"));
  EXPECT_THAT(refusal(simclr, [](auto& o) { o.batch_size = 25; }),
              HasSubstr("a batch of 25 is more than the 24 training images"));
  EXPECT_THAT(refusal(simclr, [](auto& o) { o.data_dir = ""; }), HasSubstr("DATA is missing"));
  EXPECT_THAT(refusal(simclr, [](auto& o) { o.views = "x.safetensors"; }), HasSubstr("DATA has no place"));
  EXPECT_THAT(refusal(dino, [](auto& o) { o.local_crops_size = 5; }),
              HasSubstr("--local-crops-size 5 is not made of whole patches: it must be a multiple of 2"));
  EXPECT_THAT(refusal(dino, [](auto& o) { o.local_crops_size = 10; }),
              HasSubstr("--local-crops-size 10 is more than the 8 pixels of the large crops"));
  EXPECT_THAT(refusal(dino, [](auto& o) { o.warmup_teacher_temp_epochs = 4; }),
              HasSubstr("--warmup-teacher-temp-epochs 4 is more than the 3 --epochs"));
  EXPECT_THAT(refusal(dino, [](auto& o) { o.freeze_last_layer = 3; }), HasSubstr("--freeze-last-layer 3"));
  EXPECT_THAT(refusal(dino,
                      [](auto& o) {
                        o.model = "mixer_s16_224";
                        o.model_kwargs = "{}";
                      }),
              HasSubstr("--local-crops-number 0"));
  const Tensor views = Tensor::zeros({4, 3, 8, 8});
  views.data<float>()[2 * 3 * 8 * 8 + 5] = std::numeric_limits<float>::quiet_NaN();
  io::save_safetensors(folder / "views.safetensors", {{"view0", Tensor::zeros({4, 3, 8, 8})}, {"view1", views}});
  EXPECT_THAT(refusal(simclr,
                      [&](auto& o) {
                        o.data_dir = "";
                        o.views = (folder / "views.safetensors").string();
                      }),
              HasSubstr("'view1' has a number that is not finite, in image 2"));
  EXPECT_FALSE(fs::exists(fs::path(dino.output) / "dino"));
  EXPECT_FALSE(fs::exists(fs::path(dino.output) / "simclr"));
}

}  // namespace
}  // namespace vitrail::train
