// How many threads the program computes with.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <omp.h>

#include "tests/support/program.h"

namespace vitrail::test {
namespace {

// OpenMP's library binds the program's first thread to one core where OMP_PROC_BIND is set.
TEST(Threads, AreAsManyAsCoresAlsoWhereOpenMpBindsThem) {
  const std::string bench =
      "bench train --model vit_tiny_patch16_224 --model-kwargs img_size=32 depth=1 --batch-size 1 --steps 1 --json";
  for (const std::string binding : {"", "OMP_PROC_BIND=true", "OMP_PROC_BIND=spread OMP_PLACES=cores"}) {
    const Outcome run = vitrail(bench, "", "env -u OMP_NUM_THREADS " + binding);
    ASSERT_EQ(run.status, 0) << binding << run.err;
    EXPECT_EQ(nlohmann::json::parse(run.out).at("threads"), omp_get_num_procs()) << binding;
  }
}

}  // namespace
}  // namespace vitrail::test
