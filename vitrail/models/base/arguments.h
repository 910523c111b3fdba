/// \file
/// Readers of timm's arguments, which all families share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/io/json.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/ops/math/activation.h"

namespace vitrail::models {

constexpr double largest_size = 1 << 20;   ///< of any size or count among the arguments
constexpr double most_channels = 1 << 16;  ///< that a convolutional network may have

/// Reads the name of a kind of layer in timm's notation; case and '_' make no difference. Throws Error unless it is one
/// of `allowed` (in lower case, without '_').
std::string read_choice(io::Fields& fields, const std::string& key, const std::string& fallback,
                        const std::vector<std::string>& allowed);
/// Reads one number for both sides, or a pair (rows, columns).
nn::Size2 read_size(io::Fields& fields, const std::string& key, const nn::Size2& fallback);
/// Reads `norm_layer`, or another `key`: "layernorm", "rmsnorm", … (with an epsilon of 1e-6), or a pair of a name and
/// an epsilon.
nn::NormConfig read_norm(io::Fields& fields, const nn::NormConfig& fallback = {},
                         const std::string& key = "norm_layer");
/// Reads `act_layer`.
ops::Activation read_activation(io::Fields& fields, const std::string& fallback = "gelu");
/// The multiple of `divisor` nearest to `value`, but at least `divisor`; or the next larger multiple if the nearest is
/// less than `round_limit` · `value`. This is timm's make_divisible, for numbers of channels.
std::int64_t make_divisible(double value, std::int64_t divisor = 8, double round_limit = 0.9);
std::optional<float> as_float(const std::optional<double>& value);

}  // namespace vitrail::models
