#include <cmath>

#include "vitrail/tensor/error.h"
#include "vitrail/train/study/evaluate.h"
#include "vitrail/train/tasks/classify.h"

namespace vitrail::train {
namespace {

void add_classifier_options(OptionList& list, ClassifyOptions& o) {
  list.group("model");
  list.add("model", o.model, "MODEL", "Name (see: vitrail models), or a model folder to start from").path().settled();
  list.add("pretrained_path", o.pretrained_path, "PATH",
           "Model folder to start from: a new head for other classes, positions resized for another image size")
      .path()
      .settled();
  list.add("initial_checkpoint", o.initial_checkpoint, "PATH",
           "Model folder (without --model, its network is taken), or file of weights, that must all fit; an encoder "
           "leaves the classifier new")
      .path()
      .settled();
  list.add("num_classes", o.num_classes, "N", "Number of classes (default: those of the data)").at_least(1).settled();
  add_model_options(list, o);
  list.add("gp", o.gp, "POOL", "Global pooling: token, avg, max, avgmax, map, sum or token_avg (default: the model's)")
      .one_of({"token", "avg", "max", "avgmax", "map", "sum", "token_avg"}, true)
      .settled();
  list.add("drop", o.drop, "P", "Dropout rate before the head (default: the model's)").below_one();
  list.add("drop_path", o.drop_path, "P",
           "Stochastic depth rate of the last block, from 0 in the first (default: the model's, 0.1 for Swin)")
      .below_one();
  list.add("linear_probe", o.linear_probe, "", "Train the head alone").settled();
  list.add("whiten_bias_epochs", o.whiten_bias_epochs, "N",
           "Epochs in which the bias of a whitened first layer is trained (default: 3; airbench94)")
      .at_least(0);
  add_parameter_options(list, o);
}

void add_mix_options(OptionList& list, ClassifyOptions& o) {
  const auto mixes = [&o] { return o.mix.enabled(); };
  list.add("mixup", o.mix.mixup, "ALPHA", "MixUp with this alpha; 0: off").at_least(0);
  list.add("cutmix", o.mix.cutmix, "ALPHA", "CutMix with this alpha; 0: off")
      .at_least(0)
      .idle_if("with --cutmix-minmax", [&o] { return o.mix.cutmix_minmax.has_value(); });
  list.add("cutmix_minmax", o.mix.cutmix_minmax, "PCT", "CutMix with boxes between these shares of a side").ascending();
  list.add("mixup_prob", o.mix.mixup_prob, "P", "Probability of MixUp or CutMix for a batch")
      .share()
      .needs("--mixup or --cutmix", mixes);
  list.add("mixup_switch_prob", o.mix.mixup_switch_prob, "P", "Probability of CutMix where both are on")
      .share()
      .needs("both --mixup and --cutmix",
             [&o] { return o.mix.mixup > 0 && (o.mix.cutmix > 0 || o.mix.cutmix_minmax.has_value()); });
  list.add("mixup_mode", o.mixup_mode, "MODE",
           "Scope of a mixture: batch, pair, elem (one image) or half (elem, and half of the batch is left)")
      .one_of({"batch", "pair", "elem", "half"})
      .needs("--mixup or --cutmix", mixes);
  list.add("mixup_off_epoch", o.mix.mixup_off_epoch, "N", "Epoch from which on nothing is mixed; 0: none")
      .at_least(0)
      .needs("--mixup or --cutmix", mixes);
  list.add("smoothing", o.smoothing, "S", "Label smoothing").below_one();
  list.add("bce_loss", o.bce_loss, "", "Binary cross-entropy for each class instead of cross-entropy");
}

void add_distillation_options(OptionList& list, ClassifyOptions& o) {
  const auto not_negative = [](const std::optional<double>& weight) {
    return [&weight](const Option& self) {
      check(!weight || (*weight >= 0 && std::isfinite(*weight)), "{} must not be negative, but is {}", self.flag(),
            weight.value_or(0));
    };
  };
  const auto without_teacher = [&o]() -> std::string {
    return o.kd_model_name.empty() ? "without --kd-model-name" : "";
  };
  list.group("distillation");
  list.add("kd_model_name", o.kd_model_name, "MODEL", "Teacher: a model folder (or name) to learn from as well")
      .path()
      .idle_if("with --distillation-type none", [&o] { return o.distillation_type == "none"; })
      .also("--teacher-model");
  list.add("distillation_type", o.distillation_type, "TYPE",
           "What the teacher teaches: hard, the class that it chooses; soft, its probabilities; none")
      .one_of({"hard", "soft", "none"})
      .idle_if([&o, without_teacher] { return o.distillation_type == "none" ? "" : without_teacher(); })
      .also("--kd-token-distill-type");
  list.add("distillation_alpha", o.distillation_alpha, "A", "Share of the loss with the teacher, 1 - A with labels")
      .share()
      .idle_if(without_teacher)
      .idle_if([&o]() -> std::string {
        return o.task_loss_weight ? "beside --task-loss-weight"
                                  : (o.distill_loss_weight ? "beside --distill-loss-weight" : "");
      });
  list.add("task_loss_weight", o.task_loss_weight, "W", "Weight of the loss with labels, instead of 1 - A")
      .idle_if(without_teacher)
      .check_that(not_negative(o.task_loss_weight));
  list.add("distill_loss_weight", o.distill_loss_weight, "W",
           "Weight of the loss with the teacher, instead of A (default: 1 - --task-loss-weight if that is given)")
      .idle_if(without_teacher)
      .check_that(not_negative(o.distill_loss_weight));
  list.add("kd_temperature", o.kd_temperature, "TAU", "Temperature of both probabilities (soft)")
      .positive()
      .idle_if(without_teacher)
      .only_with("--distillation-type", o.distillation_type, {"soft"})
      .also("--distillation-tau");
  list.add("unlabeled_dir", o.unlabeled_dir, "DIR",
           "More images, without labels, mixed in among the others: they have the loss with the teacher alone")
      .path();
}

}  // namespace

void ClassifyOptions::describe(OptionList& list) {
  add_data_options(list, *this);
  add_val_share_option(list, *this);
  add_classifier_options(list, *this);
  add_fitting_options(list, *this);
  add_batch_augment_options(list, *this);
  add_mix_options(list, *this);
  add_distillation_options(list, *this);
  add_average_options(list, *this);
  add_run_options(list, *this, {"top1", "top5", "loss"});
  list.add("tta", tta, "N",
           "Evaluate by the average of each image and its mirror image (2), of both and both moved by a pixel (6), or "
           "by "
           "the image alone (0)")
      .check_that([this](const Option&) { check_tta(tta); });
  for (const char* name : {"freeze", "grad_checkpointing", "layer_decay"}) {
    list.find(name)->idle_if("with --linear-probe", [this] { return linear_probe; });
  }
  idle_without_images(list, *this);
}

void ClassifyOptions::validate() const {
  ImageTaskOptions::validate();
  check(mix.mixup_off_epoch <= epochs, "--mixup-off-epoch {} never comes in {} --epochs", mix.mixup_off_epoch, epochs);
  check(distill_loss_weight || task_loss_weight.value_or(0) <= 1,
        "--task-loss-weight {} leaves nothing for the teacher: give --distill-loss-weight too",
        task_loss_weight.value_or(0));
  check(unlabeled_dir.empty() || mixup_mode != "half",
        "--mixup-mode half mixes images with labels and without: with --unlabeled-dir choose batch, pair or elem");
  check(unlabeled_dir.empty() || distillation_options(*this).type != Distillation::Type::none,
        "--unlabeled-dir needs a teacher for images without labels: --kd-model-name, with --distillation-type hard or "
        "soft");
}

Distillation distillation_options(const ClassifyOptions& o) {
  Distillation result;
  result.type = o.kd_model_name.empty() ? Distillation::Type::none : distillation_named(o.distillation_type);
  result.tau = o.kd_temperature;
  result.task_weight = 1 - o.distillation_alpha;
  result.distill_weight = o.distillation_alpha;
  if (o.distill_loss_weight) {
    result.task_weight = o.task_loss_weight.value_or(1);
    result.distill_weight = *o.distill_loss_weight;
  } else if (o.task_loss_weight) {
    result.task_weight = *o.task_loss_weight;
    result.distill_weight = 1 - *o.task_loss_weight;
  }
  return result;
}

}  // namespace vitrail::train
