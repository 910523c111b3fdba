#include "vitrail/models/vit/mae.h"

#include <nlohmann/json.hpp>

#include "tests/models/trials.h"
#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/models/vit/huggingface_vit.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;

// A ViTMAEForPreTraining that transformers wrote, and what it computes for a given noise.
class MaeVariant : public testing::TestWithParam<const char*> {
 protected:
  MaeVariant()
      : folder(golden_path("models") / GetParam()),
        expected(io::Safetensors::open(folder / "expected.safetensors")),
        model(open_masked_autoencoder(folder.string())),
        mae(*masked_autoencoder(model)) {}

  fs::path folder;
  io::Safetensors expected;
  Model model;
  const MaskedAutoencoder& mae;
};

TEST_P(MaeVariant, HidesTransformersPatches) {
  const Masking masking = mae.masking(expected.get("noise"));
  Tensor mask = Tensor::zeros({masking.batch, masking.patches});
  for (const std::int64_t row : masking.hidden.span<std::int64_t>()) {
    mask.data<float>()[row] = 1;
  }
  expect_close(mask, expected.get("mask"), 0);
}

TEST_P(MaeVariant, PredictsTransformersPixels) {
  const Masking masking = mae.masking(expected.get("noise"));
  nn::Pass pass;
  expect_close(mae.predict(expected.get("x"), masking, pass), expected.get("logits"), 1e-4);
  nn::Pass half{.dtype = DType::bf16};
  expect_close(mae.predict(expected.get("x"), masking, half), expected.get("logits"), 2e-2);
}

TEST_P(MaeVariant, HasTransformersLossAndGradients) {
  const Masking masking = mae.masking(expected.get("noise"));
  const NameMap names = names_in(io::Safetensors::open(folder / "model.safetensors"), hub_mae_names(), "vit.");
  for (const bool checkpoint : {false, true}) {
    model.net->parameters.zero_grad();
    nn::Pass pass{.training = true, .checkpoint = checkpoint};
    autograd::Tape tape;
    const Tensor loss = mae.loss(expected.get("x"), masking, pass);
    EXPECT_NEAR(loss.item(), expected.get("loss").item(), 1e-4 * expected.get("loss").item());
    tape.backward(loss);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      if (parameter.buffer) {
        EXPECT_TRUE(parameter.name.ends_with("pos_embed"));
        continue;
      }
      std::vector<Tensor> parts;
      for (const std::string& name : names.theirs_of(parameter.name)) {
        parts.push_back(expected.get("grad." + name));
      }
      test::expect_gradient(autograd::grad(parameter.value), names.join(parameter.name, parts), 1e-3, parameter.name);
    }
  }
}

TEST_P(MaeVariant, SavesAndLoadsToTheSameBits) {
  const test::TemporaryFolder temporary;
  save_model(model, temporary / "saved");
  const io::Safetensors before = io::Safetensors::open(folder / "model.safetensors");
  const io::Safetensors after = io::Safetensors::open(temporary / "saved/model.safetensors");
  EXPECT_EQ(before.names().size(), after.names().size());
  nlohmann::json saved = io::read_json(temporary / "saved/config.json");
  EXPECT_EQ(saved["vitrail"]["architecture"], model.architecture);  // which transformers' layout does not say
  saved.erase("vitrail");
  const nlohmann::json original = io::read_json(folder / "config.json");
  for (const auto& [key, value] : saved.items()) {
    EXPECT_EQ(value, original.value(key, nlohmann::json())) << key;
  }
  const Model again = open_masked_autoencoder((temporary / "saved").string());
  expect_same_parameters(again, model);
}

INSTANTIATE_TEST_SUITE_P(Mae, MaeVariant, testing::Values("hf_mae", "hf_mae_pixels"),
                         [](const auto& info) { return info.param; });

Model small(const MaeOptions& options = {}, const char* name = "vit_tiny_patch16_224") {
  CreateOptions create;
  create.model_kwargs = R"({"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3})";
  MaeOptions all = options;
  all.decoder_dim = options.decoder_dim.value_or(16);
  all.decoder_depth = options.decoder_depth.value_or(1);
  all.decoder_heads = options.decoder_heads.value_or(2);
  return open_masked_autoencoder(name, create, all);
}

TEST(MaskedAutoencoder, StartsAsTheReference) {
  const Model model = small();
  const nn::ParameterStore& parameters = model.net->parameters;
  expect_close(parameters.at("pos_embed").value, nn::sincos_positions({4, 4}, 24, 1), 0);
  expect_close(parameters.at("decoder_pos_embed").value, nn::sincos_positions({4, 4}, 16, 1), 0);
  EXPECT_TRUE(parameters.at("pos_embed").buffer);
  const auto largest = [&](const char* name) {
    float most = 0;
    for (const float value : parameters.at(name).value.values()) {
      most = std::max(most, std::abs(value));
    }
    return most;
  };
  EXPECT_NEAR(largest("blocks.0.attn.qkv.weight"), std::sqrt(6.0 / (72 + 24)), 0.01);  // Glorot's bound
  EXPECT_NEAR(largest("patch_embed.proj.weight"), std::sqrt(6.0 / (24 + 192)), 0.01);
  EXPECT_EQ(largest("decoder_pred.bias"), 0);
  EXPECT_GT(largest("mask_token"), 0);
  EXPECT_LT(largest("mask_token"), 0.1);
}

TEST(MaskedAutoencoder, HidesTheShareThatItIsTold) {
  const Model model = small({.mask_ratio = 0.6});
  const MaskedAutoencoder& mae = *masked_autoencoder(model);
  RandomStream random(1);
  const Masking masking = mae.random_masking(3, random);
  EXPECT_EQ(masking.visible, 6);  // ⌊16 · 0.4⌋
  EXPECT_EQ(masking.kept.shape(), (Shape{3, 6}));
  std::vector<std::int64_t> all;
  for (const Tensor& part : {masking.kept, masking.hidden}) {
    all.insert(all.end(), part.data<std::int64_t>(), part.data<std::int64_t>() + part.numel());
  }
  std::ranges::sort(all);
  for (std::int64_t i = 0; i < 48; ++i) {
    EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
  }
}

// Of one image with two maskings, what differs is what was hidden.
TEST(MaskedAutoencoder, ReconstructsOnlyWhatItDoesNotSee) {
  for (const bool norm_pix_loss : {false, true}) {
    const Model model = small({.norm_pix_loss = norm_pix_loss});
    const MaskedAutoencoder& mae = *masked_autoencoder(model);
    const Tensor x = test::random_tensor({2, 3, 32, 32});
    RandomStream random(1);
    const Masking masking = mae.random_masking(2, random);
    nn::Pass pass;
    const Tensor reconstruction = mae.reconstruct(x, masking, pass);
    const Tensor seen = mae.masked(x, masking, 7);
    ASSERT_EQ(reconstruction.shape(), x.shape());
    std::int64_t hidden = 0;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const float original = x.data<float>()[i];
      if (seen.data<float>()[i] == 7) {
        ++hidden;
        EXPECT_NE(reconstruction.data<float>()[i], original);
      } else {
        EXPECT_EQ(reconstruction.data<float>()[i], original);
        EXPECT_EQ(seen.data<float>()[i], original);
      }
    }
    EXPECT_EQ(hidden, x.numel() * 3 / 4);
  }
}

// The encoder's blocks see the class token and the visible patches, the decoder's all of them.
TEST(MaskedAutoencoder, GivesARecorderItsEncoderAndItsDecoder) {
  const Model model = small({.decoder_depth = 2});
  const MaskedAutoencoder& mae = *masked_autoencoder(model);
  const Tensor x = test::random_tensor({2, 3, 32, 32});
  RandomStream random(1);
  const Masking masking = mae.random_masking(2, random);
  nn::Recorder recorder(true, true);
  nn::Pass pass{.recorder = &recorder};
  const Tensor decoded = mae.decode(mae.encode(x, masking, pass), masking, pass);
  ASSERT_EQ(recorder.features().size(), 4U);
  ASSERT_EQ(recorder.attention().size(), 4U);
  for (const std::string block : {"blocks.0", "blocks.1", "decoder_blocks.0", "decoder_blocks.1"}) {
    const bool encodes = block.starts_with("blocks.");
    EXPECT_EQ(recorder.features().at(block).value.shape(), encodes ? (Shape{2, 5, 24}) : (Shape{2, 17, 16})) << block;
    const Tensor map = recorder.attention().at(block + ".attn").value;
    ASSERT_EQ(map.shape(), encodes ? (Shape{2, 3, 5, 5}) : (Shape{2, 2, 17, 17})) << block;
    expect_close(ops::sum(map, {3}), Tensor::full(map.shape().removed(3), 1), 1e-5);
  }
  expect_close(recorder.features().at("decoder_blocks.1").value, decoded, 0);
  // As an encoder it sees all patches, and nothing is decoded.
  nn::Recorder of_encoder(true, true);
  pass.recorder = &of_encoder;
  model.net->forward(x, pass);
  ASSERT_EQ(of_encoder.features().size(), 2U);
  ASSERT_EQ(of_encoder.attention().size(), 2U);
  EXPECT_EQ(of_encoder.features().at("blocks.1").value.shape(), (Shape{2, 17, 24}));
  EXPECT_EQ(of_encoder.attention().at("blocks.1.attn").value.shape(), (Shape{2, 3, 17, 17}));
}

// What is recorded is the same where blocks are run again in backward.
TEST(MaskedAutoencoder, GivesARecorderTheSameWithCheckpoints) {
  const Model model = small();
  const MaskedAutoencoder& mae = *masked_autoencoder(model);
  const Tensor x = test::random_tensor({2, 3, 32, 32});
  RandomStream random(1);
  const Masking masking = mae.random_masking(2, random);
  nn::Recorder whole(true, true);
  nn::Recorder again(true, true);
  for (nn::Recorder* recorder : {&whole, &again}) {
    nn::Pass pass{.training = true, .checkpoint = recorder == &again, .recorder = recorder};
    autograd::Tape tape;
    tape.backward(mae.loss(x, masking, pass));
  }
  ASSERT_EQ(again.features().size(), 3U);
  for (const std::size_t block : {0, 1, 2}) {  // not to the bit: without a tape linear and GELU are one product
    expect_close(again.features()[block].value, whole.features()[block].value, 1e-5);
    expect_close(again.attention()[block].value, whole.attention()[block].value, 1e-5);
  }
}

TEST(MaskedAutoencoder, CostsLessTheMoreItHides) {
  const Model most = small({.mask_ratio = 0.75});
  const Model half = small({.mask_ratio = 0.5});
  const std::int64_t light = masked_autoencoder(most)->pretraining_flops();
  EXPECT_LT(light, masked_autoencoder(half)->pretraining_flops());
  EXPECT_EQ(most.net->flops(32, 32), half.net->flops(32, 32));
}

// Transformers' layout has no place for the name of the architecture.
TEST(MaskedAutoencoder, IsNamedAfterAModelOfItsWidthWhateverItsPatches) {
  const test::TemporaryFolder folder;
  CreateOptions options;
  options.model_kwargs = R"({"img_size": 16, "patch_size": 4, "depth": 1})";
  const MaeOptions decoder = {.decoder_dim = 16, .decoder_depth = 1, .decoder_heads = 2};
  for (const std::string name : {"vit_tiny_patch16_224", "vit_small_patch16_224"}) {
    save_model(open_masked_autoencoder(name, options, decoder), folder / name);
    EXPECT_EQ(open_masked_autoencoder((folder / name).string()).architecture, name);
    EXPECT_EQ(load_model(folder / name).architecture, name);
  }
}

TEST(MaskedAutoencoder, SaysWhatItCannotBeMadeFrom) {
  const auto refusal = [](const MaeOptions& options, const char* name = "vit_tiny_patch16_224") {
    return error_of([&] { small(options, name); });
  };
  EXPECT_NE(refusal({.mask_ratio = 1.0}).find("mask ratio"), std::string::npos);
  EXPECT_NE(refusal({.mask_ratio = 0.99}).find("leaves 0 of the 16 patches"), std::string::npos);
  EXPECT_NE(refusal({.decoder_heads = 3}).find("3 heads"), std::string::npos);
  EXPECT_NE(refusal({.decoder_dim = 1 << 20, .decoder_depth = 1 << 20}).find("FLOPs"), std::string::npos);
  EXPECT_NE(refusal({.decoder_dim = 18}).find("divisible by 4"), std::string::npos);
  EXPECT_NE(refusal({}, "vit_small_patch14_dinov2").find("layer scales"), std::string::npos);
  EXPECT_NE(refusal({}, "vit_relpos_small_patch16_224").find("no class token"), std::string::npos);
  EXPECT_NE(error_of([] { open_masked_autoencoder(golden_path("models/hf_vit").string()); }).find("'vit_mae'"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              open_masked_autoencoder(golden_path("models/hf_mae").string(), {}, {.decoder_depth = 5});
            }).find("cannot be changed"),
            std::string::npos);
}

}  // namespace
}  // namespace vitrail::models
