// `vitrail gradients` shows how far back in time recurrent networks learn.
#include "vitrail/explain/gradients.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/charts/chart.h"
#include "vitrail/io/file.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct GradientFlags {
  std::vector<std::string> models;
  std::string text;
  std::int64_t steps = 100;
  std::int64_t texts = 64;
  std::string output = "gradients.svg";
  bool json = false;
};

struct NamedReach {
  std::string name;
  explain::GradientReach reach;
};

// `count` parts of `length` tokens of a text, at equal distances.
Tensor parts_of(const std::vector<std::int64_t>& ids, std::int64_t count, std::int64_t length) {
  Tensor result = Tensor::empty({count, length}, DType::i64);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto begin = count > 1 ? (std::ssize(ids) - length) * i / (count - 1) : 0;
    std::copy_n(ids.begin() + begin, length, result.data<std::int64_t>() + i * length);
  }
  return result;
}

explain::GradientReach reach_of(const std::string& name, const GradientFlags& flags, const std::string& words) {
  const fs::path folder = train::model_of(name);
  check_trained_on_texts(folder, name);
  const models::TextModel model = models::load_text_model(folder);
  const models::RecurrentLanguage* recurrent = models::as_recurrent(models::language_of(model));
  check(recurrent != nullptr, "'{}' is no recurrent network: it hands no state from token to token", name);
  const std::vector<std::int64_t> ids = text::load_tokenizer(folder).encode(words, false).ids;
  check(std::ssize(ids) > flags.steps, "{}: {} tokens are too few for {} steps and one more", flags.text, ids.size(),
        flags.steps);
  // As many tokens are read before, of a short text half of what is left: a state near the zeros at a beginning has
  // other gradients.
  const std::int64_t before = std::min(flags.steps, (std::ssize(ids) - flags.steps - 1) / 2);
  explain::GradientReach reach =
      explain::gradient_reach(*recurrent, parts_of(ids, flags.texts, before + flags.steps + 1));
  for (std::vector<double>* norms : {&reach.h, &reach.c}) {
    norms->resize(std::min(norms->size(), static_cast<std::size_t>(flags.steps)));
  }
  return reach;
}

// A curve a model on a logarithmic scale; a gradient of 0 leaves a gap.
io::LineChart chart(const std::vector<NamedReach>& all, std::vector<double> explain::GradientReach::*state,
                    const char* letter) {
  io::LineChart chart;
  chart.title = fmt::format("|∂loss at t / ∂{} at t - k|", letter);
  chart.x_label = "k, steps back in time";
  chart.y_label = "logarithm to the base 10";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<double>& norms = all[i].reach.*state;
    if (norms.empty()) {
      continue;
    }
    io::Series series;
    series.name = all[i].name;
    series.color = static_cast<int>(i);
    for (std::size_t k = 0; k < norms.size(); ++k) {
      series.x.push_back(static_cast<double>(k));
      series.y.push_back(std::log10(norms[k]));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

void print_table(const std::vector<NamedReach>& all, std::int64_t steps) {
  std::vector<std::int64_t> distances = {0, 1, 2, 5, 10, 20, 50, 100, 200, 500};
  std::erase_if(distances, [&](std::int64_t k) { return k >= steps; });
  std::size_t width = 0;
  for (const NamedReach& one : all) {
    width = std::max(width, one.name.size() + 2);
  }
  fmt::print("{:<{}}", "k", width);
  for (const std::int64_t k : distances) {
    fmt::print(" {:>9}", k);
  }
  fmt::print("\n");
  const auto row = [&](const std::string& name, const std::vector<double>& norms) {
    fmt::print("{:<{}}", name, width);
    for (const std::int64_t k : distances) {
      fmt::print(" {:>9.2e}", norms[static_cast<std::size_t>(k)]);
    }
    fmt::print("\n");
  };
  for (const NamedReach& one : all) {
    row(one.name, one.reach.h);
    if (!one.reach.c.empty()) {
      row(one.name + " c", one.reach.c);
    }
  }
}

void draw(const GradientFlags& flags) {
  check_not_input(flags.output, flags.text);
  std::set<fs::path> different;
  for (const std::string& name : flags.models) {
    different.insert(fs::weakly_canonical(train::model_of(name)));
  }
  check_usage(different.size() == flags.models.size(), "a model is named twice");
  const std::string words = io::read_text(flags.text);
  std::vector<NamedReach> all;
  const std::vector<std::string> names = train::run_names(flags.models);
  for (std::size_t i = 0; i < names.size(); ++i) {
    all.push_back({names[i], reach_of(flags.models[i], flags, words)});
  }
  std::vector<io::LineChart> charts = {chart(all, &explain::GradientReach::h, "h")};
  if (std::ranges::any_of(all, [](const NamedReach& one) { return !one.reach.c.empty(); })) {
    charts.push_back(chart(all, &explain::GradientReach::c, "c"));
  }
  io::write_atomically(flags.output, io::line_charts_svg(charts));
  if (flags.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const NamedReach& one : all) {
      json.push_back({{"model", one.name}, {"h", one.reach.h}});
      if (!one.reach.c.empty()) {
        json.back()["c"] = one.reach.c;
      }
    }
    fmt::print("{}\n", json.dump());
    return;
  }
  print_table(all, flags.steps);
}

}  // namespace

void add_gradients(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("gradients",
                                          "Draw how far back in time recurrent networks learn\n"
                                          "The norm of the gradient of a token's loss by the state some steps before "
                                          "it, as the mean over parts of a text");
  const auto flags = std::make_shared<GradientFlags>();
  command.add_option("MODELS", flags->models, "Folders of recurrent language models, or of their runs")
      ->required()
      ->type_name("");
  command.add_option("--text", flags->text, "Text that they read")->required()->type_name("FILE");
  command.add_option("--steps", flags->steps, "Steps back in time")
      ->check(whole_number(1, 100'000))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--texts", flags->texts, "Parts of the text, at equal distances")
      ->check(whole_number(1, 100'000))
      ->capture_default_str()
      ->type_name("N");
  expect_ending(command.add_option("--output", flags->output, "Chart to write")->capture_default_str(), ".svg");
  command.add_flag("--json", flags->json, "Print a JSON array: for each model the norms for k = 0, 1 …");
  add_examples(command, {"vitrail gradients runs/rnn runs/lstm runs/gru --text shakespeare.txt"});
  command.callback([flags] { draw(*flags); });
}

}  // namespace vitrail::cli
