// Files of features that grow part by part.
#include "vitrail/train/study/embedding_file.h"

#include <chrono>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

class EmbeddingFiles : public ::testing::Test {
 protected:
  EmbeddingFiles() {
    test::write_images(folder_ / "data", 9, 3);  // 27 images
    std::ofstream(folder_ / "data/class1/2.png") << "no image";
    models::CreateOptions create;
    create.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 24, "depth": 1, "num_heads": 2})";
    create.num_classes = 0;
    model_ = models::create_model("vit_tiny_patch16_224", create);
    dataset_ = data::open_dataset(folder_ / "data");
    options_.batch_size = 3;
    options_.skip_broken = true;
    file_.images_of_part = 5;  // two batches: 6 images
    file_.facts = {{"format", "pt"}, {"pool", ""}};
  }
  // Embeds, and is killed when `images` have been looked at.
  EmbeddingFile written(const std::string& name, std::int64_t images = 1000) {
    EvaluateOptions options = options_;
    options.progress = [images](std::int64_t done, std::int64_t) { check(done < images, "killed"); };
    const auto forward = [this](const Tensor& x, nn::Pass& pass) {
      ++batches_;
      return model_.net->forward(x, pass);
    };
    return embed_to_file(model_, *dataset_, forward, options, folder_ / name, file_);
  }

  test::TemporaryFolder folder_;
  models::Model model_;
  std::unique_ptr<data::Dataset> dataset_;
  EvaluateOptions options_;
  EmbeddingFileOptions file_;
  int batches_ = 0;
};

TEST_F(EmbeddingFiles, GoOnToTheSameBits) {
  const EmbeddingFile whole = written("whole.safetensors");
  EXPECT_EQ(whole.shape, (Shape{26, 24}));
  EXPECT_EQ(whole.found, 0);
  ASSERT_EQ(whole.broken.size(), 1U);
  EXPECT_FALSE(fs::exists(folder_ / "whole.safetensors.parts"));
  const int all = batches_;
  EXPECT_THAT(error_of([&] { written("f.safetensors", 14); }), HasSubstr("killed"));
  EXPECT_FALSE(fs::exists(folder_ / "f.safetensors"));
  batches_ = 0;
  const EmbeddingFile resumed = written("f.safetensors");
  EXPECT_EQ(resumed.found, 12);
  EXPECT_EQ(resumed.broken, whole.broken);
  EXPECT_LT(batches_, all);
  const Features expected = load_features(folder_ / "whole.safetensors");
  const Features features = load_features(folder_ / "f.safetensors");
  EXPECT_EQ(features.x.values(), expected.x.values());
  EXPECT_EQ(features.names, expected.names);
  EXPECT_EQ(features.classes, expected.classes);
  EXPECT_EQ(features.labels.span<std::int64_t>()[25], 2);
  // Image by image they are those of embed().
  EvaluateOptions options = options_;
  const Features direct = embed(model_, *dataset_, options);
  test::expect_close(features.x, direct.x, 1e-5);
  EXPECT_EQ(features.names, direct.names);
}

TEST_F(EmbeddingFiles, MakePartsOfChangedFilesAnew) {
  EXPECT_THAT(error_of([&] { written("f.safetensors", 14); }), HasSubstr("killed"));  // two parts of six are there
  fs::copy(folder_ / "data/class2/1.png", folder_ / "data/class0/1.png", fs::copy_options::overwrite_existing);
  fs::last_write_time(folder_ / "data/class0/1.png", fs::file_time_type::clock::now() + std::chrono::hours(1));
  const EmbeddingFile resumed = written("f.safetensors");
  EXPECT_EQ(resumed.found, 6);
  EXPECT_EQ(resumed.changed, 6);
  written("whole.safetensors");
  EXPECT_EQ(load_features(folder_ / "f.safetensors").x.values(),
            load_features(folder_ / "whole.safetensors").x.values());
}

TEST_F(EmbeddingFiles, HoldHalfTheBytesInBf16) {
  written("f32.safetensors");
  file_.dtype = DType::bf16;
  EXPECT_THAT(error_of([&] { written("bf16.safetensors", 20); }), HasSubstr("killed"));
  written("bf16.safetensors");
  const Tensor stored = io::Safetensors::open(folder_ / "bf16.safetensors").get("features");
  EXPECT_EQ(stored.dtype(), DType::bf16);
  const Tensor exact = load_features(folder_ / "f32.safetensors").x;
  EXPECT_EQ(load_features(folder_ / "bf16.safetensors").x.values(),
            ops::cast(ops::cast(exact, DType::bf16), DType::f32).values());
}

TEST_F(EmbeddingFiles, RefusePartsOfAnotherEmbedding) {
  const auto refusal = [&](auto&& change) {
    fs::remove_all(folder_ / "f.safetensors.parts");
    EXPECT_THAT(error_of([&] { written("f.safetensors", 14); }), HasSubstr("killed"));
    change();
    return error_of([&] { written("f.safetensors"); });
  };
  EXPECT_THAT(refusal([&] { file_.facts["pool"] = "avg"; }), HasSubstr("pool is '' there and 'avg' here"));
  EXPECT_THAT(refusal([&] { file_.dtype = DType::bf16; }), HasSubstr("dtype is 'f32' there and 'bf16' here"));
  EXPECT_THAT(refusal([&] {
                const nn::Parameter& bias = model_.net->parameters.at("norm.bias");
                bias.value.data<float>()[0] += 1;
                bias.value.touch();
              }),
              HasSubstr("of another embedding (weights is"));
  EXPECT_THAT(refusal([&] { model_.pretrained.crop_pct = 0.4; }), HasSubstr("crop_pct is '0.9' there and '0.4' here"));
  EXPECT_THAT(refusal([&] {
                model_.pretrained.mean = {0.1, 0.2, 0.3};
              }),
              HasSubstr("mean is '0.5 0.5 0.5' there and '0.1 0.2 0.3' here"));
  EXPECT_THAT(refusal([&] {
                fs::remove(folder_ / "data/class0/1.png");
                dataset_ = data::open_dataset(folder_ / "data");
              }),
              HasSubstr("'class0/1.png', which is none of the images now"));
}

}  // namespace
}  // namespace vitrail::train
