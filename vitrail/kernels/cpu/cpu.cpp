#include "vitrail/kernels/cpu.h"

#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <hwy/targets.h>
#include <omp.h>

#include "vitrail/kernels/cpu/onednn.h"
#include "vitrail/tensor/error.h"

#if defined(__linux__) && defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace vitrail::kernels {

bool has_int8() { return onednn::computes(DType::i8); }

bool has_bf16() {
#if defined(__x86_64__)
  return onednn::may_use(dnnl::cpu_isa::avx512_core_bf16) && __builtin_cpu_supports("avx512bf16") != 0;
#elif defined(__linux__) && defined(__aarch64__) && defined(HWCAP2_BF16)
  return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#else
  return false;
#endif
}

bool has_amx() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  // Linux's XFEATURE_XTILE_DATA: the contents of the tiles.
  constexpr long tile_data = 18;
  static const bool usable = has_bf16() && onednn::may_use(dnnl::cpu_isa::avx512_core_amx) &&
                             syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return usable;
#else
  return false;
#endif
}

std::string instruction_sets() {
  return fmt::format("{:x} {:x}", hwy::SupportedTargets(), static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    for (const std::string_view key : {"model name", "Model"}) {  // x86; some Arm boards
      const std::size_t colon = line.find(':');
      if (line.starts_with(key) && colon != std::string::npos && colon + 2 <= line.size()) {
        return line.substr(colon + 2);
      }
    }
  }
  return "unknown CPU";
}

int threads() { return omp_get_max_threads(); }

void set_threads(int count) {
  check(count > 0, "the number of threads must be positive, not {}", count);
  omp_set_num_threads(count);
}

int most_threads() { return 4 * omp_get_num_procs(); }

}  // namespace vitrail::kernels
