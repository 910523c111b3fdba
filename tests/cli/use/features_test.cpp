// Features of images, and what is made of them: embed, knn and probe.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/image.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class Features : public Commands {};

TEST_F(Features, EmbedAndKnnSayTheSameFromFilesAndImages) {
  const std::string data = path("data");
  for (const std::string split : {"train", "validation"}) {
    const Outcome outcome = vitrail("embed " + best() + " " + data + " --split " + split + " --output " +
                                    path(split + ".safetensors") + " -b 5");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("features [32, 24] f32"));
  }
  const io::Safetensors file = io::Safetensors::open(path("validation.safetensors"));
  EXPECT_EQ(file.shape("labels").str(), "[32]");
  EXPECT_EQ(nlohmann::json::parse(file.metadata().at("names"))[31], "red/15.png");
  const Outcome text =
      vitrail("knn " + path("train.safetensors") + " " + path("validation.safetensors") + " -k 5 20 --temperature 0.1");
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("32 images by their neighbours among 32, 24 features each"));
  const auto json = [](const std::string& command) { return nlohmann::json::parse(vitrail(command + " --json").out); };
  const auto files = json("knn " + path("train.safetensors") + " " + path("validation.safetensors") + " -k 5 20");
  const auto images =
      json("knn " + data + " " + data + " --train-split train --split validation --model " + best() + " -k 5 20 -b 5");
  EXPECT_EQ(files, images);
  EXPECT_GE(files["knn"][0]["top1"].get<double>(), 90.0);
  EXPECT_EQ(files["knn"][1]["k"], 20);

  EXPECT_THAT(
      vitrail("embed " + best() + " " + data + " --unlabeled --pool avg --output " + path("all.safetensors")).out,
      HasSubstr("[64, 24]"));
  const Outcome flat =
      vitrail("embed " + best() + " " + data + "/validation/red --logits --output " + path("red.safetensors"));
  ASSERT_EQ(flat.status, 0) << flat.err;
  EXPECT_THAT(flat.err, HasSubstr("has no folders of classes: the labels of its images are -1"));
  EXPECT_EQ(io::Safetensors::open(path("red.safetensors")).get("labels").data<std::int64_t>()[15], -1);
  const Outcome unlabeled = vitrail("knn " + path("all.safetensors") + " " + path("train.safetensors"));
  EXPECT_EQ(unlabeled.status, 1);
  EXPECT_THAT(unlabeled.err, HasSubstr("has no label"));
  const std::string same = path("train.safetensors") + " " + path("train.safetensors");
  for (const std::string command : {"knn ", "probe --epochs 1 "}) {
    EXPECT_THAT(vitrail(command + same).err, HasSubstr("the features to evaluate on are those to train on"));
  }
  const Outcome without = vitrail("knn " + data + " " + data);
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.err, HasSubstr("a --model is needed"));
}

TEST_F(Features, OfALayerAreProbed) {
  const std::string data = path("data");
  for (const std::string split : {"train", "validation"}) {
    const Outcome outcome =
        vitrail("embed " + best() + " " + data + " --split " + split + " --layer 0 --output-dtype " + "bf16 --output " +
                path("layer-" + split + ".safetensors"));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("features [32, 24] bf16"));
  }
  const std::string both = path("layer-train.safetensors") + " " + path("layer-validation.safetensors");
  const Outcome probe = vitrail("probe " + both + " --lr 0.1 1 --epochs 20 --json");
  ASSERT_EQ(probe.status, 0) << probe.err;
  const auto results = nlohmann::json::parse(probe.out);
  EXPECT_EQ(results["features"], 24);
  ASSERT_EQ(results["probe"].size(), 2U);
  EXPECT_GE(results["probe"][1]["best_top1"].get<double>(), 90);
  EXPECT_THAT(vitrail("probe " + both + " --epochs 2").out, HasSubstr("32 images by a linear classifier of 32"));
  const Outcome knn = vitrail("knn " + both);
  EXPECT_THAT(knn.out, AllOf(HasSubstr("\n   10 "), HasSubstr("\n   20 "), Not(HasSubstr("\n  100 "))));

  EXPECT_THAT(
      vitrail("embed " + best() + " " + data + " --split train --layer 2 --output " + path("no.safetensors")).err,
      HasSubstr("--layer 2 is none of the 2 layers"));
  EXPECT_EQ(vitrail("embed " + best() + " " + data + " --logits --pool avg --output " + path("no.safetensors")).status,
            2);
  std::filesystem::create_directories(path("broken"));
  std::ofstream(path("broken/1.png")) << "no image";
  EXPECT_THAT(vitrail("embed " + best() + " " + path("broken") + " --unlabeled --skip-broken --output " +
                      path("no.safetensors"))
                  .err,
              HasSubstr("all 1 images are broken"));
  EXPECT_FALSE(std::filesystem::exists(path("no.safetensors")));
}

TEST_F(Features, EmbedTakesImagesOfClassesThatTheModelDoesNotKnow) {
  for (const char* name : {"rouge", "bleu"}) {
    fs::create_directories(path("others/") + name);
    io::write_png(path("others/") + name + "/0.png", image(0, 0));
  }
  const Outcome outcome = vitrail("embed " + best() + " " + path("others") + " --output " + path("others.safetensors"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the labels are numbers of the 2 classes of '" + path("others") + "'"));
  EXPECT_EQ(io::Safetensors::open(path("others.safetensors")).metadata().at("classes"), R"(["bleu","rouge"])");
  const Outcome logits =
      vitrail("embed " + best() + " " + path("others") + " --logits --output " + path("others.safetensors"));
  EXPECT_EQ(logits.status, 1);
  EXPECT_THAT(logits.err, HasSubstr("the class 'bleu' is unknown"));
}

TEST_F(Features, OfTwoModelsAreNotComparable) {
  const auto embed = [](const std::string& flags, const std::string& name) {
    const Outcome done = vitrail("embed " + flags + " --threads 1 --output " + path(name + ".safetensors"));
    EXPECT_EQ(done.status, 0) << done.err;
    return path(name + ".safetensors");
  };
  ASSERT_EQ(train_task(path("data") + small() + " --epochs 1 --seed 7", "other").status, 0);
  const std::string training = embed(best() + " " + path("data") + " --split train", "of-train");
  const std::string data = path("data") + " --split validation";
  const std::string other = embed(path("runs/other") + " " + data, "of-other");
  for (const std::string command : {"knn ", "probe --epochs 1 "}) {
    refuses(command + training + " " + other, "with other weights: they are not of one model");
  }
  refuses("knn " + training + " " + data + " --model " + path("runs/other"), "they are not of one model");
  refuses("knn " + training + " " + embed(best() + " " + data + " --layer 0", "of-layer"),
          "the training features have the layer '', but the test features '0'");
  const Outcome pooled = vitrail("knn " + training + " " + embed(best() + " " + data + " --pool token", "of-token"));
  EXPECT_EQ(pooled.status, 0) << pooled.err;
  EXPECT_THAT(pooled.err, HasSubstr("the test features are pooled by 'token', and the training features as their "
                                    "classifier does"));
  const Outcome cropped = vitrail("knn " + training + " " + embed(best() + " " + data + " --crop-pct 0.5", "of-crop"));
  EXPECT_EQ(cropped.status, 0) << cropped.err;
  EXPECT_THAT(cropped.err, HasSubstr("were prepared differently: crop_pct is 0.9 and 0.5"));
  const Outcome alike = vitrail("knn " + training + " " + data + " -k 3 --model " + best());
  EXPECT_EQ(alike.status, 0);
  EXPECT_THAT(alike.err, Not(HasSubstr("note")));
}

TEST_F(Features, OfImagesPreparedDifferentlyAreNamed) {
  const std::string other = path("huggingface");
  ASSERT_EQ(vitrail("convert " + best() + " --layout huggingface --output " + other).status, 0);
  const auto embedded = [](const std::string& model, const std::string& part) {
    const std::string file = path(fs::path(model).filename().string() + part + ".safetensors");
    EXPECT_EQ(
        vitrail("embed " + model + " " + path("data") + " --split " + part + " --threads 1 --output " + file).status,
        0);
    return file;
  };
  const Outcome knn = vitrail("knn " + embedded(best(), "train") + " " + embedded(other, "validation") + " -k 1");
  EXPECT_EQ(knn.status, 0) << knn.err;
  EXPECT_THAT(knn.err, HasSubstr("were prepared differently"));
  const std::string index = path("both.index");
  ASSERT_EQ(vitrail("index " + path("data/train") + " --model " + best() + " --threads 1 --output " + index).status, 0);
  refuses("index " + path("data/train") + " --model " + other + " --threads 1 --output " + index,
          "of images that were prepared otherwise");
}

TEST_F(Features, OfClassesThatAreNumbersKeepThem) {
  for (const char* name : {"1", "2", "7"}) {
    fs::create_directories(path(std::string("numbers/") + name));
    fs::copy_file(path("data/train/red/1.png"), path(std::string("numbers/") + name + "/1.png"));
  }
  const std::string file = path("numbers.safetensors");
  const Outcome outcome = vitrail("embed " + best() + " " + path("numbers") + " --threads 1 --output " + file);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("the labels are numbers of the 3 classes"), Not(HasSubstr("is blue"))));
}

TEST_F(Features, VoteForNoClassThatHasNone) {
  const auto of = [](const char* part) {
    const std::string file = path(std::string(part) + ".safetensors");
    EXPECT_EQ(
        vitrail("embed " + best() + " " + path("data") + " --split " + part + " --threads 1 --output " + file).status,
        0);
    return file;
  };
  const Outcome knn = vitrail("knn " + of("train") + " " + of("validation") + " -k 1 --json");
  ASSERT_EQ(knn.status, 0) << knn.err;
  const nlohmann::json found = nlohmann::json::parse(knn.out).at("knn").at(0);
  EXPECT_EQ(found.at("top5"), found.at("top1"));
}

TEST_F(Features, OfClassesWithoutTrainingImagesAreNamed) {
  fs::create_directories(path("reds"));
  fs::copy(path("data/train/red"), path("reds/red"));
  for (const char* source : {"reds", "data/train"}) {
    const std::string file = path(std::string(source) == "reds" ? "reds.safetensors" : "all.safetensors");
    ASSERT_EQ(vitrail("embed " + best() + " " + path(source) + " --output " + file).status, 0);
  }
  const Outcome told = vitrail("knn " + path("reds.safetensors") + " " + path("all.safetensors") + " -k 3");
  EXPECT_THAT(told.err, HasSubstr("no training image is of 'blue', so that none of the test images of it can be told"));
  const Outcome whole = vitrail("knn " + path("all.safetensors") + " " + path("all.safetensors"));
  EXPECT_THAT(whole.err, Not(HasSubstr("no training image")));
  EXPECT_THAT(whole.err, HasSubstr("2 of the usual 10, 20, 100 and 200 neighbours are more than there are images"));
}

TEST_F(Features, AreProbedInEpochsFromOne) {
  const std::string features = path("features.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data") + " --split train --output " + features).status, 0);
  const Outcome probe = vitrail("probe " + features + " " + features + " --epochs 1 --lr 0.1 --threads 1 --json");
  EXPECT_EQ(nlohmann::json::parse(probe.out).at("probe")[0].at("best_epoch"), 1) << probe.err;
}

}  // namespace
}  // namespace vitrail::test
