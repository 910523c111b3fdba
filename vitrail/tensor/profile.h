/// \file
/// A profiler: the time, arithmetic and memory traffic of each op, as seen by the thread that runs the ops.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vitrail/tensor/dtype.h"

namespace vitrail {

/// While a Profile is alive on a thread, every op called on that thread records an event in it:
///
/// ```cpp
/// Profile profile;
/// train_one_step();
/// for (const Profile::Event& event : profile.events()) …
/// ```
///
/// Ops run one after the other, so the time of an op is counted from the end of the op before to its own end: no time
/// is left out, and an op that calls other ops is charged only for the time that they did not take. Without a Profile,
/// recording an event costs one test of a pointer.
class Profile {
 public:
  enum class Phase { forward, backward, update };
  /// What one op, or one part of an op (see Inner), has done.
  struct Event {
    std::string_view name;  ///< of the op; the text must outlive the profile
    Phase phase = Phase::forward;
    double begin = 0;    ///< start, in seconds since the profile was created
    double seconds = 0;  ///< duration
    double flops = 0;    ///< floating-point operations of its products; a multiply-accumulate counts as two
    double bytes = 0;    ///< bytes that its kernels read and write, each operand counted once
  };

  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  const std::vector<Event>& events() const { return events_; }
  /// Discards the time, arithmetic and traffic since the last event, so that they are charged to no op.
  void skip();

  /// Called by kernels: adds `count` floating-point operations to the op that is running.
  static void flops(double count);
  /// Called by kernels: adds `bytes` of memory traffic to the op that is running.
  static void traffic(double bytes);
  /// Called by kernels: adds the traffic of `tensors` operands and results of n elements each.
  static void traffic(std::int64_t n, DType dtype, int tensors) {
    traffic(static_cast<double>(n) * static_cast<double>(size_of(dtype)) * tensors);
  }
  /// Called by whatever runs ops: the op that was running, `name`, has ended. Records its event.
  static void mark(std::string_view name);
  /// While an Inner is alive, it times a part of the op that is running; then it records an event of its own, whose
  /// time is subtracted from that of the op.
  class Inner {
   public:
    Inner(std::string_view name, double bytes);
    ~Inner();
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;

   private:
    Event event_;
  };
  /// While a Within is alive on a thread, the events recorded there belong to its phase; without one, to `forward`.
  class Within {
   public:
    explicit Within(Phase phase);
    ~Within();
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    Phase outer_;
  };
  /// While a Pause is alive on a thread, nothing is recorded or counted there.
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
  double flops_ = 0;  ///< of the op that is running, as is bytes_
  double bytes_ = 0;
  Profile* outer_;
};

std::string_view name_of(Profile::Phase phase);

}  // namespace vitrail
