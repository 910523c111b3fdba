#include "vitrail/models/joint/recurrent_captioner.h"

#include <cmath>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/model.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

using test::error_of;
using test::expect_close;
using test::random_tensor;
using ::testing::HasSubstr;

std::unique_ptr<Captioner> small_captioner(
    const std::string& decoder = R"({"architecture": "lstm", "hidden_size": 6, "num_layers": 2, "vocab_size": 9,
                                     "embedding_size": 5, "eos_token_id": 8})") {
  CreateOptions options;
  options.num_classes = 0;
  options.model_kwargs = R"({"img_size": 8, "hidden_size": 10, "rows": 2})";
  return std::make_unique<RecurrentCaptioner>(create_model("gru_rows", options), decoder, "the decoder");
}

Texts two_captions() {
  return {Tensor::from<std::int64_t>({8, 1, 2, 3, 8, 4}, {1, 6}), {}, Tensor::from<std::int64_t>({0, 4, 6}, {3})};
}

Tensor loss_of(const Captioner& model, const Tensor& x) {
  nn::Pass pass;
  const Tensor logits = model.logits(x, two_captions(), pass);
  return ops::cross_entropy(ops::reshape(logits, {-1, 9}), Tensor::from<std::int64_t>({1, 2, 3, 8, 4, 8}, {6}));
}

// Each parameter, of the image model too, is moved a little against its gradient.
TEST(RecurrentCaptioner, LearnsByAllItsParameters) {
  const std::unique_ptr<Captioner> model = small_captioner();
  const Tensor x = random_tensor({2, 3, 8, 8}, 1);
  double before = 0;
  {
    autograd::Tape tape;
    const Tensor loss = loss_of(*model, x);
    before = static_cast<double>(loss.item());
    tape.backward(loss);
  }
  for (const nn::Parameter& parameter : model->parameters.all()) {
    const Tensor gradient = autograd::grad(parameter.value);
    ASSERT_TRUE(gradient.defined()) << parameter.name;
    double square = 0;
    for (const float g : gradient.values()) {
      square += static_cast<double>(g) * static_cast<double>(g);
    }
    ASSERT_GT(square, 0) << parameter.name;
    const double step = 0.05 / std::sqrt(square);  // far enough for gradients that the rounding of the loss would hide
    const std::vector<float> own = parameter.value.values();
    const auto moved = [&](double by) {
      for (std::size_t i = 0; i < own.size(); ++i) {
        parameter.value.data<float>()[i] = own[i] - static_cast<float>(by) * gradient.values()[i];
      }
      parameter.value.touch();
      return static_cast<double>(loss_of(*model, x).item());
    };
    const double slope = (moved(-step) - moved(step)) / (2 * step);
    moved(0);
    EXPECT_NEAR(slope / square, 1, 0.02) << parameter.name << " at " << before;
  }
}

TEST(RecurrentCaptioner, LooksOnceForSeveralTexts) {
  const std::unique_ptr<Captioner> model = small_captioner();
  const Tensor x = random_tensor({1, 3, 8, 8}, 1);
  nn::Pass pass;
  expect_close(model->logits(x, two_captions(), pass), model->logits(ops::concat({x, x}, 0), two_captions(), pass),
               1e-6);
}

TEST(RecurrentCaptioner, GoesOnFromItsStateAsFromTheWholeCaption) {
  const std::unique_ptr<Captioner> model = small_captioner();
  const Tensor x = random_tensor({2, 3, 8, 8}, 1);
  const Captioning captioning(*model, x, DType::f32);
  nn::Pass pass;
  const Tensor ids = Tensor::from<std::int64_t>({8, 1, 2, 8, 4, 5}, {2, 3});
  const Tensor whole = captioning.forward(ids, pass, nullptr);
  const std::unique_ptr<TextState> state = captioning.begin();
  for (std::int64_t n = 0; n < 3; ++n) {
    expect_close(captioning.forward_last(ids.narrow(1, n, 1), pass, *state), whole.select(1, n).contiguous(), 1e-6);
  }
  EXPECT_EQ(state->length(), 3);
  // Each text of a row has its own image.
  const Tensor row = ops::cast(model->logits(x, two_captions(), pass), DType::f32);
  const Tensor alone =
      model->logits(x.narrow(0, 1, 1).contiguous(), {Tensor::from<std::int64_t>({8, 4}, {1, 2})}, pass);
  expect_close(row.narrow(1, 4, 2).contiguous(), alone, 1e-6);
}

TEST(RecurrentCaptioner, IsSavedToTheSameBits) {
  const test::TemporaryFolder folder;
  const std::unique_ptr<Captioner> model = small_captioner();
  model->write(folder.path(), DType::f32);
  EXPECT_TRUE(is_captioner_folder(folder.path()));
  const std::unique_ptr<Captioner> again = load_captioner(folder.path());
  ASSERT_EQ(again->parameters.all().size(), model->parameters.all().size());
  for (const nn::Parameter& parameter : model->parameters.all()) {
    expect_close(again->parameters.at(parameter.name).value, parameter.value, 0, parameter.name);
  }
  EXPECT_EQ(again->end, 8);
  EXPECT_EQ(again->image_model.pretrained.mean, model->image_model.pretrained.mean);
  EXPECT_FALSE(is_captioner_folder(folder / "nowhere"));
}

TEST(RecurrentCaptioner, SaysWhatCannotBe) {
  const auto creating = [](const std::string& decoder) { return error_of([&] { small_captioner(decoder); }); };
  EXPECT_THAT(creating(R"({"architecture": "gru", "hidden_size": 4, "vocab_size": 9, "eos_token_id": 9})"),
              HasSubstr("the decoder: 'eos_token_id'"));
  EXPECT_THAT(creating(R"({"architecture": "gru", "hidden_size": 4, "vocab_size": 9, "eos_token_id": 8, "layers": 2})"),
              HasSubstr("unknown key 'layers'"));
  CreateOptions options;
  options.num_classes = 3;
  EXPECT_EQ(error_of([&] { RecurrentCaptioner(create_model("gru_rows", options), "{}", "the decoder"); }),
            "the decoder: the image model of a recurrent network has no classifier");
}

}  // namespace
}  // namespace vitrail::models
