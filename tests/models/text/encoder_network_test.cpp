#include "vitrail/models/text/encoder_network.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/nn/positions/absolute_position.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;

fs::path encoder_folder(const std::string& name) { return golden_path("models/text") / name; }

io::Safetensors expected_of(const std::string& name) {
  return io::Safetensors::open(encoder_folder(name) / "expected.safetensors");
}

EncoderInput input_of(const io::Safetensors& golden) {
  return {.ids = golden.get("input_ids"),
          .types = golden.contains("token_type_ids") ? golden.get("token_type_ids") : Tensor(),
          .lengths = golden.get("lengths")};
}

// Outputs under transformers' names.
std::map<std::string, Tensor> outputs_of(const TextModel& model, const EncoderInput& input, nn::Pass& pass) {
  if (model.architecture == "GPT2ForSequenceClassification") {
    return {{"logits", classifier_of(model).classify(input, pass)}};
  }
  const EncoderNetwork& net = encoder_of(model);
  const Tensor states = net.body(input, pass);
  const Texts texts = input.texts();
  if (net.heads.classifier) {
    return {{"logits", net.class_logits(states, texts, pass)}};
  }
  if (!net.heads.next_sentence.empty()) {
    return {{"prediction_logits", net.masked_logits(states)},
            {"seq_relationship_logits", net.next_sentence_logits(states, texts, pass)}};
  }
  if (net.heads.masked) {
    return {{"logits", net.masked_logits(states)}};
  }
  std::map<std::string, Tensor> outputs = {{"last_hidden_state", states}};
  if (net.heads.pooler) {
    outputs["pooler_output"] = net.pooled(states, texts, pass);
  }
  return outputs;
}

Tensor loss_of(const std::map<std::string, Tensor>& outputs, const io::Safetensors& golden) {
  Tensor loss;
  const auto add = [&](const Tensor& part) { loss = loss.defined() ? loss + part : part; };
  for (const auto& [name, value] : outputs) {
    if (golden.contains("weights." + name)) {
      Tensor weights = golden.get("weights." + name).clone();
      if (value.rank() == 3) {  // those of padding do not count
        for (std::int64_t b = 0; b < value.size(0); ++b) {
          const std::int64_t length = golden.get("lengths").data<std::int64_t>()[b];
          weights.narrow(0, b, 1).narrow(1, length, value.size(1) - length).fill(0);
        }
      }
      add(ops::sum(value * weights));
      continue;
    }
    const bool next = name == "seq_relationship_logits";
    const Tensor labels = golden.get(next ? "next_sentence_label" : "labels");
    add(ops::cross_entropy(ops::reshape(value, {-1, value.size(-1)}), labels.reshape({-1})));
  }
  return loss;
}

// A folder that transformers wrote, and what it computes with it (tools/golden/encoders.py).
class EncoderVariant : public testing::TestWithParam<const char*> {};

TEST_P(EncoderVariant, GivesTransformersOutputs) {
  const TextModel model = load_text_model(encoder_folder(GetParam()));
  const io::Safetensors golden = expected_of(GetParam());
  for (const DType dtype : {DType::f32, DType::bf16}) {
    nn::Pass pass{.dtype = dtype};
    for (const auto& [name, value] : outputs_of(model, input_of(golden), pass)) {
      const Tensor expected = golden.get(name);
      const double tolerance = dtype == DType::f32 ? 1e-5 : 5e-2;
      if (value.rank() == 2) {
        expect_close(value, expected, tolerance, name);
        continue;
      }
      for (std::int64_t b = 0; b < value.size(0); ++b) {
        const std::int64_t length = golden.get("lengths").data<std::int64_t>()[b];
        expect_close(value.narrow(0, b, 1).narrow(1, 0, length), expected.narrow(0, b, 1).narrow(1, 0, length),
                     tolerance, name);
      }
    }
  }
}

TEST_P(EncoderVariant, HasTransformersLossAndGradients) {
  const TextModel model = load_text_model(encoder_folder(GetParam()));
  const io::Safetensors golden = expected_of(GetParam());
  for (const bool checkpoint : {false, true}) {
    model.net->parameters.zero_grad();
    nn::Pass pass{.checkpoint = checkpoint};
    autograd::Tape tape;
    const Tensor loss = loss_of(outputs_of(model, input_of(golden), pass), golden);
    EXPECT_NEAR(loss.item(), golden.get("loss").item(), 2e-5);
    tape.backward(loss);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const std::string name = "grad." + parameter.name;
      test::expect_gradient(autograd::grad(parameter.value), golden.get(name), 1e-4, parameter.name);
    }
  }
}

TEST_P(EncoderVariant, IsSavedToTheSameBitsAndFields) {
  const test::TemporaryFolder temporary;
  write_text_model(load_text_model(encoder_folder(GetParam())), temporary.path());
  const io::Safetensors before = io::Safetensors::open(encoder_folder(GetParam()) / "model.safetensors");
  const io::Safetensors after = io::Safetensors::open(temporary / "model.safetensors");
  ASSERT_EQ(std::set<std::string>(after.names().begin(), after.names().end()),
            std::set<std::string>(before.names().begin(), before.names().end()));
  for (const std::string& name : before.names()) {
    expect_close(after.get(name), before.get(name), 0, name);
  }
  EXPECT_EQ(io::read_json(temporary / "config.json"), io::read_json(encoder_folder(GetParam()) / "config.json"));
}

INSTANTIATE_TEST_SUITE_P(All, EncoderVariant,
                         testing::Values("bert_bare", "bert_pretraining", "bert_masked", "bert_classes", "bert_tokens",
                                         "distilbert_bare", "distilbert_masked", "distilbert_classes",
                                         "distilbert_tokens", "roberta_bare", "roberta_masked", "roberta_classes",
                                         "roberta_tokens", "gpt2_classes"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(EncoderNetwork, HasThePublishedSizes) {
  const auto parameters = [](const std::string& name, const std::string& architecture = "") {
    return create_text_model(name, {.architecture = architecture, .fill = nn::Fill::meta}).net->parameters.count();
  };
  EXPECT_EQ(parameters("bert-base-uncased"), 109'482'240);
  EXPECT_EQ(parameters("bert-base-uncased", "BertForPreTraining"), 110'106'428);
  EXPECT_EQ(parameters("bert-base-uncased", "BertForMaskedLM"), 109'514'298);
  EXPECT_EQ(parameters("bert-base-cased"), 108'310'272);
  EXPECT_EQ(parameters("bert-large-uncased"), 335'141'888);
  EXPECT_EQ(parameters("bert-tiny"), 4'385'920);
  EXPECT_EQ(parameters("distilbert-base-uncased"), 66'362'880);
  EXPECT_EQ(parameters("distilbert-base-uncased", "DistilBertForSequenceClassification"), 66'955'010);
  EXPECT_EQ(parameters("roberta-base"), 124'645'632);
  EXPECT_EQ(parameters("roberta-base", "RobertaForMaskedLM"), 124'697'433);
  EXPECT_EQ(parameters("roberta-large"), 355'359'744);
  EXPECT_EQ(parameters("all-MiniLM-L6-v2"), 22'713'216);
}

// The file of the original BERT calls the parameters of norms gamma and beta, and has copies of what is tied.
TEST(EncoderNetwork, ReadsOldFilesAndBareOnes) {
  const fs::path golden = encoder_folder("bert_masked");
  const io::Safetensors file = io::Safetensors::open(golden / "model.safetensors");
  const test::TemporaryFolder temporary;
  fs::copy(golden / "config.json", temporary / "config.json");
  io::NamedTensors old = {{"cls.predictions.decoder.weight", file.get("bert.embeddings.word_embeddings.weight")},
                          {"cls.predictions.decoder.bias", file.get("cls.predictions.bias")},
                          {"cls.seq_relationship.weight", Tensor::zeros({2, 8})},
                          {"bert.pooler.dense.weight", Tensor::zeros({8, 8})},
                          {"bert.embeddings.position_ids", Tensor::zeros({1, 12}, DType::i64)}};
  for (std::string name : file.names()) {
    const Tensor value = file.get(name);
    for (const auto& [present, before] : {std::pair("LayerNorm.weight", "gamma"), {"LayerNorm.bias", "beta"}}) {
      if (name.ends_with(present)) {
        name = name.substr(0, name.rfind('.') + 1) + before;
      }
    }
    old.emplace_back(name, value);
  }
  io::save_safetensors(temporary / "model.safetensors", old);
  const auto same = [](const TextModel& model, const fs::path& other) {
    const io::Safetensors source = io::Safetensors::open(other / "model.safetensors");
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const bool bare = !source.contains(parameter.name);
      expect_close(parameter.value, source.get(bare ? "bert." + parameter.name : parameter.name), 0, parameter.name);
    }
  };
  same(load_text_model(temporary.path()), golden);
  // A bare model takes the body of a larger one, and the other way round.
  same(load_text_model(encoder_folder("bert_pretraining"), {.architecture = "BertModel"}),
       encoder_folder("bert_pretraining"));
  const TextModel with_head = load_text_model(encoder_folder("bert_bare"), {.architecture = "BertForPreTraining"});
  const io::Safetensors bare = io::Safetensors::open(encoder_folder("bert_bare") / "model.safetensors");
  expect_close(with_head.net->parameters.at("bert.pooler.dense.weight").value, bare.get("pooler.dense.weight"), 0);
  EXPECT_EQ(test::relative_error(with_head.net->parameters.at("cls.predictions.bias").value, Tensor::zeros({24})), 0);
}

// Encoders for sentences are saved without the pooler, which they do not use; config.json does not say so.
TEST(EncoderNetwork, NeedsNoPoolerThatTheFileLacks) {
  const fs::path golden = encoder_folder("bert_bare");
  const io::Safetensors file = io::Safetensors::open(golden / "model.safetensors");
  const test::TemporaryFolder without;
  fs::copy(golden / "config.json", without / "config.json");
  io::NamedTensors kept;
  for (const std::string& name : file.names()) {
    if (!name.starts_with("pooler.")) {
      kept.emplace_back(name, file.get(name));
    }
  }
  io::save_safetensors(without / "model.safetensors", kept);
  const TextModel model = load_text_model(without.path());
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{1, 5, 7, 2}, {1, 4});
  nn::Pass pass;
  const TextOutputs outputs = model.net->run({.input_ids = ids}, pass);
  ASSERT_EQ(outputs.size(), 1U);
  expect_close(outputs[0].second, load_text_model(golden).net->run({.input_ids = ids}, pass)[0].second, 0);
  const test::TemporaryFolder saved;
  write_text_model(model, saved.path());
  EXPECT_EQ(load_text_model(saved.path(), {.fill = nn::Fill::meta}).net->parameters.find("pooler.dense.weight"),
            nullptr);
}

TEST(EncoderNetwork, StartsAsTransformersDoes) {
  const TextModel model = create_text_model(
      "distilbert-base-uncased", {.model_kwargs = R"({"n_layers": 1, "dim": 96, "sinusoidal_pos_embds": true})"});
  const nn::ParameterStore& parameters = model.net->parameters;
  expect_close(parameters.at("embeddings.position_embeddings.weight").value, nn::sine_positions(512, 96), 0);
  const auto deviation = [&](const std::string& name) {
    const Tensor value = parameters.at(name).value;
    return std::sqrt(ops::mean(value * value).item());
  };
  EXPECT_NEAR(deviation("embeddings.word_embeddings.weight"), 0.02, 1e-3);
  EXPECT_NEAR(deviation("transformer.layer.0.ffn.lin1.weight"), 0.02, 1e-3);
  EXPECT_EQ(deviation("transformer.layer.0.ffn.lin1.bias"), 0);
  EXPECT_EQ(deviation("embeddings.LayerNorm.weight"), 1);
}

TEST(EncoderNetwork, KeepsWhatFitsOfAnotherHead) {
  const fs::path folder = encoder_folder("bert_pretraining");
  const io::Safetensors file = io::Safetensors::open(folder / "model.safetensors");
  const TextModel masked = load_text_model(folder, {.architecture = "BertForMaskedLM"});
  expect_close(masked.net->parameters.at("cls.predictions.bias").value, file.get("cls.predictions.bias"), 0);
  const TextModel classes =
      load_text_model(folder, {.architecture = "BertForSequenceClassification", .labels = {"a", "b", "c", "d"}});
  expect_close(classes.net->parameters.at("bert.pooler.dense.bias").value, file.get("bert.pooler.dense.bias"), 0);
  EXPECT_EQ(classes.net->parameters.at("classifier.weight").value.shape(), (Shape{4, 8}));
  EXPECT_EQ(labels_of(classes), (std::vector<std::string>{"a", "b", "c", "d"}));
  // RoBERTa's heads for texts and for words have different layers of one name.
  for (const auto& [from, to] : {std::pair("roberta_classes", "RobertaForTokenClassification"),
                                 std::pair("roberta_tokens", "RobertaForSequenceClassification")}) {
    const TextModel other = load_text_model(encoder_folder(from), {.architecture = to, .labels = {"x", "y"}});
    EXPECT_EQ(classifier_of(other).num_labels(), 2) << to;
  }
  const TextModel others = load_text_model(encoder_folder("roberta_tokens"), {.labels = {"x", "y"}});
  EXPECT_EQ(classifier_of(others).num_labels(), 2);
  EXPECT_EQ(labels_of(load_text_model(encoder_folder("bert_classes"))),
            (std::vector<std::string>{"anger", "joy", "no idea"}));
  const test::TemporaryFolder temporary;
  write_text_model(classes, temporary.path());
  EXPECT_EQ(labels_of(load_text_model(temporary.path())), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(EncoderNetwork, NumbersItsLayersAndKnowsItsHead) {
  const TextModel model = load_text_model(encoder_folder("bert_classes"));
  EXPECT_EQ(model.net->depth(), 2);
  EXPECT_EQ(model.net->layer_of("bert.embeddings.token_type_embeddings.weight"), 0);
  EXPECT_EQ(model.net->layer_of("bert.encoder.layer.1.output.dense.bias"), 2);
  EXPECT_EQ(model.net->layer_of("bert.pooler.dense.bias"), 3);
  EXPECT_TRUE(model.net->is_head("classifier.bias"));
  EXPECT_FALSE(model.net->is_head("bert.encoder.layer.0.output.dense.bias"));
  // Two blocks of 9 tokens (4 maps of 8 x 8, two of 8 x 12, two products of attention, two norms), the first norm, the
  // pooler and three classes.
  EXPECT_EQ(model.net->flops(9), 2 * (9 * (4 * 64 + 2 * 96) + 2 * 9 * 9 * 8 + 2 * 5 * 72) + 5 * 72 + 64 + 24);
}

TEST(EncoderNetwork, SaysWhatIsWrong) {
  const auto created = [](const std::string& kwargs) {
    return error_of([&] { create_text_model("bert-tiny", {.model_kwargs = kwargs, .fill = nn::Fill::meta}); });
  };
  EXPECT_EQ(created(R"({"is_decoder": true})"),
            "bert-tiny with --model-kwargs: 'is_decoder': as a decoder, the model is not supported");
  EXPECT_EQ(created(R"({"tie_word_embeddings": false})"),
            "bert-tiny with --model-kwargs: 'tie_word_embeddings': a free head is not supported");
  EXPECT_EQ(created(R"({"num_attention_heads": 3})"),
            "bert-tiny with --model-kwargs: 'hidden_size' 128 cannot be divided among 3 heads");
  EXPECT_EQ(created(R"({"position_embedding_type": "relative_key"})"),
            "bert-tiny with --model-kwargs: 'position_embedding_type' must be 'absolute', but is 'relative_key'");
  EXPECT_EQ(error_of([] {
              create_text_model("roberta-base", {.model_kwargs = R"({"pad_token_id": 600})", .fill = nn::Fill::meta});
            }),
            "roberta-base with --model-kwargs: 'max_position_embeddings' 514 leaves no position behind 'pad_token_id' "
            "600");
  const TextModel bare = load_text_model(encoder_folder("distilbert_bare"));
  nn::Pass pass;
  const Tensor states = Tensor::zeros({1, 2, 8});
  const EncoderNetwork& net = encoder_of(bare);
  EXPECT_EQ(error_of([&] { net.pooled(states, {}, pass); }), "the model has no pooler");
  EXPECT_EQ(error_of([&] { net.masked_logits(states); }), "the model does not predict masked tokens");
  EXPECT_EQ(error_of([&] { net.next_sentence_logits(states, {}, pass); }),
            "the model does not predict whether a text follows another");
  EXPECT_EQ(error_of([&] { net.class_logits(states, {}, pass); }), "the model has no classes");
  EXPECT_EQ(error_of([&] { classifier_of(bare); }),
            "distilbert (DistilBertModel) has no classes: it encodes texts: `vitrail embed` takes it, and `vitrail "
            "fill-mask` if it predicts masked words");
  EXPECT_EQ(error_of([] { encoder_of(load_text_model(encoder_folder("gpt2"))); }),
            "gpt2 (GPT2LMHeadModel) is no encoder such as BERT");
  EXPECT_EQ(error_of([] {
              classifier_of(load_text_model(encoder_folder("gpt2_classes")))
                  .classify({.ids = Tensor::zeros({1, 2}, DType::i64), .lengths = Tensor::from<std::int64_t>({3}, {1})},
                            *std::make_unique<nn::Pass>());
            }),
            "text 0 has 3 of 2 tokens");
}

}  // namespace
}  // namespace vitrail::models
