/// \file
/// The records of a run: the lines of its metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/train/figures.h"

namespace vitrail::train {

/// The ending of the name of a step's rate: "images_per_second".
inline constexpr std::string_view rate_ending = "_per_second";

/// The record of one update.
struct StepRecord {
  std::int64_t step = 0;   ///< updates so far, from 1
  std::int64_t epoch = 0;  ///< the epoch of the update, from 1
  double loss = 0;
  double lr = 0;
  std::int64_t units = 0;           ///< images or tokens that the update learned from
  double rate = 0;                  ///< units per second
  std::optional<double> grad_norm;  ///< norm of the gradients before clipping, if they are clipped by norm
  /// How long each of several ranks has worked on its batches, without waiting for the others; empty for a process
  /// alone.
  std::vector<double> rank_seconds = {};
};

/// The record of one evaluation.
struct EvaluationRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;  ///< the epoch that has ended, from 1
  Figures figures;
  bool ema = false;  ///< whether the moving average of the weights was evaluated
};

/// All records of a run, for the curves.
struct History {
  std::vector<StepRecord> steps;
  std::vector<EvaluationRecord> evaluations;
};

/// Properties that the records of one task have in common.
struct RecordKind {
  std::string units = "samples";    ///< names the rate: "samples_per_second"
  std::vector<FigureKind> figures;  ///< the kinds of the figures of evaluations
  std::string loss_axis = "loss";   ///< label of the axis of the training loss in curves.svg
};

/// The mean loss of the units of an epoch (from 1), including those before the run was stopped and resumed; NaN if
/// there are none.
double mean_loss(const History& history, std::int64_t epoch);
/// The last step, but with the means of loss and rate over up to 20 steps, which are steadier. There must be one.
StepRecord recent_mean(const History& history);

/// A record as one line of metrics.jsonl, without the newline. `units` names the rate.
std::string to_json(const StepRecord& record, const std::string& units);
/// A record of an evaluation as one line of metrics.jsonl, without the newline.
std::string to_json(const EvaluationRecord& record);
/// Reads a metrics.jsonl, without a last line that a run was writing when it was killed. Throws Error, naming the line,
/// if one is not a record.
History read_history(const std::filesystem::path& metrics);

}  // namespace vitrail::train
