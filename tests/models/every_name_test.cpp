// Every architecture of the registry, made small where that keeps its structure: it runs at its own picture size and at
// another, every parameter gets a finite gradient, and what is saved is loaded to the bit.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/family.h"

namespace vitrail::models {
namespace {

using Json = nlohmann::json;

// How a family's architectures are made small, and other pictures that they take.
struct Trial {
  // Arguments over the architecture's own, which it is given.
  std::function<Json(const Json&)> smaller;
  // The side of pictures of another size; 0: it takes only its own.
  std::function<std::int64_t(const Json&)> other_size;
};

// Plain towers: two blocks, eight channels a head.
Json short_tower(const Json& own) {
  return {{"depth", 2}, {"embed_dim", 8 * own.value("num_heads", std::int64_t{12})}};
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

// Their blocks are listed one by one: shorter clips of smaller frames are what there is.
Json short_clip(const Json&) { return {{"img_size", 64}, {"temporal_size", 4}}; }

Json as_it_is(const Json&) { return Json::object(); }

std::int64_t its_own_alone(const Json&) { return 0; }

std::int64_t small_pictures(const Json&) { return 96; }

std::int64_t four_patches(const Json& own) { return 4 * own.value("patch_size", std::int64_t{16}); }

const std::map<std::string, Trial, std::less<>>& trials() {
  static const std::map<std::string, Trial, std::less<>> all = {
      {"vit", {short_tower, four_patches}},
      {"vit_distilled", {short_tower, four_patches}},
      {"vit_relpos", {short_tower, four_patches}},
      {"eva", {short_tower, four_patches}},
      {"beit", {short_tower, four_patches}},
      {"mlp_mixer", {short_mixer, four_patches}},
      {"swin", {short_pyramid, small_pictures}},
      {"swin_v2", {short_pyramid, small_pictures}},
      {"swin_v2_cr", {short_pyramid, small_pictures}},
      {"s2_mlp", {short_shifter, small_pictures}},
      {"cycle_mlp", {short_cycle, small_pictures}},
      {"vit_hybrid", {short_hybrid, small_pictures}},
      {"sagan_resnet", {short_resnet, small_pictures}},
      {"botnet", {as_it_is, [](const Json&) { return std::int64_t{128}; }}},
      {"resnetv2", {short_resnetv2, small_pictures}},
      {"mvit", {short_multiscale, small_pictures}},
      {"mvit_video", {short_clip, its_own_alone}},
      {"resnet", {short_resnet, small_pictures}},
  };
  return all;
}

CreateOptions options_of(const Json& arguments) {
  CreateOptions options;
  options.num_classes = 5;
  options.model_kwargs = arguments.dump();
  return options;
}

Tensor logits_of(const Model& model, bool training) {
  nn::Pass pass{.training = training};
  return model.net->forward(test::random_tensor(input_shape(model).inserted(0, 2), 3), pass);
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
  const Tensor logits = logits_of(model, true);
  tape.backward(logits, test::random_tensor(logits.shape(), 5));
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (!parameter.trainable) {
      continue;
    }
    const Tensor gradient = autograd::grad(parameter.value);
    ASSERT_TRUE(gradient.defined()) << name << ": " << parameter.name;
    for (const float value : gradient.values()) {
      ASSERT_TRUE(std::isfinite(value)) << name << ": " << parameter.name;
    }
  }
}

void try_out(const std::string& name) {
  const ArchitectureEntry& entry = find_architecture(name);
  const auto trial = trials().find(entry.family->name);
  ASSERT_NE(trial, trials().end()) << "how are models of the family " << entry.family->name << " made small?";
  const Json own = default_arguments(entry, "");
  const Json small = trial->second.smaller(own);
  const Model model = create_model(name, options_of(small));
  perturb(*model.net);
  const Tensor logits = logits_of(model, false);
  EXPECT_EQ(logits.size(-1), 5) << name;
  expect_gradients(model, name);

  const test::TemporaryFolder folder;
  save_model(model, folder / "saved");
  const Model again = load_model(folder / "saved");
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    test::expect_close(again.net->parameters.at(parameter.name).value, parameter.value, 0,
                       name + ": " + parameter.name);
  }
  test::expect_close(logits_of(again, false), logits_of(model, false), 0, name);

  if (const std::int64_t other = trial->second.other_size(own); other > 0) {
    Json resized = small;
    resized["img_size"] = other;
    const Model there = create_model(name, options_of(resized));
    EXPECT_EQ(there.pretrained.height, other) << name;
    EXPECT_EQ(logits_of(there, false).size(-1), 5) << name;
  }
}

// All names; without fast kernels one in eight, with sanitizers one in sixteen: every family has tests of its own
// besides.
std::vector<std::string> names() {
#ifdef VITRAIL_FEW_TARGETS
  const std::size_t step = 16;
#else
  const std::size_t step = std::getenv("VITRAIL_TEST_ISA") != nullptr ? 8 : 1;
#endif
  std::vector<std::string> result;
  for (std::size_t i = 0; i < architectures().size(); i += step) {
    result.push_back(architectures()[i].name);
  }
  return result;
}

class EveryName : public testing::TestWithParam<std::string> {};

TEST_P(EveryName, RunsLearnsAndSurvivesItsFile) { try_out(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Registry, EveryName, testing::ValuesIn(names()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace vitrail::models
