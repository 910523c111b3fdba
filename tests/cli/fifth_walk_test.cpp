// What yet another newcomer was told wrongly or not at all: advice that does not work, flags that change nothing,
// folders of another kind than a task takes, tables and lists that say something else than they seem to.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FifthWalk : public Commands {};

TEST_F(FifthWalk, TimesRecurrentTranslators) {
  const std::string bench = " --model lstm_bahdanau --model-kwargs hidden_size=8 vocab_size=50 --steps 1 --warmup 0";
  const std::string lengths = " --lengths " + write("lengths.txt", "5 6\n7 8\n");
  EXPECT_THAT(vitrail("bench train" + bench + lengths).out, HasSubstr("tokens/s"));
  EXPECT_THAT(vitrail("bench infer --seq-len 8" + bench).out, HasSubstr("sentences/s"));
  EXPECT_THAT(vitrail("bench generate --new-tokens 4" + bench).out, HasSubstr("new tokens"));
  refuses("bench train" + bench, "'lstm_bahdanau' is a translator, which is trained on pairs of sentences", 2);
}

TEST_F(FifthWalk, IsAdvisedOfWhatARunThatGoesOnCanDo) {
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

TEST_F(FifthWalk, TakesSeveralTargetsBehindTheTexts) {
  const std::string model = golden_path("models/predictions/fill_mask").string();
  const std::string texts = "'A man is [MASK] a horse.' ";
  const Outcome several = vitrail("fill-mask " + model + " " + texts + "--targets a and --json --threads 1");
  ASSERT_EQ(several.status, 0) << several.err;
  const nlohmann::json list = nlohmann::json::parse(several.out);
  ASSERT_EQ(list.size(), 2U);
  for (const nlohmann::json& one : list) {
    EXPECT_TRUE(one["token_str"] == "a" || one["token_str"] == "and") << one;
  }
  EXPECT_EQ(vitrail("fill-mask " + model + " " + texts + "--targets a --targets and --json --threads 1").out,
            several.out);
  EXPECT_EQ(vitrail("fill-mask --targets a --targets and " + model + " " + texts + "--json --threads 1").out,
            several.out)
      << "in front of the texts one a flag";
  EXPECT_EQ(vitrail("fill-mask " + model + " --targets and --threads 1 " + texts + "--json --targets a").out,
            several.out);
}

TEST_F(FifthWalk, PrintsOneListOfSeveralTexts) {
  const std::string model = golden_path("models/predictions/fill_mask").string();
  const nlohmann::json all =
      nlohmann::json::parse(vitrail("fill-mask " + model + " 'two [MASK]' '[MASK] [MASK]' --json --top-k 3").out);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].size(), 3U);
  EXPECT_TRUE(all[0][0].contains("token_str"));
  EXPECT_EQ(all[1].size(), 2U) << "a list for each mask";
}

TEST_F(FifthWalk, GivesPiecesTheirSpecialTokens) {
  std::string corpus;
  for (int i = 0; i < 40; ++i) {
    corpus += "to be or not to be that is the question of all of them that are there\n";
  }
  const std::string command = "tokenizer train " + write("corpus.txt", corpus) + " --output ";
  for (const std::string model : {"unigram", "sentencepiece-bpe"}) {
    const std::string folder = path("pieces-" + model);
    const std::string flags = " --model " + model + " --vocab-size 28 --special-tokens ";
    const Outcome made = vitrail(command + folder + flags + "'<unk>' '<s>' 'a,b' '<sep>' 'x\"y' '<sep>'");
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_EQ(made.err, "");
    const nlohmann::json info = nlohmann::json::parse(vitrail("tokenizer info " + folder + " --json").out);
    EXPECT_EQ(info["vocab_size"], 28);
    EXPECT_EQ(info["special_tokens"], (nlohmann::json{{"<s>", 1}, {"</s>", 2}, {"a,b", 3}, {"<sep>", 4}, {"x\"y", 5}}));
    refuses(command + path("none") + " --model " + model + " --vocab-size 4 --special-tokens '<a>' '<b>'",
            "a vocabulary of 4 tokens has no room for the 5 special tokens");
  }
}

TEST_F(FifthWalk, IsToldOfFlagsThatChangeNothing) {
  const std::string image = path("data/train/red/0.png");
  const std::string soup = "soup " + best() + " " + best() + " --output " + path("soup");
  refuses(soup + " --amp", "--amp requires --data", 2);
  refuses(soup + " --dtype bf16", "requires --data", 2);
  refuses("augment " + image + " --no-aug --seed 3 --output " + path("sheet.png"), "--seed has no effect with --no-aug",
          2);
  const std::string lines = write("lines.txt", "a b c d\n");
  refuses("bleu " + lines + " -i " + lines + " --sentence-level --format json",
          "--format json has no effect with --sentence-level", 2);
  EXPECT_EQ(vitrail("bleu " + lines + " -i " + lines + " --sentence-level --format text").status, 0);
  refuses("pretrain dino " + path("data/train") + " --epochs 1 --freeze-last-layer 5",
          "--freeze-last-layer 5 would leave it untrained in all 1 --epochs", 2);
}

TEST_F(FifthWalk, NotesThatInt8StaysWhatItIs) {
  const std::string small_model = path("int8");
  ASSERT_EQ(vitrail("quantize " + best() + " --output " + small_model + " --threads 1").status, 0);
  const std::string image = path("data/train/red/0.png");
  const std::string note = "note: the weights of '" + small_model + "' are in int8, and --amp is for the rest";
  EXPECT_THAT(vitrail("predict " + small_model + " " + image + " --amp").err, HasSubstr(note));
  const std::string index = path("int8.index");
  ASSERT_EQ(vitrail("index " + path("data/train") + " --model " + small_model + " --output " + index).status, 0);
  EXPECT_THAT(vitrail("search " + index + " " + image + " --amp").err, HasSubstr(note));
  EXPECT_THAT(vitrail("search " + index + " " + image + " --dtype bf16").err, HasSubstr("and --dtype is for the rest"));
  EXPECT_EQ(vitrail("search " + index + " " + image).err, "");
}

TEST_F(FifthWalk, IsToldWhatAFolderOfAnotherKindIs) {
  const std::string captions =
      " --task caption --model gru_rows --img-size 16 --model-kwargs hidden_size=8 --decoder gru --decoder-kwargs "
      "hidden_size=8 --no-aug -b 8 --threads 1";
  ASSERT_EQ(train(path("data"), "captions", captions).status, 0);
  const std::string captioner = path("runs/captions/best");
  refuses("train " + path("data") + " --model " + captioner + " --output " + path("runs"),
          "captions images, but this takes models that classify or embed images: `vitrail caption` takes it, and "
          "`vitrail train --task caption --model` goes on with it");
  refuses("train " + path("data") + " --task caption --decoder-kwargs hidden_size=8 --model " + captioner,
          "is a captioner, which is trained as it is");
  refuses("train " + path("data") + " --task caption --decoder gru --model " + captioner,
          "--decoder has no effect with a captioner as --model", 2);
  refuses("bench infer --model " + captioner, "captions images, but this takes models");
  refuses("embed " + captioner + " " + path("data") + " --output " + path("x.safetensors"),
          "captions images, but this takes models");
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 2").status, 0);
  const std::string detects = "train --task detect " + path("scenes") + " --val-split '' --model ";
  refuses(detects + captioner, "captions images, but this task takes a detector");
  refuses(detects + best(), "is a model of images, but this task takes a detector: a ResNet is given by");
  const std::string detector = golden_path("models/detection/detr").string();
  refuses("train " + path("data") + " --model " + detector,
          "finds objects, but this takes models that classify or embed");
  refuses("soup " + best() + " " + captioner + " --output " + path("soup"), "captions images: soups are made of");
  refuses("train " + path("data") + " --task caption --model gpt2",
          "'gpt2' is a model of texts, but this takes models");
}

TEST_F(FifthWalk, IsToldWhatTablesAndListsHold) {
  const std::string table =
      write("table.csv", "path,label\ndata/train/red/0.png,red\ndata/train/blue/0.png,blue,bluish\n");
  refuses("eval " + best() + " " + table,
          "table.csv: line 3 has 3 fields, but line 1 has 2: a field that has a comma in it stands in double quotes");
  ASSERT_EQ(vitrail("pretrain autoencoder " + path("data/train") + " --epochs 1 --output " + path("runs") +
                    " --experiment ae" + small())
                .status,
            0);
  const std::string list = write("list.txt", "data/train/red/0.png\ndata/train/red/1.png\n");
  const std::string again = write("again.txt", "data/train/red/1.png\ndata/train/red/0.png\n");
  refuses("latent " + path("runs/ae") + " --direction " + list + " " + again + " --output " + path("latent.png"),
          "name the same images: a direction leads from the mean of some to the mean of others");
  refuses("latent " + path("runs/ae") + " --between " + path("data/train/red/0.png") + " " + path("data") +
              "/train/../train/red/0.png --output " + path("latent.png"),
          "twice: there is no way between an image and itself");
}

TEST_F(FifthWalk, IsToldWhichImagesJudge) {
  const std::string says = "the images to evaluate on are those to train on";
  EXPECT_THAT(train(path("data"), "same", " --val-split train" + small()).out, HasSubstr(says));
  EXPECT_THAT(train(path("data"), "same-folder", " --val-dir " + path("data/train") + small()).out, HasSubstr(says));
  EXPECT_THAT(train(path("data/train"), "itself", " --val-dir " + path("data/train") + small()).out, HasSubstr(says));
  const std::string frames = path("frames");
  for (const char* name : {"a/1/0.png", "a/1/1.png", "b/2/0.png", "b/2/1.png"}) {
    fs::create_directories(fs::path(frames + "/" + name).parent_path());
    fs::copy(path("data/train/red/0.png"), frames + "/" + name);
  }
  EXPECT_THAT(
      train(frames, "frames",
            " --val-dir " + frames + " --task frames --model gru_rows --img-size 16 --model-kwargs hidden_size=8 " +
                "--cell gru --cell-kwargs hidden_size=8 --no-aug -b 2 --threads 1")
          .out,
      HasSubstr(says));
  const Outcome described = vitrail("info " + path("runs/frames/best"));
  EXPECT_EQ(described.status, 0) << described.err;
  EXPECT_THAT(described.out, HasSubstr("which reads sequences of images and tells the class of each"));
  EXPECT_EQ(nlohmann::json::parse(vitrail("info --json " + path("runs/frames/best")).out)["target"]["kind"],
            "sequence");
  const std::string both = copy_of_data("both");
  fs::copy(both + "/validation", both + "/val", fs::copy_options::recursive);
  const Outcome twice = train(both, "both");
  EXPECT_THAT(twice.out, HasSubstr("takes 'validation' and leaves 'val'"));
  EXPECT_THAT(twice.out, Not(HasSubstr(says)));
  EXPECT_THAT(vitrail("eval " + best() + " " + both + " --split val").err,
              HasSubstr("takes 'val' and leaves 'validation'"));
}

TEST_F(FifthWalk, IsToldOfMissingAttentionBeforeARun) {
  for (const std::string& model : {golden_path("models/text/recurrent_lstm").string(), std::string("resnet18")}) {
    refuses("forward " + model + " --input " + path("nowhere.safetensors") + " --output " + path("y.safetensors") +
                " --attention",
            "has no attention to write: leave out --attention");
  }
}

}  // namespace
}  // namespace vitrail::test
