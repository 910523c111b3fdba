/// \file
/// The options of every run, whatever its task: flags of timm's train.py under their names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/optim/ema.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/train/option_list.h"

namespace vitrail::train {

/// The options that every task has; add_batch_options() and the functions after it describe them.
struct RunOptions {
  RunOptions();

  // Batches
  std::int64_t batch_size = 64;
  std::optional<std::int64_t> validation_batch_size;
  std::int64_t grad_accum_steps = 1;
  std::int64_t grad_shards = 0;  ///< batches of an update on all ranks together; 0: grad_accum_steps on each
  bool amp = false;
  std::string amp_dtype = "bfloat16";

  // The network's parameters
  std::vector<std::string> freeze;
  bool grad_checkpointing = false;

  // Optimizer
  optim::OptimizerOptions optimizer;  ///< AdamW by default
  double weight_decay = 0.05;
  std::optional<double> weight_decay_end;  ///< the decay follows half a cosine to this value
  bool decoupled = false;             ///< --lr and --weight-decay are for 1024 samples and do not depend on --momentum
  std::optional<double> bias_scaler;  ///< factor on the learning rate of the biases of batch norms
  bool weight_decay_all = false;      ///< biases, norms, positions and tokens decay too
  std::optional<double> clip_grad;
  std::string clip_mode = "norm";
  std::optional<double> layer_decay;
  double layer_decay_min_scale = 0;

  /// The learning-rate schedule. Its fields lr, epochs and warmup_epochs are set from the fields below (schedule_of()).
  optim::ScheduleOptions schedule;
  std::optional<double> lr;
  std::optional<double> lr_backbone;  ///< of a network that has a backbone; unset: --lr
  std::optional<double> lr_base;
  std::int64_t lr_base_size = 256;
  std::string lr_base_scale;
  std::int64_t epochs = 100;
  std::optional<double> warmup_epochs;
  std::optional<std::int64_t> warmup_steps;

  // Moving average
  bool model_ema = false;
  optim::EmaOptions ema;

  // Lookahead
  std::int64_t lookahead = 0;  ///< updates between two returns to the slow weights; 0: none
  double lookahead_decay = 0.95;

  // Several ranks
  std::string grad_dtype = "f32";  ///< in which gradients travel
  bool sync_bn = false;            ///< statistics of batch norms over the batches that the ranks train at once
  std::int64_t bucket_mb = 4;
  std::int64_t zero = 0;  ///< what the ranks share: 1: the optimizer's state, 2: the summed gradients too
  std::int64_t check_every = 1000;
  double comm_timeout = 120;
  std::int64_t comm_thread = -1;  // -1: none
  std::string all_ranks_log;

  // The run
  std::int64_t seed = 42;
  std::int64_t workers = 1;
  std::int64_t threads = 0;
  std::int64_t log_interval = 50;
  std::int64_t val_interval = 1;
  std::int64_t recovery_interval = 0;
  std::int64_t checkpoint_hist = 0;
  std::string output = "output/train";
  std::string experiment;
  std::string eval_metric;  ///< empty: the task's first figure
  std::string resume;
};

constexpr std::int64_t most_workers = 1024;  ///< largest value of --workers

/// Each of these functions adds the options of one group to a list, so that a task can put its own list into the order
/// that its users expect. `units` names what a batch is counted in ("images").
void add_batch_options(OptionList& list, RunOptions& options, const std::string& units);
void add_parameter_options(OptionList& list, RunOptions& options);  ///< these belong to the group of the model
void add_optimizer_options(OptionList& list, RunOptions& options);
void add_schedule_options(OptionList& list, RunOptions& options, const std::string& units);
void add_average_options(OptionList& list, RunOptions& options);
/// `figures` are the names that --eval-metric may have.
void add_run_options(OptionList& list, RunOptions& options, const std::vector<std::string>& figures);
/// States that the options about evaluations, those of them that are in the list, do nothing "without" `what`, such as
/// "texts to evaluate on (--val-data)", unless `evaluates` holds. To be called when all options are in the list.
void idle_without_evaluation(OptionList& list, const std::string& what, const std::function<bool()>& evaluates);

/// Throws Error, naming --threads, if it is below 0 (all cores) or above kernels::most_threads().
void check_threads(std::int64_t threads);

/// Throws Error if options that are valid each by itself contradict each other.
void validate_run(const RunOptions& options);

/// The learning rate: --lr, with --decoupled divided by 1 + 1 / (1 - momentum) and for 1024 samples, or else --lr-base
/// times the ratio batch size · accumulated batches / --lr-base-size, or times the square root of that ratio, as
/// --lr-base-scale says.
double learning_rate(const RunOptions& options);
/// The schedule with its learning rate and its lengths in epochs and updates.
optim::ScheduleOptions schedule_of(const RunOptions& options, std::int64_t updates_per_epoch);

/// The dtype of activations and products: bf16 if --amp asks for it and the CPU has bf16 instructions; else f32. If
/// bf16 was asked for in vain, `message` gets a sentence that says so.
DType compute_dtype(const RunOptions& options, std::string* message = nullptr);
/// `wanted`, but f32 in place of bf16 on a CPU without bf16 instructions. In that case `message` gets a sentence that
/// says so.
DType usable_dtype(DType wanted, std::string* message = nullptr);

}  // namespace vitrail::train
