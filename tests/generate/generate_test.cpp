#include "vitrail/generate/generate.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/models/text/encoder_decoder.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::generate {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int64_t>;
using test::error_of;

Ids ids_of(const Tensor& x) {
  const std::span<const std::int64_t> values = x.span<std::int64_t>();
  return {values.begin(), values.end()};
}

// A sequence as transformers returns it: without what is filled in behind its end.
Ids without_filler(const Ids& ids, std::int64_t end) {
  const auto it = std::ranges::find(ids, end);
  return {ids.begin(), it == ids.end() ? it : it + 1};
}

// What transformers' generate() made of small models (tools/golden/language_models.py).
class Continuation : public testing::TestWithParam<const char*> {
 protected:
  Continuation()
      : folder_(test::golden_path("models/text") / GetParam()),
        expected_(io::Safetensors::open(folder_ / "expected.safetensors")),
        model_(models::load_text_model(folder_)) {
    const Ids first = ids_of(expected_.get("input_ids").select(0, 0).contiguous());
    prompt_.assign(first.begin(), first.begin() + 5);
    config_.max_new_tokens = 12;
    config_.eos_token_id = {3};
    config_.pad_token_id = 0;
  }

  std::vector<Sequence> continued(const GenerateOptions& options = {}) const {
    return generate(models::language_of(model_), prompt_, config_, options);
  }
  void expect(const std::string& name) const {
    const std::vector<Sequence> sequences = continued();
    const Tensor all = expected_.get(name);
    ASSERT_EQ(std::ssize(sequences), all.size(0)) << name;
    for (std::int64_t i = 0; i < all.size(0); ++i) {
      const Ids whole = ids_of(all.select(0, i).contiguous());
      EXPECT_EQ(sequences[static_cast<std::size_t>(i)].ids, without_filler({whole.begin() + 5, whole.end()}, 3))
          << name << ", sequence " << i;
    }
  }

  fs::path folder_;
  io::Safetensors expected_;
  models::TextModel model_;
  Ids prompt_;
  GenerationConfig config_;
};

TEST_P(Continuation, IsTransformersGreedySearch) { expect("greedy"); }

TEST_P(Continuation, IsTransformersGreedySearchWithPenalties) {
  config_.repetition_penalty = 1.3;
  config_.no_repeat_ngram_size = 2;
  config_.min_new_tokens = 4;
  config_.bad_words_ids = {{7}, {4, 9}};
  expect("greedy.penalized");
}

TEST_P(Continuation, IsTransformersBeamSearch) {
  config_.num_beams = 4;
  config_.num_return_sequences = 3;
  config_.length_penalty = 1.4;
  expect("beams.heuristic");
  config_.early_stopping = EarlyStopping::at_once;
  expect("beams.true");
  config_.early_stopping = EarlyStopping::never;
  expect("beams.never");
}

TEST_P(Continuation, IsTransformersBeamSearchWithPenalties) {
  config_.num_beams = 3;
  config_.length_penalty = 0;
  config_.repetition_penalty = 1.3;
  config_.no_repeat_ngram_size = 2;
  config_.min_new_tokens = 4;
  expect("beams.penalized");
}

class StoppedContinuation : public Continuation {};

TEST_P(StoppedContinuation, IsTransformersBeamSearch) {
  config_.num_beams = 4;
  config_.num_return_sequences = 3;
  config_.length_penalty = 0.2;
  const auto ends = [](std::int64_t token) { return token % 5 == 2; };
  const std::vector<Sequence> sequences =
      continued({.stop = [&](std::int64_t, std::span<const std::int64_t> ids) { return ends(ids.back()); }});
  const Tensor all = expected_.get("beams.stopped");
  ASSERT_EQ(std::ssize(sequences), all.size(0));
  for (std::int64_t i = 0; i < all.size(0); ++i) {
    Ids expected = ids_of(all.select(0, i).contiguous());
    expected.erase(expected.begin(), expected.begin() + 5);
    expected.erase(std::ranges::find_if(expected, ends) + 1, expected.end());  // the filler
    EXPECT_EQ(sequences[static_cast<std::size_t>(i)].ids, expected) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, StoppedContinuation, testing::Values("gpt2", "llama"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(All, Continuation,
                         testing::Values("bloom", "bloom_unusual", "gpt2", "gpt2_unusual", "imagegpt",
                                         "imagegpt_unusual", "llama", "llama3", "mistral", "qwen2"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

// Models with positions by name (tools/golden/text_positions.py): keys that are kept have the places that they had.
TEST(ContinuationWithPositions, IsTransformersSearch) {
  for (const char* name : {"none", "learn", "sincos", "rope", "alibi", "alibi_learn", "rel_bucket", "rel_bias"}) {
    const fs::path folder = test::golden_path("models/text_positions") / (std::string("gpt2_") + name);
    const io::Safetensors golden = io::Safetensors::open(folder / "expected.safetensors");
    const models::TextModel model = models::load_text_model(folder);
    const Ids first = ids_of(golden.get("input_ids").select(0, 0).contiguous());
    GenerationConfig config;
    config.max_new_tokens = 14;
    config.eos_token_id = {3};
    config.pad_token_id = 0;
    for (const char* search : {"greedy", "beams"}) {
      const Tensor all = golden.get(search);
      const std::vector<Sequence> sequences =
          generate(models::language_of(model), Ids(first.begin(), first.begin() + 5), config);
      ASSERT_EQ(std::ssize(sequences), all.size(0));
      for (std::int64_t i = 0; i < all.size(0); ++i) {
        const Ids whole = ids_of(all.select(0, i).contiguous());
        EXPECT_EQ(sequences[static_cast<std::size_t>(i)].ids, without_filler({whole.begin() + 5, whole.end()}, 3))
            << name << ", " << search << " " << i;
      }
      config.num_beams = 4;
      config.num_return_sequences = 3;
      config.length_penalty = 1.4;
    }
  }
}

TEST(TranslatingWithPositions, IsTransformersSearch) {
  for (const char* name : {"none", "learn", "sincos", "rope", "alibi_learn", "rel_bucket", "rel_bias"}) {
    const fs::path folder = test::golden_path("models/text_positions") / (std::string("marian_") + name);
    const io::Safetensors golden = io::Safetensors::open(folder / "expected.safetensors");
    const models::TextModel model = models::load_text_model(folder);
    GenerationConfig config;
    config.max_new_tokens = 14;
    config.decoder_start_token_id = 29;
    config.eos_token_id = {0};
    config.forced_eos_token_id = {0};
    config.pad_token_id = 29;
    const models::Translation translation(models::translator_of(model),
                                          {golden.get("input_ids"), models::lengths_of(golden.get("attention_mask"))},
                                          DType::f32);
    for (const char* search : {"greedy", "beams"}) {
      const Tensor all = golden.get(search);
      const auto sequences = generate_batch(translation, {{29}, {29}}, config);
      for (std::int64_t i = 0; i < 2; ++i) {
        const Ids whole = ids_of(all.select(0, i).contiguous());
        EXPECT_EQ(sequences[static_cast<std::size_t>(i)].front().ids,
                  without_filler({whole.begin() + 1, whole.end()}, 0))
            << name << ", " << search << " " << i;
      }
      config.num_beams = 4;
    }
  }
}

// Weights that are held for inference alone, and a cache in f32, change nothing.
TEST_P(Continuation, IsTheSameWithWeightsHeldForInference) {
  const std::vector<Sequence> wanted = continued();
  model_ = models::load_text_model(folder_, {.weights = DType::f32});
  EXPECT_EQ(continued({.cache_dtype = DType::f32})[0].ids, wanted[0].ids);
  expect("greedy");
  config_.num_beams = 4;
  config_.num_return_sequences = 3;
  config_.length_penalty = 1.4;
  expect("beams.heuristic");
}

TEST_P(Continuation, IsTheSameWithPromptLookup) {
  config_.eos_token_id = {};
  config_.max_new_tokens = 19;
  prompt_ = {7, 8, 9, 7, 8};
  for (const std::int64_t ngram : {1, 2, 3}) {
    EXPECT_EQ(continued({.prompt_lookup_num_tokens = 4, .max_matching_ngram_size = ngram})[0].ids, continued()[0].ids);
  }
  config_.do_sample = true;
  config_.temperature = 0.3;
  EXPECT_EQ(continued({.seed = 3, .prompt_lookup_num_tokens = 2})[0].ids, continued({.seed = 3})[0].ids);
  EXPECT_EQ(continued({.prompt_lookup_num_tokens = 2,
                       .stop = [](std::int64_t, std::span<const std::int64_t> ids) { return ids.size() == 4; }})[0]
                .ids.size(),
            4U);
}

TEST_P(Continuation, IsTheSameInContinuousBatches) {
  const std::vector<Ids> prompts = {{5, 6, 7, 8, 9}, {4}, {11, 12, 13}, {40, 41, 42, 43, 44, 45, 46}, {20, 21}, {4}};
  for (const std::int64_t beams : {1, 3}) {
    config_.num_beams = beams;
    for (const bool samples : {false, true}) {
      config_.do_sample = samples;
      config_.num_return_sequences = samples ? beams : 1;
      for (const std::int64_t batch : {1, 2, 8}) {
        Statistics statistics;
        const auto all = generate_all(models::language_of(model_), prompts, config_, batch, {.seed = 2}, &statistics);
        ASSERT_EQ(all.size(), prompts.size());
        std::int64_t tokens = 0;
        for (std::size_t i = 0; i < prompts.size(); ++i) {
          const auto alone = generate(models::language_of(model_), prompts[i], config_,
                                      {.seed = 2, .numbers = {static_cast<std::int64_t>(i)}});
          ASSERT_EQ(all[i].size(), alone.size());
          for (std::size_t j = 0; j < alone.size(); ++j) {
            EXPECT_EQ(all[i][j].ids, alone[j].ids) << "prompt " << i << ", batch " << batch << ", beams " << beams;
            tokens += std::ssize(alone[j].ids);
          }
        }
        EXPECT_EQ(statistics.all_new_tokens, tokens);
        EXPECT_EQ(all[1].front().ids == all[5].front().ids, !samples) << "equal prompts draw each by itself";
      }
    }
  }
}

// Keys and values in int8 and bf16 are close to those in f32: so are the logits behind a text that was read in pieces.
TEST_P(Continuation, KeepsItsCacheInFewerBits) {
  const models::LanguageBody& body = models::language_of(model_);
  const Tensor ids = Tensor::from(Ids{5, 6, 7, 8, 9, 10, 11, 12}, {2, 4});
  nn::Pass pass;
  const autograd::NoGrad no_grad;
  Tensor wanted;
  std::size_t bytes = 0;
  for (const auto& [dtype, tolerance] : {std::pair{DType::f32, 1e-5}, {DType::bf16, 2e-2}, {DType::i8, 3e-2}}) {
    const auto state = body.begin(dtype);
    body.forward_last(ids, pass, *state);
    body.forward_last(ids.narrow(1, 0, 1), pass, *state);
    const Tensor logits = body.forward_last(ids.narrow(1, 1, 2), pass, *state);
    if (!wanted.defined()) {
      wanted = body.forward(ops::concat({ids, ids.narrow(1, 0, 3)}, 1), pass).select(1, 6);
    }
    test::expect_close(logits, wanted, tolerance, std::string(name_of(dtype)));
    EXPECT_TRUE(bytes == 0 || state->bytes() <= bytes) << name_of(dtype);  // heads are so narrow that scales count
    bytes = state->bytes();
  }
}

// Where several fields say how long a text becomes (tools/golden/generation.py).
TEST(Lengths, AreThoseOfTransformers) {
  const models::TextModel model = models::load_text_model(test::golden_path("models/text/gpt2"));
  const nlohmann::json all = io::read_json(test::golden_path("generate/lengths.json"));
  ASSERT_EQ(all.size(), 7U);
  for (const nlohmann::json& one : all) {
    const GenerationConfig config = parse_generation_config(one["config"].dump(), "config");
    const std::vector<Sequence> found = generate(models::language_of(model), one["prompt"].get<Ids>(), config);
    EXPECT_EQ(found.front().ids, one["ids"].get<Ids>()) << one["name"];
  }
}

// The last token is forced where a text has to end, also if its limit is its own.
TEST(Lengths, ForceTheLastTokenOfEachText) {
  const models::TextModel model = models::load_text_model(test::golden_path("models/text/gpt2"));
  GenerationConfig config;
  config.max_length = 20;
  config.forced_eos_token_id = {3};
  const auto all = generate_all(models::language_of(model), {{5, 6}, {7, 8, 9}}, config, 2, {.limits = {4, 30}});
  EXPECT_EQ(std::ssize(all[0].front().ids), 4);
  EXPECT_EQ(all[0].front().ids.back(), 3);
  EXPECT_EQ(std::ssize(all[1].front().ids), 17);
  EXPECT_EQ(all[1].front().ids.back(), 3);
}

class Sampling : public Continuation {};

TEST_P(Sampling, DependsOnSeedAndSequenceAlone) {
  config_.do_sample = true;
  config_.temperature = 2;
  const std::vector<Sequence> one = continued({.seed = 5});
  config_.num_return_sequences = 4;
  const std::vector<Sequence> four = continued({.seed = 5});
  EXPECT_EQ(one[0].ids, four[0].ids);
  EXPECT_NE(four[0].ids, four[1].ids);
  EXPECT_NE(continued({.seed = 6})[0].ids, four[0].ids);
}

TEST_P(Sampling, EndsWhereItIsTold) {
  config_.eos_token_id = {};
  const Ids all = continued()[0].ids;
  ASSERT_EQ(std::ssize(all), 12);
  const std::vector<Sequence> stopped =
      continued({.stop = [](std::int64_t, std::span<const std::int64_t> ids) { return ids.size() == 4; }});
  EXPECT_EQ(stopped[0].ids, Ids(all.begin(), all.begin() + 4));
  int steps = 0;
  const std::vector<Sequence> interrupted = continued({.interrupted = [&] { return ++steps == 3; }});
  EXPECT_EQ(interrupted[0].ids, Ids(all.begin(), all.begin() + 3));
}

// With all positions in view, the next token is that of a text which begins in their middle.
TEST_P(Sampling, GoesOnBeyondThePositionsIfTold) {
  config_.eos_token_id = {};
  config_.max_new_tokens = 30;
  const Ids all = continued({.slides = true})[0].ids;
  ASSERT_EQ(std::ssize(all), 30);
  config_.max_new_tokens = 20;  // the last behind the 24 positions
  EXPECT_EQ(continued()[0].ids, Ids(all.begin(), all.begin() + 20));
  // The token after the first that has no place any more: 12 tokens are in view, of which it is the last.
  prompt_ = Ids(all.begin() + 8, all.begin() + 20);
  config_.max_new_tokens = 10;
  EXPECT_EQ(continued()[0].ids, Ids(all.begin() + 20, all.end()));
}

TEST_P(Sampling, ReadsOfALongPromptWhatWouldBeInView) {
  config_.eos_token_id = {};
  config_.max_new_tokens = 60;
  const Ids prompt = prompt_;
  const Ids all = continued({.slides = true})[0].ids;
  ASSERT_EQ(std::ssize(all), 60);
  for (const std::int64_t more : {18, 19, 20, 21, 31, 32, 33, 45}) {  // 24 positions, of which 12 are kept
    prompt_ = prompt;
    prompt_.insert(prompt_.end(), all.begin(), all.begin() + more);
    config_.max_new_tokens = 60 - more;
    EXPECT_EQ(continued({.slides = true})[0].ids, Ids(all.begin() + more, all.end())) << more;
  }
  EXPECT_THAT(error_of([&] { continued(); }), testing::HasSubstr("reads at most 24"));
}

TEST_P(Sampling, SaysWhatCannotBe) {
  const auto error = [&] { return error_of([&] { continued(); }); };
  config_.max_new_tokens = 21;
  EXPECT_EQ(
      error(),
      "a prompt of 5 tokens and 21 new ones are 26 in all, but the model reads at most 24, and the last new one is not "
      "read: at most 20 can be new");
  config_.max_new_tokens.reset();
  config_.max_length = 5;
  EXPECT_EQ(error(), "the prompt has 5 tokens, and max_length 5 leaves no room for new ones");
  config_.max_new_tokens = 4;
  config_.bad_words_ids = {{2, 50}};
  EXPECT_EQ(error(), "bad_words_ids names the token 50, but the vocabulary has the ids 0 … 49");
  config_.bad_words_ids = {};
  config_.max_new_tokens = 3;
  const Ids ids = continued()[0].ids;
  config_.eos_token_id = {70};  // which never comes, as is usual of models with fewer tokens than their tokenizer
  config_.pad_token_id = 50;
  config_.suppress_tokens = {99};
  EXPECT_EQ(continued()[0].ids, ids);
  prompt_.clear();
  EXPECT_EQ(error(), "there is nothing to continue: the prompt has no token");
}

INSTANTIATE_TEST_SUITE_P(All, Sampling, testing::Values("gpt2"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

// What transformers' generate() made of two sources at once (tools/golden/translation.py).
class Translating : public testing::TestWithParam<const char*> {
 protected:
  Translating()
      : folder_(test::golden_path("models/text") / GetParam()),
        expected_(io::Safetensors::open(folder_ / "expected.safetensors")),
        model_(models::load_text_model(folder_)),
        config_(read_generation_config(folder_)) {
    config_.bad_words_ids = {{start}};
    config_.max_length = 14;
  }

  // The translations of both sources, or of one of them.
  std::vector<std::vector<Sequence>> translated(std::optional<std::int64_t> source = std::nullopt,
                                                const GenerateOptions& options = {}) const {
    Tensor sources = expected_.get("input_ids");
    Tensor lengths = expected_.get("lengths");
    if (source) {
      const std::int64_t length = lengths.span<std::int64_t>()[static_cast<std::size_t>(*source)];
      sources = sources.narrow(0, *source, 1).narrow(1, 0, length).contiguous();
      lengths = {};
    }
    const models::Translation translation(models::translator_of(model_), {sources, lengths}, options.dtype);
    const std::vector<Ids> prompts(static_cast<std::size_t>(sources.size(0)), Ids{*config_.decoder_start_token_id});
    return generate_batch(translation, prompts, config_, options);
  }
  void expect(const std::string& name) const {
    const Tensor all = expected_.get(name);
    const std::vector<std::vector<Sequence>> both = translated();
    const std::int64_t each = all.size(0) / 2;
    for (std::int64_t i = 0; i < all.size(0); ++i) {
      const Ids whole = ids_of(all.select(0, i).contiguous());
      const auto source = static_cast<std::size_t>(i / each);
      const Sequence& sequence = both[source].at(static_cast<std::size_t>(i % each));
      EXPECT_EQ(sequence.ids, without_filler({whole.begin() + 1, whole.end()}, end)) << name << ", sequence " << i;
      if (config_.num_beams > 1) {
        EXPECT_NEAR(sequence.score, expected_.get(name + ".scores").values()[static_cast<std::size_t>(i)], 1e-4);
      }
      const Sequence alone = translated(i / each).front().at(static_cast<std::size_t>(i % each));
      EXPECT_EQ(sequence.ids, alone.ids) << name << ", sequence " << i;
    }
  }

  static constexpr std::int64_t start = 49;
  static constexpr std::int64_t end = 0;
  fs::path folder_;
  io::Safetensors expected_;
  models::TextModel model_;
  GenerationConfig config_;
};

TEST_P(Translating, IsTransformersGreedySearch) {
  EXPECT_EQ(config_.forced_eos_token_id, Ids{end});
  expect("greedy");
  config_.max_new_tokens = 4;
  expect("greedy.short");
}

TEST_P(Translating, IsTransformersGreedySearchWithPenaltiesAndForcedTokens) {
  config_.forced_bos_token_id = 11;
  expect("greedy.forced");
  config_.forced_bos_token_id.reset();
  config_.repetition_penalty = 1.3;
  config_.no_repeat_ngram_size = 2;
  config_.min_new_tokens = 4;
  config_.bad_words_ids = {{start}, {7}, {4, 9}};
  expect("greedy.penalized");
}

TEST_P(Translating, IsTransformersBeamSearch) {
  config_.num_beams = 4;
  config_.num_return_sequences = 3;
  config_.length_penalty = 1.4;
  expect("beams.heuristic");
  config_.early_stopping = EarlyStopping::at_once;
  expect("beams.true");
  config_.early_stopping = EarlyStopping::never;
  expect("beams.never");
}

TEST_P(Translating, IsTransformersBeamSearchWithPenaltiesAndForcedTokens) {
  config_.num_beams = 5;
  config_.length_penalty = 0.6;
  config_.max_length = 8;
  expect("beams.short");
  config_.max_length = 14;
  config_.num_beams = 3;
  config_.length_penalty = 0;
  config_.repetition_penalty = 1.3;
  config_.no_repeat_ngram_size = 2;
  config_.min_new_tokens = 4;
  config_.forced_bos_token_id = 11;
  expect("beams.penalized");
}

// Wu et al. 2016, eq. 14: the score of a sequence is its log-probability over ((5 + n) / 6)^α.
TEST_P(Translating, DividesByTheLengthAsItIsTold) {
  config_.num_beams = 4;
  config_.num_return_sequences = 4;
  config_.early_stopping = EarlyStopping::never;
  config_.length_penalty = 0;
  const std::vector<Sequence> plain = translated(0).front();
  config_.length_penalty = 0.8;
  const std::vector<Sequence> divided = translated(0, {.penalty = LengthPenalty::wu}).front();
  int compared = 0;
  for (const Sequence& one : divided) {
    for (const Sequence& other : plain) {
      if (one.ids == other.ids) {
        EXPECT_NEAR(one.score, other.score / std::pow((5.0 + static_cast<double>(one.ids.size())) / 6, 0.8), 1e-5);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 0);
}

TEST_P(Translating, DrawsForEachSourceByItself) {
  config_.do_sample = true;
  config_.temperature = 3;
  config_.num_return_sequences = 2;
  config_.forced_eos_token_id = {};
  const auto both = translated({}, {.seed = 3});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0][0].ids, translated(0, {.seed = 3})[0][0].ids);
  EXPECT_NE(both[0][0].ids, both[0][1].ids);
}

INSTANTIATE_TEST_SUITE_P(All, Translating, testing::Values("marian", "marian_separate", "marian_free_head"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(GenerateBatch, SaysWhatCannotBeContinuedTogether) {
  const models::TextModel model = models::load_text_model(test::golden_path("models/text/gpt2"));
  const models::LanguageBody& body = models::language_of(model);
  GenerationConfig config;
  config.max_new_tokens = 2;
  EXPECT_EQ(error_of([&] {
              generate_batch(body, {{1, 2}, {3}}, config);
            }),
            "prompts of 2 and 1 tokens cannot be continued together");
  EXPECT_TRUE(generate_batch(body, {}, config).empty());
  const auto both = generate_batch(body, {{1, 2}, {3, 4}}, config);
  EXPECT_EQ(both[1][0].ids, generate(body, {3, 4}, config)[0].ids);
}

}  // namespace
}  // namespace vitrail::generate
