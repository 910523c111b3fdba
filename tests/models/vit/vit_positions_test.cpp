// Every positional code in a Vision Transformer, by the name that pos_embed takes.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "tests/models/trials.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/models/base/owner.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/nn/positions/position.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/allocator.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using test::random_tensor;
using Json = nlohmann::json;

const std::vector<std::string> absolute_codes = {"learn",        "sincos1d", "sincos2d",
                                                 "sincos2d_gsd", "fourier",  "fourier_learn"};
const std::vector<std::string> relative_codes = {"rel_bias", "rel_mlp"};
const std::vector<std::string> free_codes = {"alibi1d", "alibi2d", "rope1d", "rope2d", "rope2d_mixed"};

std::vector<std::string> all_codes() {
  std::vector<std::string> codes = {"none"};
  for (const auto& group : {absolute_codes, relative_codes, free_codes}) {
    codes.insert(codes.end(), group.begin(), group.end());
  }
  return codes;
}

bool is_fixed(const std::string& code) { return code.starts_with("sincos") || code == "fourier"; }

Json arguments_of(const std::string& code) {
  Json arguments = {{"img_size", 16},   {"patch_size", 4},   {"embed_dim", 16}, {"depth", 2},       {"num_heads", 2},
                    {"num_classes", 3}, {"pos_embed", code}, {"reg_tokens", 2}, {"weight_init", ""}};
  if (code == "sincos2d_gsd") {
    arguments["gsd"] = 2.5;
  }
  return arguments;
}

// Arguments over those that the folder of such a model has, for images of another size: a fixed code is asked for
// again.
Json at_size(const std::string& code, const nn::Size2& size) {
  Json arguments = {{"img_size", size}};
  if (is_fixed(code)) {
    arguments["pos_embed"] = code;
    if (code == "sincos2d_gsd") {
      arguments["gsd"] = 2.5;
    }
  }
  return arguments;
}

Model make(const Json& arguments, const std::string& architecture = "vit_tiny_patch16_224") {
  CreateOptions options;
  options.model_kwargs = arguments.dump();
  options.seed = 3;
  Model model = create_model(architecture, options);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {  // far from where they begin
    if (!parameter.buffer) {
      const Tensor noise = random_tensor(parameter.value.shape(), hash(parameter.name));
      for (std::int64_t i = 0; i < noise.numel(); ++i) {
        parameter.value.data<float>()[i] += 0.2F * noise.data<float>()[i];
      }
      parameter.value.touch();
    }
  }
  return model;
}

Tensor logits_of(const Model& model, const Tensor& x) {
  nn::Pass pass;
  return model.net->forward(x, pass);
}

class Positions : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Positions, testing::ValuesIn(all_codes()), [](const auto& info) { return info.param; });

TEST_P(Positions, AreSavedAndLoaded) {
  const Model model = make(arguments_of(GetParam()));
  const Tensor x = random_tensor({2, 3, 16, 16});
  const test::TemporaryFolder folder;
  save_model(model, folder / "model");
  const Model again = load_model(folder / "model");
  expect_close(logits_of(again, x), logits_of(model, x), 1e-6);
  // A fixed table is saved as timm has positions: as a learned one.
  const Json saved = io::read_json(folder / "model" / "config.json")["model_args"];
  EXPECT_EQ(saved.contains("pos_embed"), !is_fixed(GetParam())) << saved;
  EXPECT_FALSE(saved.contains("gsd"));
  EXPECT_EQ(model.net->parameters.find("pos_embed") != nullptr, is_fixed(GetParam()) || GetParam() == "learn");
}

// EVA-02 has rotary positions of its own, BEiT relative ones: the code takes their place.
TEST_P(Positions, TakeThePlaceOfATowersOwn) {
  const Tensor x = random_tensor({2, 3, 16, 16});
  for (const std::string architecture :
       {"eva02_tiny_patch14_224", "vit_small_patch16_rope_224", "beit_base_patch16_224"}) {
    Json arguments = arguments_of(GetParam());
    arguments.erase("reg_tokens");
    arguments.erase("weight_init");
    const Model model = make(arguments, architecture);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const bool rotates = parameter.name.find("rope") != std::string::npos;
      const bool biases = parameter.name.find("rel") != std::string::npos;
      EXPECT_TRUE(!rotates || GetParam() == "rope2d_mixed") << architecture << ": " << parameter.name;
      EXPECT_TRUE(!biases || GetParam().starts_with("rel_")) << architecture << ": " << parameter.name;
    }
    // Where patches change places, the answer changes if and only if there is a code.
    const Tensor logits = logits_of(model, x);
    const Tensor turned = logits_of(model, ops::concat({ops::narrow(x, 3, 8, 8), ops::narrow(x, 3, 0, 8)}, 3));
    double difference = 0;
    for (std::int64_t i = 0; i < logits.numel(); ++i) {
      difference =
          std::max(difference, std::abs(static_cast<double>(logits.data<float>()[i] - turned.data<float>()[i])));
    }
    EXPECT_EQ(difference < 1e-4, GetParam() == "none") << architecture << ": " << difference;

    const test::TemporaryFolder folder;
    save_model(model, folder / "model");
    expect_close(logits_of(load_model(folder / "model"), x), logits, 1e-6, architecture);
    const Json config = io::read_json(folder / "model" / "config.json");
    EXPECT_FALSE(config["model_args"].contains("pos_embed")) << "which timm does not take";
    EXPECT_EQ(config["vitrail"]["pos_embed"], GetParam());
  }
}

TEST_P(Positions, AreTrainedWhereTheyAreLearned) {
  const Model model = make(arguments_of(GetParam()));
  const Tensor x = random_tensor({2, 3, 16, 16});
  std::map<std::string, Tensor> gradients;
  for (const bool checkpoint : {false, true}) {
    model.net->parameters.zero_grad();
    nn::Pass pass{.checkpoint = checkpoint};  // in evaluation: rel_mlp drops hidden units
    autograd::Tape tape;
    const Tensor logits = model.net->forward(x, pass);
    tape.backward(logits, random_tensor(logits.shape(), 5));
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      if (parameter.buffer) {
        continue;
      }
      const Tensor gradient = autograd::grad(parameter.value);
      ASSERT_TRUE(gradient.defined()) << parameter.name;
      if (checkpoint) {
        expect_close(gradient, gradients[parameter.name], 1e-5, parameter.name);
      }
      gradients[parameter.name] = gradient.clone();
    }
  }
}

TEST_P(Positions, WorkInBf16) {
  const Model model = make(arguments_of(GetParam()));
  const Tensor x = random_tensor({2, 3, 16, 16});
  nn::Pass pass{.dtype = DType::bf16};
  expect_close(model.net->forward(x, pass), logits_of(model, x), 3e-2);
}

// What they are for: without them, patches in another order are the same to the class token.
TEST_P(Positions, TellWhereAPatchLies) {
  const Model model = make(arguments_of(GetParam()));
  const Tensor x = random_tensor({1, 3, 16, 16});
  const Tensor moved = ops::roll(ops::roll(x, 2, 4), 3, 8);  // by whole patches
  const double change = test::relative_error(logits_of(model, moved), logits_of(model, x));
  if (GetParam() == "none") {
    EXPECT_LT(change, 1e-5);
  } else {
    EXPECT_GT(change, 1e-4);
  }
}

TEST_P(Positions, ComeAlongToAnotherImageSize) {
  const Model model = make(arguments_of(GetParam()));
  const test::TemporaryFolder folder;
  save_model(model, folder / "model");
  CreateOptions larger;
  const Json changed = at_size(GetParam(), {24, 20});
  larger.model_kwargs = changed.dump();
  const Model there = load_model(folder / "model", larger);
  EXPECT_EQ(logits_of(there, random_tensor({1, 3, 24, 20})).shape(), (Shape{1, 3}));
  if (is_fixed(GetParam())) {
    Json fresh = arguments_of(GetParam());
    fresh.update(changed);
    expect_close(there.net->parameters.at("pos_embed").value, make(fresh).net->parameters.at("pos_embed").value, 0);
  }
}

TEST_P(Positions, TakeAnySizeWhereTheyAreNotTables) {
  Json arguments = arguments_of(GetParam());
  arguments["dynamic_img_size"] = true;
  if (std::ranges::find(relative_codes, GetParam()) != relative_codes.end()) {
    EXPECT_THROW(make(arguments), Error);
    return;
  }
  const Model model = make(arguments);
  EXPECT_EQ(logits_of(model, random_tensor({1, 3, 8, 28})).shape(), (Shape{1, 3}));
  // At the model's own size nothing changes.
  arguments.erase("dynamic_img_size");
  const Tensor x = random_tensor({1, 3, 16, 16});
  expect_close(logits_of(model, x), logits_of(make(arguments), x), 0);
}

TEST_P(Positions, AreNamedInTheModelsAnswers) {
  const Model model = make(arguments_of(GetParam()));
  const auto& net = *body_of<VisionTransformer>(*model.net);
  nn::Pass pass;
  const Tensor added = net.token_positions({4, 4}, pass);
  const bool absolute = std::ranges::find(absolute_codes, GetParam()) != absolute_codes.end();
  EXPECT_EQ(added.defined(), absolute);
  if (absolute) {
    EXPECT_EQ(added.shape(), (Shape{1, 3 + 16, 16}));
    if (GetParam() != "learn") {  // tokens in front have no place
      for (const float value : added.narrow(1, 0, 3).contiguous().values()) {
        EXPECT_EQ(value, 0);
      }
    }
  }
  const std::vector<ScorePositions> scores = net.score_positions({4, 4}, pass);
  ASSERT_EQ(scores.size(), 2U);
  const bool biased = GetParam().starts_with("rel") || GetParam().starts_with("alibi");
  for (const ScorePositions& block : scores) {
    EXPECT_EQ(block.bias.defined(), biased);
    EXPECT_EQ(block.rotation.defined(), GetParam().starts_with("rope"));
    if (biased) {
      EXPECT_EQ(block.bias.shape(), (Shape{1, 2, 19, 19}));
    }
  }
  for (const char* name : {"rope.freqs", "pos_embed.frequencies", "pos_embed"}) {
    EXPECT_TRUE(net.no_weight_decay(name));
  }
}

// The other models that take every code, on a grid of 4 x 6: the distilled DeiT, whose second token lies nowhere in the
// image either, and a hybrid, which cuts what its convolutions give into patches.
class PositionsElsewhere : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  bool hybrid() const { return std::get<0>(GetParam()) == "hybrid"; }
  const std::string& code() const { return std::get<1>(GetParam()); }
  std::int64_t prefix() const { return hybrid() ? 1 : 2; }
  // An image of so many patches: the hybrid's stem makes a quarter of its sides.
  nn::Size2 size(std::int64_t rows, std::int64_t columns) const {
    const std::int64_t patch = hybrid() ? 8 : 4;
    return {rows * patch, columns * patch};
  }
  Tensor images(std::int64_t rows, std::int64_t columns) const {
    return random_tensor({2, 3, size(rows, columns)[0], size(rows, columns)[1]});
  }
  Model model() const {
    Json arguments = arguments_of(code());
    arguments.erase("reg_tokens");
    arguments["img_size"] = size(4, 6);
    arguments["patch_size"] = hybrid() ? 2 : 4;
    return make(arguments, hybrid() ? "vit_tiny_r_s16_p8_224" : "deit_tiny_distilled_patch16_224");
  }
};
INSTANTIATE_TEST_SUITE_P(All, PositionsElsewhere,
                         testing::Combine(testing::Values("distilled", "hybrid"), testing::ValuesIn(all_codes())),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

TEST_P(PositionsElsewhere, AreSavedAndLoadedToTheBit) {
  const Model before = model();
  const test::TemporaryFolder folder;
  save_model(before, folder / "model");
  const Model after = load_model(folder / "model");
  expect_same_parameters(after, before);
  expect_close(logits_of(after, images(4, 6)), logits_of(before, images(4, 6)), 0);
}

TEST_P(PositionsElsewhere, AreTrained) {
  const Model trained = model();
  nn::Pass pass;
  autograd::Tape tape;
  const Tensor logits = trained.net->forward(images(4, 6), pass);
  ASSERT_EQ(logits.shape(), (Shape{2, 3}));
  tape.backward(logits, random_tensor(logits.shape(), 5));
  for (const nn::Parameter& parameter : trained.net->parameters.all()) {
    if (parameter.buffer) {
      continue;
    }
    const Tensor gradient = autograd::grad(parameter.value);
    ASSERT_TRUE(gradient.defined()) << parameter.name;
    float largest = 0;
    for (const float value : gradient.values()) {
      ASSERT_TRUE(std::isfinite(value)) << parameter.name;
      largest = std::max(largest, std::abs(value));
    }
    // The last block is asked for the tokens in front alone, of which rel_mlp says nothing.
    const bool of_positions = !parameter.name.starts_with("blocks.1.") &&
                              (parameter.name.find("pos") != std::string::npos || parameter.name.starts_with("rope"));
    EXPECT_TRUE(!of_positions || largest > 0) << parameter.name;
  }
}

TEST_P(PositionsElsewhere, ComeAlongToAnotherImageSize) {
  const Model before = model();
  const test::TemporaryFolder folder;
  save_model(before, folder / "model");
  CreateOptions turned;
  turned.model_kwargs = at_size(code(), size(6, 4)).dump();
  const Model after = load_model(folder / "model", turned);
  EXPECT_EQ(logits_of(after, images(6, 4)).shape(), (Shape{2, 3}));
  if (code() == "rel_bias") {
    const std::string table = "blocks.1.attn.rel_pos.relative_position_bias_table";
    expect_close(after.net->parameters.at(table).value,
                 nn::resample_bias_table(before.net->parameters.at(table).value, {4, 6}, {6, 4}), 0);
  }
}

TEST_P(PositionsElsewhere, HaveNoPlaceForTokensInFront) {
  const Model named = model();
  const auto& net = *body_of<VisionTransformer>(*named.net);
  nn::Pass pass;
  const auto expect_zeros = [](const Tensor& x) {
    for (const float value : x.contiguous().values()) {
      EXPECT_EQ(value, 0);
    }
  };
  const Tensor added = net.token_positions({4, 6}, pass);
  ASSERT_EQ(added.defined(), std::ranges::find(absolute_codes, code()) != absolute_codes.end());
  if (added.defined()) {
    ASSERT_EQ(added.shape(), (Shape{1, prefix() + 24, 16}));
    if (code() != "learn") {
      expect_zeros(added.narrow(1, 0, prefix()));
    }
  }
  for (const ScorePositions& block : net.score_positions({4, 6}, pass)) {
    ASSERT_EQ(block.bias.defined(), code().starts_with("rel") || code().starts_with("alibi"));
    EXPECT_EQ(block.rotation.defined(), code().starts_with("rope"));
    if (block.bias.defined()) {
      ASSERT_EQ(block.bias.shape(), (Shape{1, 2, prefix() + 24, prefix() + 24}));
      if (code() != "rel_bias") {
        expect_zeros(block.bias.narrow(2, 0, prefix()));
        expect_zeros(block.bias.narrow(3, 0, prefix()));
      }
    }
  }
}

TEST(PositionArguments, AreNamedWhereTheyAreWrong) {
  const auto message = [](Json changed) {
    Json arguments = arguments_of("learn");
    arguments.update(changed);
    try {
      make(arguments);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message({{"pos_embed", "rope3d"}}).find("'pos_embed'"), std::string::npos);
  EXPECT_NE(message({{"gsd", 2}}).find("'gsd' has no meaning with pos_embed 'learn'"), std::string::npos);
  EXPECT_NE(message({{"pos_embed", "rope2d"}, {"fourier_sigma", 2}}).find("'fourier_sigma'"), std::string::npos);
  EXPECT_NE(message({{"pos_embed", "sincos2d_gsd"}, {"gsd", -1}}).find("'gsd'"), std::string::npos);
  EXPECT_NE(message({{"pos_embed", "rope2d"}, {"embed_dim", 12}}).find("divisible by 4, not 6"), std::string::npos);
  EXPECT_NE(message({{"pos_embed", "sincos2d"}, {"embed_dim", 18}, {"num_heads", 1}}).find("divisible by 4, not 18"),
            std::string::npos);
  EXPECT_EQ(message({{"pos_embed", "sincos2d_gsd"}, {"gsd", 0.3}}), "");
}

// A pixel a token: 1,024 of them. The scores of one layer would take 32 MB; attention stores none of them.
TEST(OnePixelPatches, TrainInLittleMemory) {
  CreateOptions options;
  options.model_kwargs = R"({"img_size": 32, "patch_size": 1, "embed_dim": 16, "depth": 2, "num_heads": 4,
                             "num_classes": 2, "class_token": false, "global_pool": "avg", "pos_embed": "rope2d"})";
  const Model model = create_model("vit_tiny_patch16_224", options);
  const Tensor x = random_tensor({2, 3, 32, 32});
  for (std::int64_t i = x.numel() / 2; i < x.numel(); ++i) {
    x.data<float>()[i] += 1;  // the second image is brighter
  }
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{0, 1}, {2});
  Allocator& allocator = Allocator::instance();
  allocator.reset_peak();
  const std::size_t before = allocator.statistics().in_use;
  std::vector<float> losses;
  for (int step = 0; step < 8; ++step) {
    model.net->parameters.zero_grad();
    nn::Pass pass{.training = true};
    autograd::Tape tape;
    const Tensor loss = ops::cross_entropy(model.net->forward(x, pass), labels);
    losses.push_back(loss.item());
    tape.backward(loss);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const Tensor gradient = autograd::grad(parameter.value);
      for (std::int64_t i = 0; i < gradient.numel(); ++i) {
        parameter.value.data<float>()[i] -= 0.1F * gradient.data<float>()[i];
      }
      parameter.value.touch();
    }
  }
  EXPECT_LT(losses.back(), 0.7F * losses.front());
  EXPECT_LT(allocator.statistics().peak - before, std::size_t{12} << 20U);
}

}  // namespace
}  // namespace vitrail::models
