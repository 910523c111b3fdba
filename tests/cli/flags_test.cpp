// Flags of all commands: values that they do not take, and whose they are.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/cli/language_model.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Flags : public Commands {};

TEST_F(Flags, UsedWronglyGiveStatus2) {
  const std::string image = path("data/validation/red/3.png");
  for (const auto& [arguments, words] : std::vector<std::pair<std::string, std::string>>{
           {"train " + path("data") + " --batch-size 0", "vitrail train: --batch-size must be at least 1, but is 0"},
           {"train", "vitrail train: --data-dir is missing"},
           {"train " + path("data") + " --smoothing 1", "vitrail train: --smoothing must be from 0 to below 1"},
           {"train " + path("data") + " --scale 1", "vitrail train: --scale"},
           {"train " + path("data") + " --interpolation best", "vitrail train: --interpolation must be one of nearest"},
           {"train " + path("data") + " --resume x --config y", "vitrail train: --config and --resume"},
           {"train " + path("data") + " --threads 99999", "vitrail train: --threads must be from 0 (all cores) to "},
           {"pretrain mae " + path("data") + " --mask-ratio 2", "vitrail pretrain: --mask-ratio must be above 0"},
           {"predict " + best() + " " + image + " --threads 99999", "vitrail predict: --threads must be from 0"},
           {"predict " + best() + " " + image + " --crop-mode middle", "vitrail predict: --crop-mode"},
           {"predict " + best() + " " + image + " --mean 0.1 0.2", "vitrail predict: --mean takes"},
           {"predict " + best() + " " + image + " --model-kwargs depth", "vitrail predict: "},
           {"eval " + best() + " " + path("data") + " --tta 1", "vitrail eval: --tta takes 0"},
           {"embed " + best() + " x --unlabeled --split test --output y.safetensors",
            "vitrail embed: --unlabeled takes all"},
           {"knn " + path("data") + " " + path("data"), "vitrail knn: features"},
           {"soup " + best() + " --greedy --output " + path("soup"), "vitrail soup: --greedy"},
           {"augment " + image + " --hflip 2 --output x.png", "vitrail augment: --hflip must be from 0 to 1"},
           {"completion tcsh", "vitrail completion: SHELL: tcsh not in"},
           {"bench train --model vit_tiny_patch16_224 --batch-size -3",
            "vitrail bench: --batch-size: must be at least 1, but is -3"},
       }) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
    EXPECT_LT(outcome.err.size(), 400U) << arguments;
  }
  EXPECT_EQ(vitrail("predict " + best() + " " + image + " --threads 0").status, 0);
}

TEST_F(Flags, RefuseNumbersThatAreNone) {
  const std::string image = path("data/validation/red/3.png");
  const std::string attention = "attention " + best() + " " + image + " --output " + path("no_maps") + " ";
  const std::string train = "train " + path("data") + " ";
  for (const auto& [arguments, words] : std::vector<std::pair<std::string, std::string>>{
           {attention + "--query 1", "--query takes the row and the column of a patch, as in 3,4, not '1'"},
           {attention + "--query ''", "--query takes the row and the column of a patch, as in 3,4, not ''"},
           {attention + "--query 1,2,3", "not '1,2,3'"},
           {attention + "--query 1,", "not '1,'"},
           {attention + "--query 1,0x1", "not '1,0x1'"},
           {attention + "--layer 99999999999999999999", "--layer: must be a number of at most 64 bits, but is 9999"},
           {attention + "--mean nan", "--mean: must be from 0 to 1, but is nan"},
           {attention + "--mean 127", "--mean: must be from 0 to 1, but is 127"},
           {attention + "--std 50", "--std: must be from 0 to 1, but is 50"},
           {train + "--mean 127", "--mean must be from 0 to 1, but is 127"},
           {train + "--std 50", "--std must be at most 1, but is 50"},
           {train + "--img-size 64 --model-kwargs img_size=32",
            "--model-kwargs has no effect in img_size=32 beside --img-size 64"},
           {attention + "--img-size 64 --model-kwargs img_size=32", "--img-size is 64, but --model-kwargs has img"},
           {attention + "--std inf", "--std: must be a number above 0, but is inf"},
           {train + "--lr inf", "--lr: must be a finite number, but is inf"},
           {train + "--mean nan nan nan", "--mean: must be a finite number, but is nan"},
           {train + "--seed 99999999999999999999", "--seed: must be a number of at most 64 bits, but is 9999"},
           {train + "--seed -9223372036854775809", "--seed: must be a number of at most 64 bits"},
           {train + "--epochs ''", "--epochs: must be a whole number, but is empty"},
           {train + "--workers 100000", "--workers must be at most 1024, but is 100000"},
           {train + "--decay-milestones 5 99999999999999999999", "--decay-milestones: must be a number of at most"},
           {train + "--color-jitter -1", "--color-jitter must be at least 0, but is -1"},
           {train + "--sched multistep --decay-milestones 5 2", "--decay-milestones must ascend, but are [5, 2]"},
           {train + "--lr-cycle-limit 0", "--lr-cycle-limit must be a positive number, but is 0"},
           {train + "--opt-eps -1", "--opt-eps must be at least 0, but is -1"},
           {train + "--lr-k-decay 0", "--lr-k-decay must be a positive number, but is 0"},
           {train + "--sched poly --decay-rate -1", "--decay-rate must be at least 0, but is -1"},
           {train + "--min-lr 1 --lr 1e-3", "--min-lr 1 is above the learning rate 0.001"},
           {train + "--gp foo", "--gp must be one of token, avg, max"},
           {"predict " + best() + " " + image + " --num-classes 99999999", "--num-classes: must be from 0 to 1048576"},
           {train + "--experiment ..", "--experiment is the name of a folder inside --output, not '..'"},
           {"augment " + image + " --seed 99999999999999999999 --output x.png",
            "--seed: must be a number of at most 64"},
           {"augment " + image + " --img-size 3.5 --output x.png", "--img-size: must be a whole number, but is 3.5"},
           {"augment " + image + " --rows 65 --output x.png", "--rows: must be from 1 to 64, but is 65"},
           {"knn a b --temperature nan", "--temperature: must be a number above 0, but is nan"},
           {"bench pretrain --model x --mask-ratio nan", "--mask-ratio: must be from 0 to 1, but is nan"},
       }) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
  }
  const Outcome layer = vitrail(attention + "--layer -4");
  EXPECT_THAT(layer.err, HasSubstr("there is no layer -4: the model has the layers 0 to 1"));
  EXPECT_FALSE(fs::exists(path("no_maps")));
}

TEST_F(Flags, AskForNoMoreThanThereIs) {
  const Outcome epochs = vitrail("train " + path("data") + small() + " --epochs 9223372036854775807");
  EXPECT_EQ(epochs.status, 2);
  EXPECT_THAT(epochs.err, HasSubstr("--epochs must be at most 1000000"));
  const Outcome compared = vitrail("compare " + path("runs/one") + " " + path("runs/nope"));
  EXPECT_EQ(compared.status, 1);
  EXPECT_THAT(compared.err, HasSubstr("nope: no such folder"));
}

TEST_F(Flags, OfTheModelMayStandBeforeImages) {
  const Outcome outcome =
      vitrail("predict " + best() + " --model-kwargs img_size=16 drop_rate=0 " + path("data/train/red/0.png"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(vitrail("info vit_tiny_patch16_224 --model-kwargs=img_size=16 patch_size=4 --json").status, 0);
  const Outcome learnt =
      vitrail("train --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=8 depth=1 " + path("data") +
              " --epochs 1 --threads 1 --output " + path("runs") + " --experiment behind");
  EXPECT_EQ(learnt.status, 0) << learnt.err;
}

class FlagsOfTraining : public OnImages {};

TEST_F(FlagsOfTraining, GivenTwiceCountTheLastTime) {
  const std::string train = "train " + path("data");
  EXPECT_THAT(vitrail(train + " --task frames --task classify --cell gru").err, HasSubstr("no flag '--cell' here"));
  EXPECT_THAT(vitrail(train + " --task=classify --task frames --tta 2").err, HasSubstr("no flag '--tta' here"));
}

TEST_F(FlagsOfTraining, AreSaidToBeOfAnotherTask) {
  const Outcome outcome = vitrail("pretrain " + path("data") + " --teacher-model /nonexist --tta 2");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("there is no flag '--teacher-model' here, but vitrail train --task classify has it"));
  EXPECT_THAT(vitrail("train " + path("data") + " --mask-ratio 0.5").err, HasSubstr("vitrail pretrain mae has it"));
}

TEST_F(FlagsOfTraining, AreTakenForThoseOfTheTask) {
  refuses("pretrain clip " + path("data") + " --model-kwargs a=1", "(here there is --vision-kwargs, --text-kwargs)", 2);
}

TEST_F(FlagsOfTraining, AreNamedThatHaveTakenAnArgument) {
  refuses("train --freeze patch_embed " + path("data"),
          "(--freeze has taken '" + path("data") + "' as one of its values: name what is missing in front of it)", 2);
  EXPECT_THAT(vitrail("train --opt-betas 0.9 0.95").err, Not(HasSubstr("has taken")));
  refuses("--threads 1 train " + path("data"), "--threads stands in front of the command: flags stand behind it", 2);
  refuses("x train " + path("data"), "there is no command 'x'", 2);
  refuses("help trian", "did you mean", 2);
  EXPECT_THAT(vitrail("help train").out, HasSubstr("--data-dir"));
}

TEST_F(FlagsOfTraining, SayWhatTheyTake) {
  refuses("bleu x --smooth-method floor --smooth-value -3", "--smooth-value: must be a number of 0 or more, but is -3",
          2);
  const Outcome none = train_task(path("data") + " --val-split= " + small() + " --epochs 1", "no-validation");
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("32 training and 0 validation images"));
  refuses("train " + path("data") + " --epochs= ", "--epochs", 2);
  refuses("generate " + golden_model("joint/blip_caption") + " 'a word'", "captions images");
}

class TaskOfTexts : public LanguageModel {};

TEST_F(TaskOfTexts, MayBeLeftAwayWhereThereIsNoChoice) {
  const std::string help = " --help";
  EXPECT_THAT(vitrail("train " + path("text.txt") + " --model " + path("runs/one") + help).out,
              HasSubstr("--block-size"));
  EXPECT_THAT(vitrail("train --model transformer-small" + help).out, HasSubstr("--batch-tokens"));
  EXPECT_THAT(vitrail("train --model bert-tiny --src a --tgt b" + help).out, HasSubstr("--pool"));
  fails(vitrail("train " + path("text.txt")), 2, "of a text, say what is learned: --task lm");
  fails(vitrail("train --src a --tgt b"), 2, "vitrail train --task embed, translate have it");
}

}  // namespace
}  // namespace vitrail::test
