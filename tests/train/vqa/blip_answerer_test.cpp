#include "vitrail/train/vqa/blip_answerer.h"

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::train {
namespace {

std::filesystem::path blip_folder() { return test::golden_path("models/joint") / "blip_vqa"; }

data::Question answered_by(std::vector<std::string> answers) {
  std::string first = answers.front();
  return {1, "what?", std::move(answers), std::move(first), "", {}};
}

// Against transformers' text_decoder with the labels, the reduction and the weights of BLIP's own training
// (tools/golden/blip.py).
TEST(WrittenLoss, IsThatOfTheReference) {
  const models::BlipModel model = models::load_blip(blip_folder());
  const io::Safetensors golden = io::Safetensors::open(blip_folder() / "expected.safetensors");
  const Tensor answers = golden.get("answers");
  const std::int64_t count = answers.size(0);
  const std::int64_t longest = answers.size(1) - 1;
  WrittenAnswers written{.rows = golden.get("answer_rows"),
                         .read = answers.narrow(1, 0, longest).contiguous(),
                         .lengths = Tensor::zeros({count}, DType::i64),
                         .next = answers.narrow(1, 1, longest).contiguous(),
                         .shares = Tensor::zeros({count, longest})};
  const Tensor weights = golden.get("answer_weights");
  for (std::int64_t a = 0; a < count; ++a) {
    for (std::int64_t n = 0; n < longest; ++n) {
      if (written.next.data<std::int64_t>()[a * longest + n] != 0) {
        ++written.lengths.data<std::int64_t>()[a];
        written.shares.data<float>()[a * longest + n] = weights.data<float>()[a];
      }
    }
  }
  const models::Texts questions{golden.get("input_ids"), models::lengths_of(golden.get("attention_mask"))};
  autograd::Tape tape;
  nn::Pass pass;
  const models::Blip::Context context = model.net->context(golden.get("pixel_values"), questions, pass);
  const Tensor loss = written_loss(*model.net, context, written, pass) * (1.0F / 3);
  test::expect_close(loss.reshape({1}), golden.get("loss").reshape({1}), 2e-5);
  tape.backward(loss);
  int compared = 0;
  for (const auto& [name, gradient] :
       models::blip_tensors(model.net->parameters, models::blip_names(),
                            [](const nn::Parameter& p) { return autograd::grad(p.value); })) {
    if (golden.contains("loss_grad." + name)) {
      test::expect_gradient(gradient, golden.get("loss_grad." + name), 1e-3, name);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 5);
}

class BlipAnswererTest : public testing::Test {
 protected:
  // Two questions about one image and one about another.
  BlipAnswererTest() {
    batch.x =
        io::Safetensors::open(blip_folder() / "expected.safetensors").get("pixel_values").narrow(0, 0, 2).contiguous();
    data::put_side_by_side({{2, 5, 6, 7, 3}, {2, 14, 15, 3}, {2, 7, 19, 24, 20, 3}}, batch);
    batch.rows = Tensor::from(std::vector<std::int64_t>{0, 0, 1}, {3});
  }
  double loss_of(const std::vector<const data::Question*>& questions) const {
    const autograd::NoGrad no_grad;
    nn::Pass pass;
    return static_cast<double>(answerer.loss(batch, questions, pass).item());
  }
  BlipAnswerer answerer{models::load_blip(blip_folder()), text::load_tokenizer(blip_folder())};
  data::QuestionBatch batch;
};

TEST_F(BlipAnswererTest, WeighsAnswersByThePeopleWhoGaveThem) {
  const data::Question red = answered_by({"red"});
  const data::Question blue = answered_by({"two small"});
  const data::Question both = answered_by({"red", "two small", "red", "red"});
  const data::Question other = answered_by({"yes"});
  EXPECT_NEAR(loss_of({&both, &other, &red}),
              0.75 * loss_of({&red, &other, &red}) + 0.25 * loss_of({&blue, &other, &red}), 1e-4);
  // What it cannot write counts for nothing.
  const data::Question with_unknown = answered_by({"red", "zebra", "zebra"});
  EXPECT_NEAR(loss_of({&with_unknown, &other, &red}), loss_of({&red, &other, &red}), 1e-5);
  EXPECT_TRUE(answerer.can_answer(with_unknown));
  EXPECT_FALSE(answerer.can_answer(answered_by({"zebra"})));
  std::string long_answer = "red";
  for (int i = 0; i < 18; ++i) {
    long_answer += " red";
  }
  EXPECT_FALSE(answerer.can_answer(answered_by({long_answer}))) << "19 words, [DEC] and [SEP] are more than 20 tokens";
}

// The loss of a batch is the mean of the losses of its questions.
TEST_F(BlipAnswererTest, LossDoesNotDependOnTheBatch) {
  const data::Question first = answered_by({"red"});
  const data::Question second = answered_by({"two small birds"});
  const data::Question third = answered_by({"no"});
  const double whole = loss_of({&first, &second, &third});
  double sum = 0;
  const Tensor images = batch.x;
  const std::vector<std::vector<std::int64_t>> ids = {{2, 5, 6, 7, 3}, {2, 14, 15, 3}, {2, 7, 19, 24, 20, 3}};
  const std::vector<const data::Question*> all = {&first, &second, &third};
  for (std::size_t i = 0; i < 3; ++i) {
    batch.x = images.narrow(0, i == 2 ? 1 : 0, 1).contiguous();
    data::put_side_by_side({ids[i]}, batch);
    batch.rows = Tensor::from(std::vector<std::int64_t>{0}, {1});
    sum += loss_of({all[i]});
  }
  EXPECT_NEAR(whole, sum / 3, 1e-4);
}

}  // namespace
}  // namespace vitrail::train
