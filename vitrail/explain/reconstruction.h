// What a masked autoencoder makes of pictures that it sees a part of.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/io/image.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

// A row for each of `inputs` ([1, C, H, W] as the model takes it): what the model sees, with the hidden patches gray;
// its reconstruction of them; the picture. Which patches are hidden depends on (seed, row) alone. Where the model
// predicts normalized patches, each has the mean and the deviation of the true one. Error unless the model is a masked
// autoencoder.
io::Image reconstruction_sheet(const models::Model& model, const std::vector<Tensor>& inputs, std::uint64_t seed = 0,
                               DType dtype = DType::f32);

}  // namespace vitrail::explain
