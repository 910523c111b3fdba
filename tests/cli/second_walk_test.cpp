// What a second and a third newcomer asked for and did not get, without a word: flags that change nothing, and results
// that were not what they were taken for.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SecondWalk : public Commands {
 protected:
  static std::string text_model(const std::string& name) { return golden_path("models/text/" + name).string(); }
  static std::string write(const std::string& name, const std::string& text) {
    std::ofstream(path(name)) << text;
    return path(name);
  }
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
           {train + "--sched none --no-sched-on-updates", "--sched-on-updates has no effect with --sched none"},
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
            "have no effect without --calibrate or --eval"},
           {"index " + path("data") + " --model " + best() + " --num-classes 3 --output x",
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
  EXPECT_THAT(other.err,
              HasSubstr("the run is of 2 classes (blue, red), but the images are of 2 classes (green, red)"));
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
  ASSERT_EQ(vitrail("tokenizer train " + table + " --model wordpiece --vocab-size 30 --output " + path("pieces") +
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

}  // namespace
}  // namespace vitrail::test
