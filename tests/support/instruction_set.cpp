// Linked into every test program: VITRAIL_TEST_ISA=AVX2 or SSE4 keeps the kernels from using anything newer, as if the
// CPU had none of it.
#include <cstdlib>
#include <string>

#include <hwy/targets.h>

namespace {

[[maybe_unused]] const bool limited = [] {
  const char* wanted = std::getenv("VITRAIL_TEST_ISA");
  if (wanted == nullptr) {
    return false;
  }
  // Newer instruction sets have lower bits.
  const std::int64_t best = std::string(wanted) == "AVX2" ? HWY_AVX2 : HWY_SSE4;
  hwy::DisableTargets(best - 1);
  return true;
}();

}  // namespace
