/// \file
/// Images of what a masked autoencoder reconstructs.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/io/image.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

/// An image with a row for each of `inputs` ([1, C, H, W], as the model takes them): what the model sees, with the
/// masked patches gray; its reconstruction of them; the original. A label stands above each column. Which patches are
/// masked depends on (seed, row) alone. Where the model predicts normalized patches, each gets the mean and the
/// standard deviation of the true patch. Throws Error unless the model is a masked autoencoder.
io::Image reconstruction_sheet(const models::Model& model, const std::vector<Tensor>& inputs, std::uint64_t seed = 0,
                               DType dtype = DType::f32);

}  // namespace vitrail::explain
