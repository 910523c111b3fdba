#include "vitrail/dist/mpi.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <thread>

#include <fmt/core.h>

#ifdef VITRAIL_MPI
#include <mpi.h>
#endif

namespace vitrail::dist {

#ifdef VITRAIL_MPI
namespace {

class MpiMessage final : public Message {
 public:
  bool done() override {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  MPI_Request request = MPI_REQUEST_NULL;
};

int length(std::size_t bytes) {
  check(bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()), "a message of {} bytes is too long for MPI",
        bytes);
  return static_cast<int>(bytes);
}

constexpr double least_seconds_to_start = 10;

// Ends this process, with a word, if it is not destroyed in time: MPI_Init waits for ever for a rank that does not call
// it.
class Deadline {
 public:
  explicit Deadline(double seconds) : thread_([this, seconds] { watch(seconds); }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  void watch(double seconds) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; })) {
      fmt::print(stderr, "vitrail: rank {} has waited {:g} s for all ranks to start (MPI_Init)\n", announced_rank(),
                 seconds);
      std::fflush(nullptr);
      std::_Exit(EXIT_FAILURE);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // the last member: it begins when the others are there
};

// A call of MPI that fails ends all ranks, after it has said why: that is the library's own way.
class Mpi final : public Communicator {
 public:
  explicit Mpi(double timeout) {
    // Over TCP, Open MPI's remote writes of long messages often let one direction wait for the other: 60 instead of
    // 117 MB/s each way at 1 Gb/s (docs/performance.md). Plain sends do not. What the environment says wins.
    setenv("OMPI_MCA_btl_tcp_flags", "send,inplace", 0);
    int threads = 0;
    {
      const Deadline deadline(std::max(timeout, least_seconds_to_start));
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &threads);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~Mpi() override { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Message> send(std::span<const std::byte> bytes, int to, int tag) override {
    auto message = std::make_unique<MpiMessage>();
    MPI_Isend(bytes.data(), length(bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD, &message->request);
    return message;
  }
  std::unique_ptr<Message> begin_receive(std::span<std::byte> bytes, int from, int tag) override {
    auto message = std::make_unique<MpiMessage>();
    MPI_Irecv(bytes.data(), length(bytes.size()), MPI_BYTE, from, tag, MPI_COMM_WORLD, &message->request);
    return message;
  }
  [[noreturn]] void abort() override {
    // MPI_Abort would wait until the launcher kills this process, which may give the others long to end.
    std::fflush(nullptr);
    std::_Exit(EXIT_FAILURE);
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

const bool mpi_is_built = true;
std::unique_ptr<Communicator> mpi_ranks(double timeout) { return std::make_unique<Mpi>(timeout); }
#else
const bool mpi_is_built = false;
std::unique_ptr<Communicator> mpi_ranks(double /*timeout*/) { fail("this program was built without MPI"); }
#endif

}  // namespace vitrail::dist
