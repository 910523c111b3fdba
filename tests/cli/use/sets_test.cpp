// What a person does with sets: trains a network to sort numbers, asks it, and measures it.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class SetsOfNumbers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    sets_folder_ = new TemporaryFolder;
    trained_sets_ = vitrail(
        "train --task set2set --data sets:task=sort,count=640,size=2-3,validation=50 --model-kwargs d_model=16 "
        "--epochs 1 --threads 1 --output " +
        sets_path("runs") + " --experiment sort");
  }
  static void TearDownTestSuite() {
    delete sets_folder_;
    sets_folder_ = nullptr;
  }
  static std::string sets_path(const std::string& name) { return (*sets_folder_ / name).string(); }
  static std::string run() { return sets_path("runs/sort"); }

  static inline TemporaryFolder* sets_folder_ = nullptr;
  static inline Outcome trained_sets_;
};

TEST_F(SetsOfNumbers, AreLearnedAndGoneOnWith) {
  EXPECT_EQ(trained_sets_.status, 0) << trained_sets_.err;
  EXPECT_THAT(trained_sets_.out, HasSubstr("3 queries, queries are matched with targets"));
  EXPECT_THAT(trained_sets_.out, HasSubstr("640 training and 50 validation sets"));
  EXPECT_THAT(io::read_text(run() + "/sets.svg"), StartsWith("<svg"));
  const Outcome more = vitrail("train --resume " + run() + " --epochs 2 --no-matching");
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("epoch 2/2"));
  EXPECT_THAT(more.out, HasSubstr("query i is target i"));
}

TEST_F(SetsOfNumbers, AreAskedAbout) {
  EXPECT_THAT(vitrail("predict " + run() + " '[0.7, 0.1]'").out, StartsWith("set 1: "));
  io::write_atomically(sets_path("own.jsonl"), "{\"set\": [[0.5], [0.25]]}\n{\"set\": [[0.75]]}\n");
  const nlohmann::json said =
      nlohmann::json::parse(vitrail("predict " + run() + " " + sets_path("own.jsonl") + " --format json").out);
  ASSERT_EQ(said.size(), 2);
  EXPECT_EQ(said[1]["set"], 2);
  EXPECT_THAT(vitrail("predict " + run() + " -", "{\"set\": [[0.5], [0.25]]}\n[0.75]\n").out, HasSubstr("\nset 2: "));
  EXPECT_THAT(vitrail("predict " + run() + " '{\"sets\": [0.7]}'").err, HasSubstr("has no elements"));
  EXPECT_THAT(vitrail("predict " + run() + " '[0.7]' --format csv").out, StartsWith("set,class,score,value1\n"));
  EXPECT_THAT(vitrail("predict " + run() + " '[[0.7, 1]]'").err,
              HasSubstr("elements have 2 numbers, but '" + run() + "' takes 1"));
  EXPECT_THAT(vitrail("predict " + run() + " '[0.7]' --topk 2").err, HasSubstr("takes none of --topk"));
  EXPECT_THAT(vitrail("embed " + run() + " x --output y.safetensors").err, HasSubstr("says sets of sets"));
}

TEST_F(SetsOfNumbers, AreDescribed) {
  EXPECT_THAT(vitrail("info " + run()).out, HasSubstr("sets of elements of 1 number, in any order"));
  EXPECT_EQ(nlohmann::json::parse(vitrail("info --json " + run()).out)["num_queries"], 3);
}

TEST_F(SetsOfNumbers, AreMeasured) {
  const std::string unseen = "sets:task=sort,count=40,size=2-3,start=100000";
  const nlohmann::json figures = nlohmann::json::parse(
      vitrail("eval " + run() + " --data " + unseen + " --json --output " + sets_path("report")).out);
  EXPECT_EQ(figures["count"], 40);
  EXPECT_GE(figures["size"], 0);
  EXPECT_LE(figures["right"], figures["size"]);
  EXPECT_EQ(io::read_json(sets_path("report/eval.json")), figures);
  EXPECT_THAT(io::read_text(sets_path("report/sets.svg")), StartsWith("<svg"));
  EXPECT_THAT(vitrail("eval " + run() + " " + unseen).out, HasSubstr("40 sets"));
  EXPECT_THAT(vitrail("eval " + run() + " " + unseen + " --data " + unseen).err, HasSubstr("excludes"));
  EXPECT_THAT(vitrail("eval " + run() + " " + unseen + " --metric coco").err, HasSubstr("--metric is for detectors"));
  EXPECT_THAT(vitrail("eval " + run() + " sets:task=centres,count=9").err,
              HasSubstr("are not the network's (1, 2, 3)"));
}

TEST(SetTask, SaysWhatIsWrong) {
  const auto error = [](const std::string& flags) { return vitrail("train --task set2set " + flags).err; };
  EXPECT_THAT(error(""), HasSubstr("--data-dir is missing: sets:task=sort,count=20000, or a .jsonl of sets"));
  EXPECT_THAT(error("photos"), HasSubstr("'photos' is no .jsonl of sets"));
  EXPECT_THAT(error("sets:task=sort,count=9 --no-matching --set-cost-class 2"),
              HasSubstr("--set-cost-class has no effect with --no-matching"));
  EXPECT_THAT(error("sets:task=sort,count=9 --model set3set"), HasSubstr("there is no network 'set3set' of sets"));
}

class SetsInFiles : public OnScenes {};

TEST_F(SetsInFiles, AreTaken) {
  write("own.jsonl", R"({"set": [[0.3], [0.1]], "targets": [{"class": "1", "values": [0.1]}]}
{"set": [[0.5]], "targets": []}
)");
  EXPECT_THAT(vitrail("info " + path("own.jsonl")).out, HasSubstr("2 sets, 1 class: 1"));
  EXPECT_THAT(vitrail("info " + path("own.jsonl")).out, HasSubstr("--task set2set --val-split ''"));
  const std::string flags = " --val-split '' --model-kwargs d_model=16 encoder_layers=1 decoder_layers=1 --threads 1";
  const Outcome learnt = train(path("own.jsonl"), "sets", flags);
  EXPECT_EQ(learnt.status, 0) << learnt.err;
  EXPECT_EQ(train("sets:task=sort,count=40", "drawn-sets", " --model-kwargs d_model=16 --threads 1").status, 0);
  write("texts.jsonl", "{\"text\": \"a\", \"label\": \"x\", \"set\": \"train\"}\n");
  EXPECT_THAT(vitrail("info " + path("texts.jsonl")).out, HasSubstr("1 text, 1 class: x"));
  write("empty.jsonl", "{\"set\": []}\n");
  refuses("train " + path("empty.jsonl") + " --val-split ''", "its \"set\" has no elements");
}

class SetsWithTargets : public OnScenes {};

TEST_F(SetsWithTargets, WantThem) {
  std::string sets;
  for (int i = 0; i < 40; ++i) {
    sets += "{\"set\": [[0.1], [0.7]], \"targets\": [{\"class\": \"a\", \"values\": [0.1]}]}\n";
  }
  write("sets.jsonl", sets);
  const std::string flags = " --task set2set --val-split ''";
  const Outcome trained = train_epoch(path("sets.jsonl") + flags, "sets");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("1 query, queries are matched with targets"));
  write("wrong.jsonl", sets + "{\"set\": [[0.1]], \"target\": []}\n");
  refuses("eval " + path("runs/sets") + " " + path("wrong.jsonl"), "wrong.jsonl, line 41: there is a key \"target\"");
  write("bare.jsonl", sets + "{\"set\": [[0.1]]}\n");
  refuses("train " + path("bare.jsonl") + flags + " --output " + path("runs"),
          "bare.jsonl, line 41: it has no \"targets\"");
  EXPECT_THAT(vitrail("predict " + path("runs/sets") + " " + path("bare.jsonl")).out, HasSubstr("set 41: "));
  refuses("train " + path("sets.jsonl") + flags + " --set-cost-class 0 --set-cost-value 0 --output " + path("runs"),
          "nothing is left to match by", 2);
  refuses("train " + path("scenes") + scenes_detector() +
              " --set-cost-class 0 --set-cost-bbox 0 --set-cost-giou 0 --output " + path("runs"),
          "--set-cost-class, --set-cost-bbox and --set-cost-giou are all 0: nothing is left to match by", 2);
}

}  // namespace
}  // namespace vitrail::test
