// What an eleventh newcomer was told wrongly or not at all: a run that goes on with other batches, ids of categories,
// columns that are there twice, features that were prepared differently, images of tables.
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

class EleventhWalk : public Commands {
 protected:
  // The learning rates of the updates of a run.
  static std::vector<double> rates_of(const std::string& run) {
    std::vector<double> rates;
    std::ifstream metrics(run + "/metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      if (record.contains("lr")) {
        rates.push_back(record["lr"].get<double>());
      }
    }
    return rates;
  }
};

TEST_F(EleventhWalk, GoesOnWithItsScheduleInOtherBatches) {
  const std::string begin = "train " + path("data") + " --model linear --img-size 8 --no-aug --threads 1 --lr 1e-3 " +
                            "--min-lr 0 --warmup-epochs 0 --epochs 4 -b 8 --output " + path("runs") + " --experiment ";
  ASSERT_EQ(vitrail(begin + "even").status, 0);
  const std::vector<double> even = rates_of(path("runs/even"));
  ASSERT_EQ(even.size(), 16U);
  const auto resumed = [&](const std::string& name, const std::string& flags) {
    EXPECT_EQ(vitrail(begin + name + " --epochs 2").status, 0);
    const Outcome outcome = vitrail("train --resume " + path("runs/" + name) + " --epochs 4 " + flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const std::vector<double> rates = rates_of(path("runs/" + name));
    EXPECT_EQ(rates.at(8), even[8]) << name << ": half way at the beginning of the third of four epochs";
    return rates;
  };
  EXPECT_EQ(resumed("larger", "-b 16").size(), 12U);
  EXPECT_EQ(resumed("smaller", "-b 4").size(), 24U);
  EXPECT_EQ(resumed("accumulated", "--grad-accum-steps 2").size(), 12U);
  EXPECT_LT(rates_of(path("runs/smaller")).back(), even.back()) << "the schedule comes to its end";
}

TEST_F(EleventhWalk, HasTheIdsOfTheCategoriesThatItLearnedFrom) {
  fs::create_directories(path("boxes"));
  nlohmann::json coco = {{"categories", {{{"id", 3}, {"name", "blue"}}, {{"id", 17}, {"name", "red"}}}}};
  for (const int i : {0, 1}) {
    const std::string name = std::to_string(i) + ".png";
    fs::copy_file(path(i == 0 ? "data/train/blue/0.png" : "data/train/red/0.png"), path("boxes/" + name));
    coco["images"].push_back({{"id", i}, {"file_name", name}, {"width", 16}, {"height", 16}});
    coco["annotations"].push_back({{"id", i + 1},
                                   {"image_id", i},
                                   {"category_id", i == 0 ? 3 : 17},
                                   {"bbox", {2, 2, 9, 9}},
                                   {"area", 81},
                                   {"iscrowd", 0}});
  }
  std::ofstream(path("boxes/instances.json")) << coco.dump();
  const Outcome trained = vitrail(
      "train " + path("boxes") + " --task detect --model detr_scenes --shortest-edge 16 --longest-edge 32 " +
      "--num-queries 2 --epochs 1 -b 2 --val-split '' --threads 1 --output " + path("runs") + " --experiment d");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome found =
      vitrail("detect " + path("runs/d") + " " + path("boxes/0.png") + " --threshold 0 --format json --threads 1");
  ASSERT_EQ(found.status, 0) << found.err;
  const nlohmann::json objects = nlohmann::json::parse(found.out);
  ASSERT_FALSE(objects.empty());
  for (const nlohmann::json& object : objects) {
    EXPECT_EQ(object.at("category_id"), object.at("category") == "blue" ? 3 : 17);
  }
}

TEST_F(EleventhWalk, IsToldOfColumnsAndFieldsThatMeanNothing) {
  std::ofstream(path("twice.csv")) << "path,label,Label\n" << path("data/train/red/1.png") << ",red,blue\n";
  refuses("eval " + best() + " " + path("twice.csv"), "line 1 names two columns 'label'");
  refuses("train scenes:count=8,task=count,questions=3 --model linear", "'questions' has no effect here");
  refuses("train scenes:count=8,captions=3 --task detect --model detr_scenes", "'captions' has no effect here");
}

TEST_F(EleventhWalk, TakesTheImagesOfTables) {
  std::ofstream(path("images.csv")) << "path\ndata/train/red/1.png\ndata/train/blue/1.png\n";
  const Outcome predicted = vitrail("predict " + best() + " " + path("images.csv") + " --threads 1 --format csv");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out,
              AllOf(HasSubstr(path("data/train/red/1.png") + ","), HasSubstr(path("data/train/blue/1.png") + ",")));
}

TEST_F(EleventhWalk, IsToldOfFeaturesThatWerePreparedDifferently) {
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

TEST_F(EleventhWalk, EmbedsClassesThatAreNumbersAsTheyAre) {
  for (const char* name : {"1", "2", "7"}) {
    fs::create_directories(path(std::string("numbers/") + name));
    fs::copy_file(path("data/train/red/1.png"), path(std::string("numbers/") + name + "/1.png"));
  }
  const std::string file = path("numbers.safetensors");
  const Outcome outcome = vitrail("embed " + best() + " " + path("numbers") + " --threads 1 --output " + file);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("the labels are numbers of the 3 classes"), Not(HasSubstr("is blue"))));
}

TEST_F(EleventhWalk, TellsRunsOfOneNameApart) {
  fs::create_directories(path("elsewhere"));
  fs::copy(path("runs/one"), path("elsewhere/one"), fs::copy_options::recursive);
  const Outcome outcome = vitrail("compare " + path("runs/one") + " " + path("elsewhere/one"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("runs/one "), HasSubstr("elsewhere/one ")));
}

TEST_F(EleventhWalk, IsToldOfOptionsAmongTheFacts) {
  const std::string run = path("facts");
  fs::copy(path("runs/one"), run, fs::copy_options::recursive);
  std::string config = io::read_text(run + "/config.toml");
  config.insert(config.find("[facts]\n") + 8, "weight_decay = 0.5\n");
  std::ofstream(run + "/config.toml") << config;
  refuses("train --resume " + run + " --epochs 9", "'weight_decay' stands in its table [facts]");
}

TEST_F(EleventhWalk, EvaluatesAllOfATextInATrainingAsAfterIt) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "line " + std::to_string(i * i) + "\n";
  }
  std::ofstream(path("lines.txt")) << text;
  std::ofstream(path("judged.txt")) << text.substr(0, 100);
  const Outcome trained =
      vitrail("train " + path("lines.txt") + " --val-data " + path("judged.txt") +
              " --task lm --model gpt2 --model-kwargs n_layer=1 n_head=2 n_embd=16 --drop 0 " +
              "--block-size 60 -b 2 --epochs 1 --threads 1 --output " + path("runs") + " --experiment text");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome judged = vitrail("eval " + path("runs/text") + " " + path("judged.txt") + " --json --threads 1");
  ASSERT_EQ(judged.status, 0) << judged.err;
  double loss = 0;
  std::ifstream metrics(path("runs/text/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json record = nlohmann::json::parse(line);
    loss = record.contains("perplexity") ? record["loss"].get<double>() : loss;
  }
  EXPECT_NEAR(nlohmann::json::parse(judged.out).at("loss").get<double>(), loss, 1e-5);
}

TEST_F(EleventhWalk, KeepsToTheParts) {
  std::ofstream texts(path("parts.csv"));
  texts << "text,label,split\n";
  for (int i = 0; i < 24; ++i) {
    texts << "word " << i << "," << (i % 2 == 0 ? "even" : "odd") << ","
          << (i < 15   ? "Train"
              : i < 16 ? ""
              : i < 20 ? "dev"
                       : "test")
          << "\n";
  }
  texts.close();
  fs::copy(path("parts.csv"), path("parts.txt"));  // for a tokenizer of all that stands there
  for (const std::string size : {"85", "75"}) {
    ASSERT_EQ(vitrail("tokenizer train " + path("parts.txt") + " --model wordpiece --vocab-size " + size +
                      " --output " + path("pieces-" + size))
                  .status,
              0);
  }
  const Outcome classified =
      vitrail("train " + path("parts.csv") + " --task classify-text --model bert-tiny --model-kwargs hidden_size=16 " +
              "num_attention_heads=2 intermediate_size=32 --tokenizer " + path("pieces-85") +
              " --epochs 1 -b 4 --threads 1 --output " + path("runs") + " --experiment parts");
  ASSERT_EQ(classified.status, 0) << classified.err;
  EXPECT_THAT(classified.out,
              AllOf(HasSubstr("15 training and 4 validation texts"), HasSubstr("leaves what is of no part")));
  const Outcome judged = vitrail("eval " + path("runs/parts") + " " + path("parts.csv") + " --split test --threads 1");
  EXPECT_EQ(judged.status, 0) << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("accuracy"));
  refuses("eval " + path("runs/parts") + " " + path("parts.csv") + " --split best",
          "there is no part 'best', only train, dev, test");
  refuses("eval " + path("runs/parts") + " " + path("parts.csv"), "split into parts (train, dev, test): choose one");
  refuses("train " + path("parts.csv") + " --task classify-text --tokenizer " + path("pieces-75") + " --model " +
              path("runs/parts"),
          "has a tokenizer of its own");

  std::ofstream captions(path("captions.csv"));
  captions << "path,caption,split\n";
  for (int i = 0; i < 12; ++i) {
    captions << "data/train/red/" << i << ".png,a red image," << (i < 8 ? "train" : "val") << "\n";
  }
  captions.close();
  const std::string towers =
      " --vision-kwargs image_size=16 patch_size=8 hidden_size=16 num_hidden_layers=1 num_attention_heads=2 "
      "intermediate_size=32 --text-kwargs hidden_size=16 num_hidden_layers=1 num_attention_heads=2 "
      "intermediate_size=32 --projection-dim 8 --epochs 1 -b 4 --threads 1 --output ";
  const Outcome paired =
      vitrail("pretrain clip " + path("captions.csv") + towers + path("runs") + " --experiment pairs");
  ASSERT_EQ(paired.status, 0) << paired.err;
  EXPECT_THAT(paired.out, AllOf(HasSubstr("8 training images"), HasSubstr("4 validation images")));
}

TEST_F(EleventhWalk, CalibratesOnAnyImages) {
  const fs::path flat = path("flat");
  fs::create_directories(flat);
  fs::copy_file(path("data/train/red/1.png"), flat / "1.png");
  const Outcome outcome =
      vitrail("quantize " + best() + " --calibrate " + flat.string() + " --threads 1 --output " + path("calibrated"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string encoder = path("encoder");
  ASSERT_EQ(vitrail("encoder " + path("runs/one") + " --output " + encoder).status, 0);
  EXPECT_EQ(vitrail("quantize " + encoder + " --calibrate " + path("data") + " --threads 1 --output " +
                    path("calibrated-encoder"))
                .status,
            0);
}

TEST_F(EleventhWalk, IsToldOfFoldersThatAreNotThere) {
  for (const std::string command : {"quantize r/none --output q --src a --tgt b", "eval r/none x --metric coco",
                                    "generate r/none pictures --output x.png"}) {
    refuses(command, "there is no model folder 'r/none'");
  }
}

TEST_F(EleventhWalk, LeavesBrokenShardsOutWhereverImagesAreTaken) {
  ASSERT_EQ(vitrail("shard " + path("data/train") + " --output " + path("shards")).status, 0);
  const std::string whole = path("shards/train-000000.tar");
  std::ofstream(path("shards/train-000001.tar")) << io::read_text(whole).substr(0, 2000);
  fs::remove(path("shards/train.json"));
  const std::string source = path("shards/train-{000000..000001}.tar");
  refuses("predict " + best() + " '" + source + "' --threads 1", "train-000001.tar");
  const Outcome predicted = vitrail("predict " + best() + " '" + source + "' --skip-broken --threads 1 --format csv");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("a shard is left out"));
}

TEST_F(EleventhWalk, CompletesATrainingThatIsLaunched) {
  EXPECT_THAT(vitrail("completion bash -- launch -n 2 -- tr").out, HasSubstr("train\n"));
  EXPECT_THAT(vitrail("completion bash -- launch -n 2 -- train --ep").out, HasSubstr("--epochs\n"));
}

}  // namespace
}  // namespace vitrail::test
