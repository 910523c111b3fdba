/// \file
/// Attention that is told where to look (attention supervision: Liu et al. 2017 of captions, Qiao et al. 2018 of
/// questions).
#pragma once

#include <vector>

#include "vitrail/data/boxes/box.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

/// Which patches of a grid of rows × columns, by rows, touch one of these boxes, which are relative to the image.
std::vector<bool> touched_patches(const std::vector<data::Box>& boxes, const nn::Size2& grid);

/// How far attention is from where it should look: −Σ_i g_i log a_i, where a is a row of `probabilities` [R, M] f32,
/// and g is the same for all places that the row's target marks and 0 for the others. `targets` has M places for each
/// row. A scalar f32, the mean over the rows whose target marks any; 0 if there are none.
Tensor attention_loss(const Tensor& probabilities, const std::vector<std::vector<bool>>& targets);

}  // namespace vitrail::train
