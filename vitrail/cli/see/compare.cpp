// The command `vitrail compare`, which compares runs.
#include "vitrail/train/study/compare.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/data/beside.h"
#include "vitrail/io/file.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::cli {
namespace {

struct CompareFlags {
  std::vector<std::string> runs;
  std::string metric;
  std::string output;
  std::vector<std::string> by;
  bool by_seed = false;
  bool json = false;
};

// Runs that stand in one row.
using Row = std::vector<train::RunSummary>;

// Mean and deviation of what `of` says of each run.
template <class Of>
train::Spread over(const Row& row, Of of) {
  std::vector<double> values;
  std::ranges::transform(row, std::back_inserter(values), of);
  return train::spread_of(values);
}

train::Spread last_of(const Row& row, const std::string& name) {
  return over(row, [&](const train::RunSummary& run) { return train::figure(run.last.figures, name); });
}

train::Spread best_of(const Row& row) {
  return over(row, [](const train::RunSummary& run) { return train::figure(run.best.figures, run.metric.name); });
}

std::vector<std::string> names_of(const Row& row) {
  std::vector<std::string> names;
  std::ranges::transform(row, std::back_inserter(names), &train::RunSummary::name);
  return names;
}

nlohmann::ordered_json to_json(const Row& row, const std::vector<std::string>& by) {
  const train::RunSummary& run = row.front();
  const double rate = over(row, &train::RunSummary::rate).mean;
  nlohmann::ordered_json json = {{"run", run.name},
                                 {"architecture", run.architecture},
                                 {"parameters", run.parameters},
                                 {"flops", run.flops},
                                 {"epochs", run.last.epoch},
                                 {"seconds", over(row, &train::RunSummary::seconds).mean},
                                 {run.records.units + std::string(train::rate_ending), rate}};
  if (!by.empty()) {
    json["by"] = train::option_of(run, by);
  }
  const auto add = [&](const std::string& name, const train::Spread& spread) {
    json[name] = spread.mean;
    if (row.size() > 1) {
      json[name + "_deviation"] = spread.deviation;
    }
  };
  for (const train::Figure& figure : run.last.figures) {
    add(figure.name, last_of(row, figure.name));
  }
  add("best_" + run.metric.name, best_of(row));
  if (row.size() > 1) {
    json["runs"] = names_of(row);
  } else {
    json["best_epoch"] = run.best.epoch;
  }
  return json;
}

std::string spread_text(const train::FigureKind& kind, const train::Spread& spread, std::size_t count) {
  return count == 1
             ? train::figure_text(kind, spread.mean)
             : fmt::format("{:.{}f} ± {}", spread.mean, kind.decimals, train::figure_text(kind, spread.deviation));
}

// A figure of the last evaluation as text; "-" if the runs have no such figure.
std::string last_text(const Row& row, const train::FigureKind& kind) {
  return train::find_figure(row.front().records.figures, kind.name) == nullptr
             ? "-"
             : spread_text(kind, last_of(row, kind.name), row.size());
}

// "vit", or of runs that repeat each other what their names begin with: "vit (3 runs)".
std::string row_name(const Row& row) {
  return row.size() == 1 ? row.front().name : fmt::format("{} ({} runs)", train::shared_name(row), row.size());
}

// A Markdown table, whose columns are as wide as their widest cell.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += fmt::format("| {:<{}} ", rows[r][i], widths[i]);
    }
    text += "|\n";
    if (r == 0) {
      for (const std::size_t width : widths) {
        text += fmt::format("|{:-<{}}", "", width + 2);
      }
      text += "|\n";
    }
  }
  return text;
}

// The runs that can be compared. The others are passed over with a line on stderr, as "runs/*" may name runs that have
// just begun; if there is no other, the reason is the error.
std::vector<train::RunSummary> read_runs(const CompareFlags& flags) {
  std::vector<train::RunSummary> runs;
  std::vector<std::string> folders;  // of them
  std::set<std::filesystem::path> seen;
  for (const std::string& folder : flags.runs) {
    check(std::filesystem::exists(folder), "{}: no such folder", folder);
    if (!seen.insert(std::filesystem::canonical(folder)).second) {
      say("passed over: {} is named twice\n", folder);
      continue;
    }
    try {
      runs.push_back(train::read_run(folder, runs.empty() ? flags.metric : runs.front().metric.name));
      folders.push_back(folder);
    } catch (const Error& error) {
      if (flags.runs.size() == 1) {
        throw;
      }
      say("passed over: {}\n", error.what());
    }
  }
  check(!runs.empty(), "none of the {} folders is a run to compare", flags.runs.size());
  const std::vector<std::string> names = train::run_names(folders);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].name = names[i];
  }
  return runs;
}

std::vector<Row> rows_of(const std::vector<train::RunSummary>& runs, bool by_seed) {
  if (by_seed) {
    std::vector<Row> rows = train::grouped_by_settings(runs);
    for (const Row& row : rows) {
      for (std::size_t i = 1; i < row.size(); ++i) {
        const auto first = std::ranges::find(row, row[i].seed, &train::RunSummary::seed);
        if (first < row.begin() + static_cast<std::ptrdiff_t>(i)) {
          say_note(fmt::format("{} has the seed {} of {}: a mean over seeds counts it twice", row[i].name, row[i].seed,
                               first->name));
        }
      }
    }
    return rows;
  }
  std::vector<Row> rows;
  std::ranges::transform(runs, std::back_inserter(rows), [](const train::RunSummary& run) { return Row{run}; });
  return rows;
}

// The cells of a row; `unit` is what stands behind its rate.
std::vector<std::string> cells_of(const Row& row, const std::vector<std::string>& by,
                                  const std::vector<train::FigureKind>& kinds, const std::string& unit) {
  const train::RunSummary& run = row.front();
  std::vector<std::string> cells = {row_name(row),
                                    run.architecture,
                                    fmt::format("{:.2f} M", static_cast<double>(run.parameters) / 1e6),
                                    run.flops == 0 ? "-" : fmt::format("{:.0f}", static_cast<double>(run.flops) / 1e6),
                                    fmt::format("{:.0f}{}", over(row, &train::RunSummary::rate).mean, unit),
                                    std::to_string(run.last.epoch),
                                    fmt::format("{:.1f}", over(row, &train::RunSummary::seconds).mean / 60)};
  if (!by.empty()) {
    cells.push_back(fmt::format("{}", train::option_of(run, by)));
  }
  for (const train::FigureKind& kind : kinds) {
    cells.push_back(last_text(row, kind));
  }
  const std::string best = spread_text(run.metric, best_of(row), row.size());
  cells.push_back(row.size() == 1 ? fmt::format("{} (epoch {})", best, run.best.epoch) : best);
  return cells;
}

void compare(const CompareFlags& flags) {
  const std::vector<train::RunSummary> runs = read_runs(flags);
  for (const std::string& run : flags.runs) {
    check(!io::is_file(flags.output) || !data::lies_in(flags.output, run),
          "'{}' is a picture of the run '{}': choose another --output", flags.output, run);
  }
  const std::vector<Row> rows = rows_of(runs, flags.by_seed);
  if (!flags.output.empty()) {
    io::write_atomically(flags.output,
                         flags.by.empty() ? train::comparison_svg(runs) : train::by_option_svg(runs, flags.by));
  }
  if (flags.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    std::ranges::transform(rows, std::back_inserter(json), [&](const Row& row) { return to_json(row, flags.by); });
    print_json(json);
    return;
  }
  const train::RunSummary& first = runs.front();
  const auto other =
      std::ranges::find_if(runs, [&](const train::RunSummary& run) { return run.judged_on != first.judged_on; });
  if (other != runs.end()) {
    say("note: the runs are evaluated on different data: {} on '{}', {} on '{}'\n", first.name, first.judged_on,
        other->name, other->judged_on);
  }
  for (const train::RunSummary& run : runs) {
    if (run.features_precomputed) {
      say("note: '{}' is a linear probe: its pace is that of the head, the features having been computed before\n",
          run.name);
    }
  }
  const bool one_unit =
      std::ranges::all_of(runs, [&](const train::RunSummary& run) { return run.records.units == first.records.units; });
  std::vector<std::vector<std::string>> cells = {
      {"run", "model", "parameters", "MFLOPs", one_unit ? first.records.units + "/s" : "rate", "epochs", "minutes"}};
  if (!flags.by.empty()) {
    cells.front().push_back(fmt::format("{}", fmt::join(flags.by, ", ")));
  }
  for (const train::FigureKind& kind : first.records.figures) {
    cells.front().push_back(kind.label);
  }
  cells.front().push_back("best " + first.metric.label);
  for (const Row& row : rows) {
    cells.push_back(
        cells_of(row, flags.by, first.records.figures, one_unit ? "" : " " + row.front().records.units + "/s"));
  }
  fmt::print("{}", table(cells));
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("compare",
                          "Compare runs: what each cost and what it reached\n"
                          "The time is that of all steps at the pace of the median one, without evaluations");
  const auto flags = std::make_shared<CompareFlags>();
  command.add_option("RUNS", flags->runs, "Folders of runs")->required()->type_name("");
  command
      .add_option("--metric", flags->metric,
                  "Figure to compare (default: the one by which the first run chose its best model)")
      ->type_name("NAME");
  command
      .add_option("--by", flags->by,
                  "Chart the figure over an option of the runs or an argument of their models (lr, depth; several: the "
                  "first that a run has), a curve for runs that are otherwise alike")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("OPTION");
  expect_ending(
      command.add_option("--output", flags->output, "Chart of the figure over time and over epochs, or --by an option"),
      ".svg");
  command.add_flag("--seeds", flags->by_seed,
                   "One row for runs that differ in their --seed alone: means, and their standard deviations");
  command.add_flag("--json", flags->json, "Print a JSON array");
  add_examples(command, {"vitrail compare runs/vit runs/swin --output compare.svg", "vitrail compare --seeds runs/*",
                         "vitrail compare runs/depth-* --by depth --output depth.svg"});
  command.callback([flags] { compare(*flags); });
}

}  // namespace vitrail::cli
