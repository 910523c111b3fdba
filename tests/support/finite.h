// Tests about NaN and infinity.
#pragma once

#include "vitrail/autograd/tape.h"

namespace vitrail::test {

// While one lives, ops may yield NaN and infinity: the check for them, on in debug builds, is off.
class AllowNonFinite {
 public:
  AllowNonFinite() { autograd::set_check_finite(false); }
  ~AllowNonFinite() { autograd::set_check_finite(before_); }
  AllowNonFinite(const AllowNonFinite&) = delete;
  AllowNonFinite& operator=(const AllowNonFinite&) = delete;

 private:
  bool before_ = autograd::check_finite();
};

}  // namespace vitrail::test
