// What an eighteenth newcomer stumbled over, with texts above all: parts of tables, byte order marks, documents.
#include <cmath>
#include <fstream>
#include <numbers>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string mark = "\xef\xbb\xbf";

class EighteenthWalk : public Commands {
 protected:
  static nlohmann::json json_of(const std::string& command) {
    const Outcome outcome = vitrail(command + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  // Flags of a small language model and its place.
  static std::string language(const std::string& name, const std::string& flags = "") {
    return " --task lm --model lstm --model-kwargs hidden_size=16 --block-size 8 --epochs 1 --threads 1 --output " +
           path("runs") + " --experiment " + name + " " + flags;
  }
};

// The first character of a document is not predicted, and counts as the mean of the others.
TEST_F(EighteenthWalk, CountsCharactersOfDocumentsAsThoseOfBlocks) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += std::string(1, static_cast<char>('a' + i % 26)) + "bc" + std::string(static_cast<std::size_t>(i % 5), 'd') +
            "\n\n";
  }
  const std::string file = write("letters.txt", text);
  ASSERT_EQ(vitrail("train " + file + language("documents", "--documents --tokenizer char")).status, 0);
  const nlohmann::json documents = json_of("eval " + path("runs/documents") + " " + file);
  EXPECT_NEAR(documents["bits_per_character"], documents["loss"].get<double>() / std::numbers::ln2, 1e-9);
  EXPECT_EQ(documents["tokens"], static_cast<std::int64_t>(text.size()) - 40);
  // The same run, read in blocks.
  const Outcome blocks = vitrail("eval " + path("runs/documents") + " " + file + " --no-documents");
  EXPECT_THAT(blocks.out, HasSubstr("in blocks of 1024"));
  const Outcome by_position = vitrail("eval " + path("runs/documents") + " " + file + " --by-position --block-size 8");
  EXPECT_EQ(by_position.status, 0) << by_position.err;
  EXPECT_THAT(by_position.err, HasSubstr("in blocks, not document by document as in its training"));
  EXPECT_THAT(by_position.err, HasSubstr("note: the model has learnt these, all but a share of 0.1"));
}

TEST_F(EighteenthWalk, ReadsTextsOfWindows) {
  std::string lines;
  std::string windows = mark;
  for (int i = 0; i < 30; ++i) {
    lines += "one two three\n";
    windows += "one two three\r\n";
  }
  const std::string train = "train " + write("lines.txt", lines) + language("lines", "--tokenizer char");
  ASSERT_EQ(vitrail(train).status, 0);
  const std::string run = path("runs/lines");
  EXPECT_EQ(json_of("eval " + run + " " + write("windows.txt", windows))["loss"],
            json_of("eval " + run + " " + path("lines.txt"))["loss"]);
  const std::string prompts = write("prompts.txt", mark + "one\n");
  EXPECT_THAT(vitrail("generate " + run + " --prompts " + prompts + " --max-new-tokens 2 --seed 0").out,
              StartsWith("one"));
  EXPECT_EQ(vitrail("tokenizer encode " + run + "/best --input " + prompts).out,
            vitrail("tokenizer encode " + run + "/best --input " + write("plain.txt", "one\n")).out);
  EXPECT_EQ(vitrail("tokenizer encode " + run + "/best -", mark + "one\n").out,
            vitrail("tokenizer encode " + run + "/best -", "one\n").out);
  refuses("train " + path("lines.txt") + language("x", "--tokenizer char --grad-checkpointing"),
          "--grad-checkpointing has no effect on 'lstm', a recurrent network");
}

TEST_F(EighteenthWalk, KeepsToThePartsOfTablesOfPairs) {
  std::string rows = "source,target,split\n";
  for (int i = 0; i < 40; ++i) {
    rows += "eins zwei drei vier " + std::to_string(i) + ",one two three four " + std::to_string(i) +
            (i < 30 ? ",Train\n" : ",test\n");
  }
  const std::string file = write("pairs.csv", rows);
  const std::string translator =
      " --task translate --model gru_seq2seq --model-kwargs hidden_size=16 --vocab-size 30 "
      "--epochs 1 --threads 1 --output " +
      path("runs");
  const Outcome trained = vitrail("train " + file + translator + " --experiment pairs");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err,
              AllOf(HasSubstr("30 training pairs"), HasSubstr("its part 'train' is learnt, and not test")));
  const Outcome judged = vitrail("train " + file + translator + " --experiment judged --val-src " + file);
  EXPECT_THAT(judged.out + judged.err, HasSubstr("30 training pairs of lines with")) << judged.err;
  EXPECT_THAT(judged.out + judged.err, HasSubstr(", 10 to evaluate on"));
  EXPECT_EQ(json_of("eval " + path("runs/pairs") + " " + file + " --split test")["pairs"], 10);
  const std::string whole = write("whole.csv", "source,target\nmorgen,tomorrow\n");
  refuses("eval " + path("runs/pairs") + " " + whole + " --split test", "no column 'split' says which pairs it has");
  refuses("eval " + path("runs/pairs") + " " + file, "split into parts (train, test): choose one of them");
  EXPECT_THAT(vitrail("info " + file).out,
              AllOf(HasSubstr("translations"), HasSubstr("30 line pairs"), HasSubstr("--task translate")));
  // Objects, as Hugging Face writes them.
  std::string objects;
  for (int i = 0; i < 20; ++i) {
    objects += R"({"translation": {"de": "eins zwei drei vier )" + std::to_string(i) +
               R"(", "en": "one two three four )" + std::to_string(i) + R"("}, "split": ")" +
               (i < 15 ? "train" : "validation") + "\"}\n";
  }
  const Outcome of_objects = vitrail("train " + write("pairs.jsonl", objects) + translator +
                                     " --experiment objects --val-src " + path("pairs.jsonl"));
  EXPECT_THAT(of_objects.out + of_objects.err, AllOf(HasSubstr("15 training pairs"), HasSubstr(", 5 to evaluate on")));
  EXPECT_THAT(vitrail("info " + path("pairs.jsonl")).out, HasSubstr("15 line pairs"));
  EXPECT_THAT(
      vitrail("info " + write("labels.csv", "text,label,source,target\na day,good,web,x\na night,bad,web,y\n")).out,
      HasSubstr("--task classify-text"));
  refuses("train " + write("odd.jsonl", objects + "{\"src\": \"a\", \"tgt\": \"b\"}\n") + translator,
          "line 21 has no 'split', but the lines before it have one");
}

TEST_F(EighteenthWalk, KnowsWhichPartsATableOfTextsHas) {
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
  EXPECT_THAT(vitrail(task + "ema2 --model-ema --model-ema-warmup").out, Not(HasSubstr("take --model-ema-warmup")));
}

TEST_F(EighteenthWalk, SaysWhatAModelOfImagesIs) {
  const std::string mae = golden_path("models/hf_mae").string();
  for (const std::string& command :
       {"generate " + mae + " x", "fill-mask " + mae + " x", "translate " + mae + " " + write("some.txt", "a b c d"),
        "gradients " + mae + " --text " + path("some.txt") + " --output g.svg"}) {
    refuses(command, "is no model of texts: it is a model of images");
  }
}

TEST_F(EighteenthWalk, ReadsTheFiguresOfAKilledRun) {
  ASSERT_EQ(train(path("data"), "killed").status, 0);
  ASSERT_EQ(train(path("data"), "other").status, 0);
  std::ofstream(path("runs/killed/metrics.jsonl"), std::ios::app) << "{\"step\": 9, \"epo";
  const Outcome compared = vitrail("compare " + path("runs/killed") + " " + path("runs/other"));
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("killed"));
}

// A picture is enough where a checkpoint ships.
TEST_F(EighteenthWalk, LooksAtAPictureWithoutAModel) {
  if (vitrail("models --shipped vitrail/cifar10_resnet").status != 0) {
    GTEST_SKIP() << "no checkpoints are beside the program";
  }
  const std::string image = path("data/train/red/0.png");
  for (const std::string& command :
       {"predict " + image, "attention " + image + " --output " + path("maps"), "zeroshot " + image}) {
    const Outcome outcome = vitrail(command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("no MODEL is named: 'vitrail/"));
  }
  refuses("predict " + path("nothing.png"), "there is no image");
  refuses("search " + image, "is an image: name the index to look through before it", 2);
}

TEST_F(EighteenthWalk, PutsAHeadOnWhatAnEncoderIs) {
  const std::string before = " --output " + path("runs") + " --epochs 1 --threads 1 -b 8";
  const std::string vit =
      " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=1 num_heads=3";
  ASSERT_EQ(vitrail("pretrain autoencoder " + path("data/train") + vit +
                    " --latent-dim 4 --decoder-depth 1 --decoder-dim 16" + before + " --experiment ae")
                .status,
            0);
  ASSERT_EQ(vitrail("encoder " + path("runs/ae") + " --output " + path("ae")).status, 0);
  ASSERT_EQ(vitrail("pretrain mae " + path("data/train") + vit +
                    " --decoder-depth 1 --decoder-dim 16 --decoder-heads 2" + before + " --experiment mae")
                .status,
            0);
  for (const char* initial : {"ae", "runs/mae", "runs/one"}) {
    const Outcome tuned = vitrail("train " + path("data") + before + " --no-aug --initial-checkpoint " + path(initial));
    EXPECT_EQ(tuned.status, 0) << initial << ": " << tuned.err;
  }
  // A file of that name where the program is called is none of a model.
  fs::create_directories(path("elsewhere"));
  write("elsewhere/config.json", "{}");
  const Outcome beside = vitrail("train " + path("data") + before + small(), "", "cd " + path("elsewhere") + " &&");
  EXPECT_EQ(beside.status, 0) << beside.err;
  fs::create_directories(path("three"));
  for (const char* name : {"a", "b", "c"}) {
    fs::copy(path("data/train/red"), path(std::string("three/") + name), fs::copy_options::recursive);
  }
  refuses("train " + path("three") + before + " --initial-checkpoint " + best(),
          "has a classifier of 2 classes, and 3 are asked for: --pretrained-path gives it a new one");
  refuses("train " + path("data") + before + " --img-size 32 --initial-checkpoint " + best(),
          "is for images of 3 x 16 x 16, not of 3 x 32 x 32: --pretrained-path adapts it");
  fs::copy(path("runs/mae/best"), path("mae-alone"), fs::copy_options::recursive);
  EXPECT_THAT(vitrail("encoder " + path("mae-alone") + " --output " + path("mae-encoder")).out,
              HasSubstr("the encoder, without the decoder"));
  EXPECT_THAT(io::read_text(path("mae-encoder/config.json")), Not(HasSubstr("image_processor"))) << "timm knows none";
  ASSERT_EQ(vitrail("convert " + path("mae-alone") + " --output " + path("mae-timm")).status, 0);
  EXPECT_THAT(io::read_text(path("mae-timm/config.json")), Not(HasSubstr("image_processor")));
}

// An index knows how its images were prepared, and no feature is NaN.
TEST_F(EighteenthWalk, ComparesOnlyWhatIsAlike) {
  fs::copy(best(), path("model"), fs::copy_options::recursive);
  const std::string image = path("data/train/red/0.png");
  ASSERT_EQ(
      vitrail("index " + path("data/train") + " --model " + path("model") + " --output " + path("i.index")).status, 0);
  ASSERT_EQ(vitrail("search " + path("i.index") + " " + image).status, 0);
  nlohmann::json config = nlohmann::json::parse(io::read_text(path("model/config.json")));
  config["pretrained_cfg"]["crop_pct"] = 0.5;
  io::write_atomically(path("model/config.json"), config.dump());
  refuses("search " + path("i.index") + " " + image, "of images that were prepared otherwise");
  io::NamedTensors tensors;
  const io::Safetensors file = io::Safetensors::open(path("model/model.safetensors"));
  for (const std::string& name : file.names()) {
    tensors.emplace_back(name, file.get(name).clone());
    if (name == "norm.weight") {
      *tensors.back().second.data<float>() = std::nanf("");
    }
  }
  io::save_safetensors(path("model/model.safetensors"), tensors);
  const char* found = "0.png' hold NaN or infinity";
#ifdef VITRAIL_CHECK_FINITE
  found = "layer_norm: the output [32, 24] holds nan";
#endif
  refuses("embed " + path("model") + " " + path("data/train") + " --output " + path("f.safetensors"), found);
  EXPECT_FALSE(fs::exists(path("f.safetensors")));
}

}  // namespace
}  // namespace vitrail::test
