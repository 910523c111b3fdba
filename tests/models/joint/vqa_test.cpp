#include "vitrail/models/joint/vqa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/joint/vqa_folder.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

using test::error_of;
using test::expect_close;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> few_answers = {"yes", "no", "red", "2"};
constexpr const char* small_kwargs =
    R"({"img_size": 16, "channels": [8, 12], "dim": 16, "num_heads": 2, "vision_depth": 1, "depth": 2})";

VqaModel small_vqa(const std::string& name, const std::string& more = "") {
  nlohmann::json kwargs = nlohmann::json::parse(small_kwargs);
  if (!more.empty()) {
    kwargs.update(nlohmann::json::parse(more));
  }
  return create_vqa(name, kwargs.dump(), 20, few_answers, 0, {.seed = 5});
}

Tensor ids_of(const std::vector<std::int64_t>& ids, std::int64_t rows) {
  return Tensor::from(ids, {rows, std::ssize(ids) / rows});
}

// Two images with two questions each, one of which ends with padding.
VqaInput two_images() {
  return {test::random_tensor({2, 3, 16, 16}),
          {ids_of({2, 5, 6, 7, 3, 2, 8, 3, 0, 0, 2, 9, 9, 5, 3, 2, 4, 6, 3, 0}, 4),
           ids_of({5, 3, 5, 4}, 4).reshape({4}),
           {}},
          ids_of({0, 0, 1, 1}, 4).reshape({4}),
          {}};
}

class VqaKinds : public testing::TestWithParam<const char*> {};

// Each question of a batch is answered as it is alone, whatever stands beside it.
TEST_P(VqaKinds, AnswersInABatchAsAlone) {
  const VqaModel model = small_vqa(GetParam());
  const VqaInput all = two_images();
  nn::Pass pass;
  const Tensor together = model.net->forward(all, pass);
  ASSERT_EQ(together.shape(), (Shape{4, 4}));
  for (std::int64_t b = 0; b < 4; ++b) {
    const std::int64_t length = all.questions.lengths.data<std::int64_t>()[b];
    const VqaInput one{all.x.narrow(0, b / 2, 1).contiguous(),
                       {all.questions.ids.narrow(0, b, 1).narrow(1, 0, length).contiguous(), {}, {}},
                       {},
                       {}};
    expect_close(model.net->forward(one, pass), together.narrow(0, b, 1), 1e-4, GetParam());
  }
}

// Unequal numbers of questions are read by rows.
TEST_P(VqaKinds, ReadsUnequalNumbersOfQuestions) {
  const VqaModel model = small_vqa(GetParam());
  const VqaInput all = two_images();
  nn::Pass pass;
  VqaInput three = all;
  const auto last = [](const Tensor& x) { return x.narrow(0, 1, 3).contiguous(); };
  three.questions = {last(all.questions.ids), last(all.questions.lengths), {}};
  three.rows = last(all.rows);
  expect_close(model.net->forward(three, pass), last(model.net->forward(all, pass)), 1e-4, GetParam());
}

TEST_P(VqaKinds, IsWrittenAndReadToTheSameBits) {
  const VqaModel model = small_vqa(GetParam());
  const test::TemporaryFolder folder;
  write_vqa(model, folder.path());
  ASSERT_TRUE(is_vqa_folder(folder.path()));
  const VqaModel again = load_vqa(folder.path());
  EXPECT_EQ(again.answers, few_answers);
  EXPECT_EQ(again.name, GetParam());
  nn::Pass pass;
  expect_close(again.net->forward(two_images(), pass), model.net->forward(two_images(), pass), 0);
}

TEST_P(VqaKinds, TrainsAllItsParameters) {
  const VqaModel model = small_vqa(GetParam());
  nn::Pass pass{.training = true};
  autograd::Tape tape;
  tape.backward(ops::sum(ops::power(model.net->forward(two_images(), pass), 2)));
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (!parameter.buffer) {
      EXPECT_TRUE(autograd::grad(parameter.value).defined()) << parameter.name;
    }
    EXPECT_LE(model.net->layer_of(parameter.name), model.net->depth() + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, VqaKinds,
                         testing::Values("vqa_small", "vqa_joint", "vqa_one", "vqa_question", "vqa_picture",
                                         "vqa_cnn_lstm"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

// The textbook's layer: of the recorded weights a, the answer is W [Σ a_i v_i; t_q], and softmax's sum to 1.
TEST(VqaOne, IsTheTextbooksLayer) {
  for (const bool sigmoid : {false, true}) {
    const VqaModel model = small_vqa("vqa_one", sigmoid ? R"({"attn_norm": "sigmoid"})" : "");
    nn::Recorder recorder(false, true);
    nn::Pass pass{.recorder = &recorder};
    const Tensor logits = model.net->forward(two_images(), pass);
    const std::vector<Tensor> maps = model.net->picture_attention(recorder);
    ASSERT_EQ(maps.size(), 1U);
    ASSERT_EQ(maps[0].shape(), (Shape{4, 1, 1, 16}));
    const std::vector<float> sums = ops::sum(maps[0], {3}).values();
    for (const float sum : sums) {
      if (sigmoid) {
        EXPECT_GT(std::abs(sum - 1), 1e-3);
      } else {
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
    // Without what the values say, all questions of one image differ by their own words alone.
    const nn::ParameterStore& parameters = model.net->parameters;
    parameters.set(parameters.at("attn.v.weight"), Tensor::zeros({16, 16}));
    nn::Pass plain;
    VqaInput other = two_images();
    other.x = other.x * 2.0F;
    expect_close(model.net->forward(other, plain), model.net->forward(two_images(), plain), 1e-6);
    EXPECT_GT(test::relative_error(model.net->forward(other, plain), logits), 1e-3);
  }
}

// Adding a large number to one score has the last layer look there alone, and zeros change nothing.
TEST(VqaSmall, TakesBiasesOfItsScores) {
  const VqaModel model = small_vqa("vqa_small");
  VqaInput input = two_images();
  nn::Pass plain;
  const Tensor before = model.net->forward(input, plain);
  input.score_bias = Tensor::zeros({4, 2, 5, 16});
  expect_close(model.net->forward(input, plain), before, 1e-5);
  for (std::int64_t i = 0; i < 4 * 2 * 5; ++i) {
    input.score_bias.data<float>()[i * 16 + 3] = 100;
  }
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  model.net->forward(input, pass);
  const std::vector<Tensor> maps = model.net->picture_attention(recorder);
  ASSERT_EQ(maps.size(), 2U);
  EXPECT_LT(maps[0].narrow(3, 3, 1).values()[0], 0.9);
  EXPECT_GT(maps[1].narrow(3, 3, 1).values()[0], 0.999);
}

// The map of a traced layer is the one that is recorded, in whichever form the questions lie, and has gradients.
TEST(VqaSmall, TracesWhereItLooks) {
  const VqaModel model = small_vqa("vqa_small");
  const std::string layer = model.net->last_picture_attention();
  const VqaInput all = two_images();
  nn::Recorder recorder(false, true);
  nn::Pass recorded{.recorder = &recorder};
  model.net->forward(all, recorded);
  const Tensor map = recorder.attention().at(layer).value;  // [B, H, N, M]

  nn::Recorder tracer(std::vector{layer});
  nn::Pass traced{.training = true, .recorder = &tracer};
  autograd::Tape tape;
  model.net->forward(all, traced);
  EXPECT_EQ(tracer.attention().size(), 1);
  const Tensor on_tape = tracer.attention().at(layer).value;  // [S, H, B N / S, M]: two questions of each image
  EXPECT_EQ(on_tape.size(0), 2);
  const std::int64_t words = map.size(2);
  const auto apart = [&](std::int64_t b) {
    return on_tape.detach().narrow(0, b / 2, 1).narrow(2, b % 2 * words, words).contiguous();
  };
  nn::Pass training{.training = true, .recorder = &recorder};
  model.net->forward(all, training);
  for (std::int64_t b = 0; b < 4; ++b) {
    expect_close(apart(b), recorder.attention().at(layer).value.narrow(0, b, 1).contiguous(), 1e-6);
  }
  tape.backward(ops::sum(ops::power(on_tape, 2)));
  for (const char* name : {"text_encoder.encoder.layer.1.crossattention.self.key.weight", "projection.weight"}) {
    const Tensor gradient = autograd::grad(model.net->parameters.at(name).value);
    ASSERT_TRUE(gradient.defined()) << name;
    EXPECT_GT(ops::sum(ops::power(gradient, 2)).item(), 0) << name;
  }
}

// A network with more words and answers gives what it knew the logits that they had.
TEST_P(VqaKinds, GrowsByWordsAndAnswers) {
  const VqaModel model = small_vqa(GetParam());
  const test::TemporaryFolder folder;
  write_vqa(model, folder.path());
  const VqaModel grown = load_grown_vqa(folder.path(), 23, {"lilac", "17"}, 0, {.seed = 8});
  EXPECT_THAT(grown.answers, ElementsAre("yes", "no", "red", "2", "lilac", "17"));
  EXPECT_EQ(grown.net->config().vocab_size, 23);
  nn::Pass pass;
  VqaInput input = two_images();
  const Tensor before = model.net->forward(input, pass);
  const Tensor logits = grown.net->forward(input, pass);
  ASSERT_EQ(logits.shape(), (Shape{4, 6}));
  expect_close(ops::narrow(logits, 1, 0, 4).contiguous(), before, 1e-6);
  input.questions.ids.data<std::int64_t>()[1] = 22;
  EXPECT_NO_THROW(grown.net->forward(input, pass));
  EXPECT_THAT(error_of([&] { load_grown_vqa(folder.path(), 19, {}); }), HasSubstr("a vocabulary of 19 tokens"));
}

TEST(Vqa, HasFormsOfEqualSize) {
  const auto count = [](const char* name) {
    return static_cast<double>(
        create_vqa(name, "{}", 60, few_answers, 0, {.fill = nn::Fill::meta}).net->parameters.count());
  };
  EXPECT_NEAR(count("vqa_joint") / count("vqa_small"), 1, 0.01);
}

TEST(Vqa, SaysWhatDoesNotFit) {
  EXPECT_THAT(error_of([] { create_vqa("vqa_smal", "{}", 20, few_answers); }), HasSubstr("did you mean 'vqa_small'"));
  EXPECT_THAT(error_of([] { small_vqa("vqa_small", R"({"attn_norm": "sigmoid"})"); }), HasSubstr("only vqa_one"));
  EXPECT_THAT(error_of([] { small_vqa("vqa_small", R"({"depht": 2})"); }), HasSubstr("did you mean 'depth'"));
  EXPECT_THAT(error_of([] { small_vqa("vqa_small", R"({"answers": []})"); }), HasSubstr("follows from"));
  const VqaModel model = small_vqa("vqa_small");
  nn::Pass pass;
  VqaInput input = two_images();
  input.x = Tensor::zeros({2, 3, 20, 20});
  EXPECT_THAT(error_of([&] { model.net->forward(input, pass); }), HasSubstr("takes images [B, 3, 16, 16]"));
}

}  // namespace
}  // namespace vitrail::models
