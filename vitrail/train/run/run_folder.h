/// \file
/// The folder of a run: its name, and writing and reading its config.toml.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/train/run/records.h"
#include "vitrail/train/task.h"

namespace vitrail::train {

/// The facts about a share of the training images that was held out: how large, and the source (run/held_out.h).
inline constexpr const char* held_out_fact = "held_out";
inline constexpr const char* held_out_source_fact = "held_out_of";

/// What config.toml states about a run besides its options: names and values in order.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The facts about a run that begins, by so many ranks: program, machine and precision, and what the task adds.
Facts facts_of_run(Task& task, DType dtype, int ranks, double learning_rate);

/// Removes a run folder in which nothing has been learnt, and says whether it is gone: one that is a link stays.
bool discard_run(const std::filesystem::path& folder);

/// Makes the folder of a new run in options.output with what `fill(temporary_folder)` writes, whole or not at all, and
/// returns its path: --experiment, or else the date and `name`, with a number behind them if that folder exists. Throws
/// Error if the run --experiment exists or is being made by another process.
std::filesystem::path create_run_folder(const RunOptions& options, const std::string& name,
                                        const std::function<void(const std::filesystem::path&)>& fill);
/// The run folder of `path`, which is a run folder or the folder of one of its checkpoints. Throws Error if it is
/// neither.
std::filesystem::path run_folder_of(const std::filesystem::path& path);
/// The name of the run whose folder, or the folder of one of whose checkpoints, `path` is: the last part of the run
/// folder's path. Any other folder has its own name.
std::string run_name(const std::filesystem::path& path);
/// The names of several runs; those that are called the same have as many of the folders around them as tell them
/// apart: "a/one", "b/one".
std::vector<std::string> run_names(const std::vector<std::string>& paths);
/// The best model of a run if `path` is a run folder, otherwise `path` itself: wherever a user names a model, a run
/// stands for its best one, and "vitrail/NAME" for a checkpoint that ships with the program (models/base/shipped.h;
/// Error if there is none).
std::filesystem::path model_of(const std::filesystem::path& path);

/// Writes the config.toml of a run folder: the kind of task, its options, and, as [facts], what the run was made with
/// and what its records mean.
void write_config(const std::filesystem::path& folder, const TaskOptions& options, const Facts& facts,
                  const RecordKind& records);
/// Sets the options that a config.toml gives. Throws Error, naming the key, if one is unknown or a value is of the
/// wrong kind, and if the file is of another kind of task.
void read_config(const std::filesystem::path& path, TaskOptions& options);
/// Takes over the options of the run in `folder` (or in the folder of one of its checkpoints) and sets options.resume.
/// They may then be changed where that makes sense (more --epochs) and passed to fit(). Throws Error if it is a run of
/// another kind.
void resume(const std::filesystem::path& folder, TaskOptions& options);
/// The kind of task that a config.toml was written for; "" if it does not say.
std::string task_in_config(const std::filesystem::path& path);
/// The facts of a config.toml; empty if it has none, as in runs of earlier versions.
std::map<std::string, std::string> read_facts(const std::filesystem::path& path);
/// What the records of a run mean, by its config.toml; empty if it does not say, as in runs of earlier versions.
std::optional<RecordKind> read_record_kind(const std::filesystem::path& path);

/// The options that differ from the config.toml at `path`. Throws Error if one of them is settled (Option::is_settled).
std::vector<OptionChange> changed_options(const std::filesystem::path& path, const TaskOptions& options);
/// Sentences about these options, and about the counts among the facts of a task (training_images, validation_texts …)
/// that are not those of the config.toml, as data have changed.
std::vector<std::string> changes_since(const std::filesystem::path& path, const TaskOptions& options,
                                       const Facts& facts);

}  // namespace vitrail::train
