#include "vitrail/cli/use/eval_language.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/interrupted.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/charts/chart.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/kwargs.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/evaluate_language.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t usual_tokens = 8192;  // of a batch

// A curve of the chart: the name of an evaluation, and its losses by position.
struct Curve {
  std::string name;
  std::vector<double> losses;
  std::vector<std::int64_t> tokens;
};

// The last part of a path, without the folders that runs have in common.
std::string last_name(const fs::path& path) {
  std::string name = path.filename().string();
  if (name.empty() || name == "best" || name == "last") {
    name = path.parent_path().filename().string();
  }
  return name;
}

Curve read_curve(const std::string& file) {
  const fs::path path = fs::is_directory(file) ? fs::path(file) / "eval.json" : fs::path(file);
  const nlohmann::json json = io::read_json(path);
  io::Fields fields(json, path.string());
  const auto losses = fields.get<std::vector<double>>("loss_by_position");
  const auto tokens = fields.get<std::vector<std::int64_t>>("tokens_by_position");
  check(losses.size() == tokens.size(), "{}: {} losses by position belong to {} numbers of tokens", path.string(),
        losses.size(), tokens.size());
  return {last_name(fields.get<std::string>("model")), losses, tokens};
}

// The mean of the losses at positions begin … end - 1; NaN without tokens.
double mean_of(const Curve& curve, std::size_t begin, std::size_t end) {
  double sum = 0;
  double count = 0;
  for (std::size_t n = begin; n < std::min(end, curve.losses.size()); ++n) {
    sum += curve.losses[n] * static_cast<double>(curve.tokens[n]);
    count += static_cast<double>(curve.tokens[n]);
  }
  return sum / count;
}

std::size_t longest_of(const std::vector<Curve>& curves) {
  std::size_t longest = 0;
  for (const Curve& curve : curves) {
    longest = std::max(longest, curve.losses.size());
  }
  return longest;
}

// The positions in 64 ranges of one size.
std::string chart_of(const std::vector<Curve>& curves) {
  const std::size_t width = std::max<std::size_t>(1, longest_of(curves) / 64);
  io::LineChart chart;
  chart.title = "Loss by position";
  chart.x_label = width == 1 ? "tokens in view" : fmt::format("tokens in view (means over {})", width);
  chart.y_label = "cross-entropy of the next token";
  for (const Curve& curve : curves) {
    io::Series series;
    series.name = curve.name;
    for (std::size_t begin = 0; begin < curve.losses.size(); begin += width) {
      const std::size_t end = std::min(begin + width, curve.losses.size());
      series.x.push_back(static_cast<double>(begin + end + 1) / 2);
      series.y.push_back(mean_of(curve, begin, end));
    }
    chart.series.push_back(std::move(series));
  }
  return io::line_charts_svg({chart}, 760, 460);
}

void print_ranges(const std::vector<Curve>& curves) {
  std::size_t width = 14;
  for (const Curve& curve : curves) {
    width = std::max(width, curve.name.size() + 2);
  }
  const std::size_t longest = longest_of(curves);
  std::vector<std::size_t> ends;
  for (std::size_t end = 16; end < longest; end *= 2) {
    ends.push_back(end);
  }
  ends.push_back(longest);
  fmt::print("\n{:<{}}", "tokens in view", width);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    fmt::print(" {:>10}", fmt::format("{}-{}", i == 0 ? 1 : ends[i - 1] + 1, ends[i]));
  }
  fmt::print("\n");
  for (const Curve& curve : curves) {
    fmt::print("{:<{}}", curve.name, width);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const double mean = mean_of(curve, i == 0 ? 0 : ends[i - 1], ends[i]);
      fmt::print(" {:>10}", std::isfinite(mean) ? fmt::format("{:.4f}", mean) : "-");
    }
    fmt::print("\n");
  }
}

}  // namespace

void add_language_flags(CLI::App& command, LanguageFlags& flags) {
  const char* group = "Language models";
  command
      .add_option("--block-size", flags.block_size,
                  "Tokens that the model sees at once (default: its positions, at most 1024)")
      ->check(at_least(1))
      ->type_name("N")
      ->group(group);
  command
      .add_option("--stride", flags.stride,
                  "Begin a block every N tokens, of which those count that are new, with more in view (default: the "
                  "blocks do not overlap)")
      ->check(at_least(1))
      ->type_name("N")
      ->group(group);
  command.add_flag("--by-position", flags.by_position, "The loss by the number of tokens in view, too")->group(group);
  command
      .add_flag_function(
          "--documents,!--no-documents", [&flags](std::int64_t count) { flags.documents = count > 0; },
          "Blank lines part documents, none of which sees another (default: as the run was trained)")
      ->group(group);
  command
      .add_option("--beside", flags.beside,
                  "Folders that eval has written by position, to be drawn in the same chart (--output)")
      ->type_name("DIR")
      ->group(group);
}

void evaluate_language_model(const ModelFlags& model_flags, const std::string& data, bool skip_broken,
                             const std::optional<std::int64_t>& batch_size, const LanguageFlags& flags,
                             const ComputeFlags& compute, const std::string& output, bool json) {
  check_usage(flags.beside.empty() || (flags.by_position && !output.empty()),
              "--beside draws evaluations by position in one chart: it needs --by-position and --output");
  const train::Interrupt interrupt;
  const fs::path folder = model_flags.name_or_folder();
  check_trained_on_texts(folder, model_flags.model);
  models::TextModelOptions changes;
  as_usage([&] { changes.model_kwargs = models::kwargs_to_json(model_flags.kwargs); });
  const DType dtype = compute.apply();
  const models::TextModel model = models::load_text_model(folder, changes);
  const models::LanguageBody& body = models::language_of(model);
  const text::Tokenizer tokenizer = open_tokenizer(folder, body.vocab_size());
  std::int64_t skipped = 0;
  const std::string words = text::read_running_text(data, skip_broken ? &skipped : nullptr);
  note_skipped_lines(skipped);
  const std::vector<std::int64_t> ids = tokenizer.encode(words, false).ids;
  note_unknown(tokenizer, ids, data);
  std::vector<Curve> curves;
  for (const std::string& file : flags.beside) {
    Curve curve = read_curve(file);
    const bool is_taken = curve.name == last_name(model_flags.model) ||
                          std::ranges::find(curves, curve.name, &Curve::name) != curves.end();
    curve.name += is_taken ? fmt::format(" ({})", file) : "";
    curves.push_back(std::move(curve));
  }
  if (!output.empty()) {
    io::make_folder(output);
  }
  train::EvaluateLanguageOptions options{
      .block_size = flags.block_size.value_or(std::min<std::int64_t>(body.max_positions(), 1024)),
      .stride = flags.stride.value_or(0),
      .dtype = dtype};
  options.batch_size = batch_size.value_or(std::max<std::int64_t>(1, usual_tokens / options.block_size));
  train::Progress progress(stderr);
  progress.begin("evaluating", std::ssize(ids) - 1);
  options.advance = [&](std::int64_t done) {
    if (progress.terminal()) {
      progress.update(done, "");
    }
    end_if_interrupted(&progress);
  };
  const train::LanguageEvaluation result = train::evaluate_language(body, ids, options);
  progress.end();
  const double bits = result.loss * static_cast<double>(ids.size()) / std::numbers::ln2;
  Json all = {{"model", model_flags.model},
              {"data", data},
              {"block_size", options.block_size},
              {"stride", options.stride > 0 ? options.stride : options.block_size},
              {"tokens", result.tokens},
              {"loss", result.loss},
              {"perplexity", std::exp(result.loss)},
              {"bits_per_character", bits / static_cast<double>(text::count_code_points(words))},
              {"bits_per_byte", bits / static_cast<double>(words.size())}};
  if (flags.by_position) {
    all["loss_by_position"] = result.loss_by_position;
    all["tokens_by_position"] = result.tokens_by_position;
    curves.insert(curves.begin(), {last_name(model_flags.model), result.loss_by_position, result.tokens_by_position});
  }
  if (!output.empty()) {
    io::write_atomically(fs::path(output) / "eval.json", all.dump(2) + "\n");
    if (flags.by_position) {
      io::write_atomically(fs::path(output) / "by_position.svg", chart_of(curves));
    }
  }
  if (json) {
    print_json(all);
    return;
  }
  fmt::print("loss {:.4f}   perplexity {:.3f}   bits per character {:.4f}   per byte {:.4f}   {} in blocks of {}\n",
             result.loss, std::exp(result.loss), all["bits_per_character"].get<double>(),
             all["bits_per_byte"].get<double>(), io::counted(result.tokens, "tokens"), options.block_size);
  if (flags.by_position) {
    print_ranges(curves);
  }
  if (!output.empty()) {
    fmt::print("\n{0}/eval.json{1}\n", output, flags.by_position ? fmt::format(", {}/by_position.svg", output) : "");
  }
}

}  // namespace vitrail::cli
