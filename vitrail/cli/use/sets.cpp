// `vitrail predict` and `vitrail eval` for a model of sets.
#include "vitrail/cli/use/sets.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/texts.h"
#include "vitrail/data/sets/sets.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/detection/set2set.h"
#include "vitrail/train/sets/sets.h"

namespace vitrail::cli {
namespace {

using SetsJson = nlohmann::ordered_json;

models::SetModel open_set_model(const ModelFlags& flags) {
  flags.check_unchanged();
  check_usage(!flags.prepares_images(), "'{}' takes sets: there are no images to prepare", flags.model);
  return models::load_set_model(flags.name_or_folder());
}

void check_sizes(const models::SetModel& model, const data::Sets& sets, const std::string& name, bool with_targets) {
  const models::Set2SetConfig& config = model.net->config();
  check(sets.input_size == config.input_size, "{}: elements have {}, but '{}' takes {}", sets.source,
        io::counted(sets.input_size, "numbers"), name, config.input_size);
  check(!with_targets || sets.output_size == config.output_size, "{}: targets have {}, but '{}' says {}", sets.source,
        io::counted(sets.output_size, "numbers"), name, config.output_size);
}

// Prints what is said of one set after another.
class SetPrinter {
 public:
  SetPrinter(const models::SetModel& model, const std::string& format) : model_(model), format_(format) {
    if (format_ == "csv") {
      fmt::print("set,class,score{}\n", value_names());
    }
  }

  void print(const std::vector<train::FoundElement>& found) {
    ++count_;
    SetsJson elements = SetsJson::array();
    std::vector<std::string> words;
    for (const train::FoundElement& element : train::said_elements(found)) {
      const std::string& label = model_.labels[static_cast<std::size_t>(element.label)];
      elements.push_back(
          {{"class", label}, {"values", element.values}, {"score", element.score}, {"query", element.query}});
      words.push_back(fmt::format("{} {:.4g}", label, fmt::join(element.values, " ")));
      if (format_ == "csv") {
        fmt::print("{},{},{:.4f},{:.6g}\n", count_, csv_field(label), element.score, fmt::join(element.values, ","));
      }
    }
    if (format_ == "text") {
      fmt::print("set {}: {}\n", count_, words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", ")));
    }
    results_.push_back({{"set", count_}, {"elements", std::move(elements)}});
  }

  void finish() const {
    if (format_ == "json") {
      print_json(results_);
    }
  }

 private:
  std::string value_names() const {
    std::string names;
    for (std::int64_t i = 1; i <= model_.net->config().output_size; ++i) {
      names += fmt::format(",value{}", i);
    }
    return names;
  }

  const models::SetModel& model_;
  const std::string& format_;
  std::int64_t count_ = 0;
  SetsJson results_ = SetsJson::array();
};

}  // namespace

void predict_sets(const ModelFlags& flags, const ComputeFlags& compute, const PredictSetsFlags& asked) {
  const autograd::NoGrad no_grad;
  const DType dtype = compute.apply();
  const models::SetModel model = open_set_model(flags);
  SetPrinter printer(model, asked.format);
  for (const std::string& source : with_input_lines(asked.sources)) {
    const data::Sets sets = source.starts_with("[") || source.starts_with("{") ? data::set_of_text(source)
                                                                               : data::open_sets(source, "", {}, false);
    check_sizes(model, sets, flags.model, false);
    data::LoaderOptions loading;
    loading.batch_size = asked.batch_size;
    const auto loader = data::set_loader(sets, loading);
    loader->start_epoch(0);
    for (data::SetBatch batch; loader->next(batch);) {
      nn::Pass pass{.dtype = dtype};
      for (const auto& found : train::found_elements(model.net->forward({batch.x, batch.mask}, pass))) {
        printer.print(found);
      }
    }
  }
  printer.finish();
}

void evaluate_sets(const ModelFlags& flags, const ComputeFlags& compute, const DataFlags& asked,
                   const std::string& output, bool json) {
  train::SetRunOptions run;
  run.dtype = compute.apply();
  run.batch_size = asked.batch_size;
  run.workers = asked.workers;
  const models::SetModel model = open_set_model(flags);
  const data::Sets sets = data::open_sets(asked.data, asked.split, model.labels);
  check_sizes(model, sets, flags.model, true);
  const train::SetEvaluation result = train::evaluate_sets(*model.net, sets, run);
  SetsJson all = {{"model", flags.model}, {"data", asked.data}, {"count", result.count}};
  for (const train::Figure& figure : result.figures) {
    all[figure.name] = figure.value;
  }
  if (!output.empty()) {
    io::make_folder(output);
    const std::filesystem::path folder = output;
    io::write_atomically(folder / "sets.svg", train::sets_svg(result, sets.input_size, sets.output_size));
    io::write_atomically(folder / "eval.json", all.dump(2) + "\n");
  }
  if (json) {
    print_json(all);
    return;
  }
  const std::vector<train::FigureKind> kinds = train::set_figures();
  for (const train::Figure& figure : result.figures) {
    const train::FigureKind& kind = *train::find_figure(kinds, figure.name);
    fmt::print("{} {}   ", kind.label, train::figure_text(kind, figure.value));
  }
  fmt::print("{}\n", io::counted(result.count, "sets"));
  if (!output.empty()) {
    fmt::print("\n{0}/sets.svg, {0}/eval.json\n", output);
  }
}

}  // namespace vitrail::cli
