// Parts of data in commands: where tables and folders have several, which is taken, and what is said of the others.
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Parts : public Commands {
 protected:
  // A table of the images of "data", `parts` in turn; its name.
  static std::string table(const std::string& name, const std::vector<std::string>& parts) {
    std::ofstream file(path(name));
    file << "path,label,split\n";
    for (std::size_t i = 0; i < 32; ++i) {
      const std::string label = i % 2 == 0 ? "blue" : "red";
      file << "data/train/" << label << "/" << i / 2 << ".png," << label << "," << parts[i / 2 % parts.size()] << "\n";
    }
    return path(name);
  }
};

TEST_F(Parts, OfTheValidationDataAreTaken) {
  const std::string parted = table("parted.csv", {"train", "test"});
  const std::string train_on = path("data/train") + " --val-dir ";
  Outcome outcome = train(train_on + parted, "usual");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("32 training and 16 validation images"));
  outcome = train(train_on + parted + " --val-split test", "named");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  outcome = train(train_on + path("data"), "folder");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("32 training and 32 validation images"), Not(HasSubstr("those to train on"))));
  refuses("train " + train_on + path("data/validation") + small() + " --val-split validation",
          "--val-split has no effect beside a --val-dir without parts", 2);
  refuses("train " + train_on + path("data/validation") + small() + " --val-split test", "no part 'test'");
}

TEST_F(Parts, LeaveNothingToHoldOut) {
  std::ofstream file(path("texts.csv"));
  file << "text,label,split\n";
  for (int i = 0; i < 8; ++i) {
    file << (i % 2 == 0 ? "how fine,good," : "how bad,poor,") << (i < 6 ? "train" : "validation") << "\n";
  }
  file.close();
  fs::copy(path("texts.csv"), path("texts.txt"));  // for a tokenizer of all that stands there
  ASSERT_EQ(
      vitrail("tokenizer train " + path("texts.txt") + " --model wordpiece --vocab-size 40 --output " + path("pieces"))
          .status,
      0);
  refuses("train " + path("texts.csv") + " --task classify-text --tokenizer " + path("pieces") +
              " --model bert-tiny --val-share 0.5 --threads 1 --output " + path("runs"),
          "--val-share has no effect");
  refuses("train " + path("data") + " --task frames --model linear --val-split validation --val-share 0.3",
          "--val-share has no effect beside --val-split", 2);
}

TEST_F(Parts, AreWrittenWithoutTheirLabels) {
  const Outcome part =
      vitrail("shard " + path("data") + " --unlabeled --split validation --output " + path("unlabeled"));
  EXPECT_EQ(part.status, 0) << part.err;
  EXPECT_THAT(part.out, HasSubstr("32 images in 1 shard"));
  const Outcome all = vitrail("shard " + path("data") + " --unlabeled --output " + path("all"));
  EXPECT_THAT(all.out, HasSubstr("64 images in 1 shard"));
}

TEST_F(Parts, OfSequencesAreNamedThatAreNotTaken) {
  std::ofstream file(path("frames.csv"));
  file << "path,sequence,label,split\n";
  for (int i = 0; i < 8; ++i) {
    const std::string label = i % 2 == 0 ? "blue" : "red";
    file << "data/train/" << label << "/" << i << ".png,s" << i << "," << label << ","
         << (i < 4   ? "train"
             : i < 6 ? "val"
                     : "")
         << "\n";
  }
  file.close();
  const Outcome outcome =
      vitrail("train " + path("frames.csv") + " --task frames --model linear --img-size 8 --val-split val --epochs 1" +
              " -b 2 --threads 1 --output " + path("runs") + " --experiment frames");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("takes 'train' and leaves what is of no part"));
}

TEST_F(Parts, OfPathsAloneAreForNoOtherTask) {
  std::ofstream(path("paths.csv")) << "path\ndata/train/red/1.png\n";
  const Outcome outcome = train(path("paths.csv") + " --val-split ''", "paths");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("'label'"), Not(HasSubstr("--task"))));
}

TEST_F(Parts, OfATableWithTabsAreLearnedAsThoseOfAnyTable) {
  std::ofstream table(path("labels.tsv"));
  table << "file\tclass\tsplit\n";
  for (const char* color : {"blue", "red"}) {
    for (int i = 0; i < 4; ++i) {
      table << "data/train/" << color << "/" << i << ".png\t" << color << "\t" << (i < 3 ? "train" : "val") << "\n";
    }
  }
  table.close();
  const Outcome outcome = train(path("labels.tsv"), "tabs");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("6 training and 2 validation images"));
}

TEST_F(Parts, WithBrokenImagesAreStillDrawn) {
  const std::string data = copy_of_data("broken");
  std::ofstream(data + "/validation/blue/0.png") << "no image";
  const std::string flags = " --epochs 1 -b 8 --skip-broken --threads 1 --output " + path("runs") + " --experiment ";
  const Outcome captions =
      vitrail("train " + data + " --task caption --model resnet18 --decoder lstm --decoder-kwargs hidden_size=8 " +
              "--model-kwargs layers=[1,1,1,1] channels=[8,8,8,8] img_size=32" + flags + "captions");
  EXPECT_EQ(captions.status, 0) << captions.err;
  EXPECT_TRUE(fs::exists(path("runs/captions/captions.png")));
  const Outcome knn =
      vitrail("knn " + data + " " + data + " --train-split train --split validation --skip-broken -k 1 --threads 1 " +
              "--model " + best());
  EXPECT_EQ(knn.status, 0) << knn.err;
  EXPECT_THAT(knn.err, HasSubstr("left out: " + data + "/validation/blue/0.png"));
  EXPECT_THAT(knn.out, HasSubstr("31 images by their neighbours among 32"));
}

TEST_F(Parts, OfAnUpdateThatIsIncompleteWeighByTheirImages) {
  const auto loss = [](const std::string& name, const std::string& flags) {
    const Outcome outcome = vitrail("train " + path("data") + " --model " + best() +
                                    " --no-aug --no-shuffle --sched none --lr 1e-12 --weight-decay 0 --epochs 1 -b 8 " +
                                    "--threads 1 --output " + path("runs") + " --experiment " + name + flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const std::size_t at = outcome.out.find("epoch 1/1: loss ");
    return outcome.out.substr(at, std::string("epoch 1/1: loss 0.0000").size());
  };
  EXPECT_EQ(loss("each", ""), loss("three", " --grad-accum-steps 3"));
}

TEST_F(Parts, OfImagesThatAreNoSquareFillTheCrop) {
  const std::string wide = path("wide");
  const std::string run = path("runs/wide");
  ASSERT_EQ(
      vitrail("train " + path("data") + " --model vit_tiny_patch16_224 --model-kwargs patch_size=4 embed_dim=24 " +
              "depth=1 num_heads=3 --input-size 3 8 16 --epochs 1 --threads 1 -b 8 --output " + path("runs") +
              " --experiment wide")
          .status,
      0);
  const Outcome converted = vitrail("convert " + run + " --layout huggingface --output " + wide);
  EXPECT_EQ(converted.status, 0) << converted.err;
  EXPECT_THAT(converted.err, HasSubstr("takes 16x8 from its middle"));
  std::ifstream file(wide + "/preprocessor_config.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  EXPECT_EQ(json["size"]["shortest_edge"], 17) << "16 / 0.9";
}

TEST_F(Parts, OfASoupAreToldToPrepareImagesDifferently) {
  ASSERT_EQ(vitrail("train " + path("data") + " --model " + best() + " --crop-pct 0.5 --epochs 1 -b 8 --threads 1 " +
                    "--output " + path("runs") + " --experiment half")
                .status,
            0);
  const Outcome soup = vitrail("soup " + best() + " " + path("runs/half") + " --output " + path("soup"));
  EXPECT_EQ(soup.status, 0) << soup.err;
  EXPECT_THAT(soup.err, HasSubstr("crop_pct 0.5, not 0.9"));
}

}  // namespace
}  // namespace vitrail::test
