// The commands one after another, as a person would use them: train, eval, predict, attention, report, forward, bench.
#include "tests/cli/commands.h"

#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/data/tar_writer.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

TEST_F(Commands, TrainFillsARunFolder) {
  ASSERT_EQ(trained_.status, 0) << trained_.err;
  for (const char* name : {"config.toml", "metrics.jsonl", "curves.svg", "best/config.json", "best/model.safetensors",
                           "last/config.json", "last/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(path("runs/one/") + name)) << name;
  }
  EXPECT_EQ(trained_.out.find('\r'), std::string::npos) << "control characters in a pipe";
}

TEST_F(Commands, TrainDoesNotWriteOverARun) {
  const Outcome again = vitrail("train " + path("data") + " --output " + path("runs") + " --experiment one -b 8");
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("--resume"));
}

TEST_F(Commands, TrainStopsInGoodOrderAndResumes) {
  const std::string run = path("runs/stopped");
  // Signals the program, which it starts, as soon as the run's metrics have grown.
  std::ofstream(path("signal.sh")) << "signal=$1; shift\n"
                                      "lines() { cat '" +
                                          run +
                                          "/metrics.jsonl' 2>/dev/null | wc -l; }\n"
                                          "before=$(lines)\n"
                                          "\"$@\" & pid=$!\n"
                                          "while kill -0 $pid && [ $(lines) -le $before ]; do sleep 0.05; done\n"
                                          "kill -$signal $pid\n"
                                          "wait $pid\n";
  const auto steps = [&] {
    std::ifstream file(run + "/metrics.jsonl");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  const Outcome stopped = vitrail("train " + path("data") + " --output " + path("runs") +
                                      " --experiment stopped --model vit_tiny_patch16_224 --model-kwargs img_size=16 "
                                      "patch_size=4 embed_dim=24 depth=2 num_heads=3 --epochs 100000 --batch-size 8 "
                                      "--no-aug --threads 1",
                                  "", "sh " + path("signal.sh") + " INT");
  EXPECT_EQ(stopped.status, 130);
  EXPECT_THAT(stopped.out, HasSubstr("go on with: vitrail train --resume " + run));
  const auto before = steps();
  EXPECT_GT(before, 0);
  const Outcome again = vitrail("train --resume " + run, "", "sh " + path("signal.sh") + " TERM");
  EXPECT_EQ(again.status, 143);
  EXPECT_THAT(again.out, HasSubstr("going on after step"));
  EXPECT_GT(steps(), before);
  const Outcome changed = vitrail("train --resume " + run + " --model vit_small_patch16_224");
  EXPECT_EQ(changed.status, 1);
  EXPECT_THAT(changed.err, HasSubstr("cannot go on with"));
}

TEST_F(Commands, TrainSaysHowToDoWithoutValidation) {
  const Outcome outcome =
      vitrail("train " + path("data/train") + " --val-split mine --output " + path("runs") + " -b 8");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--val-split ''"));
  EXPECT_THAT(outcome.err, HasSubstr("hold images out by --val-share"));
}

TEST_F(Commands, WithoutBf16TheProgramSaysSoAndRunsInF32) {
  const std::string photo = path("data/validation/red/3.png");
  const Outcome plain = vitrail("predict " + best() + " " + photo + " --json", "", "ONEDNN_MAX_CPU_ISA=AVX2");
  const Outcome low = vitrail("predict " + best() + " " + photo + " --json --amp", "", "ONEDNN_MAX_CPU_ISA=AVX2");
  EXPECT_THAT(low.err, HasSubstr("no bf16 instructions: running in float32"));
  EXPECT_EQ(low.out, plain.out);
}

TEST_F(Commands, WritesNothingWhereTheOutputCannotBe) {
  std::ofstream(path("file")) << "in the way";
  for (const std::string& command : {"eval " + best() + " " + path("data") + " --split validation --output ",
                                     "report " + path("runs/one") + " " + path("data/validation") + " --output ",
                                     "attention " + best() + " " + path("data/validation/red/3.png") + " --output "}) {
    const Outcome outcome = vitrail(command + path("file/inside"));
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr("cannot make the folder")) << command;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  for (const char* wrong : {"--layer 99", "--head 99", "--query 99,0"}) {
    const Outcome outcome = vitrail("attention " + best() + " " + path("data/validation/red/3.png") + " --output " +
                                    path("nothing") + " " + wrong);
    EXPECT_EQ(outcome.status, 1) << wrong;
    EXPECT_FALSE(fs::exists(path("nothing"))) << wrong;
  }
}

TEST_F(Commands, TrainRepeatsARunFromItsConfig) {
  const Outcome again =
      vitrail("train --config " + path("runs/one/config.toml") + " --output " + path("runs") + " --experiment two");
  ASSERT_EQ(again.status, 0) << again.err;
  const auto bytes = [](const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(bytes(path("runs/two/last/model.safetensors")), bytes(path("runs/one/last/model.safetensors")));
}

TEST_F(Commands, EvalFindsTheClasses) {
  const Outcome text =
      vitrail("eval " + best() + " " + path("data") + " --split validation --output " + path("report"));
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("top-1"));
  EXPECT_THAT(text.out, HasSubstr("blue"));
  EXPECT_TRUE(fs::exists(path("report/confusion.svg")));
  const auto json =
      nlohmann::json::parse(vitrail("eval " + best() + " " + path("data") + " --split validation --json").out);
  EXPECT_EQ(json["count"], 32);
  EXPECT_GE(json["top1"].get<double>(), 90.0);
  EXPECT_EQ(json["confusion"].size(), 4U);
}

TEST_F(Commands, TakeThePrecisionByEitherName) {
  const std::string command = "predict " + best() + " " + path("data/validation/red/3.png") + " --format json";
  const std::string full = vitrail(command).out;
  const std::string low = vitrail(command + " --amp").out;
  EXPECT_EQ(vitrail(command + " --dtype bf16").out, low);
  EXPECT_EQ(vitrail(command + " --amp --amp-dtype float32").out, full);
  EXPECT_EQ(vitrail(command + " --dtype f32").out, full);
  EXPECT_EQ(vitrail(command + " --amp --dtype f32").status, 2);
  const std::string train =
      "train " + path("data") + " --model " + best() + " --epochs 1 -b 8 --output " + path("runs");
  ASSERT_EQ(vitrail(train + " --experiment amp --amp").status, 0);
  ASSERT_EQ(vitrail(train + " --experiment dtype --dtype bf16").status, 0);
  EXPECT_EQ(io::read_bytes(path("runs/amp/last/model.safetensors")),
            io::read_bytes(path("runs/dtype/last/model.safetensors")));
  EXPECT_THAT(io::read_text(path("runs/dtype/config.toml")), HasSubstr("amp = true\n"));
}

TEST_F(Commands, PositionsDrawsAModelsCode) {
  const Outcome outcome = vitrail("positions " + best() + " --output " + path("positions.png"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("4 x 4 patches"));
  EXPECT_GT(io::read_image(path("positions.png")).width, 100);
  const std::string tiny = "positions vit_tiny_patch16_224 --img-size 64 --model-kwargs depth=1 pos_embed=";
  EXPECT_EQ(vitrail(tiny + "rope2d --output " + path("rope.png")).status, 0);
  const Outcome nothing = vitrail(tiny + "none --output " + path("none.png"));
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.err, HasSubstr("no positions to draw"));
  EXPECT_FALSE(fs::exists(path("none.png")));
  EXPECT_EQ(vitrail(tiny + "alibi1d --layer 1 --output " + path("none.png")).status, 1);
}

TEST_F(Commands, AttentionDrawsMapsAndWritesThemRaw) {
  const Outcome outcome = vitrail("attention " + best() + " " + path("data/validation/blue/1.png") + " --output " +
                                  path("maps") + " --query 1,2 --raw " + path("maps.safetensors"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* name :
       {"image.png", "sheet.png", "rollout.png", "index.html", "layer01.png", "layer01-head02.png"}) {
    EXPECT_TRUE(fs::exists(path("maps/") + name)) << name;
  }
  EXPECT_EQ(io::read_image(path("maps/layer00-head00.png")).width, 224);
  const io::Safetensors raw = io::Safetensors::open(path("maps.safetensors"));
  EXPECT_EQ(raw.shape("attention.1").str(), "[1, 3, 17, 17]");
  const std::vector<float> row = raw.get("attention.1").narrow(2, 0, 1).narrow(1, 0, 1).values();
  float sum = 0;
  for (const float p : row) {
    sum += p;
  }
  EXPECT_NEAR(sum, 1.0F, 1e-5);
  const Outcome outside = vitrail("attention " + best() + " " + path("data/validation/blue/1.png") + " --output " +
                                  path("none") + " --query 4,0");
  EXPECT_EQ(outside.status, 1);
  EXPECT_THAT(outside.err, HasSubstr("4,0"));
  EXPECT_FALSE(fs::exists(path("none")));
}

// What lies beside the blocks: a hybrid's stages, the map of attention pooling, layers of a coarser grid than the
// query's.
TEST_F(Commands, HybridsPoolingsAndPyramidsGiveTheirFeaturesAndMaps) {
  const auto forward = [](const std::string& name) {
    const std::string model = golden_path("models/" + name).string();
    const Outcome outcome = vitrail("forward " + model + " --input " + model + "/expected.safetensors --output " +
                                    path(name + ".safetensors") + " --features --attention");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return io::Safetensors::open(path(name + ".safetensors"));
  };
  const io::Safetensors hybrid = forward("hybrid");
  EXPECT_EQ(hybrid.shape("features.stem.0").str(), "[2, 128, 8, 10]");
  EXPECT_EQ(hybrid.shape("features.stem.1").str(), "[2, 128, 4, 5]");
  EXPECT_EQ(hybrid.shape("features.0").str(), "[2, 21, 24]");
  EXPECT_EQ(forward("map").shape("attention.pool").str(), "[2, 3, 1, 16]");
  const auto attention = [](const std::string& name, const std::string& flags) {
    const Outcome outcome =
        vitrail("attention " + golden_path("models/" + name).string() + " " + path("data/validation/blue/1.png") +
                " --output " + path("maps_" + name) + " --raw " + path("maps_" + name + ".safetensors") + flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  };
  attention("map", "");
  EXPECT_TRUE(fs::exists(path("maps_map/pool.png")));
  const io::Safetensors raw = io::Safetensors::open(path("maps_map.safetensors"));
  EXPECT_EQ(raw.shape("attention.pool").str(), "[1, 3, 1, 16]");
  attention("swin", " --query 15,15");
  EXPECT_TRUE(fs::exists(path("maps_swin/layer04.png")));
}

TEST_F(Commands, ReportMakesAPage) {
  const Outcome outcome = vitrail("report " + path("runs/one") + " " + path("data/validation") + " --output " +
                                  path("page") + " --images 4");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* name : {"index.html", "curves.svg", "confusion.svg", "attention/03.png", "attention/layers.png"}) {
    EXPECT_TRUE(fs::exists(path("page/") + name)) << name;
  }
  EXPECT_THAT(io::read_text(path("page/index.html")), HasSubstr("<h1>one: vit_tiny_patch16_224 on "));
  const Outcome by_model =
      vitrail("report " + best() + "/ " + path("data/validation") + " --output " + path("page") + " --images 1");
  ASSERT_EQ(by_model.status, 0) << by_model.err;
  EXPECT_THAT(io::read_text(path("page/index.html")), HasSubstr("<h1>one: ")) << "the name of the model's run";
}

TEST_F(Commands, ReportTakesAnotherSizeAndLeavesBrokenImagesOut) {
  fs::copy(path("data/validation"), path("some_broken"), fs::copy_options::recursive);
  std::ofstream(path("some_broken/red/0.png")) << "no image";
  const std::string command =
      "report " + path("runs/one") + " " + path("some_broken") + " --output " + path("page") + " --img-size 24";
  const Outcome refused = vitrail(command);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("red/0.png"));
  const Outcome outcome = vitrail(command + " --skip-broken");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("31 images"), HasSubstr("left out: ")));
}

TEST_F(Commands, EveryModelCanBeOfAnotherSize) {
  EXPECT_THAT(vitrail("info " + best() + " --img-size 24").out, HasSubstr("6 x 6 patches"));
  io::save_safetensors(path("x24.safetensors"), {{"x", random_tensor({1, 3, 24, 24})}});
  const Outcome forward = vitrail("forward " + best() + " --img-size 24 --input " + path("x24.safetensors") +
                                  " --output " + path("y24.safetensors"));
  EXPECT_EQ(forward.status, 0) << forward.err;
  const Outcome bench = vitrail("bench infer --model " + best() + " --img-size 24 --steps 1 --warmup 0 -b 1");
  EXPECT_EQ(bench.status, 0) << bench.err;
}

TEST_F(Commands, ForwardGivesLogitsFeaturesAndAttention) {
  io::save_safetensors(path("x.safetensors"), {{"x", random_tensor({3, 3, 16, 16})}});
  const Outcome outcome = vitrail("forward " + best() + " --input " + path("x.safetensors") + " --output " +
                                  path("y.safetensors") + " --features --attention");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const io::Safetensors y = io::Safetensors::open(path("y.safetensors"));
  EXPECT_EQ(y.shape("logits").str(), "[3, 2]");
  EXPECT_EQ(y.shape("features.1").str(), "[3, 17, 24]");
  EXPECT_EQ(y.shape("attention.0").str(), "[3, 3, 17, 17]");
  ASSERT_EQ(vitrail("forward " + best() + " --dtype bf16 --input " + path("x.safetensors") + " --output " +
                    path("y16.safetensors"))
                .status,
            0);
  expect_close(io::Safetensors::open(path("y16.safetensors")).get("logits"), y.get("logits"), 3e-2);
  const Outcome wrong =
      vitrail("forward " + best() + " --input " + path("y.safetensors") + " --output " + path("z.safetensors"));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("'x'"));
}

TEST_F(Commands, QuantizeMakesAFolderLikeAnyOther) {
  const Outcome made = vitrail("quantize " + best() + " --output " + path("int8") + " --eval " + path("data") +
                               " --split validation --json --threads 1");
  ASSERT_EQ(made.status, 0) << made.err;
  const auto report = nlohmann::json::parse(made.out);
  EXPECT_LT(report.at("bytes").at("int8"), report.at("bytes").at("float"));
  EXPECT_NEAR(report.at("top1").at("int8").get<double>(), report.at("top1").at("float").get<double>(), 10);
  EXPECT_EQ(report.at("images"), 32);
  EXPECT_LE(report.at("changed"), 3);
  const Outcome text = vitrail("quantize " + best() + " --output " + path("fixed") + " --calibrate " +
                               path("data/train") + " --calibration-images 8 --threads 1");
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("activations by tensor"));
  const std::string photo = path("data/validation/red/3.png");
  for (const std::string folder : {"int8", "fixed"}) {
    EXPECT_THAT(vitrail("predict " + path(folder) + " " + photo).out, HasSubstr("red"));
    EXPECT_EQ(vitrail("eval " + path(folder) + " " + path("data") + " --split validation").status, 0);
    EXPECT_EQ(vitrail("attention " + path(folder) + " " + photo + " --output " + path("maps8")).status, 0);
    EXPECT_EQ(vitrail("bench infer --model " + path(folder) + " --steps 1 --batch-size 1").status, 0);
    const Tensor x = random_tensor({2, 3, 16, 16}, 1);
    io::save_safetensors(path("x8.safetensors"), {{"x", x}});
    const std::string flags = " --input " + path("x8.safetensors") + " --output " + path("y8.safetensors");
    EXPECT_EQ(vitrail("forward " + path(folder) + flags + " --features --attention").status, 0);
    const Tensor logits = io::Safetensors::open(path("y8.safetensors")).get("logits").clone();
    EXPECT_EQ(vitrail("forward " + best() + flags).status, 0);
    const double error = relative_error(logits, io::Safetensors::open(path("y8.safetensors")).get("logits"));
    EXPECT_LT(error, 0.2);
    EXPECT_GT(error, 1e-6) << "it ran in int8";
  }
  const Outcome again = vitrail("quantize " + best() + " --output " + path("int8"));
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("exists"));
  for (const char* flag : {"--model ", "--initial-checkpoint ", "--pretrained-path "}) {
    const Outcome trained =
        vitrail("train " + path("data") + " -b 8 " + flag + path("int8") + " --output " + path("runs"));
    EXPECT_EQ(trained.status, 1);
    EXPECT_THAT(trained.err, HasSubstr("the weights of '" + path("int8") + "' are in int8 and cannot be trained"));
  }
}

TEST_F(Commands, TrainDistilsAndEvalShowsBothHeads) {
  const std::string run = "train " + path("data") + " --output " + path("runs") +
                          " --model deit_tiny_distilled_patch16_224 --model-kwargs img_size=16 patch_size=4 "
                          "embed_dim=24 depth=1 num_heads=3 --epochs 4 --batch-size 8 --no-aug --lr 3e-3 --threads 1 ";
  const Outcome outcome = vitrail(run + "--experiment distilled --teacher-model " + best() +
                                  " --distillation-type soft --distillation-alpha 0.5 --distillation-tau 2 "
                                  "--unlabeled-dir " +
                                  path("data/validation"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("the teacher is vit_tiny_patch16_224"), HasSubstr("soft distillation"),
                                 HasSubstr("32 of the training images have no labels")));
  const std::string command = "eval " + path("runs/distilled/best") + " " + path("data") + " --split validation";
  EXPECT_THAT(vitrail(command).out, AllOf(HasSubstr("class head"), HasSubstr("distillation head")));
  const auto json = nlohmann::json::parse(vitrail(command + " --json").out);
  EXPECT_TRUE(json["heads"]["head_dist"].contains("top1"));
  EXPECT_GE(json["top1"].get<double>(), 80.0);
  const Outcome wrong = vitrail(run + "--experiment wrong --distillation-type warm");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--distillation-type must be one of hard, soft, none"));
}

TEST_F(Commands, AugmentDrawsASheet) {
  const std::string photo = path("data/validation/red/3.png");
  const Outcome made = vitrail("augment " + photo + " --aa rand-m9-mstd0.5-inc1 --reprob 0.3 --img-size 16 --rows 2 " +
                               "--columns 5 --output " + path("sheet.png"));
  ASSERT_EQ(made.status, 0) << made.err;
  const io::Image sheet = io::read_image(path("sheet.png"));
  constexpr std::int64_t zoom = 7;
  constexpr std::int64_t labels = 20;
  EXPECT_EQ(sheet.width, 5 * (16 * zoom + 6) - 6);
  EXPECT_EQ(sheet.height, labels + 2 * (16 * zoom + 6) - 6);
  const io::Image original = io::read_image(photo);
  const auto is_original = [&](std::int64_t left) {
    bool same = true;
    for (std::int64_t x = 0; x < 16; ++x) {
      same = same && std::equal(original.at(x, 5), original.at(x, 5) + 3, sheet.at(left + x * zoom, labels + 5 * zoom));
    }
    return same;
  };
  EXPECT_TRUE(is_original(0)) << "the first is as it is";
  EXPECT_FALSE(is_original(16 * zoom + 6));
  const Outcome wrong = vitrail("augment " + photo + " --aa orignal --output " + path("none.png"));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'original'"));
  EXPECT_FALSE(fs::exists(path("none.png")));
}

TEST_F(Commands, AugmentShowsAWideImageInItsOwnShape) {
  io::Image wide(32, 8);
  for (std::int64_t y = 0; y < 8; ++y) {
    for (std::int64_t x = 0; x < 32; ++x) {
      wide.at(x, y)[x < 16 ? 0 : 2] = 255;
    }
  }
  io::write_png(path("wide.png"), wide);
  const Outcome made =
      vitrail("augment " + path("wide.png") + " --img-size 112 --rows 1 --output " + path("wide_sheet.png"));
  ASSERT_EQ(made.status, 0) << made.err;
  const io::Image sheet = io::read_image(path("wide_sheet.png"));
  // 112 x 28 pixels in the middle of 112 x 112, under 20 of labels.
  const auto color = [&](std::int64_t x, std::int64_t y) {
    return std::vector<int>(sheet.at(x, 20 + y), sheet.at(x, 20 + y) + 3);
  };
  EXPECT_EQ(color(20, 56), (std::vector<int>{255, 0, 0}));
  EXPECT_EQ(color(90, 56), (std::vector<int>{0, 0, 255}));
  EXPECT_EQ(color(20, 45), (std::vector<int>{255, 0, 0}));
  EXPECT_EQ(color(20, 38), color(90, 38)) << "above the image is nothing but a colour";
  EXPECT_EQ(color(20, 73), color(90, 38));
}

TEST_F(Commands, RefuseToWriteAnImageByTheNameOfAnotherFormat) {
  const std::string photo = path("data/validation/red/3.png");
  for (const std::string& command :
       {"augment " + photo, "positions " + best(), "reconstruct " + best() + " " + photo}) {
    const Outcome outcome = vitrail(command + " --output " + path("drawn.jpg"));
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("drawn.jpg' does not end in .png, the format in which it is written"));
  }
  const Outcome chart = vitrail("compare " + path("runs/one") + " --output " + path("drawn.png"));
  EXPECT_EQ(chart.status, 2);
  EXPECT_THAT(chart.err, HasSubstr("drawn.png' does not end in .svg"));
  EXPECT_FALSE(fs::exists(path("drawn.jpg")) || fs::exists(path("drawn.png")));
  EXPECT_EQ(vitrail("positions " + best() + " --output " + path("drawn.PNG")).status, 0);
}

TEST_F(Commands, SoupAveragesModels) {
  const std::string folders = best() + " " + path("runs/one/last");
  const std::string data = " --data " + path("data") + " --split validation --threads 1";
  const Outcome uniform = vitrail("soup " + folders + " --output " + path("soup") + data);
  ASSERT_EQ(uniform.status, 0) << uniform.err;
  EXPECT_THAT(uniform.out, HasSubstr("the average of 2 models, top-1"));
  const Outcome greedy = vitrail("soup " + folders + " --greedy --json --output " + path("greedy") + data);
  ASSERT_EQ(greedy.status, 0) << greedy.err;
  const auto report = nlohmann::json::parse(greedy.out);
  EXPECT_EQ(report.at("models").size(), 2U);
  EXPECT_TRUE(report.at("models")[0].at("used"));
  EXPECT_GE(report.at("top1").get<double>(), report.at("models")[0].at("top1").get<double>());
  const Outcome again = vitrail("eval " + path("greedy") + " " + path("data") + " --split validation --json");
  EXPECT_NEAR(nlohmann::json::parse(again.out).at("top1").get<double>(), report.at("top1").get<double>(), 1e-9);
  EXPECT_THAT(vitrail("soup " + folders + " --greedy --output " + path("other")).err, HasSubstr("--data"));
  EXPECT_THAT(vitrail("soup " + folders + " --output " + path("soup")).err, HasSubstr("exists"));
}

TEST_F(Commands, EvalAveragesWithMirrorImages) {
  const Outcome outcome = vitrail("eval " + best() + " " + path("data") + " --split validation --tta 2 --threads 1");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("top-1"));
  const Outcome wrong = vitrail("eval " + best() + " " + path("data") + " --tta 3");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--tta takes 0"));
}

TEST_F(Commands, BenchPrintsOneJsonObject) {
  const Outcome outcome = vitrail("bench train --model " + best() + " --batch-size 2 --steps 2 --json --threads 1");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const char* key : {"step_ms", "images_per_second", "flops_per_image", "peak_gflops", "mfu", "peak_memory_bytes",
                          "threads", "cpu"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_GT(json["step_ms"]["min"].get<double>(), 0);
  EXPECT_LE(json["step_ms"]["min"].get<double>(), json["step_ms"]["median"].get<double>());
}

TEST_F(Commands, BenchTakesLanguageModels) {
  const std::string small =
      " --model gpt2 --model-kwargs n_layer=1 n_embd=16 n_head=2 vocab_size=30 --steps 2 --threads 1";
  const Outcome train = vitrail("bench train --batch-size 2 --seq-len 8" + small);
  ASSERT_EQ(train.status, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("tokens/s"));
  const Outcome generate = vitrail("bench generate --prompt-len 4 --new-tokens 5 --json" + small);
  ASSERT_EQ(generate.status, 0) << generate.err;
  EXPECT_GT(nlohmann::json::parse(generate.out)["tokens_per_second"].get<double>(), 0);
  EXPECT_THAT(vitrail("bench generate --prompt-len 4 --new-tokens 5" + small).out, HasSubstr("MB a token"));
  const Outcome refused = vitrail("bench train --new-tokens 5" + small);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--new-tokens has no effect on train: only generate continues texts"));
}

TEST_F(Commands, BenchProfilesTheOps) {
  const Outcome outcome = vitrail("bench infer --model " + best() + " --batch-size 2 --steps 2 --threads 1 --profile " +
                                  "--trace " + path("trace.json") + " --output " + path("bench.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("attention"));
  EXPECT_THAT(outcome.out, HasSubstr("GB/s"));
  EXPECT_TRUE(nlohmann::json::parse(std::ifstream(path("trace.json"))).contains("traceEvents"));
  EXPECT_TRUE(nlohmann::json::parse(std::ifstream(path("bench.json"))).contains("profile"));
}

TEST_F(Commands, ModelsOfVideosRunOnClipsAndRefuseImages) {
  const std::string model = golden_path("models/mvit_video_v1").string();
  const Outcome forward = vitrail("forward " + model + " --input " + model + "/expected.safetensors --output " +
                                  path("clip.safetensors") + " --features --attention");
  EXPECT_EQ(forward.status, 0) << forward.err;
  EXPECT_THAT(forward.out, HasSubstr("logits           f32 [2, 7]"));
  EXPECT_THAT(vitrail("info " + model).out, HasSubstr("3 x 4 x 32 x 32"));
  const Outcome bench = vitrail("bench train --model " + model + " --batch-size 1 --steps 1 --warmup 0");
  EXPECT_EQ(bench.status, 0) << bench.err;
  const std::string training = "train " + path("data") + " --output " + path("none") + " --batch-size 8 --model ";
  const std::string splits = " --train-split train --split validation --model ";
  for (const std::string& command :
       {"eval " + model + " " + path("data"), training + model,
        "embed " + model + " " + path("data") + " --unlabeled --output " + path("none.safetensors"),
        "knn " + path("data") + " " + path("data") + splits + model,
        training +
            "vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=1 num_heads=3 "
            "--teacher-model " +
            model}) {
    const Outcome refused = vitrail(command);
    EXPECT_EQ(refused.status, 1) << command;
    EXPECT_THAT(refused.err, HasSubstr("takes clips of 4 frames, not images")) << command;
  }
}

}  // namespace
}  // namespace vitrail::test
