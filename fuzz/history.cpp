// Any bytes as the metrics.jsonl of a run: an Error, or records that are written as lines which are read again.
#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/run/records.h"

FUZZ_TARGET(history)(const std::uint8_t* data, std::size_t size) {
  using namespace vitrail;
  static const Folder folder("history");
  const MemoryLimit limit;
  folder.write("metrics.jsonl", text_of(data, size));
  try {
    const train::History history = train::read_history(folder.path() / "metrics.jsonl");
    std::string lines;
    for (const train::StepRecord& step : history.steps) {
      lines += train::to_json(step, "images") + "\n";
    }
    for (const train::EvaluationRecord& evaluation : history.evaluations) {
      lines += train::to_json(evaluation) + "\n";
    }
    folder.write("metrics.jsonl", lines);
    const train::History again = train::read_history(folder.path() / "metrics.jsonl");
    require(again.steps.size() == history.steps.size() && again.evaluations.size() == history.evaluations.size());
  } catch (const Error&) {
  }
  return 0;
}
