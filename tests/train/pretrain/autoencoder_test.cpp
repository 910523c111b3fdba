// Autoencoders: their parts, and runs that learn one.
#include "vitrail/train/pretrain/autoencoder.h"

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/train/tiny.h"
#include "vitrail/train/pretrain/latent_space.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

PretrainAutoencoderOptions tiny_autoencoder(const fs::path& folder, bool conv) {
  const ClassifyOptions tiny = test::tiny_options(folder);  // makes the images
  PretrainAutoencoderOptions options;
  options.data_dir = tiny.data_dir;
  options.val_split = "validation";
  options.output = tiny.output;
  options.experiment = conv ? "conv" : "transformer";
  options.model = conv ? "resnet18" : tiny.model;
  options.model_kwargs = conv ? R"({"channels": [8, 8, 16, 16], "layers": [1, 1, 1, 1]})" : tiny.model_kwargs;
  if (conv) {
    options.img_size = 8;
  }
  options.latent_dim = 3;
  options.decoder_dim = 16;
  options.decoder_depth = 1;
  options.decoder_heads = 2;
  options.batch_size = 4;
  options.epochs = 3;
  options.warmup_epochs = 1;
  options.lr = 3e-3;
  options.images.crop_pct = 1;
  options.threads = 1;
  return options;
}

std::uint64_t decoder_of(const fs::path& folder) { return weights_checksum(*Autoencoder::open(folder)); }

TEST(PretrainingAnAutoencoder, ResumesToTheSameBits) {
  for (const bool conv : {false, true}) {
    const test::TemporaryFolder folder;
    PretrainAutoencoderOptions options = tiny_autoencoder(folder.path(), conv);
    const FitResult whole = fit(options);
    EXPECT_EQ(whole.steps, 18);
    EXPECT_LT(whole.figure("loss"), 1.5);
    EXPECT_TRUE(fs::exists(whole.folder / "reconstructions.png"));
    options.experiment = "stopped";
    test::fit_in_two_parts(options, 8);
    for (const char* checkpoint : {"last", "best"}) {
      EXPECT_EQ(decoder_of(whole.folder / checkpoint), decoder_of(folder / "runs/stopped" / checkpoint)) << checkpoint;
    }
  }
}

TEST(PretrainingAnAutoencoder, KeepsEncoderAndBottleneckAsAModel) {
  const test::TemporaryFolder folder;
  const PretrainAutoencoderOptions options = tiny_autoencoder(folder.path(), false);
  const fs::path best = fit(options).folder / "best";
  const models::Model encoder = models::load_model(best);
  EXPECT_EQ(encoder.net->num_classes(), 3) << "the bottleneck has the place of the classifier";
  const io::Safetensors weights = io::Safetensors::open(best / "model.safetensors");
  for (const std::string& name : weights.names()) {
    EXPECT_FALSE(name.starts_with("decoder.")) << name;
  }
  const std::unique_ptr<Autoencoder> whole = Autoencoder::open(best);
  const Tensor x = test::random_tensor({2, 3, 8, 8});
  nn::Pass pass;
  test::expect_close(whole->encode(x, pass), encoder.net->forward(x, pass), 0);
  EXPECT_EQ(whole->decode(whole->encode(x, pass), pass).shape(), x.shape());
  ClassifyOptions tuning = test::tiny_options(folder.path());
  tuning.model = best.string();
  tuning.model_kwargs = "{}";
  tuning.epochs = 1;
  tuning.warmup_epochs = 0;
  EXPECT_EQ(fit(tuning).steps, 6);
}

TEST(PretrainingAnAutoencoder, RefusesWhatDoesNotFit) {
  const test::TemporaryFolder folder;
  PretrainAutoencoderOptions options = tiny_autoencoder(folder.path(), true);
  options.decoder = "transformer";  // patches of 16 pixels
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("--decoder conv takes any size"));
  options = tiny_autoencoder(folder.path(), false);
  options.decoder_heads = 3;
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("cannot be divided among 3 heads"));
  EXPECT_THAT(error_of([&] { Autoencoder::open(folder / "data"); }), HasSubstr("has no decoder"));
}

TEST(LatentDecoder, DecodesAnySize) {
  nn::Pass pass;
  const auto shape = [&](LatentDecoderConfig config) {
    nn::ParameterStore store;
    config.latent_dim = 2;
    config.channels = 1;
    config.dim = 16;
    return LatentDecoder(nn::Scope(store), config)(test::random_tensor({3, 2}), pass).shape();
  };
  for (const nn::Size2 size : {nn::Size2{32, 32}, nn::Size2{9, 12}, nn::Size2{28, 20}, nn::Size2{3, 3}}) {
    EXPECT_EQ(shape({.kind = "conv", .image = size}), (Shape{3, 1, size[0], size[1]}));
  }
  EXPECT_EQ(shape({.kind = "transformer", .image = {12, 8}, .patch = {4, 2}}), (Shape{3, 1, 12, 8}));
}

TEST(LatentDecoder, IsDifferentiable) {
  for (const char* kind : {"transformer", "conv"}) {
    nn::ParameterStore store;
    const LatentDecoder decoder(nn::Scope(store), {.kind = kind,
                                                   .latent_dim = 4,
                                                   .channels = 2,
                                                   .image = {8, 12},
                                                   .dim = 16,
                                                   .depth = 1,
                                                   .heads = 2,
                                                   .patch = {4, 2}});
    for (const nn::Parameter& parameter : store.all()) {
      parameter.value.copy_from(test::random_tensor(parameter.value.shape(), hash(parameter.name), 0.3F));
      parameter.value.touch();
    }
    test::check_gradients(
        [&](const std::vector<Tensor>& in) {
          nn::Pass pass;
          return decoder(in[0], pass);
        },
        {test::random_tensor({3, 4})}, 5e-3, 1e-3);
  }
}

TEST(LatentSpace, HasDirectionsWithAMeaning) {
  const Tensor a = Tensor::from(std::vector<float>{3, 1, 5, 1, 4, -5}, {3, 2});
  const Tensor b = Tensor::from(std::vector<float>{0, 0, -2, 0}, {2, 2});
  const LatentDirection direction = latent_direction(a, b);
  EXPECT_EQ(direction.vector.values(), (std::vector<float>{5, -1}));
  EXPECT_NEAR(direction.length, std::sqrt(26.0), 1e-6);
  EXPECT_EQ(direction.told_apart, 1);
  EXPECT_THAT(error_of([&] { latent_direction(a, b.narrow(1, 0, 1)); }), HasSubstr("one width"));
}

TEST(LatentSpace, IsDrawnAlongWays) {
  const test::TemporaryFolder folder;
  const std::unique_ptr<Autoencoder> model =
      Autoencoder::open(fit(tiny_autoencoder(folder.path(), false)).folder / "best");
  const std::vector<Tensor> inputs = {test::random_tensor({1, 3, 8, 8}, 1), test::random_tensor({1, 3, 8, 8}, 2)};
  const Tensor z = latent_vectors(*model, inputs);
  EXPECT_EQ(z.shape(), (Shape{2, 3}));
  const io::Image way = between_sheet(*model, inputs[0], inputs[1], 4);
  EXPECT_GE(way.width, 6 * 224) << "two images and four steps between them";
  const io::Image strip = direction_sheet(*model, inputs, {"a", "b"}, z.select(0, 0), {-1, 0, 1});
  EXPECT_GE(strip.width, 4 * 224);
  EXPECT_GE(strip.height, 2 * 224);
  EXPECT_THAT(error_of([&] { between_sheet(*model, inputs[0], inputs[1], 1); }), HasSubstr("at least 2 steps"));
}

}  // namespace
}  // namespace vitrail::train
