// What a person does who has questions about images: trains a network, measures it, and asks.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Scenes, and a network that has read their questions for a moment.
class Ask : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    EXPECT_EQ(vitrail("scenes " + path("train") + " --count 24").status, 0);
    EXPECT_EQ(vitrail("scenes " + path("test") + " --start 100 --count 6").status, 0);
    trained_ = vitrail("train --task vqa " + path("train") + " --val-dir " + path("test") + " --output " +
                       path("runs") + " --experiment one --epochs 2" + small());
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string small(const std::string& model = "vqa_small") {
    return " --model " + model +
           " --model-kwargs 'channels=[8,8,16]' dim=16 num_heads=2 vision_depth=1 depth=2 -b 8 --threads 1";
  }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string run() { return path("runs/one"); }
  static std::string image() { return path("test/images/000100.png"); }
  static std::string blip(const std::string& name) {
    return (fs::path(VITRAIL_SOURCE_DIR) / "tests/golden/models/joint" / name).string();
  }

  static inline TemporaryFolder* folder_ = nullptr;
  static inline Outcome trained_;
};

// A BLIP that captions is drawn, evaluated and trained as any other captioner.
TEST_F(Ask, CaptionsByBlip) {
  const std::string blip_caption = blip("blip_caption");
  const Outcome drawn =
      vitrail("caption " + blip_caption + " " + image() + " --max-new-tokens 5 --attention --output " + path("strips"));
  EXPECT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_GT(io::read_image(path("strips/000100.png")).width, 100);
  const Outcome measured = vitrail("eval " + blip_caption + " " + path("test"));
  EXPECT_EQ(measured.status, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("CIDEr"));
  EXPECT_EQ(vitrail("gallery " + image() + " --captioner " + blip_caption + " --output " + path("blip.html")).status,
            0);
  const std::string train = "train --task caption " + path("train") + " --val-dir " + path("test") + " --model " +
                            blip_caption + " --no-aug -b 8 --threads 1 --lr 1e-3 --output " + path("runs");
  const Outcome trained = vitrail(train + " --experiment blip --epochs 2");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("blip_vision and blip"));
  const auto config = io::read_json(path("runs/blip/best/config.json"));
  EXPECT_EQ(config["architectures"][0], "BlipForConditionalGeneration");
  EXPECT_EQ(vitrail("train --resume " + path("runs/blip") + " --epochs 3").status, 0);
  EXPECT_EQ(vitrail("caption " + path("runs/blip") + " " + image()).status, 0);
  EXPECT_EQ(vitrail("convert " + path("runs/blip") + " --dtype bf16 --output " + path("blip-bf16")).status, 0);
}

// Someone's own questions have words and answers that the network has never read.
TEST_F(Ask, LearnsFurtherWordsAndAnswers) {
  io::write_atomically(path("own.csv"),
                       "path,question,answer\ntest/images/000100.png,is this my holiday?,certainly\n"
                       "test/images/000101.png,is this my sky?,yes\n");
  const std::string own =
      "train --task vqa " + path("own.csv") + " --val-split '' --threads 1 --output " + path("runs");
  const Outcome trained = vitrail(own + " --model " + run() + " --experiment own --epochs 1 -b 2");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("3 words and 1 answer are new to"));  // this, my, holiday
  EXPECT_THAT(trained.out, Not(HasSubstr("left out")));
  const Outcome answered = vitrail("ask " + path("runs/own") + " " + image() + " 'is this my holiday?'");
  EXPECT_EQ(answered.status, 0) << answered.err;
  EXPECT_EQ(vitrail("train --resume " + path("runs/own") + " --epochs 2").status, 0);
  const Outcome few = vitrail(own + " --model " + run() + " --experiment few --epochs 1 -b 2 --most-answers 1");
  EXPECT_THAT(few.out, HasSubstr("3 words and 1 answer are new to"));
  // What it knows already is not new.
  const Outcome again = vitrail(own + " --model " + path("runs/own") + " --experiment again --epochs 1 -b 2");
  EXPECT_THAT(again.out, Not(HasSubstr("new to")));
}

TEST_F(Ask, TellsOfAnswersThatItNeverLearns) {
  io::write_atomically(path("asked.csv"),
                       "path,question,answer\ntest/images/000100.png,how many?,two\n"
                       "test/images/000101.png,what is it?,circle\n");
  io::write_atomically(path("judged.csv"),
                       "path,question,answer\ntest/images/000102.png,how many?,seventeen\n"
                       "test/images/000103.png,what is it?,circle\n");
  const Outcome outcome = vitrail("train --task vqa " + path("asked.csv") + " --val-dir " + path("judged.csv") +
                                  " --output " + path("runs") + " --experiment judged --epochs 1" + small());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 question to evaluate on counts as wrong: the model learns no answer to it"));
}

TEST_F(Ask, TrainsOnVqaAndGoesOn) {
  EXPECT_EQ(trained_.status, 0) << trained_.err;
  EXPECT_THAT(trained_.out, HasSubstr("192 questions to learn from, 48 to evaluate on"));
  EXPECT_THAT(trained_.out, HasSubstr("accuracy "));
  EXPECT_TRUE(fs::exists(run() + "/best/tokenizer.json"));
  const Outcome more = vitrail("train --resume " + run() + " --epochs 3");
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("epoch 3/3"));
  EXPECT_THAT(vitrail("compare " + run()).out, HasSubstr("vqa_small"));
}

TEST_F(Ask, IsToldWhatAnswers) {
  const Outcome described = vitrail("info " + run() + "/best");
  EXPECT_EQ(described.status, 0) << described.err;
  EXPECT_THAT(described.out, HasSubstr("vqa_small, which answers questions about images"));
  EXPECT_THAT(described.out, HasSubstr("8 x 8 tokens"));
  EXPECT_FALSE(nlohmann::json::parse(vitrail("info --json " + run() + "/best").out)["answers"].empty());
  EXPECT_THAT(vitrail("info " + blip("blip_vqa")).out, HasSubstr("BlipForQuestionAnswering"));
  EXPECT_THAT(vitrail("info " + blip("blip_caption")).out, HasSubstr("blip_vision, "));
  EXPECT_EQ(nlohmann::json::parse(vitrail("info --json --parameters " + blip("blip_vqa")).out)["model"], "blip");
}

TEST_F(Ask, MeasuresByType) {
  const Outcome measured = vitrail("eval " + run() + " " + path("test") + " --output " + path("report"));
  EXPECT_EQ(measured.status, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("48 questions about 6 images"));
  EXPECT_THAT(measured.out, HasSubstr("attribute"));
  const nlohmann::json report = io::read_json(path("report/eval.json"));
  EXPECT_EQ(report["questions"], 48);
  double sum = 0;
  for (const auto& type : report["types"]) {
    sum += type["count"].get<double>() * type["accuracy"].get<double>();
  }
  EXPECT_NEAR(sum / 48, report["accuracy"].get<double>(), 1e-6);
  const nlohmann::json answers = io::read_json(path("report/answers.json"));
  ASSERT_EQ(answers.size(), 48U);
  EXPECT_TRUE(answers[0].contains("question_id") && answers[0].contains("answer"));
}

TEST_F(Ask, AnswersAndDrawsWhatWasLookedAt) {
  const Outcome said = vitrail("ask " + run() + " " + image() + " 'is there a red circle?' --output " + path("looked"));
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr(" %  "));
  for (const char* name : {"index.html", "image.png", "layers.png", "words.png"}) {
    EXPECT_TRUE(fs::exists(path("looked") + "/" + name)) << name;
  }
  const Outcome json = vitrail("ask " + run() + " " + image() + " 'Is there a red circle?' --json --topk 3");
  EXPECT_EQ(json.status, 0) << json.err;
  const nlohmann::json answer = nlohmann::json::parse(json.out);
  ASSERT_EQ(answer["best"].size(), 3U);
  EXPECT_EQ(answer["best"][0]["answer"], answer["answer"]);
  EXPECT_GE(answer["best"][0]["probability"], answer["best"][1]["probability"]);
  EXPECT_EQ(vitrail("ask " + run() + " " + image() + " 'is there a red circle?' --output " + path("looked") +
                    " --layer -1 --head 1 --word red")
                .status,
            0);
}

TEST_F(Ask, DrawsWhatSeveralQuestionsLookAt) {
  const std::string two = "ask " + run() + " " + image() + " 'is there a red circle?' 'what colour is the sky?'";
  const Outcome said = vitrail(two + " --output " + path("two"));
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("what colour is the sky? "), HasSubstr("words-2.png, questions.png")));
  const io::Image sheet = io::read_image(path("two/questions.png"));
  EXPECT_GT(sheet.width, 3 * sheet.height / 2) << "the picture and two maps in a row";
  EXPECT_NE(io::read_bytes(path("two/layers-1.png")), io::read_bytes(path("two/layers-2.png")));
  const nlohmann::json json = nlohmann::json::parse(vitrail(two + " --json").out);
  ASSERT_EQ(json["questions"].size(), 2U);
  EXPECT_EQ(json["questions"][1]["question"], "what colour is the sky?");
  EXPECT_EQ(json["questions"][0]["best"].size(), 5U);
}

TEST_F(Ask, AnswersByBlip) {
  const Outcome said =
      vitrail("ask " + blip("blip_vqa") + " " + image() + " 'what colour is the bird?' --output " + path("blip"));
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_TRUE(fs::exists(path("blip/words.png")));
  EXPECT_EQ(std::ranges::count(said.out, '%'), 5);
}

TEST_F(Ask, TrainsABlip) {
  // Answers whose words its small vocabulary has; and of one question none.
  io::write_atomically(
      path("train/told.csv"),
      "path,question,answer\nimages/000000.png,what colour is the bird ?,red\n"
      "images/000000.png,how many birds are there ?,two large\nimages/000001.png,is there a head ?,no\n"
      "images/000002.png,what is there ?,zebra\n");
  const std::string train = "train --task vqa " + path("train/told.csv") + " --val-split '' --val-dir " +
                            path("train/told.csv") + " --model " + blip("blip_vqa") +
                            " --epochs 150 --batch-size 3 --lr 1e-2 --warmup-epochs 1 --output " + path("runs");
  const Outcome trained = vitrail(train + " --experiment written");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.err + trained.out, HasSubstr("1 question left out, whose answers are too long"));
  const auto measured = [&](const std::string& model) {
    return nlohmann::json::parse(vitrail("eval " + model + " " + path("train/told.csv") + " --json").out);
  };
  const nlohmann::json before = measured(blip("blip_vqa"));
  const nlohmann::json after = measured(path("runs/written/last"));
  EXPECT_LT(after["loss"], 0.2);
  EXPECT_GT(before["loss"], 3);
  EXPECT_EQ(after["accuracy"], 75);
  EXPECT_EQ(after["unseen_answers"], 1);
  EXPECT_THAT(vitrail("ask " + path("runs/written") + "/last " + image() + " 'how many birds are there ?'").out,
              StartsWith("two large\n"));
  const Outcome further = vitrail("train --resume " + path("runs/written") + " --epochs 151");
  EXPECT_EQ(further.status, 0) << further.err;
  EXPECT_LT(measured(path("runs/written/last"))["loss"], 0.2);
  EXPECT_THAT(vitrail(train + " --experiment x --most-answers 3").err, HasSubstr("which writes its answers"));
}

// An image of which no question is left has no batch of its own, whose loss would be NaN.
TEST_F(Ask, LeavesOutImagesWithoutAQuestion) {
  io::write_atomically(path("train/rare.csv"),
                       "path,question,answer\nimages/000000.png,what is it?,red\nimages/000000.png,what is there?,red\n"
                       "images/000001.png,what is it?,lilac\nimages/000002.png,what is it?,red\n");
  const Outcome trained = vitrail("train --task vqa " + path("train/rare.csv") + " --val-split '' --val-dir " +
                                  path("train/rare.csv") + " --most-answers 1 --epochs 2 --output " + path("runs") +
                                  " --experiment rare" + small() + " --batch-size 1");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("2 updates of 1 image an epoch"));
}

TEST_F(Ask, IsGuidedToWhatQuestionsAreAbout) {
  const std::string guided = "train --task vqa " + path("train") + " --val-dir " + path("test") + " --output " +
                             path("runs") + " --attn-loss-coef 1 --no-shuffle --epochs 12 --lr 3e-3 --experiment ";
  const Outcome outcome = vitrail(guided + "guided" + small());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto on_target = [](const std::string& name) {
    const Outcome measured = vitrail("eval " + path("runs/" + name) + "/last " + path("train") + " --json");
    const auto json = nlohmann::json::parse(measured.out);
    for (const auto& map : json["attention"]) {
      if (map["map"] == "layer 1, [CLS]") {
        return map["on_target"].get<double>();
      }
    }
    return -1.0;
  };
  ASSERT_EQ(vitrail(guided + "free --attn-loss-coef 0" + small()).status, 0);
  EXPECT_GT(on_target("guided"), on_target("free") + 0.1);
  const auto error = [](const std::string& command) { return vitrail(command).err; };
  EXPECT_THAT(error(guided + "joint" + small("vqa_joint")),
              HasSubstr("--attn-loss-coef is for networks whose question"));
  io::write_atomically(path("train/told.csv"), "path,question,answer\nimages/000001.png,what is it?,red\n");
  EXPECT_THAT(error("train --task vqa " + path("train/told.csv") + " --val-split '' --attn-loss-coef 1" + small()),
              HasSubstr("no question says what it is about"));
}

TEST_F(Ask, SaysWhatDoesNotFit) {
  const auto error = [](const std::string& command) { return vitrail(command).err; };
  EXPECT_THAT(error("ask " + run() + " " + image() + " 'is there a purple zebra with stripes?'"),
              HasSubstr("the model has never read 'zebra', 'with' and 'stripes' of the question"));
  EXPECT_THAT(error("ask " + run() + " " + image() + " ''"), HasSubstr("the question is empty"));
  EXPECT_THAT(error("ask " + run() + " " + image() + " 'is there a circle?' --output " + path("x") + " --layer 7"),
              HasSubstr("there is no layer 7: there are 2, from 0"));
  EXPECT_THAT(error("ask " + run() + " " + image() + " 'is there a circle?' --output " + path("x") + " --word dog"),
              HasSubstr("the question has no word 'dog'"));
  EXPECT_THAT(error("ask " + path("train") + " " + image() + " 'what?'"), HasSubstr("answers no questions"));
  EXPECT_THAT(error("ask " + blip("clip") + " " + image() + " 'what?'"),
              HasSubstr("it is a model of images and texts; `vitrail zeroshot`"));
  EXPECT_THAT(error("ask " + blip("blip_caption") + " " + image() + " 'what?'"), HasSubstr("answers no questions"));
  EXPECT_THAT(vitrail("caption " + blip("blip_caption") + " " + image() + " --max-new-tokens 5").out,
              HasSubstr(image() + ": "));
  EXPECT_THAT(error("train --task vqa " + path("train") + " --attn-loss-coef 1 --output " + path("no") + " --model " +
                    blip("blip_vqa")),
              HasSubstr("--attn-loss-coef is for networks such as vqa_small"));
  EXPECT_THAT(vitrail("eval " + blip("blip_vqa") + " " + path("test")).out,
              AllOf(HasSubstr("of an answer that the model"), Not(HasSubstr("loss –"))));
  EXPECT_THAT(error("predict " + blip("blip_vqa") + " " + image()), HasSubstr("`vitrail ask` takes it"));
  EXPECT_THAT(error("predict " + run() + " " + image()), HasSubstr("`vitrail ask` takes it"));
  EXPECT_THAT(error("train --task vqa " + path("train/images") + " --val-split ''"),
              HasSubstr("there are no questions"));
  EXPECT_THAT(error("train --task vqa " + path("train") + " --val-split '' --attn-norm sigmoid" + small()),
              HasSubstr("only vqa_one"));
  // An answer and a word that training had not.
  fs::create_directories(path("other/images"));
  fs::copy_file(image(), path("other/images/1.png"));
  io::write_atomically(path("other/questions.csv"),
                       "path,question,answer\nimages/1.png,is there a giraffe?,yes\nimages/1.png,what is it?,lilac\n");
  const Outcome measured = vitrail("eval " + run() + " " + path("other"));
  EXPECT_EQ(measured.status, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("1 question of an answer that the model has never seen"));
  EXPECT_THAT(measured.out, HasSubstr("with a word that the model has never read"));
}

class QuestionsOfScenes : public OnImages {};

TEST_F(QuestionsOfScenes, AreAskedAsTheyWereLearned) {
  scenes("vqa/train", 8);
  scenes("vqa/validation", 4);
  const std::string vqa =
      " --model vqa_small --model-kwargs 'channels=[8,8,16]' dim=16 num_heads=2 vision_depth=1 depth=1 -b 8 --epochs 1";
  const Outcome trained = train_task(path("vqa") + vqa, "vqa");  // the model says which task it is
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string more =
      "train " + path("vqa") + " --task vqa --model " + path("runs/vqa") + " --output " + path("runs");
  for (const char* flag : {"--model-kwargs dim=8", "--img-size 32", "--attn-norm sigmoid"}) {
    refuses(more + " " + flag, "has no effect with a folder as --model", 2);
  }
  refuses("eval " + path("runs/vqa") + " " + path("vqa"), "split into parts (train, validation): choose one");
  std::ofstream(path("questions.csv")) << "path,question,answer\ndata/train/red/0.png,what is it?,a unicorn\n";
  EXPECT_THAT(vitrail("eval " + path("runs/vqa") + " " + path("questions.csv")).out, HasSubstr("loss –"));
  std::ofstream(path("empty.csv")) << "path,question,answer\ndata/train/red/0.png,,yes\n";
  refuses("eval " + path("runs/vqa") + " " + path("empty.csv"), "line 2 has no question");
  const std::string image = path("vqa/train/images/000000.png");
  refuses("ask " + path("runs/vqa") + " " + image + " 'how many birds?' --layer 7 --output " + path("asked"), "layer");
  EXPECT_FALSE(fs::exists(path("asked")));
}

class AnswersOfScenes : public OnScenes {
 protected:
  static std::string vqa() {
    return " --task vqa --model vqa_small --model-kwargs 'channels=[8,8,16]' dim=16 num_heads=2 vision_depth=1 depth=1 "
           "-b 8 --val-split ''";
  }
};

TEST_F(AnswersOfScenes, AreEvaluatedAsItIsAsked) {
  ASSERT_EQ(train_epoch(path("scenes") + vqa(), "vqa").status, 0);
  const std::string eval = "eval " + path("runs/vqa") + " " + path("others") + " --json";
  const auto loss = [&](const std::string& flags) {
    return nlohmann::json::parse(vitrail(eval + flags).out)["loss"].get<double>();
  };
  const double plain = loss("");
  EXPECT_NE(loss(" --mean 0 0 0"), plain);
  EXPECT_NE(loss(" --crop-pct 0.3 --std 0.1 0.1 0.1"), plain);
  EXPECT_EQ(loss(" --split train"), plain);
  refuses(eval + " --split nope", "there is no part 'nope'");
  write("parts.csv", lines_of({"path,question,answer,split", "scenes/images/000000.png,how many birds?,1,train",
                               "scenes/images/000001.png,how many birds?,0,validation"}));
  const std::string table = "eval " + path("runs/vqa") + " " + path("parts.csv");
  EXPECT_THAT(vitrail(table + " --split validation").out, HasSubstr("1 question about 1 image"));
  refuses(table, "split into parts (train, validation): choose one of them");
  const Outcome both = vitrail("train " + path("parts.csv") + vqa().substr(0, vqa().find(" --val-split")) +
                               " --val-split validation --epochs 1 --threads 1 --output " + path("runs"));
  EXPECT_THAT(both.out, HasSubstr("1 question to learn from, 1 to evaluate on")) << both.err;
}

}  // namespace
}  // namespace vitrail::test
