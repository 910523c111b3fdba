#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include "vitrail/cli/app.h"

namespace {

// How often a thread looks for work before it falls asleep. A turn takes an Intel CPU several times as long as AMD's,
// and waking a thread in a virtual machine on it longer still.
const char* turns_awake() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_is("amd") != 0) {
    return "1000";
  }
#endif
  return "5000";
}

// Where OMP_PROC_BIND is set, OpenMP's library has bound this thread to one core as it was loaded, and would bind the
// threads that it starts to others. What inherits this thread's cores, the program when it calls itself and the threads
// that prepare batches, would be left with that one, so this thread may use the cores of all places again.
void unbind() {
  if (omp_get_proc_bind() == omp_proc_bind_false) {
    return;
  }
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    for (const int id : ids) {
      CPU_SET(id, &cores);
    }
  }
  if (CPU_COUNT(&cores) > 0 && CPU_COUNT(&cores) <= omp_get_num_procs()) {  // no more than it was given
    static_cast<void>(sched_setaffinity(0, sizeof(cores), &cores));  // else there is one core, as there would have been
  }
}

// OpenMP's threads stay awake while they wait for each other. Where another program has the core of one of them, the
// others burn theirs until that thread is in turn again, so here they fall asleep after a while that waits inside a
// step on a quiet machine hardly ever reach (docs/performance.md, benchmarks/busy_machine). What the user has set wins.
// OpenMP's library reads its settings when it is loaded, before anything of this program runs: hence the program calls
// itself once more.
void choose_how_threads_wait(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr && std::getenv("GOMP_SPINCOUNT") == nullptr) {
    setenv("GOMP_SPINCOUNT", turns_awake(), 0);
    execv("/proc/self/exe", argv);  // returns only if that cannot be done; then threads wait as they would have
  }
}

// A file that is opened while one of the standard ones is closed would get its number, and then what is printed. Each
// that is closed is opened here in the way that it is not used, so that reading or writing it still fails.
void hold_standard_files() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) == -1) {
      static_cast<void>(open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY));  // the lowest number
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_files();
  unbind();
  choose_how_threads_wait(argv);
  return vitrail::cli::run({argv + 1, argv + argc});
}
