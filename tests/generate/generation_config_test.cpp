#include "vitrail/generate/generation_config.h"

#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/models/formats/generation_fields.h"
#include "vitrail/models/text/language_body.h"

namespace vitrail::generate {
namespace {

using test::error_of;

TEST(GenerationConfig, RefusesWhatCannotBe) {
  const auto error = [](auto&& change) {
    GenerationConfig config;
    change(config);
    return error_of([&] { validate(config); });
  };
  EXPECT_EQ(error([](GenerationConfig& c) { c.top_p = 0; }), "top_p must be above 0 and at most 1, not 0");
  EXPECT_EQ(error([](GenerationConfig& c) {
              c.do_sample = true;
              c.temperature = 0;
            }),
            "temperature must be above 0 with do_sample, not 0: without do_sample the most likely token is taken");
  EXPECT_EQ(error([](GenerationConfig& c) {
              c.num_beams = 2;
              c.num_return_sequences = 3;
            }),
            "num_return_sequences 3 must not be more than num_beams 2");
  EXPECT_EQ(error([](GenerationConfig& c) { c.num_return_sequences = 3; }),
            "num_return_sequences 3 would be the same text each time: it needs do_sample or num_beams");
  EXPECT_EQ(error([](GenerationConfig& c) {
              c.suppress_tokens = {4, 2, 3};
              c.forced_eos_token_id = {3, 2};
            }),
            "forced_eos_token_id 3, 2 is forced, and suppress_tokens forbids it");
  EXPECT_EQ(error([](GenerationConfig& c) {
              c.suppress_tokens = {4, 2};
              c.forced_eos_token_id = {3, 2};
            }),
            "no error");
}

// Twenty tokens, transformers' default, are what a folder says if it says so.
TEST(GenerationConfig, KnowsWhetherAFolderSaysHowLong) {
  const test::TemporaryFolder folder;
  const auto length = [&](const char* json, std::int64_t positions) {
    io::write_atomically(folder / "generation_config.json", json);
    GenerationConfig config = read_generation_config(folder.path());
    give_length(config, positions);
    return config.max_length;
  };
  EXPECT_EQ(length(R"({"max_length": 20})", models::unbounded_positions), 20);
  EXPECT_EQ(length("{}", 64), 64);
  EXPECT_EQ(length(R"({"max_length": null})", models::unbounded_positions), 512);
  EXPECT_EQ(length(R"({"max_new_tokens": 7})", 64), 20);
}

TEST(GenerationConfig, HasTheDefaultsOfItsFile) {
  nlohmann::json all;
  for (const auto& [key, value] : models::generation_defaults()) {
    all[key] = value;
  }
  std::vector<std::string> said;
  const GenerationConfig read = parse_generation_config(all.dump(), "defaults", &said);
  EXPECT_THAT(said, testing::IsEmpty());
  const GenerationConfig own;
  EXPECT_EQ(read.max_length, own.max_length);
  EXPECT_EQ(read.top_k, own.top_k);
  EXPECT_EQ(std::tuple(read.num_beams, read.num_return_sequences, read.min_length, read.no_repeat_ngram_size),
            std::tuple(own.num_beams, own.num_return_sequences, own.min_length, own.no_repeat_ngram_size));
  EXPECT_EQ(std::tuple(read.temperature, read.top_p, read.typical_p, read.repetition_penalty, read.length_penalty),
            std::tuple(own.temperature, own.top_p, own.typical_p, own.repetition_penalty, own.length_penalty));
  EXPECT_EQ(std::tuple(read.do_sample, read.early_stopping, read.epsilon_cutoff, read.eta_cutoff, read.min_p),
            std::tuple(own.do_sample, own.early_stopping, own.epsilon_cutoff, own.eta_cutoff, own.min_p));
}

}  // namespace
}  // namespace vitrail::generate
