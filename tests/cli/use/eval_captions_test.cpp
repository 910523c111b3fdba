// `vitrail eval-captions` on scores that pycocoevalcap gave, and on scenes.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(EvalCaptionsCommand, PrintsPycocoevalcapsScores) {
  const json corpus = io::read_json(golden_path("text/captions.json"))["corpora"]["people"];
  json results = json::array();
  json data = {{"images", json::array()}, {"annotations", json::array()}};
  for (std::size_t i = 0; i < corpus["candidates"].size(); ++i) {
    results.push_back({{"image_id", 100 + i}, {"caption", corpus["candidates"][i]}});
    for (const json& reference : corpus["references"][i]) {
      data["annotations"].push_back({{"image_id", 100 + i}, {"caption", reference}});
    }
  }
  data["annotations"].push_back({{"image_id", 7}, {"caption", "nobody has a caption of this"}});
  const TemporaryFolder folder;
  const std::string results_file = (folder / "results.json").string();
  const std::string data_file = (folder / "captions.json").string();
  std::ofstream(results_file) << results;
  std::ofstream(data_file) << data;
  const Outcome outcome = vitrail("eval-captions " + results_file + " --data " + data_file + " --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json scores = json::parse(outcome.out);
  EXPECT_EQ(scores["images"], corpus["candidates"].size());
  EXPECT_EQ(scores["without_caption"], 1);
  EXPECT_NEAR(scores["Bleu_4"].get<double>(), corpus["bleu"][3].get<double>(), 1e-9);
  EXPECT_NEAR(scores["ROUGE_L"].get<double>(), corpus["rouge_l"].get<double>(), 1e-9);
  EXPECT_NEAR(scores["CIDEr"].get<double>(), corpus["cider"].get<double>(), 1e-9);
  EXPECT_NEAR(scores["by_image"][0]["CIDEr"].get<double>(), corpus["cider_of"][0].get<double>(), 1e-9);
  EXPECT_FALSE(scores.contains("true"));
  EXPECT_THAT(vitrail("eval-captions " + results_file + " --data " + folder.path().string()).out,
              HasSubstr("10 images; 1 image without a caption left out"));
}

TEST(EvalCaptionsCommand, JudgesCaptionsOfScenes) {
  const TemporaryFolder folder;
  const std::string scenes = (folder / "scenes").string();
  ASSERT_EQ(vitrail("scenes " + scenes + " --count 4 --seed 5 --questions 0").status, 0);
  const json captions = io::read_json(std::filesystem::path(scenes) / "captions.json")["annotations"];
  json results = json::array();
  for (std::size_t i = 0; i < 2; ++i) {
    results.push_back({{"image_id", i}, {"caption", captions[5 * i]["caption"]}});
  }
  results.push_back({{"image_id", 2}, {"caption", "twelve red circles"}});
  results.push_back({{"image_id", 3}, {"caption", "a man on a horse"}});
  std::ofstream(folder / "results.json") << results;
  const std::string command = "eval-captions " + (folder / "results.json").string() + " --data " + scenes;
  const Outcome outcome = vitrail(command);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("true 50.0 %   false 25.0 %   not understood 25.0 %"));
  EXPECT_THAT(outcome.out, HasSubstr("false, for example: image 2, 'twelve red circles': there are "));
  EXPECT_THAT(outcome.out, HasSubstr("'a man on a horse': a shape was expected behind 'a', not 'man'"));
  const json scores = json::parse(vitrail(command + " --json").out);
  EXPECT_EQ(scores["true"], 2);
  EXPECT_EQ(scores["by_image"][2]["truth"], "false");
}

TEST(EvalCaptionsCommand, SaysWhatDoesNotFit) {
  const TemporaryFolder folder;
  const std::string file = (folder / "file.json").string();
  const std::string data = (folder / "captions.json").string();
  std::ofstream(data) << R"({"annotations": [{"image_id": 1, "caption": "a cat"}]})";
  const auto error = [&](const std::string& results) {
    std::ofstream(file) << results;
    const Outcome outcome = vitrail("eval-captions " + file + " --data " + data);
    EXPECT_EQ(outcome.status, 1);
    return outcome.err;
  };
  EXPECT_THAT(error("{}"), HasSubstr("a list of {\"image_id\": …, \"caption\": …} was expected"));
  EXPECT_THAT(error("[]"), HasSubstr("there are no captions"));
  EXPECT_THAT(error(R"([{"image_id": 1}])"), HasSubstr("entry 0: "));
  EXPECT_THAT(error(R"([{"image_id": 1, "caption": "a"}, {"image_id": 1, "caption": "b"}])"),
              HasSubstr("image 1 has two captions, entries 0 and 1"));
  EXPECT_THAT(error(R"([{"image_id": 2, "caption": "a"}])"), HasSubstr("has no captions there"));
  EXPECT_THAT(vitrail("eval-captions " + file + " --data /").err, HasSubstr("the folder '/' has no captions.json"));
}

// Of images with boxes, captions say how many there are.
TEST(CountingCaptioner, IsJudgedByItsNumbers) {
  const TemporaryFolder folder;
  const std::string output = folder.path().string();
  const Outcome trained = vitrail(
      "train scenes:count=16,style=cells --val-dir scenes:count=6,style=cells,start=100 --task caption --model "
      "gru_rows --img-size 16 --model-kwargs hidden_size=8 --decoder gru --decoder-kwargs hidden_size=8 --no-aug "
      "-b 8 --threads 1 --epochs 1 --eval-metric counts --output " +
      output + " --experiment cells");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, ::testing::HasSubstr("numbers right"));
  const std::string eval = "eval " + output + "/cells scenes:count=6,style=cells,start=100";
  EXPECT_THAT(vitrail(eval).out, ::testing::HasSubstr("numbers right "));
  EXPECT_TRUE(nlohmann::json::parse(vitrail(eval + " --json").out).contains("counts"));
}

}  // namespace
}  // namespace vitrail::test
