// Every architecture of the registry, made small where that keeps its structure: it runs at its own image size, every
// parameter gets a finite gradient, what is saved is loaded to the bit, and for another image size too; there a
// recorder gets its features and attention maps.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/models/trials.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/features.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::models {
namespace {

using Json = nlohmann::json;

// How a family's architectures are made small, and what else they can do.
struct Trial {
  // Arguments over the architecture's own, which it is given.
  std::function<Json(const Json&)> smaller;
  // Arguments over these for images of another size.
  std::function<Json(const Json&)> elsewhere;
  bool moves = true;  // a folder is loaded for another size; else refused: it holds weights that belong to its own
  bool attends = true;
  bool blocks = true;  // whose features are recorded
};

// Plain towers: two blocks, eight channels a head.
Json short_tower(const Json& own) {
  return {{"depth", 2}, {"embed_dim", 8 * own.value("num_heads", std::int64_t{12})}};
}

// One block of windows, which do not divide the grid, and a global one.
Json short_encoder(const Json& own) {
  Json small = short_tower(own);
  small.update({{"img_size", 128}, {"window_size", 3}, {"global_attn_indexes", {1}}});
  if (!own.contains("neck_chans")) {
    small["neck_chans"] = 16;
  }
  return small;
}

Json short_mixer(const Json&) { return {{"num_blocks", 2}, {"embed_dim", 24}}; }

Json short_pyramid(const Json& own) {
  return {{"depths", {1, 1, 2, 1}}, {"embed_dim", 8 * own.at("num_heads").at(0).get<std::int64_t>()}};
}

Json short_shifter(const Json&) { return {{"depth", 2}, {"embed_dim", 24}}; }

Json short_cycle(const Json&) { return {{"layers", {1, 1, 1, 1}}, {"embed_dims", {16, 24, 32, 40}}}; }

Json short_resnet(const Json&) { return {{"layers", {1, 1, 1, 1}}, {"channels", {32, 32, 32, 32}}}; }

// Groups of 32 divide a quarter of these.
Json short_resnetv2(const Json&) { return {{"layers", {1, 1, 1, 1}}, {"channels", {128, 128, 128, 128}}}; }

Json short_hybrid(const Json& own) {
  Json small = short_tower(own);
  if (!own.contains("backbone_layers")) {  // a stem, whose width is the tower's
    return small;
  }
  const std::size_t stages = own.at("backbone_layers").size();
  small["backbone_layers"] = std::vector<std::int64_t>(stages, 1);
  if (stages > 0) {
    small["backbone_channels"] = std::vector<std::int64_t>(stages, 128);
  }
  return small;
}

Json short_multiscale(const Json&) {
  return {{"depths", {1, 1, 1, 1}}, {"embed_dim", {8, 16, 32, 64}}, {"num_heads", {1, 2, 4, 8}}};
}

// Their blocks are listed one by one: only clips are made shorter, and frames smaller.
Json short_clip(const Json&) { return {{"img_size", 64}, {"temporal_size", 4}}; }

Json another_clip(const Json&) { return {{"img_size", 96}, {"temporal_size", 6}}; }

Json short_rows(const Json&) { return {{"hidden_size", 8}, {"num_layers", 2}}; }

Json short_airbench(const Json&) { return {{"widths", {8, 12, 16}}}; }

Json as_it_is(const Json&) { return Json::object(); }

Json small_images(const Json&) { return {{"img_size", 96}}; }

Json half_images(const Json&) { return {{"img_size", 128}}; }

Json four_patches(const Json& own) { return {{"img_size", 4 * own.value("patch_size", std::int64_t{16})}}; }

const std::map<std::string, Trial, std::less<>>& trials() {
  static const std::map<std::string, Trial, std::less<>> all = {
      {"vit", {short_tower, four_patches}},
      {"vit_distilled", {short_tower, four_patches}},
      {"vit_relpos", {short_tower, four_patches}},
      {"eva", {short_tower, four_patches}},
      {"beit", {short_tower, four_patches}},
      {"sam", {short_encoder, four_patches}},
      {"mlp_mixer", {.smaller = short_mixer, .elsewhere = four_patches, .moves = false, .attends = false}},
      {"swin", {short_pyramid, small_images}},
      {"swin_v2", {short_pyramid, small_images}},
      {"swin_v2_cr", {short_pyramid, small_images}},
      {"s2_mlp", {.smaller = short_shifter, .elsewhere = small_images, .attends = false}},
      {"cycle_mlp", {.smaller = short_cycle, .elsewhere = small_images, .attends = false}},
      {"row_network", {.smaller = short_rows, .elsewhere = small_images, .moves = false, .attends = false}},
      {"linear_classifier",
       {.smaller = as_it_is, .elsewhere = small_images, .moves = false, .attends = false, .blocks = false}},
      {"vit_hybrid", {short_hybrid, small_images}},
      {"sagan_resnet", {short_resnet, small_images}},
      {"airbench", {.smaller = short_airbench, .elsewhere = small_images, .moves = false, .attends = false}},
      {"botnet", {.smaller = as_it_is, .elsewhere = half_images, .moves = false}},
      {"resnetv2", {.smaller = short_resnetv2, .elsewhere = small_images, .attends = false}},
      {"mvit", {short_multiscale, small_images}},
      {"mvit_video", {.smaller = short_clip, .elsewhere = another_clip, .moves = false}},
      {"resnet", {.smaller = short_resnet, .elsewhere = small_images, .attends = false}},
  };
  return all;
}

CreateOptions options_of(const Json& arguments) {
  CreateOptions options;
  options.num_classes = 5;
  options.model_kwargs = arguments.dump();
  return options;
}

void expect_finite(const Tensor& x, const std::string& what) {
  for (const float value : x.values()) {
    ASSERT_TRUE(std::isfinite(value)) << what;
  }
}

Tensor logits_of_noise(const Model& model, nn::Pass pass = {}, std::int64_t batch = 2) {
  const Tensor logits = model.net->forward(test::random_tensor(input_shape(model).inserted(0, batch), 3), pass);
  EXPECT_EQ(logits.size(0), batch) << model.architecture;
  EXPECT_EQ(logits.size(-1), 5) << model.architecture;
  expect_finite(logits, model.architecture + ": logits");
  return logits;
}

// Values that show every parameter: as fresh models start, many are zeros, and hide others.
void perturb(const ImageModel& net) {
  for (const nn::Parameter& parameter : net.parameters.all()) {
    if (!parameter.buffer) {
      const float spread = parameter.value.rank() <= 1 ? 0.1F : 0.02F;
      const Tensor noise = test::random_tensor(parameter.value.shape(), hash(parameter.name));
      for (std::int64_t i = 0; i < noise.numel(); ++i) {
        parameter.value.data<float>()[i] += spread * noise.data<float>()[i];
      }
      parameter.value.touch();
    }
  }
}

void expect_gradients(const Model& model, const std::string& name) {
  autograd::Tape tape;
  const Tensor logits = logits_of_noise(model, {.training = true});
  tape.backward(logits, test::random_tensor(logits.shape(), 5));
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (!parameter.trainable) {
      continue;
    }
    const Tensor gradient = autograd::grad(parameter.value);
    ASSERT_TRUE(gradient.defined()) << name << ": " << parameter.name;
    expect_finite(gradient, name + ": gradient of " + parameter.name);
  }
}

bool has_parameters(const Model& model, std::string_view start) {
  return std::ranges::any_of(model.net->parameters.all(),
                             [&](const nn::Parameter& parameter) { return parameter.name.starts_with(start); });
}

void expect_rows_of_one(const Tensor& map, const std::string& what) {
  test::expect_close(ops::sum(map, {3}), Tensor::full(map.shape().removed(3), 1), 1e-4, what);
}

// What a recorder got: features of every block or stage, and maps of attention that fit the grids on which they lie.
void expect_recorded(const Model& model, const nn::Recorder& recorder, bool blocks, bool attends) {
  const std::string& name = model.architecture;
  EXPECT_EQ(!recorder.features().empty(), blocks) << name;
  EXPECT_EQ(!recorder.stem_features().empty(), has_parameters(model, "patch_embed.backbone.stages.") ||
                                                   has_parameters(model, "patch_embed.backbone.layer1."))
      << name;
  for (const nn::Records* features : {&recorder.features(), &recorder.stem_features()}) {
    for (const nn::Recorded& feature : *features) {
      EXPECT_TRUE(has_parameters(model, feature.name + ".")) << name << ": " << feature.name;
      expect_finite(feature.value, name + ": features of " + feature.name);
    }
  }
  EXPECT_EQ(!recorder.attention().empty(), attends) << name;
  EXPECT_EQ(model.net->has_attention(), attends) << name;
  const TokenLayout layout = model.net->token_layout(model.pretrained.height, model.pretrained.width);
  const nn::Size2 grid = {layout.rows, layout.columns};
  for (const auto& [layer, map, lies] : recorder.attention()) {
    const std::string what = name + ": attention of " + layer;
    EXPECT_TRUE(has_parameters(model, layer + ".")) << what;
    const nn::TokenGrid place =
        lies != nullptr ? *lies : nn::TokenGrid{.prefix = layout.prefix, .queries = grid, .keys = grid};
    const auto tokens = [&](const nn::Size2& cells) {
      return place.windowed() ? place.window[0] * place.window[1] : place.prefix + cells[0] * cells[1];
    };
    EXPECT_EQ(map.size(2), tokens(place.queries)) << what;
    EXPECT_EQ(map.size(3), tokens(place.keys)) << what;
    expect_rows_of_one(map, what);
  }
  EXPECT_EQ(!recorder.pool_attention().empty(), has_parameters(model, "attn_pool.")) << name;
  for (const nn::Recorded& map : recorder.pool_attention()) {
    expect_rows_of_one(map.value, name + ": attention of " + map.name);
  }
}

// timm's two halves of a forward pass are the whole, what is in between are the features of the model without its head,
// and another head leaves them as they are.
void expect_halves(const Model& model) {
  const std::string& name = model.architecture;
  const Tensor x = test::random_tensor(input_shape(model).inserted(0, 2), 3);
  nn::Pass pass;
  const Tensor features = model.net->forward_features(x, pass);
  test::expect_close(model.net->forward_head(features, pass), model.net->forward(x, pass), 1e-5, name);
  const Tensor pre_logits = model.net->forward_head(features, pass, true);
  test::expect_close(pre_logits, without_head(model).net->forward(x, pass), 1e-5, name + " without its head");
  Model other = without_head(model);
  reset_classifier(other, 7);
  test::expect_close(other.net->forward_head(other.net->forward_features(x, pass), pass, true), pre_logits, 1e-5,
                     name + " with another head");
  EXPECT_EQ(other.net->forward(x, pass).size(-1), 7) << name;
}

// The saved model at another image size, with its weights where it can take them along.
Model moved(const Model& model, const std::filesystem::path& folder, const Trial& trial, const Json& own) {
  const Json elsewhere = trial.elsewhere(own);
  if (!trial.moves) {
    EXPECT_THROW(load_model(folder, options_of(elsewhere)), Error) << model.architecture;
    Json arguments = trial.smaller(own);
    arguments.update(elsewhere);
    Model there = create_model(model.architecture, options_of(arguments));
    perturb(*there.net);
    return there;
  }
  Model there = load_model(folder, options_of(elsewhere));
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    const Tensor& value = there.net->parameters.at(parameter.name).value;
    if (value.shape() == parameter.value.shape()) {  // not a table of positions
      test::expect_close(value, parameter.value, 0, model.architecture + ": " + parameter.name);
    }
  }
  return there;
}

void try_out(const std::string& name) {
  const ArchitectureEntry& entry = find_architecture(name);
  const auto trial = trials().find(entry.family->name);
  ASSERT_NE(trial, trials().end()) << "how are models of the family " << entry.family->name << " made small?";
  const Json own = default_arguments(entry, "");
  const Model model = create_model(name, options_of(trial->second.smaller(own)));
  perturb(*model.net);
  expect_gradients(model, name);
  const Tensor logits = logits_of_noise(model, {}, 1);
  EXPECT_GE(pixels_left_out(model)[0], 0) << name;  // a training says it

  const test::TemporaryFolder folder;
  save_model(model, folder / "saved");
  const Model again = load_model(folder / "saved");
  expect_same_parameters(again, model);
  test::expect_close(logits_of_noise(again, {}, 1), logits, 0, name);

  const Model there = moved(model, folder / "saved", trial->second, own);  // where images are small, and so is the work
  EXPECT_NE(input_shape(there), input_shape(model)) << name;
  expect_halves(there);
  nn::Recorder recorder(true, true);
  logits_of_noise(there, {.recorder = &recorder}, 1);
  expect_recorded(there, recorder, trial->second.blocks, trial->second.attends);
}

// Whether a name says that images or blocks are large, which stay so when the model is made small.
bool names_large(const std::string& name) {
  const auto says = [&](const char* word) { return name.find(word) != std::string::npos; };
  return says("base") || says("large") || says("huge") || says("gi") || says("so") || says("384") || says("448") ||
         says("512");
}

// All names; without fast kernels one in eight, with sanitizers one in eight of those that are small: every family has
// tests of its own besides.
std::vector<std::string> names() {
#ifdef VITRAIL_FEW_TARGETS
  constexpr bool sanitizes = true;
#else
  constexpr bool sanitizes = false;
#endif
  const std::size_t step = sanitizes || std::getenv("VITRAIL_TEST_ISA") != nullptr ? 8 : 1;
  std::vector<std::string> result;
  std::size_t seen = 0;
  for (const Architecture& architecture : architectures()) {
    if (!(sanitizes && names_large(architecture.name)) && seen++ % step == 0) {
      result.push_back(architecture.name);
    }
  }
  return result;
}

class EveryName : public testing::TestWithParam<std::string> {};

TEST_P(EveryName, RunsLearnsAndSurvivesItsFile) { try_out(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Registry, EveryName, testing::ValuesIn(names()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace vitrail::models
