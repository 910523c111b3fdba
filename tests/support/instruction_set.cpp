// Linked into every test program: VITRAIL_TEST_ISA=AVX2 or SSE4 keeps the kernels from using anything newer, as if the
// CPU had none of it. On a CPU that indeed has none of it, the tests would only be repeated: the program is skipped.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <hwy/targets.h>

namespace {

constexpr int skipped = 77;  // tests/CMakeLists.txt

[[maybe_unused]] const bool limited = [] {
  const char* wanted = std::getenv("VITRAIL_TEST_ISA");
  if (wanted == nullptr) {
    return false;
  }
  // Newer instruction sets have lower bits.
  const std::int64_t best = std::string(wanted) == "AVX2" ? HWY_AVX2 : HWY_SSE4;
  if ((hwy::SupportedTargets() & (best - 1)) == 0) {
    std::puts("this CPU has nothing newer: the tests themselves run like this");
    std::fflush(stdout);
    std::_Exit(skipped);
  }
  hwy::DisableTargets(best - 1);
  return true;
}();

}  // namespace
