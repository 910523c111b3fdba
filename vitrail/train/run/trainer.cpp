#include "vitrail/train/run/trainer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/tensor/clock.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/judge.h"
#include "vitrail/train/run/learner.h"
#include "vitrail/train/run/parameter_names.h"
#include "vitrail/train/run/ranks.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/run/run_log.h"
#include "vitrail/train/run/updates.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Seconds after which a checkpoint is saved inside an epoch, unless --recovery-interval sets another interval.
constexpr double seconds_between_checkpoints = 600;

// Thrown out of the work of a task when the user asks to stop.
struct Stopped {};

class Run {
 public:
  Run(const TaskOptions& options, const FitHooks& hooks);
  FitResult go();
  // The message of an error that ends the run, with advice. A new one that has learnt nothing is not kept.
  std::string ended_by(const std::string& error);

 private:
  void create();
  void restore();
  void take_changes();
  void write_config_to(const fs::path& folder) const;
  void announce() const;
  bool train_epoch();
  void record(const Update& made);
  void close_epoch();
  void prepare();
  Work work() const;
  Figures evaluate(bool average);
  void keep_if_best(const FigureKind& metric, double value, bool average);
  void save();
  bool save_is_due(std::int64_t step) const;
  void show_progress();
  FitResult result() const;

  RecordKind record_kind() const { return {task_->units(), judge_->kinds(), task_->loss_axis()}; }
  std::int64_t updates_done() const { return updates_of_epoch(counters_.batch, group_); }
  bool leads() const { return ranks_.rank() == 0; }
  fs::path last() const { return folder_ / "last"; }
  fs::path folder_of_first() const { return dist::all_gather(ranks_, folder_.string(), "the start").front(); }
  fs::path read_from() const { return options_.resume; }  // what a rank has of the run that goes on, maybe a RunCopy
  fs::path best() const { return folder_ / "best"; }
  bool has_best() const { return counters_.best_epoch > 0 && fs::exists(best()); }
  std::unique_ptr<Learner::Averaged> averaged_if(bool average) const {
    return average ? std::make_unique<Learner::Averaged>(*learner_) : nullptr;
  }
  bool stop_wanted() const { return hooks_.should_stop && hooks_.should_stop(); }
  void say(const std::string& text) const {
    if (progress_ != nullptr) {
      progress_->line(text);
    }
  }
  void end_bar() const {
    if (progress_ != nullptr) {
      progress_->end();
    }
  }

  const TaskOptions& options_;
  const FitHooks& hooks_;
  const std::unique_ptr<dist::Communicator> alone_ = dist::alone();
  dist::Communicator& ranks_;
  Progress* progress_ = nullptr;
  RankThreads threads_;
  fs::path folder_;
  std::optional<RunLock> lock_;  // of a run that goes on, until its log has it
  DType dtype_ = DType::f32;
  std::string dtype_message_;
  std::unique_ptr<Task> task_;
  RunOptions real_;  // with the batch and the batches of an update that there are, where the data have fewer
  std::optional<Judge> judge_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<Updates> updates_;
  std::unique_ptr<RunLog> log_;
  Counters counters_;
  std::int64_t group_ = 1;  // batches of an update
  std::int64_t updates_per_epoch_ = 0;
  std::int64_t saved_step_ = 0;
  std::set<std::string> broken_told_;
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
  std::shared_ptr<void> mover_;  // of messages, which ends before their memory does
};

Run::Run(const TaskOptions& options, const FitHooks& hooks)
    : options_(options),
      hooks_(hooks),
      ranks_(hooks.ranks == nullptr ? *alone_ : *hooks.ranks),
      progress_(hooks.progress) {
  validate(options);
  ranks_.timeout = options.comm_timeout;
  ranks_.stopping = hooks.should_stop;
  threads_ = threads_of_rank(ranks_, options);
  kernels::set_threads(threads_.threads);
  if (threads_.comm_core >= 0) {
    mover_ = ranks_.move_messages_from(threads_.comm_core);
  }
  const bool resuming = !options.resume.empty();
  folder_ = options.resume;
  if (resuming && leads() && fs::exists(last())) {
    lock_.emplace(folder_);  // before anything is read that another process may be writing
  }
  dtype_ = compute_dtype(options, &dtype_message_);
  const std::unique_ptr<TaskOptions> together = options.clone();  // as one process would have to be told
  together->grad_accum_steps = batches_of_update(options, ranks_.size());
  task_ = together->make(resuming ? read_from() / "last" : fs::path());
  freeze(task_->network(), options.freeze);
  judge_.emplace(task_->figures(), options.eval_metric);
  counters_.batches_per_epoch = task_->batches().batches_per_epoch();
  check_same_start(ranks_, options, *task_, dtype_);
  dist::check_agreed(ranks_.size() == 1 || task_->alone_because().empty(), "{} ranks cannot train this together: {}",
                     ranks_.size(), task_->alone_because());
  group_ = std::min(together->grad_accum_steps, counters_.batches_per_epoch);
  updates_per_epoch_ = updates_of_epoch(counters_.batches_per_epoch, group_);
  real_ = options;
  real_.batch_size = std::min(options.batch_size, task_->items_of_batch(options.batch_size));
  real_.grad_accum_steps = group_;
  learner_ = std::make_unique<Learner>(real_, task_->network(), updates_per_epoch_, dtype_, &ranks_);
  updates_ = std::make_unique<Updates>(*task_, *learner_, ranks_, options);
  resuming ? restore() : create();
  if (hooks.on_loaded) {
    hooks.on_loaded();
  }
  check_same_weights(ranks_, task_->network(), counters_.step);
}

void Run::create() {
  counters_.threads = kernels::threads();
  const io::NamedTensors state = learner_->state();
  if (leads()) {
    // The folder is made together with a checkpoint of step 0, so that there is always one to resume from.
    folder_ = create_run_folder(options_, task_->name(), [&](const fs::path& temporary) {
      write_config_to(temporary);
      save_checkpoint(temporary / "last", *task_, task_->network(), counters_, state);
    });
    log_ = std::make_unique<RunLog>(RunLock(folder_, true), 0, record_kind());
  }
  folder_ = folder_of_first();
}

void Run::write_config_to(const fs::path& folder) const {
  write_config(folder, options_, facts_of_run(*task_, dtype_, ranks_.size(), learning_rate(real_)), record_kind());
}

// Reports what differs from that with which the run began, and writes it to config.toml for the next time.
void Run::take_changes() {
  const std::vector<std::string> changed = changes_since(folder_ / "config.toml", options_, task_->facts());
  if (counters_.epoch == learner_->epochs()) {
    return;  // a run that has ended has no next time
  }
  for (const std::string& change : changed) {
    say(change);
  }
  if (!changed.empty()) {
    write_config_to(folder_);
  }
}

void Run::restore() {
  folder_ = folder_of_first();
  const TrainState state = load_train_state(read_from() / "last", task_->network());
  check_goes_on(folder_, state.counters, counters_.batches_per_epoch, learner_->epochs());
  counters_.batches_per_epoch = std::exchange(counters_, state.counters).batches_per_epoch;  // as the data has now
  learner_->load_state(state.tensors);
  task_->load_state(with_prefix(state.tensors, task_prefix));
  const std::string ranks = read_facts(read_from() / "config.toml")["ranks"];
  if (!ranks.empty() && ranks != fmt::format("{}", ranks_.size()) && options_.grad_shards == 0) {
    say(fmt::format("ranks: it began with {}, and with {} an update has {} (--grad-shards keeps their number)", ranks,
                    ranks_.size(), io::counted(group_, "batches")));
  }
  if (leads()) {
    log_ = std::make_unique<RunLog>(std::move(lock_).value(), counters_.metrics_bytes, record_kind());
    take_changes();
  }
  seconds_before_ = counters_.seconds;
  saved_step_ = counters_.step;
  if (counters_.threads != kernels::threads()) {
    say(fmt::format("this run began with {}: with {} its numbers may differ in the last bits",
                    io::counted(counters_.threads, "threads"), kernels::threads()));
    counters_.threads = kernels::threads();
  }
}

void Run::announce() const {
  const std::vector<std::string> of_machine = {dtype_message_, threads_.remark,
                                               note_of_update(options_, ranks_.size(), group_)};
  for (const std::vector<std::string>& lines : {of_machine, task_->summary(), learner_->remarks()}) {
    for (const std::string& line : lines) {
      if (!line.empty()) {
        say(line);
      }
    }
  }
  const std::int64_t items = task_->items_of_batch(options_.batch_size) * group_;
  say(fmt::format("{} of {}{} an epoch, {}, learning rate {:.4g}, {}, {}{}: {}",
                  io::counted(updates_per_epoch_, "updates"), counters_.batches_per_epoch % group_ == 0 ? "" : "up to ",
                  io::counted(items, task_->batch_items()), options_.optimizer.opt, learning_rate(real_),
                  name_of(dtype_), ranks_.size() == 1 ? "" : io::counted(ranks_.size(), "ranks") + " of ",
                  io::counted(kernels::threads(), "threads"), folder_.string()));
  if (counters_.step > 0) {
    say(counters_.epoch < learner_->epochs()
            ? fmt::format("going on after step {}, in epoch {}", counters_.step, counters_.epoch + 1)
            : fmt::format("it has trained for {}: nothing is left to do", io::counted(counters_.epoch, "epochs")));
  }
}

FitResult Run::go() {
  announce();
  prepare();
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
  if (!leads()) {
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

std::string Run::ended_by(const std::string& error) {
  const std::string words = with_remedy(error, options_.batch_size);
  const bool is_new = options_.resume.empty() && counters_.step == 0 && ranks_.size() == 1;
  if (is_new && discard_run(folder_)) {
    return words + fmt::format("; nothing has been learnt yet, and '{}' is removed", folder_.string());
  }
  return fmt::format("{}; the checkpoint of step {} is whole: {} --resume {}{}", words, saved_step_, options_.command(),
                     io::shell_word(folder_.string()),
                     words.find("--skip-broken") == std::string::npos ? "" : " --skip-broken");
}

// Trains to the end of the epoch; returns false if the run was stopped before.
bool Run::train_epoch() {
  data::Batches& batches = task_->batches();
  const double waited_before = batches.seconds_waited();
  const Clock::time_point begin = Clock::now();
  updates_->start_epoch(counters_);
  if (progress_ != nullptr) {
    progress_->begin(fmt::format("epoch {}/{}", counters_.epoch + 1, learner_->epochs()), updates_per_epoch_,
                     updates_done());
  }
  step_ended_ = begin;
  while (counters_.batch < counters_.batches_per_epoch && !stopped_) {
    const auto own_wishes = [this](std::int64_t step) { return Wishes{stop_wanted(), save_is_due(step)}; };
    const std::optional<Update> made = updates_->next(counters_, own_wishes);
    if (!made) {
      continue;
    }
    task_->updated(counters_.step);
    record(*made);
    const Wishes wishes = made->agreed ? *made->agreed : own_wishes(counters_.step);
    stopped_ = wishes.stop;
    if (options_.check_every > 0 && counters_.step % options_.check_every == 0) {
      check_same_weights(ranks_, task_->network(), counters_.step);
    }
    if (wishes.save && !stopped_) {
      save();
    }
  }
  end_bar();
  epoch_seconds_ = seconds_since(begin);
  training_seconds_ += epoch_seconds_;
  waited_seconds_ += batches.seconds_waited() - waited_before;
  std::vector<std::string> broken = of_all_ranks(ranks_, batches.broken(), "the end of an epoch");
  const std::string units = io::counted(std::ssize(broken), "broken " + task_->units());
  if (std::erase_if(broken, [&](const std::string& one) { return !broken_told_.insert(one).second; });
      !broken.empty()) {
    dist::check_agreed(counters_.step > 0 || stopped_, "nothing is left to learn from: {}, e.g. {}", units, broken[0]);
    const std::string fresh = broken.size() < broken_told_.size() ? fmt::format(", {} now", broken.size()) : "";
    say(fmt::format("{} left out so far{}:\n{}", units, fresh, io::some_lines_of(broken)));
  }
  return !stopped_;
}

// Writes an update down, and shows it.
void Run::record(const Update& made) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::max(std::chrono::duration<double>(now - step_ended_).count(), 1e-9);
  step_ended_ = now;
  if (leads()) {
    log_->add(StepRecord{counters_.step, counters_.epoch + 1, made.loss, made.lr, made.units,
                         static_cast<double>(made.units) / seconds, made.gradient_norm, made.rank_seconds});
  }
  show_progress();
  if (hooks_.on_step) {
    hooks_.on_step(counters_.step, made.loss);
  }
}

void Run::show_progress() {
  if (progress_ == nullptr || !leads()) {  // who has the records
    return;
  }
  const StepRecord recent = recent_mean(log_->history());
  progress_->update(updates_done(),
                    fmt::format("loss {:.3f}, lr {:.2e}, {:.{}f} {}/s", recent.loss, recent.lr, recent.rate,
                                recent.rate < 10 ? 1 : 0, task_->units()),
                    (learner_->epochs() - counters_.epoch - 1) * updates_per_epoch_);
}

bool Run::save_is_due(std::int64_t step) const {
  return options_.recovery_interval > 0 ? step % options_.recovery_interval == 0
                                        : seconds_since(saved_at_) > seconds_between_checkpoints;
}

// Evaluates at the end of an epoch, keeps the best network, and saves. If the user asks to stop meanwhile, the run is
// left at the end of the epoch's training, and the evaluation is repeated on resuming.
void Run::close_epoch() {
  check_weights(ranks_, task_->network(), counters_.step);
  last_loss_ = leads() ? mean_loss(log_->history(), counters_.epoch + 1) : 0;
  const bool final = counters_.epoch + 1 == learner_->epochs();
  std::string text = fmt::format("epoch {}/{}{}", counters_.epoch + 1, learner_->epochs(),
                                 leads() ? fmt::format(": loss {:.4f}", last_loss_) : "");
  try {
    if (!judge_->evaluates()) {
      keep_if_best(judge_->metric(), last_loss_, learner_->has_average());
    } else if (final || (counters_.epoch + 1) % options_.val_interval == 0) {
      if (ranks_.size() > 1 && saved_step_ < counters_.step) {
        save();  // ranks do not stop inside an evaluation: where they are killed there, the epoch would be lost
      }
      std::vector<EvaluationRecord> records;
      for (const bool average : learner_->has_average() ? std::vector{false, true} : std::vector{false}) {
        figures_ = evaluate(average);
        records.push_back({counters_.step, counters_.epoch + 1, figures_, average});
        text += ", " + judge_->text(figures_, average);
      }
      if (leads()) {
        std::ranges::for_each(records, [this](const EvaluationRecord& record) { log_->add(record); });
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

// Does the work of the task before the first epoch.
void Run::prepare() {
  try {
    task_->prepare(work());
  } catch (const Stopped&) {
    stopped_ = true;
  }
  end_bar();
}

// What the trainer lends to a task for work outside of training: a progress bar, and the request to stop.
Work Run::work() const {
  Work work;
  work.dtype = dtype_;
  work.ranks = &ranks_;
  work.begin = [this](std::string_view title, std::int64_t total) {
    if (progress_ != nullptr) {
      progress_->begin(title, total);
    }
  };
  work.advance = [this](std::int64_t done) {
    if (progress_ != nullptr && progress_->terminal()) {
      progress_->update(done, "");
    }
    if (ranks_.size() == 1 && stop_wanted()) {  // several stop together, after an update
      throw Stopped{};
    }
  };
  work.say = [this](const std::string& line) { say(line); };
  return work;
}

Figures Run::evaluate(bool average) {
  const std::unique_ptr<Learner::Averaged> averaged = averaged_if(average);
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
  if (!leads() || (has_best() && !task_->keeps_latest() && !is_better(metric, value, counters_.best_metric))) {
    return;
  }
  counters_.best_epoch = counters_.epoch + 1;
  counters_.best_metric = value;
  const std::unique_ptr<Learner::Averaged> averaged = averaged_if(average);
  task_->save(best());
  for (const auto& [file, svg] : task_->pictures()) {
    io::write_atomically(folder_ / file, svg);
  }
}

void Run::save() {
  check_weights(ranks_, task_->network(), counters_.step);
  const io::NamedTensors state = learner_->state();
  if (leads()) {
    counters_.metrics_bytes = log_->commit(static_cast<double>(updates_per_epoch_));
    counters_.seconds = seconds_before_ + seconds_since(began_);
    save_checkpoint(last(), *task_, task_->network(), counters_, state);
    keep_epoch(folder_ / "epochs", *task_, counters_, options_.checkpoint_hist);
  }
  saved_step_ = counters_.step;
  saved_at_ = Clock::now();
}

FitResult Run::result() const {
  return {.folder = folder_,
          .steps = counters_.step,
          .epochs = counters_.epoch,
          .stopped = stopped_,
          .last_loss = last_loss_,
          .figures = figures_,
          .best_metric = counters_.best_metric,
          .best_epoch = counters_.best_epoch,
          .seconds = seconds_since(began_),
          .wait_share = training_seconds_ > 0 ? waited_seconds_ / training_seconds_ : 0};
}

}  // namespace

FitResult fit(const TaskOptions& options, const FitHooks& hooks) {
  Run run(options, hooks);
  try {
    return run.go();
  } catch (const std::bad_alloc&) {
    fail("{}", run.ended_by("out of memory: the system has none left"));
  } catch (const dist::AgreedError& error) {
    throw dist::AgreedError(run.ended_by(error.what()));
  } catch (const Error& error) {
    fail("{}", run.ended_by(error.what()));
  }
}

}  // namespace vitrail::train
