// Tables of texts and labels: their columns, marks and parts.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TextTables : public InAFolder {};

// A table of texts is one for every command that reads it, not lines of text.
TEST_F(TextTables, AreTakenForTheirTexts) {
  const std::string table = write("table.tsv", "label\ttext\npos\tgood one\nneg\tbad one\npos\tfine\nneg\tworse\n");
  const std::string wordpieces = path("wordpieces");
  const Outcome learned = vitrail("tokenizer train " + table + " --model wordpiece --vocab-size 36 --output " +
                                  wordpieces + " --special-tokens '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]'");
  ASSERT_EQ(learned.status, 0) << learned.err;
  const Outcome trained =
      vitrail("train " + table + " --model bert-tiny --tokenizer " + wordpieces +
              " --epochs 1 --val-share 0 --batch-size 2 --threads 1 --output " + path("runs") + " --experiment table");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string run = path("runs/table");
  const Outcome of_table = vitrail("predict " + run + " " + table + " --format json");
  ASSERT_EQ(of_table.status, 0) << of_table.err;
  EXPECT_EQ(of_table.out, vitrail("predict " + run + " 'good one' 'bad one' fine worse --format json").out);
  const std::string unlabelled = write("unlabelled.jsonl", R"({"text": "fine", "text_pair": "good"})"
                                                           "\n");
  const Outcome of_pair = vitrail("predict " + run + " " + unlabelled + " --format json");
  ASSERT_EQ(of_pair.status, 0) << of_pair.err;
  EXPECT_EQ(nlohmann::json::parse(of_pair.out)[0]["text_pair"], "good");
  const Outcome smaller =
      vitrail("quantize " + run + " --output " + path("int8-table") + " --eval " + table + " --json");
  ASSERT_EQ(smaller.status, 0) << smaller.err;
  const nlohmann::json labels = nlohmann::json::parse(smaller.out)["labels"];
  EXPECT_EQ(labels["figure"], "accuracy");
  const Outcome evaluated = vitrail("eval " + run + " " + table + " --json");
  EXPECT_EQ(labels["float"], nlohmann::json::parse(evaluated.out)["accuracy"]) << evaluated.err;
  const std::string broken = "quantize " + run + " --output " + path("int8-broken") + " --eval " +
                             write("broken.tsv", "pos\tfine\npos\tB\xe4r\n");
  refuses(broken, "broken.tsv: line 2 is not UTF-8");
  EXPECT_THAT(printed(broken + " --skip-broken"), HasSubstr("accuracy"));
}

TEST_F(TextTables, MayBeginWithAByteOrderMark) {
  const std::string table = write("mark.tsv", "\xef\xbb\xbflabel\ttext\npos\tgood\nneg\tbad\n");
  ASSERT_EQ(vitrail("tokenizer train " + write("mark.txt", "label text pos good neg bad") +
                    " --model wordpiece --vocab-size 30 --output " + path("pieces") +
                    " --special-tokens '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]'")
                .status,
            0);
  const Outcome outcome =
      vitrail("train " + table + " --model bert-tiny --tokenizer " + path("pieces") +
              " --epochs 1 --val-share 0 --batch-size 1 --threads 1 --output " + path("runs") + " --experiment mark");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 training"));
  EXPECT_THAT(outcome.out, HasSubstr("2 classes"));
}

TEST_F(TextTables, SeemToHaveTheirColumnsSwapped) {
  std::string swapped;
  for (const std::string word : {"good", "bad", "fine", "worse", "well", "ill"}) {
    swapped += word + " weather\t" + (word.size() == 4 ? "pos" : "neg") + "\n";
  }
  const std::string table = write("swapped.tsv", swapped);
  ASSERT_EQ(
      vitrail("tokenizer train " + write("swapped.txt", swapped) + " --model wordpiece --vocab-size 40 --output " +
              path("swapped") + " --special-tokens '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]'")
          .status,
      0);
  const Outcome outcome = train(table, "swapped", " --model bert-tiny --threads 1 --tokenizer " + path("swapped"));
  EXPECT_THAT(outcome.out, HasSubstr("these are only 2 different texts: are the columns of '" + table + "' swapped?"));
}

TEST_F(TextTables, HaveNoNumbersForClasses) {
  std::string table = "text;label\n";
  for (int i = 0; i < 30; ++i) {
    table += "text " + std::to_string(i) + ";" + std::to_string(i / 10) + "." + std::to_string(i % 10) + "\n";
  }
  write("scores.csv", table);
  refuses("train " + path("scores.csv") + " --task classify-text --model " +
              golden_path("models/predictions/classes").string() + " --output " + path("runs"),
          "the labels are 30 different numbers, such as '1.5', where classes were expected");
}

TEST_F(TextTables, HaveLabelsThatExcludeEachOther) {
  const std::string several =
      golden_with("predictions/classes", "labels", "problem_type", "multi_label_classification");
  write("moods.tsv", "good\ttwo dogs\nbad\tsnow\ngood\tthe man\nbad\ttwo snow\n");
  const Outcome trained =
      vitrail("train " + path("moods.tsv") + " --task classify-text --model " + several +
              " --epochs 1 -b 2 --val-share 0 --threads 1 --output " + path("runs") + " --experiment moods");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_FALSE(io::read_json(path("runs/moods/last/config.json")).contains("problem_type"));
  refuses("eval " + several + " " + path("moods.tsv"), "do not exclude each other ('problem_type' is");
  write("moods.csv", "text,label\ntwo dogs,good\nsnow,bad\n");
  refuses("train " + path("moods.csv") + " --output " + path("runs"), "what is there is for --task classify-text");
}

class PartsOfTextTables : public InAFolder {};

TEST_F(PartsOfTextTables, AreThoseThatTheyName) {
  std::string rows = "text,label\n";
  for (int i = 0; i < 40; ++i) {
    rows += std::string(i % 2 == 0 ? "a good day " : "a bad day ") + std::to_string(i) +
            (i % 2 == 0 ? ",good\n" : ",bad\n");
  }
  const std::string file = write("texts.csv", rows);
  const std::string task = "train " + file +
                           " --task classify-text --model gru --model-kwargs hidden_size=8 --tokenizer " +
                           path("pieces") + " --epochs 1 --threads 1 --output " + path("runs") + " --experiment ";
  ASSERT_EQ(vitrail("tokenizer train " + file + " --model wordpiece --vocab-size 60 --output " + path("pieces")).status,
            0);
  const Outcome trained = vitrail(task + "moods");
  ASSERT_EQ(trained.status, 0) << trained.err;
  refuses(task + "x --val-split dev", "there is no part 'dev': no column 'split' says");
  refuses(task + "x --train-split nosuch", "there is no part 'nosuch'");
  refuses(task + "x --val-split ''", "here --val-share 0 holds no text out");
  const std::string eval = "eval " + path("runs/moods") + " " + file;
  refuses(eval + " --split validation", "no column 'split'");
  EXPECT_THAT(vitrail(eval).err, HasSubstr("note: the model has learnt these, all but a share of 0.1"));
  // The average is told to warm up only where it does not yet.
  EXPECT_THAT(vitrail(task + "ema --model-ema").out, HasSubstr("take --model-ema-warmup, or a smaller"));
  EXPECT_THAT(printed(task + "ema2 --model-ema --model-ema-warmup"), Not(HasSubstr("take --model-ema-warmup")));
}

TEST_F(PartsOfTextTables, AreNotSaidToBeLearnt) {
  write("parts.csv", "text,label,split\ntwo dogs,good,train\nsnow,bad,train\nthe man,good,test\n");
  const std::string runs = path("parted");
  ASSERT_EQ(vitrail("train " + path("parts.csv") + " --task classify-text --model " +
                    golden_path("models/predictions/classes").string() +
                    " --val-split test --epochs 1 -b 2 --threads 1 --output " + runs + " --experiment one")
                .status,
            0);
  const Outcome whole = vitrail("eval " + runs + "/one " + path("parts.csv") + " --threads 1");
  EXPECT_THAT(whole.err, AllOf(HasSubstr("choose one of them (--split"), Not(HasSubstr("has learnt these"))));
}

class TextTablesBesideImages : public OnImages {};

TEST_F(TextTablesBesideImages, MayHaveQuotesAndWordsThatNameColumns) {
  std::string texts = "pos\tfine film\nneg\t\"Great, he said\n";
  for (int i = 0; i < 6; ++i) {
    texts += i % 2 == 0 ? "pos\tfine\n" : "neg\tbad\n";
  }
  write("pangram.txt", "the quick brown fox jumps over the lazy dog\nthe five boxing wizards jump quickly\n");
  ASSERT_EQ(vitrail("tokenizer train " + path("pangram.txt") + " --model wordpiece --vocab-size 70 --output " +
                    path("pieces"))
                .status,
            0);
  const auto learned = [](const std::string& name) {
    return vitrail("train " + path(name) + " --tokenizer " + path("pieces") +
                   " --task classify-text --model bert-tiny --epochs 1 -b 2 --threads 1 --output " + path("runs"));
  };
  write("texts.tsv", texts);
  EXPECT_EQ(learned("texts.tsv").status, 0) << learned("texts.tsv").err;
  write("commands.tsv", "image\tshow me\nvideo\tplay\nimage\tdraw it\nvideo\tgo on\n");
  EXPECT_EQ(learned("commands.tsv").status, 0) << learned("commands.tsv").err;
  EXPECT_THAT(vitrail("train " + path("commands.tsv") + " --output " + path("runs")).err, HasSubstr("--tokenizer"))
      << "they are taken for texts";
  copy_of_data("beside");
  write("beside/train/train.tsv", "note\tfrom \"a colleague\n");
  EXPECT_EQ(train(path("beside"), "beside").status, 0) << "it is no part";
}

TEST_F(TextTablesBesideImages, KeepToTheirParts) {
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

}  // namespace
}  // namespace vitrail::test
