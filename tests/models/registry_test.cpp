#include "vitrail/models/base/registry.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "vitrail/io/json.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/model.h"

namespace vitrail::models {
namespace {

std::string message_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The rows of timm's table and of those of other references.
std::string rows_of_tables() {
  std::string rows;
  for (const auto& file : std::filesystem::directory_iterator(test::golden_path("models"))) {
    if (file.path().string().ends_with("_table.csv")) {
      std::ifstream table(file.path());
      std::string line;
      std::getline(table, line);
      while (std::getline(table, line)) {
        rows += line + "\n";
      }
    }
  }
  return rows;
}

TEST(Registry, HasTimmsParametersAndFvcoresFlopsForEveryName) {
  std::istringstream table(rows_of_tables());
  std::string line;
  std::size_t rows = 0;
  for (; std::getline(table, line); ++rows) {
    std::istringstream fields(line);
    std::string name;
    std::int64_t parameters = 0;
    std::int64_t flops = 0;
    std::int64_t features = 0;
    std::int64_t classes = 0;
    char comma = 0;
    std::getline(fields, name, ',');
    fields >> parameters >> comma >> flops >> comma >> features >> comma >> classes;
    const Model model = describe_model(name);
    EXPECT_EQ(model.net->parameters.count(), parameters) << name;
    EXPECT_EQ(model.net->flops(model.pretrained.height, model.pretrained.width), flops) << name;
    EXPECT_EQ(model.net->num_features(), features) << name;
    EXPECT_EQ(model.net->num_classes(), classes) << name;
  }
  EXPECT_EQ(rows, architectures().size());
  EXPECT_GT(rows, 150U);
}

TEST(Registry, SuggestsNearNames) {
  const std::string message = message_of([] { create_model("vit_tinny_patch16_224"); });
  EXPECT_NE(message.find("'vit_tiny_patch16_224'"), std::string::npos) << message;
  EXPECT_EQ(message_of([] { create_model("llama"); }),
            "there is no model 'llama' (vitrail models lists those that there are)");
}

TEST(Registry, TakesTimmsTagsForTheirImagePreparation) {
  EXPECT_EQ(describe_model("vit_base_patch16_224").pretrained.mean[0], 0.5);
  const Model dino = describe_model("vit_base_patch16_224.dino");
  EXPECT_EQ(dino.pretrained.mean[0], 0.485);
  EXPECT_EQ(dino.net->num_classes(), 0);
  const std::string message = message_of([] { describe_model("vit_base_patch16_224.dinno"); });
  EXPECT_NE(message.find("'dino'"), std::string::npos) << message;
}

TEST(Registry, KnowsHowImagesArePrepared) {
  const PretrainedConfig deit = describe_model("deit_base_patch16_384").pretrained;
  EXPECT_EQ(deit.height, 384);
  EXPECT_EQ(deit.crop_pct, 1.0);
  EXPECT_EQ(deit.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  const PretrainedConfig miil = describe_model("vit_base_patch16_224_miil").pretrained;
  EXPECT_EQ(miil.interpolation, "bilinear");
  EXPECT_EQ(miil.std, (std::vector<double>{1, 1, 1}));
}

TEST(Registry, LetsArgumentsOverrideAnArchitectures) {
  CreateOptions options;
  options.model_kwargs = R"({"img_size": [64, 32], "patch_size": 8, "in_chans": 1, "depth": null})";
  options.num_classes = 10;
  options.drop_path_rate = 0.1;
  const Model model = describe_model("vit_tiny_patch16_224", options);
  EXPECT_EQ(model.net->num_classes(), 10);
  EXPECT_EQ(model.net->depth(), 12);
  EXPECT_EQ(model.pretrained.height, 64);
  EXPECT_EQ(model.pretrained.width, 32);
  EXPECT_EQ(model.pretrained.channels, 1);
  EXPECT_EQ(model.pretrained.mean.size(), 1U);
  // What config.json will say: what differs, and no drop rates.
  const nlohmann::json args = nlohmann::json::parse(model.model_args);
  EXPECT_EQ(args, nlohmann::json::parse(R"({"img_size": [64, 32], "patch_size": 8, "in_chans": 1})"));
}

TEST(Registry, MakesTheSameModelFromTheSameSeed) {
  CreateOptions options;
  options.model_kwargs = R"({"img_size": 16, "patch_size": 8, "embed_dim": 12, "depth": 1})";
  const auto weight = [&](std::uint64_t seed) {
    options.seed = seed;
    return create_model("vit_tiny_patch16_224", options).net->parameters.at("blocks.0.mlp.fc1.weight").value;
  };
  test::expect_close(weight(1), weight(1), 0);
  EXPECT_GT(test::relative_error(weight(1), weight(2)), 0.1);
}

// Fresh parameters have the mean, the spread and the largest value of timm's, half by half. The allowances are six
// standard errors of both samples.
TEST(Registry, InitializesAsTimm) {
  nlohmann::json golden = nlohmann::json::object();
  for (const auto& file : std::filesystem::directory_iterator(test::golden_path("models"))) {
    if (file.path().string().ends_with("_initialization.json")) {
      golden.update(io::read_json(file.path()));
    }
  }
  EXPECT_GE(golden.size(), 13U);
  for (const auto& [name, entry] : golden.items()) {
    CreateOptions options;
    options.model_kwargs = entry["arguments"].dump();
    const Model model = create_model(entry["architecture"].get<std::string>(), options);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      if (parameter.buffer) {
        continue;
      }
      const std::string what = name + ": " + parameter.name;
      ASSERT_TRUE(entry["statistics"].contains(parameter.name)) << what;
      const nlohmann::json& halves = entry["statistics"][parameter.name];
      const std::int64_t rows = parameter.value.size(0);
      std::int64_t begin = 0;
      for (std::size_t half = 0; half < halves.size(); ++half) {
        const std::int64_t length = halves.size() == 1 ? rows : (half == 0 ? (rows + 1) / 2 : rows / 2);
        const std::vector<float> values = parameter.value.detach().narrow(0, begin, length).values();
        begin += length;
        double mean = 0;
        double squares = 0;
        double largest = 0;
        for (const double value : values) {
          mean += value / static_cast<double>(values.size());
          largest = std::max(largest, std::abs(value));
        }
        for (const double value : values) {
          squares += (value - mean) * (value - mean) / static_cast<double>(values.size());
        }
        const double std = std::sqrt(squares);
        const double expected_std = halves[half][1].get<double>();
        const double error = expected_std / std::sqrt(static_cast<double>(values.size()));
        EXPECT_NEAR(mean, halves[half][0].get<double>(), 8.5 * error + 1e-9) << what;
        EXPECT_NEAR(std, expected_std, 6 * error + 1e-9) << what;
        EXPECT_LE(largest, std::max(1.3 * halves[half][2].get<double>(), 6 * expected_std) + 1e-9) << what;
      }
    }
  }
}

// timm 1.0.31 raises a TypeError for each that is named here.
TEST(Registry, KnowsWhichArgumentsTimmRefuses) {
  const auto refused = [](const std::string& name, const std::string& kwargs) {
    CreateOptions options;
    options.model_kwargs = kwargs;
    return arguments_refused_by_timm(describe_model(name, options));
  };
  EXPECT_THAT(refused("mixer_s32_224", R"({"num_blocks": 2, "embed_dim": 64, "mlp_ratio": [1.0, 2.0]})"),
              testing::ElementsAre("embed_dim", "num_blocks"));
  EXPECT_THAT(refused("resmlp_12_224", R"({"mlp_ratio": 2})"), testing::ElementsAre("mlp_ratio"));
  EXPECT_THAT(refused("mvitv2_tiny", R"({"embed_dim": 32, "img_size": 64})"), testing::ElementsAre("embed_dim"));
  EXPECT_THAT(refused("resnetv2_50x1_bit", R"({"layers": [1, 1, 1, 1]})"), testing::ElementsAre("layers"));
  EXPECT_THAT(refused("resnetv2_50", R"({"layers": [1, 1, 1, 1]})"), testing::IsEmpty());
  EXPECT_THAT(refused("vit_tiny_patch16_224", R"({"depth": 2, "img_size": 32, "patch_size": 4})"), testing::IsEmpty());
}

}  // namespace
}  // namespace vitrail::models
