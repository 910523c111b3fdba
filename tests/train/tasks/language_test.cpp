#include "vitrail/train/tasks/language.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/records.h"
#include "vitrail/train/tasks/registry.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A text of 600 letters in which the next one follows from the two before it.
LanguageOptions tiny_language(const fs::path& folder) {
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 60; ++i) {
    text << "abacadabra";
  }
  text.close();
  LanguageOptions options;
  options.data = (folder / "text.txt").string();
  options.output = (folder / "runs").string();
  options.experiment = "tiny";
  options.model_kwargs = R"({"n_layer": 2, "n_head": 2, "n_embd": 16})";
  options.block_size = 12;
  options.batch_size = 4;
  options.epochs = 8;
  options.lr = 1e-2;
  options.drop = 0.1;
  options.threads = 1;
  return options;
}

TEST(LanguageModelling, LearnsATextAndWritesIt) {
  const test::TemporaryFolder folder;
  LanguageOptions options = tiny_language(folder.path());
  options.drop = 0;
  options.epochs = 20;
  const FitResult result = fit(options);
  EXPECT_LT(result.figure("loss"), 0.3);
  EXPECT_NEAR(result.figure("perplexity"), std::exp(result.figure("loss")), 1e-9);
  for (const char* file : {"config.toml", "metrics.jsonl", "curves.svg", "samples.txt", "best/config.json",
                           "best/model.safetensors", "best/tokenizer.json", "last/train-state.safetensors"}) {
    EXPECT_TRUE(fs::exists(result.folder / file)) << file;
  }
  EXPECT_THAT(io::read_text(result.folder / "samples.txt"), HasSubstr("abacadabra"));
  const models::TextModel model = models::load_text_model(result.folder / "best");
  const text::Tokenizer tokenizer = text::load_tokenizer(result.folder / "best");
  EXPECT_EQ(models::language_of(model).vocab_size(), tokenizer.vocab_size());
  EXPECT_EQ(models::language_of(model).max_positions(), 12);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("cadab").ids), "cadab");
}

TEST(LanguageModelling, ResumesToTheSameBits) {
  for (const bool drawn : {false, true}) {
    const test::TemporaryFolder folder;
    LanguageOptions options = tiny_language(folder.path());
    options.epochs = 3;
    if (drawn) {
      options.epoch_steps = 7;
    }
    options.experiment = "whole";
    fit(options);
    options.experiment = "stopped";
    FitHooks hooks;
    std::int64_t seen = 0;
    hooks.on_step = [&](std::int64_t step, double) { seen = step; };
    hooks.should_stop = [&] { return seen >= 10; };
    EXPECT_TRUE(fit(options, hooks).stopped);
    fit(test::resumed<LanguageOptions>(fs::path(options.output) / "stopped"));
    const auto checksum = [&](const char* run) {
      return weights_checksum(*models::load_text_model(fs::path(options.output) / run / "last").net);
    };
    EXPECT_EQ(checksum("whole"), checksum("stopped"));
    EXPECT_EQ(task_kind_of_run(fs::path(options.output) / "stopped").name, "lm");
  }
}

// Without shuffling, blocks come in order: another program can repeat a run step by step.
TEST(LanguageModelling, TakesBlocksInOrderIfAsked) {
  const test::TemporaryFolder folder;
  LanguageOptions options = tiny_language(folder.path());
  options.epochs = 1;
  options.no_shuffle = true;
  options.val_share = 0;
  options.drop = 0;
  const std::unique_ptr<Task> task = options.make("");
  EXPECT_TRUE(task->figures().empty());
  EXPECT_EQ(task->batches().batches_per_epoch(), 49 / 4);  // (600 - 1) / 12 blocks, of which the last one is left out
  task->batches().start_epoch(0);
  ASSERT_EQ(task->next()->units, 48);
  nn::Pass pass;
  const double first = task->loss(pass).item();
  task->batches().start_epoch(1);
  task->next();
  EXPECT_EQ(task->loss(pass).item(), first);
}

TEST(LanguageModelling, GoesOnWithAFolder) {
  const test::TemporaryFolder folder;
  LanguageOptions options = tiny_language(folder.path());
  const FitResult first = fit(options);
  options.model = first.folder.string();
  options.model_kwargs = "{}";
  options.experiment = "more";
  options.epochs = 1;
  options.lr = 0;
  EXPECT_NEAR(fit(options).figure("loss"), first.best_metric, 1e-5);
}

TEST(LanguageModelling, SaysWhatCannotBe) {
  const test::TemporaryFolder folder;
  const LanguageOptions good = tiny_language(folder.path());
  const auto error = [&](auto&& change) {
    LanguageOptions options = good;
    change(options);
    return error_of([&] { options.make(""); });
  };
  EXPECT_THAT(error([&](LanguageOptions& o) {
                o.data = (folder / "empty.txt").string();
                std::ofstream(o.data) << "";
              }),
              HasSubstr("empty.txt: the text is empty"));
  EXPECT_THAT(error([&](LanguageOptions& o) {
                o.data = (folder / "latin.txt").string();
                std::ofstream(o.data) << "un\ncaf\xe9";
              }),
              HasSubstr("latin.txt: line 2 is not UTF-8: byte 4 of it is 0xe9"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.block_size = 700; }),
              HasSubstr("540 tokens for training are too few for a block of 700 and one more"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.val_share = 0.01; }),
              StartsWith("6 tokens to evaluate on are too few for a block of 12 and one more"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.model_kwargs = R"({"n_positions": 8})"; }),
              HasSubstr("--block-size 12 is more than the 8 positions of the model"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.tokenizer = "nowhere"; }), HasSubstr("nowhere"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.model_kwargs = R"({"vocab_size": 3})"; }),
              HasSubstr("the tokenizer has 6 tokens, but the model knows 3"));
}

}  // namespace
}  // namespace vitrail::train
