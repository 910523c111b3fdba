#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/generate/generate.h"
#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/models/joint/captioner.h"
#include "vitrail/models/text/text_network.h"

namespace vitrail::generate {
namespace {

using BlipIds = std::vector<std::int64_t>;

// The row up to and with its first end, as generate() gives it: transformers fills what is behind.
BlipIds up_to_end(const Tensor& rows, std::int64_t b, std::size_t prompt, std::int64_t end) {
  const std::int64_t* row = rows.data<std::int64_t>() + b * rows.size(1);
  BlipIds ids(row + prompt, row + rows.size(1));
  if (const auto found = std::ranges::find(ids, end); found != ids.end()) {
    ids.erase(found + 1, ids.end());
  }
  return ids;
}

void expect_written(const models::LanguageBody& writing, std::int64_t end, const BlipIds& prompt,
                    std::int64_t num_beams, const Tensor& expected) {
  GenerationConfig config;
  config.eos_token_id = {end};
  config.num_beams = num_beams;
  config.max_new_tokens = 9;
  const auto written =
      generate_batch(writing, std::vector<BlipIds>(static_cast<std::size_t>(expected.size(0)), prompt), config);
  for (std::int64_t b = 0; b < expected.size(0); ++b) {
    EXPECT_EQ(written[static_cast<std::size_t>(b)].front().ids, up_to_end(expected, b, prompt.size(), end))
        << "text " << b << " by " << num_beams << " beams";
  }
}

void expect_answers(const models::Blip& model, const models::Blip::Context& context, std::int64_t num_beams,
                    const Tensor& expected) {
  const models::BlipConfig& c = model.config();
  expect_written(models::BlipWriting(model, context, DType::f32), c.sep_token_id, {c.bos_token_id}, num_beams,
                 expected);
}

// transformers' generate() shows the decoder the states of padding too (Blip::question_states()).
TEST(Blip, AnswersQuestionsAsTransformers) {
  const models::BlipModel model = models::load_blip(test::golden_path("models/joint/blip_vqa"));
  const io::Safetensors golden = test::golden("models/joint/blip_vqa/expected.safetensors");
  nn::Pass pass;
  const Tensor x = golden.get("pixel_values");
  const models::Texts questions{golden.get("input_ids"), models::lengths_of(golden.get("attention_mask"))};
  models::Blip::Context context = model.net->context(x, questions, pass);
  context.lengths = {};
  expect_answers(*model.net, context, 1, golden.get("greedy"));
  expect_answers(*model.net, context, 3, golden.get("beams"));
}

// With its lengths, an answer does not depend on what else is in the batch.
TEST(Blip, AnswersInABatchAsAlone) {
  const models::BlipModel model = models::load_blip(test::golden_path("models/joint/blip_vqa"));
  const io::Safetensors golden = test::golden("models/joint/blip_vqa/expected.safetensors");
  nn::Pass pass;
  const models::Texts questions{golden.get("input_ids"), models::lengths_of(golden.get("attention_mask"))};
  const models::Blip::Context together = model.net->context(golden.get("pixel_values"), questions, pass);
  for (std::int64_t b = 0; b < questions.ids.size(0); ++b) {
    const auto one = [b](const Tensor& t) { return t.narrow(0, b, 1).contiguous(); };
    expect_answers(*model.net, {one(together.states), one(together.lengths)}, 1,
                   golden.get("alone." + std::to_string(b)));
  }
}

TEST(Blip, CaptionsAsTransformers) {
  const std::unique_ptr<models::Captioner> model =
      models::load_captioner(test::golden_path("models/joint/blip_caption"));
  const io::Safetensors golden = test::golden("models/joint/blip_caption/expected.safetensors");
  const models::Captioning writing(*model, golden.get("pixel_values"), DType::f32);
  for (const auto& [beams, name] : {std::pair(1, "greedy"), {3, "beams"}}) {
    expect_written(writing, model->end, {model->start}, beams, golden.get(name));
    expect_written(writing, model->end, {model->start, 23, 24}, beams, golden.get(std::string("prompted.") + name));
  }
}

}  // namespace
}  // namespace vitrail::generate
