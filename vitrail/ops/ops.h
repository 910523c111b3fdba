/// \file
/// All differentiable operations.
#pragma once

#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/attention/rotary.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/dropout.h"
#include "vitrail/ops/math/norm.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/scale.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/pictures/conv.h"
#include "vitrail/ops/pictures/interpolate.h"
#include "vitrail/ops/pictures/patches.h"
#include "vitrail/ops/pictures/shift.h"
#include "vitrail/ops/pictures/windows.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/products/mix_tokens.h"
#include "vitrail/ops/products/quantized.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"
