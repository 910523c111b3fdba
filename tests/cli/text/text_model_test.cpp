// `vitrail forward` and `vitrail attention --text` of models of texts, as a person types them.
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/program.h"
#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;
using test::golden_path;
using test::Outcome;
using test::vitrail;
using ::testing::HasSubstr;

TEST(ForwardOfTexts, GivesTransformersLogits) {
  const test::TemporaryFolder folder;
  for (const char* name : {"gpt2", "llama3"}) {
    const fs::path model = golden_path("models/text") / name;
    const std::string input = (model / "expected.safetensors").string(), output = (folder / "out.safetensors").string();
    const Outcome outcome = vitrail("forward " + model.string() + " --input " + input + " --output " + output +
                                    " --features --attention --threads 1");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const io::Safetensors expected = io::Safetensors::open(input), got = io::Safetensors::open(output);
    test::expect_close(got.get("logits"), expected.get("logits"), 1e-5);
    const Tensor ids = expected.get("input_ids");
    const Tensor attention = got.get("attention.1");
    EXPECT_EQ(attention.size(0), ids.size(0));
    EXPECT_EQ(attention.size(3), ids.size(1));
    EXPECT_EQ(got.get("features.1").size(1), ids.size(1));
  }
}

TEST(ForwardOfImagesAndTexts, GivesTransformersEmbeddings) {
  const test::TemporaryFolder folder;
  const std::string model = golden_path("models/joint/clip").string();
  const std::string input = model + "/expected.safetensors", output = (folder / "out.safetensors").string();
  const Outcome outcome =
      vitrail("forward " + model + " --input " + input + " --output " + output + " --features --attention --threads 1");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const io::Safetensors expected = io::Safetensors::open(input), got = io::Safetensors::open(output);
  for (const char* name : {"image_embeds", "text_embeds", "logits_per_image"}) {
    test::expect_close(got.get(name), expected.get(name), 1e-5, name);
  }
  EXPECT_EQ(got.get("vision.attention.1").shape(), (Shape{3, 2, 10, 10}));
  EXPECT_EQ(got.get("text.features.0").shape(), (Shape{3, 16, 12}));

  const std::string texts = (folder / "texts.safetensors").string();
  io::save_safetensors(texts, {{"input_ids", expected.get("input_ids")}});
  ASSERT_EQ(vitrail("forward " + model + " --input " + texts + " --output " + output).status, 0);
  EXPECT_EQ(io::Safetensors::open(output).names().size(), 1U);
  io::save_safetensors(texts, {{"input_ids", Tensor::zeros({1, 2}, DType::i64)}});
  EXPECT_THAT(vitrail("forward " + model + " --input " + texts + " --output " + output).err,
              HasSubstr("texts.safetensors: text 0 has no end token 111"));
  io::save_safetensors(texts, {{"y", Tensor::zeros({1, 2})}});
  EXPECT_THAT(vitrail("forward " + model + " --input " + texts + " --output " + output).err,
              HasSubstr("there is neither 'pixel_values' (or 'x') f32 [B, 3, 12, 12] nor 'input_ids' i64 [B, N]"));

  EXPECT_THAT(vitrail("info " + model).out, HasSubstr("clip, which puts images and texts into one space"));
  const nlohmann::json info = nlohmann::json::parse(vitrail("info " + model + " --json").out);
  EXPECT_EQ(info["text"]["vocab_size"], 112);
  EXPECT_EQ(info["projection_dim"], 10);
}

TEST(ForwardOfTexts, SaysWhatIsWrong) {
  const test::TemporaryFolder folder;
  const auto error = [&](const io::NamedTensors& inputs) {
    const std::string input = (folder / "in.safetensors").string();
    io::save_safetensors(input, inputs);
    const Outcome outcome = vitrail("forward " + golden_path("models/text/gpt2").string() + " --input " + input +
                                    " --output " + (folder / "out.safetensors").string());
    EXPECT_EQ(outcome.status, 1);
    EXPECT_FALSE(fs::exists(folder / "out.safetensors"));
    return outcome.err;
  };
  const Tensor ids = Tensor::from<std::int64_t>({1, 2, 3, 4}, {2, 2});
  EXPECT_THAT(error({{"x", ids}}), HasSubstr("in.safetensors: a language model reads 'input_ids' [B, N] i64"));
  EXPECT_THAT(error({{"input_ids", ids}, {"token_type_ids", ids}}),
              HasSubstr("'input_ids' and 'attention_mask' alone"));
  EXPECT_THAT(error({{"input_ids", ids}, {"attention_mask", Tensor::from<std::int64_t>({1, 1, 0, 1}, {2, 2})}}),
              HasSubstr("'attention_mask' of text 1: padding stands before token 1, expected behind"));
  EXPECT_THAT(error({{"input_ids", Tensor::from<std::int64_t>({1, 999}, {1, 2})}}),
              HasSubstr("token 1 of text 0 is 999"));
}

TEST(AttentionOfTexts, DrawsWhichWordLooksAtWhich) {
  const test::TemporaryFolder folder;
  fs::copy(golden_path("models/text/gpt2"), folder / "model");
  text::char_tokenizer("der Bär ist da.\n").save(folder / "model");
  const std::string model = (folder / "model").string(), output = (folder / "maps").string();
  const Outcome outcome = vitrail("attention " + model + " --text 'der Bär' --output " + output + " --raw " +
                                  (folder / "raw.safetensors").string() + " --threads 1");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("index.html"));
  const std::string page = io::read_text(folder / "maps/index.html");
  for (const char* name : {"sheet.png", "rollout.svg", "rollout-map.svg", "layer00.svg", "layer01-head01-map.svg"}) {
    EXPECT_TRUE(fs::exists(folder / "maps" / name)) << name;
    EXPECT_THAT(page, HasSubstr(name));
  }
  EXPECT_THAT(io::read_text(folder / "maps/layer01.svg"), HasSubstr("ä → "));
  EXPECT_THAT(io::read_text(folder / "maps/layer01.svg"), HasSubstr("␣"));
  EXPECT_EQ(io::Safetensors::open(folder / "raw.safetensors").get("attention.1").size(3), 7);
  const Outcome one = vitrail("attention " + model + " --text 'der Bär' --layer -1 --head 0 --output " + output + "1");
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_FALSE(fs::exists(folder / "maps1/layer00.svg"));
  EXPECT_TRUE(fs::exists(folder / "maps1/layer01-head00.svg"));
}

TEST(AttentionOfTexts, SaysWhatIsWrong) {
  const std::string model = golden_path("models/text/gpt2").string();
  const auto fails = [&](const std::string& arguments, int status, const std::string& message) {
    const Outcome outcome = vitrail("attention " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  };
  fails(model, 2, "attention takes either IMAGE or --text TEXT");
  fails(model + " a.png --text b", 2, "attention takes either IMAGE or --text TEXT");
  fails(model + " --text b --query 1,2", 2, "--query, --query-box and --point name places of an image");
  fails(model + " --text b --model-kwargs n_layer=2", 2, "have no effect on --text");
  fails("gpt2 --text b", 1, "'gpt2' is no folder");
  fails(model + " --text b", 1, "tokenizer");
}

}  // namespace
}  // namespace vitrail
