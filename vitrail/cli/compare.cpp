// vitrail compare: runs side by side.
#include "vitrail/train/compare.h"

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
  std::string output;
  bool json = false;
};

nlohmann::ordered_json to_json(const train::RunSummary& run) {
  return {{"run", run.name},
          {"architecture", run.architecture},
          {"parameters", run.parameters},
          {"flops", run.flops},
          {"epochs", run.last.epoch},
          {"seconds", run.seconds},
          {"images_per_second", run.images_per_second},
          {"top1", run.last.top1},
          {"top5", run.last.top5},
          {"best_top1", run.best.top1},
          {"best_epoch", run.best.epoch}};
}

// A table as Markdown has it, its columns as wide as their widest cell.
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

void compare(const CompareFlags& flags) {
  std::vector<train::RunSummary> runs;
  for (const std::string& folder : flags.runs) {
    runs.push_back(train::read_run(folder));
  }
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
  std::vector<std::vector<std::string>> rows = {
      {"run", "model", "parameters", "MFLOPs", "images/s", "epochs", "minutes", "top-1", "top-5", "best top-1"}};
  for (const train::RunSummary& run : runs) {
    rows.push_back({run.name, run.architecture, fmt::format("{:.2f} M", static_cast<double>(run.parameters) / 1e6),
                    fmt::format("{:.0f}", static_cast<double>(run.flops) / 1e6),
                    fmt::format("{:.0f}", run.images_per_second), std::to_string(run.last.epoch),
                    fmt::format("{:.1f}", run.seconds / 60), fmt::format("{:.1f} %", run.last.top1),
                    fmt::format("{:.1f} %", run.last.top5),
                    fmt::format("{:.1f} % (epoch {})", run.best.top1, run.best.epoch)});
  }
  fmt::print("{}", table(rows));
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "compare",
      "Runs side by side: what each cost and what it reached. The time is that of all steps at the pace of the median "
      "one, without evaluations");
  const auto flags = std::make_shared<CompareFlags>();
  command.add_option("runs", flags->runs, "Folders of runs")->required()->type_name("RUN ...");
  command.add_option("--output", flags->output, "Draw top-1 over time and over epochs")->type_name("FILE.svg");
  command.add_flag("--json", flags->json, "Print a JSON array");
  add_examples(command, {"vitrail compare runs/vit runs/swin --output compare.svg"});
  command.callback([flags] { compare(*flags); });
}

}  // namespace vitrail::cli
