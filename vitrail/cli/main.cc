#include <cstdlib>

#include <unistd.h>

#include "vitrail/cli/app.h"

namespace {

// OpenMP's threads stay awake while they wait for each other. Where another program has the core of one of them, the
// others burn theirs until that thread is in turn again, so here they fall asleep after a while that waits inside a
// step on a quiet machine hardly ever reach (docs/performance.md, benchmarks/busy_machine). What the user has set wins.
// OpenMP's library reads its settings when it is loaded, before anything of this program runs: hence the program calls
// itself once more.
void choose_how_threads_wait(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr && std::getenv("GOMP_SPINCOUNT") == nullptr) {
    setenv("GOMP_SPINCOUNT", "5000", 0);
    execv("/proc/self/exe", argv);  // returns only if that cannot be done; then threads wait as they would have
  }
}

}  // namespace

int main(int argc, char** argv) {
  choose_how_threads_wait(argv);
  return vitrail::cli::run({argv + 1, argv + argc});
}
