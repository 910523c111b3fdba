/// \file
/// The interface between a trainer and a task, and the options of a task.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/prefetch.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/figures.h"
#include "vitrail/train/option_list.h"
#include "vitrail/train/run_options.h"

namespace vitrail::train {

/// A batch that Task::next() has taken.
struct Drawn {
  std::int64_t number = 0;  ///< its number in the epoch
  std::int64_t units = 0;   ///< its weight in the mean loss of several batches: its images, tokens, boxes
};

/// What the trainer lends to a task for work outside of training, such as evaluation.
struct Work {
  DType dtype = DType::f32;             ///< of activations and products
  dist::Communicator* ranks = nullptr;  ///< that evaluate together; null: this process is alone
  /// Begins a progress bar of `total` units.
  std::function<void(std::string_view title, std::int64_t total)> begin = [](std::string_view, std::int64_t) {};
  /// To be called often, with the units done; throws to end the work if the user wants to stop.
  std::function<void(std::int64_t done)> advance = [](std::int64_t) {};
  /// Prints a line for the user.
  std::function<void(const std::string& line)> say = [](const std::string&) {};

  /// Says left_out_text() of the images that an evaluation left out, unless there are none.
  void say_left_out(const std::vector<std::string>& broken) const;
};
/// "left out 2 broken images: cat/3.jpg: not a JPEG …": how many, and the first of them with its reason.
std::string left_out_text(const std::vector<std::string>& broken);

/// Adds a line that says how many of the `size` training items each epoch leaves out, as they fill no batch, if these
/// are one in a hundred or more.
void note_unfilled(std::vector<std::string>& lines, std::string_view items, std::int64_t size, std::int64_t batch_size);

/// Adds a note if images to evaluate on are files that are trained on too; null: there are none.
void note_shared_images(std::vector<std::string>& lines, const data::Dataset& learned, const data::Dataset* judging);
/// Adds a note, unless it is empty.
void add_note(std::vector<std::string>& lines, const std::string& note);

/// A network and what it learns: its data, loss and figures. Each kind of task is a file in train/tasks.
class Task {
 public:
  virtual ~Task() = default;
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// The network whose parameters the optimizer updates. Networks that follow it (teachers, momentum encoders) belong
  /// to the task alone.
  virtual nn::Network& network() = 0;

  /// The training batches: how many an epoch has, where it begins, and how long they were waited for.
  virtual data::Batches& batches() = 0;
  /// Takes the next batch and keeps it for loss(); empty at the end of the epoch.
  virtual std::optional<Drawn> next() = 0;
  /// The mean loss of the batch that next() took, over its units: a scalar f32.
  virtual Tensor loss(nn::Pass& pass) = 0;
  /// What batches are counted in: "images", "tokens". It names the rate in metrics.jsonl: "images_per_second".
  virtual std::string units() const { return "samples"; }
  /// What --batch-size counts: the units, or "blocks" of several units each.
  virtual std::string batch_items() const { return units(); }
  /// How many of them a batch has: as many as --batch-size says, unless the data have fewer.
  virtual std::int64_t items_of_batch(std::int64_t batch_size) {
    return std::min(batch_size, batches().largest_batch());
  }

  /// The kinds of the figures that evaluate() returns, the most important first. Empty: there are no data to evaluate
  /// on.
  virtual std::vector<FigureKind> figures() const { return {}; }
  /// Evaluates the network with its present parameters. These may hold its moving average meanwhile.
  virtual Figures evaluate(const Work& work) {
    (void)work;
    return {};
  }
  /// Pictures of what the latest evaluate() has found: names of files, and the SVG of each. Those of the best network
  /// lie in the folder of its run.
  virtual std::vector<std::pair<std::string, std::string>> pictures() const { return {}; }
  /// Whether the latest network is the best one, whatever the figures say, as where no figure tells how good it is.
  virtual bool keeps_latest() const { return false; }
  /// Why several ranks cannot train it, "its centre follows the batches"; empty if they can.
  virtual std::string alone_because() const { return ""; }
  /// The label of the axis of the training loss in curves.svg.
  virtual std::string loss_axis() const { return "loss"; }

  /// Does long work before the first epoch of a new or resumed run.
  virtual void prepare(const Work& work) { (void)work; }
  /// Called before the batches of update `update` are looked at (from 0, its place in the schedules), on every rank.
  virtual void updating(std::int64_t update) { (void)update; }
  /// What batches move on besides the parameters and buffers of network(): running statistics of networks that follow
  /// it, centres (f32), of which the mean is taken where several ranks look at batches, and counts of batches (i64).
  /// The tensors share their memory with the task.
  virtual std::vector<Tensor> statistics() const { return {}; }
  /// Called after update `step` (from 1) of the parameters, for momentum encoders, queues and centres.
  virtual void updated(std::int64_t step) { (void)step; }
  /// The tensors that a resumed run needs besides those of network and optimizer. load_state() gets them back, and
  /// throws Error if one is missing or of another shape.
  virtual io::NamedTensors state() const { return {}; }
  virtual void load_state(const io::NamedTensors& state) { (void)state; }

  /// Writes the trained network into `folder`, for users and for TaskOptions::make() of a resumed run.
  virtual void save(const std::filesystem::path& folder) const = 0;
  /// Draws images for users into the folder of a run that has ended, and returns a line about each.
  virtual std::vector<std::string> draw(const std::filesystem::path& run) const {
    (void)run;
    return {};
  }

  /// What a new run folder without --experiment is named after: "vit_tiny_patch16_224-224".
  virtual std::string name() const = 0;
  /// Lines about network and data that are printed when the run begins.
  virtual std::vector<std::string> summary() const { return {}; }
  /// What config.toml states about network and data besides the options: names and values.
  virtual std::vector<std::pair<std::string, std::string>> facts() const { return {}; }
};

/// The name of the fact (Task::facts()) that tells images apart from others by a digest of their names and classes.
constexpr const char* training_digest = "training_digest";

/// The options of a task, including those of every run. Each kind of task derives its own.
struct TaskOptions : RunOptions {
  virtual ~TaskOptions() = default;
  virtual std::string kind() const = 0;  ///< "classify", in config.toml
  virtual std::unique_ptr<TaskOptions> clone() const = 0;
  /// Adds all options, including those of every run, in the order of the help.
  virtual void describe(OptionList& list) = 0;
  /// Names of options of earlier versions, which a config.toml may still have and which are ignored.
  virtual std::set<std::string> retired_options() const { return {}; }
  /// The command that runs such a task.
  virtual std::string command() const { return "vitrail train"; }
  /// Throws Error if options that are valid each by itself contradict each other.
  virtual void validate() const { validate_run(*this); }
  /// Opens data and network: a new network, or, if `checkpoint` is given, the one that Task::save() wrote there. Throws
  /// Error if the data are missing or do not fit.
  virtual std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const = 0;
};

/// Adds a line that says so if what a task evaluates on, files, folders or parts of `items` ("texts"), is what it
/// learns from. Empty names are none.
void note_same_data(std::vector<std::string>& lines, std::string_view items, const std::vector<std::string>& learned,
                    const std::vector<std::string>& judging);

/// Runs the checks of all options. Throws Error, naming the flag as the command line spells it, if a value is not
/// valid.
void validate(const TaskOptions& options);

/// Writes all parameters by name to a file model.safetensors in `folder`, which replaces an earlier one as a whole. For
/// tasks whose networks have no folder layout of their own.
void save_parameters(const nn::Network& network, const std::filesystem::path& folder);
/// Reads the parameters that save_parameters() wrote. Throws Error, naming the tensor, if one is missing, unknown or of
/// another shape.
void load_parameters(nn::Network& network, const std::filesystem::path& folder);

}  // namespace vitrail::train
