/// \file
/// Helpers by which families adapt the tensors of a checkpoint to a model.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// Whether `name` starts with one of `starts`.
bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> starts);

/// The number that follows `prefix` at the beginning of `name`, if there is one: index_after("blocks.11.norm1.bias",
/// "blocks.") is 11.
std::optional<std::int64_t> index_after(std::string_view name, std::string_view prefix);

/// Adapts the weight [D, C, …] of the first convolution to `channels` input channels, like timm's adapt_input_conv. One
/// channel gets the sum of all; otherwise the channels are repeated in turn and scaled by C / channels, so that the sum
/// of their contributions stays the same. A tensor that is no such weight (a file may hold anything under its name), or
/// that has `channels` channels already, is returned unchanged.
Tensor with_channels(const Tensor& weight, std::int64_t channels);

}  // namespace vitrail::models
