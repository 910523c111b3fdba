#include "vitrail/train/study/compare.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/xml.h"
#include "vitrail/io/file.h"
#include "vitrail/models/model.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/evaluate.h"
#include "vitrail/train/tasks/classify.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;

EvaluationRecord evaluation(std::int64_t step, double top1, double top5, double loss, bool ema) {
  return {step, step / 5, {{"top1", top1}, {"top5", top5}, {"loss", loss}}, ema};
}

// A run of ten steps of 20 images, each of a fifth of a second but for one, and two evaluations, on request
// also of the average.
void write_run(const fs::path& folder, double first_top1, bool average = false, std::int64_t seed = 42,
               const std::string& kwargs = "{}") {
  fs::create_directories(folder);
  ClassifyOptions options;
  options.seed = seed;
  options.model_kwargs = kwargs;
  options.experiment = folder.filename();
  options.batch_size = 10;
  options.grad_accum_steps = 2;
  write_config(folder, options, Facts{{"learning_rate", "0.003"}}, {"images", accuracy_figures(), "loss"});
  std::string lines;
  for (std::int64_t step = 1; step <= 10; ++step) {
    lines += to_json(StepRecord{step, (step + 4) / 5, 1.0, 0.1, 20, step == 3 ? 2.0 : 100.0, {}}, "images") + "\n";
    if (step % 5 == 0) {
      lines += to_json(evaluation(step, step == 5 ? first_top1 : 50.0, 90.0, 1.5, false)) + "\n";
      if (average) {
        lines += to_json(evaluation(step, step == 5 ? 70.0 : 80.0, 99.0, 1.0, true)) + "\n";
      }
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
  EXPECT_EQ(run.rate, 100);
  EXPECT_DOUBLE_EQ(run.seconds, 2);  // the slow step counts as the others
  EXPECT_EQ(figure(run.last.figures, "top1"), 50);
  EXPECT_EQ(figure(run.best.figures, "top1"), 60);
  EXPECT_EQ(run.best.epoch, 1);
}

// best/ holds the average's weights then.
TEST(Compare, TakesTheFiguresOfTheAverageWhereThereIsOne) {
  const test::TemporaryFolder temporary;
  write_run(temporary / "average", 90, true);
  const RunSummary run = read_run(temporary / "average");
  EXPECT_EQ(figure(run.best.figures, "top1"), 80);
  EXPECT_EQ(run.best.epoch, 2);
  EXPECT_EQ(run.evaluations.size(), 2U);
}

// Runs of earlier versions said less: neither the task, nor what their figures are, nor how many images a step had.
TEST(Compare, ReadsRunsOfEarlierVersions) {
  const test::TemporaryFolder temporary;
  write_run(temporary / "old", 60);
  io::write_atomically(temporary / "old/config.toml",
                       "[batches]\nbatch_size = 10\ngrad_accum_steps = 2\n\n[run]\neval_metric = \"top1\"\n");
  std::string lines = io::read_text(temporary / "old/metrics.jsonl");
  for (std::size_t at = 0; (at = lines.find("\"images\": 20, ")) != std::string::npos;) {
    lines.erase(at, 14);
  }
  io::write_atomically(temporary / "old/metrics.jsonl", lines);
  const RunSummary run = read_run(temporary / "old");
  EXPECT_EQ(run.architecture, "vit_tiny_patch16_224");
  EXPECT_DOUBLE_EQ(run.seconds, 2);
  EXPECT_EQ(figure(run.best.figures, "top1"), 60);
}

TEST(Compare, TakesAnyFigureByName) {
  const test::TemporaryFolder temporary;
  write_run(temporary / "run", 40);
  const RunSummary run = read_run(temporary / "run", "loss");
  EXPECT_EQ(run.metric.name, "loss");
  EXPECT_FALSE(run.metric.higher_is_better);
  EXPECT_NE(comparison_svg({run}).find("Loss over time"), std::string::npos);
  EXPECT_NE(error_of([&] { read_run(temporary / "run", "bleu"); }).find("has no figure 'bleu', only top1, top5, loss"),
            std::string::npos);
}

TEST(Compare, PutsRunsTogetherThatDifferInTheirSeedAlone) {
  const test::TemporaryFolder temporary;
  write_run(temporary / "a-0", 60, false, 0);
  write_run(temporary / "b-0", 60, false, 0);
  write_run(temporary / "a-1", 70, false, 1);
  const std::string config = io::read_text(temporary / "b-0/config.toml");
  const auto at = config.find("\nepochs = ");
  ASSERT_NE(at, std::string::npos);
  io::write_atomically(temporary / "b-0/config.toml",
                       config.substr(0, at) + "\nepochs = 7" + config.substr(config.find('\n', at + 1)));
  const auto rows =
      grouped_by_settings({read_run(temporary / "a-0"), read_run(temporary / "b-0"), read_run(temporary / "a-1")});
  ASSERT_EQ(rows.size(), 2U);
  ASSERT_EQ(rows[0].size(), 2U);
  EXPECT_EQ(rows[0][1].name, "a-1");
  ASSERT_EQ(rows[1].size(), 1U);
  EXPECT_EQ(rows[1][0].name, "b-0");
}

TEST(Compare, KnowsTheMeanAndHowFarRunsLieApart) {
  const Spread spread = spread_of({1, 2, 6});
  EXPECT_DOUBLE_EQ(spread.mean, 3);
  EXPECT_DOUBLE_EQ(spread.deviation, std::sqrt((4.0 + 1.0 + 9.0) / 2));
  EXPECT_EQ(spread_of({5}).deviation, 0);
  EXPECT_NE(error_of([] { spread_of({}); }), "no error");
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

TEST(Compare, DrawsAFigureOverAnOption) {
  const test::TemporaryFolder temporary;
  write_run(temporary / "conv-1", 50, false, 0, R"({"layers": [1]})");
  write_run(temporary / "conv-3", 60, false, 0, R"({"layers": [3]})");
  write_run(temporary / "conv-3b", 80, false, 1, R"({"layers": [3]})");
  write_run(temporary / "vit-2", 90, false, 0, R"({"depth": 2, "num_heads": 3})");
  const std::vector<RunSummary> runs = {read_run(temporary / "conv-1"), read_run(temporary / "conv-3"),
                                        read_run(temporary / "conv-3b"), read_run(temporary / "vit-2")};
  const std::vector<std::string> names = {"layers", "depth"};
  EXPECT_EQ(option_of(runs[2], names), 3);
  EXPECT_EQ(option_of(runs[3], names), 2);
  EXPECT_EQ(option_of(runs[3], {"batch_size"}), 10);
  EXPECT_EQ(option_of(runs[3], {"lr"}), 0.003) << "the usual one, which no option sets";
  EXPECT_EQ(shared_name({runs[0], runs[1]}), "conv");
  const std::string svg = by_option_svg(runs, names);
  EXPECT_EQ(test::xml_fault(svg), "");
  EXPECT_NE(svg.find(">layers, depth<"), std::string::npos);
  EXPECT_NE(svg.find(">conv</text>"), std::string::npos);
  EXPECT_NE(svg.find(">vit-2</text>"), std::string::npos);
  // The means of 60 and 80, at 3, beside 50 and 90: two curves, of which the first has two points.
  const std::string mean = by_option_svg({runs[0], runs[1]}, names);
  EXPECT_NE(by_option_svg({runs[0], runs[1], runs[2]}, names), mean);
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count(by_option_svg({runs[0], runs[1], runs[2]}, names), "<circle"), count(mean, "<circle"));
  write_run(temporary / "conv-2x", 50, false, 0, R"({"layers": [2], "sagan_stages": [1]})");
  write_run(temporary / "conv-3x", 60, false, 0, R"({"layers": [3], "sagan_stages": [1]})");
  const std::string both =
      by_option_svg({runs[0], runs[1], read_run(temporary / "conv-2x"), read_run(temporary / "conv-3x")}, names);
  EXPECT_NE(both.find(">conv (no sagan_stages)</text>"), std::string::npos) << both;
  EXPECT_NE(both.find(">conv (sagan_stages [1])</text>"), std::string::npos);
  EXPECT_NE(error_of([&] { by_option_svg(runs, {"depht"}); }).find("sets no 'depht'"), std::string::npos);
  EXPECT_NE(error_of([&] { option_of(runs[3], {"depht"}); }).find("'depth'"), std::string::npos) << "what was meant";
  EXPECT_NE(error_of([&] { option_of(runs[0], {"opt"}); }).find("is \"adamw\", and no number"), std::string::npos);
}

TEST(Compare, NamesAFolderThatIsNoRun) {
  const test::TemporaryFolder temporary;
  EXPECT_NE(error_of([&] { read_run(temporary / "none"); }).find("is not a run folder: it has no metrics.jsonl"),
            std::string::npos);
  write_run(temporary / "run", 60);
  io::write_atomically(temporary / "run/metrics.jsonl",
                       to_json(StepRecord{1, 1, 1.0, 0.1, 20, 10, {}}, "images") + "\n");
  EXPECT_NE(error_of([&] { read_run(temporary / "run"); }).find("no evaluation to compare yet"), std::string::npos);
}

}  // namespace
}  // namespace vitrail::train
