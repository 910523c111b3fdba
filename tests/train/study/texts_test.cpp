#include "vitrail/train/study/texts.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/text/corpus.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;

// A folder of sentence-transformers, and the vectors that it gives (tools/golden/sentences.py).
class SentenceVariant : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const { return golden_path("models/sentences") / GetParam(); }
  Tensor expected() const { return io::Safetensors::open(folder() / "expected.safetensors").get("embeddings"); }
  std::vector<std::string> texts() const { return io::lines_of(text::read_corpus((folder() / "texts.txt").string())); }
};

TEST_P(SentenceVariant, GivesTheVectorsOfSentenceTransformers) {
  const models::SentenceModel model = models::open_sentence_model(folder().string());
  const text::Tokenizer tokenizer = text::load_tokenizer(folder());
  for (const std::int64_t batch_size : {1, 3, 64}) {
    expect_close(embed_texts(model, tokenizer, texts(), {.batch_size = batch_size}), expected(), 1e-5);
  }
}

TEST_P(SentenceVariant, IsWrittenAndReadAgain) {
  const test::TemporaryFolder temporary;
  const models::SentenceModel model = models::open_sentence_model(folder().string());
  const text::Tokenizer tokenizer = text::load_tokenizer(folder());
  models::write_sentence_model(model, temporary.path());
  const models::SentenceModel again = models::open_sentence_model(temporary.path().string());
  EXPECT_EQ(again.max_seq_length, model.max_seq_length);
  EXPECT_EQ(again.pooling, model.pooling);
  EXPECT_EQ(again.normalized, model.normalized);
  expect_close(embed_texts(again, tokenizer, texts()), expected(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, SentenceVariant,
                         testing::Values("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(SentenceModel, CutsToItsOwnLengthAndPutsItsPromptInFront) {
  const fs::path golden = golden_path("models/sentences/mean");
  models::SentenceModel model = models::open_sentence_model(golden.string());
  const text::Tokenizer tokenizer = text::load_tokenizer(golden);
  EXPECT_EQ(model.max_seq_length, 12);  // not the 6 of tokenizer.json
  const std::vector<std::string> with = {"two dogs run"};
  const std::vector<std::string> without = {"dogs run"};
  const Tensor expected = embed_texts(model, tokenizer, with);
  model.prompt = "two ";
  expect_close(embed_texts(model, tokenizer, without), expected, 1e-6);
  const test::TemporaryFolder temporary;
  models::write_sentence_model(model, temporary.path());
  EXPECT_EQ(models::open_sentence_model(temporary.path().string()).prompt, "two ");
}

TEST(SentenceModel, IsAnyEncoderWithTheMeanOfItsTokens) {
  const models::SentenceModel model = models::open_sentence_model(golden_path("models/text/roberta_classes").string());
  EXPECT_EQ(model.pooling, models::SentencePooling::mean);
  EXPECT_EQ(model.max_seq_length, 12);
  EXPECT_FALSE(model.normalized);
  EXPECT_EQ(model.model.architecture, "RobertaModel");
}

TEST(SentenceModel, SaysWhatIsWrongWithAFolder) {
  const fs::path golden = golden_path("models/sentences/mean");
  const auto reading = [&](const std::string& file, const std::string& content) {
    const test::TemporaryFolder temporary;
    fs::copy(golden, temporary.path(), fs::copy_options::recursive);
    std::ofstream(temporary / file) << content;
    const std::string error = error_of([&] { models::open_sentence_model(temporary.path().string()); });
    const std::size_t at = error.find(file);
    return at == std::string::npos ? error : error.substr(at);
  };
  EXPECT_EQ(reading("modules.json", "{}"), "modules.json: a list of modules was expected");
  EXPECT_EQ(reading("modules.json", R"([{"path": "", "type": "a.Transformer"}])"),
            "modules.json: there is no 'Pooling'");
  EXPECT_EQ(reading("modules.json", R"([{"path": "", "type": "a.Transformer"}, {"path": "2", "type": "b.Dense"}])"),
            "modules.json: module 1 is 'Dense', but what is supported is 'Transformer', 'Pooling' and perhaps "
            "'Normalize', in this order");
  EXPECT_EQ(reading("modules.json", R"([{"path": "../x", "type": "a.Transformer"}])"),
            "modules.json: the path '../x' of a module leads out of the folder");
  EXPECT_EQ(reading("1_Pooling/config.json", R"({"pooling_mode": "median"})"),
            "1_Pooling/config.json: 'pooling_mode': there is no pooling 'median', only 'cls', 'max', 'mean', "
            "'mean_sqrt_len_tokens', 'weightedmean' and 'lasttoken'");
  EXPECT_EQ(reading("1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true})"),
            "1_Pooling/config.json: one kind of pooling is supported, not 2 joined");
  EXPECT_EQ(reading("1_Pooling/config.json", R"({"include_prompt": false})"),
            "1_Pooling/config.json: 'include_prompt' must be true: pooling without the prompt is not supported");
  EXPECT_EQ(reading("sentence_bert_config.json", R"({"max_seq_length": 0})"),
            "sentence_bert_config.json: 'max_seq_length' must be from 1 to 1048576, but is 0");
  EXPECT_EQ(reading("sentence_bert_config.json", R"({"do_lower_case": true})"),
            "sentence_bert_config.json: 'do_lower_case' is not supported: the tokenizer does that");
  EXPECT_EQ(error_of([] { models::open_sentence_model("gpt2"); }), "gpt2 (GPT2LMHeadModel) is no encoder such as BERT");
}

TEST(Texts, ArePackedAndCut) {
  const std::vector<TextIds> texts = {{{3, 4, 5}, {0, 1, 1}}, {{6}, {0}}};
  const std::vector<const TextIds*> both = {&texts[1], &texts[0]};
  const models::EncoderInput batch = packed_batch(both, true);
  EXPECT_EQ(batch.ids.shape(), (Shape{1, 4}));
  EXPECT_EQ(batch.ids.values(), (std::vector<float>{6, 3, 4, 5}));
  EXPECT_EQ(batch.types.values(), (std::vector<float>{0, 0, 1, 1}));
  EXPECT_EQ(batch.offsets.values(), (std::vector<float>{0, 1, 4}));
  EXPECT_FALSE(batch.lengths.defined());
  EXPECT_FALSE(packed_batch(both, false).types.defined());
  const std::vector<std::string> empty = {"a", ""};
  EXPECT_EQ(error_of([&] { encode_texts(text::byte_tokenizer(), empty); }), "text 2 has no tokens: ''");
  const std::vector<std::string> long_one = {"abcdef"};
  EXPECT_EQ(encode_texts(cutting_tokenizer(text::byte_tokenizer(), 4), long_one)[0].size(), 4);
}

TEST(Texts, GoInBatchesOfSentencesOrTokens) {
  std::vector<TextIds> texts;
  for (const std::size_t length : {3, 4, 1, 9, 2, 2}) {
    texts.push_back({std::vector<std::int64_t>(length, static_cast<std::int64_t>(length)), {}});
  }
  const auto batches = [&](const TextRunOptions& options) {
    std::vector<std::int64_t> counts;
    run_in_batches(
        texts, false, options, [](const models::EncoderInput& batch) { return batch.ids; },
        [&](const Tensor& ids, std::int64_t first, std::int64_t count) {
          EXPECT_EQ(first, std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
          EXPECT_EQ(ids.values().front(), texts[static_cast<std::size_t>(first)].size());
          EXPECT_EQ(ids.values().back(), texts[static_cast<std::size_t>(first + count - 1)].size());
          counts.push_back(count);
        });
    return counts;
  };
  EXPECT_EQ(batches({.batch_size = 4}), (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(batches({.batch_size = 1}), (std::vector<std::int64_t>(6, 1)));
  EXPECT_EQ(batches({.batch_tokens = 8}), (std::vector<std::int64_t>{3, 1, 2}));
  const TextRunOptions one{.batch_size = 1};
  EXPECT_THROW(run_in_batches(
                   texts, false, one, [](const models::EncoderInput&) -> Tensor { fail("no"); },
                   [](const Tensor&, std::int64_t, std::int64_t) {}),
               Error);
}

// What comes later waits for what is slow.
TEST(Texts, AreTakenInOrderWhicheverIsDoneFirst) {
  std::vector<TextIds> texts;
  for (std::int64_t i = 0; i < 40; ++i) {
    texts.push_back({{i}, {}});
  }
  std::vector<float> taken;
  run_in_batches(
      texts, false, {.batch_size = 1},
      [](const models::EncoderInput& batch) {
        std::this_thread::sleep_for(std::chrono::milliseconds(batch.ids.values()[0] == 0 ? 20 : 0));
        return batch.ids;
      },
      [&](const Tensor& ids, std::int64_t, std::int64_t) { taken.push_back(ids.values()[0]); });
  EXPECT_EQ(taken.size(), 40U);
  EXPECT_TRUE(std::ranges::is_sorted(taken));
}

TEST(Texts, HaveDocumentsBetweenBlankLines) {
  using Documents = std::vector<std::vector<std::string>>;
  EXPECT_EQ(text::documents_of("a\nb\n\n \t\n\nc\n"), (Documents{{"a", "b"}, {"c"}}));
  EXPECT_TRUE(text::documents_of("\n\n").empty());
}

TEST(Texts, HaveLines) {
  EXPECT_EQ(io::lines_of("a\r\n\nb"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(io::lines_of("a\n"), (std::vector<std::string>{"a"}));
  EXPECT_TRUE(io::lines_of("").empty());
}

}  // namespace
}  // namespace vitrail::train
