// What a user is told: of data that are not what they seem or have changed, of evaluations that go as the training
// went, and by files for other programs.
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Told : public Commands {
 protected:
  static std::string words(int first, int count) {
    std::string text;
    for (int i = first; i < first + count; ++i) {
      text += "word " + std::to_string(i % 7) + " of " + std::to_string(i % 5) + (i % 4 == 3 ? "\n\n" : " and ");
    }
    return text;
  }
};

TEST_F(Told, ThatImagesWerePreparedOtherwise) {
  const Outcome outcome = vitrail("train " + path("data") + small() + " --initial-checkpoint " + best() +
                                  " --mean 0.2 --std 0.4 --epochs 1 --output " + path("runs") + " --experiment other");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("were prepared otherwise: mean 0.5 0.5 0.5, not 0.2 0.2 0.2"));
}

TEST_F(Told, ThatTheDataOfARunHaveChanged) {
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

TEST_F(Told, WhatElseIsBesideClassFolders) {
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 8").status, 0);
  const Outcome trained = vitrail("train " + path("scenes") + small() + " --val-split '' --epochs 1 --output " +
                                  path("runs") + " --experiment scenes");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("what is for --task detect, caption, vqa"));
  const Outcome masked = vitrail("pretrain mae " + path("scenes") + small() +
                                 " --decoder-dim 12 --decoder-depth 1 --decoder-heads 2 --epochs 1 --output " +
                                 path("runs") + " --experiment mae");
  EXPECT_EQ(masked.status, 0) << masked.err;
  EXPECT_THAT(masked.out, HasSubstr("8 training and 0 validation images"));
  const Outcome shards = vitrail("shard " + path("scenes") + " --output " + path("shards"));
  EXPECT_THAT(shards.err, HasSubstr("boxes, captions and questions are left out"));
}

TEST_F(Told, WhichImagesAreThePartOfATraining) {
  for (const char* part : {"train2017", "val2017"}) {
    fs::create_directories(path(std::string("coco/") + part));
    for (int i = 0; i < (part[0] == 't' ? 8 : 4); ++i) {
      fs::copy_file(path("data/train/red/" + std::to_string(i) + ".png"),
                    path(std::string("coco/") + part + "/" + std::to_string(i) + ".png"));
    }
  }
  const std::string mae = small() + " --decoder-dim 12 --decoder-depth 1 --decoder-heads 2 --epochs 1 --output " +
                          path("runs") + " --experiment ";
  const Outcome coco = vitrail("pretrain mae " + path("coco") + " --val-split validation" + mae + "coco");
  EXPECT_EQ(coco.status, 0) << coco.err;
  EXPECT_THAT(coco.out, HasSubstr("8 training and 4 validation images"));
  fs::create_directories(path("voc/JPEGImages"));
  fs::create_directories(path("voc/Annotations"));
  fs::create_directories(path("voc/ImageSets/Main"));
  std::ofstream train(path("voc/ImageSets/Main/train.txt"));
  std::ofstream test(path("voc/ImageSets/Main/test.txt"));
  for (int i = 0; i < 12; ++i) {
    const std::string name = "blood no " + std::to_string(i);
    fs::copy_file(path("data/train/red/" + std::to_string(i) + ".png"), path("voc/JPEGImages/" + name + ".png"));
    std::ofstream(path("voc/Annotations/" + name + ".xml"))
        << "<annotation><filename>" << name << ".png</filename><size><width>16</width><height>16</height></size>"
        << "<object><name>cell</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object>"
        << "</annotation>";
    (i < 9 ? train : test) << name << "\n";
  }
  train.close();
  test.close();
  const Outcome voc = vitrail("pretrain mae " + path("voc") + mae + "voc");
  EXPECT_EQ(voc.status, 0) << voc.err;
  EXPECT_THAT(voc.out, HasSubstr("9 training and 0 validation images"));
  // Files of results name their images as `detect` does.
  const std::string detector = path("runs/cells");
  ASSERT_EQ(
      vitrail("train " + path("voc") + " --task detect --model detr_scenes --shortest-edge 16 --longest-edge 32 " +
              "--num-queries 2 --epochs 1 -b 4 --val-split test --threads 1 --output " + path("runs") +
              " --experiment cells")
          .status,
      0);
  ASSERT_EQ(
      vitrail("eval " + detector + " " + path("voc") + " --split test --threads 1 --output " + path("found")).status,
      0);
  const nlohmann::json results = nlohmann::json::parse(io::read_text(path("found/detections.json")));
  ASSERT_EQ(results.size(), 6U);
  EXPECT_EQ(results[0]["image_id"], 9);
  EXPECT_EQ(results[0]["file_name"], "blood no 9.png");
}

TEST_F(Told, WhatTheTokenizerOfCaptionsDoesNotKnow) {
  std::ofstream table(path("captions.csv"));
  table << "path,caption,split\n";
  for (int i = 0; i < 12; ++i) {
    table << "data/train/red/" << i << ".png," << (i < 8 ? "a red one" : "\xC3\xBC\xC3\xBC") << ","
          << (i < 8 ? "train" : "validation") << "\n";
  }
  table.close();
  const Outcome trained =
      vitrail("train " + path("captions.csv") + " --task caption --model resnet18 --decoder lstm --tokenizer char " +
              "--decoder-kwargs hidden_size=8 --model-kwargs layers=[1,1,1,1] channels=[8,8,8,8] img_size=32 " +
              "--epochs 1 -b 4 --threads 1 --output " + path("runs") + " --experiment captions");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("the captions to evaluate on: 2 of 2 tokens are"));
  const Outcome judged =
      vitrail("eval " + path("runs/captions") + " " + path("captions.csv") + " --split validation --threads 1");
  EXPECT_THAT(judged.err, HasSubstr("the captions: 2 of 2 tokens are"));
}

TEST_F(Told, HowALanguageModelIsEvaluatedThatLearnedDocuments) {
  std::ofstream(path("learned.txt")) << words(0, 60);
  std::ofstream(path("judged.txt")) << words(3, 30);
  const Outcome trained =
      vitrail("train " + path("learned.txt") + " --val-data " + path("judged.txt") +
              " --task lm --documents --tokenizer char --model gpt2 --model-kwargs n_layer=1 n_embd=8 n_head=1 " +
              "--block-size 32 -b 4 --epochs 1 --threads 1 --output " + path("runs") + " --experiment documents");
  ASSERT_EQ(trained.status, 0) << trained.err;
  std::string last;
  std::ifstream metrics(path("runs/documents/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    last = line;
  }
  const Outcome judged = vitrail("eval " + path("runs/documents") + " " + path("judged.txt") + " --json --threads 1");
  ASSERT_EQ(judged.status, 0) << judged.err;
  EXPECT_THAT(judged.err, HasSubstr("as in its training (--no-documents: in blocks)"));
  EXPECT_NEAR(nlohmann::json::parse(judged.out)["loss"].get<double>(),
              nlohmann::json::parse(last)["loss"].get<double>(), 1e-5);
  refuses("eval " + path("runs/documents") + " " + path("judged.txt") + " --documents --stride 8",
          "are for texts in blocks", 2);
}

TEST_F(Told, WhatGenerationConfigChanges) {
  std::ofstream(path("corpus.txt")) << words(0, 60);
  const std::string run = path("runs/writer");
  ASSERT_EQ(
      vitrail("train " + path("corpus.txt") + " --task lm --tokenizer char --model gpt2 --model-kwargs n_layer=1 " +
              "n_embd=8 n_head=1 --block-size 32 -b 4 --epochs 1 --threads 1 --output " + path("runs") +
              " --experiment writer")
          .status,
      0);
  const std::string generate = "generate " + run + " \"word \" --max-new-tokens 8 --threads 1";
  const std::string plain = vitrail(generate).out;
  const auto with = [&](const std::string& fields) {
    std::ofstream(run + "/best/generation_config.json") << fields;
    return vitrail(generate);
  };
  const std::string stop = plain.substr(std::string("word ").size(), 1);  // its first new character
  const Outcome stopped = with("{\"stop_strings\": [\"" + (stop == "\n" ? "\\n" : stop) + "\"]}");
  EXPECT_EQ(stopped.status, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "word " + stop + "\n");
  EXPECT_THAT(stopped.err, HasSubstr("stop_strings ["));
  EXPECT_THAT(with(R"({"suppress_tokens": [3], "max_length": 20})").err, HasSubstr("suppress_tokens [3]"));
  for (const char* field : {R"("top_h": 0.1)", R"("max_time": 1)", R"("exponential_decay_length_penalty": [2, 3.0])"}) {
    const Outcome refused = with(std::string("{") + field + "}");
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err, HasSubstr("not supported"));
  }
}

TEST_F(Told, WhichBatchesAreLeftOut) {
  std::ofstream(path("blocks.txt")) << words(0, 60);
  const Outcome outcome =
      vitrail("train " + path("blocks.txt") + " --task lm --tokenizer char --model gpt2 --model-kwargs n_layer=1 " +
              "n_embd=8 n_head=1 --block-size 32 -b 7 --epochs 1 --threads 1 --output " + path("runs") +
              " --experiment blocks");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("each epoch leaves out"), HasSubstr("blocks, which do not fill a batch of 7")));
}

TEST_F(Told, OfSequencesWithoutFrames) {
  for (const char* clip : {"red/1", "red/2", "blue/1", "blue/2", "blue/3"}) {
    fs::create_directories(path(std::string("clips/") + clip));
    fs::copy_file(path("data/train/red/1.png"), path(std::string("clips/") + clip + "/" + clip[0] + ".png"));
  }
  fs::create_directories(path("clips/red/none"));
  const Outcome outcome =
      vitrail("train " + path("clips") + " --task frames --model linear --img-size 8 --val-share 0 --frames 'b*' " +
              "--target sequence --epochs 1 -b 2 --threads 1 --output " + path("runs") + " --experiment clips");
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("'blue'"));  // the only class that is left
  const Outcome all =
      vitrail("train " + path("clips") + " --task frames --model linear --img-size 8 --val-share 0 --epochs 1 -b 5 " +
              "--threads 1 --output " + path("runs") + " --experiment all");
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("1 folder without a frame, such as 'red/none'"));
}

TEST_F(Told, WhatATableOfQuestionsIsFor) {
  std::ofstream(path("questions.csv")) << "path,question,answer\ndata/train/red/1.png,what colour?,red\n";
  const Outcome outcome = vitrail("train " + path("questions.csv") + small());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--task vqa"), Not(HasSubstr("caption"))));
}

TEST_F(Told, ThePredictionsOfPathsThatFindHasPrinted) {
  const std::string list = path("data/train/red/1.png") + '\0' + path("data/train/red/2.png") + '\0';
  const Outcome outcome = vitrail("predict " + best() + " - --format csv --threads 1", list);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("red/1.png,"), HasSubstr("red/2.png,")));
}

TEST_F(Told, WhichFlagOfTheTaskWasMeant) {
  refuses("pretrain clip " + path("data") + " --model-kwargs a=1", "(here there is --vision-kwargs, --text-kwargs)", 2);
}

}  // namespace
}  // namespace vitrail::test
