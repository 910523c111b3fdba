/// \file
/// The CPU: its name, its instruction sets, and how many of its cores are used.
#pragma once

#include <string>

namespace vitrail::kernels {

/// Whether the CPU multiplies bf16 natively (AVX512-BF16 or better, or Arm's BF16) and oneDNN may use it (the
/// environment variable ONEDNN_MAX_CPU_ISA can forbid it). Without native bf16, bf16 tensors still work, but no faster
/// than f32.
bool has_bf16();

/// Whether the CPU has AMX with bf16, and the operating system and ONEDNN_MAX_CPU_ISA let this process use it.
bool has_amx();

/// The name of the CPU as the system gives it, for example "AMD EPYC 9354 32-Core Processor"; else "unknown CPU".
std::string cpu_name();
/// Whether products in int8 run on int8 instructions (VNNI or AMX) of this CPU; otherwise they are products of pairs of
/// 16 bits.
bool has_int8();

/// The instruction sets that kernels are chosen by here, as two numbers in hexadecimal: those of Highway and of oneDNN,
/// which ONEDNN_MAX_CPU_ISA may bound. Where they differ, results may differ in the last bits.
std::string instruction_sets();

/// The number of compute threads of this process (OpenMP): initially OMP_NUM_THREADS, or the number of cores that the
/// process may run on.
int threads();
void set_threads(int count);  ///< Error unless positive
/// The most threads that a user may ask for: four for each core that the process may run on.
int most_threads();

}  // namespace vitrail::kernels
