#include "vitrail/train/tasks/language.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/dist/thread_ranks.h"
#include "tests/support/errors.h"
#include "tests/train/tasks/own_losses.h"
#include "tests/train/tiny.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/tensor/allocator.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/train.h"
#include "vitrail/train/run/records.h"
#include "vitrail/train/tasks/registry.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::AllOf;
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

// Documents of unequal lengths, of which some are longer than a block.
LanguageOptions tiny_documents(const fs::path& folder) {
  LanguageOptions options = tiny_language(folder);
  std::ofstream text(folder / "text.txt");
  for (const int length : {9, 3, 30, 12, 5, 1, 7, 20, 4, 11, 6, 8}) {
    text << std::string("abacadabraabacadabraabacadabra").substr(0, static_cast<std::size_t>(length)) << "\n\n";
  }
  text.close();
  options.documents = true;
  return options;
}

TEST(LanguageModelling, ReadsEachDocumentByItself) {
  const test::TemporaryFolder folder;
  LanguageOptions options = tiny_documents(folder.path());
  options.drop = 0;
  options.no_shuffle = true;
  options.val_share = 0;
  for (const char* model : {"gpt2", "smollm2-135m", "gru"}) {
    options.model = model;
    options.model_kwargs = std::string(model) == "gru" ? R"({"hidden_size": 8, "num_layers": 2})"
                           : std::string(model) == "gpt2"
                               ? R"({"n_layer": 2, "n_head": 2, "n_embd": 16})"
                               : R"({"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2,
                                     "num_key_value_heads": 1, "intermediate_size": 24})";
    options.batch_tokens = 1;  // a document, or a part of one
    const std::unique_ptr<Task> alone = options.make("");
    EXPECT_EQ(alone->batches().batches_per_epoch(), 16);  // three are longer than a block, one longer than two
    options.batch_tokens = 40;
    const std::unique_ptr<Task> together = options.make("");
    EXPECT_EQ(together->batch_items(), "tokens");
    test::expect_sums(*together, *alone);
  }
}

// The end of a text is a token where the tokenizer has one: then it stands before and behind each document.
TEST(LanguageModelling, PutsTheEndOfTextAroundDocuments) {
  const test::TemporaryFolder folder;
  LanguageOptions options = tiny_documents(folder.path());
  text::TokenizerTraining training;
  training.vocab_size = 264;
  training.special_tokens = {"<|endoftext|>"};
  const std::vector<std::string> texts = {"abacadabra"};
  fs::create_directories(folder / "tokenizer");
  text::train_byte_level_bpe(texts, training).save(folder / "tokenizer");
  options.tokenizer = (folder / "tokenizer").string();
  options.val_share = 0.3;
  options.batch_size = 2;
  options.epochs = 2;
  const FitResult result = fit(options);
  const models::TextModel model = models::load_text_model(result.folder / "best");
  EXPECT_THAT(model.config, HasSubstr(R"("eos_token_id":0)"));
  EXPECT_GT(result.figure("bits_per_character"), 0);
  options.epoch_steps = 3;
  EXPECT_EQ(error_of([&] { validate(options); }),
            "--documents reads each document by itself: it goes with neither --bptt nor --epoch-steps");
  options.documents = false;
  options.batch_tokens = 10;
  EXPECT_EQ(error_of([&] { validate(options); }),
            "--batch-tokens goes with --documents: blocks have --block-size tokens each");
}

TEST(LanguageModelling, ResumesToTheSameBits) {
  for (const std::string parts : {"blocks", "drawn blocks", "documents"}) {
    const test::TemporaryFolder folder;
    LanguageOptions options = parts == "documents" ? tiny_documents(folder.path()) : tiny_language(folder.path());
    options.epochs = 3;
    if (parts == "drawn blocks") {
      options.epoch_steps = 7;
    } else if (parts == "documents") {
      options.batch_tokens = 20;
    }
    options.experiment = "whole";
    fit(options);
    options.experiment = "stopped";
    test::fit_in_two_parts(options, 10);
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

LanguageOptions tiny_recurrent(const fs::path& folder, const std::string& model) {
  LanguageOptions options = tiny_language(folder);
  options.model = model;
  options.model_kwargs = R"({"hidden_size": 16, "num_layers": 1})";
  options.block_size.reset();
  options.bptt = 9;
  options.drop = 0;
  return options;
}

TEST(TruncatedBptt, LearnsATextAndWritesIt) {
  for (const char* model : {"lstm", "gru", "mut1"}) {
    const test::TemporaryFolder folder;
    LanguageOptions options = tiny_recurrent(folder.path(), model);
    options.epochs = 20;
    const FitResult result = fit(options);
    EXPECT_LT(result.figure("loss"), 0.45) << model;  // the first characters of each stream follow from nothing
    EXPECT_NEAR(result.figure("bits_per_character"), result.figure("loss") / std::log(2), 1e-9);
    EXPECT_THAT(io::read_text(result.folder / "samples.txt"), HasSubstr("abacadabraabacadabra"));
    EXPECT_EQ(models::load_text_model(result.folder / "best").architecture, "RecurrentForCausalLM");
  }
}

TEST(TruncatedBptt, ResumesWithTheStateToTheSameBits) {
  for (const char* model : {"rnn", "lstm"}) {
    const test::TemporaryFolder folder;
    LanguageOptions options = tiny_recurrent(folder.path(), model);
    options.drop = 0.1;
    options.epochs = 3;
    options.experiment = "whole";
    fit(options);
    options.experiment = "stopped";
    FitHooks hooks;
    std::int64_t seen = 0;
    hooks.on_step = [&](std::int64_t step, double) { seen = step; };
    hooks.should_stop = [&] { return seen >= 20; };  // an epoch has 14 chunks
    EXPECT_TRUE(fit(options, hooks).stopped);
    fit(test::resumed<LanguageOptions>(fs::path(options.output) / "stopped"));
    const auto file = [&](const char* run) {
      return io::Safetensors::open(fs::path(options.output) / run / "last/train-state.safetensors");
    };
    EXPECT_EQ(weights_checksum(*models::load_text_model(fs::path(options.output) / "whole/last").net),
              weights_checksum(*models::load_text_model(fs::path(options.output) / "stopped/last").net));
    EXPECT_EQ(file("whole").get("task.h").values(), file("stopped").get("task.h").values());
    EXPECT_EQ(file("whole").contains("task.c"), std::string(model) == "lstm");
    // Without the state that was carried, the rest of the run is another one.
    LanguageOptions other = test::resumed<LanguageOptions>(fs::path(options.output) / "stopped");
    other.batch_size = 2;
    other.epochs = 4;
    EXPECT_THAT(error_of([&] { fit(other); }), HasSubstr("'h' is [1, 4, 16], but --batch-size 2 asks for [1, 2, 16]"));
  }
}

// The gradient of the loss of all parts of the stream, read one after the other with the state of the one before.
std::vector<std::vector<float>> gradients_of(const LanguageOptions& options) {
  const std::unique_ptr<Task> task = options.make("");
  task->batches().start_epoch(0);
  nn::Pass pass;
  std::int64_t units = 0;
  while (task->next()) {
    autograd::Tape tape;
    const Tensor loss = task->loss(pass);
    tape.backward(loss);
    ++units;
  }
  std::vector<std::vector<float>> result;
  for (const nn::Parameter& parameter : task->network().parameters.all()) {
    result.push_back(autograd::grad(parameter.value).values());
    for (float& value : result.back()) {
      value /= static_cast<float>(units);
    }
  }
  return result;
}

double difference(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  double most = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      most = std::max(most, std::abs(static_cast<double>(a[i][j]) - b[i][j]));
      largest = std::max(largest, std::abs(static_cast<double>(b[i][j])));
    }
  }
  return most / largest;
}

TEST(TruncatedBptt, GivesTheFullGradientIfNothingIsCutOff) {
  const test::TemporaryFolder folder;
  LanguageOptions options = tiny_recurrent(folder.path(), "gru");
  options.val_share = 0;
  options.batch_size = 1;
  std::ofstream(options.data) << "abacadabraabacadabraabacadabraabacadabraa";  // 41 characters: 40 and their next ones
  // The whole text as one block, from a state of zeros: backpropagation through all of its time.
  LanguageOptions whole = options;
  whole.bptt.reset();
  whole.block_size = 40;
  const auto full = gradients_of(whole);
  for (const std::int64_t steps : {40, 41, 1000000}) {
    options.bptt = steps;
    EXPECT_LT(difference(gradients_of(options), full), 1e-6) << steps;
  }
  options.bptt = 20;  // the state is carried, but the gradient ends in the middle of the text
  EXPECT_GT(difference(gradients_of(options), full), 1e-3);
  options.bptt = 1;
  EXPECT_GT(difference(gradients_of(options), full), 1e-2);
}

// The losses of all chunks, without learning, are those of the whole text: the state is carried over epochs as well.
TEST(TruncatedBptt, CarriesTheStateForEver) {
  const test::TemporaryFolder folder;
  LanguageOptions options = tiny_recurrent(folder.path(), "nas");
  options.val_share = 0;
  options.batch_size = 2;
  options.bptt = 5;
  std::ofstream(options.data) << "abacadabraabacadabraabacadabraabacadabraa";
  const std::unique_ptr<Task> task = options.make("");
  nn::Pass pass;
  std::vector<double> losses;
  for (const std::int64_t epoch : {0, 1}) {
    task->batches().start_epoch(epoch);
    while (task->next()) {
      losses.push_back(task->loss(pass).item());
    }
  }
  ASSERT_EQ(losses.size(), 8U);
  // Row 0 reads the text from its beginning to its end, row 1 its second half and then, with that state, its first.
  LanguageOptions one = options;
  one.batch_size = 1;
  const std::unique_ptr<Task> reader = one.make("");
  std::vector<double> first;
  reader->batches().start_epoch(0);
  while (reader->next()) {
    first.push_back(reader->loss(pass).item());
  }
  ASSERT_EQ(first.size(), 8U);
  const std::unique_ptr<Task> second = one.make("");
  second->batches().start_epoch(0, 4);
  std::vector<double> other;
  while (second->next()) {
    other.push_back(second->loss(pass).item());
  }
  second->batches().start_epoch(1);
  while (second->next() && other.size() < 8) {
    other.push_back(second->loss(pass).item());
  }
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(losses[i], (first[i] + other[i]) / 2, 1e-6) << i;
  }
  // Epochs of another length end elsewhere, and go on there.
  options.epoch_steps = 3;
  const std::unique_ptr<Task> short_epochs = options.make("");
  std::size_t read = 0;
  for (const std::int64_t epoch : {0, 1}) {
    EXPECT_EQ(short_epochs->batches().batches_per_epoch(), 3);
    short_epochs->batches().start_epoch(epoch);
    while (short_epochs->next()) {
      EXPECT_EQ(short_epochs->loss(pass).item(), losses.at(read++));
    }
  }
}

// Memory for backward is that of the steps behind the last cut.
TEST(TruncatedBptt, TakesMemoryForItsStepsAlone) {
  const test::TemporaryFolder folder;
  LanguageOptions options = tiny_recurrent(folder.path(), "lstm");
  options.val_share = 0;
  options.batch_size = 1;
  options.model_kwargs = R"({"hidden_size": 64, "num_layers": 1})";
  const auto peak = [&](std::int64_t length, std::int64_t steps) {
    std::ofstream(options.data) << "ab" << std::string(static_cast<std::size_t>(length) - 1, 'a');
    options.bptt = steps;
    const std::unique_ptr<Task> task = options.make("");
    task->batches().start_epoch(0);
    Allocator& allocator = Allocator::instance();
    allocator.reset_peak();
    const std::size_t before = allocator.statistics().in_use;
    nn::Pass pass;
    while (task->next()) {
      autograd::Tape tape;
      tape.backward(task->loss(pass));
    }
    return allocator.statistics().peak - before;
  };
  EXPECT_GT(peak(4000, 4000), 3 * peak(1000, 1000));
  EXPECT_LT(peak(4000, 50), 1.2 * peak(1000, 50));
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
  EXPECT_THAT(error([](LanguageOptions& o) {
                o.block_size.reset();
                o.bptt = 5;
              }),
              HasSubstr("--bptt is for recurrent networks, whose state is carried on, and not for gpt2"));
  LanguageOptions streams = tiny_recurrent(folder.path(), "rnn");
  streams.batch_size = 600;
  EXPECT_THAT(error_of([&] { streams.make(""); }), HasSubstr("540 tokens are too few for 600 streams of the text"));
  streams.block_size = 5;
  EXPECT_THAT(error_of([&] { validate(streams); }), HasSubstr("it takes no --block-size"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.block_size = 700; }),
              HasSubstr("540 tokens for training are too few for a block of 700 and one more"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.val_share = 0.01; }),
              HasSubstr("6 tokens to evaluate on are too few for a block of 12 and one more (--block-size"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.model_kwargs = R"({"n_positions": 8})"; }),
              HasSubstr("--block-size 12 is more than the 8 positions of the model"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.tokenizer = "nowhere"; }), HasSubstr("nowhere"));
  EXPECT_THAT(error([](LanguageOptions& o) { o.model_kwargs = R"({"vocab_size": 3})"; }),
              HasSubstr("the tokenizer has 6 tokens, but the model knows 3"));
}

TEST(LanguageModelling, LearnsTheSameTextOnAllRanks) {
  const test::TemporaryFolder folder;
  const LanguageOptions options = tiny_language(folder.path());
  const std::string text = io::read_text(options.data);
  fs::create_directories(folder / "elsewhere");
  const auto with_text_of_the_second = [&](const std::string& other) {
    io::write_atomically(folder / "elsewhere/text.txt", other);
    fs::remove_all(folder / "runs");
    return error_of([&] {
      test::on_ranks(2, [&](test::ThreadRank& self) {
        LanguageOptions own = options;
        own.comm_timeout = 20;
        own.epochs = 1;
        own.data = self.rank() == 0 ? options.data : (folder / "elsewhere/text.txt").string();
        FitHooks hooks;
        hooks.ranks = &self;
        fit(own, hooks);
      });
    });
  };
  EXPECT_EQ(with_text_of_the_second(text), "no error");
  EXPECT_THAT(with_text_of_the_second({text.rbegin(), text.rend()}),
              AllOf(HasSubstr("rank 1 differs from rank 0: \"--data: contents "), HasSubstr("same program and data")));
}

}  // namespace
}  // namespace vitrail::train
