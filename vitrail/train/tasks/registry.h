/// \file
/// The registry of the kinds of tasks, for the command line.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/train/task.h"

namespace vitrail::train {

/// A kind of task. A new one is a file in train/tasks and a line in task_kinds().
struct TaskKind {
  std::string_view name;     ///< TaskOptions::kind()
  std::string_view command;  ///< the command that runs it: "train" by `--task NAME`, "pretrain" by `pretrain NAME`
  std::string_view help;
  std::unique_ptr<TaskOptions> (*defaults)();
};
const std::vector<TaskKind>& task_kinds();  ///< all kinds of tasks

/// The kinds of tasks of one command; the first is its default.
std::vector<const TaskKind*> task_kinds_of(std::string_view command);
/// The kind of task of this name. Throws Error, listing the names, if there is none.
const TaskKind& task_kind(std::string_view name);
/// The kind of task of a run, given its folder or the config.toml in it, which in earlier versions did not say it.
const TaskKind& task_kind_of_run(const std::filesystem::path& path);

}  // namespace vitrail::train
