// Files and folders that commands write: where none can be, and what none replaces.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class Outputs : public Commands {
 protected:
  // Expects that a command refuses to write `file`, and leaves it as it is.
  static void expect_kept(const std::string& arguments, const std::string& file) {
    const std::string before = io::read_text(file);
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(": choose another --output")) << arguments;
    EXPECT_EQ(io::read_text(file), before) << arguments;
  }
};

TEST_F(Outputs, AreNotBegunWhereTheyCannotBe) {
  std::ofstream(path("file")) << "in the way";
  for (const std::string& command : {"eval " + best() + " " + path("data") + " --split validation --output ",
                                     "report " + path("runs/one") + " " + path("data/validation") + " --output ",
                                     "attention " + best() + " " + path("data/validation/red/3.png") + " --output "}) {
    const Outcome outcome = vitrail(command + path("file/inside"));
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr("cannot make the folder")) << command;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  for (const char* wrong : {"--layer 99", "--head 99", "--query 99,0"}) {
    const Outcome outcome = vitrail("attention " + best() + " " + path("data/validation/red/3.png") + " --output " +
                                    path("nothing") + " " + wrong);
    EXPECT_EQ(outcome.status, 1) << wrong;
    EXPECT_FALSE(fs::exists(path("nothing"))) << wrong;
  }
}

TEST_F(Outputs, HaveTheNameOfTheirFormat) {
  const std::string photo = path("data/validation/red/3.png");
  for (const std::string& command :
       {"augment " + photo, "positions " + best(), "reconstruct " + best() + " " + photo}) {
    const Outcome outcome = vitrail(command + " --output " + path("drawn.jpg"));
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("drawn.jpg' does not end in .png, the format in which it is written"));
  }
  const Outcome chart = vitrail("compare " + path("runs/one") + " --output " + path("drawn.png"));
  EXPECT_EQ(chart.status, 2);
  EXPECT_THAT(chart.err, HasSubstr("drawn.png' does not end in .svg"));
  EXPECT_FALSE(fs::exists(path("drawn.jpg")) || fs::exists(path("drawn.png")));
  EXPECT_EQ(vitrail("positions " + best() + " --output " + path("drawn.PNG")).status, 0);
}

TEST_F(Outputs, LoseNeitherAModelNorFilesOfOthers) {
  const Outcome embed =
      vitrail("embed " + best() + " " + path("data/validation") + " --output " + best() + "/model.safetensors");
  EXPECT_EQ(embed.status, 1);
  EXPECT_THAT(embed.err, HasSubstr("belongs to the model"));
  EXPECT_EQ(vitrail("info " + best()).status, 0);

  const std::string scenes = "scenes " + path("drawn") + " --count 2 --size 32";
  EXPECT_EQ(vitrail(scenes).status, 0);
  EXPECT_EQ(vitrail(scenes).status, 0) << "one of scenes is replaced";
  for (const char* own : {"drawn/images/mine.png", "drawn/notes.txt"}) {
    std::ofstream(path(own)) << "mine";
    const Outcome outcome = vitrail(scenes);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr(std::string(own).substr(5) + "' would be lost with the scenes"));
    std::filesystem::remove(path(own));
  }
}

TEST_F(Outputs, ReplaceNoInput) {
  const std::string image = path("picture.png");
  fs::copy_file(path("data/validation/red/3.png"), image);
  const std::string before = io::read_text(image);
  const std::string features = path("features.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data/train") + " --output " + features).status, 0);
  fs::create_directory(path("kept_maps"));
  fs::copy_file(image, path("kept_maps/image.png"));
  for (const std::string& command :
       {"augment " + image + " --output " + image,
        "attention " + best() + " " + path("kept_maps/image.png") + " --output " + path("kept_maps"),
        "augment " + path("data/validation/red") + " " + image + " --output " + path("data/../picture.png"),
        "forward " + best() + " --input " + features + " --output " + features}) {
    const Outcome outcome = vitrail(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr("' is the input: choose another --output")) << command;
  }
  EXPECT_EQ(io::read_text(image), before);
  EXPECT_EQ(io::read_text(path("kept_maps/image.png")), before);
  // Features are known by what is in the file.
  const Outcome knn = vitrail("knn " + features + " " + features + " -k 1");
  EXPECT_EQ(knn.status, 0) << knn.err;
  const Outcome idle = vitrail("knn " + features + " " + features + " --split test");
  EXPECT_EQ(idle.status, 2);
  EXPECT_THAT(idle.err, HasSubstr("the features are there already: --split has nothing to do"));
}

TEST_F(Outputs, ReplaceNeitherInputsNorModels) {
  const std::string model = path("model");
  fs::copy(best(), model, fs::copy_options::recursive);
  const std::string image = path("data/train/red/0.png");
  const std::string picture = write("pictures/sheet.png", io::read_text(image));
  const std::string weights = model + "/model.safetensors";
  expect_kept("attention " + model + " " + image + " --raw " + weights + " --output " + path("maps"), weights);
  expect_kept("patches " + model + " " + image + " --raw " + weights + " --output " + path("maps"), weights);
  for (const std::string flag : {"--output", "--trace"}) {
    expect_kept("bench infer --model " + model + " --steps 1 --batch-size 1 " + flag + " " + model + "/config.json",
                model + "/config.json");
  }
  expect_kept("patches " + model + " " + picture + " --output " + path("pictures"), picture);
  fs::create_directories(path("places"));
  ASSERT_EQ(
      vitrail("embed " + model + " " + path("data") + " --split validation --output " + path("places/map.safetensors"))
          .status,
      0);
  expect_kept("project " + path("places/map.safetensors") + " --output " + path("places"),
              path("places/map.safetensors"));
  expect_kept("report " + model + " " + path("data") + " --split validation --output " + path("data/train/red"), image);
}

TEST_F(Outputs, LieInNoData) {
  refuses("eval " + best() + " " + path("data/validation") + " --output " + path("data/validation/report"),
          "lies in the data");
  const fs::path here = fs::current_path();
  fs::current_path(path("data/validation"));
  refuses("eval " + best() + " . --output report", "'report' lies in the data '.'");
  fs::current_path(here);
  EXPECT_FALSE(fs::exists(path("data/validation/report")));
  copy_of_data("elsewhere");
  ASSERT_EQ(train(path("elsewhere"), "elsewhere").status, 0);
  EXPECT_THAT(vitrail("compare " + path("runs/one") + " " + path("runs/elsewhere")).err,
              HasSubstr("the runs are evaluated on different data: one on '"));
}

TEST_F(Outputs, LieNeitherInRunsNorAmongImages) {
  const std::string chart = io::read_text(path("runs/one/curves.svg"));
  refuses("compare " + path("runs/one") + " --output " + path("runs/one/curves.svg"), "is a picture of the run");
  EXPECT_EQ(io::read_text(path("runs/one/curves.svg")), chart);
  refuses("shard " + path("data/train") + " --split '' --output " + path("data/train/shards"), "the name of a part", 2);
  refuses("shard " + path("data/train") + " --output " + path("data/train"), "lies among the images of");
  EXPECT_FALSE(fs::exists(path("data/train/train.json")));
  refuses("bench infer vit_tiny_patch16_224 --output " + path("b.txt"), ".json", 2);
  refuses("forward " + best() + " --input x.safetensors --output " + path("y.bin"), ".safetensors", 2);
}

TEST_F(Outputs, ReplaceNoPageOfAnotherOrigin) {
  const std::string attention = "attention " + best() + " " + path("data/train/red/0.png") + " --output " + path("own");
  fs::create_directories(path("own"));
  write("own/index.html", "<html>holidays</html>");
  refuses(attention, "own/index.html' is a page that vitrail has not made, and would be replaced");
  EXPECT_EQ(io::read_text(path("own/index.html")), "<html>holidays</html>");
  fs::remove(path("own/index.html"));
  EXPECT_EQ(vitrail(attention).status, 0);
  EXPECT_EQ(vitrail(attention).status, 0) << "over its own";
}

TEST_F(Outputs, ReplaceNoWeights) {
  const std::string adapted = golden_with("text/gpt2", "adapted", "model_type", "gpt2");
  write("adapted/adapter_config.json", "{}");
  refuses("generate " + adapted + " x", "join it with its model first");
  const std::string weights = path("weights/model.safetensors");
  fs::copy(golden_path("models/text/gpt2"), path("weights"), fs::copy_options::recursive);
  const std::string before = io::read_text(weights);
  refuses("embed " + best() + " " + path("data") + " --output " + weights, "belongs to a model");
  EXPECT_EQ(io::read_text(weights), before);
}

}  // namespace
}  // namespace vitrail::test
