#include "vitrail/models/base/shipped.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/models/trials.h"
#include "vitrail/io/file.h"
#include "vitrail/models/formats/stored.h"
#include "vitrail/models/text/text_model.h"

namespace vitrail::models {
namespace {

using test::error_of;

nlohmann::ordered_json whole_card() {
  return {{"name", "vitrail/tiny"},
          {"what", "a tiny network"},
          {"data", "nothing"},
          {"data_licence", "none needed"},
          {"licence", "Apache-2.0"},
          {"command", "a test"},
          {"seed", 3},
          {"machine", "this one"},
          {"hours", 0.01},
          {"date", "2026-11-24"},
          {"accuracy", "10 % top-1"},
          {"measured_by", "vitrail eval vitrail/tiny DATA"},
          {"limits", "it has learnt nothing"},
          {"sha256", "0"}};
}

// A folder with the checkpoint vitrail/tiny, which VITRAIL_WEIGHTS names as long as this lives.
class ShippedModels : public testing::Test {
 protected:
  ShippedModels() {
    save_model(tiny_, folder_ / "tiny", Layout::timm, DType::bf16);
    io::write_atomically(folder_ / "tiny" / "card.json", whole_card().dump());
    setenv("VITRAIL_WEIGHTS", folder_.path().c_str(), 1);
  }
  ~ShippedModels() override { unsetenv("VITRAIL_WEIGHTS"); }

  const Model tiny_ = create_model(
      "vit_tiny_patch16_224",
      with(R"({"img_size": 8, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 2, "num_classes": 3})"));
  const test::TemporaryFolder folder_;
};

TEST_F(ShippedModels, AreModelsByTheirNames) {
  EXPECT_TRUE(names_folder("vitrail/tiny"));
  EXPECT_EQ(shipped_folders().front(), folder_.path());
  EXPECT_EQ(shipped_folder("vitrail/tiny"), folder_ / "tiny");
  EXPECT_EQ(shipped_or("runs/tiny"), "runs/tiny");
  EXPECT_EQ(shipped_or("./vitrail/tiny"), "./vitrail/tiny");
  for (const Model& model : {open_model("vitrail/tiny"), load_model("vitrail/tiny")}) {
    EXPECT_EQ(model.net->num_classes(), 3);
    for (const nn::Parameter& parameter : tiny_.net->parameters.all()) {
      const Tensor& value = model.net->parameters.at(parameter.name).value;
      EXPECT_EQ(value.dtype(), parameter.value.dtype());
      test::expect_close(value, ops::cast(ops::cast(parameter.value.detach(), DType::bf16), DType::f32), 0,
                         parameter.name);
    }
  }
}

TEST_F(ShippedModels, AreListedByTheirCards) {
  std::filesystem::create_directories(folder_ / "stray");
  std::filesystem::create_directories(folder_ / "tiny/images");
  io::write_atomically(folder_ / "tiny/images/seen.txt", "12345");
  const std::vector<ShippedModel> all = shipped_models();
  const auto it = std::ranges::find(all, "vitrail/tiny", [](const ShippedModel& model) { return model.card.name; });
  ASSERT_NE(it, all.end());
  EXPECT_EQ(it->card.accuracy, "10 % top-1");
  EXPECT_EQ(it->card.seed, 3);
  EXPECT_EQ(it->folder, folder_ / "tiny");
  std::int64_t bytes = 5;
  for (const char* file : {"card.json", "config.json", "model.safetensors"}) {
    bytes += static_cast<std::int64_t>(std::filesystem::file_size(folder_ / "tiny" / file));
  }
  EXPECT_EQ(it->bytes, bytes);
}

TEST_F(ShippedModels, ThatAreNotThereAreToldWithTheNearest) {
  EXPECT_EQ(error_of([] { open_model("vitrail/tinny"); }),
            "there is no checkpoint 'vitrail/tinny' (did you mean 'vitrail/tiny'?)");
  EXPECT_EQ(error_of([] { load_model("vitrail/horses"); }),
            "there is no checkpoint 'vitrail/horses' (vitrail models --shipped lists those that there are)");
  EXPECT_EQ(error_of([] { open_text_model("vitrail/tinny"); }),
            "there is no checkpoint 'vitrail/tinny' (did you mean 'vitrail/tiny'?)");
}

TEST_F(ShippedModels, NeedEveryFieldOfTheCard) {
  const auto path = folder_ / "tiny" / "card.json";
  const nlohmann::ordered_json whole = whole_card();
  for (const auto& [key, value] : whole.items()) {
    nlohmann::ordered_json card = whole_card();
    card.erase(key);
    io::write_atomically(path, card.dump());
    EXPECT_NE(error_of([&] { read_card(path); }).find("'" + key + "'"), std::string::npos) << key;
    if (value.is_string()) {
      card[key] = "";
      io::write_atomically(path, card.dump());
      EXPECT_NE(error_of([&] { read_card(path); }).find("'" + key + "' is empty"), std::string::npos) << key;
    }
  }
  nlohmann::ordered_json card = whole_card();
  card["price"] = 0;
  io::write_atomically(path, card.dump());
  EXPECT_NE(error_of([&] { read_card(path); }).find("'price'"), std::string::npos);
}

TEST(StoredAs, LeavesWholeNumbersAlone) {
  const io::NamedTensors stored =
      stored_as({{"count", Tensor::full({}, 5, DType::i64)}, {"weight", Tensor::full({2}, 1.00390625F)}}, DType::bf16);
  EXPECT_EQ(stored[0].second.dtype(), DType::i64);
  EXPECT_EQ(stored[1].second.dtype(), DType::bf16);
  EXPECT_EQ(error_of([] { stored_as({}, DType::i8); }), "weights are written in f32 or bf16, not in i8");
}

}  // namespace
}  // namespace vitrail::models
