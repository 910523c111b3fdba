// What a sixteenth newcomer stumbled over: advice that does not work, files written over others, and what nobody said.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SixteenthWalk : public Commands {};

TEST_F(SixteenthWalk, IsToldHowToGoOnWithARunOfAnyName) {
  ASSERT_EQ(train(path("data"), "'a run'").status, 0);
  const Outcome again = train(path("data"), "'a run'");
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("go on with it by --resume '" + path("runs/a run") + "'"));
}

TEST_F(SixteenthWalk, FindsShippedModelsByTheirLastName) {
  refuses("predict scenes_dino " + path("data/train/red/0.png"), "there is no model 'scenes_dino'; did you mean");
  refuses("models scenes_dino", "vitrail models --shipped those that are trained");
}

TEST_F(SixteenthWalk, IsToldOfClassesWithoutTrainingImages) {
  fs::create_directories(path("reds"));
  fs::copy(path("data/train/red"), path("reds/red"));
  for (const char* source : {"reds", "data/train"}) {
    const std::string file = path(std::string(source) == "reds" ? "reds.safetensors" : "all.safetensors");
    ASSERT_EQ(vitrail("embed " + best() + " " + path(source) + " --output " + file).status, 0);
  }
  const Outcome told = vitrail("knn " + path("reds.safetensors") + " " + path("all.safetensors") + " -k 3");
  EXPECT_THAT(told.err, HasSubstr("no training image is of 'blue', so that none of the test images of it can be told"));
  const Outcome whole = vitrail("knn " + path("all.safetensors") + " " + path("all.safetensors"));
  EXPECT_THAT(whole.err, Not(HasSubstr("no training image")));
  EXPECT_THAT(whole.err, HasSubstr("2 of the usual 10, 20, 100 and 200 neighbours are more than there are images"));
}

TEST_F(SixteenthWalk, WritesOverNothing) {
  const std::string chart = io::read_text(path("runs/one/curves.svg"));
  refuses("compare " + path("runs/one") + " --output " + path("runs/one/curves.svg"), "is a picture of the run");
  EXPECT_EQ(io::read_text(path("runs/one/curves.svg")), chart);
  refuses("shard " + path("data/train") + " --split '' --output " + path("data/train/shards"), "the name of a part", 2);
  refuses("shard " + path("data/train") + " --output " + path("data/train"), "lies among the images of");
  EXPECT_FALSE(fs::exists(path("data/train/train.json")));
  refuses("bench infer vit_tiny_patch16_224 --output " + path("b.txt"), ".json", 2);
  refuses("forward " + best() + " --input x.safetensors --output " + path("y.bin"), ".safetensors", 2);
}

TEST_F(SixteenthWalk, NamesTheImagesOfScenesByTheirFiles) {
  ASSERT_EQ(vitrail("scenes " + path("album") + " --count 3").status, 0);
  const std::string first = path("album/images/000000.png");
  EXPECT_THAT(vitrail("predict " + best() + " " + path("album") + " --topk 1").out, HasSubstr(first + ":"));
  const std::string before = io::read_text(first);
  refuses("augment " + path("album") + " --output " + first, first);
  EXPECT_EQ(io::read_text(first), before);
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data/train") + " --output " + path("c.safetensors")).status, 0);
  refuses("project " + path("c.safetensors") + " --images " + path("data/train") + " --output " + path("data/train"),
          "lies in the data");
  EXPECT_FALSE(fs::exists(path("data/train/map.png")));
}

TEST_F(SixteenthWalk, IsToldWhatIsNoListOfImages) {
  const Outcome outcome = vitrail("predict " + best() + " -", io::read_text(path("data/train/red/0.png")));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the standard input is no list of paths, one a line"));
}

TEST_F(SixteenthWalk, IsToldWhichFlagHasTakenAnArgument) {
  refuses("train --freeze patch_embed " + path("data"),
          "(--freeze has taken '" + path("data") + "' as one of its values: name what is missing in front of it)", 2);
  EXPECT_THAT(vitrail("train --opt-betas 0.9 0.95").err, Not(HasSubstr("has taken")));
  refuses("--threads 1 train " + path("data"), "--threads stands in front of the command: flags stand behind it", 2);
  refuses("x train " + path("data"), "there is no command 'x'", 2);
  refuses("help trian", "did you mean", 2);
  EXPECT_THAT(vitrail("help train").out, HasSubstr("--data-dir"));
}

TEST_F(SixteenthWalk, IsToldThatSeriesAreNoCaptions) {
  write("series.csv", "date,HUFL,OT\n2016-07-01,5.8,30.5\n2016-07-02,5.7,27.8\n");
  const Outcome outcome = vitrail("train " + path("series.csv"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, Not(HasSubstr("caption")));
}

TEST_F(SixteenthWalk, StopsScenesWithoutALeftover) {
  const Outcome outcome =
      vitrail("scenes " + path("many") + " --count 1000000", "", "timeout -s INT --preserve-status 3");
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_FALSE(fs::exists(path("many")));
  EXPECT_FALSE(fs::exists(path(".many.tmp")));
}

TEST_F(SixteenthWalk, LeavesNoPartOfShards) {
  fs::copy(path("data"), path("damaged"), fs::copy_options::recursive);
  fs::remove(path("damaged/train/red/9.png"));
  fs::create_symlink("nowhere.png", path("damaged/train/red/9.png"));
  const std::string shard = "shard " + path("damaged") + " --in-order --output " + path("parts");
  refuses(shard, "9.png");
  EXPECT_FALSE(fs::exists(path("parts")));
  EXPECT_EQ(vitrail(shard + " --skip-broken").status, 0);
}

TEST_F(SixteenthWalk, DescribesDetectorsByName) {
  EXPECT_THAT(vitrail("info detr_resnet50").out, HasSubstr("41555015"));
  EXPECT_THAT(vitrail("models detr").out, HasSubstr("detr_scenes"));
}

TEST_F(SixteenthWalk, IsToldTheSizesOfFiles) {
  ASSERT_EQ(vitrail("convert " + best() + " --output " + path("half") + " --dtype bf16").status, 0);
  const Outcome made = vitrail("quantize " + path("half") + " --output " + path("int8") + " --json");
  ASSERT_EQ(made.status, 0) << made.err;
  const nlohmann::json bytes = nlohmann::json::parse(made.out)["bytes"];
  const auto header = 16384;  // at most
  for (const auto& [folder, size] : {std::pair(path("half"), bytes["float"]), std::pair(path("int8"), bytes["int8"])}) {
    const auto file = static_cast<std::int64_t>(fs::file_size(folder + "/model.safetensors"));
    EXPECT_LE(size.get<std::int64_t>(), file) << folder;
    EXPECT_GT(size.get<std::int64_t>(), file - header) << folder;
  }
}

TEST_F(SixteenthWalk, TakesFilesOfSets) {
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

TEST_F(SixteenthWalk, NamesImagesBehindArgumentsOfTheModel) {
  const Outcome outcome =
      vitrail("predict " + best() + " --model-kwargs img_size=16 drop_rate=0 " + path("data/train/red/0.png"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(vitrail("info vit_tiny_patch16_224 --model-kwargs=img_size=16 patch_size=4 --json").status, 0);
  const Outcome learnt =
      vitrail("train --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=8 depth=1 " + path("data") +
              " --epochs 1 --threads 1 --output " + path("runs") + " --experiment behind");
  EXPECT_EQ(learnt.status, 0) << learnt.err;
}

TEST_F(SixteenthWalk, IsToldOfUpdatesThatAreSmallerThanAsked) {
  EXPECT_THAT(train(path("data"), "short-updates", small() + " --grad-accum-steps 50").out,
              HasSubstr("an update has 4 batches instead of 50: an epoch has no more"));
  EXPECT_THAT(trained_.out, Not(HasSubstr("an epoch has no more")));
}

TEST_F(SixteenthWalk, MayLeaveBrokenImagesOutOfASheet) {
  fs::create_directories(path("some"));
  fs::copy(path("data/train/red/0.png"), path("some/0.png"));
  fs::copy(path("data/train/red/1.png"), path("some/2.png"));
  write("some/1.png", "no image");
  const std::string sheet = "augment " + path("some") + " --img-size 16 --columns 2 --output " + path("sheet.png");
  refuses(sheet, "--skip-broken");
  EXPECT_FALSE(fs::exists(path("sheet.png")));
  const Outcome drawn = vitrail(sheet + " --skip-broken");
  EXPECT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_THAT(drawn.err, HasSubstr("left out: "));
  EXPECT_THAT(drawn.out, HasSubstr("3 rows"));
  fs::remove(path("some/0.png"));
  fs::remove(path("some/2.png"));
  refuses(sheet + " --skip-broken", "none of the images could be read");
}

TEST_F(SixteenthWalk, IsToldWhatTakesAModel) {
  refuses("zeroshot " + best() + " " + path("data/train/red/0.png") + " --labels a,b",
          "puts images and texts in no common space: 'vitrail pretrain clip' makes a model that does");
  refuses("info https://localhost:1/photos.csv", "shards alone are read from the web");
  write("vit_tiny_patch16_224", "x");
  const fs::path here = fs::current_path();
  fs::current_path(path(""));
  EXPECT_THAT(vitrail("info vit_tiny_patch16_224").err, HasSubstr("is a file: a model is given by its name"));
  fs::current_path(here);
}

TEST_F(SixteenthWalk, AveragesOnlyModelsOfTheSameTokens) {
  std::string texts[2];
  for (int i = 0; i < 40; ++i) {
    texts[0] += "abcde\n";
    texts[1] += "vwxyz\n";
  }
  for (const int i : {0, 1}) {
    const std::string name = "letters" + std::to_string(i);
    write(name + ".txt", texts[i]);
    ASSERT_EQ(train(path(name + ".txt"), name,
                    " --task lm --tokenizer char --model-kwargs n_layer=1 n_head=2 n_embd=8 --block-size 8 -b 2 "
                    "--threads 1")
                  .status,
              0);
  }
  refuses("soup " + path("runs/letters0") + " " + path("runs/letters1") + " --output " + path("soup"),
          "what one model has learnt of a token says nothing of another's");
  EXPECT_FALSE(fs::exists(path("soup")));
}

}  // namespace
}  // namespace vitrail::test
