// What a seventh newcomer was told wrongly or not at all about data and about flags.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Small data and networks of every kind, which the tests share.
class SeventhWalkData : public Commands {
 protected:
  static void SetUpTestSuite() {
    Commands::SetUpTestSuite();
    EXPECT_EQ(vitrail("scenes " + path("scenes") + " --count 8").status, 0);
    EXPECT_EQ(vitrail("scenes " + path("others") + " --count 4 --start 100").status, 0);
    std::ofstream words(path("words.txt"));
    for (int i = 0; i < 40; ++i) {
      words << "a red circle and " << i << " birds\n";
    }
  }
  static Outcome train(const std::string& flags, const std::string& name) {
    return vitrail("train " + flags + " --epochs 1 --threads 1 --output " + path("runs") + " --experiment " + name);
  }
  static std::string captioner() {
    return " --task caption --model gru_rows --img-size 16 --model-kwargs hidden_size=8 --decoder gru --decoder-kwargs "
           "hidden_size=8 --no-aug -b 8 --val-split ''";
  }
  static std::string detector() { return " --task detect --model detr_scenes --no-random-resize -b 8 --val-split ''"; }
  static std::string vqa() {
    return " --task vqa --model vqa_small --model-kwargs 'channels=[8,8,16]' dim=16 num_heads=2 vision_depth=1 depth=1 "
           "-b 8 --val-split ''";
  }
  static std::string lines_of(std::initializer_list<const char*> lines) {
    std::string text;
    for (const char* line : lines) {
      text += std::string(line) + "\n";
    }
    return text;
  }
};

TEST_F(SeventhWalkData, TakesTablesOfCaptions) {
  const std::string rows = lines_of({"scenes/images/000000.png,a red circle", "scenes/images/000001.png,a bird",
                                     "scenes/images/000001.png,a nice bird"});
  write("named.csv", "path,caption\n" + rows);
  write("plain.csv", rows);
  for (const char* table : {"named.csv", "plain.csv"}) {
    fs::remove_all(path("runs/captions"));
    const Outcome trained = train(path(table) + captioner(), "captions");
    EXPECT_THAT(trained.out, HasSubstr("2 training images with 3 captions")) << table << trained.err;
    EXPECT_THAT(vitrail("eval " + path("runs/captions") + " " + path(table)).out, HasSubstr("2 images")) << table;
  }
  write("parts.csv", lines_of({"path,caption,split", "scenes/images/000000.png,a red circle,train",
                               "scenes/images/000001.png,a bird,val", "scenes/images/000001.png,a nice bird,val"}));
  const std::string eval = "eval " + path("runs/captions") + " " + path("parts.csv");
  EXPECT_THAT(vitrail(eval + " --split validation").out, HasSubstr("1 image"));
  refuses(eval, "split into parts (train, val): choose one of them");
  refuses("eval " + path("runs/captions") + " " + path("named.csv") + " --split validation",
          "there is no part 'validation': no column 'split'");
}

TEST_F(SeventhWalkData, SaysWhichImagesHaveNoCaption) {
  ASSERT_EQ(train(path("scenes") + captioner(), "told").status, 0);
  write("empty.csv", "path,caption\nscenes/images/000000.png,a bird\nscenes/images/000001.png,\n");
  const Outcome eval = vitrail("eval " + path("runs/told") + " " + path("empty.csv"));
  EXPECT_THAT(eval.err, HasSubstr("note: " + path("empty.csv") + ": 1 image without a text is left out"));
}

TEST_F(SeventhWalkData, OpensTheImageModelOfSiglipsLoss) {
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

TEST_F(SeventhWalkData, NamesTheArgumentsThatAreNone) {
  refuses("train " + path("scenes") + " --output " + path("runs") + detector() + " --model-kwargs backbone_kwargs=3",
          "'backbone_kwargs' must be an object, such as {\"channels\": [32, 64, 128]}, but is 3");
  refuses("train " + path("scenes") + " --output " + path("runs") + detector() + " --model-kwargs backbone_kwargs=None",
          "'backbone_kwargs' must be an object");
  const Outcome usual = train(path("scenes") + detector() + " --model-kwargs backbone=None", "usual");
  EXPECT_EQ(usual.status, 0) << "as in transformers, the usual one: " << usual.err;
  write("wrong.toml", "model_kwargs = \"img_size=32\"\n");
  refuses(
      "train " + path("data") + " -c " + path("wrong.toml") + " --output " + path("runs"),
      "wrong.toml: 'model_kwargs' must be a text with a JSON object, such as '{\"key\": 32}', but is 'img_size=32'");
  write("list.toml", "decoder_kwargs = \"[]\"\n");
  refuses("train " + path("scenes") + captioner() + " -c " + path("list.toml") + " --output " + path("runs"),
          "list.toml: 'decoder_kwargs' must be");
}

TEST_F(SeventhWalkData, EvaluatesAnswersAsItIsAsked) {
  ASSERT_EQ(train(path("scenes") + vqa(), "vqa").status, 0);
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

TEST_F(SeventhWalkData, KeepsSequencesInOnePart) {
  std::string table = "path,sequence,label,split\n";
  for (int i = 0; i < 8; ++i) {
    const std::string name = "s" + std::to_string(i);
    for (const char* frame : {"0.png", "1.png"}) {
      table += std::string("data/train/") + (i % 2 == 0 ? "red/" : "blue/") + frame + "," + name + "," +
               (i % 2 == 0 ? "red," : "blue,") + (i < 4 ? "train" : "validation") + "\n";
    }
  }
  write("frames.csv", table);
  const std::string flags =
      " --task frames --model linear --img-size 16 --cell gru --cell-kwargs hidden_size=8 --no-aug -b 2";
  const Outcome trained = train(path("frames.csv") + flags, "frames");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("4 training and 4 validation sequences"));
  const Outcome shared = train(path("frames.csv") + flags + " --val-share 0.5", "shared");
  EXPECT_THAT(shared.out, HasSubstr("2 training and 2 validation sequences"));
  EXPECT_THAT(shared.out, HasSubstr("without --val-share, --val-split evaluates on one of them"));
  const std::string eval = "eval " + path("runs/frames") + " ";
  refuses(eval + path("frames.csv"), "split into parts (train, validation): choose one of them");
  EXPECT_THAT(vitrail(eval + path("frames.csv") + " --split validation").out, HasSubstr("4 sequences"));
  write("mixed.csv", table + "data/train/red/2.png,s0,red,validation\n");
  refuses("train " + path("mixed.csv") + flags + " --val-split validation --output " + path("runs"),
          "line 18 puts the sequence 's0' into the part 'validation', but an earlier line into 'train'");
}

TEST_F(SeventhWalkData, RefusesFlagsOfAGalleryThatDoNothing) {
  ASSERT_EQ(train(path("scenes") + captioner(), "gallery").status, 0);
  const std::string gallery = "gallery " + path("scenes/images/000001.png") + " --captioner " + path("runs/gallery") +
                              " --output " + path("g.html");
  refuses(gallery + " --threshold 0.1", "--threshold is for the boxes of --detector", 2);
  refuses(gallery + " --scenes " + path("others"), "knows none of these images");
  EXPECT_EQ(vitrail(gallery + " --scenes " + path("scenes")).status, 0);
}

TEST_F(SeventhWalkData, WantsTheTargetsOfSets) {
  std::string sets;
  for (int i = 0; i < 40; ++i) {
    sets += "{\"set\": [[0.1], [0.7]], \"targets\": [{\"class\": \"a\", \"values\": [0.1]}]}\n";
  }
  write("sets.jsonl", sets);
  const std::string flags = " --task set2set --val-split ''";
  const Outcome trained = train(path("sets.jsonl") + flags, "sets");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("1 query, queries are matched with targets"));
  write("wrong.jsonl", sets + "{\"set\": [[0.1]], \"target\": []}\n");
  refuses("eval " + path("runs/sets") + " " + path("wrong.jsonl"), "wrong.jsonl, line 41: there is a key \"target\"");
  write("bare.jsonl", sets + "{\"set\": [[0.1]]}\n");
  refuses("train " + path("bare.jsonl") + flags + " --output " + path("runs"),
          "bare.jsonl, line 41: it has no \"targets\"");
  EXPECT_THAT(vitrail("predict " + path("runs/sets") + " " + path("bare.jsonl")).out, HasSubstr("set 41: "));
  refuses("train " + path("sets.jsonl") + flags + " --set-cost-class 0 --set-cost-value 0 --output " + path("runs"),
          "nothing is left to match by", 2);
  refuses("train " + path("scenes") + detector() + " --set-cost-class 0 --set-cost-bbox 0 --set-cost-giou 0 --output " +
              path("runs"),
          "--set-cost-class, --set-cost-bbox and --set-cost-giou are all 0: nothing is left to match by", 2);
}

TEST_F(SeventhWalkData, SaysWhichTextModelsTakeNoArguments) {
  const std::string text = path("words.txt");
  ASSERT_EQ(vitrail("tokenizer train " + text + " --model wordpiece --vocab-size 80 --output " + path("pieces")).status,
            0);
  const Outcome trained = train(
      "--task embed --src " + text + " --tgt " + text + " --model bert-tiny --tokenizer " + path("pieces"), "emb");
  ASSERT_EQ(trained.status, 0) << trained.err;
  refuses("eval " + path("runs/emb") + " --src " + text + " --tgt " + text + " --model-kwargs a=1",
          "makes vectors of texts: it takes no --model-kwargs", 2);
}

TEST_F(SeventhWalkData, IsToldHowToDoWithoutEvaluation) {
  write("two.csv", "path,caption,split\nscenes/images/000000.png,a bird,train\nscenes/images/000001.png,a bird,mine\n");
  refuses("train " + path("two.csv") + " --output " + path("runs") + captioner().substr(0, captioner().find(" --val")),
          "there is no part 'validation', only train, mine; name another folder with --val-dir, hold images out by "
          "--val-share, or train without evaluation by --val-split ''");
}

TEST_F(SeventhWalkData, IsToldWhatElseTheDataAreFor) {
  refuses("train " + path("scenes") + " --output " + path("runs") + small(),
          "; what is there is for --task detect, caption, vqa");
  EXPECT_THAT(vitrail("train " + path("nothing") + " --output " + path("runs") + small()).err,
              Not(HasSubstr("--task")));
}

TEST_F(SeventhWalkData, SaysThatNothingWasFound) {
  ASSERT_EQ(train(path("scenes") + detector(), "detector").status, 0);
  const Outcome looked = vitrail("attention " + path("runs/detector") + " " + path("scenes/images/000000.png") +
                                 " --output " + path("looked"));
  EXPECT_THAT(looked.out, HasSubstr("found nothing with 70 % or more")) << looked.err;
  EXPECT_THAT(looked.out, HasSubstr("the likeliest box"));
}

TEST_F(SeventhWalkData, RefusesToHideEverything) {
  const Outcome outcome = vitrail("reconstruct " + path("none") + " " + path("data") + " --mask-ratio 1");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("must be above 0 and below 1, but is 1"));
}

TEST_F(SeventhWalkData, ComparesNoRunsWithoutEvaluation) {
  ASSERT_EQ(vitrail("pretrain mae " + path("data/train") + " --epochs 1 --output " + path("runs") +
                    " --experiment mae" + small())
                .status,
            0);
  refuses("compare " + path("runs/mae"), "is one without evaluation: there are no figures to compare");
}

TEST_F(SeventhWalkData, CompletesModelsOfTheKindThatIsTaken) {
  EXPECT_THAT(vitrail("completion bash -- train --task detect --model detr_s").out, HasSubstr("detr_scenes"));
  EXPECT_THAT(vitrail("completion bash -- train --task vqa --model vqa").out, HasSubstr("vqa_joint"));
  EXPECT_THAT(vitrail("completion bash -- generate gpt2 --dtype ''").out, HasSubstr("bf16"));
  EXPECT_THAT(vitrail("completion bash -- detect vit").out, Not(HasSubstr("vit_tiny")));
  EXPECT_THAT(vitrail("completion bash -- embed vit_t").out, HasSubstr("vit_tiny"));
}

}  // namespace
}  // namespace vitrail::test
