#include "vitrail/cli/use/frames.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/choice.h"
#include "vitrail/models/recurrent/frame_network.h"
#include "vitrail/train/study/frames.h"

namespace vitrail::cli {
namespace {

using FrameJson = nlohmann::ordered_json;
using models::FrameTarget;

std::unique_ptr<models::FrameNetwork> open_frame_network(const ModelFlags& flags) {
  flags.check_unchanged();
  auto model = models::load_frame_network(flags.name_or_folder());
  as_usage([&] { data::apply(flags.images, model->encoder.pretrained); });
  return model;
}

std::vector<std::int64_t> all_of(const data::Sequences& data) {
  std::vector<std::int64_t> numbers(data.sequences.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Prints the predictions for the sequences of one source after those of others.
class FramePrinter {
 public:
  FramePrinter(const FrameTarget& target, const PredictFramesFlags& flags) : target_(target), flags_(flags) {
    if (flags.format == "csv") {
      fmt::print("{}\n", target.kind == FrameTarget::Kind::sequence ? "sequence,rank,label,index,probability"
                         : target.kind == FrameTarget::Kind::angle  ? "sequence,frame,angle"
                                                                    : "sequence,frame,rank,label,index,probability");
    }
  }

  // Names of sequences and frames begin at `place`, which was named on the command line, unless it is a table.
  void print(const data::Sequences& data, const std::string& place, const train::FramePrediction& prediction) {
    const auto whole = [&](const std::string& name) {
      return io::is_table_name(place) || name == place ? name : (std::filesystem::path(place) / name).string();
    };
    const std::string name = whole(data.sequences[static_cast<std::size_t>(prediction.sequence)].name);
    if (!target_.each_frame()) {
      results_.push_back({{"sequence", io::as_utf8(name)}, {"top", labels(prediction.probabilities, 0, name)}});
      return;
    }
    FrameJson frames = FrameJson::array();
    for (std::size_t i = 0; i < prediction.frames.size(); ++i) {
      const std::string frame = whole(data.images->name(prediction.frames[i]));
      FrameJson said = {{"frame", io::as_utf8(frame)}};
      if (target_.kind == FrameTarget::Kind::angle) {
        said["angle"] = prediction.angles[i];
        line(fmt::format("{}: {:.1f}", frame, prediction.angles[i]),
             fmt::format("{},{},{:.3f}", csv_field(name), csv_field(frame), prediction.angles[i]));
      } else {
        said["top"] = labels(prediction.probabilities, static_cast<std::int64_t>(i), frame, name);
      }
      frames.push_back(std::move(said));
    }
    results_.push_back({{"sequence", io::as_utf8(name)}, {"frames", std::move(frames)}});
  }

  void finish() const {
    if (flags_.format == "json") {
      print_json(results_);
    }
  }

 private:
  void line(const std::string& text, const std::string& csv) const {
    if (flags_.format != "json") {
      fmt::print("{}\n", flags_.format == "csv" ? csv : text);
    }
  }

  // Prints the most likely classes of row `row` of the probabilities, of what is called `name` (in `sequence`).
  FrameJson labels(const Tensor& probabilities, std::int64_t row, const std::string& name,
                   const std::string& sequence = "") const {
    const std::vector<float> p = probabilities.select(0, row).values();
    const std::string place = (sequence.empty() ? "" : csv_field(sequence) + ",") + csv_field(name);
    FrameJson top = FrameJson::array();
    std::string text = name + ":";
    std::string csv;
    for (const std::int64_t best : kernels::largest(p, flags_.topk)) {
      const auto c = static_cast<std::size_t>(best);
      top.push_back({{"label", target_.classes[c]}, {"index", c}, {"probability", p[c]}});
      text += fmt::format("  {} {:.1f} %", target_.classes[c], 100 * p[c]);
      csv += fmt::format("{}{},{},{},{},{}", csv.empty() ? "" : "\n", place, top.size(), csv_field(target_.classes[c]),
                         c, p[c]);
    }
    line(text, csv);
    return top;
  }

  const FrameTarget& target_;
  const PredictFramesFlags& flags_;
  FrameJson results_ = FrameJson::array();
};

FrameJson evaluation_json(const train::FrameEvaluation& evaluation, const data::Sequences& data) {
  FrameJson json;
  json["sequences"] = evaluation.predictions.size();
  for (const train::Figure& figure : evaluation.figures) {
    json[figure.name] = figure.value;
  }
  if (json.contains("error")) {
    for (const train::ClassError& one : train::errors_by_class(evaluation, data)) {
      json["classes"].push_back({{"name", one.name}, {"frames", one.frames}, {"error", one.error}});
    }
  }
  json["broken"] = evaluation.broken;
  return json;
}

// The pattern of the frames to take: the one that is asked for, or else the one of the training, which is said.
std::string frames_of(const std::string& asked, const FrameTarget& target) {
  if (!asked.empty() || target.frames.empty()) {
    return asked;
  }
  say("note: takes the frames '{}' alone, as in training (--frames '*' takes all)\n", target.frames);
  return target.frames;
}

}  // namespace

void add_frames_flag(CLI::App& command, std::string& frames) {
  command
      .add_option("--frames", frames,
                  "In sequences, take frames with file names like this alone: '090-*.jpg' (default: as in training)")
      ->type_name("PATTERN");
}

void predict_frames(const ModelFlags& flags, const ComputeFlags& compute, const PredictFramesFlags& asked) {
  train::FrameRunOptions run;
  run.dtype = compute.apply();
  run.batch_size = asked.batch_size;
  run.skip_broken = asked.skip_broken;
  run.labeled = false;
  const std::unique_ptr<models::FrameNetwork> model = open_frame_network(flags);
  check_usage(model->target.kind != FrameTarget::Kind::angle || !asked.topk_given,
              "'{}' says angles: --topk has no effect on it", flags.model);
  FramePrinter printer(model->target, asked);
  data::SequenceOptions wanted;
  wanted.labels = data::SequenceOptions::Labels::none;
  wanted.frames = frames_of(asked.frames, model->target);
  wanted.skip_broken = asked.skip_broken;
  for (const std::string& source : with_input_lines(asked.sources)) {
    const data::Sequences data = data::open_sequences(source, wanted);
    std::ranges::for_each(data.notes, say_note);
    const train::FrameEvaluation said = train::run_frames(*model, data, all_of(data), run);
    for (const train::FramePrediction& prediction : said.predictions) {
      printer.print(data, source, prediction);
    }
    for (const std::string& broken : said.broken) {
      say("left out: {}\n", broken);
    }
  }
  printer.finish();
}

void evaluate_frames(const ModelFlags& flags, const ComputeFlags& compute, const DataFlags& asked,
                     const std::string& frames, const std::string& output, bool json) {
  train::FrameRunOptions run;
  run.dtype = compute.apply();
  run.batch_size = asked.batch_size;
  run.workers = asked.workers;
  run.skip_broken = asked.skip_broken;
  const std::unique_ptr<models::FrameNetwork> model = open_frame_network(flags);
  run.turned = model->target.circular;
  data::SequenceOptions wanted = train::sequence_options(model->target, model->target.classes);
  wanted.split = asked.split;
  wanted.frames = frames_of(frames, model->target);
  wanted.skip_broken = asked.skip_broken;
  const data::Sequences data = data::open_sequences(asked.data, wanted);
  std::ranges::for_each(data.notes, say_note);
  const train::FrameEvaluation result = train::run_frames(*model, data, all_of(data), run);
  FrameJson all = {{"model", flags.model}, {"data", asked.data}};
  all.update(evaluation_json(result, data));
  const std::string picture = model->target.kind == FrameTarget::Kind::angle ? "angles.svg" : "confusion.svg";
  if (!output.empty()) {
    io::make_folder(output);
    const std::filesystem::path folder = output;
    io::write_atomically(folder / picture, train::frames_svg(result, data, model->target));
    io::write_atomically(folder / "eval.json", all.dump(2) + "\n");
  }
  if (json) {
    print_json(all);
    return;
  }
  const std::vector<train::FigureKind> kinds = train::frame_figures(model->target);
  for (const train::Figure& figure : result.figures) {
    const train::FigureKind& kind = *train::find_figure(kinds, figure.name);
    fmt::print("{} {}   ", kind.label, train::figure_text(kind, figure.value));
  }
  fmt::print("{}\n", io::counted(std::ssize(result.predictions), "sequences"));
  if (model->target.kind == FrameTarget::Kind::angle) {
    for (const train::ClassError& one : train::errors_by_class(result, data)) {
      fmt::print("  {:<12}  {:5.1f} degrees, {} frames\n", one.name, one.error, one.frames);
    }
  }
  for (const std::string& broken : result.broken) {
    fmt::print("left out: {}\n", broken);
  }
  if (!output.empty()) {
    fmt::print("\n{0}/{1}, {0}/eval.json\n", output, picture);
  }
}

}  // namespace vitrail::cli
