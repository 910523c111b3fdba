// The record of a run: metrics.jsonl, TensorBoard events and curves.svg, all from the same numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/io/events.h"

namespace vitrail::train {

struct StepRecord {
  std::int64_t step = 0;   // updates so far, from 1
  std::int64_t epoch = 0;  // the one that it belongs to, from 1
  double loss = 0;
  double lr = 0;
  double images_per_second = 0;
  std::optional<double> grad_norm;  // before clipping, if that is on
};

struct EvaluationRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;  // the one that has ended
  double top1 = 0;
  double top5 = 0;
  double loss = 0;
  bool ema = false;  // of the moving average of the weights
};

// Everything that has been recorded, for the curves.
struct History {
  std::vector<StepRecord> steps;
  std::vector<EvaluationRecord> evaluations;
};

// One line of metrics.jsonl, without the newline.
std::string to_json(const StepRecord& record);
std::string to_json(const EvaluationRecord& record);
// The lines of a metrics.jsonl; Error names a line that is none.
History read_history(const std::filesystem::path& metrics);

// Curves of loss and accuracy over epochs of `steps_per_epoch` updates, as SVG.
std::string curves_svg(const History& history, double steps_per_epoch);

// Appends to the files of a run folder. One process at a time: Error if another has the run open.
class RunLog {
 public:
  // Goes on in `folder` where metrics.jsonl was `keep` bytes long: cuts off what came after, there and in the
  // TensorBoard events.
  RunLog(std::filesystem::path folder, std::int64_t keep);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void add(const StepRecord& record);
  void add(const EvaluationRecord& record);
  // Makes what was added last through a crash, draws the curves, and returns the length of metrics.jsonl.
  std::int64_t commit(double steps_per_epoch);
  const History& history() const { return history_; }

 private:
  void append(const std::string& line);

  std::filesystem::path folder_;
  int descriptor_ = -1;
  std::int64_t length_ = 0;
  History history_;
  std::optional<io::EventWriter> events_;
};

}  // namespace vitrail::train
