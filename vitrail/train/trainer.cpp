#include "vitrail/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>
#include <new>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/file.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/train/checkpoint.h"
#include "vitrail/train/learner.h"
#include "vitrail/train/pretrain.h"
#include "vitrail/train/probe.h"
#include "vitrail/train/run_log.h"
#include "vitrail/train/setup.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Inside an epoch a checkpoint is saved at least this often, unless --recovery-interval says when.
constexpr double seconds_between_checkpoints = 600;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Thrown out of an evaluation when the person asks to stop.
struct Stopped {};

// The folder of a new run: --experiment, or date, model and picture size with a number if that exists.
fs::path new_folder(const TrainOptions& options, const models::Model& model) {
  if (!options.experiment.empty()) {
    fs::path folder = fs::path(options.output) / options.experiment;
    check(!fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder)),
          "the run '{0}' exists: go on with it by --resume {0}, or choose another --experiment or --output",
          folder.string());
    return folder;
  }
  const std::time_t now = std::time(nullptr);
  const std::string name =
      fmt::format("{:%Y%m%d-%H%M%S}-{}-{}", fmt::localtime(now), model.architecture, model.pretrained.height);
  fs::path folder = fs::path(options.output) / name;
  for (int i = 1; fs::exists(folder); ++i) {
    folder = fs::path(options.output) / fmt::format("{}-{}", name, i);
  }
  return folder;
}

// NaN is better than nothing.
bool better(const std::string& metric, double a, double b) {
  return !std::isnan(a) && (std::isnan(b) || (metric == "loss" ? a < b : a > b));
}

// What a run that goes on has in its checkpoint, or where it lies: not to be changed.
bool is_settled(const std::string& option) {
  for (const char* name : {"model", "pretrained_path", "initial_checkpoint", "num_classes", "img_size", "input_size",
                           "in_chans", "gp", "model_kwargs", "output", "experiment", "pretrain", "norm_pix_loss",
                           "decoder_dim", "decoder_depth", "decoder_heads"}) {
    if (option == name) {
      return true;
    }
  }
  return false;
}

double metric_of(const std::string& name, const Evaluation& evaluation) {
  return name == "loss" ? evaluation.loss : name == "top5" ? evaluation.top5 : evaluation.top1;
}

class Run {
 public:
  Run(const TrainOptions& options, const FitHooks& hooks);
  FitResult go();
  // What to add to the words of an error: what is left, and what can be done.
  std::string with_advice(std::string words) const;

 private:
  void create();
  void restore();
  void take_changes();
  void write_config(const fs::path& folder) const;
  void announce() const;
  bool train_epoch();
  void update();
  void close_epoch();
  void compute_features();
  EvaluateOptions evaluate_options(const std::string& title, std::int64_t pictures);
  Evaluation evaluate_model(bool average);
  void keep_if_best(const std::string& name, double metric, bool average);
  void require_finite_weights() const;
  void save();
  bool save_is_due() const;
  void show_progress();
  std::string best_text() const;
  std::string command() const { return options_.pretrain.empty() ? "vitrail train" : "vitrail pretrain"; }
  FitResult result() const;

  fs::path last() const { return folder_ / "last"; }
  bool stop_wanted() const { return hooks_.should_stop && hooks_.should_stop(); }
  double epoch_loss() const;
  void say(const std::string& text) const {
    if (hooks_.progress != nullptr) {
      hooks_.progress->line(text);
    }
  }

  const TrainOptions& options_;
  const FitHooks& hooks_;
  fs::path folder_;
  Setup setup_;
  std::unique_ptr<Probe> probe_;  // null: the model is run as a whole
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<RunLog> log_;
  Counters counters_;
  std::int64_t updates_per_epoch_ = 0;
  std::int64_t saved_step_ = 0;
  std::size_t broken_told_ = 0;
  bool stopped_ = false;
  Evaluation evaluation_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point saved_at_ = Clock::now();
  Clock::time_point step_ended_ = Clock::now();
  double seconds_before_ = 0;
  double training_seconds_ = 0;  // of this call, without evaluations
  double waited_seconds_ = 0;    // of them, for pictures
  double epoch_seconds_ = 0;
  double last_loss_ = 0;
};

Run::Run(const TrainOptions& options, const FitHooks& hooks) : options_(options), hooks_(hooks) {
  validate(options);
  if (options.threads > 0) {
    kernels::set_threads(static_cast<int>(options.threads));
  }
  const bool resuming = !options.resume.empty();
  folder_ = options.resume;
  setup_ = set_up(options, resuming ? last() : fs::path());
  probe_ = Probe::make(options, setup_);
  loader_ = probe_ != nullptr ? probe_->training_loader(options) : training_loader(options, setup_);
  counters_.batches_per_epoch = loader_->batches_per_epoch();
  updates_per_epoch_ = (counters_.batches_per_epoch + options.grad_accum_steps - 1) / options.grad_accum_steps;
  Objective objective = setup_.objective;
  if (!objective) {
    objective = classification(options, *setup_.model.net, setup_.teacher.get(),
                               probe_ != nullptr ? probe_->forward() : Forward());
  }
  learner_ = std::make_unique<Learner>(options, *setup_.model.net, updates_per_epoch_, setup_.dtype, objective);
  if (resuming) {
    restore();
  } else {
    create();
  }
}

void Run::create() {
  folder_ = new_folder(options_, setup_.model);
  counters_.threads = kernels::threads();
  // The folder appears with a checkpoint of step 0 in it, so that there is always one to go on from.
  io::replace_folder(folder_, [&](const fs::path& temporary) {
    write_config(temporary);
    save_checkpoint(temporary / "last", setup_.model, counters_, learner_->state());
  });
  log_ = std::make_unique<RunLog>(folder_, 0);
}

void Run::write_config(const fs::path& folder) const {
  TrainOptions options = options_;
  options.resume.clear();
  const std::vector<std::pair<std::string, std::string>> facts = {
      {"version", VITRAIL_VERSION},
      {"cpu", kernels::cpu_name()},
      {"threads", fmt::format("{}", kernels::threads())},
      {"dtype", std::string(name_of(setup_.dtype))},
      {"architecture", setup_.model.architecture},
      {"model_args", setup_.model.model_args},
      {"parameters", fmt::format("{}", setup_.model.net->parameters.count())},
      {"training_pictures", fmt::format("{}", setup_.training->size())},
      {"validation_pictures", fmt::format("{}", setup_.validation == nullptr ? 0 : setup_.validation->size())},
      {"classes", fmt::format("{}", setup_.training->classes().size())},
      {"learning_rate", fmt::format("{}", learning_rate(options_))},
  };
  io::write_atomically(folder / "config.toml", to_toml(options, facts));
}

// Options that are not what they were when the run began: says so, and writes them down for the next time.
void Run::take_changes() {
  TrainOptions now = options_;
  now.resume.clear();
  const std::vector<OptionChange> changed = changes(options_from_toml(folder_ / "config.toml"), now);
  for (const OptionChange& change : changed) {
    check(!is_settled(change.name), "the run '{}' has {} {} and cannot go on with {}: begin a new one",
          folder_.string(), flag_of(change.name), change.before, change.after);
    say(fmt::format("{} was {} and is now {}", flag_of(change.name), change.before, change.after));
  }
  if (!changed.empty()) {
    write_config(folder_);
  }
}

void Run::restore() {
  const TrainState state = load_train_state(last(), setup_.model);
  check(state.counters.batches_per_epoch == counters_.batches_per_epoch || state.counters.batch == 0,
        "the run '{}' stopped inside an epoch of {} batches, but now there are {}: the data or --batch-size changed",
        folder_.string(), state.counters.batches_per_epoch, counters_.batches_per_epoch);
  const std::int64_t batches_per_epoch = counters_.batches_per_epoch;
  counters_ = state.counters;
  counters_.batches_per_epoch = batches_per_epoch;
  learner_->load_state(state.tensors);
  take_changes();
  seconds_before_ = counters_.seconds;
  saved_step_ = counters_.step;
  log_ = std::make_unique<RunLog>(folder_, counters_.metrics_bytes);
  if (counters_.threads != kernels::threads()) {
    say(fmt::format("this run began with {} threads: with {} its numbers may differ in the last bits",
                    counters_.threads, kernels::threads()));
    counters_.threads = kernels::threads();
  }
}

void Run::announce() const {
  for (const std::string& message : setup_.messages) {
    say(message);
  }
  const models::Model& model = setup_.model;
  say(fmt::format(
      "{}, {:.2f} M parameters, {}x{} pixels, {}", model.architecture,
      static_cast<double>(model.net->parameters.count()) * 1e-6, model.pretrained.width, model.pretrained.height,
      options_.pretrain.empty() ? fmt::format("{} classes", model.net->num_classes()) : pretraining_text(options_)));
  say(fmt::format("{} training and {} validation pictures, {} updates of {} pictures an epoch", setup_.training->size(),
                  setup_.validation == nullptr ? 0 : setup_.validation->size(), updates_per_epoch_,
                  options_.batch_size * options_.grad_accum_steps));
  say(fmt::format("{}, learning rate {:.4g}, {}, {} threads: {}", options_.opt, learning_rate(options_),
                  name_of(setup_.dtype), kernels::threads(), folder_.string()));
  if (counters_.step > 0) {
    say(fmt::format("going on after step {}, in epoch {}", counters_.step, counters_.epoch + 1));
  }
}

FitResult Run::go() {
  announce();
  if (probe_ != nullptr) {
    compute_features();
  }
  while (counters_.epoch < learner_->epochs() && !stopped_) {
    if (!train_epoch()) {
      break;
    }
    close_epoch();
  }
  const FitResult outcome = result();
  if (stopped_) {
    save();
    say(fmt::format("stopped after step {}; go on with: {} --resume {}", counters_.step, command(), folder_.string()));
  } else {
    say(fmt::format("{} epochs in {}, {:.1f} % of the training spent waiting for pictures", counters_.epoch,
                    duration_text(counters_.seconds), 100 * outcome.wait_share));
    say(fmt::format("best {} in epoch {}: {}", best_text(), counters_.best_epoch, (folder_ / "best").string()));
  }
  return outcome;
}

std::string Run::best_text() const {
  if (setup_.validation == nullptr) {
    return fmt::format("training loss {:.4f}", counters_.best_metric);
  }
  return options_.eval_metric == "loss"
             ? fmt::format("loss {:.4f}", counters_.best_metric)
             : fmt::format("{} {:.2f} %", options_.eval_metric == "top1" ? "top-1" : "top-5", counters_.best_metric);
}

std::string Run::with_advice(std::string words) const {
  if (words.find("out of memory") != std::string::npos) {
    words += fmt::format("; try a --batch-size below {} (and more --grad-accum-steps)", options_.batch_size);
  }
  return words +
         fmt::format("; the checkpoint of step {} is whole: {} --resume {}", saved_step_, command(), folder_.string());
}

// False if it was stopped.
bool Run::train_epoch() {
  const double waited_before = loader_->seconds_waited();
  const Clock::time_point begin = Clock::now();
  const auto done = [&] { return (counters_.batch + options_.grad_accum_steps - 1) / options_.grad_accum_steps; };
  loader_->start_epoch(counters_.epoch, counters_.batch);
  if (hooks_.progress != nullptr) {
    hooks_.progress->begin(fmt::format("epoch {}/{}", counters_.epoch + 1, learner_->epochs()), updates_per_epoch_,
                           done());
  }
  step_ended_ = begin;
  while (counters_.batch < counters_.batches_per_epoch && !stopped_) {
    update();
    stopped_ = stop_wanted();
    if (save_is_due() && !stopped_) {
      save();
    }
  }
  if (hooks_.progress != nullptr) {
    hooks_.progress->end();
  }
  epoch_seconds_ = seconds_since(begin);
  training_seconds_ += epoch_seconds_;
  waited_seconds_ += loader_->seconds_waited() - waited_before;
  if (loader_->broken().size() > broken_told_) {
    say(fmt::format("{} broken pictures left out so far, e.g. {}", loader_->broken().size(),
                    loader_->broken()[broken_told_]));
    broken_told_ = loader_->broken().size();
  }
  return !stopped_;
}

// One update of the weights, from the gradients of --grad-accum-steps batches.
void Run::update() {
  const std::int64_t group = std::min(options_.grad_accum_steps, counters_.batches_per_epoch - counters_.batch);
  double loss = 0;
  std::int64_t images = 0;
  std::int64_t received = 0;
  std::optional<double> norm;
  const double share = 1.0 / static_cast<double>(group);
  const double lr = learner_->lr(counters_.step);
  for (std::int64_t i = 0; i < group; ++i) {
    data::Batch batch;
    if (!loader_->next(batch)) {  // broken pictures have made the epoch shorter
      counters_.batch = counters_.batches_per_epoch;
      break;
    }
    const auto number = static_cast<std::uint64_t>(counters_.epoch * counters_.batches_per_epoch + batch.number);
    double one = 0;
    if (group == 1) {
      const Learner::Step step = learner_->step(batch, number, counters_.step);
      one = step.loss;
      norm = step.gradient_norm;
    } else {
      one = learner_->gather(batch, number, static_cast<float>(share));
    }
    check(std::isfinite(one),
          "the loss is {} in step {} (epoch {}, learning rate {:.3g}): try a smaller --lr, more --warmup-epochs or "
          "--clip-grad 1",
          one, counters_.step + 1, counters_.epoch + 1, lr);
    loss += one * share;
    images += batch.x.size(0);
    ++received;
    counters_.batch = batch.number + 1;
  }
  if (images == 0) {
    return;
  }
  const double missing =
      static_cast<double>(group) / static_cast<double>(received);  // 1 unless the epoch was cut short
  loss *= missing;
  if (group > 1) {
    norm = learner_->update(counters_.step, missing);
  }
  ++counters_.step;
  const Clock::time_point now = Clock::now();
  const double seconds = std::max(std::chrono::duration<double>(now - step_ended_).count(), 1e-9);
  step_ended_ = now;
  log_->add(StepRecord{counters_.step, counters_.epoch + 1, loss, lr, static_cast<double>(images) / seconds, norm});
  show_progress();
  if (hooks_.on_step) {
    hooks_.on_step(counters_.step, loss);
  }
}

void Run::show_progress() {
  if (hooks_.progress == nullptr) {
    return;
  }
  // Means over the last steps are steadier than the numbers of one.
  const std::vector<StepRecord>& steps = log_->history().steps;
  const std::size_t count = std::min<std::size_t>(steps.size(), 20);
  double loss = 0;
  double seconds_an_image = 0;
  for (std::size_t i = steps.size() - count; i < steps.size(); ++i) {
    loss += steps[i].loss / static_cast<double>(count);
    seconds_an_image += 1 / steps[i].images_per_second / static_cast<double>(count);
  }
  const std::int64_t done = (counters_.batch + options_.grad_accum_steps - 1) / options_.grad_accum_steps;
  hooks_.progress->update(
      done, fmt::format("loss {:.3f}, lr {:.2e}, {:.0f} images/s", loss, steps.back().lr, 1 / seconds_an_image),
      (learner_->epochs() - counters_.epoch - 1) * updates_per_epoch_);
}

bool Run::save_is_due() const {
  return options_.recovery_interval > 0 ? counters_.step % options_.recovery_interval == 0
                                        : seconds_since(saved_at_) > seconds_between_checkpoints;
}

// The mean training loss of the current epoch, also if parts of it ran before a stop.
double Run::epoch_loss() const {
  double sum = 0;
  std::int64_t count = 0;
  const std::vector<StepRecord>& steps = log_->history().steps;
  for (auto step = steps.rbegin(); step != steps.rend() && step->epoch == counters_.epoch + 1; ++step) {
    sum += step->loss;
    ++count;
  }
  return count == 0 ? std::nan("") : sum / static_cast<double>(count);
}

// Evaluates at the end of an epoch, keeps the best model, and saves. If the person asks to stop meanwhile, the run is
// left at the end of the epoch's training, and evaluation begins anew on resuming.
void Run::close_epoch() {
  require_finite_weights();
  last_loss_ = epoch_loss();
  const bool final = counters_.epoch + 1 == learner_->epochs();
  std::string text = fmt::format("epoch {}/{}: loss {:.4f}", counters_.epoch + 1, learner_->epochs(), last_loss_);
  try {
    if (setup_.validation == nullptr) {
      keep_if_best("loss", last_loss_, learner_->has_average());
    } else if (final || (counters_.epoch + 1) % options_.val_interval == 0) {
      std::vector<EvaluationRecord> records;
      for (const bool average : learner_->has_average() ? std::vector{false, true} : std::vector{false}) {
        evaluation_ = evaluate_model(average);
        records.push_back(
            {counters_.step, counters_.epoch + 1, evaluation_.top1, evaluation_.top5, evaluation_.loss, average});
        text += fmt::format(", {}loss {:.4f}, top-1 {:.2f} %, top-5 {:.2f} %", average ? "average's " : "evaluation ",
                            evaluation_.loss, evaluation_.top1, evaluation_.top5);
      }
      for (const EvaluationRecord& record : records) {
        log_->add(record);
      }
      keep_if_best(options_.eval_metric, metric_of(options_.eval_metric, evaluation_), learner_->has_average());
    }
  } catch (const Stopped&) {
    stopped_ = true;
    return;
  }
  ++counters_.epoch;
  counters_.batch = 0;
  save();
  say(text + fmt::format(", {:.1f} s", epoch_seconds_));
}

void Run::compute_features() {
  const std::int64_t validation = setup_.validation == nullptr ? 0 : setup_.validation->size();
  try {
    probe_->compute(options_, evaluate_options("features", setup_.training->size() + validation));
  } catch (const Stopped&) {
    stopped_ = true;
  }
  if (hooks_.progress != nullptr) {
    hooks_.progress->end();
  }
  if (!stopped_) {
    say("only the head is trained, on features that were computed once");
  }
}

// A pass over pictures without training, with a bar of this title. Throws Stopped if the person asks to stop.
EvaluateOptions Run::evaluate_options(const std::string& title, std::int64_t pictures) {
  EvaluateOptions options;
  options.batch_size = options_.validation_batch_size.value_or(options_.batch_size);
  options.dtype = setup_.dtype;
  options.workers = static_cast<int>(options_.workers);
  options.skip_broken = options_.skip_broken;
  options.tta = options_.tta;
  if (hooks_.progress != nullptr) {
    hooks_.progress->begin(title, pictures);
  }
  options.progress = [&](std::int64_t done, std::int64_t) {
    if (hooks_.progress != nullptr && hooks_.progress->terminal()) {
      hooks_.progress->update(done, "");
    }
    if (stop_wanted()) {
      throw Stopped{};
    }
  };
  return options;
}

Evaluation Run::evaluate_model(bool average) {
  const EvaluateOptions options =
      evaluate_options(average ? "evaluating the average" : "evaluating", setup_.validation->size());
  std::optional<Learner::Averaged> averaged;
  if (average) {
    averaged.emplace(*learner_);
  }
  Evaluation evaluation =
      probe_ != nullptr ? probe_->evaluate(options) : evaluate(setup_.model, *setup_.validation, options);
  if (hooks_.progress != nullptr) {
    hooks_.progress->end();
  }
  return evaluation;
}

void Run::keep_if_best(const std::string& name, double metric, bool average) {
  if (counters_.best_epoch > 0 && !better(name, metric, counters_.best_metric)) {
    return;
  }
  counters_.best_epoch = counters_.epoch + 1;
  counters_.best_metric = metric;
  std::optional<Learner::Averaged> averaged;
  if (average) {
    averaged.emplace(*learner_);
  }
  models::save_model(setup_.model, folder_ / "best");
}

void Run::require_finite_weights() const {
  const std::string bad = first_bad_parameter(*setup_.model.net);
  check(bad.empty(),
        "'{}' holds NaN or infinity after step {}: try a smaller --lr, more --warmup-epochs or --clip-grad 1", bad,
        counters_.step);
}

void Run::save() {
  require_finite_weights();
  counters_.metrics_bytes = log_->commit(static_cast<double>(updates_per_epoch_));
  counters_.seconds = seconds_before_ + seconds_since(began_);
  save_checkpoint(last(), setup_.model, counters_, learner_->state());
  saved_step_ = counters_.step;
  saved_at_ = Clock::now();
}

FitResult Run::result() const {
  FitResult result;
  result.folder = folder_;
  result.steps = counters_.step;
  result.epochs = counters_.epoch;
  result.stopped = stopped_;
  result.last_loss = last_loss_;
  result.evaluation = evaluation_;
  result.best_metric = counters_.best_metric;
  result.best_epoch = counters_.best_epoch;
  result.seconds = seconds_since(began_);
  result.wait_share = training_seconds_ > 0 ? waited_seconds_ / training_seconds_ : 0;
  return result;
}

}  // namespace

FitResult fit(const TrainOptions& options, const FitHooks& hooks) {
  Run run(options, hooks);
  try {
    return run.go();
  } catch (const std::bad_alloc&) {
    fail("{}", run.with_advice("out of memory: the system has none left"));
  } catch (const Error& error) {
    fail("{}", run.with_advice(error.what()));
  }
}

TrainOptions resume_options(const fs::path& path) {
  fs::path folder = path.has_filename() ? path : path.parent_path();
  if (!fs::exists(folder / "config.toml") && fs::exists(folder / "train-state.safetensors")) {
    folder = fs::absolute(folder).parent_path();
  }
  check(fs::exists(folder / "config.toml"), "'{}' is not a run folder: it has no config.toml", path.string());
  TrainOptions options = options_from_toml(folder / "config.toml");
  options.resume = folder.string();
  return options;
}

}  // namespace vitrail::train
