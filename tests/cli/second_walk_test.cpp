// What a second and a third newcomer asked for and did not get, without a word: flags that change nothing, and results
// that were not what they were taken for.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class SecondWalk : public Commands {
 protected:
  static std::string text_model(const std::string& name) { return golden_path("models/text/" + name).string(); }
};

TEST_F(SecondWalk, IsToldWhatChangesNothing) {
  const std::string train = "train " + path("data") + small() + " --epochs 2 --output " + path("none") + " ";
  const std::string dino = "pretrain dino " + path("data/train") + " --output " + path("none") + " ";
  const std::string image = path("data/train/red/3.png");
  const std::string text = write("text.txt", "a line\nand another\n");
  const std::string gpt = text_model("gpt2");
  for (const auto& [arguments, words] : std::initializer_list<std::pair<std::string, std::string>>{
           {train + "--sched none --warmup-epochs 1", "--warmup-epochs has no effect with --sched none"},
           {train + "--sched none --warmup-prefix", "--warmup-prefix has no effect with --sched none"},
           {train + "--sched none --no-sched-on-updates", "--no-sched-on-updates has no effect with --sched none"},
           {train + "--warmup-epochs 0 --warmup-lr 1e-5", "--warmup-lr has no effect with --warmup-epochs 0"},
           {train + "--linear-probe --layer-decay 0.5", "--layer-decay has no effect with --linear-probe"},
           {train + "--weight-decay 0 --weight-decay-all", "--weight-decay-all has no effect with --weight-decay 0"},
           {train + "--sched step --decay-epochs 5", "--sched step with --decay-epochs 5 never decays in 2 --epochs"},
           {train + "--val-split '' --tta 2", "--tta has no effect without images to evaluate on"},
           {train + "--val-split '' --eval-metric loss", "--eval-metric has no effect without images to evaluate on"},
           {train + "--layer-decay 0.5 --layer-decay-min-scale 2", "--layer-decay-min-scale must be from 0 to 1"},
           {train + "--in-chans 0", "--in-chans must be at least 1, but is 0"},
           {dino + "--warmup-teacher-temp 0.01",
            "--warmup-teacher-temp has no effect without --warmup-teacher-temp-epochs"},
           {dino + "--local-crops-number 0 --local-crops-size 8",
            "--local-crops-size has no effect with --local-crops-number 0"},
           {"predict " + best() + " " + image + " --amp-dtype bf16", "--amp-dtype requires --amp"},
           {"models --names --json", "--names excludes --json"},
           {"eval " + best() + " " + path("data") + " --split validation --batch-tokens 4",
            "nor --num-beams and --batch-tokens"},
           {"attention " + best() + " " + image + " --method dino --crop-pct 0.5",
            "--crop-pct and --crop-mode have no effect: images are taken whole"},
           {"attention " + best() + " " + path("data") + " --method dino --masks x --output " + path("maps"),
            "--raw and --output have no effect on --masks"},
           {"project x.safetensors --output y --seed 3", "--seed requires --limit"},
           {"patches " + best() + " " + image + " --seed 3", "--seed belongs to --method kmeans"},
           {"soup " + best() + " " + best() + " --output " + path("soup") + " -b 4", "--batch-size requires --data"},
           {"quantize " + best() + " --output " + path("int8") + " -b 4",
            "--batch-size has no effect without --calibrate or --eval"},
           {"index " + path("data") + " --model " + best() + " --num-classes 3 --output x.index",
            "--num-classes has no effect"},
           {"search x.index --text red " + image, "is a file, and not what --text asks for"},
           {"generate " + gpt + " a --min-new-tokens 5 --max-new-tokens 3", "--min-new-tokens 5 is more than"},
           {"generate " + gpt + " a --batch-size 3", "--batch-size requires --prompts"},
           {"generate " + gpt + " a --int8 --dtype f32", "--dtype"},
           {"tokenizer encode " + gpt + " a --json-lines", "--json-lines has no effect without --input"},
           {"tokenizer encode " + gpt + " a --show --json", "give one of them"},
           {"tokenizer train " + text + " --output y --lowercase", "--lowercase has no effect with --model bpe"},
           {"tokenizer train " + text + " --output y --model unigram --min-frequency 3",
            "--min-frequency has no effect with --model unigram"},
           {"scenes " + path("s") + " --count 2 --holdout ''", "name the kinds"},
           {"translate " + gpt + " --num-beams 1 --n-best 2", "--n-best 2 needs a --num-beams above 1"},
           {"info " + gpt + " --num-classes 3", "it takes no --num-classes"},
           {"bench infer --model gpt2 --num-classes 3", "it takes no --num-classes"},
           {"bleu x -i y -s floor -sv -1", "--smooth-value"},
       }) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
  }
}

TEST_F(SecondWalk, IsToldWhatIsNotThere) {
  for (const char* command : {"embed nope --similarity a b", "eval nope --src a --tgt b", "predict nope a"}) {
    EXPECT_THAT(vitrail(command).err, HasSubstr("there is no model 'nope'")) << command;
  }
  for (const char* command : {"fill-mask nope \"a [MASK]\"", "generate nope a"}) {
    EXPECT_THAT(vitrail(command).err, HasSubstr("there is no model folder 'nope'")) << command;
  }
  EXPECT_THAT(vitrail("generate gpt2 a").err, HasSubstr("'gpt2' is the name of a model, whose weights are random"));
}

TEST_F(SecondWalk, LosesNoModelByResuming) {
  const std::string run = path("runs/one");
  for (const std::string part : {"train", "validation"}) {
    fs::create_directories(path("other/" + part));
    fs::copy(path("data/" + part + "/red"), path("other/" + part + "/red"));
    fs::copy(path("data/" + part + "/blue"), path("other/" + part + "/green"));
  }
  const Outcome other = vitrail("train " + path("other") + " --resume " + run + " --epochs 9");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("the run is of 2 classes (blue, red), but the data are of 2 classes (green, red)"));
}

TEST_F(SecondWalk, TakesNoBottleneckForAClassifier) {
  const Outcome made = vitrail("pretrain autoencoder " + path("data/train") + " --latent-dim 2 --epochs 1 --output " +
                               path("runs") + " --experiment bottle" + small());
  ASSERT_EQ(made.status, 0) << made.err;
  for (const std::string command : {"eval ", "report ", "predict "}) {
    const Outcome outcome = vitrail(command + path("runs/bottle") + " " + path("data/validation") +
                                    (command == "report " ? " --output " + path("page") : ""));
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr("is an autoencoder, which has no classifier")) << command;
  }
}

TEST_F(SecondWalk, ReadsTablesThatBeginWithAByteOrderMark) {
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

// A table of texts is one for every command that reads it, not lines of text.
TEST_F(SecondWalk, TakesTheTextsOfATableForTexts) {
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
}

TEST_F(SecondWalk, IsToldOfWeightsThatDiverged) {
  // A debug build looks at what each operation gives, so it names the operation before the command sees the outputs.
  const auto of_operation = ContainsRegex("holds -?(nan|inf) at element");
  const Outcome trained =
      vitrail("train " + path("data") + small() + " --epochs 1 --lr 1e30 --opt sgd --warmup-epochs 0" +
              " --batch-size 32 --output " + path("runs") + " --experiment diverged");
  EXPECT_EQ(trained.status, 1) << trained.out;
  EXPECT_THAT(trained.err, AnyOf(HasSubstr("the model gives NaN"), HasSubstr("the loss is "), of_operation));
  const std::string weights = path("nan-weights");
  fs::copy(best(), weights);
  std::fstream file(weights + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8, std::ios::end);
  file.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);  // NaN
  file.close();
  for (const std::string& command : {"eval " + weights + " " + path("data") + " --split validation",
                                     "predict " + weights + " " + path("data/train/red/3.png")}) {
    const Outcome outcome = vitrail(command);
    EXPECT_EQ(outcome.status, 1) << command << outcome.out;
    EXPECT_THAT(outcome.err, AnyOf(HasSubstr("the model gives NaN where numbers were expected"), of_operation))
        << command;
  }
}

TEST_F(SecondWalk, ReadsWhatIsWrongInWordsOfItsOwn) {
  const std::string text = write("letters.txt", "a b c d e f\n");
  const std::string pieces = path("letters");
  ASSERT_EQ(vitrail("tokenizer train " + text + " --vocab-size 257 --output " + pieces).status, 0);
  const std::string image = path("data/train/red/3.png");
  for (const auto& [arguments, words] : std::initializer_list<std::pair<std::string, std::string>>{
           {"zeroshot nope " + image + " --labels a,b", "there is no model folder 'nope'"},
           {"latent nope --between " + image + " " + image, "there is no model folder 'nope'"},
           {"reconstruct nope " + image, "there is no model folder 'nope'"},
           {"embed " + best() + " " + path("data") + " --split train --output x.npy",
            "'x.npy' does not end in .safetensors"},
           {"attention " + best() + " " + image + " --raw x.npz", "'x.npz' does not end in .safetensors"},
           {"tokenizer decode " + pieces + " 99999999999999999999", "'99999999999999999999' is not an id"},
       }) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_NE(outcome.status, 0) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
  }
}

// Runs of pretraining have no --eval-metric, and runs of different kinds no unit in common.
TEST_F(SecondWalk, ComparesRunsOfAnyKind) {
  const std::string flags =
      " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=2 "
      "num_heads=3 --threads 1 -b 8 --epochs 1 --output " +
      path("runs");
  const Outcome trained = vitrail("pretrain simclr " + path("data/train") + flags + " --experiment views --knn-data " +
                                  path("data") + " --projection-dim 8 --hidden-dim 16");
  if (trained.status != 0) {
    GTEST_FAIL() << trained.err;
  }
  const Outcome compared = vitrail("compare " + path("runs/views"));
  EXPECT_EQ(compared.status, 0) << compared.err;
}

// Images of two parts may have the same names: features know of which they are.
TEST_F(SecondWalk, ProjectsFeaturesWithTheImagesThatTheyAreOf) {
  const std::string features = path("part.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data") + " --split validation --output " + features).status, 0);
  const std::string project = "project " + features + " --method pca --images " + path("data") + " --output ";
  EXPECT_THAT(vitrail(project + path("map-x") + " --split train").err,
              HasSubstr("the features are of the part 'validation', not of --split train"));
  const Outcome named = vitrail(project + path("map-a") + " --split validation");
  EXPECT_EQ(named.status, 0) << named.err;
  const Outcome unnamed = vitrail(project + path("map-b"));
  EXPECT_EQ(unnamed.status, 0) << unnamed.err;
  EXPECT_EQ(io::read_text(path("map-a/map.png")), io::read_text(path("map-b/map.png")));
  const std::string all = path("all.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data") + " --unlabeled --output " + all).status, 0);
  const Outcome unlabeled =
      vitrail("project " + all + " --method pca --images " + path("data") + " --output " + path("map-c"));
  EXPECT_EQ(unlabeled.status, 0) << unlabeled.err;
}

TEST_F(SecondWalk, IsToldOfAnAverageThatHasHardlyBegun) {
  const std::string train = "train " + path("data") + small() + " --epochs 1 --model-ema --output " + path("runs");
  EXPECT_THAT(vitrail(train).out,
              HasSubstr("the average of --model-ema is still to 100 % the weights that it began with"));
  EXPECT_THAT(vitrail(train + " --model-ema-decay 0.2").out, Not(HasSubstr("note: after all")));
}

}  // namespace
}  // namespace vitrail::test
