// All differentiable operations.
#pragma once

#include "vitrail/ops/activation.h"
#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/conv.h"
#include "vitrail/ops/dropout.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/interpolate.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/matmul.h"
#include "vitrail/ops/norm.h"
#include "vitrail/ops/patches.h"
#include "vitrail/ops/quantized.h"
#include "vitrail/ops/reduce.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/shape.h"
#include "vitrail/ops/softmax.h"
