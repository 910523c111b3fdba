// vitrail quantize, and models in int8.
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Quantize : public Commands {
 protected:
  // The model of the run, of which a part is in int8.
  static std::string int8_model() {
    const std::string folder = path("int8");
    if (!fs::exists(folder)) {
      EXPECT_EQ(vitrail("quantize " + best() + " --output " + folder).status, 0);
    }
    return folder;
  }
};

TEST_F(Quantize, MakesAFolderLikeAnyOther) {
  const Outcome made = vitrail("quantize " + best() + " --output " + path("int8") + " --eval " + path("data") +
                               " --split validation --json --threads 1");
  ASSERT_EQ(made.status, 0) << made.err;
  const auto report = nlohmann::json::parse(made.out);
  EXPECT_LT(report.at("bytes").at("int8"), report.at("bytes").at("float"));
  EXPECT_NEAR(report.at("top1").at("int8").get<double>(), report.at("top1").at("float").get<double>(), 10);
  EXPECT_EQ(report.at("images"), 32);
  EXPECT_LE(report.at("changed"), 3);
  const Outcome text = vitrail("quantize " + best() + " --output " + path("fixed") + " --calibrate " +
                               path("data/train") + " --calibration-images 8 --threads 1");
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("activations by tensor"));
  const std::string photo = path("data/validation/red/3.png");
  for (const std::string folder : {"int8", "fixed"}) {
    EXPECT_THAT(vitrail("predict " + path(folder) + " " + photo).out, HasSubstr("red"));
    EXPECT_EQ(vitrail("eval " + path(folder) + " " + path("data") + " --split validation").status, 0);
    EXPECT_EQ(vitrail("attention " + path(folder) + " " + photo + " --output " + path("maps8")).status, 0);
    EXPECT_EQ(vitrail("bench infer --model " + path(folder) + " --steps 1 --batch-size 1").status, 0);
    const Tensor x = random_tensor({2, 3, 16, 16}, 1);
    io::save_safetensors(path("x8.safetensors"), {{"x", x}});
    const std::string flags = " --input " + path("x8.safetensors") + " --output " + path("y8.safetensors");
    EXPECT_EQ(vitrail("forward " + path(folder) + flags + " --features --attention").status, 0);
    const Tensor logits = io::Safetensors::open(path("y8.safetensors")).get("logits").clone();
    EXPECT_EQ(vitrail("forward " + best() + flags).status, 0);
    const double error = relative_error(logits, io::Safetensors::open(path("y8.safetensors")).get("logits"));
    EXPECT_LT(error, 0.2);
    EXPECT_GT(error, 1e-6) << "it ran in int8";
  }
  const Outcome again = vitrail("quantize " + best() + " --output " + path("int8"));
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("exists"));
  for (const char* flag : {"--model ", "--initial-checkpoint ", "--pretrained-path "}) {
    const Outcome trained =
        vitrail("train " + path("data") + " -b 8 " + flag + path("int8") + " --output " + path("runs"));
    EXPECT_EQ(trained.status, 1);
    EXPECT_THAT(trained.err, HasSubstr("the weights of '" + path("int8") + "' are in int8 and cannot be trained"));
  }
}

TEST_F(Quantize, CalibratesOnAnyImages) {
  const fs::path flat = path("flat");
  fs::create_directories(flat);
  fs::copy_file(path("data/train/red/1.png"), flat / "1.png");
  const Outcome outcome =
      vitrail("quantize " + best() + " --calibrate " + flat.string() + " --threads 1 --output " + path("calibrated"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string encoder = path("encoder");
  ASSERT_EQ(vitrail("encoder " + path("runs/one") + " --output " + encoder).status, 0);
  EXPECT_EQ(vitrail("quantize " + encoder + " --calibrate " + path("data") + " --threads 1 --output " +
                    path("calibrated-encoder"))
                .status,
            0);
}

TEST_F(Quantize, MakesWeightsThatAreSaidToBeInt8) {
  const std::string image = path("data/train/red/3.png");
  const std::string note = "note: the weights of '" + int8_model() + "' are in int8, and --dtype is for the rest";
  EXPECT_THAT(vitrail("predict " + int8_model() + " " + image + " --dtype f32").err, HasSubstr(note));
  EXPECT_EQ(vitrail("predict " + int8_model() + " " + image).err, "");
  EXPECT_EQ(vitrail("predict " + best() + " " + image + " --dtype f32").err, "");
  EXPECT_THAT(vitrail("info " + int8_model()).out, HasSubstr("int8           13824 (13.8 k) of the parameters"));
  const auto described = nlohmann::json::parse(vitrail("info " + int8_model() + " --json").out);
  EXPECT_EQ(described["int8_parameters"], 2 * 12 * 24 * 24);  // of two blocks
  EXPECT_EQ(described["parameters"], nlohmann::json::parse(vitrail("info " + best() + " --json").out)["parameters"]);
  EXPECT_THAT(vitrail("info " + best()).out, Not(HasSubstr("int8")));
}

class Int8Files : public Commands {};

TEST_F(Int8Files, HaveTheSizesThatAreTold) {
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

class Int8Weights : public Commands {};

TEST_F(Int8Weights, StayWhatTheyAre) {
  const std::string small_model = path("int8");
  ASSERT_EQ(vitrail("quantize " + best() + " --output " + small_model + " --threads 1").status, 0);
  const std::string image = path("data/train/red/0.png");
  const std::string note = "note: the weights of '" + small_model + "' are in int8, and --amp is for the rest";
  EXPECT_THAT(vitrail("predict " + small_model + " " + image + " --amp").err, HasSubstr(note));
  const std::string index = path("int8.index");
  ASSERT_EQ(vitrail("index " + path("data/train") + " --model " + small_model + " --output " + index).status, 0);
  EXPECT_THAT(vitrail("search " + index + " " + image + " --amp").err, HasSubstr(note));
  EXPECT_THAT(vitrail("search " + index + " " + image + " --dtype bf16").err, HasSubstr("and --dtype is for the rest"));
  EXPECT_EQ(vitrail("search " + index + " " + image).err, "");
}

}  // namespace
}  // namespace vitrail::test
