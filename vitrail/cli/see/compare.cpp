// The command `vitrail compare`, which compares runs.
#include "vitrail/train/study/compare.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/io/file.h"

namespace vitrail::cli {
namespace {

struct CompareFlags {
  std::vector<std::string> runs;
  std::string metric;
  std::string output;
  bool json = false;
};

nlohmann::ordered_json to_json(const train::RunSummary& run) {
  nlohmann::ordered_json json = {{"run", run.name},
                                 {"architecture", run.architecture},
                                 {"parameters", run.parameters},
                                 {"flops", run.flops},
                                 {"epochs", run.last.epoch},
                                 {"seconds", run.seconds},
                                 {run.records.units + std::string(train::rate_ending), run.rate}};
  for (const train::Figure& figure : run.last.figures) {
    json[figure.name] = figure.value;
  }
  json["best_" + run.metric.name] = train::figure(run.best.figures, run.metric.name);
  json["best_epoch"] = run.best.epoch;
  return json;
}

// A figure of the last evaluation as text; "-" if the run has no such figure.
std::string last_text(const train::RunSummary& run, const train::FigureKind& kind) {
  return train::find_figure(run.records.figures, kind.name) == nullptr
             ? "-"
             : train::figure_text(kind, train::figure(run.last.figures, kind.name));
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
  for (const std::string& folder : flags.runs) {
    check(std::filesystem::exists(folder), "{}: no such folder", folder);
    try {
      runs.push_back(train::read_run(folder, runs.empty() ? flags.metric : runs.front().metric.name));
    } catch (const Error& error) {
      if (flags.runs.size() == 1) {
        throw;
      }
      fmt::print(stderr, "passed over: {}\n", error.what());
    }
  }
  check(!runs.empty(), "none of the {} folders is a run to compare", flags.runs.size());
  return runs;
}

void compare(const CompareFlags& flags) {
  const std::vector<train::RunSummary> runs = read_runs(flags);
  if (!flags.output.empty()) {
    io::write_atomically(flags.output, train::comparison_svg(runs));
  }
  if (flags.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const train::RunSummary& run : runs) {
      json.push_back(to_json(run));
    }
    fmt::print("{}\n", json.dump(2));
    return;
  }
  const train::RunSummary& first = runs.front();
  std::vector<std::vector<std::string>> rows = {
      {"run", "model", "parameters", "MFLOPs", first.records.units + "/s", "epochs", "minutes"}};
  for (const train::FigureKind& kind : first.records.figures) {
    rows.front().push_back(kind.label);
  }
  rows.front().push_back("best " + first.metric.label);
  for (const train::RunSummary& run : runs) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {run.name,
           run.architecture,
           fmt::format("{:.2f} M", static_cast<double>(run.parameters) / 1e6),
           run.flops == 0 ? "-" : fmt::format("{:.0f}", static_cast<double>(run.flops) / 1e6),
           fmt::format("{:.0f}", run.rate),
           std::to_string(run.last.epoch),
           fmt::format("{:.1f}", run.seconds / 60)};
    for (const train::FigureKind& kind : first.records.figures) {
      row.push_back(last_text(run, kind));
    }
    row.push_back(fmt::format("{} (epoch {})",
                              train::figure_text(run.metric, train::figure(run.best.figures, run.metric.name)),
                              run.best.epoch));
  }
  fmt::print("{}", table(rows));
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
  expect_ending(command.add_option("--output", flags->output, "Chart of the figure over time and over epochs"), ".svg");
  command.add_flag("--json", flags->json, "Print a JSON array");
  add_examples(command, {"vitrail compare runs/vit runs/swin --output compare.svg"});
  command.callback([flags] { compare(*flags); });
}

}  // namespace vitrail::cli
