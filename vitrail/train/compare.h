// Finished runs side by side: what each cost and what it reached.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/train/run_log.h"

namespace vitrail::train {

struct RunSummary {
  std::string name;  // of its folder
  std::string architecture;
  std::int64_t parameters = 0;
  std::int64_t flops = 0;  // a picture, forward; a multiply-accumulate is one
  // Of training, without evaluations: all steps at the pace of the median one, so that a pause of the machine, or
  // another program on it, does not count.
  double seconds = 0;
  double images_per_second = 0;
  EvaluationRecord best;
  EvaluationRecord last;
  std::vector<EvaluationRecord> evaluations;  // of the weights; those of their moving average, which few runs have, not
};

// What a run folder says (trainer.h). Error if it is none, or has no evaluation yet.
RunSummary read_run(const std::filesystem::path& folder);

// Top-1 over time, and over epochs, a curve for each run.
std::string comparison_svg(const std::vector<RunSummary>& runs);

}  // namespace vitrail::train
