#include "vitrail/train/run/run_folder.h"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/toml.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// What the records mean, as TOML: each figure is an inline table.
std::string records_toml(const RecordKind& records) {
  std::string out = fmt::format("\n[facts.records]\nunits = {}\nloss_axis = {}\nfigures = [\n",
                                io::toml_value(records.units), io::toml_value(records.loss_axis));
  for (const FigureKind& kind : records.figures) {
    out += fmt::format(
        "  {{name = {}, label = {}, unit = {}, decimals = {}, higher_is_better = {}, chart = {}, axis = {}{}}},\n",
        io::toml_value(kind.name), io::toml_value(kind.label), io::toml_value(kind.unit), kind.decimals,
        kind.higher_is_better, io::toml_value(kind.chart), io::toml_value(kind.axis),
        kind.axis_max ? ", axis_max = " + io::toml_value(*kind.axis_max) : "");
  }
  return out + "]\n";
}

FigureKind read_figure(io::Fields f) {
  FigureKind kind;
  kind.name = f.get<std::string>("name");
  kind.label = f.get<std::string>("label", kind.name);
  kind.unit = f.get<std::string>("unit", "");
  kind.decimals = static_cast<int>(f.get<std::int64_t>("decimals", kind.decimals, {0, 17}));
  kind.higher_is_better = f.get<bool>("higher_is_better", false);
  kind.chart = f.get<std::string>("chart", kind.chart);
  kind.axis = f.get<std::string>("axis", kind.axis);
  kind.axis_max = f.optional<double>("axis_max");
  return kind;
}

// The tables of [facts]; an empty object if the file has none.
nlohmann::json facts_of(const fs::path& path) {
  const nlohmann::json file = io::read_toml(path);
  const auto facts = file.find("facts");
  return facts != file.end() && facts->is_object() ? *facts : nlohmann::json::object();
}

void check_vacant(const fs::path& folder) {
  check(!fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder)),
        "the run '{}' exists: go on with it by --resume {}, or choose another --experiment or --output",
        folder.string(), io::shell_word(folder.string()));
}

// The path of a new run. One without a name of its own is made here, empty, so that no other run takes it.
fs::path new_run_folder(const RunOptions& options, const std::string& name) {
  if (!options.experiment.empty()) {
    fs::path folder = fs::path(options.output) / options.experiment;
    check_vacant(folder);
    return folder;
  }
  io::make_folder(options.output);
  const std::string dated = fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::localtime(std::time(nullptr)), name);
  fs::path folder = fs::path(options.output) / dated;
  std::error_code error;
  for (int i = 1; !fs::create_directory(folder, error); ++i) {
    if (error) {
      io::fail_writing(folder, error.value());
    }
    folder = fs::path(options.output) / fmt::format("{}-{}", dated, i);
  }
  return folder;
}

}  // namespace

fs::path create_run_folder(const RunOptions& options, const std::string& name,
                           const std::function<void(const fs::path&)>& fill) {
  fs::path folder = new_run_folder(options, name);
  try {
    io::replace_folder(folder, [&](const fs::path& temporary) {
      check_vacant(folder);  // of runs that begin at the same moment, the first one has it
      fill(temporary);
    });
  } catch (...) {
    std::error_code ignored;
    fs::remove(folder, ignored);  // if it is empty
    throw;
  }
  return folder;
}

Facts facts_of_run(Task& task, DType dtype, int ranks, double learning_rate) {
  Facts facts = {{"version", VITRAIL_VERSION},
                 {"cpu", kernels::cpu_name()},
                 {"threads", fmt::format("{}", kernels::threads())},
                 {"ranks", fmt::format("{}", ranks)},
                 {"dtype", std::string(name_of(dtype))},
                 {"parameters", fmt::format("{}", task.network().parameters.count())}};
  const Facts own = task.facts();
  facts.insert(facts.end(), own.begin(), own.end());
  facts.emplace_back("keeps", task.keeps_latest() ? "latest" : "best");
  facts.emplace_back("learning_rate", fmt::format("{}", learning_rate));
  return facts;
}

bool discard_run(const fs::path& folder) {
  std::error_code error;
  if (fs::is_symlink(folder, error)) {
    return false;
  }
  fs::remove_all(folder, error);
  return !error;
}

fs::path run_folder_of(const fs::path& path) {
  fs::path folder = path.has_filename() ? path : path.parent_path();
  if (!fs::exists(folder / "config.toml") && fs::exists(folder / "train-state.safetensors")) {
    folder = fs::absolute(folder).parent_path();
  }
  const fs::path above = fs::absolute(folder).parent_path();
  check(fs::exists(folder / "config.toml"), "'{}' is not a run folder: it has no config.toml{}", path.string(),
        fs::exists(above / "config.toml") ? fmt::format(", but '{}' has one", above.string()) : "");
  return folder;
}

fs::path model_of(const fs::path& path) {
  if (models::is_shipped_name(path.native())) {
    return models::shipped_folder(path.native());
  }
  std::error_code error;  // a path that cannot be looked at is none of a run
  fs::path best = path / "best";
  return fs::exists(path / "config.toml", error) && fs::exists(best, error) ? best : path;
}

void write_config(const fs::path& folder, const TaskOptions& options, const Facts& facts, const RecordKind& records) {
  const std::unique_ptr<TaskOptions> copy = options.clone();
  copy->resume.clear();
  OptionList list;
  copy->describe(list);
  list.resolve_paths();
  std::string text = fmt::format("task = {}\n\n", io::toml_value(options.kind())) + to_toml(list) + "\n[facts]\n";
  for (const auto& [name, value] : facts) {
    text += fmt::format("{} = {}\n", name, io::toml_value(value));
  }
  io::write_atomically(folder / "config.toml", text + records_toml(records));
}

void read_config(const fs::path& path, TaskOptions& options) {
  const std::string kind = task_in_config(path);
  check(kind.empty() || kind == options.kind(), "{}: 'task' is '{}', but '{}' was expected", path.string(), kind,
        options.kind());
  check(!io::read_toml(path).empty(), "{}: there are no options in it", path.string());
  OptionList list;
  options.describe(list);
  std::set<std::string> passed_over = options.retired_options();
  passed_over.insert("task");
  read_toml(path, list, passed_over);
}

std::string task_in_config(const fs::path& path) {
  const nlohmann::json file = io::read_toml(path);
  io::Fields fields(file, path.string());
  return fields.get<std::string>("task", "");
}

std::map<std::string, std::string> read_facts(const fs::path& path) {
  std::map<std::string, std::string> result;
  const nlohmann::json facts = facts_of(path);
  for (const auto& [name, value] : facts.items()) {
    if (value.is_string()) {
      result[name] = value.get<std::string>();
    }
  }
  return result;
}

std::optional<RecordKind> read_record_kind(const fs::path& path) {
  const nlohmann::json facts = facts_of(path);
  const std::string source = path.string() + ": [facts]";
  io::Fields fields(facts, source);
  if (fields.kind("records") != io::Kind::object) {
    return std::nullopt;
  }
  io::Fields records = fields.object("records");
  RecordKind result{records.get<std::string>("units", "samples"), {}, records.get<std::string>("loss_axis", "loss")};
  if (records.kind("figures") == io::Kind::list) {
    for (const nlohmann::json& figure : records.raw("figures")) {
      result.figures.push_back(read_figure(io::Fields(figure, source)));
    }
  }
  return result;
}

namespace {

// The folder of a run, or of a checkpoint in it; another folder as it is.
fs::path folder_around(const fs::path& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  folder = folder.has_filename() ? folder : folder.parent_path();  // "runs/a/" has no file name
  const bool is_checkpoint = !fs::exists(folder / "config.toml") && fs::exists(folder.parent_path() / "config.toml");
  return is_checkpoint ? folder.parent_path() : folder;
}

}  // namespace

std::string run_name(const fs::path& path) { return folder_around(path).filename().string(); }

std::vector<std::string> run_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  std::vector<fs::path> around;
  for (const std::string& path : paths) {
    const fs::path folder = folder_around(path);
    names.push_back(folder.filename().string());
    around.push_back(folder.parent_path());
  }
  for (bool longer = true; std::exchange(longer, false);) {
    const std::vector<std::string> before = names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (around[i].has_filename() && std::ranges::count(before, before[i]) > 1) {
        names[i] = (around[i].filename() / names[i]).string();
        around[i] = around[i].parent_path();
        longer = true;
      }
    }
  }
  return names;
}

std::vector<OptionChange> changed_options(const fs::path& path, const TaskOptions& options) {
  const std::unique_ptr<TaskOptions> before = options.clone();
  const std::unique_ptr<TaskOptions> now = options.clone();
  now->resume.clear();
  before->resume.clear();
  OptionList old_list;
  before->describe(old_list);
  for (Option& option : old_list.all()) {
    if (option.unset) {  // the file leaves out what is not set
      option.set({});
    }
  }
  read_config(path, *before);
  old_list.resolve_paths();
  OptionList list;
  now->describe(list);
  list.resolve_paths();
  std::vector<OptionChange> result = changes(old_list, list);
  for (const OptionChange& change : result) {
    check(!change.settled, "the run '{}' has {} {} and cannot go on with {}: begin a new one",
          path.parent_path().string(), flag_of(change.name), change.before, change.after);
  }
  return result;
}

std::vector<std::string> changes_since(const fs::path& path, const TaskOptions& options, const Facts& facts) {
  std::vector<std::string> result;
  for (const OptionChange& change : changed_options(path, options)) {
    result.push_back(fmt::format("{} was {} and is now {}", flag_of(change.name), change.before, change.after));
  }
  const std::map<std::string, std::string> before = read_facts(path);
  if (const auto cpu = before.find("cpu"); cpu != before.end() && cpu->second != kernels::cpu_name()) {
    result.push_back(fmt::format("it ran on '{}': on '{}' its numbers may differ in the last bits", cpu->second,
                                 kernels::cpu_name()));
  }
  std::vector<std::string> counts;
  bool counted = false;  // whether it is told already that what is learned has changed
  for (const auto& [name, value] : facts) {
    const auto known = before.find(name);
    if (known != before.end() && known->second != value && name != training_digest &&
        (name.starts_with("training_") || name.starts_with("validation_"))) {
      counted = counted || name.starts_with("training_");
      counts.push_back(fmt::format("the data have changed: {} was {} and is now {}", name, known->second, value));
    }
  }
  const auto digest = std::ranges::find(facts, training_digest, &Facts::value_type::first);
  const auto known = before.find(training_digest);
  if (!counted && digest != facts.end() && known != before.end() && known->second != digest->second) {
    counts.emplace_back(
        "the data have changed: as many images to learn from as before, but some have other names or classes");
  }
  std::ranges::move(counts, std::back_inserter(result));
  return result;
}

namespace {

// What is added at the end of a config.toml stands in its last tables, where no option is read.
void check_nothing_is_added(const fs::path& config) {
  const nlohmann::json facts = facts_of(config);
  for (const auto& [name, value] : facts.items()) {
    check(value.is_string() || name == "records",
          "{}: '{}' stands in its table [facts], where no option is read: move it above", config.string(), name);
  }
  const auto records = facts.find("records");
  if (records == facts.end() || !records->is_object()) {
    return;
  }
  for (const auto& [name, value] : records->items()) {
    check(name == "units" || name == "loss_axis" || name == "figures",
          "{}: '{}' stands in its last table, [facts.records], where no option is read: move it above [facts]",
          config.string(), name);
  }
}

}  // namespace

void resume(const fs::path& path, TaskOptions& options) {
  const fs::path folder = run_folder_of(path);
  check_nothing_is_added(folder / "config.toml");
  read_config(folder / "config.toml", options);
  options.resume = folder.string();
}

}  // namespace vitrail::train
