#include "vitrail/models/base/adapt.h"

#include <charconv>
#include <vector>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> starts) {
  for (const std::string_view start : starts) {
    if (name.starts_with(start)) {
      return true;
    }
  }
  return false;
}

std::optional<std::int64_t> index_after(std::string_view name, std::string_view prefix) {
  std::int64_t index = 0;
  if (!name.starts_with(prefix) ||
      std::from_chars(name.data() + prefix.size(), name.data() + name.size(), index).ec != std::errc()) {
    return std::nullopt;
  }
  return index;
}

Tensor with_channels(const Tensor& weight, std::int64_t channels) {
  if (weight.rank() < 2 || weight.numel() == 0 || weight.size(1) == channels) {
    return weight;
  }
  const std::int64_t from = weight.size(1);
  if (channels == 1) {
    return ops::sum(weight, {1}, true);
  }
  const std::vector<Tensor> copies(static_cast<std::size_t>((channels + from - 1) / from), weight);
  const Tensor repeated = ops::narrow(ops::concat(copies, 1), 1, 0, channels);
  return ops::multiply(repeated, static_cast<float>(from) / static_cast<float>(channels));
}

}  // namespace vitrail::models
