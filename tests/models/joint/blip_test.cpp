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
#include "vitrail/models/joint/blip_captioner.h"
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

// Folders that transformers wrote, and what it computes with them (tools/golden/blip.py): of a Blip, and of a
// BlipCaptioner.
struct AnswererForm {
  static constexpr const char* name = "blip_vqa";
  BlipModel model = load_blip(golden_path("models/joint") / name);

  Tensor logits(const io::Safetensors& golden, nn::Pass& pass) const {
    const Texts questions{golden.get("input_ids"), lengths_of(golden.get("attention_mask"))};
    Blip::Context context = model.net->context(golden.get("pixel_values"), questions, pass);
    context.lengths = {};  // transformers' decoder sees the states of padding
    return model.net->logits({golden.get("decoder_input_ids")}, context, pass);
  }
  std::string cross_attention(std::int64_t layer) const { return model.net->question().cross_attention_name(layer); }
  const nn::Network& net() const { return *model.net; }
  const PretrainedConfig& images() const { return model.pretrained; }
  std::span<const NameRule> names() const { return blip_names(); }
  void write(const fs::path& folder) const { write_blip(model, folder); }
};
struct CaptionerForm {
  static constexpr const char* name = "blip_caption";
  std::unique_ptr<Captioner> model = load_captioner(golden_path("models/joint") / name);

  Tensor logits(const io::Safetensors& golden, nn::Pass& pass) const {
    return model->logits(golden.get("pixel_values"), {golden.get("decoder_input_ids")}, pass);
  }
  std::string cross_attention(std::int64_t layer) const {
    return model->cross_attention().at(static_cast<std::size_t>(layer));
  }
  const nn::Network& net() const { return *model; }
  const PretrainedConfig& images() const { return model->image_model.pretrained; }
  std::span<const NameRule> names() const { return blip_captioner_names(); }
  void write(const fs::path& folder) const { model->write(folder, DType::f32); }
};

template <class Form>
class BlipForm : public testing::Test {
 protected:
  static fs::path folder() { return golden_path("models/joint") / Form::name; }
  const Form form;
  const io::Safetensors golden = io::Safetensors::open(folder() / "expected.safetensors");
};
using BlipForms = testing::Types<AnswererForm, CaptionerForm>;
TYPED_TEST_SUITE(BlipForm, BlipForms);

TYPED_TEST(BlipForm, GivesTransformersLogits) {
  for (const auto& [dtype, tolerance] : {std::pair(DType::f32, 2e-5), {DType::bf16, 0.2}}) {
    nn::Pass pass{.dtype = dtype};
    expect_close(this->form.logits(this->golden, pass), this->golden.get("logits"), tolerance);
  }
}

TYPED_TEST(BlipForm, RecordsTransformersCrossAttention) {
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  this->form.logits(this->golden, pass);
  for (const int i : {0, 1}) {
    expect_close(recorder.attention().at(this->form.cross_attention(i)).value,
                 this->golden.get(fmt::format("cross_attention.{}", i)), 2e-5);
  }
}

TYPED_TEST(BlipForm, HasTransformersGradients) {
  nn::Pass pass;
  autograd::Tape tape;
  tape.backward(ops::sum(this->form.logits(this->golden, pass) * this->golden.get("to_logits")));
  std::size_t compared = 0;
  for (const auto& [name, gradient] : blip_tensors(this->form.net().parameters, this->form.names(),
                                                   [](const nn::Parameter& p) { return autograd::grad(p.value); })) {
    test::expect_gradient(gradient, this->golden.get("grad." + name), 1e-3, name);
    ++compared;
  }
  EXPECT_EQ(static_cast<std::ptrdiff_t>(compared),
            std::ranges::count_if(this->golden.names(), [](const std::string& n) { return n.starts_with("grad."); }));
}

TYPED_TEST(BlipForm, IsSavedToTheSameBitsAndFields) {
  const test::TemporaryFolder written;
  this->form.write(written.path());
  const io::Safetensors before = io::Safetensors::open(this->folder() / "model.safetensors");
  const io::Safetensors after = io::Safetensors::open(written / "model.safetensors");
  ASSERT_EQ(std::set<std::string>(after.names().begin(), after.names().end()),
            std::set<std::string>(before.names().begin(), before.names().end()));
  for (const std::string& name : before.names()) {
    expect_close(after.get(name), before.get(name), 0, name);
  }
  EXPECT_EQ(io::read_json(written / "config.json"), io::read_json(this->folder() / "config.json"));
  const nlohmann::json processor = io::read_json(this->folder() / "preprocessor_config.json");
  const nlohmann::json ours = io::read_json(written / "preprocessor_config.json");
  for (const char* key : {"size", "resample", "image_processor_type", "do_resize", "do_normalize"}) {
    EXPECT_EQ(ours[key], processor[key]) << key;
  }
  EXPECT_EQ(blip_class_in(written.path()), blip_class_in(this->folder()));
}

TYPED_TEST(BlipForm, PreparesImagesAsBlipImageProcessor) {
  const Tensor pixels = this->golden.get("image");
  io::Image image(pixels.size(1), pixels.size(0));
  std::copy_n(pixels.template data<std::uint8_t>(), pixels.numel(), image.at(0, 0));
  expect_close(data::eval_transform(this->form.images())(image), this->golden.get("preprocessed"), 1e-6);
}

// Texts in one row, as training has them, two about each image, have the logits that they have side by side.
TEST(BlipCaptioner, ReadsTextsInARow) {
  const CaptionerForm form;
  const io::Safetensors golden = test::golden("models/joint/blip_caption/expected.safetensors");
  const Tensor x = golden.get("pixel_values").narrow(0, 0, 2).contiguous();
  const std::vector<std::vector<std::int64_t>> texts = {{30, 5, 6, 7}, {30, 8}, {30, 9, 4}, {30, 6, 6, 5}};
  std::vector<std::int64_t> row;
  std::vector<std::int64_t> offsets = {0};
  for (const auto& text : texts) {
    row.insert(row.end(), text.begin(), text.end());
    offsets.push_back(std::ssize(row));
  }
  nn::Pass pass;
  Texts packed{Tensor::from(row, {1, std::ssize(row)})};
  packed.offsets = Tensor::from(offsets, {std::ssize(offsets)});
  const Tensor together = form.model->logits(x, packed, pass);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto count = std::ssize(texts[i]);
    const Tensor own = form.model->logits(x.narrow(0, static_cast<std::int64_t>(i) / 2, 1).contiguous(),
                                          {Tensor::from(texts[i], {1, count})}, pass);
    expect_close(together.narrow(1, offsets[i], count).contiguous(), own, 1e-5);
  }
}

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
  const fs::path captions = golden_path("models/joint/blip_caption");
  EXPECT_THAT(error_of([&] { load_blip(captions); }), HasSubstr("expected BlipForQuestionAnswering"));
  EXPECT_FALSE(is_blip_folder(captions));
  EXPECT_TRUE(is_captioner_folder(captions));
  EXPECT_FALSE(is_captioner_folder(folder));
  nn::Pass pass;
  const BlipModel answers = load_blip(folder);
  EXPECT_THAT(error_of([&] {
                answers.net->context(Tensor::zeros({1, 3, 24, 24}), {}, pass);
              }),
              HasSubstr("answers questions, but none are given"));
}

}  // namespace
}  // namespace vitrail::models
