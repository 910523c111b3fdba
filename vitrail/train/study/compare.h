/// \file
/// A comparison of finished runs: what each cost and what it reached.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/train/run/records.h"

namespace vitrail::train {

/// What a run cost and what it reached.
struct RunSummary {
  std::string name;  ///< name of its folder
  std::string architecture;
  std::int64_t parameters = 0;
  std::int64_t flops = 0;  ///< multiply-accumulates of a sample's forward pass; 0: not known

  /// The time of training, without evaluations: the number of steps times the median duration of a step, so that a
  /// pause of the machine, or another program on it, does not count.
  double seconds = 0;
  double rate = 0;                    ///< units per second at the median step
  bool features_precomputed = false;  ///< whether these are of a head alone, on features that were computed before
  RecordKind records;
  FigureKind metric;      ///< the figure that `best` is chosen by
  EvaluationRecord best;  ///< or the last, where no figure chose the network that is kept
  EvaluationRecord last;
  /// Those that `best` was chosen from: of the moving average of the weights if the run has one, else of the weights.
  std::vector<EvaluationRecord> evaluations;
  /// The options in config.toml as JSON, but for its seed and what names it: where they are equal, runs repeat each
  /// other.
  std::string settings;
  std::string seed;
  double learning_rate = 0;  ///< the one given or the usual one, as config.toml has it; 0: it has none
  std::string judged_on;     ///< the data of its evaluations, as config.toml names them: "photos, validation"
};

/// Reads a run folder (trainer.h). `metric` is the name of one of its figures; empty for the one by which its best
/// network was chosen. Throws Error if it is not a run folder, has no evaluation yet, or has no such figure.
RunSummary read_run(const std::filesystem::path& folder, const std::string& metric = "");

/// Runs that differ in their seed alone side by side, in the order of the first of each.
std::vector<std::vector<RunSummary>> grouped_by_settings(const std::vector<RunSummary>& runs);

/// The mean of some values, and the standard deviation of those that they are drawn from (n - 1 in its denominator; 0
/// for one value).
struct Spread {
  double mean = 0;
  double deviation = 0;
};
/// Throws Error if there is no value.
Spread spread_of(const std::vector<double>& values);

/// What the names of runs begin with, without what joins words at its end; the first name if they share nothing.
std::string shared_name(const std::vector<RunSummary>& runs);

/// The value of the first of `options` that the run has: a number, or a list of one, of config.toml or of the model's
/// arguments ("depth"). Throws Error, which names the run, if it has none of them.
double option_of(const RunSummary& run, const std::vector<std::string>& options);

/// The best value of the metric of the first run over option_of() each, as SVG: a curve for runs that are otherwise
/// alike but for the seed, with the mean where several have the same value. Throws Error as option_of() and
/// comparison_svg() do.
std::string by_option_svg(const std::vector<RunSummary>& runs, const std::vector<std::string>& options);

/// The metric of the first run over time and over epochs, as SVG, with a curve for each run. Throws Error if another
/// run has no such figure.
std::string comparison_svg(const std::vector<RunSummary>& runs);

}  // namespace vitrail::train
