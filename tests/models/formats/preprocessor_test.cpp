#include "vitrail/models/formats/preprocessor.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/data/transforms.h"
#include "vitrail/io/file.h"
#include "vitrail/models/model.h"

namespace vitrail::models {
namespace {

using data::ImageProcessor;
using test::error_of;
using test::golden_path;

// What a folder with this preprocessor_config.json says.
PretrainedConfig read(const nlohmann::json& json) {
  const test::TemporaryFolder folder;
  io::write_atomically(folder / "preprocessor_config.json", json.dump());
  PretrainedConfig pretrained;
  read_preprocessor(folder.path(), pretrained);
  return pretrained;
}

nlohmann::json as_json(const nlohmann::ordered_json& json) { return nlohmann::json::parse(json.dump()); }

// The pixels of transformers' Pillow backend (tools/golden/image_processors.py): to the last bit, but where values are
// not taken times 1/255, which then is a part of mean and deviation here.
TEST(Preprocessor, GivesTransformersPixels) {
  const io::Safetensors golden = test::golden("images/processors.safetensors");
  const nlohmann::json configs = nlohmann::json::parse(golden.metadata().at("configs"));
  EXPECT_EQ(configs.size(), 16U);
  for (const auto& [name, config] : configs.items()) {
    const PretrainedConfig pretrained = read(config);
    // Written and read again it is the same, in either layout.
    const PretrainedConfig again = read(as_json(preprocessor_json(pretrained)));
    ASSERT_TRUE(pretrained.processor) << name;
    EXPECT_EQ(again.processor, pretrained.processor) << name;
    EXPECT_EQ(again.mean, pretrained.mean) << name;
    EXPECT_EQ(again.interpolation, pretrained.interpolation) << name;
    EXPECT_EQ(read_processor(as_json(processor_json(*pretrained.processor)), name), pretrained.processor) << name;
    const data::Transform transform = data::eval_transform(pretrained);
    const double tolerance = name.find("rescaled") == std::string::npos ? 0 : 1e-6;
    for (const char* file : {"rgb444.jpg", "gray8.png", "orientation6.jpg", "cmyk.jpg"}) {
      const io::Image image = io::read_image(golden_path("images/decode") / file);
      test::expect_close(transform(image), golden.get(name + "." + file), tolerance, name + " " + file);
    }
  }
}

TEST(Preprocessor, SquashesConvnextsLargeImages) {
  nlohmann::json json = {{"image_processor_type", "ConvNextImageProcessor"}, {"size", {{"shortest_edge", 384}}}};
  const ImageProcessor large = {ImageProcessor::Resize::both, 384, 384, 384, 384};
  EXPECT_EQ(read(json).processor, large);
  json["size"] = {{"shortest_edge", 224}};
  const ImageProcessor small = {ImageProcessor::Resize::shorter_side, 256, 256, 224, 224};
  EXPECT_EQ(read(json).processor, small);
}

TEST(Preprocessor, KeepsTheFamilysPreparationWhereImagesAreLeftAsTheyAre) {
  const PretrainedConfig pretrained = read({{"do_resize", false}, {"image_mean", 0.25}, {"image_std", {1, 2, 3}}});
  EXPECT_FALSE(pretrained.processor);
  EXPECT_EQ(pretrained.mean, (std::vector<double>{0.25, 0.25, 0.25}));
  EXPECT_EQ(pretrained.std, (std::vector<double>{1, 2, 3}));
}

TEST(Preprocessor, IsScaledToAnotherImageSizeAndGivesWayToFlags) {
  CreateOptions options;
  options.model_kwargs = R"({"img_size": [64, 48]})";
  PretrainedConfig pretrained =
      load_model(golden_path("models/hf_deit"), options).pretrained;  // 36 x 36, of it 32 x 32
  const ImageProcessor scaled = {ImageProcessor::Resize::both, 72, 54, 64, 48};
  EXPECT_EQ(data::eval_transform(pretrained).config().processor, scaled);
  EXPECT_EQ(preprocessor_json(pretrained)["size"], nlohmann::ordered_json({{"height", 72}, {"width", 54}}));
  apply({.crop_pct = std::nullopt, .crop_mode = "", .interpolation = "nearest", .mean = {}, .std = {}}, pretrained);
  EXPECT_TRUE(pretrained.processor);
  apply({.crop_pct = 0.5, .crop_mode = "", .interpolation = "", .mean = {}, .std = {}}, pretrained);
  EXPECT_FALSE(pretrained.processor);
}

TEST(Preprocessor, SaysWhatItCannotFollow) {
  const auto refusal = [](const nlohmann::json& json) { return error_of([&] { read(json); }); };
  EXPECT_NE(refusal({{"size", {{"shortest_edge", 20}, {"longest_edge", 30}}}}).find("'longest_edge'"),
            std::string::npos);
  EXPECT_NE(refusal({{"size", {{"max_height", 20}, {"max_width", 30}}}}).find("'height'"), std::string::npos);
  EXPECT_NE(refusal({{"size", 20}, {"do_center_crop", true}}).find("needs a 'crop_size'"), std::string::npos);
  EXPECT_NE(refusal({{"size", 20}, {"do_pad", true}}).find("'do_pad'"), std::string::npos);
  EXPECT_NE(refusal({{"size", 20}, {"resample", 9}}).find("'resample'"), std::string::npos);
  EXPECT_NE(refusal({{"size", 20}, {"rescale_factor", 0}}).find("'rescale_factor'"), std::string::npos);
  EXPECT_NE(error_of([] {
              read_processor({{"resize", "shorter_side"}, {"size", {2, 3}}, {"crop_size", 2}}, "config.json");
            }).find("config.json: 'size'"),
            std::string::npos);
  EXPECT_THROW(ImageProcessor().scaled_to(2, 2), Error);
}

}  // namespace
}  // namespace vitrail::models
