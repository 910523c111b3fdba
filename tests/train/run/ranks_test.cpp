// Several ranks train as one process does. Here they are threads; tests/cli/train/ranks_test.cpp has processes of MPI.
#include "vitrail/train/run/ranks.h"

#include <cmath>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dist/thread_ranks.h"
#include "tests/support/errors.h"
#include "tests/support/finite.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"
#include "vitrail/train/captions/caption.h"
#include "vitrail/train/detection/detect.h"
#include "vitrail/train/pretrain/dino.h"
#include "vitrail/train/pretrain/mocov3.h"
#include "vitrail/train/tasks/pretrain_mae.h"
#include "vitrail/train/vqa/vqa.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class RanksTest : public ::testing::Test {
 protected:
  // A run of 15 updates: six batches of four images an epoch, of which an update has up to four.
  ClassifyOptions options(const std::string& name) const {
    ClassifyOptions options = test::tiny_options(folder_.path());
    options.experiment = name;
    options.grad_shards = 4;
    options.epochs = 3;
    options.comm_timeout = 20;
    return options;
  }
  fs::path run(const std::string& name) const { return folder_ / "runs" / name; }
  std::uint64_t weights(const std::string& name) const { return test::weights_of(run(name) / "last"); }
  std::uint64_t checksum_of_state(const std::string& name) const {
    const io::Safetensors file = io::Safetensors::open(run(name) / "last" / "train-state.safetensors");
    return checksum(with_prefix(file, ""));
  }
  // What the records of updates say of `key`.
  std::vector<double> numbers(const std::string& name, const std::string& key) const {
    std::vector<double> numbers;
    for (const nlohmann::json& line : test::json_lines(run(name) / "metrics.jsonl")) {
      if (line.contains("lr")) {
        numbers.push_back(line[key]);
      }
    }
    return numbers;
  }
  std::vector<double> losses(const std::string& name) const { return numbers(name, "loss"); }
  // The records of evaluations.
  std::vector<nlohmann::json> evaluations(const std::string& name) const {
    std::vector<nlohmann::json> records = test::json_lines(run(name) / "metrics.jsonl");
    std::erase_if(records, [](const nlohmann::json& line) { return line.contains("lr"); });
    return records;
  }
  // Trains on so many ranks; each stops after `stop` updates (0: none does).
  static void fit_on(int ranks, const TaskOptions& options, std::int64_t stop = 0) {
    test::on_ranks(ranks, [&](test::ThreadRank& self) {
      FitHooks hooks = stop > 0 ? test::stop_after(stop) : FitHooks();
      hooks.ranks = &self;
      EXPECT_EQ(fit(options, hooks).stopped, stop > 0);
    });
  }
  void expect_losses(const std::string& name, const std::string& other, double relative) const {
    const std::vector<double> one = losses(name);
    const std::vector<double> two = losses(other);
    ASSERT_EQ(one.size(), two.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_NEAR(one[i], two[i], relative * one[i]) << "step " << i + 1;
    }
  }
  // Trains by the same options on 1, 2 and 4 ranks, whose states and figures have the same bits.
  template <class Options>
  void expect_same_figures(Options options) {
    std::vector<std::uint64_t> states;
    for (const int ranks : {1, 2, 4}) {
      options.experiment = fmt::format("ranks-{}", ranks);
      fs::remove_all(run(options.experiment));
      fit_on(ranks, options);
      states.push_back(checksum_of_state(options.experiment));
    }
    EXPECT_EQ(states[1], states[0]);
    EXPECT_EQ(states[2], states[0]);
    for (const char* several : {"ranks-2", "ranks-4"}) {
      EXPECT_EQ(losses(several), losses("ranks-1")) << several;
      EXPECT_EQ(evaluations(several), evaluations("ranks-1")) << several;
    }
  }
  // The same of an image model, with the bits of its weights.
  template <class Options>
  void expect_same_bits(Options options) {
    expect_same_figures(options);
    EXPECT_EQ(weights("ranks-2"), weights("ranks-1"));
    EXPECT_EQ(weights("ranks-4"), weights("ranks-1"));
  }
  // A task on drawn scenes, which are evaluated in three batches.
  template <class Options>
  Options on_scenes(const std::string& scenes) const {
    Options options;
    static_cast<RunOptions&>(options) = static_cast<const RunOptions&>(this->options("scenes"));
    options.eval_metric = Options().eval_metric;
    options.data_dir = "scenes:size=32,count=16,validation=10" + scenes;
    options.batch_size = options.validation_batch_size.emplace(4);
    options.epochs = 2;
    return options;
  }
  // The same of a pretraining from views, by a network with batch norms.
  template <class Options>
  Options views(const std::string& name) const {
    Options options;
    static_cast<RunOptions&>(options) = static_cast<const RunOptions&>(this->options(name));
    options.eval_metric = Options().eval_metric;
    options.data_dir = (folder_ / "data" / "train").string();
    options.model = "resnet18";
    options.model_kwargs = R"({"channels": [4, 4, 8, 8], "layers": [1, 1, 1, 1], "img_size": 32})";
    options.lr = 1e-3;
    options.warmup_epochs = 0;
    return options;
  }

  test::TemporaryFolder folder_;
};

TEST_F(RanksTest, GiveTheSameBitsWhateverTheirNumber) { expect_same_bits(options("bits")); }

TEST_F(RanksTest, ClipAndAverageTogether) {
  ClassifyOptions with = options("clipped");
  with.clip_grad = 0.1;
  with.model_ema = true;
  with.grad_checkpointing = true;
  expect_same_bits(with);
}

TEST_F(RanksTest, AverageRunningStatistics) {
  ClassifyOptions with = options("norms");
  with.model = "resnet18";
  with.model_kwargs = R"({"channels": [4, 4, 8, 8], "layers": [1, 1, 1, 1], "img_size": 16})";
  with.drop = 0;
  expect_same_bits(with);
}

// Two ranks with batches of four are one process with batches of eight, whose statistics they compute together.
TEST_F(RanksTest, TakeTheStatisticsOfTheWholeBatch) {
  ClassifyOptions with = options("whole");
  with.model = "resnet18";
  with.model_kwargs = R"({"channels": [4, 4, 8, 8], "layers": [1, 1, 1, 1], "img_size": 16})";
  with.drop = 0;
  with.lr = with.schedule.warmup_lr = 1e-7;  // ReLU and few values a channel make much of last bits
  with.clip_grad = 1e6;                      // so that the norm of the gradients is written down
  with.grad_shards = 0;
  with.batch_size = 8;
  fit_on(1, with);
  with.batch_size = 4;
  with.experiment = "apart";
  fit_on(2, with);
  const double apart = std::abs(losses("apart").front() - losses("whole").front());
  EXPECT_GT(apart, 1e-3);
  EXPECT_GT(std::abs(numbers("apart", "grad_norm")[1] / numbers("whole", "grad_norm")[1] - 1), 2e-2);
  with.sync_bn = true;
  for (const bool checkpointing : {false, true}) {
    with.grad_checkpointing = checkpointing;
    with.experiment = checkpointing ? "checkpointed" : "together";
    fit_on(2, with);
    expect_losses("whole", with.experiment, 1e-5);
    const std::vector<double> norms = numbers(with.experiment, "grad_norm");
    ASSERT_EQ(norms.size(), 9U);
    for (std::size_t i = 0; i < norms.size(); ++i) {
      EXPECT_NEAR(norms[i], numbers("whole", "grad_norm")[i], 5e-3 * norms[i]) << "step " << i + 1;
    }
  }
  const auto buffers = [&](const std::string& name) {
    return io::Safetensors::open(run(name) / "last" / "model.safetensors");
  };
  for (const char* name : {"bn1.running_mean", "layer4.0.bn2.running_var"}) {
    test::expect_close(buffers("together").get(name), buffers("whole").get(name), 1e-5, name);
  }
  with.experiment = "uneven";  // the last update of an epoch has two batches for four ranks
  fit_on(4, with);
  EXPECT_TRUE(std::isfinite(losses("uneven").back()));
  with.grad_shards = 4;
  EXPECT_THAT(error_of([&] { validate(with); }), HasSubstr("--grad-shards excludes"));
  with.grad_shards = 0;
  with.model = options("none").model;
  with.model_kwargs = options("none").model_kwargs;
  EXPECT_THAT(error_of([&] { fit(with); }), HasSubstr("the network has no batch norms"));
}

// An update of four batches and one of two, which not all ranks have a part of.
TEST_F(RanksTest, FollowWithMomentumAndCentreTogether) {
  PretrainMocov3Options moco = views<PretrainMocov3Options>("mocov3");
  moco.moco_dim = moco.moco_mlp_dim = 8;
  expect_same_bits(moco);
  PretrainDinoOptions dino = views<PretrainDinoOptions>("dino");
  dino.out_dim = 16;
  dino.head_hidden_dim = dino.head_bottleneck_dim = 8;
  dino.use_bn_in_head = true;
  dino.local_crops_number = 0;
  dino.warmup_teacher_temp_epochs = 0;
  expect_same_bits(dino);
}

// Each rank judges its part of the batches, and all have the figures of one process.
TEST_F(RanksTest, JudgeBoxesCaptionsAndAnswersTogether) {
  DetectionOptions boxes = on_scenes<DetectionOptions>("");
  boxes.model = "detr_scenes";
  boxes.model_kwargs = R"({"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2})";
  boxes.num_queries = 6;
  expect_same_figures(boxes);
  CaptionTaskOptions captions = on_scenes<CaptionTaskOptions>("");
  captions.model = "resnet18";
  captions.model_kwargs = R"({"channels": [4, 4, 8, 8], "layers": [1, 1, 1, 1], "img_size": 32})";
  captions.decoder_kwargs = R"({"hidden_size": 8})";
  captions.max_length = 12;
  expect_same_figures(captions);
  VqaOptions questions = on_scenes<VqaOptions>("");
  questions.model = "vqa_cnn_lstm";
  questions.img_size = 32;
  expect_same_figures(questions);
  PretrainMaeOptions masked = on_scenes<PretrainMaeOptions>(",task=count");
  masked.val_split = "validation";
  masked.model = options("vit").model;
  masked.model_kwargs = R"({"img_size": 16, "patch_size": 8, "embed_dim": 24, "depth": 1, "num_heads": 2})";
  masked.decoder_dim = 16;
  masked.decoder_depth = 1;
  masked.decoder_heads = 2;
  expect_same_figures(masked);
}

TEST_F(RanksTest, LeaveTheSameBrokenImagesOut) {
  ClassifyOptions with = options("broken");
  for (int i = 0; i < 6; ++i) {
    std::ofstream(folder_ / "data" / "train" / "class1" / fmt::format("{}.png", i)) << "no image";
  }
  with.skip_broken = true;
  expect_same_bits(with);
  for (const int ranks : {1, 2, 3}) {
    fs::remove_all(run("broken"));
    with.grad_shards = 6;
    std::FILE* told = std::tmpfile();
    Progress progress(told, false);
    test::on_ranks(ranks, [&](test::ThreadRank& self) {
      FitHooks hooks;
      hooks.ranks = &self;
      hooks.progress = self.rank() == 0 ? &progress : nullptr;
      fit(with, hooks);
    });
    std::rewind(told);
    std::string text(100000, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), told));
    std::fclose(told);
    EXPECT_THAT(text, HasSubstr("6 broken images left out so far")) << ranks;
  }
}

// Several ranks do not stop inside an evaluation, so that what was learned is saved before it.
TEST_F(RanksTest, MayBreakOffInAnEvaluation) {
  ClassifyOptions with = options("whole");
  fit_on(2, with);
  with.experiment = "ended";
  with.comm_timeout = 1;
  const fs::path image = folder_ / "data" / "validation" / "class1" / "2.png";
  const std::string bytes = io::read_text(image);
  std::ofstream(image) << "no image";
  EXPECT_THAT(error_of([&] { fit_on(2, with); }), HasSubstr("the checkpoint of step 2 is whole"));
  io::write_atomically(image, bytes);
  with.resume = run("ended").string();
  fit_on(2, with);
  EXPECT_EQ(weights("ended"), weights("whole"));
  EXPECT_EQ(losses("ended"), losses("whole"));
}

TEST_F(RanksTest, GoOnWithAnyNumber) {
  fit_on(1, options("whole"));
  fit_on(4, options("changing"), 3);
  fit_on(2, test::resumed<ClassifyOptions>(run("changing")), 4);
  fit_on(1, test::resumed<ClassifyOptions>(run("changing")));
  EXPECT_EQ(weights("changing"), weights("whole"));
  EXPECT_EQ(losses("changing"), losses("whole"));
}

// Whatever the ranks share of the optimizer, the bits are those of one process.
TEST_F(RanksTest, ShareTheOptimizer) {
  for (const char* opt : {"adamw", "lion", "momentum"}) {
    ClassifyOptions with = options("one");
    with.optimizer.opt = opt;
    with.clip_grad = 0.1;
    with.model_ema = true;
    fs::remove_all(run("one"));
    fit_on(1, with);
    const std::uint64_t state = checksum_of_state("one");
    for (const int zero : {1, 2}) {
      for (const int ranks : {2, 4}) {
        with.experiment = fmt::format("zero-{}-{}-{}", opt, zero, ranks);
        with.zero = zero;
        fit_on(ranks, with);
        EXPECT_EQ(weights(with.experiment), weights("one")) << with.experiment;
        EXPECT_EQ(checksum_of_state(with.experiment), state) << with.experiment;
      }
    }
  }
}

TEST_F(RanksTest, ShareTheOptimizerOfWhatIsTrainedAlone) {
  ClassifyOptions with = options("frozen");
  with.freeze = {"patch_embed.", "blocks.0."};
  fit_on(1, with);
  with.experiment = "frozen-shared";
  with.zero = 2;
  fit_on(4, with);
  EXPECT_EQ(weights("frozen-shared"), weights("frozen"));
}

TEST_F(RanksTest, GoOnWithAnyPartOfTheOptimizer) {
  fit_on(1, options("whole"));
  ClassifyOptions with = options("changing");
  with.zero = 2;
  fit_on(4, with, 3);
  ClassifyOptions further = test::resumed<ClassifyOptions>(run("changing"));
  further.zero = 1;
  fit_on(2, further, 4);
  further.zero = 0;
  fit_on(1, further);
  EXPECT_EQ(weights("changing"), weights("whole"));
  EXPECT_EQ(checksum_of_state("changing"), checksum_of_state("whole"));
}

TEST_F(RanksTest, HaveTheLossesOfOneProcess) {
  ClassifyOptions one = options("one");
  one.grad_shards = 0;
  one.grad_accum_steps = 4;
  one.epochs = 10;  // 20 updates
  fit(one);
  ClassifyOptions two = one;
  two.experiment = "two";
  two.grad_accum_steps = 2;
  fit_on(2, two);
  expect_losses("one", "two", 1e-6);
  ClassifyOptions rounded = two;
  rounded.experiment = "rounded";
  rounded.grad_dtype = "bf16";
  fit_on(2, rounded);
  expect_losses("one", "rounded", 1e-3);
  EXPECT_NE(weights("two"), weights("rounded"));
  for (const std::int64_t zero : {1, 2}) {
    for (const int ranks : {2, 4}) {
      for (const std::string dtype : {"f32", "bf16"}) {
        ClassifyOptions shared = one;
        shared.experiment = fmt::format("{}-{}-{}", zero, ranks, dtype);
        shared.grad_accum_steps = 4 / ranks;
        shared.zero = zero;
        shared.grad_dtype = dtype;
        fit_on(ranks, shared);
        expect_losses("one", shared.experiment, dtype == "f32" ? 1e-6 : 1e-3);
      }
    }
  }
}

TEST_F(RanksTest, EvaluateTogether) {
  ClassifyOptions with = options("alone");
  with.validation_batch_size = 5;
  fit_on(1, with);
  with.experiment = "together";
  fit_on(3, [&] {
    ClassifyOptions three = with;
    three.grad_shards = 6;
    return three;
  }());
  test::on_ranks(3, [&](test::ThreadRank& self) {
    const models::Model model = models::load_model(run("alone") / "best");
    data::DatasetOptions part;
    part.split = "validation";
    const std::unique_ptr<data::Dataset> images = data::open_dataset((folder_ / "data").string(), part);
    EvaluateOptions how;
    how.batch_size = 5;
    const Evaluation one = evaluate(model, *images, how);
    how.ranks = &self;
    const Evaluation all = evaluate(model, *images, how);
    EXPECT_EQ(all.loss, one.loss);
    EXPECT_EQ(all.top1, one.top1);
    EXPECT_EQ(all.confusion, one.confusion);
    EXPECT_EQ(all.indices, one.indices);
    EXPECT_EQ(all.predictions, one.predictions);
    EXPECT_EQ(all.count, 12);
  });
  const nlohmann::json step = test::json_lines(run("together") / "metrics.jsonl").front();
  EXPECT_EQ(step.at("rank_seconds").size(), 3);
}

TEST_F(RanksTest, RefuseWhatCannotBeShared) {
  ClassifyOptions with = options("refused");
  EXPECT_THAT(error_of([&] { fit_on(3, with); }), HasSubstr("--grad-shards 4 cannot be divided among 3 ranks"));
  with.grad_shards = 0;
  EXPECT_THAT(error_of([&] { fit_on(7, with); }), HasSubstr("there are 7 ranks, but an epoch has 6 batches"));
  with.grad_shards = 4;
  with.grad_accum_steps = 2;
  EXPECT_THAT(error_of([&] { fit(with); }), HasSubstr("--grad-shards says how many batches an update has"));
  with.grad_accum_steps = 1;
  with.grad_dtype = "bf16";
  EXPECT_THAT(error_of([&] { fit(with); }), HasSubstr("--grad-dtype bf16 rounds what travels"));
  with.grad_dtype = "f32";
  with.zero = 1;
  with.optimizer.opt = "lamb";
  EXPECT_THAT(error_of([&] { fit(with); }), HasSubstr("the trust ratio of --opt lamb needs all of it"));
  with.optimizer.opt = "adamw";
  with.zero = 2;
  with.clip_grad = 1;
  with.clip_mode = "agc";
  EXPECT_THAT(error_of([&] { fit(with); }), HasSubstr("--clip-mode agc needs all of it: take --zero 1"));
  EXPECT_FALSE(fs::exists(run("refused")));
}

TEST_F(RanksTest, SayInWhatTheyDiffer) {
  const ClassifyOptions with = options("differing");
  const std::string error = error_of([&] {
    test::on_ranks(2, [&](test::ThreadRank& self) {
      ClassifyOptions own = with;
      own.weight_decay = self.rank() == 0 ? 0.05 : 0.5;
      FitHooks hooks;
      hooks.ranks = &self;
      fit(own, hooks);
    });
  });
  EXPECT_THAT(error, HasSubstr(R"(rank 1 differs from rank 0: "--weight-decay: 0.5" there is "--weight-decay: 0.05")"));
  EXPECT_FALSE(fs::exists(run("differing")));
}

TEST_F(RanksTest, NameTheFirstWeightThatDiffers) {
  const std::string error = error_of([&] {
    test::on_ranks(3, [&](test::ThreadRank& self) {
      models::CreateOptions create;
      create.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 24, "depth": 2})";
      const models::Model model = models::create_model("vit_tiny_patch16_224", create);
      if (self.rank() == 2) {
        model.net->parameters.at("blocks.1.mlp.fc1.bias").value.span<float>()[3] += 1e-6F;
      }
      check_same_weights(self, *model.net, 40);
    });
  });
  EXPECT_THAT(error,
              HasSubstr("after step 40 the weights of the rank 2 are not those of rank 0: 'blocks.1.mlp.fc1.bias'"));
}

TEST_F(RanksTest, EndTogetherIfTheLossIsNotFinite) {
  const test::AllowNonFinite allow;
  ClassifyOptions with = options("diverging");
  with.lr = 1e30;
  with.warmup_epochs = 0;
  int agreed = 0;
  std::mutex mutex;
  test::on_ranks(2, [&](test::ThreadRank& self) {
    FitHooks hooks;
    hooks.ranks = &self;
    try {
      fit(with, hooks);
    } catch (const dist::AgreedError& error) {
      const std::lock_guard lock(mutex);
      ++agreed;
      EXPECT_THAT(error.what(), HasSubstr("in step 2"));
    }
  });
  EXPECT_EQ(agreed, 2);
}

TEST_F(RanksTest, SayWhoIsMissingAndWhere) {
  ClassifyOptions with = options("alone");
  with.comm_timeout = 1;
  with.grad_shards = 2;  // three updates an epoch
  const std::string error = error_of([&] {
    test::on_ranks(2, [&](test::ThreadRank& self) {
      FitHooks hooks;
      hooks.ranks = &self;
      hooks.on_step = [&](std::int64_t step, double) { check(self.rank() == 0 || step < 1, "this rank is lost"); };
      if (self.rank() == 0) {
        fit(with, hooks);
      } else {
        EXPECT_THAT(error_of([&] { fit(with, hooks); }), HasSubstr("this rank is lost"));
      }
    });
  });
  EXPECT_THAT(error, ContainsRegex("rank 0 has waited 1 s at step 2 for the rank 1 \\(last heard of [0-9]+ s ago\\)"));
  EXPECT_THAT(error, HasSubstr("the checkpoint of step 0 is whole"));
}

}  // namespace
}  // namespace vitrail::train
