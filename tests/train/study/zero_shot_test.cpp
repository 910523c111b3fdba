#include "vitrail/train/study/zero_shot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::train {
namespace {

using test::error_of;
using test::expect_close;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ImageTextModel& golden_model() {
  static const ImageTextModel model = open_image_text_model(test::golden_path("models/joint/clip"));
  return model;
}

TEST(ZeroShot, CutsTextsAndKeepsTheirEnd) {
  const std::vector<std::string> texts = {"a red bird",
                                          "a red bird a red bird a red bird a red bird a red bird a red bird"};
  const PairTexts encoded = encode_pair_texts(*golden_model().joint.net, golden_model().tokenizer, texts);
  EXPECT_EQ(encoded.cut, 1);
  EXPECT_EQ(cut_note(encoded, 16), "1 text of more than 16 tokens is cut");
  EXPECT_EQ(encoded.ids[0].back(), 111);
  ASSERT_EQ(encoded.ids[1].size(), 16U);
  EXPECT_EQ(encoded.ids[1].back(), 111);
  EXPECT_EQ(
      cut_note(encode_pair_texts(*golden_model().joint.net, golden_model().tokenizer, std::span(texts).first(1)), 16),
      "");
}

TEST(ZeroShot, GivesTransformersVectorsOfTexts) {
  const std::vector<std::string> texts = {"a photo of a red bird", "a photo of a blue circle",
                                          "a small green square on the left"};
  const PairTexts encoded = encode_pair_texts(*golden_model().joint.net, golden_model().tokenizer, texts);
  expect_close(embed_pair_texts(*golden_model().joint.net, encoded, DType::f32, 2),
               test::golden("models/joint/clip/expected.safetensors").get("text_embeds"), 1e-5);
}

// SigLIP's texts have padding, whose token the tokenizer says.
TEST(ZeroShot, FillsUpTextsOfSiglip) {
  for (const char* name : {"siglip", "siglip_json"}) {
    const ImageTextModel model = open_image_text_model(test::golden_path("models/joint") / name);
    const std::vector<std::string> texts = {"a photo of a red bird", "a photo of a blue circle",
                                            "a small green square on the left"};
    const PairTexts encoded = encode_pair_texts(*model.joint.net, model.tokenizer, texts);
    EXPECT_EQ(encoded.ids[1].size(), 16U);
    expect_close(embed_pair_texts(*model.joint.net, encoded, DType::f32, 2),
                 test::golden(std::string("models/joint/") + name + "/expected.safetensors").get("text_embeds"), 1e-5);
  }
}

TEST(ZeroShot, AveragesTemplatesOfLengthOne) {
  const ImageTextModel& model = golden_model();
  const Tensor both = embed_labels(model, {"red bird", "circle"}, {"a photo of a {}", "the {}."});
  const Tensor photo = embed_labels(model, {"red bird"}, {"a photo of a {}"});
  const Tensor plain = embed_labels(model, {"red bird"}, {"the {}."});
  EXPECT_EQ(both.shape(), (Shape{2, 10}));
  expect_close(both.narrow(0, 0, 1), ops::normalize(photo + plain), 1e-5);
  EXPECT_EQ(embed_labels(model, {"bird"}, {"a {} and a {}"}).values(),
            embed_labels(model, {"bird and a bird"}, {"a {}"}).values());
  std::string cut;
  embed_labels(model, {"bird bird bird bird bird bird bird bird bird bird bird bird"}, {"a photo of a {}"}, DType::f32,
               &cut);
  EXPECT_EQ(cut, "1 text of more than 16 tokens is cut");
}

TEST(ZeroShot, CountsWhatIsNearest) {
  // Images 0 and 1 have two texts each, image 2 has none.
  const Tensor images = Tensor::from<float>({1, 0, 0, 1, 0.6F, 0.8F}, {3, 2});
  const Tensor texts = Tensor::from<float>({0.8F, 0.6F, 1, 0, 0.6F, 0.8F, 1, 0}, {4, 2});
  const std::vector<std::int64_t> image_of = {0, 0, 1, 1};
  const Retrieval found = retrieval(images, texts, image_of);
  EXPECT_THAT(found.image_to_text, Each(100));
  // Text 0 is nearer to image 2, text 2 too; text 3 finds image 1 last.
  EXPECT_THAT(found.text_to_image, ElementsAre(25, 100, 100));
  EXPECT_THAT(error_of([&] { retrieval(images, texts, std::span(image_of).first(3)); }), HasSubstr("with 3"));
}

TEST(ZeroShot, JudgesByTheNearestLabel) {
  Features images;
  images.x = Tensor::from<float>({1, 0, 0, 1, 0.8F, 0.6F}, {3, 2});
  images.labels = Tensor::from<std::int64_t>({0, 1, 1}, {3});
  images.indices = {0, 1, 2};
  const Tensor labels = Tensor::from<float>({1, 0, 0, 1}, {2, 2});
  const Evaluation result = evaluate_zero_shot(*golden_model().joint.net, images, {"a", "b"}, labels);
  EXPECT_NEAR(result.top1, 200.0 / 3, 1e-9);
  EXPECT_EQ(result.top5, 100);
  EXPECT_THAT(result.confusion, ElementsAre(1, 0, 1, 1));
  const double scale = std::exp(static_cast<double>(golden_model().joint.net->logit_scale().item()));
  const double loss = 2 * std::log1p(std::exp(-scale)) + std::log1p(std::exp(0.2 * scale));
  EXPECT_NEAR(result.loss, loss / 3, 1e-4);
}

TEST(ZeroShot, SaysWhatIsWrong) {
  const ImageTextModel& model = golden_model();
  EXPECT_EQ(error_of([&] { embed_labels(model, {}, {"a {}"}); }), "there are no labels to choose from");
  EXPECT_EQ(error_of([&] { embed_labels(model, {"cat"}, {}); }), "there are no templates to put labels into");
  EXPECT_EQ(error_of([&] { embed_labels(model, {"cat", " "}, {"a {}"}); }), "label 2 of 2 is empty");
  EXPECT_EQ(error_of([&] { embed_labels(model, {"cat"}, {"a photo"}); }),
            "the template 'a photo' has no {} for the label");
}

}  // namespace
}  // namespace vitrail::train
