#include "vitrail/train/detection/criterion.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/detection/detr_folder.h"

namespace vitrail::train {
namespace {

using test::error_of;
using test::expect_close;
using ::testing::HasSubstr;

std::vector<std::int64_t> whole_numbers(const Tensor& x) {
  const auto all = x.span<std::int64_t>();
  return {all.begin(), all.end()};
}

// The objects of a fixture of tools/golden/detr.py, of all images.
std::vector<ObjectSet> objects_of(const io::Safetensors& golden, const std::string& labels, const std::string& boxes) {
  std::vector<ObjectSet> result;
  for (int b = 0; golden.contains(fmt::format("{}.{}", labels, b)); ++b) {
    ObjectSet& set = result.emplace_back();
    set.labels = whole_numbers(golden.get(fmt::format("{}.{}", labels, b)));
    const std::vector<float> numbers = golden.get(fmt::format("{}.{}", boxes, b)).values();
    for (std::size_t i = 0; i < numbers.size(); i += 4) {
      set.boxes.push_back(data::centred_box(numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]));
    }
  }
  return result;
}

TEST(Assignment, IsScipys) {
  const io::Safetensors golden = test::golden("sets/assignment.safetensors");
  int cases = 0;
  for (const std::string& name : golden.names()) {
    if (!name.ends_with(".costs")) {
      continue;
    }
    const std::string key = name.substr(0, name.find('.'));
    const Tensor costs = golden.get(name);
    const Assignment found = assign(costs.span<float>(), costs.size(0), costs.size(1));
    EXPECT_EQ(found.rows, whole_numbers(golden.get(key + ".rows"))) << key;
    EXPECT_EQ(found.columns, whole_numbers(golden.get(key + ".columns"))) << key;
    ++cases;
  }
  EXPECT_EQ(cases, 19);
}

TEST(Assignment, TakesNothingAndRefusesWhatDoesNotFit) {
  EXPECT_TRUE(assign({}, 0, 5).rows.empty());
  EXPECT_TRUE(assign({}, 5, 0).rows.empty());
  const std::vector<float> costs(5);
  EXPECT_THAT(error_of([&] { assign(costs, 2, 3); }),
              HasSubstr("2 rows to 3 columns needs as many costs as pairs, not 5"));
}

// Predictions of random numbers, for images of some objects, of none, and of more than there are queries.
class CriterionVariant : public testing::TestWithParam<const char*> {};

TEST_P(CriterionVariant, HasTheOriginalsMatchesLossesAndGradients) {
  const io::Safetensors golden = test::golden("sets/criterion.safetensors");
  const auto of = [&](const std::string& key) { return golden.get(std::string(GetParam()) + "." + key); };
  models::SetPredictions predictions{of("logits").clone(), of("boxes").clone()};
  autograd::require_grad(predictions.logits);
  autograd::require_grad(predictions.boxes);
  const std::vector<ObjectSet> targets =
      objects_of(golden, std::string(GetParam()) + ".labels", std::string(GetParam()) + ".target_boxes");
  const std::vector<Assignment> matches = match(predictions, targets);
  for (std::size_t b = 0; b < targets.size(); ++b) {
    EXPECT_EQ(matches[b].rows, whole_numbers(of(fmt::format("queries.{}", b)))) << b;
    EXPECT_EQ(matches[b].columns, whole_numbers(of(fmt::format("objects.{}", b)))) << b;
  }
  autograd::Tape tape;
  const SetLoss found = set_loss(predictions, targets);
  for (const auto& [name, value] :
       {std::pair("loss_ce", found.loss_ce), {"loss_bbox", found.loss_bbox}, {"loss_giou", found.loss_giou}}) {
    EXPECT_NEAR(value.item(), of(name).item(), 1e-5) << name;
  }
  EXPECT_NEAR(found.class_error, of("class_error").item(), 1e-4);
  EXPECT_NEAR(found.cardinality_error, of("cardinality_error").item(), 1e-5);
  tape.backward(found.loss);
  test::expect_gradient(autograd::grad(predictions.logits), of("grad.logits"), 1e-5, "logits");
  const Tensor of_boxes = autograd::grad(predictions.boxes);
  test::expect_gradient(of_boxes.defined() ? of_boxes : Tensor::zeros(predictions.boxes.shape()), of("grad.boxes"),
                        1e-5, "boxes");
}

INSTANTIATE_TEST_SUITE_P(All, CriterionVariant, testing::Values("usual", "empty", "some_empty", "many"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

// A loss for each layer of a detector, as the original's.
class AuxiliaryLoss : public testing::TestWithParam<const char*> {};

TEST_P(AuxiliaryLoss, IsTheOriginals) {
  const std::filesystem::path folder = test::golden_path("models/detection") / GetParam();
  const models::Detector detector = models::load_detector(folder);
  for (const nn::Parameter& parameter : detector.net->parameters.all()) {
    if (parameter.value.rank() == 1 && detector.net->is_backbone(parameter.name) && !parameter.buffer) {
      detector.net->parameters.set_trainable(parameter.name, false);
    }
  }
  const io::Safetensors golden = io::Safetensors::open(folder / "expected.safetensors");
  nn::Pass pass;
  autograd::Tape tape;
  const models::SetPredictions found =
      detector.net->forward_layers({golden.get("pixel_values"), golden.get("pixel_mask")}, pass);
  const Tensor loss = set_loss(found, objects_of(golden, "labels", "boxes")).loss;
  EXPECT_NEAR(loss.item(), golden.get("aux.loss").item(), 2e-4);
  tape.backward(loss);
  for (const nn::Parameter& parameter : detector.net->parameters.all()) {
    if (parameter.trainable) {
      test::expect_gradient(autograd::grad(parameter.value), golden.get("aux.grad." + parameter.name), 1e-3,
                            parameter.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AuxiliaryLoss, testing::Values("detr", "detr_dc5"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(Criterion, SaysWhatDoesNotFit) {
  const models::SetPredictions predictions{Tensor::zeros({2, 3, 4}), Tensor::zeros({2, 3, 4})};
  const ObjectSet bird{{3}, {{0, 0, 1, 1}}};
  const std::vector<ObjectSet> two = {bird, bird};
  EXPECT_THAT(error_of([&] { set_loss(predictions, two); }), HasSubstr("an object is of class 3, expected 0 … 2"));
  const std::vector<ObjectSet> three(3);
  EXPECT_THAT(error_of([&] { set_loss(predictions, three); }),
              HasSubstr("no whole number of layers for 3 sets of targets"));
}

}  // namespace
}  // namespace vitrail::train
