#include "vitrail/train/compare.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/xml.h"
#include "vitrail/io/file.h"
#include "vitrail/models/model.h"
#include "vitrail/train/options.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;

// A run of ten steps of 20 pictures, each of a fifth of a second but for one, and two evaluations.
void write_run(const fs::path& folder, double first_top1) {
  fs::create_directories(folder);
  TrainOptions options;
  options.batch_size = 10;
  options.grad_accum_steps = 2;
  io::write_atomically(folder / "config.toml", to_toml(options));
  std::string lines;
  for (std::int64_t step = 1; step <= 10; ++step) {
    lines += to_json(StepRecord{step, (step + 4) / 5, 1.0, 0.1, step == 3 ? 2.0 : 100.0, {}}) + "\n";
    if (step % 5 == 0) {
      lines += to_json(EvaluationRecord{step, step / 5, step == 5 ? first_top1 : 50.0, 90.0, 1.5, false}) + "\n";
      lines += to_json(EvaluationRecord{step, step / 5, 99.0, 99.0, 1.0, true}) + "\n";
    }
  }
  io::write_atomically(folder / "metrics.jsonl", lines);
  models::CreateOptions small;
  small.model_kwargs = R"({"img_size": 16, "embed_dim": 12, "depth": 1, "num_heads": 3, "num_classes": 2})";
  models::save_model(models::create_model("vit_tiny_patch16_224", small), folder / "last");
}

TEST(Compare, SaysWhatARunCostAndReached) {
  const test::TemporaryFolder temporary;
  write_run(temporary / "high", 60);
  const RunSummary run = read_run(temporary.path() / "high" / "");
  EXPECT_EQ(run.name, "high");
  EXPECT_EQ(run.architecture, "vit_tiny_patch16_224");
  EXPECT_EQ(run.parameters, models::load_model(temporary / "high/last").net->parameters.count());
  EXPECT_GT(run.flops, 0);
  EXPECT_EQ(run.last.epoch, 2);
  EXPECT_EQ(run.images_per_second, 100);
  EXPECT_DOUBLE_EQ(run.seconds, 2);  // the slow step counts as the others
  EXPECT_EQ(run.last.top1, 50);
  EXPECT_EQ(run.best.top1, 60);
  EXPECT_EQ(run.best.epoch, 1);
}

TEST(Compare, DrawsEveryRun) {
  const test::TemporaryFolder temporary;
  write_run(temporary / "a<b", 60);
  write_run(temporary / "other", 20);
  const std::string svg = comparison_svg({read_run(temporary / "a<b"), read_run(temporary / "other")});
  EXPECT_EQ(test::xml_fault(svg), "");
  EXPECT_NE(svg.find("a&lt;b"), std::string::npos);
  EXPECT_NE(svg.find("other"), std::string::npos);
  EXPECT_NE(svg.find("minutes of training"), std::string::npos);
}

TEST(Compare, NamesAFolderThatIsNoRun) {
  const test::TemporaryFolder temporary;
  EXPECT_NE(error_of([&] { read_run(temporary / "none"); }).find("is not a run folder: it has no metrics.jsonl"),
            std::string::npos);
  write_run(temporary / "run", 60);
  io::write_atomically(temporary / "run/metrics.jsonl", to_json(StepRecord{1, 1, 1.0, 0.1, 10, {}}) + "\n");
  EXPECT_NE(error_of([&] { read_run(temporary / "run"); }).find("no evaluation to compare yet"), std::string::npos);
}

}  // namespace
}  // namespace vitrail::train
