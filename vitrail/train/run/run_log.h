/// \file
/// The record of a run: metrics.jsonl, TensorBoard events and curves.svg, all from the same numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "vitrail/io/events.h"
#include "vitrail/train/run/records.h"

namespace vitrail::train {

/// Appends to the files of a run folder. Only one process at a time may: the constructor throws Error if another one
/// has the run open.
class RunLog {
 public:
  /// Continues the files in `folder` from where metrics.jsonl was `keep` bytes long: what came later is cut off, there
  /// and in the TensorBoard events.
  RunLog(std::filesystem::path folder, std::int64_t keep, RecordKind kind);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void add(const StepRecord& record);
  void add(const EvaluationRecord& record);
  /// Writes what was added to disk, so that it survives a crash, draws the curves, and returns the length of
  /// metrics.jsonl in bytes.
  std::int64_t commit(double steps_per_epoch);
  const History& history() const { return history_; }

 private:
  void append(const std::string& line);

  std::filesystem::path folder_;
  RecordKind kind_;
  int descriptor_ = -1;
  std::int64_t length_ = 0;
  History history_;
  std::optional<io::EventWriter> events_;
};

}  // namespace vitrail::train
