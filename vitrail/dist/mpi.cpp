#include "vitrail/dist/mpi.h"

#include <algorithm>
#include <atomic>
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
#include <pthread.h>
#include <sched.h>
#endif

namespace vitrail::dist {

#ifdef VITRAIL_MPI
namespace {

// MPI has calls from one thread at a time.
struct Calls {
  std::mutex mutex;
  std::atomic<int> under_way = 0;  // messages that are not done
};

class MpiMessage final : public Message {
 public:
  explicit MpiMessage(Calls& calls) : calls_(calls) { ++calls_.under_way; }
  ~MpiMessage() override { end(); }
  MpiMessage(const MpiMessage&) = delete;
  MpiMessage& operator=(const MpiMessage&) = delete;

  bool done() override {
    const std::unique_lock lock(calls_.mutex, std::try_to_lock);
    int done = 0;
    if (lock) {  // else the other thread is moving messages on
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    if (done != 0) {
      end();
    }
    return done != 0;
  }
  MPI_Request request = MPI_REQUEST_NULL;

 private:
  void end() {
    if (!ended_) {
      ended_ = true;
      --calls_.under_way;
    }
  }

  Calls& calls_;
  bool ended_ = false;
};

// A thread on a core of its own that moves messages on.
class Mover {
 public:
  Mover(Calls& calls, int core) : calls_(calls) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core < CPU_SETSIZE) {
      CPU_SET(core, &set);
    }
    thread_ = std::thread([this] { move(); });
    if (pthread_setaffinity_np(thread_.native_handle(), sizeof(set), &set) != 0) {
      stop();
      fail("--comm-thread: there is no core {} that this process may use", core);
    }
  }
  ~Mover() { stop(); }
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

 private:
  void stop() {
    stops_ = true;
    thread_.join();
  }
  void move() {
    constexpr std::chrono::microseconds between_looks(20);
    constexpr std::chrono::microseconds while_idle(500);
    while (!stops_) {
      const bool idle = calls_.under_way == 0;
      if (!idle) {
        const std::lock_guard lock(calls_.mutex);
        int found = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);  // which moves all of them
      }
      std::this_thread::sleep_for(idle ? while_idle : between_looks);
    }
  }

  Calls& calls_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
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
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads);
    }
    several_threads_ = threads >= MPI_THREAD_SERIALIZED;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~Mpi() override { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Message> send(std::span<const std::byte> bytes, int to, int tag) override {
    auto message = std::make_unique<MpiMessage>(calls_);
    const std::lock_guard lock(calls_.mutex);
    MPI_Isend(bytes.data(), length(bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD, &message->request);
    return message;
  }
  std::unique_ptr<Message> begin_receive(std::span<std::byte> bytes, int from, int tag) override {
    auto message = std::make_unique<MpiMessage>(calls_);
    const std::lock_guard lock(calls_.mutex);
    MPI_Irecv(bytes.data(), length(bytes.size()), MPI_BYTE, from, tag, MPI_COMM_WORLD, &message->request);
    return message;
  }
  std::shared_ptr<void> move_messages_from(int core) override {
    check(several_threads_, "--comm-thread: this MPI has calls from one thread alone");
    return std::make_shared<Mover>(calls_, core);
  }
  [[noreturn]] void abort() override {
    // MPI_Abort would wait until the launcher kills this process, which may give the others long to end.
    std::fflush(nullptr);
    std::_Exit(EXIT_FAILURE);
  }

 private:
  int rank_ = 0;
  int size_ = 1;
  bool several_threads_ = false;
  Calls calls_;
};

}  // namespace

const bool mpi_is_built = true;
std::unique_ptr<Communicator> mpi_ranks(double timeout) { return std::make_unique<Mpi>(timeout); }
#else
const bool mpi_is_built = false;
std::unique_ptr<Communicator> mpi_ranks(double /*timeout*/) { fail("this program was built without MPI"); }
#endif

}  // namespace vitrail::dist
