/// \file
/// The record of a run: metrics.jsonl, TensorBoard events and curves.svg, all from the same numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "vitrail/io/events.h"
#include "vitrail/train/run/records.h"

namespace vitrail::train {

/// The right to write in a run folder, which only one process at a time has. It is a lock of metrics.jsonl.
class RunLock {
 public:
  /// Throws Error if another process has the run open, or if there is no metrics.jsonl, unless the run is `fresh`.
  explicit RunLock(std::filesystem::path folder, bool fresh = false);
  ~RunLock();
  RunLock(RunLock&& other) noexcept : folder_(std::move(other.folder_)), file_(std::exchange(other.file_, -1)) {}
  RunLock& operator=(RunLock&&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  int file() const { return file_; }  ///< the descriptor of metrics.jsonl

 private:
  std::filesystem::path folder_;
  int file_;
};

/// Appends to the files of a run folder.
class RunLog {
 public:
  /// Continues the files from where metrics.jsonl was `keep` bytes long: what came later is cut off, there and in the
  /// TensorBoard events.
  RunLog(RunLock lock, std::int64_t keep, RecordKind kind);

  void add(const StepRecord& record);
  void add(const EvaluationRecord& record);
  /// Writes what was added to disk, so that it survives a crash, draws the curves, and returns the length of
  /// metrics.jsonl in bytes.
  std::int64_t commit(double steps_per_epoch);
  const History& history() const { return history_; }

 private:
  void append(const std::string& line);

  RunLock lock_;
  RecordKind kind_;
  std::int64_t length_ = 0;
  History history_;
  std::optional<io::EventWriter> events_;
};

}  // namespace vitrail::train
