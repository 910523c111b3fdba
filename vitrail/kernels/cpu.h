// The processor: its name, what it can do, and how many of its cores are used.
#pragma once

#include <string>

namespace vitrail::kernels {

// Whether the CPU multiplies bf16 natively (AVX512-BF16 or better, or Arm's BF16) and oneDNN may use it (its variable
// ONEDNN_MAX_CPU_ISA can forbid it). Without, bf16 tensors still work, but no faster than f32.
bool has_bf16();

// Whether the CPU has AMX's tiles of bf16, and the system and oneDNN's variable let this process use them.
bool has_amx();

// "AMD EPYC 9354 32-Core Processor", as the CPU or the system names it.
std::string cpu_name();
// Whether products in int8 run in int8 here: elsewhere they are worked out in f32, exactly but slowly.
bool has_int8();

// Compute threads of this process (OpenMP): at first OMP_NUM_THREADS, or the cores that the process may run on.
int threads();
void set_threads(int count);  // Error unless positive

}  // namespace vitrail::kernels
