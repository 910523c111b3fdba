#include "vitrail/models/detection/set2set.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/random.h"

namespace vitrail::models {
namespace {

using test::error_of;
using test::expect_close;
using ::testing::HasSubstr;

Tensor random_tensor(const Shape& shape, std::string_view what) {
  Tensor x = Tensor::empty(shape);
  const Philox numbers(7, hash(what));
  std::uint64_t i = 0;
  for (float& number : x.span<float>()) {
    number = numbers.normal(i++);
  }
  return x;
}

// A network with every parameter perturbed, since zeros and ones hide errors.
SetModel perturbed(std::int64_t input_size = 2) {
  SetModel model = create_set_model(
      "set2set", {.input_size = input_size, .output_size = 3, .labels = {"a", "b"}, .num_queries = 5},
      R"({"d_model": 16, "encoder_ffn_dim": 20, "decoder_ffn_dim": 24, "decoder_attention_heads": 2})");
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    const Tensor noise = random_tensor(parameter.value.shape(), parameter.name);
    model.net->parameters.set(parameter, parameter.value + noise * 0.3F);
  }
  return model;
}

Tensor permuted(const Tensor& x, const std::vector<std::int64_t>& order) {
  return ops::index_select(x, 1, Tensor::from(order, {std::ssize(order)}));
}

// The values, the gradient of the elements, and those of the parameters, of Σ logits · a + Σ values · b.
struct Gradients {
  SetOutputs said;
  Tensor of_x;
  std::vector<Tensor> of_parameters;
};
Gradients gradients_of(const SetModel& model, const Tensor& x, const Tensor& mask) {
  Gradients result;
  Tensor leaf = x.clone();
  autograd::require_grad(leaf);
  nn::Pass pass;
  autograd::Tape tape;
  result.said = model.net->forward_layers({leaf, mask}, pass);
  tape.backward(ops::sum(result.said.logits * random_tensor(result.said.logits.shape(), "to logits")) +
                ops::sum(result.said.values * random_tensor(result.said.values.shape(), "to values")));
  result.of_x = autograd::grad(leaf);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    result.of_parameters.push_back(autograd::grad(parameter.value).clone());
    autograd::zero_grad(parameter.value);
  }
  return result;
}

float largest(const Tensor& x) {
  float most = 0;
  for (const float value : x.values()) {
    most = std::max(most, std::abs(value));
  }
  return most;
}

TEST(Set2Set, SaysTheSameOfElementsInAnyOrder) {
  const SetModel model = perturbed();
  const Tensor x = random_tensor({3, 9, 2}, "elements");
  Tensor mask = Tensor::zeros({3, 9}, DType::boolean);
  for (std::int64_t b = 0; b < 3; ++b) {
    std::fill_n(mask.data<bool>() + 9 * b, 9 - 2 * b, true);
  }
  const Gradients plain = gradients_of(model, x, mask);
  float of_all = 0;
  for (const Tensor& gradient : plain.of_parameters) {
    of_all = std::max(of_all, largest(gradient));
  }
  std::vector<std::int64_t> order(9);
  std::iota(order.begin(), order.end(), 0);
  for (int turn = 0; turn < 5; ++turn) {
    std::ranges::rotate(order, order.begin() + 2);
    std::swap(order[0], order[4]);
    Tensor other_mask = Tensor::zeros({3, 9}, DType::boolean);
    for (std::int64_t i = 0; i < 27; ++i) {
      other_mask.data<bool>()[i] = mask.data<bool>()[i / 9 * 9 + order[static_cast<std::size_t>(i % 9)]];
    }
    const Gradients other = gradients_of(model, permuted(x, order), other_mask);
    expect_close(other.said.logits, plain.said.logits, 1e-5);
    expect_close(other.said.values, plain.said.values, 1e-5);
    test::expect_gradient(other.of_x, permuted(plain.of_x, order), 1e-5, "elements");
    // Some vanish but for rounding: of the keys' biases, and of the queries and keys of the decoder's first layer, in
    // which all values are alike.
    for (std::size_t i = 0; i < plain.of_parameters.size(); ++i) {
      const float own = largest(plain.of_parameters[i]);
      EXPECT_LE(largest(other.of_parameters[i] - plain.of_parameters[i]), 1e-5F * own + 1e-6F * of_all)
          << model.net->parameters.all()[i].name;
    }
  }
}

TEST(Set2Set, SeesNothingOfPadding) {
  const SetModel model = perturbed();
  const Tensor x = random_tensor({1, 4, 2}, "elements");
  Tensor padded = Tensor::full({1, 7, 2}, 1e3F);
  std::ranges::copy(x.span<float>(), padded.data<float>());
  Tensor mask = Tensor::zeros({1, 7}, DType::boolean);
  std::fill_n(mask.data<bool>(), 4, true);
  nn::Pass pass;
  const SetOutputs alone = model.net->forward({x, {}}, pass);
  const SetOutputs among = model.net->forward({padded, mask}, pass);
  expect_close(among.logits, alone.logits, 1e-5);
  expect_close(among.values, alone.values, 1e-5);
}

// tools/golden/set2set.py: facebookresearch/detr's transformer without positions, whose encoder is
// torch.nn.TransformerEncoder.
TEST(Set2Set, HasTheOriginalsValuesAndGradients) {
  const std::filesystem::path folder = test::golden_path("models/detection/set2set");
  const SetModel model = load_set_model(folder);
  const io::Safetensors golden = io::Safetensors::open(folder / "expected.safetensors");
  nn::Pass pass;
  Tensor x = golden.get("x").clone();
  autograd::require_grad(x);
  autograd::Tape tape;
  const SetOutputs said = model.net->forward_layers({x, golden.get("mask")}, pass);
  expect_close(said.logits, golden.get("logits"), 2e-5);
  expect_close(said.values, golden.get("values"), 2e-5);
  tape.backward(ops::sum(said.logits * golden.get("to_logits")) + ops::sum(said.values * golden.get("to_values")));
  test::expect_gradient(autograd::grad(x), golden.get("grad.x"), 1e-4, "x");
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    test::expect_gradient(autograd::grad(parameter.value), golden.get("grad." + parameter.name), 1e-4, parameter.name);
  }
  EXPECT_EQ(model.labels, (std::vector<std::string>{"circle", "square", "bird"}));
}

TEST(Set2Set, IsSavedToTheSameBits) {
  const SetModel model = perturbed();
  const test::TemporaryFolder folder;
  write_set_model(model, folder.path());
  EXPECT_TRUE(is_set_model_folder(folder.path()));
  const SetModel again = load_set_model(folder.path());
  EXPECT_EQ(again.labels, model.labels);
  const Tensor x = random_tensor({2, 3, 2}, "elements");
  nn::Pass pass;
  expect_close(again.net->forward({x, {}}, pass).values, model.net->forward({x, {}}, pass).values, 0);
  EXPECT_EQ(again.net->config().encoder_ffn_dim, 20);
}

TEST(Set2Set, SaysWhatDoesNotFit) {
  const SetShape shape{.input_size = 1, .output_size = 1, .labels = {"1"}};
  EXPECT_THAT(error_of([&] { create_set_model("set3set", shape); }), HasSubstr("there is no network 'set3set'"));
  EXPECT_THAT(error_of([&] { create_set_model("set2set", shape, R"({"d_modell": 3})"); }), HasSubstr("d_model"));
  EXPECT_THAT(error_of([&] { create_set_model("set2set", shape, R"({"input_size": 3})"); }),
              HasSubstr("'input_size' follows from the data"));
  const SetModel model = perturbed();
  nn::Pass pass;
  EXPECT_THAT(error_of([&] {
                model.net->forward({Tensor::zeros({2, 3, 5}), {}}, pass);
              }),
              HasSubstr("sets are [B, N, 2]"));
  EXPECT_THAT(error_of([&] {
                model.net->forward({Tensor::zeros({2, 3, 2}), Tensor::zeros({2, 4}, DType::boolean)}, pass);
              }),
              HasSubstr("the mask is"));
  const test::TemporaryFolder folder;
  io::write_atomically(folder / "config.json", R"({"model_type": "detr"})");
  EXPECT_THAT(error_of([&] { load_set_model(folder.path()); }), HasSubstr("is no set2set"));
}

}  // namespace
}  // namespace vitrail::models
