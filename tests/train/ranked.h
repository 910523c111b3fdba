// Trainings on several ranks, which are threads here.
#pragma once

#include <gmock/gmock.h>

#include "tests/dist/thread_ranks.h"
#include "tests/train/tiny.h"

namespace vitrail::test {

// A training on two ranks has the evaluations of one on a single rank, of which each judges its part of the batches.
template <class Options>
void expect_shared_evaluations(Options options) {
  options.grad_shards = 2;
  options.epochs = 2;
  options.log_interval = 1;
  options.comm_timeout = 20;
  options.validation_batch_size = 3;
  std::vector<std::vector<nlohmann::json>> records;
  for (const int ranks : {1, 2}) {
    options.experiment = fmt::format("ranks-{}", ranks);
    on_ranks(ranks, [&](ThreadRank& self) {
      train::FitHooks hooks;
      hooks.ranks = &self;
      train::fit(options, hooks);
    });
    records.push_back(json_lines(std::filesystem::path(options.output) / options.experiment / "metrics.jsonl"));
    std::erase_if(records.back(), [](const nlohmann::json& line) { return line.contains("lr"); });
  }
  EXPECT_FALSE(records[0].empty()) << "there are evaluations";
  EXPECT_EQ(records[1], records[0]);
}

}  // namespace vitrail::test
