// How timm's arguments are read, for all families.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/io/json.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/activation.h"

namespace vitrail::models {

constexpr double largest_size = 1 << 20;   // of anything that is counted
constexpr double most_channels = 1 << 16;  // of a convolutional network

// A layer's name in timm's notation: upper and lower case and '_' make no difference. Error unless it is one of
// `allowed` (lower case, without '_').
std::string read_choice(io::Fields& fields, const std::string& key, const std::string& fallback,
                        const std::vector<std::string>& allowed);
// A number for both sides, or a pair (rows, columns).
nn::Size2 read_size(io::Fields& fields, const std::string& key, const nn::Size2& fallback);
// `norm_layer`: "layernorm", "rmsnorm", … (their epsilon is then 1e-6), or a pair of name and epsilon.
nn::NormConfig read_norm(io::Fields& fields, const nn::NormConfig& fallback = {});
// `act_layer`.
ops::Activation read_activation(io::Fields& fields, const std::string& fallback = "gelu");
// The multiple of `divisor` next to `value`, at least `divisor`; the next larger one where that is less than
// `round_limit` of the value: timm's make_divisible, for numbers of channels.
std::int64_t make_divisible(double value, std::int64_t divisor = 8, double round_limit = 0.9);
std::optional<float> as_float(const std::optional<double>& value);

}  // namespace vitrail::models
