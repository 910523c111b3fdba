#include "vitrail/train/tasks/translate.h"

#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/train/ranked.h"
#include "tests/train/tiny.h"
#include "vitrail/generate/translate.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/records.h"
#include "vitrail/train/study/sentence_pairs.h"
#include "vitrail/train/tasks/registry.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

// Sentences of two to four numbers and their translations, in two files of `count` lines.
void write_numbers(const fs::path& folder, const std::string& name, int count, int first) {
  const std::vector<std::pair<std::string, std::string>> words = {
      {"eins", "one"}, {"zwei", "two"}, {"drei", "three"}, {"vier", "four"}, {"acht", "eight"}};
  std::ofstream german(folder / (name + ".de"));
  std::ofstream english(folder / (name + ".en"));
  for (int i = first; i < first + count; ++i) {
    std::string source;
    std::string target;
    for (int rest = i; rest > 0; rest /= 5) {
      const auto& [from, to] = words[static_cast<std::size_t>(rest % 5)];
      source += (source.empty() ? "" : " ") + from;
      target += (target.empty() ? "" : " ") + to;
    }
    german << source << "\n";
    english << target << "\n";
  }
}

TranslationOptions tiny_translation(const fs::path& folder) {
  write_numbers(folder, "train", 200, 5);
  write_numbers(folder, "val", 20, 130);
  TranslationOptions options;
  options.src = (folder / "train.de").string();
  options.tgt = (folder / "train.en").string();
  options.val_src = (folder / "val.de").string();
  options.val_tgt = (folder / "val.en").string();
  options.output = (folder / "runs").string();
  options.experiment = "tiny";
  options.vocab_size = 28;
  options.model_kwargs = R"({"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
                             "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
                             "max_position_embeddings": 40})";
  options.max_length = 40;
  options.batch_size = 150;
  options.epochs = 3;
  options.drop = 0.1;
  options.lr = 5e-3;
  options.warmup_steps = 20;
  options.threads = 1;
  return options;
}

TEST(LearningToTranslate, TranslatesAndIsSavedAsAMarianModel) {
  const test::TemporaryFolder folder;
  TranslationOptions options = tiny_translation(folder.path());
  options.epochs = 60;
  options.val_interval = 60;
  options.drop = 0;
  options.ema.decay = 0.9;
  const FitResult result = fit(options);
  EXPECT_GT(result.figure("bleu"), 90);
  EXPECT_LT(result.figure("loss"), 0.2);
  for (const char* file : {"config.toml", "metrics.jsonl", "curves.svg", "translations.txt", "best/config.json",
                           "best/model.safetensors", "best/source.spm", "best/target.spm", "best/vocab.json",
                           "best/generation_config.json", "last/train-state.safetensors"}) {
    EXPECT_TRUE(fs::exists(result.folder / file)) << file;
  }
  const fs::path best = result.folder / "best";
  const models::TextModel model = models::load_text_model(best);
  EXPECT_EQ(model.architecture, "MarianMTModel");
  const nlohmann::json config = io::read_json(best / "config.json");
  EXPECT_EQ(config["vocab_size"], 28);
  EXPECT_EQ(config["decoder_start_token_id"], 27);
  EXPECT_EQ(config["pad_token_id"], 27);
  EXPECT_EQ(config["eos_token_id"], 0);
  for (const char* kept : {"best", "last"}) {  // CTranslate2 begins translations with zeros instead
    const Tensor embedding =
        io::Safetensors::open(result.folder / kept / "model.safetensors").get("model.shared.weight");
    EXPECT_EQ(embedding.select(0, 27).contiguous().values(),
              std::vector<float>(static_cast<std::size_t>(embedding.size(1))))
        << kept;
    EXPECT_NE(embedding.select(0, 26).contiguous().values()[0], 0);
  }
  const std::vector<std::string> lines = {"drei eins acht", "", "zwei drei"};
  const auto translated = generate::translate(models::translator_of(model), text::load_tokenizer(best),
                                              generate::read_generation_config(best), lines);
  EXPECT_EQ(translated[0].best[0].text, "three one eight");
  EXPECT_EQ(translated[1].best[0].text, "");
  EXPECT_EQ(translated[2].best[0].text, "two three");
  EXPECT_THAT(io::read_text(result.folder / "translations.txt"), HasSubstr("three"));
}

TEST(LearningToTranslate, TrainsRecurrentNetworks) {
  const test::TemporaryFolder folder;
  TranslationOptions options = tiny_translation(folder.path());
  options.model = "lstm_bahdanau";
  options.model_kwargs = R"({"hidden_size": 32})";
  options.lr = 1e-2;
  options.schedule.sched = "cosine";
  options.epochs = 40;
  options.val_interval = 40;
  options.drop = 0;
  options.ema.decay = 0.9;
  const FitResult result = fit(options);
  EXPECT_GT(result.figure("bleu"), 90);
  const fs::path best = result.folder / "best";
  const models::TextModel model = models::load_text_model(best);
  EXPECT_EQ(model.architecture, "RecurrentForConditionalGeneration");
  generate::TranslateOptions how;
  how.alignment = true;
  const std::vector<std::string> lines = {"drei eins acht"};
  const auto translated = generate::translate(models::translator_of(model), text::load_tokenizer(best),
                                              generate::read_generation_config(best), lines, how);
  EXPECT_EQ(translated[0].best[0].text, "three one eight");
  EXPECT_EQ(translated[0].best[0].alignment.size(), translated[0].best[0].ids.size());
}

TEST(LearningToTranslate, ResumesToTheSameBits) {
  const test::TemporaryFolder folder;
  TranslationOptions options = tiny_translation(folder.path());
  options.val_interval = 10;
  options.experiment = "whole";
  fit(options);
  options.experiment = "stopped";
  test::fit_in_two_parts(options, 13);
  const auto checksum = [&](const char* run) {
    return weights_checksum(*models::load_text_model(fs::path(options.output) / run / "last").net);
  };
  EXPECT_EQ(checksum("whole"), checksum("stopped"));
  EXPECT_EQ(io::read_text(fs::path(options.output) / "whole/best/vocab.json"),
            io::read_text(fs::path(options.output) / "stopped/best/vocab.json"));
  EXPECT_EQ(task_kind_of_run(fs::path(options.output) / "stopped").name, "translate");
}

TEST(LearningToTranslate, GoesOnWithAFolderAndItsTokenizer) {
  const test::TemporaryFolder folder;
  TranslationOptions options = tiny_translation(folder.path());
  options.model_ema = false;
  options.eval_metric = "loss";
  const FitResult first = fit(options);
  options.model = first.folder.string();
  options.model_kwargs = "{}";
  options.experiment = "more";
  options.epochs = 1;
  options.lr = 0;
  EXPECT_NEAR(fit(options).figure("loss"), first.best_metric, 1e-5);
  options.tokenizer = (first.folder / "best/source.spm").string();
  options.experiment = "same";
  EXPECT_NEAR(fit(options).figure("loss"), first.best_metric, 1e-5);
}

TEST(LearningToTranslate, SaysWhatCannotBe) {
  const test::TemporaryFolder folder;
  const TranslationOptions good = tiny_translation(folder.path());
  const auto error = [&](auto&& change) {
    TranslationOptions options = good;
    change(options);
    return error_of([&] {
      validate(options);
      options.make("");
    });
  };
  const auto file = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder / name) << content;
    return (folder / name).string();
  };
  EXPECT_EQ(
      error([](TranslationOptions& o) { o.tgt = ""; }),
      "translate wants --src and --tgt, a text and its translation line by line, or a table of both: .tsv, .csv or "
      ".jsonl");
  EXPECT_EQ(error([](TranslationOptions& o) { o.val_tgt = ""; }),
            "--val-src and --val-tgt belong together, unless --val-src is a table of pairs: .tsv, .csv or .jsonl");
  EXPECT_THAT(error([&](TranslationOptions& o) {
                o.src = file("long.de", "a\nb\nc\n");
                o.tgt = file("short.en", "a\nb\n");
              }),
              HasSubstr("long.de' has 3 lines, but '" + (folder / "short.en").string() + "' has 2: line 3 of '" +
                        (folder / "long.de").string() + "' has no counterpart"));
  EXPECT_THAT(error([&](TranslationOptions& o) {
                o.src = file("latin.de", "ja\nsch\xf6n\n");
                o.tgt = file("latin.en", "yes\nnice\n");
              }),
              HasSubstr("latin.de: line 2 is not UTF-8: byte 4 of it is 0xf6"));
  EXPECT_THAT(error([&](TranslationOptions& o) { o.src = file("empty.de", ""); }),
              HasSubstr("empty.de: the text is empty"));
  EXPECT_THAT(error([&](TranslationOptions& o) {
                o.src = file("one.de", "a\n \n");
                o.tgt = file("one.en", "\nb\n");
              }),
              HasSubstr("have no pair of lines that are not empty"));
  EXPECT_THAT(error([](TranslationOptions& o) { o.vocab_size = 4000; }), HasSubstr("sentencepiece cannot learn 4000"));
  EXPECT_THAT(error([](TranslationOptions& o) { o.model = "gpt2"; }), HasSubstr("gpt2"));
  EXPECT_THAT(error([](TranslationOptions& o) { o.max_length = 2; }), HasSubstr("see --max-length"));
  EXPECT_THAT(error([](TranslationOptions& o) { o.tokenizer = "nowhere.spm"; }), HasSubstr("nowhere.spm"));
}

SentencePairs number_pairs(const fs::path& folder) {
  write_numbers(folder, "train", 60, 5);
  const text::ParallelText text =
      text::read_parallel_text((folder / "train.de").string(), (folder / "train.en").string());
  return {text, text::byte_tokenizer(), text::byte_tokenizer(), {.start = 0, .end = 10, .padding = 1}, 100, 1};
}

TEST(SentencePairs, TakesEachPairOnceAnEpochInBatchesOfAboutEqualSize) {
  const test::TemporaryFolder folder;
  const SentencePairs pairs = number_pairs(folder.path());
  for (const std::int64_t tokens : {1, 40, 100, 100'000}) {
    const data::EpochPlan plan = pairs.plan(tokens, true, 3);
    const std::size_t batches = plan(0).size();
    EXPECT_EQ(batches, plan(1).size());
    EXPECT_NE(plan(0).front().front().index, plan(1).front().front().index);
    std::vector<bool> seen(60, false);
    for (const std::vector<data::Pick>& picks : plan(2)) {
      EXPECT_FALSE(picks.empty());
      const PairBatch batch = pairs.begin({.picks = picks});
      EXPECT_LE(batch.tokens, std::max<std::int64_t>(tokens, 1) + 25);
      for (const data::Pick& pick : picks) {
        EXPECT_FALSE(seen[static_cast<std::size_t>(pick.index)]);
        seen[static_cast<std::size_t>(pick.index)] = true;
      }
    }
    EXPECT_TRUE(std::ranges::all_of(seen, [](bool one) { return one; }));
    EXPECT_EQ(pairs.plan(tokens, false, 3)(5).front().front().index, 0);
  }
}

TEST(SentencePairs, LaysTextsIntoRowsWithFillersBehindThem) {
  const test::TemporaryFolder folder;
  const SentencePairs pairs = number_pairs(folder.path());
  // "eins zwei" (5 in base 5, the lowest digit first) and "zwei zwei"
  const PairBatch batch = pairs.begin({.picks = {{0, 0}, {1, 0}}});
  const auto values = [](const Tensor& x) {
    const std::span<const std::int64_t> all = x.span<std::int64_t>();
    return std::vector<std::int64_t>(all.begin(), all.end());
  };
  EXPECT_EQ(batch.tokens, 14);
  EXPECT_EQ(values(batch.sources.offsets), (std::vector<std::int64_t>{0, 9, 18, 64}));
  EXPECT_EQ(values(batch.targets.offsets), (std::vector<std::int64_t>{0, 7, 14, 64}));
  const std::vector<std::int64_t> read = values(batch.targets.ids);
  const std::vector<std::int64_t> labels = values(batch.labels);
  EXPECT_EQ(read[0], 0);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(labels[i], "one two"[i]);
    EXPECT_EQ(read[i + 1], labels[i]);
  }
  EXPECT_EQ(labels[6], 'o');
  EXPECT_EQ(read[7], 0);
  EXPECT_EQ(labels[14], -100);
  EXPECT_EQ(read[63], 1);
}

TEST(LearningToTranslate, SharesItsEvaluation) {
  const test::TemporaryFolder folder;
  test::expect_shared_evaluations(tiny_translation(folder.path()));
}

}  // namespace
}  // namespace vitrail::train
