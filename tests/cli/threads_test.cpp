// How many threads the program computes with.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <omp.h>

#include "tests/support/program.h"

namespace vitrail::test {
namespace {

// OpenMP's library binds the program's first thread to one core where OMP_PROC_BIND is set.
TEST(Threads, AreAsManyAsCoresAlsoWhereOpenMpBindsThem) {
  if (omp_get_num_procs() < 2) {
    GTEST_SKIP() << "there is one core, to which nothing can be bound wrongly";
  }
  const std::string bench =
      "bench train --model vit_tiny_patch16_224 --model-kwargs img_size=32 depth=1 --batch-size 1 --steps 1 --json";
  for (const std::string binding : {"", "OMP_PROC_BIND=true", "OMP_PROC_BIND=spread OMP_PLACES=cores"}) {
    const Outcome run = vitrail(bench, "", "env -u OMP_NUM_THREADS " + binding);
    ASSERT_EQ(run.status, 0) << binding << run.err;
    EXPECT_EQ(nlohmann::json::parse(run.out).at("threads"), omp_get_num_procs()) << binding;
  }
  const Outcome given = vitrail(bench, "", "env -u OMP_NUM_THREADS GOMP_CPU_AFFINITY=0-1 taskset -c 1");
  if (given.status == 0) {  // where the core 1 may be used, and there is the program taskset
    EXPECT_EQ(nlohmann::json::parse(given.out).at("threads"), 1) << "no core that it was not given";
  }
}

}  // namespace
}  // namespace vitrail::test
