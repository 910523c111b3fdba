#include "vitrail/train/tasks/pretrain_clip.h"

#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/train/ranked.h"
#include "tests/train/tiny.h"
#include "vitrail/io/json.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/train/study/zero_shot.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

// 32 images of 8 by 8 pixels with two captions each, which name their colour and shade.
void write_pairs(const fs::path& folder) {
  nlohmann::json captions = {{"images", nlohmann::json::array()}, {"annotations", nlohmann::json::array()}};
  fs::create_directories(folder / "images");
  const std::array<const char*, 4> colors = {"red", "green", "blue", "grey"};
  for (std::size_t i = 0; i < 32; ++i) {
    io::Image image(8, 8);
    const Philox philox(5, i);
    const std::size_t color = i % 4;
    const bool dark = i % 8 < 4;
    for (std::size_t p = 0; p < image.pixels.size(); ++p) {
      const bool own = color == 3 || p % 3 == color;
      image.pixels[p] = static_cast<std::uint8_t>((own ? dark ? 100 : 200 : 20) + philox.word(p) % 30);
    }
    const std::string name = fmt::format("{:03}.png", i);
    io::write_png(folder / "images" / name, image);
    captions["images"].push_back({{"id", i}, {"file_name", name}});
    for (const char* words : {"a {} {} image", "{} and {}"}) {
      captions["annotations"].push_back(
          {{"image_id", i}, {"caption", fmt::format(fmt::runtime(words), dark ? "dark" : "bright", colors[color])}});
    }
  }
  std::ofstream(folder / "captions.json") << captions;
}

PretrainClipOptions tiny_pairs(const fs::path& folder) {
  if (!fs::exists(folder / "pairs")) {
    write_pairs(folder / "pairs");
  }
  PretrainClipOptions options;
  options.data = (folder / "pairs").string();
  options.output = (folder / "runs").string();
  options.experiment = "tiny";
  options.vision_kwargs = R"({"image_size": 8, "patch_size": 4, "hidden_size": 16, "intermediate_size": 32,
                              "num_hidden_layers": 2, "num_attention_heads": 2})";
  options.text_kwargs = R"({"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
                            "num_attention_heads": 2, "max_position_embeddings": 12})";
  options.projection_dim = 8;
  options.batch_size = 8;
  options.epochs = 3;
  options.warmup_epochs = 0;
  options.lr = 3e-3;
  options.val_share = 0.2;
  options.log_interval = 1;
  options.threads = 1;
  return options;
}

TEST(PretrainClip, ResumesToTheSameBits) {
  const test::TemporaryFolder folder;
  for (const std::string loss : {"clip", "siglip"}) {
    PretrainClipOptions options = tiny_pairs(folder.path());
    options.loss = loss;
    options.experiment = loss + "-whole";
    fit(options);
    options.experiment = loss + "-stopped";
    test::fit_in_two_parts(options, 5);
    const auto last = [&](const std::string& run) {
      return models::load_clip(fs::path(options.output) / (loss + run) / "last");
    };
    const models::JointModel model = last("-whole");
    EXPECT_EQ(weights_checksum(*model.net), weights_checksum(*last("-stopped").net));
    EXPECT_EQ(model.net->logit_bias().defined(), loss == "siglip");
  }
}

TEST(PretrainClip, LearnsWhatColorsAreCalled) {
  const test::TemporaryFolder folder;
  for (const auto& [loss, least] : {std::pair("clip", 90), {"siglip", 40}}) {
    PretrainClipOptions options = tiny_pairs(folder.path());
    options.loss = loss;
    options.experiment = loss;
    options.epochs = 40;
    options.lr = 1e-2;
    options.weight_decay = 0.01;
    options.val_share = 0;
    fit(options);
    const ImageTextModel model = open_image_text_model(fs::path(options.output) / loss / "last");
    Features images = embed_images(model.joint, *data::open_text_pairs(options.data).images, {});
    for (std::int64_t i = 0; i < 32; ++i) {
      images.labels.data<std::int64_t>()[i] = i % 4;
    }
    const std::vector<std::string> colors = {"red", "green", "blue", "grey"};
    const Tensor labels =
        embed_labels(model, colors, {"a dark {} image", "a bright {} image", "dark and {}", "bright and {}"});
    EXPECT_GT(evaluate_zero_shot(*model.joint.net, images, colors, labels).top1, least) << loss;  // chance: 25
  }
}

TEST(PretrainClip, KeepsTheScaleOfLogitsBelowAHundred) {
  const test::TemporaryFolder folder;
  PretrainClipOptions options = tiny_pairs(folder.path());
  options.epochs = 1;
  fit(options);
  const fs::path last = fs::path(options.output) / "tiny" / "last";
  nlohmann::json config = io::read_json(last / "config.json");
  EXPECT_EQ(config["text_config"]["max_position_embeddings"], 12);
  EXPECT_EQ(config["text_config"]["eos_token_id"].get<std::int64_t>() + 1, config["text_config"]["vocab_size"]);
  config["logit_scale_init_value"] = 7.0;
  const models::JointModel sharp = models::create_clip(config.dump(), "it");
  fs::copy(last, folder / "sharp");
  models::write_clip(sharp, folder / "sharp");
  options.model = (folder / "sharp").string();
  options.experiment = "from_sharp";
  options.epochs = 1;
  fit(options);
  const models::JointModel tuned = models::load_clip(fs::path(options.output) / "from_sharp" / "last");
  EXPECT_LE(tuned.net->logit_scale().item(), std::log(100.0F));
  EXPECT_GT(tuned.net->logit_scale().item(), 4.5F);
}

// SigLIP's loss gives a model that has none a bias, and leaves its weights.
TEST(PretrainClip, GoesOnFromAFolderWithAnotherLoss) {
  const test::TemporaryFolder folder;
  PretrainClipOptions options = tiny_pairs(folder.path());
  options.model = test::golden_path("models/joint/clip").string();
  options.loss = "siglip";
  options.epochs = 1;
  options.lr = 1e-9;
  options.weight_decay = 0;
  fit(options);
  const models::JointModel before = models::load_clip(options.model);
  const models::JointModel after = models::load_clip(fs::path(options.output) / "tiny" / "last");
  EXPECT_NEAR(after.net->logit_bias().item(), -10, 1e-3);
  for (const nn::Parameter& parameter : before.net->parameters.all()) {
    test::expect_close(after.net->parameters.at(parameter.name).value, parameter.value, 1e-4, parameter.name);
  }
}

TEST(PretrainClip, SaysWhatIsWrong) {
  const test::TemporaryFolder folder;
  const auto error = [&](const auto& change) {
    PretrainClipOptions options = tiny_pairs(folder.path());
    change(options);
    return error_of([&] {
      options.validate();
      options.make({});
    });
  };
  EXPECT_THAT(error([](PretrainClipOptions& o) { o.batch_size = 1; }),
              HasSubstr("--batch-size 1 is too small: pairs are compared with the others of their batch"));
  EXPECT_THAT(
      error([](PretrainClipOptions& o) { o.batch_size = 64; }),
      ::testing::AllOf(HasSubstr("a batch of 64 is more than the"), HasSubstr(": choose a smaller --batch-size")));
  EXPECT_THAT(error([](PretrainClipOptions& o) { o.vision_kwargs = R"({"hiden_size": 3})"; }),
              HasSubstr("--vision-kwargs: there is no field 'hiden_size'"));
  EXPECT_THAT(error([](PretrainClipOptions& o) { o.text_kwargs = R"({"num_attention_heads": 3, "hidden_size": 16})"; }),
              HasSubstr("'text_config': the width 16 cannot be divided among 3 heads"));
  EXPECT_THAT(error([](PretrainClipOptions& o) { o.tokenizer = test::golden_path("models/text/gpt2").string(); }),
              HasSubstr("no tokenizer is there"));
}

TEST(PretrainClip, SharesItsEvaluation) {
  const test::TemporaryFolder folder;
  test::expect_shared_evaluations(tiny_pairs(folder.path()));
}

}  // namespace
}  // namespace vitrail::train
