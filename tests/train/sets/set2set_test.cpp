#include "vitrail/train/sets/set2set.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/xml.h"
#include "tests/train/ranked.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

Set2SetOptions tiny_sets(const fs::path& folder, const std::string& source) {
  Set2SetOptions options;
  options.data_dir = source;
  options.output = (folder / "runs").string();
  options.experiment = "tiny";
  options.model_kwargs = R"({"d_model": 32})";
  options.batch_size = 32;
  options.epochs = 2;
  options.threads = 1;
  options.log_interval = 1;
  return options;
}

std::uint64_t set_weights_of(const fs::path& folder) { return weights_checksum(*models::load_set_model(folder).net); }

std::vector<nlohmann::json> untimed_sets(const fs::path& path) {
  std::vector<nlohmann::json> lines = test::json_lines(path);
  for (nlohmann::json& line : lines) {
    line.erase("sets_per_second");
  }
  return lines;
}

double last_figure(const fs::path& run, const std::string& name) {
  const auto lines = test::json_lines(run / "metrics.jsonl");
  double value = std::nan("");
  for (const auto& line : lines) {
    if (line.contains(name)) {
      value = line[name].get<double>();
    }
  }
  return value;
}

TEST(Set2SetTask, GoesOnToTheSameBits) {
  const test::TemporaryFolder folder;
  Set2SetOptions options = tiny_sets(folder.path(), "sets:task=centres,count=200,points=4");
  options.drop = 0.1;
  options.model_ema = true;
  fit(options);
  options.experiment = "stopped";
  EXPECT_TRUE(fit(options, test::stop_after(4)).stopped);
  const fs::path run = folder / "runs/stopped";
  EXPECT_FALSE(fit(test::resumed<Set2SetOptions>(run)).stopped);
  for (const char* model : {"last", "best"}) {
    EXPECT_EQ(set_weights_of(folder / "runs/tiny" / model), set_weights_of(run / model)) << model;
  }
  EXPECT_EQ(untimed_sets(folder / "runs/tiny/metrics.jsonl"), untimed_sets(run / "metrics.jsonl"));
  EXPECT_TRUE(fs::exists(run / "sets.svg"));
}

// What matching is for: without it, centres, whose order says nothing, are not learned.
TEST(Set2SetTask, LearnsCentresThatAreMatchedAndNotThoseInTheOrderOfTheData) {
  const test::TemporaryFolder folder;
  Set2SetOptions options = tiny_sets(folder.path(), "sets:task=centres,count=3200,validation=100,centres=2,points=4");
  options.epochs = 4;
  options.lr = 3e-3;
  fit(options);
  options.experiment = "in_order";
  options.weights.no_matching = true;
  fit(options);
  const double matched = last_figure(folder / "runs/tiny", "distance");
  const double in_order = last_figure(folder / "runs/in_order", "distance");
  EXPECT_LT(matched, 0.12);
  EXPECT_GT(in_order, matched + 0.08);
}

TEST(Set2SetTask, SaysWhatDoesNotFit) {
  const test::TemporaryFolder folder;
  Set2SetOptions options = tiny_sets(folder.path(), "sets:task=sort,count=40");
  fit(options);
  Set2SetOptions other = tiny_sets(folder.path(), "sets:task=centres,count=40");
  other.model = (folder / "runs/tiny/best").string();
  other.model_kwargs = "{}";
  EXPECT_THAT(error_of([&] { fit(other); }), HasSubstr("are not the network's (1, 2, 3, 4, 5, 6, 7, 8)"));
  other.data_dir = "sets:task=sort,count=40,size=3";
  other.num_queries = 4;
  EXPECT_THAT(error_of([&] { fit(other); }), HasSubstr("--num-queries and --drop are for a new network"));
  other.num_queries.reset();
  other.experiment = "more";
  other.epochs = 1;
  fit(other);  // smaller sets than before are fine
  io::write_atomically(folder / "own.jsonl", "{\"set\": [[1]], \"targets\": [{\"class\": \"a\", \"values\": [1]}]}\n");
  options.data_dir = (folder / "own.jsonl").string();
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("is one part: name the sets to evaluate on by --val-dir"));
}

FoundElement element(std::int64_t label, float value, bool said = true) {
  return {.label = label, .score = said ? 0.9 : 0.2, .said = said, .values = {value}};
}

TEST(SetScore, CountsSetsThatAreRightWhateverTheOrder) {
  const TargetSet wanted{{0, 1}, {0.2F, 0.7F}};
  const auto score = [&](std::vector<FoundElement> found) { return score_of(found, wanted, 0.05); };
  const SetScore right = score({element(1, 0.72F), element(0, 0.5F, false), element(0, 0.2F)});
  EXPECT_TRUE(right.right);
  EXPECT_TRUE(right.right_size);
  EXPECT_NEAR(right.distance, 0.01, 1e-6);
  EXPECT_FALSE(score({element(1, 0.76F), element(0, 0.2F)}).right);  // too far
  EXPECT_FALSE(score({element(0, 0.7F), element(1, 0.2F)}).right);   // of the other class
  EXPECT_NEAR(score({element(0, 0.7F), element(1, 0.2F)}).distance, 0, 1e-6);
  const SetScore three = score({element(1, 0.7F), element(0, 0.2F), element(0, 0.4F)});
  EXPECT_FALSE(three.right || three.right_size);
  const SetScore one = score({element(1, 0.7F), element(0, 0.4F, false)});
  EXPECT_FALSE(one.right || one.right_size);
  EXPECT_NEAR(one.distance, 0.1, 1e-6);
  EXPECT_TRUE(score_of({element(0, 1, false)}, {}, 0.05).right);
}

TEST(SetsSvg, IsWellFormed) {
  SetEvaluation evaluation;
  evaluation.shown = {{{0.7F, 0.2F}, {0, 1}, {0.2F, 0.7F}}};
  evaluation.found = {{element(1, 0.72F), element(0, 0.2F)}};
  const std::string line = sets_svg(evaluation, 1, 1);
  EXPECT_EQ(test::xml_fault(line), "");
  evaluation.shown = {{{0.7F, 0.2F}, {0}, {0.2F, 0.7F}}};
  evaluation.found = {{{.label = 0, .said = true, .values = {0.1F, 0.2F}}}};
  const std::string plane = sets_svg(evaluation, 2, 2);
  EXPECT_EQ(test::xml_fault(plane), "");
  EXPECT_NE(line, plane);
}

TEST(Set2SetTask, SharesItsEvaluation) {
  const test::TemporaryFolder folder;
  test::expect_shared_evaluations(tiny_sets(folder.path(), "sets:task=centres,count=128,validation=20,points=4"));
}

}  // namespace
}  // namespace vitrail::train
