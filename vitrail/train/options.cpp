#include "vitrail/train/options.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/auto_augment.h"
#include "vitrail/io/json.h"
#include "vitrail/io/toml.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/evaluate.h"
#include "vitrail/train/loss.h"

namespace vitrail::train {
namespace {

using Names = std::vector<std::string_view>;

void one_of(std::string_view name, const std::string& value, const Names& names) {
  check(std::ranges::find(names, value) != names.end(), "{} must be one of {}, not '{}'", flag_of(name),
        fmt::join(names, ", "), value);
}

template <class Number>
void at_least(std::string_view name, Number value, Number low) {
  check(value >= low, "{} must be at least {}, but is {}", flag_of(name), low, value);
}

void positive(std::string_view name, double value) {
  check(value > 0 && std::isfinite(value), "{} must be a positive number, but is {}", flag_of(name), value);
}

// Within [0, 1), or [0, 1] if `closed`.
void share(std::string_view name, double value, bool closed) {
  check(value >= 0 && (closed ? value <= 1 : value < 1), "{} must be from 0 {} 1, but is {}", flag_of(name),
        closed ? "to" : "to below", value);
}

void range_of_two(std::string_view name, const std::vector<double>& values) {
  check(values.empty() || (values.size() == 2 && values[0] > 0 && values[0] <= values[1]),
        "{} takes two positive numbers, the smaller first, not [{}]", flag_of(name), fmt::join(values, ", "));
}

// Whose rates grow with the root of the batch, as timm has it.
bool is_adaptive(const std::string& opt) {
  return opt.find("ada") != std::string::npos || opt.find("lamb") != std::string::npos;
}

void validate_data(const TrainOptions& o) {
  check(!o.data_dir.empty(), "--data-dir is missing: the folder (or .tar, CIFAR, MNIST or .csv file) of the pictures");
  at_least("batch_size", o.batch_size, std::int64_t{1});
  at_least("validation_batch_size", o.validation_batch_size.value_or(1), std::int64_t{1});
  at_least("grad_accum_steps", o.grad_accum_steps, std::int64_t{1});
  at_least("num_classes", o.num_classes.value_or(1), std::int64_t{1});
  at_least("img_size", o.img_size.value_or(1), std::int64_t{1});
  check(o.input_size.empty() || o.input_size.size() == 3,
        "--input-size takes three numbers, channels, height and width, not {}", o.input_size.size());
  for (const std::int64_t size : o.input_size) {
    at_least("input_size", size, std::int64_t{1});
  }
  check(o.input_size.empty() || (!o.img_size && !o.in_chans),
        "--input-size says what --img-size and --in-chans say: give one or the others");
  at_least("workers", o.workers, std::int64_t{0});
  at_least("threads", o.threads, std::int64_t{0});
  at_least("crop_padding", o.crop_padding, std::int64_t{0});
  one_of("amp_dtype", o.amp_dtype, {"bfloat16", "bf16", "float32", "f32"});
  if (o.crop_pct) {
    positive("crop_pct", *o.crop_pct);
  }
  if (!o.train_crop_mode.empty()) {
    one_of("train_crop_mode", o.train_crop_mode, {"rrc", "rkrc", "rkrr", "src", "pad"});
  }
}

void validate_regularization(const TrainOptions& o) {
  range_of_two("scale", o.scale);
  range_of_two("ratio", o.ratio);
  range_of_two("cutmix_minmax", o.cutmix_minmax);
  for (const auto& [name, value] : {std::pair{"hflip", o.hflip},
                                    {"vflip", o.vflip},
                                    {"color_jitter_prob", o.color_jitter_prob},
                                    {"grayscale_prob", o.grayscale_prob},
                                    {"reprob", o.reprob},
                                    {"mixup_prob", o.mixup_prob},
                                    {"mixup_switch_prob", o.mixup_switch_prob}}) {
    share(name, value, true);
  }
  for (const auto& [name, value] : {std::pair{"drop", o.drop},
                                    {"drop_path", o.drop_path.value_or(0)},
                                    {"smoothing", o.smoothing},
                                    {"model_ema_decay", o.model_ema_decay}}) {
    share(name, value, false);
  }
  if (!o.aa.empty()) {
    data::auto_augment_named(o.aa);
  }
  at_least("mixup", o.mixup, 0.0);
  at_least("cutmix", o.cutmix, 0.0);
  check(o.aug_repeats == 0 || (o.aug_repeats >= 1 && o.aug_repeats <= 1e6),
        "--aug-repeats must be 0 (off) or at least 1, but is {}", o.aug_repeats);
  one_of("mixup_mode", o.mixup_mode, {"batch", "pair", "elem", "half"});
  at_least("mixup_off_epoch", o.mixup_off_epoch, std::int64_t{0});
}

void validate_optimizer(const TrainOptions& o) {
  one_of("opt", o.opt, optim::optimizer_names());
  check(o.opt_betas.empty() || o.opt_betas.size() == 2, "--opt-betas takes two numbers, not {}", o.opt_betas.size());
  for (const double beta : o.opt_betas) {
    share("opt_betas", beta, false);
  }
  share("momentum", o.momentum, false);
  at_least("weight_decay", o.weight_decay, 0.0);
  if (o.clip_grad) {
    positive("clip_grad", *o.clip_grad);
  }
  one_of("clip_mode", o.clip_mode, {"norm", "value", "agc"});
  if (o.layer_decay) {
    check(*o.layer_decay > 0 && *o.layer_decay <= 1, "--layer-decay must be above 0 and at most 1, but is {}",
          *o.layer_decay);
  }
  one_of("sched", o.sched, {"cosine", "tanh", "poly", "step", "multistep", "constant", "none"});
  at_least("lr", o.lr.value_or(0), 0.0);
  at_least("min_lr", o.min_lr, 0.0);
  at_least("warmup_lr", o.warmup_lr, 0.0);
  if (!o.lr_base_scale.empty()) {
    one_of("lr_base_scale", o.lr_base_scale, {"linear", "sqrt"});
  }
  at_least("lr_base_size", o.lr_base_size, std::int64_t{1});
  at_least("epochs", o.epochs, std::int64_t{1});
  at_least("warmup_epochs", o.warmup_epochs.value_or(0), 0.0);
  at_least("cooldown_epochs", o.cooldown_epochs, std::int64_t{0});
  check(o.sched == "none" || o.warmup_prefix || o.warmup_epochs.value_or(0) < static_cast<double>(o.epochs),
        "--warmup-epochs {} leaves nothing of the {} --epochs", o.warmup_epochs.value_or(0), o.epochs);
  positive("decay_epochs", o.decay_epochs);
}

void validate_distillation(const TrainOptions& o) {
  one_of("distillation_type", o.distillation_type, {"hard", "soft", "none"});
  share("distillation_alpha", o.distillation_alpha, true);
  positive("kd_temperature", o.kd_temperature);
  for (const auto& [name, weight] :
       {std::pair{"task_loss_weight", o.task_loss_weight}, {"distill_loss_weight", o.distill_loss_weight}}) {
    check(!weight || (*weight >= 0 && std::isfinite(*weight)), "{} must not be negative, but is {}", flag_of(name),
          weight.value_or(0));
  }
  check(o.distill_loss_weight || o.task_loss_weight.value_or(0) <= 1,
        "--task-loss-weight {} leaves nothing for the teacher: give --distill-loss-weight too",
        o.task_loss_weight.value_or(0));
  check(o.unlabeled_dir.empty() || o.mixup_mode != "half",
        "--mixup-mode half mixes pictures with labels and without: with --unlabeled-dir choose batch, pair or elem");
  check(o.unlabeled_dir.empty() || distillation_options(o).type != Distillation::Type::none,
        "--unlabeled-dir needs a teacher for pictures without labels: --kd-model-name, with --distillation-type hard "
        "or soft");
}

void validate_pretraining(const TrainOptions& o) {
  if (o.pretrain.empty()) {
    return;
  }
  one_of("pretrain", o.pretrain, {"mae"});
  check(o.mask_ratio > 0 && o.mask_ratio < 1, "--mask-ratio must be above 0 and below 1, but is {}", o.mask_ratio);
  at_least("decoder_dim", o.decoder_dim, std::int64_t{1});
  at_least("decoder_depth", o.decoder_depth, std::int64_t{1});
  at_least("decoder_heads", o.decoder_heads, std::int64_t{1});
  check(o.mixup == 0 && o.cutmix == 0 && o.cutmix_minmax.empty() && !o.bce_loss && !o.linear_probe && !o.num_classes,
        "--mixup, --cutmix, --bce-loss, --linear-probe and --num-classes are about labels: {} has none", o.pretrain);
  check(o.drop == 0 && o.drop_path.value_or(0) == 0,
        "--drop and --drop-path are not for {}: hiding patches takes their place", o.pretrain);
}

}  // namespace

Distillation distillation_options(const TrainOptions& o) {
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

std::string flag_of(std::string_view option) {
  std::string text = fmt::format("--{}", option);
  std::ranges::replace(text, '_', '-');
  return text;
}

void validate(const TrainOptions& options) {
  validate_data(options);
  validate_regularization(options);
  validate_optimizer(options);
  validate_distillation(options);
  validate_pretraining(options);
  at_least("log_interval", options.log_interval, std::int64_t{0});
  at_least("val_interval", options.val_interval, std::int64_t{1});
  at_least("recovery_interval", options.recovery_interval, std::int64_t{0});
  one_of("eval_metric", options.eval_metric, {"top1", "top5", "loss"});
  check_tta(options.tta);
  check(options.experiment.find('/') == std::string::npos,
        "--experiment is the name of one folder inside --output, without '/', not '{}'", options.experiment);
}

double learning_rate(const TrainOptions& options) {
  if (options.lr) {
    return *options.lr;
  }
  const bool adaptive = is_adaptive(options.opt);
  const double base = options.lr_base.value_or(adaptive ? 1e-3 : options.opt == "lion" ? 1e-4 : 0.1);
  const double ratio =
      static_cast<double>(options.batch_size * options.grad_accum_steps) / static_cast<double>(options.lr_base_size);
  const bool by_root = options.lr_base_scale.empty() ? adaptive : options.lr_base_scale == "sqrt";
  return base * (by_root ? std::sqrt(ratio) : ratio);
}

std::vector<OptionChange> changes(const TrainOptions& before, const TrainOptions& after) {
  std::vector<OptionChange> result;
  const auto text = [](const auto& field) {
    if constexpr (requires { field.has_value(); }) {
      return field ? io::toml_value(*field) : std::string("not set");
    } else {
      return io::toml_value(field);
    }
  };
  visit_options(before, [&](std::string_view, std::string_view name, const auto& field, auto&&...) {
    result.push_back({std::string(name), text(field), ""});
  });
  std::size_t i = 0;
  visit_options(after, [&](std::string_view, std::string_view, const auto& field, auto&&...) {
    result[i++].after = text(field);
  });
  std::erase_if(result, [](const OptionChange& change) { return change.before == change.after; });
  return result;
}

std::string to_toml(const TrainOptions& options, const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string out;
  std::string_view table;
  visit_options(options, [&](std::string_view group, std::string_view name, const auto& field, auto&&...) {
    if (group == "pretraining" && options.pretrain.empty()) {
      return;
    }
    if (group != table) {
      std::string key(group);
      std::ranges::replace(key, ' ', '_');
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", key);
      table = group;
    }
    if constexpr (requires { field.has_value(); }) {
      out += field ? fmt::format("{} = {}\n", name, io::toml_value(*field)) : fmt::format("# {} is not set\n", name);
    } else {
      out += fmt::format("{} = {}\n", name, io::toml_value(field));
    }
  });
  if (!facts.empty()) {
    out += "\n[facts]\n";
    for (const auto& [name, value] : facts) {
      out += fmt::format("{} = {}\n", name, io::toml_value(value));
    }
  }
  return out;
}

TrainOptions options_from_toml(const std::filesystem::path& path, TrainOptions defaults) {
  const nlohmann::json file = io::read_toml(path);
  // The tables only order the options for people: their names are all different.
  nlohmann::json flat = nlohmann::json::object();
  const auto take = [&](const std::string& name, const nlohmann::json& value) {
    check(!flat.contains(name), "{}: '{}' is given twice", path.string(), name);
    flat[name] = value;
  };
  for (const auto& [name, value] : file.items()) {
    if (!value.is_object()) {
      take(name, value);
    } else if (name != "facts") {
      for (const auto& [inner, inner_value] : value.items()) {
        take(inner, inner_value);
      }
    }
  }
  io::Fields fields(flat, path.string());
  visit_options(defaults, [&](std::string_view, std::string_view name, auto& field, auto&&...) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (requires { field.has_value(); }) {
      if (fields.kind(name) != io::Kind::absent) {
        field = fields.get<typename Field::value_type>(name);
      }
    } else {
      field = fields.get<Field>(name, field);
    }
  });
  fields.finish();
  return defaults;
}

}  // namespace vitrail::train
