#include "vitrail/train/run/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/judge.h"
#include "vitrail/train/run/learner.h"
#include "vitrail/train/run/parameter_names.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/run/run_log.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Seconds after which a checkpoint is saved inside an epoch, unless --recovery-interval sets another interval.
constexpr double seconds_between_checkpoints = 600;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Thrown out of the work of a task when the user asks to stop.
struct Stopped {};

class Run {
 public:
  Run(const TaskOptions& options, const FitHooks& hooks);
  FitResult go();
  // The message of an error with advice: what is left, and what can be done.
  std::string with_advice(std::string words) const;

 private:
  void create();
  void restore();
  void take_changes();
  void write_config_to(const fs::path& folder) const;
  void announce() const;
  bool train_epoch();
  void update();
  std::optional<Drawn> draw();
  void close_epoch();
  bool prepare();
  Work work() const;
  Figures evaluate(bool average);
  void keep_if_best(const FigureKind& metric, double value, bool average);
  void save();
  bool save_is_due() const;
  void show_progress();
  FitResult result() const;

  RecordKind record_kind() const { return {task_->units(), judge_->kinds(), task_->loss_axis()}; }
  std::int64_t updates_done() const {
    return (counters_.batch + options_.grad_accum_steps - 1) / options_.grad_accum_steps;
  }
  fs::path last() const { return folder_ / "last"; }
  fs::path best() const { return folder_ / "best"; }
  bool has_best() const { return counters_.best_epoch > 0 && fs::exists(best()); }
  bool stop_wanted() const { return hooks_.should_stop && hooks_.should_stop(); }
  void say(const std::string& text) const {
    if (hooks_.progress != nullptr) {
      hooks_.progress->line(text);
    }
  }
  void end_bar() const {
    if (hooks_.progress != nullptr) {
      hooks_.progress->end();
    }
  }

  const TaskOptions& options_;
  const FitHooks& hooks_;
  fs::path folder_;
  std::optional<RunLock> lock_;  // of a run that goes on, until its log has it
  DType dtype_ = DType::f32;
  std::string dtype_message_;
  std::unique_ptr<Task> task_;
  RunOptions real_;  // with the batch and the batches of an update that there are, where the data have fewer
  std::optional<Judge> judge_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<RunLog> log_;
  Counters counters_;
  std::int64_t updates_per_epoch_ = 0;
  std::int64_t saved_step_ = 0;
  std::size_t broken_told_ = 0;
  bool stopped_ = false;
  Figures figures_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point saved_at_ = Clock::now();
  Clock::time_point step_ended_ = Clock::now();
  double seconds_before_ = 0;
  double training_seconds_ = 0;  // duration of training in this call, without evaluations
  double waited_seconds_ = 0;    // the part of them spent waiting for batches
  double epoch_seconds_ = 0;
  double last_loss_ = 0;
};

Run::Run(const TaskOptions& options, const FitHooks& hooks) : options_(options), hooks_(hooks) {
  validate(options);
  if (options.threads > 0) {
    kernels::set_threads(static_cast<int>(options.threads));
  }
  const bool resuming = !options.resume.empty();
  folder_ = options.resume;
  if (resuming && fs::exists(last())) {
    lock_.emplace(folder_);  // before anything is read that another process may be writing
  }
  dtype_ = compute_dtype(options, &dtype_message_);
  task_ = options.make(resuming ? last() : fs::path());
  freeze(task_->network(), options.freeze);
  judge_.emplace(task_->figures(), options.eval_metric);
  counters_.batches_per_epoch = task_->batches().batches_per_epoch();
  updates_per_epoch_ = (counters_.batches_per_epoch + options.grad_accum_steps - 1) / options.grad_accum_steps;
  real_ = options;
  real_.batch_size = std::min(options.batch_size, task_->items_of_batch(options.batch_size));
  real_.grad_accum_steps = std::min(options.grad_accum_steps, counters_.batches_per_epoch);
  learner_ = std::make_unique<Learner>(real_, task_->network(), updates_per_epoch_, dtype_);
  resuming ? restore() : create();
}

void Run::create() {
  counters_.threads = kernels::threads();
  // The folder is made together with a checkpoint of step 0, so that there is always one to resume from.
  folder_ = create_run_folder(options_, task_->name(), [&](const fs::path& temporary) {
    write_config_to(temporary);
    save_checkpoint(temporary / "last", *task_, task_->network(), counters_, learner_->state());
  });
  log_ = std::make_unique<RunLog>(RunLock(folder_), 0, record_kind());
}

void Run::write_config_to(const fs::path& folder) const {
  Facts facts = {{"version", VITRAIL_VERSION},
                 {"cpu", kernels::cpu_name()},
                 {"threads", fmt::format("{}", kernels::threads())},
                 {"dtype", std::string(name_of(dtype_))},
                 {"parameters", fmt::format("{}", task_->network().parameters.count())}};
  const Facts own = task_->facts();
  facts.insert(facts.end(), own.begin(), own.end());
  facts.emplace_back("keeps", task_->keeps_latest() ? "latest" : "best");
  facts.emplace_back("learning_rate", fmt::format("{}", learning_rate(real_)));
  write_config(folder, options_, facts, record_kind());
}

// Reports the options that differ from those with which the run began, and writes them to config.toml for the next
// time.
void Run::take_changes() {
  const std::vector<OptionChange> changed = changed_options(folder_ / "config.toml", options_);
  for (const OptionChange& change : changed) {
    say(fmt::format("{} was {} and is now {}", flag_of(change.name), change.before, change.after));
  }
  if (!changed.empty()) {
    write_config_to(folder_);
  }
}

void Run::restore() {
  const TrainState state = load_train_state(last(), task_->network());
  check(state.counters.batches_per_epoch == counters_.batches_per_epoch || state.counters.batch == 0,
        "the run '{}' stopped inside an epoch of {}, but now there are {}: the data or --batch-size changed",
        folder_.string(), io::counted(state.counters.batches_per_epoch, "batches"), counters_.batches_per_epoch);
  counters_.batches_per_epoch = std::exchange(counters_, state.counters).batches_per_epoch;  // as the data has now
  learner_->load_state(state.tensors);
  task_->load_state(with_prefix(state.tensors, task_prefix));
  take_changes();
  seconds_before_ = counters_.seconds;
  saved_step_ = counters_.step;
  log_ = std::make_unique<RunLog>(std::move(lock_).value(), counters_.metrics_bytes, record_kind());
  if (counters_.threads != kernels::threads()) {
    say(fmt::format("this run began with {}: with {} its numbers may differ in the last bits",
                    io::counted(counters_.threads, "threads"), kernels::threads()));
    counters_.threads = kernels::threads();
  }
}

void Run::announce() const {
  if (!dtype_message_.empty()) {
    say(dtype_message_);
  }
  std::vector<std::string> lines = task_->summary();
  std::ranges::copy(learner_->remarks(), std::back_inserter(lines));
  for (const std::string& line : lines) {
    say(line);
  }
  const bool even = counters_.batches_per_epoch % real_.grad_accum_steps == 0;
  const std::int64_t items = task_->items_of_batch(options_.batch_size) * real_.grad_accum_steps;
  say(fmt::format("{} of {}{} an epoch, {}, learning rate {:.4g}, {}, {}: {}",
                  io::counted(updates_per_epoch_, "updates"), even ? "" : "up to ",
                  io::counted(items, task_->batch_items()), options_.optimizer.opt, learning_rate(real_),
                  name_of(dtype_), io::counted(kernels::threads(), "threads"), folder_.string()));
  if (counters_.step > 0) {
    say(counters_.epoch < learner_->epochs()
            ? fmt::format("going on after step {}, in epoch {}", counters_.step, counters_.epoch + 1)
            : fmt::format("all its {} are trained: nothing is left to do", io::counted(counters_.epoch, "epochs")));
  }
}

FitResult Run::go() {
  announce();
  stopped_ = !prepare();
  while (counters_.epoch < learner_->epochs() && !stopped_) {
    if (!train_epoch()) {
      break;
    }
    close_epoch();
  }
  const FitResult outcome = result();
  if (stopped_) {
    save();
    say(fmt::format("stopped after step {}; go on with: {} --resume {}", counters_.step, options_.command(),
                    io::shell_word(folder_.string())));
    return outcome;
  }
  say(fmt::format("{} in {}, {:.1f} % of the training spent waiting for {}", io::counted(counters_.epoch, "epochs"),
                  duration_text(counters_.seconds), 100 * outcome.wait_share, task_->units()));
  if (!has_best()) {
    say(fmt::format("{} was deleted after the last epoch", best().string()));
    return outcome;
  }
  const std::string which = judge_->kept(counters_.best_metric, counters_.best_epoch, task_->keeps_latest());
  say(fmt::format("{}: {}", which, best().string()));
  for (const auto& [file, svg] : task_->pictures()) {
    say(fmt::format("what it gets right, and wrong: {}", (folder_ / file).string()));
  }
  for (const std::string& line : task_->draw(folder_)) {
    say(line);
  }
  return outcome;
}

std::string Run::with_advice(std::string words) const {
  if (words.find("out of memory") != std::string::npos) {
    words += fmt::format("; try a --batch-size below {} (and more --grad-accum-steps)", options_.batch_size);
  }
  return words + fmt::format("; the checkpoint of step {} is whole: {} --resume {}", saved_step_, options_.command(),
                             io::shell_word(folder_.string()));
}

// Trains to the end of the epoch; returns false if the run was stopped before.
bool Run::train_epoch() {
  data::Batches& batches = task_->batches();
  const double waited_before = batches.seconds_waited();
  const Clock::time_point begin = Clock::now();
  batches.start_epoch(counters_.epoch, counters_.batch);
  if (hooks_.progress != nullptr) {
    hooks_.progress->begin(fmt::format("epoch {}/{}", counters_.epoch + 1, learner_->epochs()), updates_per_epoch_,
                           updates_done());
  }
  step_ended_ = begin;
  while (counters_.batch < counters_.batches_per_epoch && !stopped_) {
    update();
    stopped_ = stop_wanted();
    if (save_is_due() && !stopped_) {
      save();
    }
  }
  end_bar();
  epoch_seconds_ = seconds_since(begin);
  training_seconds_ += epoch_seconds_;
  waited_seconds_ += batches.seconds_waited() - waited_before;
  if (batches.broken().size() > broken_told_) {
    say(fmt::format("{} left out so far, e.g. {}",
                    io::counted(std::ssize(batches.broken()), "broken " + task_->units()),
                    batches.broken()[broken_told_]));
    broken_told_ = batches.broken().size();
  }
  return !stopped_;
}

// The next batch of the task; empty if broken items have made the epoch shorter.
std::optional<Drawn> Run::draw() {
  std::optional<Drawn> drawn = task_->next();
  counters_.batch = drawn ? drawn->number + 1 : counters_.batches_per_epoch;
  return drawn;
}

// Updates the weights once, from the gradients of --grad-accum-steps batches. The loss is the mean over the units of
// all of them: each batch is weighted by its share of the units. As the sizes of the later batches are not known yet,
// they are assumed to be that of the first, and the error of this assumption is corrected in the end.
void Run::update() {
  const std::int64_t group = std::min(options_.grad_accum_steps, counters_.batches_per_epoch - counters_.batch);
  const Loss loss_of_batch = [&](nn::Pass& pass) { return task_->loss(pass); };
  const double lr = learner_->lr(counters_.step);
  double loss = 0;
  double expected = 0;  // the assumed units of the whole group
  std::int64_t units = 0;
  std::optional<double> norm;
  for (std::int64_t i = 0; i < group; ++i) {
    const std::optional<Drawn> batch = draw();
    if (!batch) {
      break;
    }
    expected = i == 0 ? static_cast<double>(batch->units * group) : expected;
    const double share = static_cast<double>(batch->units) / expected;
    const auto number = static_cast<std::uint64_t>(counters_.epoch * counters_.batches_per_epoch + batch->number);
    double one = 0;
    if (group == 1) {
      const Learner::Step step = learner_->step(loss_of_batch, number, counters_.step);
      one = step.loss;
      norm = step.gradient_norm;
    } else {
      one = learner_->accumulate(loss_of_batch, number, static_cast<float>(share));
    }
    check(std::isfinite(one),
          "the loss is {} in step {} (epoch {}, learning rate {:.3g}): try a smaller --lr, more --warmup-epochs or "
          "--clip-grad 1",
          std::isnan(one) ? "NaN" : "infinite", counters_.step + 1, counters_.epoch + 1, lr);
    loss += one * share;
    units += batch->units;
  }
  if (units == 0) {
    return;
  }
  const double correction = expected / static_cast<double>(units);  // 1 if all batches have equally many units
  loss *= correction;
  if (group > 1) {
    norm = learner_->update(counters_.step, correction);
  }
  ++counters_.step;
  task_->updated(counters_.step);
  const Clock::time_point now = Clock::now();
  const double seconds = std::max(std::chrono::duration<double>(now - step_ended_).count(), 1e-9);
  step_ended_ = now;
  log_->add(
      StepRecord{counters_.step, counters_.epoch + 1, loss, lr, units, static_cast<double>(units) / seconds, norm});
  show_progress();
  if (hooks_.on_step) {
    hooks_.on_step(counters_.step, loss);
  }
}

void Run::show_progress() {
  if (hooks_.progress == nullptr) {
    return;
  }
  // The means over the last steps are steadier than the values of one step.
  const std::vector<StepRecord>& steps = log_->history().steps;
  const std::size_t count = std::min<std::size_t>(steps.size(), 20);
  double loss = 0;
  double seconds_a_unit = 0;
  for (std::size_t i = steps.size() - count; i < steps.size(); ++i) {
    loss += steps[i].loss / static_cast<double>(count);
    seconds_a_unit += 1 / steps[i].rate / static_cast<double>(count);
  }
  hooks_.progress->update(
      updates_done(),
      fmt::format("loss {:.3f}, lr {:.2e}, {:.0f} {}/s", loss, steps.back().lr, 1 / seconds_a_unit, task_->units()),
      (learner_->epochs() - counters_.epoch - 1) * updates_per_epoch_);
}

bool Run::save_is_due() const {
  return options_.recovery_interval > 0 ? counters_.step % options_.recovery_interval == 0
                                        : seconds_since(saved_at_) > seconds_between_checkpoints;
}

// Evaluates at the end of an epoch, keeps the best network, and saves. If the user asks to stop meanwhile, the run is
// left at the end of the epoch's training, and the evaluation is repeated on resuming.
void Run::close_epoch() {
  check_finite_weights(task_->network(), counters_.step);
  last_loss_ = mean_loss(log_->history(), counters_.epoch + 1);
  const bool final = counters_.epoch + 1 == learner_->epochs();
  std::string text = fmt::format("epoch {}/{}: loss {:.4f}", counters_.epoch + 1, learner_->epochs(), last_loss_);
  try {
    if (!judge_->evaluates()) {
      keep_if_best(judge_->metric(), last_loss_, learner_->has_average());
    } else if (final || (counters_.epoch + 1) % options_.val_interval == 0) {
      std::vector<EvaluationRecord> records;
      for (const bool average : learner_->has_average() ? std::vector{false, true} : std::vector{false}) {
        figures_ = evaluate(average);
        records.push_back({counters_.step, counters_.epoch + 1, figures_, average});
        text += ", " + judge_->text(figures_, average);
      }
      for (const EvaluationRecord& record : records) {
        log_->add(record);
      }
      keep_if_best(judge_->metric(), figure(figures_, judge_->metric().name), learner_->has_average());
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

// Does the work of the task before the first epoch; returns false if it was stopped.
bool Run::prepare() {
  try {
    task_->prepare(work());
  } catch (const Stopped&) {
    end_bar();
    return false;
  }
  end_bar();
  return true;
}

// What the trainer lends to a task for work outside of training: a progress bar, and the request to stop.
Work Run::work() const {
  Work work;
  work.dtype = dtype_;
  work.begin = [this](std::string_view title, std::int64_t total) {
    if (hooks_.progress != nullptr) {
      hooks_.progress->begin(title, total);
    }
  };
  work.advance = [this](std::int64_t done) {
    if (hooks_.progress != nullptr && hooks_.progress->terminal()) {
      hooks_.progress->update(done, "");
    }
    if (stop_wanted()) {
      throw Stopped{};
    }
  };
  work.say = [this](const std::string& line) { say(line); };
  return work;
}

Figures Run::evaluate(bool average) {
  std::optional<Learner::Averaged> averaged;
  if (average) {
    averaged.emplace(*learner_);
  }
  Work how = work();
  if (average) {
    how.begin = [begin = std::move(how.begin)](std::string_view title, std::int64_t total) {
      begin(fmt::format("{} the average", title), total);
    };
  }
  Figures figures = task_->evaluate(how);
  end_bar();
  return figures;
}

// Saves the network if it is better than the one that is there; a user may have deleted that.
void Run::keep_if_best(const FigureKind& metric, double value, bool average) {
  if (has_best() && !task_->keeps_latest() && !is_better(metric, value, counters_.best_metric)) {
    return;
  }
  counters_.best_epoch = counters_.epoch + 1;
  counters_.best_metric = value;
  std::optional<Learner::Averaged> averaged;
  if (average) {
    averaged.emplace(*learner_);
  }
  task_->save(best());
  for (const auto& [file, svg] : task_->pictures()) {
    io::write_atomically(folder_ / file, svg);
  }
}

void Run::save() {
  check_finite_weights(task_->network(), counters_.step);
  counters_.metrics_bytes = log_->commit(static_cast<double>(updates_per_epoch_));
  counters_.seconds = seconds_before_ + seconds_since(began_);
  save_checkpoint(last(), *task_, task_->network(), counters_, learner_->state());
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
  result.figures = figures_;
  result.best_metric = counters_.best_metric;
  result.best_epoch = counters_.best_epoch;
  result.seconds = seconds_since(began_);
  result.wait_share = training_seconds_ > 0 ? waited_seconds_ / training_seconds_ : 0;
  return result;
}

}  // namespace

FitResult fit(const TaskOptions& options, const FitHooks& hooks) {
  Run run(options, hooks);
  try {
    return run.go();
  } catch (const std::bad_alloc&) {
    fail("{}", run.with_advice("out of memory: the system has none left"));
  } catch (const Error& error) {
    fail("{}", run.with_advice(error.what()));
  }
}

}  // namespace vitrail::train
