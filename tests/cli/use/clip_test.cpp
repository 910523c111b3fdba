// A model of images and texts, from scenes to what it tells of them, as a person types it.
#include <cmath>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ImagesAndTexts, AreLearnedAndFoundByEachOther) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder / name).string(); };
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 24 --size 32 --objects 1").status, 0);
  const Outcome learned = vitrail("pretrain clip " + path("scenes") + " --output " + path("runs") +
                                  " --experiment one --epochs 2 -b 8 --threads 1 --vision-kwargs image_size=32 "
                                  "hidden_size=24 num_attention_heads=2 intermediate_size=48 num_hidden_layers=2 "
                                  "--text-kwargs hidden_size=24 num_attention_heads=2 intermediate_size=48 "
                                  "num_hidden_layers=1 --projection-dim 16");
  ASSERT_EQ(learned.status, 0) << learned.err;
  EXPECT_THAT(learned.out, HasSubstr("2 blocks of width 24 for images and 1 of width 24 for texts"));
  EXPECT_TRUE(fs::exists(folder / "runs/one/best/tokenizer.json"));
  const Outcome more = vitrail("pretrain --resume " + path("runs/one") + " --epochs 3");
  EXPECT_EQ(more.status, 0) << more.err;

  const std::string run = "zeroshot " + path("runs/one") + " ";
  const Outcome named = vitrail(run + path("scenes/images/000000.png") +
                                " --labels 'red bird,blue circle' --templates 'a {}' 'a small {}' --format json");
  ASSERT_EQ(named.status, 0) << named.err;
  const nlohmann::json list = nlohmann::json::parse(named.out);
  ASSERT_EQ(list[0]["top"].size(), 2U);
  EXPECT_NEAR(list[0]["top"][0]["probability"].get<double>() + list[0]["top"][1]["probability"].get<double>(), 1, 1e-5);

  const Outcome measured = vitrail(run + "--data " + path("scenes/kind.csv") + " --templates 'a {}' --output " +
                                   path("report") + " --format json");
  ASSERT_EQ(measured.status, 0) << measured.err;
  EXPECT_EQ(nlohmann::json::parse(measured.out)["count"], 24);
  EXPECT_EQ(io::read_json(folder / "report/zeroshot.json")["templates"][0], "a {}");
  EXPECT_TRUE(fs::exists(folder / "report/confusion.svg"));

  const Outcome found = vitrail(run + "--pairs " + path("scenes"));
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("24 images, 120 texts"));
  EXPECT_THAT(found.out, HasSubstr("text to image"));
}

// A folder of transformers' SiglipModel: each label by itself, and it learns on in its own layout.
TEST(ImagesAndTexts, MayBeSiglips) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder / name).string(); };
  const std::string model = golden_path("models/joint/siglip").string();
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 8 --size 32 --objects 1").status, 0);
  const Outcome learned = vitrail("pretrain clip " + path("scenes") + " --model " + model + " --loss siglip --output " +
                                  path("runs") + " --experiment one --epochs 1 -b 4 --threads 1");
  ASSERT_EQ(learned.status, 0) << learned.err;
  EXPECT_THAT(vitrail("info " + path("runs/one/best")).out, HasSubstr("SiglipModel"));
  EXPECT_TRUE(fs::exists(folder / "runs/one/best/spiece.model"));
  for (const std::string& from : {model, path("runs/one")}) {
    const Outcome named = vitrail("zeroshot " + from + " " + path("scenes/images/000000.png") +
                                  " --labels 'red bird,bird,blue circle' --format json");
    ASSERT_EQ(named.status, 0) << named.err;
    const nlohmann::json top = nlohmann::json::parse(named.out)[0]["top"];
    double sum = 0;
    for (const nlohmann::json& label : top) {
      sum += label["probability"].get<double>();
    }
    EXPECT_GT(std::abs(sum - 1), 1e-3);
  }
}

// An index by such a model is searched by words, and its vision tower is a model like any other.
TEST(ImagesAndTexts, AreSearchedByWords) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder / name).string(); };
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 6 --size 32 --objects 1").status, 0);
  const std::string images = path("scenes/images");
  for (const std::string name : {"clip", "siglip"}) {
    const std::string model = golden_path("models/joint/" + name).string();
    const std::string index = path(name + ".index");
    ASSERT_EQ(vitrail("index " + images + " --model " + model + " --output " + index).status, 0);
    const Outcome found =
        vitrail("search " + index + " --text 'a red bird' 'a blue circle' -k 3 --json --output " + path("found.png"));
    ASSERT_EQ(found.status, 0) << found.err;
    const nlohmann::json json = nlohmann::json::parse(found.out);
    ASSERT_EQ(json.size(), 2U);
    EXPECT_EQ(json[1]["query"], "a blue circle");
    EXPECT_EQ(json[0]["found"].size(), 3U);
    EXPECT_TRUE(fs::exists(folder / "found.png"));
    const Outcome same = vitrail("search " + index + " --image " + images + "/000002.png -k 1");
    EXPECT_THAT(same.out, HasSubstr("000002.png"));

    const std::string tower = path(name + "_tower.index");
    ASSERT_EQ(vitrail("index " + images + " --model " + model + " --pool avg --output " + tower).status, 0);
    EXPECT_THAT(vitrail("search " + tower + " --text bird").err,
                HasSubstr("were pooled by --pool 'avg', and texts have none of this kind"));
    const Outcome embedded =
        vitrail("embed " + model + " " + images + " --unlabeled --output " + path(name + ".safetensors"));
    EXPECT_THAT(embedded.out, HasSubstr("features [6, 16] f32")) << embedded.err;
    EXPECT_EQ(vitrail("attention " + model + " " + images + "/000002.png --output " + path(name)).status, 0);
  }
  const std::string other = golden_path("models/hf_vit").string();
  ASSERT_EQ(vitrail("index " + images + " --model " + other + " --output " + path("other.index")).status, 0);
  EXPECT_THAT(vitrail("search " + path("other.index") + " --text bird").err, HasSubstr("which knows no texts"));
  EXPECT_THAT(vitrail("search " + path("other.index")).err, HasSubstr("give IMAGES or --text to search by"));
  EXPECT_THAT(vitrail("index " + images + " --model " + golden_path("models/joint/clip").string() +
                      " --img-size 24 --output " + path("large.index"))
                  .err,
              HasSubstr("is a model of images and texts: it takes no --model-kwargs"));
}

TEST(ImagesAndTexts, SayWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string model = golden_path("models/joint/clip").string();
  const std::string image = golden_path("images/decode/rgb.png").string();
  EXPECT_THAT(vitrail("zeroshot " + model + " " + image).err, HasSubstr("--labels is missing"));
  EXPECT_THAT(vitrail("zeroshot " + model + " " + image + " --labels ' , '").err, HasSubstr("there is no label in it"));
  EXPECT_THAT(vitrail("zeroshot " + model + " " + image + " --labels cat,dog,cat").err,
              HasSubstr("--labels 'cat,dog,cat': 'cat' is there twice"));
  EXPECT_THAT(vitrail("zeroshot " + model + " " + image + " --labels no.txt").err,
              HasSubstr("there is no file 'no.txt'"));
  EXPECT_THAT(vitrail("zeroshot " + model + " " + image + " --labels cat --templates photo").err,
              HasSubstr("the template 'photo' has no {} for the label"));
  EXPECT_THAT(vitrail("zeroshot " + model).err, HasSubstr("give one of IMAGES, --data and --pairs"));
  const Outcome cut = vitrail("zeroshot " + model + " " + image +
                              " --labels 'bird bird bird bird bird bird bird bird bird bird bird bird,circle'");
  EXPECT_EQ(cut.status, 0);
  EXPECT_THAT(cut.err, HasSubstr("note: 1 text of more than 16 tokens is cut"));
  EXPECT_THAT(vitrail("zeroshot " + golden_path("models/hf_vit").string() + " " + image + " --labels a").err,
              HasSubstr("puts images and texts in no common space"));
}

class LabelsInWords : public OnImages {};

TEST_F(LabelsInWords, ThatAreSpeltOutAreNamed) {
  const std::string image = path("data/train/red/0.png");
  const std::string ask = "zeroshot vitrail/scenes_clip " + image + " --labels ";
  EXPECT_THAT(vitrail(ask + "\"a red circle,xyzzy\"").err, HasSubstr("no pieces for 'xyzzy', only single characters"));
  EXPECT_THAT(vitrail(ask + "\"a red circle,a blue bird\"").err, Not(HasSubstr("note")));
}

class SiglipOfScenes : public OnScenes {};

TEST_F(SiglipOfScenes, IsAModelOfImages) {
  const std::string small = "hidden_size=16 num_hidden_layers=1 num_attention_heads=2 intermediate_size=16";
  const Outcome trained =
      vitrail("pretrain clip " + path("scenes") + " --loss siglip --vision-kwargs image_size=32 patch_size=16 " +
              small + " --text-kwargs " + small +
              " --projection-dim 8 --epochs 1 --batch-size 4 --threads 1"
              " --output " +
              path("runs") + " --experiment siglip");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome embedded = vitrail("embed " + path("runs/siglip") + " " + path("scenes/images") +
                                   " --unlabeled --output " + path("x.safetensors"));
  EXPECT_EQ(embedded.status, 0) << embedded.err;
  EXPECT_THAT(embedded.out, HasSubstr("[8, 16] f32"));
}

}  // namespace
}  // namespace vitrail::test
