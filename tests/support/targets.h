// Kernels tried on every set of instructions.
#pragma once

#include <cstdint>
#include <string>

// The first says to Highway which targets there are.
// clang-format off
#include "vitrail/kernels/cpu/simd/targets.h"
#include <hwy/targets.h>
// clang-format on

namespace vitrail::test {

// Calls function("AVX2") and so on for each instruction set that the kernels are compiled for and this machine can run,
// with the kernels' dispatch turned to it.
template <class Function>
void for_each_target(Function&& function) {
  struct Restore {
    ~Restore() { hwy::SetSupportedTargetsForTest(0); }
  };
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const Restore restore;
    hwy::SetSupportedTargetsForTest(target);
    function(std::string(hwy::TargetName(target)));
  }
}

}  // namespace vitrail::test
