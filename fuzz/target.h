// FUZZ_TARGET(name) begins a fuzz target: the function that libFuzzer calls with any bytes or, in fuzz_replay, which
// has all targets, the one that is called after it.
#pragma once

#ifdef VITRAIL_FUZZ_TARGETS
#define FUZZ_TARGET(name) extern "C" int fuzz_##name
#else
#define FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#endif
