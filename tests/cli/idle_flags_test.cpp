// Flags that would change nothing are refused, or named.
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class IdleFlags : public Commands {};

TEST_F(IdleFlags, AreRefusedWithoutWhatTheyAreFor) {
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

TEST_F(IdleFlags, AreRefusedBesideWhatUndoesThem) {
  const std::string train = "train " + path("data") + small() + " --epochs 2 --output " + path("none") + " ";
  const std::string dino = "pretrain dino " + path("data/train") + " --output " + path("none") + " ";
  const std::string image = path("data/train/red/3.png");
  const std::string text = write("text.txt", "a line\nand another\n");
  const std::string gpt = golden_model("text/gpt2");
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
           {"launch -n 2 train " + path("data") + " --epochs 2", "follow --: vitrail launch -n 2 -- train"},
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

TEST_F(IdleFlags, AreRefusedWithoutEvaluation) {
  const std::string table = write("table.tsv", "pos\tgood\nneg\tbad\n");
  const std::string words = write("words.conll", "Berlin B-LOC\n");
  const std::string text = write("text.txt", "a line\nand another\n");
  const std::string teacher = "train " + path("data") + small() + " --distillation-type none ";
  for (const auto& [arguments, message] : std::initializer_list<std::pair<std::string, std::string>>{
           {"train " + table + " --val-share 0 --eval-metric loss",
            "--eval-metric has no effect without texts to evaluate on (--val-share, --val-data)"},
           {"train " + words + " --val-share 0 --val-interval 2", "--val-interval has no effect"},
           {"train --task lm " + text + " --val-share 0 --validation-batch-size 2",
            "--validation-batch-size has no effect without text to evaluate on"},
           {"train --task translate --src " + text + " --tgt " + text + " --val-interval 2",
            "--val-interval has no effect without texts to evaluate on (--val-src, --val-tgt)"},
           {"train --task embed --src " + text + " --tgt " + text + " --val-share 0 --val-interval 2",
            "--val-interval has no effect without pairs to evaluate on"},
           {"train --task caption " + path("data") + " --val-split '' --eval-metric loss",
            "--eval-metric has no effect without images to evaluate on"},
           {"pretrain bert " + text + " --val-share 0 --eval-metric loss", "--eval-metric has no effect"},
           {"pretrain clip " + path("data") + " --val-share 0 --val-interval 2", "--val-interval has no effect"},
           {teacher + "--teacher-model x", "--teacher-model has no effect with --distillation-type none"},
           {teacher + "--kd-model-name x", "--kd-model-name has no effect with --distillation-type none"},
           {"tokenizer train " + text + " --output y --special-tokens --vocab-size 300",
            "--special-tokens: a value was expected, and not the flag --vocab-size"},
           {"train x --experiment --epochs 3", "--experiment: a value was expected, and not the flag --epochs"},
           {"train x --lr 1,5", "--lr: must be a number such as 1.5 or 1e-3, but is 1,5"},
           {"augment x --scale 0,5 1", "--scale: must be a number such as 1.5 or 1e-3, but is 0,5"},
           {"generate x --do-sample --seed 1,5", "--seed: must be a whole number, but is 1,5"},
           {"generate x --temperature abc", "--temperature: must be a number such as 1.5 or 1e-3, but is abc"},
           {"index " + path("data") + " --model " + best() + " --output x.csv", "'x.csv' does not end in .index"},
           {"embed " + best() + " " + path("data") + " --output x.csv", "'x.csv' does not end in .safetensors"},
           {"embed " + golden_model("text/bert_bare") + " a --output x.csv", "'x.csv' does not end in .safetensors"},
       }) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  }
  EXPECT_THAT(vitrail("generate " + golden_model("text/gpt2") + " a --stop=--json").err,
              Not(HasSubstr("value was expected")));
}

TEST_F(IdleFlags, AreNamedBesideOthersOfTheirKind) {
  EXPECT_THAT(train(path("data"), "both", small() + " --val-dir " + path("data/validation") + " --val-split test").err,
              HasSubstr("there is no part 'test'"));
  EXPECT_THAT(vitrail("bench train --model " + best() + " --lengths " + write("lengths.txt", "3 4\n")).err,
              HasSubstr("is no translator"));
  for (const std::string& command :
       {"scenes " + path("never") + " --count 1", "patches " + best() + " x.png --method kmeans"}) {
    EXPECT_THAT(vitrail(command + " --seed=-1").err, HasSubstr("must be at least 0, but is -1")) << command;
  }
  const Outcome twice = vitrail("compare " + path("runs/one") + " " + path("runs/one/") + " --seeds");
  EXPECT_THAT(twice.err, HasSubstr("is named twice"));
  EXPECT_THAT(twice.out, Not(HasSubstr("(2 runs)")));
}

TEST_F(IdleFlags, AreRefusedWithoutDataAndAugmentation) {
  const std::string image = path("data/train/red/0.png");
  const std::string soup = "soup " + best() + " " + best() + " --output " + path("soup");
  refuses(soup + " --amp", "--amp requires --data", 2);
  refuses(soup + " --dtype bf16", "requires --data", 2);
  refuses("augment " + image + " --no-aug --seed 3 --output " + path("sheet.png"), "--seed has no effect with --no-aug",
          2);
  refuses("train " + path("data") + small() + " --eval-metric top5 --output " + path("none"),
          "--eval-metric top5 is 100 % of any model for 2 classes: take top1 or loss");
  const std::string lines = write("lines.txt", "a b c d\n");
  refuses("bleu " + lines + " -i " + lines + " --sentence-level --format json",
          "--format json has no effect with --sentence-level", 2);
  EXPECT_EQ(vitrail("bleu " + lines + " -i " + lines + " --sentence-level --format text").status, 0);
  refuses("bleu " + lines + " -i " + lines + " " + lines, "-i takes one file, and '" + lines + "' is another", 2);
  refuses("pretrain dino " + path("data/train") + " --epochs 1 --freeze-last-layer 5",
          "--freeze-last-layer 5 would leave it untrained in all 1 --epochs", 2);
}

TEST_F(IdleFlags, AreRefusedInScenesAndNamedInWarmUps) {
  refuses("scenes " + path("twins") + " --task same-different --count 2 --overlap",
          "--overlap has no effect with --task same-different", 2);
  refuses("predict " + best() + " scenes:count=1,task=same-different,overlap", "leave out 'overlap'");
  refuses("train " + path("data") + small() + " --mixup 0.2 --mixup-off-epoch 9 --epochs 1",
          "--mixup-off-epoch 9 never comes in 1 --epochs", 2);
  refuses("attention " + best() + " --text hi", "is no model of texts: name an IMAGE in place of --text", 2);
  const Outcome slow = vitrail("train " + path("data") + small() + " --epochs 1 --warmup-steps 999 --output " +
                               path("runs") + " --experiment slow");
  EXPECT_THAT(slow.out, HasSubstr("note: the warm-up of 999 updates does not end within the 4 of the training"));
}

class IdleSchedules : public OnImages {};

TEST_F(IdleSchedules, AreRefused) {
  const std::string train = "train " + path("data") + small() + " --epochs 3 --output " + path("runs");
  refuses(train + " --lr 1e-3 --warmup-lr 1e-2", "--warmup-lr 0.01 is above the learning rate 0.001", 2);
  refuses(train + " --sched multistep --decay-milestones 5 9", "--decay-milestones [5, 9] never decays in 3 --epochs",
          2);
  const Outcome still = vitrail(train + " --lr 0 --experiment still");
  ASSERT_EQ(still.status, 0) << still.err;
  ASSERT_EQ(vitrail(train + " --lr 0 --experiment again --epochs 1").status, 0);
  EXPECT_EQ(io::read_bytes(path("runs/still/last/model.safetensors")),
            io::read_bytes(path("runs/again/last/model.safetensors")));
}

}  // namespace
}  // namespace vitrail::test
