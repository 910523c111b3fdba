/// \file
/// Which of Highway's targets the kernels are compiled for. To be included before Highway's own headers.
///
/// They are the baseline of x86-64 (portable code with Highway 1.0, SSE2 since 1.1), SSE4, AVX2, AVX-512 and NEON;
/// with VITRAIL_FEW_TARGETS=3, SSE4 is left out, with 2 also AVX2. Each target costs compile time. Those above AVX-512
/// and NEON, of which newer versions of Highway have more, are left out: the kernels compute in f32, to which they add
/// nothing, and round to bf16 with subnormal numbers, which the instruction of AVX3_ZEN4 and AVX3_SPR makes 0; products
/// of bf16 are written in intrinsics that are chosen at run time (products/tile_products.h).
#pragma once

// Within an architecture, a newer target has a lower bit.
#define VITRAIL_ABOVE_AVX3 (HWY_AVX3 - 1)
#define VITRAIL_ABOVE_NEON (HWY_NEON - (2LL << HWY_HIGHEST_TARGET_BIT_X86))
#if defined(VITRAIL_FEW_TARGETS) && VITRAIL_FEW_TARGETS == 2
#define HWY_DISABLED_TARGETS (VITRAIL_ABOVE_AVX3 | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3 | VITRAIL_ABOVE_NEON)
#elif defined(VITRAIL_FEW_TARGETS)
#define HWY_DISABLED_TARGETS (VITRAIL_ABOVE_AVX3 | HWY_SSE4 | HWY_SSSE3 | VITRAIL_ABOVE_NEON)
#elif !defined(HWY_DISABLED_TARGETS)
#define HWY_DISABLED_TARGETS (VITRAIL_ABOVE_AVX3 | HWY_SSSE3 | VITRAIL_ABOVE_NEON)
#endif
