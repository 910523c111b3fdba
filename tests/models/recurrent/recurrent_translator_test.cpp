#include "vitrail/models/recurrent/recurrent_translator.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/models/text/text_model.h"

namespace vitrail::models {
namespace {

using test::error_of;
using test::expect_close;
using ::testing::HasSubstr;

TextModel small_translator(const std::string& name, nlohmann::json kwargs = {}, double drop = 0) {
  kwargs.update({{"vocab_size", 11}, {"hidden_size", 6}}, true);
  return create_text_model(name, {.model_kwargs = kwargs.dump(), .drop = drop});
}

// Of all cells and with several layers, each text of a batch is translated as it would be alone.
TEST(RecurrentTranslator, TranslatesTextsOfUnequalLengthByAnyCell) {
  const auto row = [](const std::vector<std::int64_t>& ids) { return Tensor::from(ids, {1, std::ssize(ids)}); };
  const std::vector<std::vector<std::int64_t>> sources = {{1, 2}, {3, 4, 5, 6, 7}, {8}};
  const std::vector<std::vector<std::int64_t>> targets = {{1, 9, 8}, {2}, {3, 7, 6, 5}};
  const Texts all_sources{row({1, 2, 3, 4, 5, 6, 7, 8}), {}, Tensor::from<std::int64_t>({0, 2, 7, 8}, {4})};
  const Texts all_targets{row({1, 9, 8, 2, 3, 7, 6, 5}), {}, Tensor::from<std::int64_t>({0, 3, 4, 8}, {4})};
  for (const char* cell : {"rnn", "lstm", "gru", "mut3", "nas"}) {
    for (const char* name : {"lstm_seq2seq", "gru_bahdanau"}) {
      const TextModel model = small_translator(name, {{"architecture", cell}, {"num_layers", 2}});
      nn::Pass pass;
      const Tensor logits = translator_of(model).forward(all_sources, all_targets, pass);
      ASSERT_EQ(logits.shape(), Shape({1, 8, 11}));
      std::int64_t at = 0;
      for (std::size_t s = 0; s < 3; ++s) {
        const Tensor alone = translator_of(model).forward({row(sources[s])}, {row(targets[s])}, pass);
        expect_close(logits.narrow(1, at, alone.size(1)).contiguous(), alone, 1e-6, std::string(cell) + " " + name);
        at += alone.size(1);
      }
    }
  }
}

TEST(RecurrentTranslator, RecordsWhereItLooks) {
  const TextModel model = small_translator("lstm_bahdanau");
  EXPECT_TRUE(translator_of(model).has_attention());
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  const Tensor sources = Tensor::from<std::int64_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor mask = Tensor::from<std::int64_t>({1, 1, 1, 1, 1, 0}, {2, 3});
  const Tensor targets = Tensor::from<std::int64_t>({7, 8, 9, 10}, {2, 2});
  model.net->run({.input_ids = sources, .attention_mask = mask, .decoder_input_ids = targets}, pass);
  ASSERT_EQ(recorder.attention().size(), 1U);
  const nn::Recorded& record = recorder.attention()[0];
  EXPECT_EQ(record.name, "decoder.attention");
  EXPECT_EQ(model.net->attention_kind(record.name), TextAttentionKind::cross);
  ASSERT_EQ(record.value.shape(), Shape({2, 1, 2, 3}));
  const std::vector<float> p = record.value.values();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(p[3 * i] + p[3 * i + 1] + p[3 * i + 2], 1, 1e-6);
    EXPECT_GT(p[3 * i], 0);
  }
  EXPECT_EQ(p[8], 0);
  EXPECT_EQ(p[11], 0);
  EXPECT_FALSE(translator_of(small_translator("lstm_seq2seq")).has_attention());
}

TEST(RecurrentTranslator, DropsInTrainingAlone) {
  const TextModel model = small_translator("lstm_bahdanau", {}, 0.5);
  const Tensor ids = Tensor::from<std::int64_t>({1, 2, 3}, {1, 3});
  nn::Pass plain;
  nn::Pass training{.training = true, .random = RandomStream(1)};
  const Tensor before = translator_of(model).forward({ids}, {ids}, plain);
  EXPECT_GT(test::relative_error(translator_of(model).forward({ids}, {ids}, training), before), 1e-3);
  expect_close(translator_of(model).forward({ids}, {ids}, plain), before, 0);
}

TEST(RecurrentTranslator, CountsItsLayersAndProducts) {
  const TextModel model = small_translator("lstm_bahdanau", {{"num_layers", 2}});
  EXPECT_EQ(model.net->depth(), 4);
  EXPECT_EQ(model.net->layer_of("encoder.embedding.weight"), 0);
  EXPECT_EQ(model.net->layer_of("encoder.rnn.weight_hh_l1_reverse"), 2);
  EXPECT_EQ(model.net->layer_of("bridge.h.1.weight"), 3);
  EXPECT_EQ(model.net->layer_of("decoder.attention.Wa.weight"), 3);
  EXPECT_EQ(model.net->layer_of("decoder.rnn.weight_ih_l1"), 4);
  EXPECT_EQ(model.net->layer_of("decoder.readout.weight"), 5);
  EXPECT_EQ(model.net->layer_of("decoder.out.bias"), 5);
  EXPECT_TRUE(model.net->is_head("decoder.out.bias"));
  // An encoder in two directions, a decoder, and a head of 11 · 6.
  const TextModel plain = small_translator("gru_seq2seq", {{"num_layers", 1}});
  const std::int64_t cell = 3 * 6 * 12;
  EXPECT_EQ(plain.net->flops(5), 5 * (2 * cell + 66));
}

TEST(RecurrentTranslator, SaysWhatCannotBe) {
  const auto creating = [](const nlohmann::json& kwargs) {
    return error_of([&] { small_translator("lstm_seq2seq", kwargs); });
  };
  EXPECT_THAT(creating({{"attention", "badhanau"}}), HasSubstr("bahdanau"));
  EXPECT_THAT(creating({{"decoder_vocab_size", 9}, {"share_encoder_decoder_embeddings", false}, {"embedding_size", 4}}),
              HasSubstr("embedding_size 4 to be the size of the state, 6"));
  EXPECT_THAT(creating({{"attention_size", 4}}), HasSubstr("has no field 'attention_size'"));
  const TextModel model = small_translator("lstm_bahdanau");
  nn::Pass pass;
  const Tensor two = Tensor::from<std::int64_t>({1, 2}, {1, 2});
  EXPECT_EQ(error_of([&] {
              translator_of(model).forward({two}, {Tensor::from<std::int64_t>({1, 11}, {1, 2})}, pass);
            }),
            "token 1 of text 0 is 11, but the vocabulary has the ids 0 … 10");
  EXPECT_THAT(error_of([&] { language_of(model); }), HasSubstr("does not continue texts"));
}

}  // namespace
}  // namespace vitrail::models
