// vitrail predict, on the run that Commands trains.
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/data/tar_writer.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Predict : public Commands {};

TEST_F(Predict, TakesFilesFoldersArchivesAndStandardInput) {
  const std::string file = path("data/validation/red/3.png");
  const Outcome one = vitrail("predict " + best() + " " + file + " --topk 1");
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("3.png:  red"));
  const auto json = nlohmann::json::parse(vitrail("predict " + best() + " " + path("data/validation") + " --json").out);
  EXPECT_EQ(json.size(), 32U);
  EXPECT_EQ(json[0]["top"].size(), 2U);
  EXPECT_THAT(vitrail("predict " + best() + " -", file + "\n").out, HasSubstr("red"));
  TarWriter archive;
  for (const char* name : {"red/3.png", "blue/1.png"}) {
    archive.add_file(name, path("data/validation/") + name);
  }
  archive.write(path("two.tar"));
  const Outcome packed = vitrail("predict " + best() + " " + path("two.tar") + " --topk 1");
  EXPECT_EQ(packed.status, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("two.tar/blue/1.png:  blue"));
  EXPECT_THAT(packed.out, HasSubstr("two.tar/red/3.png:  red"));
  TarWriter().write(path("none.tar"));
  const Outcome none = vitrail("predict " + best() + " " + path("none.tar"));
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("none.tar: there are no images (.jpg, .jpeg, .png or .webp)"));
}

TEST_F(Predict, PrintsCsvAndJson) {
  fs::create_directories(path("names"));
  const std::string odd = path("names/a \"quoted\", one.png");
  fs::copy_file(path("data/validation/red/3.png"), odd);
  const std::string command = "predict " + best() + " " + path("names") + " --format ";
  const auto json = nlohmann::json::parse(vitrail(command + "json").out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["file"], odd);
  const auto& top = json[0]["top"];
  std::istringstream csv(vitrail(command + "csv").out);
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "file,rank,label,index,probability");
  for (int rank = 1; rank <= 2; ++rank) {
    std::getline(csv, line);
    const std::string start = "\"" + path("names/a ") + "\"\"quoted\"\", one.png\"," + std::to_string(rank) + "," +
                              (rank == 1 ? "red,1," : "blue,0,");
    ASSERT_TRUE(line.starts_with(start)) << line;
    EXPECT_EQ(std::stof(line.substr(start.size())),
              top[static_cast<std::size_t>(rank - 1)]["probability"].get<float>());
  }
  EXPECT_FALSE(std::getline(csv, line)) << line;
  EXPECT_EQ(vitrail("predict " + best() + " " + path("names") + " --json").out, vitrail(command + "json").out);
  EXPECT_EQ(vitrail(command + "xml").status, 2);
}

TEST_F(Predict, AveragesMirrorImagesAsEvalDoes) {
  const std::string file = path("data/validation/red/3.png");
  const auto probability = [&](const std::string& flags) {
    const Outcome outcome = vitrail("predict " + best() + " " + file + " --format json --topk 1 " + flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)[0]["top"][0]["probability"].get<double>();
  };
  EXPECT_NE(probability("--tta 2"), probability(""));
  EXPECT_EQ(probability("--tta 0"), probability(""));
  const Outcome wrong = vitrail("predict " + best() + " " + file + " --tta 3 --format csv");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.out, "");
  EXPECT_THAT(wrong.err, HasSubstr("--tta takes 0 (the image alone), 2 (and its mirror image) or 6"));
}

TEST_F(Predict, SaysThatAFolderOfImagesIsNoModel) {
  refuses("predict " + path("data/validation"),
          "'" + path("data/validation") + "' is no model, and without one a single JPEG, PNG or WebP is looked at", 2);
}

TEST_F(Predict, NamesABrokenImage) {
  std::ofstream(path("broken.png")) << "not an image";
  const Outcome fatal = vitrail("predict " + best() + " " + path("broken.png"));
  EXPECT_EQ(fatal.status, 1);
  EXPECT_THAT(fatal.err, HasSubstr("broken.png"));
  const Outcome skipped = vitrail("predict " + best() + " " + path("broken.png") + " " +
                                  path("data/validation/blue/1.png") + " --skip-broken");
  EXPECT_EQ(skipped.status, 0);
  EXPECT_THAT(skipped.err, HasSubstr("broken.png"));
  EXPECT_THAT(skipped.out, HasSubstr("blue"));
}

TEST_F(Predict, TakesAListFromWindows) {
  const std::string image = path("data/validation/red/3.png");
  const Outcome listed = vitrail("predict " + best() + " -", image + "\r\n\r\n" + image + "\r\n");
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_EQ(listed.out, vitrail("predict " + best() + " " + image + " " + image).out);
}

TEST_F(Predict, TakesPathsThatFindHasPrinted) {
  const std::string list = path("data/train/red/1.png") + '\0' + path("data/train/red/2.png") + '\0';
  const Outcome outcome = vitrail("predict " + best() + " - --format csv --threads 1", list);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("red/1.png,"), HasSubstr("red/2.png,")));
}

TEST_F(Predict, SaysWhatIsNoListOfImages) {
  const Outcome outcome = vitrail("predict " + best() + " -", io::read_text(path("data/train/red/0.png")));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the standard input is no list of paths, one a line"));
}

class Probabilities : public OnImages {};

// The probabilities of a folder's classes for an image, in their order.
std::vector<double> probabilities(const std::string& model, const std::string& image) {
  const Outcome told = vitrail("predict " + model + " " + image + " --format json --topk 100");
  EXPECT_EQ(told.status, 0) << told.err;
  const nlohmann::json said = nlohmann::json::parse(told.out);
  std::vector<double> result(said[0]["top"].size());
  for (const nlohmann::json& one : said[0]["top"]) {
    result.at(one["index"].get<std::size_t>()) = one["probability"].get<double>();
  }
  return result;
}

TEST_F(Probabilities, AreOfEachClassWhereTheyDoNotExcludeEachOther) {
  const std::string image = path("data/train/red/0.png");
  const std::string several = golden_with("hf_vit", "several", "problem_type", "multi_label_classification");
  const std::vector<double> alone = probabilities(several, image);
  const std::vector<double> together = probabilities(golden_path("models/hf_vit"), image);
  ASSERT_EQ(alone.size(), together.size());
  const auto logit = [&](std::size_t i) { return std::log(alone[i] / (1 - alone[i])); };
  for (std::size_t i = 1; i < alone.size(); ++i) {
    EXPECT_NEAR(logit(i) - logit(0), std::log(together[i] / together[0]), 1e-4);
  }
  EXPECT_GT(std::abs(std::accumulate(alone.begin(), alone.end(), 0.0) - 1), 1e-2);
  ASSERT_EQ(vitrail("convert " + several + " --output " + path("timm") + " --layout timm").status, 0);
  EXPECT_EQ(probabilities(path("timm"), image), alone);
  fs::create_directories(path("ants"));
  fs::copy(path("data/train/red"), path("ants/ant"));
  fs::copy(path("data/train/blue"), path("ants/bee"));
  refuses("eval " + several + " " + path("ants"), "its 'problem_type' is");
  const std::string numbers = golden_with("hf_vit", "numbers", "problem_type", "regression");
  refuses("predict " + numbers + " " + image, "predicts numbers ('problem_type' is 'regression'");
  refuses("predict " + golden_with("hf_vit", "other", "problem_type", "multi_label") + " " + image, "'problem_type'");
}

}  // namespace
}  // namespace vitrail::test
