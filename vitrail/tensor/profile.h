// Where the time goes: what each op did, seen from the thread that runs them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vitrail/tensor/dtype.h"

namespace vitrail {

// While a Profile is alive on a thread, the ops called on that thread leave events in it:
//
//   Profile profile;
//   train_one_step();
//   for (const Profile::Event& event : profile.events()) …
//
// Ops run one after the other, so an op's time goes from the end of the one before to its own end: nothing is left out,
// and an op that calls others keeps what they did not take. Without a Profile an event costs one test of a pointer.
class Profile {
 public:
  enum class Phase { forward, backward, update };
  struct Event {
    std::string_view name;  // of the op; the text outlives the profile
    Phase phase = Phase::forward;
    double begin = 0;    // seconds since the profile began
    double seconds = 0;  // how long it took
    double flops = 0;    // of its products, a multiply-accumulate as two
    double bytes = 0;    // read and written by its kernels, each operand once
  };

  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  const std::vector<Event>& events() const { return events_; }
  // What passed since the last event belongs to none.
  void skip();

  // For kernels: products and traffic that belong to the op that is running.
  static void flops(double count);
  static void traffic(double bytes);
  // The same for `tensors` operands and results of n elements each.
  static void traffic(std::int64_t n, DType dtype, int tensors) {
    traffic(static_cast<double>(n) * static_cast<double>(size_of(dtype)) * tensors);
  }
  // For whatever runs ops: the op that was running has ended, and this is its name.
  static void mark(std::string_view name);
  // An event inside the op that is running, whose time it is taken off.
  class Inner {
   public:
    Inner(std::string_view name, double bytes);
    ~Inner();
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;

   private:
    Event event_;
  };
  // While one is alive on a thread, what is marked there belongs to this phase; without one, to `forward`.
  class Within {
   public:
    explicit Within(Phase phase);
    ~Within();
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    Phase outer_;
  };
  // While one is alive on a thread, nothing is counted there.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Profile* outer_;
  };

 private:
  double now() const;

  std::vector<Event> events_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  double last_ = 0;
  double flops_ = 0;  // of the op that is running
  double bytes_ = 0;
  Profile* outer_;
};

std::string_view name_of(Profile::Phase phase);

}  // namespace vitrail
