#include "vitrail/train/run_options.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

// What turns learning rates of --decoupled into those of SGD. With a gradient that stays the same, SGD with Nesterov
// momentum m moves 1 + 1 / (1 - m) times as far as the gradient says (airbench's kilostep_scale).
double rate_scale(const RunOptions& options) {
  if (!options.decoupled) {
    return 1;
  }
  const auto samples = static_cast<double>(options.batch_size * options.grad_accum_steps);
  return samples / (1024 * (1 + 1 / (1 - options.optimizer.momentum)));
}

// Whether an optimizer counts as adaptive, so that its learning rate grows with the square root of the batch size, as
// in timm.
bool is_adaptive(const std::string& opt) {
  return opt.find("ada") != std::string::npos || opt.find("lamb") != std::string::npos;
}

// Whether a run can go on with another optimizer or momentum: if it keeps the same of each parameter.
bool keeps_moments(const optim::OptimizerOptions& before, const optim::OptimizerOptions& after) {
  return optim::moment_names(before) == optim::moment_names(after);
}

}  // namespace

RunOptions::RunOptions() {
  optimizer.opt = "adamw";
  schedule.on_updates = true;
  schedule.decay_epochs = 30;
  schedule.decay_milestones = {30, 60, 90};
  schedule.cycle_decay = 0.5;
  ema.decay = 0.9998;
}

void add_batch_options(OptionList& list, RunOptions& o, const std::string& units) {
  list.group("batches");
  list.add("batch_size", o.batch_size, "N", io::capitalized(units) + " a batch")
      .at_least(1)
      .at_most(1e6)
      .short_name("-b");
  list.add("validation_batch_size", o.validation_batch_size, "N",
           io::capitalized(units) + " a batch in evaluation (default: --batch-size)")
      .at_least(1)
      .at_most(1e6);
  list.add("grad_accum_steps", o.grad_accum_steps, "N", "Batches whose gradients are averaged for one update")
      .at_least(1)
      .at_most(1e6);
  list.add("amp", o.amp, "", "Mixed precision: products and activations in --amp-dtype, weights in float32");
  list.add("amp_dtype", o.amp_dtype, "DTYPE", "Lower precision of --amp: bfloat16, or float32 for none")
      .one_of({"bfloat16", "bf16", "float32", "f32"})
      .needs("--amp", [&o] { return o.amp; });
}

void add_parameter_options(OptionList& list, RunOptions& o) {
  list.add("freeze", o.freeze, "NAME",
           "Do not train these parameters: patch_embed blocks.0-5 '*.norm1' layer:0-6 (see docs/training.md)")
      .settled();
  list.add("grad_checkpointing", o.grad_checkpointing, "",
           "Keep only the input of each block and run it again in backward: less memory, a third more work");
}

void add_optimizer_options(OptionList& list, RunOptions& o) {
  list.group("optimizer");
  const auto names = optim::optimizer_names();
  list.add("opt", o.optimizer.opt, "OPTIMIZER",
           "Optimizer: adamw, adam, nadamw, lion, lamb, lambc, lars, larc, nlars, nlarc, sgd (Nesterov momentum) or "
           "momentum")
      .one_of({names.begin(), names.end()})
      .settled_unless([](const OptionValue& before, const OptionValue& after) {
        return keeps_moments({.opt = std::get<std::string>(before)}, {.opt = std::get<std::string>(after)});
      });
  list.add("opt_eps", o.optimizer.eps, "EPSILON", "Epsilon of AdamW, Adam, NAdamW (default 1e-8) and LAMB (1e-6)")
      .at_least(0)
      .only_with("--opt", o.optimizer.opt, optim::optimizers_that_keep("exp_avg_sq"));
  list.add("opt_betas", o.optimizer.betas, "BETA",
           "Betas of all but SGD and LARS (default 0.9 0.999, of Lion 0.9 0.99)")
      .below_one()
      .only_with("--opt", o.optimizer.opt, optim::optimizers_that_keep("exp_avg"));
  list.add("momentum", o.optimizer.momentum, "M", "Momentum of SGD and LARS")
      .below_one()
      .only_with("--opt", o.optimizer.opt, optim::optimizers_that_keep("momentum_buffer"))
      .settled_unless([&opt = o.optimizer.opt](const OptionValue& before, const OptionValue& after) {
        return keeps_moments({.opt = opt, .momentum = std::get<double>(before)},
                             {.opt = opt, .momentum = std::get<double>(after)});
      });
  list.add("weight_decay", o.weight_decay, "W", "Decay of weights other than norms, biases and position tokens")
      .at_least(0);
  list.add("weight_decay_end", o.weight_decay_end, "W",
           "Weight decay in the end, half a cosine from --weight-decay (default: it stays)")
      .at_least(0)
      .check_that([&o](const Option& self) {
        check(!o.weight_decay_end || o.weight_decay > 0, "{} needs a --weight-decay above 0 to begin with",
              self.flag());
      });
  list.add("weight_decay_all", o.weight_decay_all, "", "Decay biases, norms, positions and tokens too")
      .idle_if("with --weight-decay 0", [&o] { return o.weight_decay == 0; })
      .check_that([&o](const Option& self) {
        check(!o.weight_decay_all || !o.layer_decay, "{} and --layer-decay exclude each other", self.flag());
      });
  list.add("decoupled", o.decoupled, "",
           "SGD's hyper-parameters as airbench's: --lr, --warmup-lr, --min-lr and --weight-decay for 1024 samples, "
           "which "
           "neither --momentum, nor the decay --lr, changes")
      .settled()
      .check_that([&o](const Option& self) {
        check(!o.decoupled || ((o.optimizer.opt == "sgd") && o.lr && *o.lr > 0 && !o.weight_decay_end),
              "{} is for --opt sgd with --lr, without --weight-decay-end", self.flag());
      });
  list.add("bias_scaler", o.bias_scaler, "S",
           "Factor on the learning rate, and not on the decay, of the biases of batch norms")
      .positive()
      .check_that([&o](const Option& self) {
        check(!o.bias_scaler || !o.weight_decay_end, "{} and --weight-decay-end exclude each other", self.flag());
      });
  list.add("clip_grad", o.clip_grad, "NORM", "Clip gradients to this norm, value or share (see --clip-mode); 0: do not")
      .at_least(0);
  list.add("clip_mode", o.clip_mode, "MODE",
           "What --clip-grad limits: norm, value, agc (adaptive) or parameter (the norm of each)")
      .one_of(optim::clip_mode_names())
      .needs("--clip-grad", [&o] { return o.clip_grad.has_value(); });
  list.add("layer_decay", o.layer_decay, "RATE", "Learning rate is multiplied by this for each layer below the head")
      .check_that([&o](const Option& self) {
        check(!o.layer_decay || (*o.layer_decay > 0 && *o.layer_decay <= 1),
              "{} must be above 0 and at most 1, but is {}", self.flag(), o.layer_decay.value_or(0));
      });
  list.add("layer_decay_min_scale", o.layer_decay_min_scale, "S", "Smallest factor of --layer-decay")
      .share()
      .needs("--layer-decay", [&o] { return o.layer_decay.has_value(); });
}

void add_schedule_options(OptionList& list, RunOptions& o, const std::string& units) {
  const std::string& sched = o.schedule.sched;
  using Kind = optim::ScheduleKind;
  const std::vector<std::string> cyclic = optim::schedule_names(&Kind::cyclic);
  const std::vector<std::string> warms_up = optim::schedule_names(&Kind::warms_up);
  const std::vector<std::string> to_min_lr = optim::schedule_names(&Kind::to_min_lr);
  const auto gives_rate = [&o]() -> std::string { return o.lr ? fmt::format("beside --lr {}", *o.lr) : ""; };
  const auto has_no_warmup = [&o] { return o.warmup_epochs == 0.0; };
  const auto has_one_cycle = [&o] { return o.schedule.cycle_limit == 1; };
  list.group("learning rate");
  list.add("sched", o.schedule.sched, "SCHEDULER",
           "Schedule: cosine, tanh, poly, step, multistep, constant (after the warm-up), none, noam (warm-up, then "
           "the inverse square root of the updates), warmup_cosine (MoCo v3's), warmup_linear (airbench's) or dino")
      .one_of(optim::schedule_names());
  list.add("sched_on_updates", o.schedule.on_updates, "", "Follow the schedule at each update, not only each epoch")
      .idle_if("with --sched none", [&sched] { return sched == "none"; });
  list.add("lr", o.lr, "LR", "Learning rate; overrides --lr-base").at_least(0);
  list.add("lr_base", o.lr_base, "LR",
           fmt::format("Learning rate at --lr-base-size {} an update (default: 1e-3 for AdamW and LAMB, 1e-4 for Lion, "
                       "0.1 for SGD and LARS)",
                       units))
      .idle_if(gives_rate);
  list.add("lr_base_size", o.lr_base_size, "N", "Batch size that --lr-base is meant for")
      .at_least(1)
      .idle_if(gives_rate);
  list.add("lr_base_scale", o.lr_base_scale, "SCALE",
           "How the learning rate grows with the batch: linear, or sqrt (default of AdamW, NAdamW and LAMB)")
      .one_of({"linear", "sqrt"}, true)
      .idle_if(gives_rate);
  list.add("lr_k_decay", o.schedule.k_decay, "K", "Exponent k of k-decay, for cosine and poly")
      .positive()
      .only_with("--sched", sched, {"cosine", "poly"});
  list.add("lr_cycle_mul", o.schedule.cycle_mul, "MULT",
           "Factor by which each cycle is longer than the one before (cosine, tanh, poly)")
      .positive()
      .only_with("--sched", sched, cyclic)
      .idle_if("with --lr-cycle-limit 1", has_one_cycle);
  list.add("lr_cycle_decay", o.schedule.cycle_decay, "MULT",
           "Factor by which each cycle begins lower than the one before")
      .only_with("--sched", sched, cyclic)
      .idle_if("with --lr-cycle-limit 1", has_one_cycle);
  list.add("lr_cycle_limit", o.schedule.cycle_limit, "N", "Number of cycles")
      .positive()
      .only_with("--sched", sched, cyclic);
  list.add("warmup_lr", o.schedule.warmup_lr, "LR",
           "Learning rate at which the warm-up begins, at most the one that it ends with")
      .at_least(0)
      .check_that([&o](const Option& self) {
        const double usual = optim::ScheduleOptions().warmup_lr;  // which a smaller rate lowers
        check(o.schedule.warmup_lr <= usual || o.schedule.warmup_lr * rate_scale(o) <= learning_rate(o),
              "{} {} is above the learning rate {}, with which the warm-up ends", self.flag(), o.schedule.warmup_lr,
              learning_rate(o));
      })
      .only_with("--sched", sched, optim::schedule_names(&Kind::from_warmup_lr))
      .idle_if("with --warmup-epochs 0", has_no_warmup);
  list.add("min_lr", o.schedule.min_lr, "LR", "Learning rate at which the schedule ends")
      .at_least(0)
      .only_with("--sched", sched, to_min_lr)
      .check_that([&o, to_min_lr](const Option& self) {
        const bool ends = std::ranges::find(to_min_lr, o.schedule.sched) != to_min_lr.end();
        check(!ends || o.schedule.min_lr * rate_scale(o) <= learning_rate(o),
              "{} {} is above the learning rate {}, from which the schedule falls", self.flag(), o.schedule.min_lr,
              learning_rate(o));
      });
  list.add("epochs", o.epochs, "N", "Passes over the data").at_least(1).at_most(1e6);
  list.add("warmup_epochs", o.warmup_epochs, "N", "Epochs of linear warm-up (default: a tenth of all, at most 5)")
      .at_least(0)
      .only_with("--sched", sched, warms_up);
  list.add("warmup_steps", o.warmup_steps, "N",
           "Updates of linear warm-up, unless --warmup-epochs says how many epochs")
      .at_least(0)
      .only_with("--sched", sched, warms_up)
      .idle_if("with --warmup-epochs", [&o] { return o.warmup_epochs.has_value(); });
  list.add("warmup_prefix", o.schedule.warmup_prefix, "", "Warm up before the schedule begins, not within it")
      .only_with("--sched", sched, {"cosine", "tanh", "poly", "step", "multistep"})
      .idle_if("with --warmup-epochs 0", has_no_warmup);
  list.add("cooldown_epochs", o.schedule.cooldown_epochs, "N", "Epochs at --min-lr after all others")
      .at_least(0)
      .only_with("--sched", sched, cyclic);
  list.add("decay_epochs", o.schedule.decay_epochs, "N", "Epochs between decays (step)")
      .positive()
      .only_with("--sched", sched, {"step"});
  list.add("decay_rate", o.schedule.decay_rate, "RATE",
           "Factor of each decay (step, multistep), or the exponent (poly)")
      .at_least(0)
      .only_with("--sched", sched, {"step", "multistep", "poly"});
  list.add("decay_milestones", o.schedule.decay_milestones, "EPOCH", "Epochs at which the rate decays (multistep)")
      .check_that([&o](const Option& self) {
        check(std::ranges::is_sorted(o.schedule.decay_milestones), "{} must ascend, but are {}", self.flag(),
              option_text(o.schedule.decay_milestones));
      })
      .only_with("--sched", sched, {"multistep"});
}

void add_average_options(OptionList& list, RunOptions& o) {
  list.group("moving average");
  const auto average = [&o] { return o.model_ema; };
  list.add("model_ema", o.model_ema, "", "Keep an exponential moving average of the weights, and evaluate it")
      .settled_unless([](const OptionValue&, const OptionValue& after) { return !std::get<bool>(after); });
  list.add("model_ema_decay", o.ema.decay, "D", "Decay of the average with each update")
      .below_one()
      .needs("--model-ema", average);
  list.add("model_ema_warmup", o.ema.warmup, "", "Begin the average with a smaller decay")
      .needs("--model-ema", average);
  const auto looks_ahead = [&o] { return o.lookahead > 0; };
  list.add("lookahead", o.lookahead, "K",
           "Lookahead: each K updates the weights return to slow ones that follow them, and in the end for good; 0: "
           "none")
      .at_least(0)
      .settled();
  list.add("lookahead_decay", o.lookahead_decay, "D",
           "Share of the slow weights that stays after K of T updates: D^K (t / T)^3 at update t")
      .below_one()
      .needs("--lookahead", looks_ahead);
}

namespace {

void add_rank_options(OptionList& list, RunOptions& o) {
  list.group("several ranks");
  list.add(
          "grad_shards", o.grad_shards, "S",
          "Batches of an update on all ranks together, added in an order that does not depend on the ranks: any number "
          "of them that divides S gives the same bits; 0: --grad-accum-steps on each rank")
      .at_least(0)
      .at_most(1e6)
      .check_that([&o](const Option& self) {
        check(o.grad_shards == 0 || o.grad_accum_steps == 1,
              "{} says how many batches an update has, and --grad-accum-steps does so too: take one of them",
              self.flag());
      });
  list.add("grad_dtype", o.grad_dtype, "DTYPE", "In what gradients travel: f32, or bf16 in half the bytes")
      .one_of({"f32", "bf16"})
      .check_that([&o](const Option& self) {
        check(o.grad_shards == 0 || o.grad_dtype == "f32",
              "{} bf16 rounds what travels, so that the bits would depend on the number of ranks, which --grad-shards "
              "excludes",
              self.flag());
      });
  list.add("sync_bn", o.sync_bn, "",
           "Batch norms take their statistics over the batches that all ranks train at once (default: each its own)")
      .check_that([&o](const Option& self) {
        check(!o.sync_bn || o.grad_shards == 0,
              "{} takes statistics over the ranks, so that the bits would depend on their number, which --grad-shards "
              "excludes",
              self.flag());
      });
  list.add("zero", o.zero, "STAGE",
           "ZeRO: 1: each rank keeps and updates its part of the optimizer's state; 2: and of the summed gradients; 0: "
           "all of it")
      .at_least(0)
      .at_most(2)
      .check_that([&o](const Option& self) {
        check(o.zero == 0 || !optim::has_trust_ratio(o.optimizer.opt),
              "{} {} leaves each rank a part of a parameter, but the trust ratio of --opt {} needs all of it: take "
              "adamw, or {} 0",
              self.flag(), o.zero, o.optimizer.opt, self.flag());
        check(o.zero < 2 || o.clip_grad.value_or(0) == 0 || o.clip_mode == "norm" || o.clip_mode == "value",
              "{} 2 leaves each rank a part of a gradient, but --clip-mode {} needs all of it: take {} 1, or "
              "--clip-mode norm",
              self.flag(), o.clip_mode, self.flag());
      });
  list.add("bucket_mb", o.bucket_mb, "MB", "Gradients that travel together, while backward goes on with the others")
      .at_least(1)
      .at_most(1024);
  list.add(
          "check_every", o.check_every, "N",
          "Updates between comparisons of the ranks' weights, which are compared at each checkpoint too; 0: then alone")
      .at_least(0);
  list.add("all_ranks_log", o.all_ranks_log, "DIR",
           "Folder for what the ranks but the first have to say, which is not printed: rank-1.log …");
  list.add("comm_thread", o.comm_thread, "CORE",
           "A thread on this core moves messages while the others compute; the ranks of a machine take CORE, CORE + 1, "
           "… (-1: none)")
      .at_least(-1)
      .at_most(1 << 20);
  list.add("comm_timeout", o.comm_timeout, "SECONDS", "After this long without another rank, say which, and end")
      .positive()
      .at_most(1e6);
}

}  // namespace

void add_run_options(OptionList& list, RunOptions& o, const std::vector<std::string>& figures) {
  add_rank_options(list, o);
  list.group("run");
  list.add("seed", o.seed, "S", "Seed of all that is random").settled();
  list.add("workers", o.workers, "N", "Threads that prepare batches ahead; 0: none")
      .at_least(0)
      .at_most(most_workers)
      .short_name("-j");
  list.add("threads", o.threads, "N", "Compute threads; 0: all cores").check_that([&o](const Option&) {
    check_threads(o.threads);
  });
  list.add("log_interval", o.log_interval, "N", "Updates between lines of progress").at_least(0);
  list.add("val_interval", o.val_interval, "N", "Epochs between evaluations").at_least(1);
  list.add("checkpoint_hist", o.checkpoint_hist, "N",
           "Keep the models of the last N epochs in epochs/ (0: none); `vitrail soup` averages those of images and of "
           "texts")
      .at_least(0);
  list.add("recovery_interval", o.recovery_interval, "N",
           "Updates between checkpoints inside an epoch; 0: one every ten minutes")
      .at_least(0);
  list.add("output", o.output, "PATH", "Folder in which run folders are made").settled();
  list.add("experiment", o.experiment, "NAME", "Name of the run folder (default: date, model and size)")
      .settled()
      .check_that([&o](const Option& self) {
        check(o.experiment.find('/') == std::string::npos,
              "{} is the name of one folder inside --output, without '/', not '{}'", self.flag(), o.experiment);
        check(o.experiment != "." && o.experiment != "..", "{} is the name of a folder inside --output, not '{}'",
              self.flag(), o.experiment);
      });
  list.add("eval_metric", o.eval_metric, "METRIC",
           fmt::format("Figure by which the best model is chosen: {}", fmt::join(figures, ", ")))
      .one_of(figures, true)
      .settled();
  list.add("resume", o.resume, "PATH", "Run folder to go on with, to the same bits as if it had never stopped");
}

void idle_without_evaluation(OptionList& list, const std::string& what, const std::function<bool()>& evaluates) {
  for (const char* name : {"validation_batch_size", "val_interval", "eval_metric", "tta"}) {
    if (Option* option = list.find(name)) {
      option->needs(what, evaluates);
    }
  }
}

void check_threads(std::int64_t threads) {
  const int most = kernels::most_threads();
  check(threads >= 0 && threads <= most,
        "--threads must be from 0 (all cores) to {} (four for each core that there is), but is {}", most, threads);
}

void validate_run(const RunOptions& o) {
  check(o.schedule.sched == "none" || o.schedule.warmup_prefix ||
            o.warmup_epochs.value_or(0) < static_cast<double>(o.epochs),
        "--warmup-epochs {} leaves nothing of the {} --epochs", o.warmup_epochs.value_or(0), o.epochs);
  check(o.schedule.sched != "step" || o.schedule.decay_epochs < static_cast<double>(o.epochs),
        "--sched step with --decay-epochs {} never decays in {} --epochs (--decay-milestones are those of multistep)",
        o.schedule.decay_epochs, o.epochs);
  const std::vector<std::int64_t>& milestones = o.schedule.decay_milestones;
  check(o.schedule.sched != "multistep" || (!milestones.empty() && milestones.front() <= o.epochs),
        "--sched multistep with --decay-milestones {} never decays in {} --epochs", option_text(milestones), o.epochs);
}

double learning_rate(const RunOptions& options) {
  if (options.lr) {
    return *options.lr * rate_scale(options);
  }
  const std::string& opt = options.optimizer.opt;
  const bool adaptive = is_adaptive(opt);
  const double base = options.lr_base.value_or(adaptive ? 1e-3 : opt == "lion" ? 1e-4 : 0.1);
  const double ratio =
      static_cast<double>(options.batch_size * options.grad_accum_steps) / static_cast<double>(options.lr_base_size);
  const bool by_root = options.lr_base_scale.empty() ? adaptive : options.lr_base_scale == "sqrt";
  return base * (by_root ? std::sqrt(ratio) : ratio);
}

optim::ScheduleOptions schedule_of(const RunOptions& options, std::int64_t updates_per_epoch) {
  optim::ScheduleOptions result = options.schedule;
  result.lr = learning_rate(options);
  result.warmup_lr = std::min(result.warmup_lr * rate_scale(options), result.lr);
  result.min_lr *= rate_scale(options);
  result.epochs = options.epochs;
  result.warmup_epochs = options.warmup_epochs.value_or(std::min(5.0, static_cast<double>(options.epochs) / 10));
  if (options.warmup_steps && !options.warmup_epochs) {
    result.warmup_epochs = static_cast<double>(*options.warmup_steps) / static_cast<double>(updates_per_epoch);
  }
  result.updates_per_epoch = updates_per_epoch;
  return result;
}

DType compute_dtype(const RunOptions& options, std::string* message) {
  const bool lower = options.amp && (options.amp_dtype == "bfloat16" || options.amp_dtype == "bf16");
  return usable_dtype(lower ? DType::bf16 : DType::f32, message);
}

DType usable_dtype(DType wanted, std::string* message) {
  if (wanted != DType::bf16 || kernels::has_bf16()) {
    return wanted;
  }
  if (message != nullptr) {
    *message = "this CPU has no bf16 instructions: running in float32";
  }
  return DType::f32;
}

}  // namespace vitrail::train
