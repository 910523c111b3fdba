// The whole library.
#pragma once

#include "vitrail/autograd/tape.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/transforms.h"
#include "vitrail/explain/attention.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/io/image.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/model.h"
#include "vitrail/nn/pass.h"
#include "vitrail/ops/ops.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/evaluate.h"
#include "vitrail/train/trainer.h"
