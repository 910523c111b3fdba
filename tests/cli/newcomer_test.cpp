// What people try first, and what they are told if it is not what they think.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"
#include "vitrail/io/toml.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Newcomer : public Commands {};

std::string run_flags(const std::string& folder, const std::string& name) {
  return " --output " + folder + " --experiment " + name + " --epochs 1";
}

TEST_F(Newcomer, TrainsOnATableWithoutParts) {
  std::string rows;
  for (const char* name : {"red/1", "red/2", "red/3", "red/4", "blue/1", "blue/2", "blue/3", "blue/4", "blue/5"}) {
    rows += std::string("data/train/") + name + ".png," + std::string(name).substr(0, 3) + "\n";
  }
  std::ofstream(path("table.csv")) << rows;
  const std::string train = "train " + path("table.csv") + small();
  const Outcome held = vitrail(train + run_flags(path("runs"), "held"));
  EXPECT_EQ(held.status, 0) << held.err;
  EXPECT_THAT(held.out, HasSubstr("8 training and 1 validation image"));
  EXPECT_THAT(held.out, HasSubstr("a share of 0.1 of the images is held out, drawn by chance (--val-share)"));
  const Outcome all = vitrail(train + " --val-split ''" + run_flags(path("runs"), "all"));
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("9 training and 0 validation images"));
  EXPECT_THAT(all.out, HasSubstr("each epoch leaves out 1 of the 9 training images, which do not fill a batch of 8"));
  const Outcome few = vitrail(train + " --val-split '' --batch-size 64" + run_flags(path("runs"), "few"));
  EXPECT_EQ(few.status, 0) << few.err;
  EXPECT_THAT(few.out, HasSubstr("each epoch is one batch of 9 training images, fewer than --batch-size 64 asks for"));
  EXPECT_THAT(few.out, HasSubstr("1 update of 9 images an epoch, adamw, learning rate 0.0001875,")) << "1e-3 √(9/256)";
  const Outcome other = vitrail(train + " --val-dir " + path("data/validation") + run_flags(path("runs"), "other"));
  EXPECT_EQ(other.status, 1) << "other classes";
}

TEST_F(Newcomer, LosesNothingByAnOutput) {
  const Outcome embed =
      vitrail("embed " + best() + " " + path("data/validation") + " --output " + best() + "/model.safetensors");
  EXPECT_EQ(embed.status, 1);
  EXPECT_THAT(embed.err, HasSubstr("belongs to the model"));
  EXPECT_EQ(vitrail("info " + best()).status, 0);

  const std::string scenes = "scenes " + path("drawn") + " --count 2 --size 32";
  EXPECT_EQ(vitrail(scenes).status, 0);
  EXPECT_EQ(vitrail(scenes).status, 0) << "one of scenes is replaced";
  for (const char* own : {"drawn/images/mine.png", "drawn/notes.txt"}) {
    std::ofstream(path(own)) << "mine";
    const Outcome outcome = vitrail(scenes);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr(std::string(own).substr(5) + "' would be lost with the scenes"));
    std::filesystem::remove(path(own));
  }
}

TEST_F(Newcomer, BringsAnIndexUpToDateWhereAllThatIsNewIsBroken) {
  std::filesystem::copy(path("data/validation"), path("album"), std::filesystem::copy_options::recursive);
  const std::string index = "index " + path("album") + " --output " + path("album.index");
  EXPECT_EQ(vitrail(index + " --model " + best()).status, 0);
  std::ofstream(path("album/new.png")) << "no image";
  std::filesystem::remove(path("album/red/3.png"));
  const Outcome outcome = vitrail(index + " --skip-broken");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("0 new, 1 gone"));
  EXPECT_THAT(outcome.out, HasSubstr("new.png"));
  const Outcome other = vitrail(index + " --model vit_tiny_patch16_224");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("was made by '" + best() + "' with other weights"));
}

TEST_F(Newcomer, GivesAFlagTwiceAndTheLastCounts) {
  const std::string train = "train " + path("data");
  EXPECT_THAT(vitrail(train + " --task frames --task classify --cell gru").err, HasSubstr("no flag '--cell' here"));
  EXPECT_THAT(vitrail(train + " --task=classify --task frames --tta 2").err, HasSubstr("no flag '--tta' here"));
}

TEST_F(Newcomer, IsToldWhichTaskHasAFlag) {
  const Outcome outcome = vitrail("pretrain " + path("data") + " --teacher-model /nonexist --tta 2");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("there is no flag '--teacher-model' here, but vitrail train --task classify has it"));
  EXPECT_THAT(vitrail("train " + path("data") + " --mask-ratio 0.5").err, HasSubstr("vitrail pretrain mae has it"));
}

TEST_F(Newcomer, IsToldOfRandomWeights) {
  const std::string image = path("data/validation/red/3.png");
  const std::string bare = " vit_tiny_patch16_224 ";
  const std::string tiny = " --img-size 16 --model-kwargs patch_size=4 depth=1 --num-classes 2";
  for (const std::string& command :
       {"predict" + bare + image, "attention" + bare + image + " --output " + path("own_maps"),
        "eval" + bare + path("data/validation"),
        "embed" + bare + path("data/validation") + " --output " + path("x.safetensors"),
        "report" + bare + path("data/validation") + " --images 1 --output " + path("page"),
        "convert" + bare + " --output " + path("converted")}) {
    const Outcome outcome = vitrail(command + tiny);
    EXPECT_EQ(outcome.status, 0) << command << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("vit_tiny_patch16_224 is the name of an architecture, whose weights are random"))
        << command;
  }
  EXPECT_EQ(vitrail("predict " + best() + " " + image).err, "");
  EXPECT_THAT(vitrail("info vit_tiny_patch16_224").err, Not(HasSubstr("random")));
}

TEST_F(Newcomer, IsToldOfAHeadThatIsNew) {
  const std::string image = path("data/validation/red/3.png");
  for (const std::string& command : {"predict " + best() + " " + image, "eval " + best() + " " + path("data/train"),
                                     "convert " + best() + " --output " + path("other_head")}) {
    const Outcome outcome = vitrail(command + " --num-classes 3");
    EXPECT_EQ(outcome.status, 0) << command << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("has 2 classes: the head for 3 is new, and its weights are random")) << command;
  }
  EXPECT_EQ(vitrail("predict " + best() + " " + image + " --num-classes 2").err, "");
}

TEST_F(Newcomer, NamesARunForItsBestModel) {
  const std::string image = path("data/validation/red/3.png");
  const std::string run = path("runs/one");
  EXPECT_EQ(vitrail("predict " + run + " " + image).out, vitrail("predict " + best() + " " + image).out);
  EXPECT_EQ(vitrail("info " + run).out, vitrail("info " + best()).out);
  const Outcome evaluated = vitrail("eval " + run + " " + path("data/validation") + " --json");
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  EXPECT_EQ(nlohmann::json::parse(evaluated.out)["count"], 32);
  const Outcome tuned =
      vitrail("train " + path("data") + " --model " + run + run_flags(path("runs"), "tuned") + " -b 8");
  EXPECT_EQ(tuned.status, 0) << tuned.err;
}

TEST_F(Newcomer, ComparesTheRunsThatCanBe) {
  fs::create_directories(path("runs/empty"));
  const Outcome some = vitrail("compare " + path("runs/empty") + " " + path("runs/one"));
  EXPECT_EQ(some.status, 0) << some.err;
  EXPECT_THAT(some.out, HasSubstr("| one "));
  EXPECT_THAT(some.err, HasSubstr("passed over: "));
  EXPECT_THAT(some.err, HasSubstr("runs/empty' is not a run folder"));
  EXPECT_EQ(vitrail("compare " + path("runs/empty")).status, 1);
  EXPECT_EQ(vitrail("compare " + path("runs/empty") + " " + path("runs/empty")).status, 1);
}

TEST_F(Newcomer, UsesFlagsWronglyWithStatus2) {
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

TEST_F(Newcomer, IsToldOfNumbersThatAreNone) {
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

TEST_F(Newcomer, IsToldOfFlagsThatDoNothing) {
  const std::string image = path("data/validation/red/3.png");
  const std::string train = "train " + path("data") + " ";
  const std::string teacher = train + "--kd-model-name " + best() + " ";
  for (const auto& [arguments, words] : std::vector<std::pair<std::string, std::string>>{
           {train + "--distillation-alpha 0.1", "--distillation-alpha has no effect without --kd-model-name"},
           {train + "--distillation-type hard", "--distillation-type has no effect without --kd-model-name"},
           {train + "--kd-temperature 2", "--kd-temperature has no effect without --kd-model-name"},
           {train + "--task-loss-weight 0.3", "--task-loss-weight has no effect without --kd-model-name"},
           {teacher + "--task-loss-weight 0.3 --distillation-alpha 0.5",
            "--distillation-alpha has no effect beside --task-loss-weight"},
           {teacher + "--kd-temperature 2", "--kd-temperature has no effect with --distillation-type hard"},
           {train + "--model-ema-decay 0.9", "--model-ema-decay has no effect without --model-ema"},
           {train + "--model-ema-warmup", "--model-ema-warmup has no effect without --model-ema"},
           {train + "--clip-mode agc", "--clip-mode has no effect without --clip-grad"},
           {train + "--amp-dtype float32", "--amp-dtype has no effect without --amp"},
           {train + "--momentum 0.5", "--momentum has no effect with --opt adamw"},
           {train + "--opt sgd --opt-betas 0.9 0.99", "--opt-betas has no effect with --opt sgd"},
           {train + "--opt lion --opt-eps 1e-7", "--opt-eps has no effect with --opt lion"},
           {train + "--lr 1e-3 --lr-base 1e-3", "--lr-base has no effect beside --lr 0.001"},
           {train + "--lr 1e-3 --lr-base-size 64", "--lr-base-size has no effect beside --lr 0.001"},
           {train + "--lr 1e-3 --lr-base-scale sqrt", "--lr-base-scale has no effect beside --lr 0.001"},
           {train + "--lr-cycle-mul 2", "--lr-cycle-mul has no effect with --lr-cycle-limit 1"},
           {train + "--lr-cycle-decay 0.3", "--lr-cycle-decay has no effect with --lr-cycle-limit 1"},
           {train + "--sched step --lr-cycle-limit 2", "--lr-cycle-limit has no effect with --sched step"},
           {train + "--sched constant --cooldown-epochs 2", "--cooldown-epochs has no effect with --sched constant"},
           {train + "--sched step --min-lr 1e-5", "--min-lr has no effect with --sched step"},
           {train + "--mixup-mode elem", "--mixup-mode has no effect without --mixup or --cutmix"},
           {train + "--mixup-prob 0.5", "--mixup-prob has no effect without --mixup or --cutmix"},
           {train + "--mixup-off-epoch 5", "--mixup-off-epoch has no effect without --mixup or --cutmix"},
           {train + "--mixup 0.8 --mixup-switch-prob 0.2", "--mixup-switch-prob has no effect without both --mixup"},
           {train + "--cutmix 1 --cutmix-minmax 0.2 0.8", "--cutmix has no effect with --cutmix-minmax"},
           {train + "--crop-padding 8", "--crop-padding has no effect with --train-crop-mode rrc"},
           {train + "--train-crop-mode pad --scale 0.5 1", "--scale has no effect with --train-crop-mode pad"},
           {train + "--train-crop-mode src --ratio 0.5 1", "--ratio has no effect with --train-crop-mode src"},
           {train + "--aa original --color-jitter 0.2", "--color-jitter has no effect with --aa original"},
           {train + "--aa v0 --color-jitter-prob 0.2", "--color-jitter-prob has no effect with --aa v0"},
           {train + "--remode rand", "--remode has no effect without --reprob"},
           {train + "--recount 3", "--recount has no effect without --reprob"},
           {train + "--resplit", "--resplit has no effect without --reprob"},
           {train + "--linear-probe --grad-checkpointing", "--grad-checkpointing has no effect with --linear-probe"},
           {teacher + "--distillation-type none", "--kd-model-name has no effect with --distillation-type none"},
           {"pretrain autoencoder " + path("data") + " --decoder conv --decoder-heads 3",
            "--decoder-heads has no effect with --decoder conv"},
           {"pretrain clip " + path("data") + " --model " + best() + " --projection-dim 16",
            "--projection-dim has no effect on --model " + best()},
           {"train --task translate --src a --tgt b --model " + best() + " --vocab-size 300",
            "--vocab-size has no effect with --model " + best() + ", whose folder has a tokenizer"},
           {"train " + path("data") + " --task pixels --model " + best() + " --clusters 16",
            "--clusters has no effect with --model " + best()},
           {train + "--layer-decay-min-scale 0.1", "--layer-decay-min-scale has no effect without --layer-decay"},
           {train + "--linear-probe --freeze blocks.0", "--freeze has no effect with --linear-probe"},
           {train + "--decay-rate 0.5", "--decay-rate has no effect with --sched cosine"},
           {train + "--sched step --decay-milestones 5", "--decay-milestones has no effect with --sched step"},
           {train + "--no-aug --aa 3a", "--aa has no effect with --no-aug"},
           {"pretrain mae " + path("data") + " --clip-mode agc", "--clip-mode has no effect without --clip-grad"},
           {"augment " + image + " --no-aug --aa 3a --output x.png", "--aa has no effect with --no-aug"},
           {train + "--data-dir " + path("other"), "DATA is \"" + path("data") + "\", but --data-dir is \""},
           {"quantize " + best() + " --output x --split test", "--split requires --eval"},
           {"quantize " + best() + " --output x --calibration-images 4", "--calibration-images requires --calibrate"},
           {"soup " + best() + " --output x --split test", "--split requires --data"},
           {"bench infer --model x --mask-ratio 0.5", "--mask-ratio has no effect on infer: only pretrain"},
           {"bench infer --model vit_tiny_patch16_224 --seq-len 8",
            "--seq-len has no effect on infer: the model is one of images"},
           {"soup " + best() + " --output x --tta 2", "--tta requires --data"},
           {"embed " + best() + " " + path("data") + " --output x.safetensors --topk 3", "--topk requires --search"},
           {"encoder " + best() + " --output x --no-bottleneck", "--no-bottleneck has no effect on '" + best()},
           {"eval " + best() + " " + path("data/validation") + " --num-beams 2",
            "it takes no flags of language models, nor --num-beams and --batch-tokens"},
           {"knn a.safetensors b.safetensors --img-size 32", "--img-size has nothing to do"},
           {"knn a.safetensors b.safetensors --crop-pct 1", "--crop-pct has nothing to do"},
           {"latent x --between a b --strength 2", "--strength has no effect on --between"},
           {"positions vit_tiny_patch16_224 --layer 1", "--layer has no effect on 'vit_tiny_patch16_224'"},
           {"bleu a -m chrf --tokenize char", "--tokenize has no effect without --metrics bleu"},
           {"bleu a --chrf-beta 3", "--chrf-beta has no effect without --metrics chrf"},
       }) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
  }
  const std::string none = "augment " + image + " --aa original --color-jitter 0 --output " + path("none.png");
  EXPECT_EQ(vitrail(none).status, 0) << "none is what there is";
  std::ofstream(path("mine.toml")) << "clip_mode = \"agc\"\nmodel_ema_decay = 0.5\n";
  const Outcome config = vitrail(train + "--config " + path("mine.toml") + run_flags(path("runs"), "mine") + small());
  EXPECT_EQ(config.status, 0) << "a file may say what is not used: " << config.err;
}

TEST_F(Newcomer, IsToldWhatARunCannotChange) {
  const std::string run = path("runs/kept");
  ASSERT_EQ(vitrail("train " + path("data") + run_flags(path("runs"), "kept") + small()).status, 0);
  for (const std::string flag : {"--img-size 32", "--gp avg", "--in-chans 1", "--opt lion", "--freeze blocks.0",
                                 "--linear-probe", "--model-ema", "--model-kwargs depth=3", "--num-classes 3",
                                 "--seed 3", "--eval-metric loss", "--val-split ''", "--no-shuffle"}) {
    const Outcome outcome = vitrail("train --resume " + run + " --epochs 2 " + flag);
    EXPECT_EQ(outcome.status, 1) << flag;
    EXPECT_THAT(outcome.err, HasSubstr("vitrail: the run '" + run + "' has " + flag.substr(0, flag.find(' ')) + " "));
    EXPECT_THAT(outcome.err, HasSubstr(" and cannot go on with ")) << flag;
  }
  const Outcome changed = vitrail("train --resume " + run +
                                  " --epochs 2 --num-classes 2 --opt adam --lr 1e-4 -b 4 --sched step "
                                  "--decay-epochs 1 --weight-decay 0.1 --drop 0.1 --clip-grad 1");
  EXPECT_EQ(changed.status, 0) << changed.err;
  EXPECT_THAT(changed.out, HasSubstr("--opt was \"adamw\" and is now \"adam\""));
  EXPECT_THAT(changed.out, Not(HasSubstr("--num-classes")));
}

TEST_F(Newcomer, KeepsWhatACommandReads) {
  const std::string image = path("picture.png");
  fs::copy_file(path("data/validation/red/3.png"), image);
  const std::string before = io::read_text(image);
  const std::string features = path("features.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data/train") + " --output " + features).status, 0);
  fs::create_directory(path("kept_maps"));
  fs::copy_file(image, path("kept_maps/image.png"));
  for (const std::string& command :
       {"augment " + image + " --output " + image,
        "attention " + best() + " " + path("kept_maps/image.png") + " --output " + path("kept_maps"),
        "augment " + path("data/validation/red") + " " + image + " --output " + path("data/../picture.png"),
        "forward " + best() + " --input " + features + " --output " + features}) {
    const Outcome outcome = vitrail(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr("' is the input: choose another --output")) << command;
  }
  EXPECT_EQ(io::read_text(image), before);
  EXPECT_EQ(io::read_text(path("kept_maps/image.png")), before);
  // Features are known by what is in the file.
  const Outcome knn = vitrail("knn " + features + " " + features + " -k 1");
  EXPECT_EQ(knn.status, 0) << knn.err;
  const Outcome idle = vitrail("knn " + features + " " + features + " --split test");
  EXPECT_EQ(idle.status, 2);
  EXPECT_THAT(idle.err, HasSubstr("the features are there already: --split has nothing to do"));
}

TEST_F(Newcomer, MayPipeAListFromWindows) {
  const std::string image = path("data/validation/red/3.png");
  const Outcome listed = vitrail("predict " + best() + " -", image + "\r\n\r\n" + image + "\r\n");
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_EQ(listed.out, vitrail("predict " + best() + " " + image + " " + image).out);
}

TEST_F(Newcomer, IsToldOfFilesThatAreNoImages) {
  fs::copy(path("data"), path("mixed"), fs::copy_options::recursive);
  for (const char* name : {"train/red/notes.txt", "train/blue/2.gif", "validation/red/list.csv"}) {
    std::ofstream(path("mixed/") + name) << "something else";
  }
  const Outcome trained = vitrail("train " + path("mixed") + run_flags(path("runs"), "mixed") + small());
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("3 files that are not images by their names were passed over"));
  const Outcome evaluated = vitrail("eval " + best() + " " + path("mixed/validation") + " --json");
  EXPECT_THAT(evaluated.err, HasSubstr("1 file that is not an image by its name was passed over"));
  EXPECT_EQ(nlohmann::json::parse(evaluated.out)["count"], 32);
}

TEST_F(Newcomer, FindsALinkToNothingBrokenEverywhere) {
  fs::copy(path("data"), path("links"), fs::copy_options::recursive);
  fs::create_symlink("nowhere.png", path("links/train/red/99.png"));
  const std::string predict = "predict " + best() + " " + path("links/train");
  EXPECT_EQ(vitrail(predict).status, 1);
  const Outcome predicted = vitrail(predict + " --skip-broken");
  EXPECT_EQ(predicted.status, 0);
  EXPECT_THAT(predicted.err, HasSubstr("left out: "));
  EXPECT_THAT(predicted.err, HasSubstr("red/99.png"));
  const std::string train = "train " + path("links") + small();
  EXPECT_EQ(vitrail(train + run_flags(path("runs"), "link")).status, 1);
  const Outcome trained = vitrail(train + run_flags(path("runs"), "links") + " -b 11 --skip-broken");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("1 broken image left out so far"));
  EXPECT_THAT(trained.out, HasSubstr("red/99.png"));
}

TEST_F(Newcomer, TrainsOnWhenNobodyReadsTheOutput) {
  // The pipe's reader has gone before the first line.
  vitrail("train " + path("data") + run_flags(path("runs"), "piped") + small() + " | true");
  EXPECT_TRUE(fs::exists(path("runs/piped/best/config.json")));
  EXPECT_THAT(io::read_text(path("runs/piped/metrics.jsonl")), HasSubstr("top1"));
}

TEST_F(Newcomer, ResumesARunFromAnotherFolder) {
  const Outcome first =
      vitrail("train data --output runs --experiment moved --epochs 1 --val-dir data/validation" + small(), "",
              "cd " + folder_->path().string() + " &&");
  ASSERT_EQ(first.status, 0) << first.err;
  const nlohmann::json config = io::read_toml(path("runs/moved/config.toml"));
  EXPECT_EQ(config["data"]["data_dir"], path("data"));
  EXPECT_EQ(config["data"]["val_dir"], path("data/validation"));
  EXPECT_EQ(config["model"]["model"], "vit_tiny_patch16_224");
  const Outcome more = vitrail("train --resume " + path("runs/moved") + " --epochs 2", "", "cd / &&");
  ASSERT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, Not(HasSubstr("--data-dir was")));
  const Outcome again =
      vitrail("train data --resume runs/moved --epochs 3", "", "cd " + folder_->path().string() + " &&");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, Not(HasSubstr("--data-dir was")));

  fs::copy(path("data"), path("elsewhere"), fs::copy_options::recursive);
  const Outcome begun = vitrail("train " + path("elsewhere") + run_flags(path("runs"), "left") + small());
  ASSERT_EQ(begun.status, 0) << begun.err;
  fs::remove_all(path("elsewhere"));
  const Outcome lost = vitrail("train --resume " + path("runs/left") + " --epochs 2");
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(lost.err, HasSubstr("name them again by vitrail train DATA --resume " + path("runs/left")));
  const Outcome found = vitrail("train " + path("data") + " --resume " + path("runs/left") + " --epochs 2");
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("--data-dir was"));
}

TEST_F(Newcomer, LearnsThatTheOutputCouldNotBeWritten) {
  const auto status = [](const std::string& command) { return WEXITSTATUS(std::system(command.c_str())); };
  const std::string errors = path("errors");
  EXPECT_EQ(status(VITRAIL_PROGRAM " --version > /dev/full 2> " + errors), 1);
  EXPECT_EQ(io::read_text(errors), "vitrail: the output could not be written\n");
}

TEST_F(Newcomer, StartsRunsAtTheSameMoment) {
  const std::string train = VITRAIL_PROGRAM " train " + path("data") + small() + " --epochs 1 --output " + path("many");
  const auto both = [&](const std::string& flags) {
    return std::system((train + flags + " >/dev/null 2>&1 & " + train + flags + " >/dev/null 2>&1; wait").c_str());
  };
  EXPECT_EQ(both(""), 0);
  std::size_t runs = 0;
  for (const auto& run : fs::directory_iterator(path("many"))) {
    runs += fs::exists(run.path() / "last/train-state.safetensors") ? 1U : 0U;
  }
  EXPECT_EQ(runs, 2U) << "each has a folder of its own";
  both(" --experiment same");
  std::ifstream metrics(path("many/same/metrics.jsonl"));
  std::size_t evaluations = 0;
  for (std::string line; std::getline(metrics, line);) {
    evaluations += line.find("top1") != std::string::npos ? 1U : 0U;
  }
  EXPECT_EQ(evaluations, 1U) << "one of them has the folder, the other one is refused";
}

TEST_F(Newcomer, MeetsNamesThatAreNotUtf8) {
  const std::string odd = path("odd-\xff.png");
  fs::copy_file(path("data/validation/red/3.png"), odd);
  const Outcome predicted = vitrail("predict " + best() + " '" + odd + "' --format json");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("odd-\xef\xbf\xbd.png"));
  fs::copy(path("data"), path("named"), fs::copy_options::recursive);
  fs::rename(path("named/train/red"), path("named/train/r\xe9"
                                           "d"));
  const Outcome refused = vitrail("train " + path("named") + small() + run_flags(path("runs"), "named"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("is not valid UTF-8: rename it"));
}

TEST_F(Newcomer, AsksForMoreThanThereIs) {
  const Outcome epochs = vitrail("train " + path("data") + small() + " --epochs 9223372036854775807");
  EXPECT_EQ(epochs.status, 2);
  EXPECT_THAT(epochs.err, HasSubstr("--epochs must be at most 1000000"));
  const Outcome compared = vitrail("compare " + path("runs/one") + " " + path("runs/nope"));
  EXPECT_EQ(compared.status, 1);
  EXPECT_THAT(compared.err, HasSubstr("nope: no such folder"));
}

}  // namespace
}  // namespace vitrail::test
