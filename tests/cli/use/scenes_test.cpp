// A data set of rendered scenes as a person makes it.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/data/dataset.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(ScenesCommand, WritesImagesWithAllThatIsKnownOfThem) {
  const TemporaryFolder folder;
  const std::string out = (folder / "scenes").string();
  const Outcome made = vitrail("scenes " + out + " --count 6 --seed 1 --start 10 --preview 5");
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("6 scenes of 64 x 64 pixels, 10 … 15 of seed 1"));
  const io::Image image = io::read_image(fs::path(out) / "images/000010.png");
  EXPECT_EQ(image.width, 64);
  const io::Image mask = io::read_image(fs::path(out) / "masks/000010.png");
  EXPECT_GT(io::read_image(fs::path(out) / "preview.png").width, 1000);

  const json captions = io::read_json(fs::path(out) / "captions.json");
  EXPECT_EQ(captions["images"].size(), 6U);
  EXPECT_EQ(captions["images"][0], json::parse(R"({"id": 10, "file_name": "000010.png", "width": 64, "height": 64})"));
  EXPECT_EQ(captions["annotations"].size(), 30U);
  EXPECT_EQ(captions["annotations"][0]["id"], 1);
  EXPECT_EQ(captions["annotations"][0]["image_id"], 10);
  EXPECT_TRUE(captions["annotations"][0]["caption"].is_string());

  const json scene = io::read_json(fs::path(out) / "scene.json")["scenes"][0];
  const json instances = io::read_json(fs::path(out) / "instances.json");
  EXPECT_EQ(instances["categories"][3], json::parse(R"({"id": 4, "name": "bird", "supercategory": "object"})"));
  const std::size_t count = scene["objects"].size();
  for (std::size_t i = 0; i < count; ++i) {
    const json& instance = instances["annotations"][i];
    const json& object = scene["objects"][i];
    EXPECT_EQ(instance["id"], i + 1);
    EXPECT_EQ(instance["image_id"], 10);
    EXPECT_EQ(instance["bbox"], object["bbox"]);
    EXPECT_EQ(instance["attributes"]["color"], object["color"]);
    EXPECT_GE(instance["segmentation"][0].size(), 8U);
    std::int64_t area = 0;
    for (std::size_t p = 0; p < mask.pixels.size(); p += 3) {
      area += mask.pixels[p] == i + 1 ? 1 : 0;
    }
    EXPECT_EQ(instance["area"], area);
  }
  EXPECT_EQ(instances["annotations"][count]["image_id"], 11);

  // A head lies in the box of its bird.
  const json heads = io::read_json(fs::path(out) / "heads.json");
  EXPECT_EQ(heads["categories"][0]["name"], "head");
  std::map<std::pair<int, int>, json> birds;
  const json scenes = io::read_json(fs::path(out) / "scene.json");
  for (const json& one : scenes["scenes"]) {
    for (const json& object : one["objects"]) {
      if (object["shape"] == "bird") {
        birds[{one["index"], object["number"]}] = object["bbox"];
      }
    }
  }
  EXPECT_EQ(heads["annotations"].size(), birds.size());
  ASSERT_GT(birds.size(), 2U);
  for (const json& head : heads["annotations"]) {
    const json& bird = birds.at({head["image_id"], head["object"]});
    const json& box = head["bbox"];
    EXPECT_EQ(box[1], bird[1]);  // the head is the highest part
    EXPECT_GE(box[0], bird[0]);
    EXPECT_LT(box[0].get<int>() + box[2].get<int>(), bird[0].get<int>() + bird[2].get<int>() + 1);
    EXPECT_LT(head["area"].get<int>(), bird[2].get<int>() * bird[3].get<int>() / 3);
    EXPECT_GE(head["area"].get<int>(), 16);
  }

  // VQA v2: a question a record, and ten answers to each.
  const json questions = io::read_json(fs::path(out) / "vqa_questions.json")["questions"];
  const json answers = io::read_json(fs::path(out) / "vqa_annotations.json")["annotations"];
  EXPECT_THAT(made.out, HasSubstr("48 questions"));
  ASSERT_EQ(questions.size(), 48U);
  ASSERT_EQ(answers.size(), 48U);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(questions[i]["question_id"], answers[i]["question_id"]);
    EXPECT_EQ(questions[i]["image_id"], answers[i]["image_id"]);
    EXPECT_EQ(answers[i]["answers"].size(), 10U);
    EXPECT_EQ(answers[i]["answers"][9]["answer"], answers[i]["multiple_choice_answer"]);
    ASSERT_EQ(answers[i]["objects"].size(), answers[i]["boxes"].size());
    const bool heads_asked = answers[i]["question_type"] == "part";
    if (answers[i]["image_id"] == 10 && !answers[i]["objects"].empty() && !heads_asked) {
      const auto number = answers[i]["objects"][0].get<std::size_t>();
      EXPECT_EQ(answers[i]["boxes"][0], scene["objects"][number - 1]["bbox"]);
    }
  }

  const auto counted = data::open_dataset(fs::path(out) / "count.csv");
  EXPECT_EQ(counted->size(), 6);
  EXPECT_EQ(counted->classes()[static_cast<std::size_t>(counted->label(0))], std::to_string(count));
}

TEST(ScenesCommand, MakesPartsOfOneDataSetByRanges) {
  const TemporaryFolder folder;
  const std::string flags = " --objects 1 --holdout \"red triangle, blue bird\"";
  ASSERT_EQ(vitrail("scenes " + (folder / "all").string() + " --count 6" + flags).status, 0);
  ASSERT_EQ(vitrail("scenes " + (folder / "part").string() + " --start 4 --count 2" + flags).status, 0);
  for (const char* file : {"images/000004.png", "masks/000005.png"}) {
    EXPECT_EQ(io::read_bytes(folder / "part" / file), io::read_bytes(folder / "all" / file)) << file;
  }
  const auto kinds = [&](const char* part) { return data::open_dataset(folder / part / "kind.csv")->classes(); };
  ASSERT_EQ(vitrail("scenes " + (folder / "unseen").string() + " --count 12 --held-out" + flags).status, 0);
  EXPECT_EQ(kinds("unseen"), (std::vector<std::string>{"blue bird", "red triangle"}));
  // A folder of scenes is replaced.
  EXPECT_EQ(vitrail("scenes " + (folder / "unseen").string() + " --count 3 --size 32").status, 0);
  EXPECT_FALSE(fs::exists(folder / "unseen/kind.csv"));
  EXPECT_EQ(vitrail("scenes " + (folder / "unseen").string() + " --count 2 --questions 0").out.find("questions"),
            std::string::npos);
}

TEST(ScenesCommand, DrawsCells) {
  const TemporaryFolder folder;
  const std::string out = (folder / "blood").string();
  const Outcome made = vitrail("scenes " + out + " --style cells --count 8 --size 96 --preview 2");
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("8 scenes of 96 x 96 pixels, 0 … 7 of seed 0: images, masks, instances.json"));
  EXPECT_FALSE(fs::exists(fs::path(out) / "captions.json"));
  EXPECT_GT(io::read_image(fs::path(out) / "preview.png").width, 350);
  const json instances = io::read_json(fs::path(out) / "instances.json");
  EXPECT_EQ(instances["categories"][1]["name"], "WBC");
  const json scenes = io::read_json(fs::path(out) / "scene.json")["scenes"];
  std::size_t objects = 0;
  for (const json& scene : scenes) {
    objects += scene["objects"].size();
  }
  ASSERT_EQ(instances["annotations"].size(), objects);
  EXPECT_GT(objects, 40U);
  for (const json& instance : instances["annotations"]) {
    const json& box = instance["bbox"];
    EXPECT_TRUE(box[2] > 0 && box[3] > 0 && box[0].get<int>() + box[2].get<int>() <= 96);
    EXPECT_LE(instance["area"].get<int>(), box[2].get<int>() * box[3].get<int>());
  }
  EXPECT_EQ(vitrail("scenes " + out + " --count 1").status, 0);  // it is a folder of scenes, and replaced
}

TEST(ScenesCommand, WritesClassFolders) {
  const TemporaryFolder folder;
  const std::string out = (folder / "species").string();
  const Outcome made = vitrail("scenes " + out + " --task same-different --count 20 --size 32");
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("22 scenes of 32 x 32 pixels, 0 … 21 of seed 0: train, validation, scene.json"));
  data::DatasetOptions part;
  part.split = "train";
  const auto training = data::open_dataset(out, part);
  EXPECT_EQ(training->size(), 20);
  EXPECT_EQ(training->classes(), (std::vector<std::string>{"different", "same"}));
  part.split = "validation";
  EXPECT_EQ(data::open_dataset(out, part)->size(), 2);
  EXPECT_TRUE(fs::exists(fs::path(out) / "train/same/000000.png"));
  EXPECT_EQ(io::read_json(fs::path(out) / "scene.json")["scenes"][1]["file_name"], "train/different/000001.png");
}

// A model learns from scenes that no file has.
TEST(ScenesCommand, IsNotNeededToTrain) {
  const TemporaryFolder folder;
  const std::string runs = " --workers 0 --batch-size 8 --epochs 1 --output " + folder.path().string();
  const Outcome classes = vitrail(
      "train scenes:count=16,size=32,task=count --experiment count --model "
      "vit_tiny_patch16_224 --model-kwargs depth=1 embed_dim=24 num_heads=2 --img-size 32" +
      runs);
  ASSERT_EQ(classes.status, 0) << classes.err;
  const Outcome scored =
      vitrail("eval " + (folder / "count/best").string() + " scenes:count=16,size=32,task=count --split validation");
  EXPECT_EQ(scored.status, 0) << scored.err;
  EXPECT_EQ(vitrail("train scenes:count=16 --model vit_tiny_patch16_224" + runs).status, 1);
}

TEST(ScenesCommand, SaysWhatIsWrongAndWritesNothing) {
  const TemporaryFolder folder;
  const std::string out = (folder / "scenes").string();
  const auto error = [&](const std::string& flags) {
    const Outcome outcome = vitrail("scenes " + out + " " + flags);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_FALSE(fs::exists(out));
    return outcome.err;
  };
  EXPECT_THAT(error("--count 0"), HasSubstr("--count"));
  EXPECT_THAT(error("--count 1 --size 16"), HasSubstr("--size"));
  EXPECT_THAT(error("--count 1 --objects 2-"), HasSubstr("--objects takes a number or a range of numbers, as in 2-6"));
  EXPECT_THAT(error("--count 1 --objects 4-99"), HasSubstr("a scene has 1 to 12 objects, not 4 to 99"));
  EXPECT_THAT(error("--count 1 --held-out"), HasSubstr("nothing is held out"));
  EXPECT_THAT(error("--count 1 --style blobs"), HasSubstr("--style"));
  EXPECT_THAT(error("--count 1 --style cells --objects 3"), HasSubstr("--objects has no effect with --style cells"));
  EXPECT_THAT(error("--count 1 --task count --questions 3"), HasSubstr("--questions has no effect with --task count"));
  EXPECT_THAT(error("--count 1 --task same-different --objects 3"), HasSubstr("there are two birds"));
  EXPECT_THAT(error("--count 1 --validation 3"), HasSubstr("--validation is for --task"));
  EXPECT_THAT(error("--count 1 --holdout \"red bird,pink bird\""), HasSubstr("scenes have no 'pink bird'"));
  fs::create_directories(out);
  std::ofstream(out + "/mine.txt") << "mine";
  const Outcome other = vitrail("scenes " + out + " --count 1");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("exists and is no folder of scenes: name a new one"));
  EXPECT_TRUE(fs::exists(out + "/mine.txt"));
}

class ScenesThatAreStopped : public InAFolder {};

TEST_F(ScenesThatAreStopped, LeaveNothingBehind) {
  const Outcome outcome =
      vitrail("scenes " + path("many") + " --count 1000000", "", "timeout -s INT --preserve-status 3");
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_FALSE(fs::exists(path("many")));
  EXPECT_FALSE(fs::exists(path(".many.tmp")));
}

class ScenesForAModel : public Commands {};

TEST_F(ScenesForAModel, AreTakenWithTheirParts) {
  const Outcome captions = train_epoch("scenes:count=16" + small_captioner(), "parts");
  EXPECT_EQ(captions.status, 0) << captions.err;
  EXPECT_THAT(captions.out, HasSubstr("16 training and 1 validation image"));
  const std::string eval = "eval " + path("runs/parts") + " scenes:count=16";
  EXPECT_THAT(vitrail(eval + " --split val").out, HasSubstr("1 image"));
  refuses(eval + " --split quatsch", "scenes have no part 'quatsch', only train and validation");
  refuses(eval + " --split test", "scenes have no part 'test'");
  refuses("embed " + best() + " scenes:count=4,task=count --split test --output " + path("e.safetensors"),
          "scenes have no part 'test'");
  EXPECT_THAT(vitrail("predict " + best() + " scenes:count=2").out, HasSubstr("000001.png"));
}

TEST_F(ScenesForAModel, AreNamedByTheirFiles) {
  ASSERT_EQ(vitrail("scenes " + path("album") + " --count 3").status, 0);
  const std::string first = path("album/images/000000.png");
  EXPECT_THAT(vitrail("predict " + best() + " " + path("album") + " --topk 1").out, HasSubstr(first + ":"));
  const std::string before = io::read_text(first);
  refuses("augment " + path("album") + " --output " + first, first);
  EXPECT_EQ(io::read_text(first), before);
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data/train") + " --output " + path("c.safetensors")).status, 0);
  refuses("project " + path("c.safetensors") + " --images " + path("data/train") + " --output " + path("data/train"),
          "lies in the data");
  EXPECT_FALSE(fs::exists(path("data/train/map.png")));
}

}  // namespace
}  // namespace vitrail::test
