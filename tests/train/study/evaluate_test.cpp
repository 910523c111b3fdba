#include "vitrail/train/study/evaluate.h"

#include <cmath>
#include <fstream>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/images.h"
#include "tests/support/xml.h"
#include "tests/train/tiny.h"

namespace vitrail::train {
namespace {

using ::testing::HasSubstr;

models::Model tiny_model(std::int64_t classes) {
  models::CreateOptions options;
  options.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 24, "depth": 1, "num_heads": 2})";
  options.num_classes = classes;
  models::Model model = models::create_model("vit_tiny_patch16_224", options);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    parameter.value.copy_from(test::random_tensor(parameter.value.shape(), hash(parameter.name), 0.3F));
    parameter.value.touch();
  }
  return model;
}

TEST(Evaluate, AgreesWithPredictionsOneByOne) {
  const test::TemporaryFolder folder;
  test::write_images(folder / "data", 7, 7);
  const auto dataset = data::open_dataset(folder / "data");
  const models::Model model = tiny_model(8);
  EvaluateOptions options;
  options.batch_size = 10;
  std::int64_t reported = 0;
  options.progress = [&](std::int64_t done, std::int64_t total) {
    reported = done;
    EXPECT_EQ(total, 49);
  };
  const Evaluation evaluation = evaluate(model, *dataset, options);
  EXPECT_EQ(reported, 49);

  std::vector<io::Image> images;
  for (std::int64_t i = 0; i < dataset->size(); ++i) {
    images.push_back(dataset->image(i));
  }
  const Tensor probabilities = predict(model, images, DType::f32, 16);
  ASSERT_EQ(probabilities.shape(), (Shape{49, 8}));
  double loss = 0;
  int top1 = 0;
  int top5 = 0;
  std::vector<std::int64_t> confusion(64);
  for (std::int64_t i = 0; i < 49; ++i) {
    const float* row = probabilities.data<float>() + i * 8;
    const std::int64_t label = dataset->label(i);
    EXPECT_NEAR(std::accumulate(row, row + 8, 0.0), 1, 1e-5);
    const auto rank = std::count_if(row, row + 8, [&](float p) { return p > row[label]; });
    top1 += rank < 1 ? 1 : 0;
    top5 += rank < 5 ? 1 : 0;
    loss -= std::log(static_cast<double>(row[label])) / 49;
    ++confusion[static_cast<std::size_t>(label * 8 + std::distance(row, std::max_element(row, row + 8)))];
  }
  EXPECT_EQ(evaluation.count, 49);
  EXPECT_NEAR(evaluation.top1, 100.0 * top1 / 49, 1e-9);
  EXPECT_NEAR(evaluation.top5, 100.0 * top5 / 49, 1e-9);
  EXPECT_NEAR(evaluation.loss, loss, 1e-4);
  EXPECT_EQ(evaluation.confusion, confusion);
  EXPECT_EQ(evaluation.class_count(3), 7);
  EXPECT_NEAR(evaluation.class_accuracy(3), 100.0 * static_cast<double>(confusion[27]) / 7, 1e-9);
  EXPECT_TRUE(std::isnan(evaluation.class_accuracy(7))) << "no image of that class";
  EXPECT_EQ(evaluation.classes[3], "class3");
  EXPECT_EQ(test::xml_fault(confusion_svg(evaluation)), "");
}

TEST(Evaluate, AveragesWithTheMirrorImages) {
  const test::TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(folder / "data" / name);
    io::write_png(folder / "data" / name / "1.png", test::noise_image(8, 8, static_cast<std::uint64_t>(name[0])));
  }
  const auto dataset = data::open_dataset(folder / "data");
  models::Model model = tiny_model(2);
  model.pretrained.crop_pct = 1;
  EvaluateOptions options;
  const double plain = evaluate(model, *dataset, options).loss;
  options.tta = 2;
  const double averaged = evaluate(model, *dataset, options).loss;
  double expected = 0;
  for (std::int64_t i = 0; i < 2; ++i) {
    const io::Image image = dataset->image(i);
    io::Image mirror(8, 8);
    for (std::int64_t y = 0; y < 8; ++y) {
      for (std::int64_t x = 0; x < 8; ++x) {
        std::copy_n(image.at(7 - x, y), 3, mirror.at(x, y));
      }
    }
    // Of the softmax of the mean logits, from those of each.
    const Tensor p = predict(model, {image, mirror});
    const float* row = p.data<float>();
    const double one = std::sqrt(row[0] * row[2]);
    const double two = std::sqrt(row[1] * row[3]);
    expected -= std::log((i == 0 ? one : two) / (one + two)) / 2;
    const Tensor both = predict(model, {image}, DType::f32, 1, 2);
    EXPECT_NEAR(both.data<float>()[0], one / (one + two), 1e-6);
    EXPECT_NEAR(both.data<float>()[1], two / (one + two), 1e-6);
  }
  EXPECT_THROW(predict(model, {dataset->image(0)}, DType::f32, 1, 1), Error);
  EXPECT_NEAR(averaged, expected, 1e-5);
  EXPECT_GT(std::abs(averaged - plain), 1e-3);
  options.tta = 3;
  EXPECT_THROW(evaluate(model, *dataset, options), Error);
}

TEST(Evaluate, CountsFiveAsAllOfThreeClasses) {
  const test::TemporaryFolder folder;
  test::write_images(folder / "data", 2, 3);
  EXPECT_EQ(evaluate(tiny_model(3), *data::open_dataset(folder / "data")).top5, 100);
}

TEST(Evaluate, RefusesMoreClassesThanTheModelHas) {
  const test::TemporaryFolder folder;
  test::write_images(folder / "data", 1, 3);
  const auto dataset = data::open_dataset(folder / "data");
  try {
    evaluate(tiny_model(2), *dataset);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("3 classes"));
  }
  EXPECT_THROW(evaluate(tiny_model(0), *dataset), Error);
}

TEST(Evaluate, LeavesBrokenImagesOutIfAllowed) {
  const test::TemporaryFolder folder;
  test::write_images(folder / "data", 3, 2);
  std::ofstream(folder / "data/class1/1.png") << "no image";
  const auto dataset = data::open_dataset(folder / "data");
  EvaluateOptions options;
  EXPECT_THROW(evaluate(tiny_model(2), *dataset, options), Error);
  options.skip_broken = true;
  const Evaluation evaluation = evaluate(tiny_model(2), *dataset, options);
  EXPECT_EQ(evaluation.count, 5);
  ASSERT_EQ(evaluation.broken.size(), 1U);
  EXPECT_THAT(evaluation.broken[0], HasSubstr("class1/1.png"));
}

TEST(Predict, TakesNoImagesToo) { EXPECT_EQ(predict(tiny_model(2), {}).shape(), (Shape{0, 2})); }

}  // namespace
}  // namespace vitrail::train
