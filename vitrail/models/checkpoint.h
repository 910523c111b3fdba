// What families ask and do about the tensors of a checkpoint.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> starts);

// The number that follows `prefix` at the beginning of `name`: index_after("blocks.11.norm1.bias", "blocks.") is 11.
std::optional<std::int64_t> index_after(std::string_view name, std::string_view prefix);

// A first convolution's weight [D, C, …] for `channels` of them, as timm's adapt_input_conv: one channel takes the sum
// of all; more repeat them in turn, scaled so that the sum of contributions stays. What is no such weight (a file may
// hold anything under its name) or has these channels comes back as it is.
Tensor with_channels(const Tensor& weight, std::int64_t channels);

}  // namespace vitrail::models
