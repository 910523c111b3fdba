/// \file
/// The input of text models: ids of tokens.
#pragma once

#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// Throws Error, naming the place, unless `ids` is [B, N] i64 with ids 0 … vocab_size - 1.
void check_token_ids(const Tensor& ids, std::int64_t vocab_size);

}  // namespace vitrail::models
