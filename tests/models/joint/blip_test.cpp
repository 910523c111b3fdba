#include "vitrail/models/joint/blip.h"

#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/data/transforms.h"
#include "vitrail/io/json.h"
#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;
using ::testing::HasSubstr;

// A folder that transformers wrote, and what it computes with it (tools/golden/blip.py).
class BlipVariant : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const { return golden_path("models/joint") / GetParam(); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
  static Texts questions(const BlipModel& model, const io::Safetensors& golden) {
    return model.net->answers() ? Texts{golden.get("input_ids"), lengths_of(golden.get("attention_mask"))} : Texts{};
  }
  static Tensor logits(const BlipModel& model, const io::Safetensors& golden, nn::Pass& pass) {
    Blip::Context context = model.net->context(golden.get("pixel_values"), questions(model, golden), pass);
    context.lengths = {};  // transformers' decoder sees the states of padding
    return model.net->logits({golden.get("decoder_input_ids")}, context, pass);
  }
};

TEST_P(BlipVariant, GivesTransformersLogits) {
  const BlipModel model = load_blip(folder());
  const io::Safetensors golden = expected();
  for (const auto& [dtype, tolerance] : {std::pair(DType::f32, 2e-5), {DType::bf16, 0.2}}) {
    nn::Pass pass{.dtype = dtype};
    expect_close(logits(model, golden, pass), golden.get("logits"), tolerance);
  }
}

TEST_P(BlipVariant, RecordsTransformersCrossAttention) {
  const BlipModel model = load_blip(folder());
  const io::Safetensors golden = expected();
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  logits(model, golden, pass);
  const BlipText& looks = model.net->answers() ? model.net->question() : model.net->decoder();
  for (const int i : {0, 1}) {
    expect_close(recorder.attention().at(looks.cross_attention_name(i)).value,
                 golden.get(fmt::format("cross_attention.{}", i)), 2e-5);
  }
}

TEST_P(BlipVariant, HasTransformersGradients) {
  const BlipModel model = load_blip(folder());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  autograd::Tape tape;
  tape.backward(ops::sum(logits(model, golden, pass) * golden.get("to_logits")));
  std::size_t compared = 0;
  for (const auto& [name, gradient] :
       blip_tensors(*model.net, [](const nn::Parameter& p) { return autograd::grad(p.value); })) {
    test::expect_gradient(gradient, golden.get("grad." + name), 1e-3, name);
    ++compared;
  }
  EXPECT_EQ(static_cast<std::ptrdiff_t>(compared),
            std::ranges::count_if(golden.names(), [](const std::string& n) { return n.starts_with("grad."); }));
}

TEST_P(BlipVariant, IsSavedToTheSameBitsAndFields) {
  const test::TemporaryFolder written;
  write_blip(load_blip(folder()), written.path());
  const io::Safetensors before = io::Safetensors::open(folder() / "model.safetensors");
  const io::Safetensors after = io::Safetensors::open(written / "model.safetensors");
  ASSERT_EQ(std::set<std::string>(after.names().begin(), after.names().end()),
            std::set<std::string>(before.names().begin(), before.names().end()));
  for (const std::string& name : before.names()) {
    expect_close(after.get(name), before.get(name), 0, name);
  }
  EXPECT_EQ(io::read_json(written / "config.json"), io::read_json(folder() / "config.json"));
  nlohmann::json processor = io::read_json(folder() / "preprocessor_config.json");
  const nlohmann::json ours = io::read_json(written / "preprocessor_config.json");
  for (const char* key : {"size", "resample", "image_processor_type", "do_resize", "do_normalize"}) {
    EXPECT_EQ(ours[key], processor[key]) << key;
  }
  EXPECT_TRUE(is_blip_folder(written.path()));
  EXPECT_EQ(load_blip(written.path()).net->answers(), load_blip(folder()).net->answers());
}

TEST_P(BlipVariant, PreparesImagesAsBlipImageProcessor) {
  const io::Safetensors golden = expected();
  const Tensor pixels = golden.get("image");
  io::Image image(pixels.size(1), pixels.size(0));
  std::copy_n(pixels.data<std::uint8_t>(), pixels.numel(), image.at(0, 0));
  expect_close(data::eval_transform(load_blip(folder()).pretrained)(image), golden.get("preprocessed"), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(All, BlipVariant, testing::Values("blip_vqa", "blip_caption"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

// Several questions about one image read its tokens by rows, and give what each gives with a copy of the image.
TEST(Blip, ReadsOneImageForSeveralQuestions) {
  const BlipModel model = load_blip(golden_path("models/joint/blip_vqa"));
  const io::Safetensors golden = test::golden("models/joint/blip_vqa/expected.safetensors");
  const Texts questions{golden.get("input_ids"), lengths_of(golden.get("attention_mask"))};
  nn::Pass pass;
  const Tensor two = golden.get("pixel_values").narrow(0, 0, 2).contiguous();
  const BlipText& reader = model.net->question();
  const Tensor rows = Tensor::from(std::vector<std::int64_t>{1, 0, 1}, {3});
  const Tensor image = model.net->image_states(two, pass);
  const Tensor shared = reader(questions, reader.remember(image, {}, rows), false, pass);
  for (std::int64_t b = 0; b < 3; ++b) {
    const Texts one{questions.ids.narrow(0, b, 1).contiguous(), questions.lengths.narrow(0, b, 1).contiguous()};
    const Tensor own = image.narrow(0, rows.data<std::int64_t>()[b], 1).contiguous();
    const std::int64_t length = questions.lengths.data<std::int64_t>()[b];
    const auto real = [&](const Tensor& x) { return x.narrow(1, 0, length).contiguous(); };
    expect_close(real(reader(one, reader.remember(own), false, pass)), real(shared.narrow(0, b, 1)), 1e-5);
  }
}

TEST(Blip, SaysWhatDoesNotFit) {
  const fs::path folder = golden_path("models/joint/blip_vqa");
  EXPECT_FALSE(is_blip_folder(golden_path("models/joint/clip")));
  EXPECT_THAT(error_of([] { load_blip(golden_path("models/joint/clip")); }), HasSubstr("is not 'blip'"));
  nlohmann::json config = io::read_json(folder / "config.json");
  config["architectures"] = {"BlipForImageTextRetrieval"};
  EXPECT_THAT(error_of([&] { create_blip(config.dump(), "it"); }),
              HasSubstr("it: the architecture 'BlipForImageTextRetrieval' is neither"));
  config["architectures"] = {"BlipForQuestionAnswering"};
  config["vision_config"]["hidden_size"] = 20;
  EXPECT_THAT(error_of([&] { create_blip(config.dump(), "it"); }), HasSubstr("the two must be equal"));
  const BlipModel captions = load_blip(golden_path("models/joint/blip_caption"));
  nn::Pass pass;
  EXPECT_THAT(error_of([&] { captions.net->question(); }), HasSubstr("reads no questions"));
  const BlipModel answers = load_blip(folder);
  EXPECT_THAT(error_of([&] {
                answers.net->context(Tensor::zeros({1, 3, 24, 24}), {}, pass);
              }),
              HasSubstr("answers questions, but none are given"));
}

}  // namespace
}  // namespace vitrail::models
