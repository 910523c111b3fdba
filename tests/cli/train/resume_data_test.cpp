// Runs that go on with their data, with data that have changed, and with others.
#include <cstddef>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"
#include "vitrail/io/toml.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ResumeOnImages : public OnImages {
 protected:
  static std::string classifier() {
    return " --model vit_tiny_patch16_224 --model-kwargs img_size=32 patch_size=16 embed_dim=16 depth=1 num_heads=2 "
           "-b 8 --epochs 1";
  }
};

TEST_F(ResumeOnImages, FromAnotherFolder) {
  const Outcome first =
      vitrail("train data --output runs --experiment moved --epochs 1 --val-dir data/validation" + small(), "",
              "cd " + folder_->path().string() + " &&");
  ASSERT_EQ(first.status, 0) << first.err;
  const nlohmann::json config = io::read_toml(path("runs/moved/config.toml"));
  EXPECT_EQ(config["data"]["data_dir"], path("data"));
  EXPECT_EQ(config["data"]["val_dir"], path("data/validation"));
  EXPECT_EQ(config["model"]["model"], "vit_tiny_patch16_224");
  const Outcome more = vitrail("train --resume " + path("runs/moved") + " --epochs 2", "", "cd / &&");
  ASSERT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, Not(HasSubstr("--data-dir was")));
  const Outcome again =
      vitrail("train data --resume runs/moved --epochs 3", "", "cd " + folder_->path().string() + " &&");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, Not(HasSubstr("--data-dir was")));

  fs::copy(path("data"), path("elsewhere"), fs::copy_options::recursive);
  const Outcome begun = vitrail("train " + path("elsewhere") + run_flags(path("runs"), "left") + small());
  ASSERT_EQ(begun.status, 0) << begun.err;
  fs::remove_all(path("elsewhere"));
  const Outcome lost = vitrail("train --resume " + path("runs/left") + " --epochs 2");
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(lost.err, HasSubstr("name them again by vitrail train DATA --resume " + path("runs/left")));
  const Outcome found = vitrail("train " + path("data") + " --resume " + path("runs/left") + " --epochs 2");
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("--data-dir was"));
}

TEST_F(ResumeOnImages, WithoutThePartThatIsGone) {
  const std::string data = copy_of_data("leaving");
  ASSERT_EQ(train(data, "leaving").status, 0);
  fs::rename(data + "/validation", path("left"));
  const std::string resume = "train --resume " + path("runs/leaving") + " --epochs 2";
  refuses(resume, "name another folder with --val-dir");
  EXPECT_THAT(vitrail(resume).err, Not(HasSubstr("--val-split ''")));
  const Outcome elsewhere = vitrail(resume + " --val-dir " + path("left"));
  EXPECT_EQ(elsewhere.status, 0) << elsewhere.err;
  refuses("train " + data + small() + " --val-split mine --output " + path("runs"),
          "or train without evaluation by --val-split ''");
}

TEST_F(ResumeOnImages, SaysThatTheDataHaveChanged) {
  copy_of_data("changing");
  const std::string run = path("runs/changing");
  ASSERT_EQ(
      vitrail("train " + path("changing") + small() + " --epochs 1 --output " + path("runs") + " --experiment changing")
          .status,
      0);
  fs::remove(path("changing/train/red/3.png"));
  const Outcome outcome = vitrail("train --resume " + run + " --epochs 2");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("the data have changed: training_images was 32 and is now 31"),
                                 Not(HasSubstr("validation_images was"))));
}

TEST_F(ResumeOnImages, SaysThatTheImagesAreOthers) {
  copy_of_data("exchanged");
  ASSERT_EQ(train(path("exchanged"), "exchanged").status, 0);
  fs::rename(path("exchanged/train/red/3.png"), path("exchanged/train/red/33.png"));
  EXPECT_THAT(go_on("exchanged").out, HasSubstr("the data have changed: as many images to learn from as before"));
}

TEST_F(ResumeOnImages, TakesTheClassesOfSequencesAlone) {
  fs::copy(path("data/train"), path("clips"), fs::copy_options::recursive);
  for (const char* color : {"blue", "red"}) {
    for (int i = 0; i < 16; ++i) {
      const std::string place = path(std::string("clips/") + color + "/");
      fs::create_directories(place + "s" + std::to_string(i / 4));
      fs::rename(place + std::to_string(i) + ".png",
                 place + "s" + std::to_string(i / 4) + "/" + std::to_string(i) + ".png");
    }
  }
  const std::string flags =
      " --task frames --model linear --img-size 16 --cell gru --cell-kwargs hidden_size=8 --no-aug -b 2";
  const Outcome first = train(path("clips"), "clips", flags + " --threads 1");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("has no part to evaluate on: a share of 0.2 of each class is held out"));
  fs::rename(path("clips/blue"), path("clips/sky"));
  const Outcome renamed = go_on("clips");
  EXPECT_EQ(renamed.status, 1);
  EXPECT_THAT(renamed.err, HasSubstr("the run is of 2 classes (blue, red), but the data are of 2 classes (red, sky)"));
  fs::rename(path("clips/sky"), path("clips/blue"));
  EXPECT_EQ(go_on("clips").status, 0);
  EXPECT_THAT(vitrail("predict " + path("runs/clips") + " " + path("data") + " --topk 1").out,
              HasSubstr("validation/red:  "))
      << "of a folder of parts all sequences";
}

TEST_F(ResumeOnImages, TakesScenesThatAreDrawn) {
  ASSERT_EQ(train_task("scenes:count=16,task=count" + classifier(), "drawn").status, 0);
  const Outcome more = vitrail("train --resume " + path("runs/drawn") + " --epochs 2");
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("epoch 2/2"));
}

class ResumeOfARun : public Commands {};

TEST_F(ResumeOfARun, TakesItsClassesAlone) {
  const std::string run = path("runs/one");
  for (const std::string part : {"train", "validation"}) {
    fs::create_directories(path("other/" + part));
    fs::copy(path("data/" + part + "/red"), path("other/" + part + "/red"));
    fs::copy(path("data/" + part + "/blue"), path("other/" + part + "/green"));
  }
  const Outcome other = vitrail("train " + path("other") + " --resume " + run + " --epochs 9");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("the run is of 2 classes (blue, red), but the data are of 2 classes (green, red)"));
}

class ResumeOnScenes : public OnScenes {
 protected:
  // Replaces what a file says.
  static void replace(const std::string& name, const std::string& what, const std::string& by) {
    std::string text = io::read_text(path(name));
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos);
    write(name, text.replace(at, what.size(), by));
  }
};

TEST_F(ResumeOnScenes, TakesTheClassesOfADetectorAlone) {
  fs::copy(path("scenes"), path("boxed"), fs::copy_options::recursive);
  ASSERT_EQ(train(path("boxed"), "detector",
                  " --task detect --model detr_scenes --no-random-resize -b 8 --val-split '' --threads 1")
                .status,
            0);
  const std::string whole = io::read_text(path("boxed/instances.json"));
  replace("boxed/instances.json", "\"name\":\"bird\"", "\"name\":\"fowl\"");
  const Outcome renamed = go_on("detector");
  EXPECT_EQ(renamed.status, 1);
  EXPECT_THAT(renamed.err,
              AllOf(HasSubstr("the run is of 4 classes (circle, square, triangle, bird), but the data are"),
                    HasSubstr("fowl"), HasSubstr("begin a new one")));
  // The names of two ids are exchanged, and the classes are found by their names.
  write("boxed/instances.json", whole);
  replace("boxed/instances.json", "\"name\":\"circle\"", "\"name\":\"SQUARE\"");
  replace("boxed/instances.json", "\"name\":\"square\"", "\"name\":\"circle\"");
  replace("boxed/instances.json", "\"name\":\"SQUARE\"", "\"name\":\"square\"");
  const Outcome exchanged = go_on("detector");
  EXPECT_EQ(exchanged.status, 0) << exchanged.err;
  EXPECT_THAT(exchanged.out, HasSubstr("4 classes: circle, square, triangle, bird"));
  EXPECT_EQ(vitrail("info " + path("runs/detector/last")).status, 0) << "what was saved can be read";
}

}  // namespace
}  // namespace vitrail::test
