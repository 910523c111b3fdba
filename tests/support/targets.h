// Kernels tried on every set of instructions.
#pragma once

#include <array>
#include <string>

#include <hwy/targets.h>

namespace vitrail::test {

// Calls function("AVX2") and so on for each instruction set that this machine can run, with the kernels' dispatch
// turned to it.
template <class Function>
void for_each_target(Function&& function) {
  struct Restore {
    ~Restore() { hwy::SetSupportedTargetsForTest(0); }
  };
#ifdef VITRAIL_FEW_TARGETS
  constexpr std::array targets = {HWY_EMU128, HWY_AVX2, HWY_AVX3};
#else
  constexpr std::array targets = {HWY_SCALAR, HWY_EMU128, HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_NEON};
#endif
  for (const std::int64_t target : targets) {
    if ((hwy::SupportedTargets() & target) != 0) {
      const Restore restore;
      hwy::SetSupportedTargetsForTest(target);
      function(std::string(hwy::TargetName(target)));
    }
  }
}

}  // namespace vitrail::test
