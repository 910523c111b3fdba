#include "vitrail/data/image_config.h"

#include <fmt/format.h>

#include "vitrail/tensor/error.h"

namespace vitrail::data {

void apply(const ImageOverrides& overrides, ImageConfig& config) {
  const auto colors = [&](const char* flag, const std::vector<double>& values, std::vector<double>& target) {
    if (values.empty()) {
      return;
    }
    target = values.size() == 1 ? std::vector(static_cast<std::size_t>(config.channels), values[0]) : values;
    check(static_cast<std::int64_t>(target.size()) == config.channels, "{} takes {}, not {}", flag,
          config.channels == 1 ? "one number, for the one channel"
                               : fmt::format("one number, or one for each of the {} channels", config.channels),
          values.size());
  };
  colors("--mean", overrides.mean, config.mean);
  colors("--std", overrides.std, config.std);
  if (overrides.crop_pct || !overrides.crop_mode.empty()) {
    config.processor.reset();
  }
  config.crop_pct = overrides.crop_pct.value_or(config.crop_pct);
  config.crop_mode = overrides.crop_mode.empty() ? config.crop_mode : overrides.crop_mode;
  config.interpolation = overrides.interpolation.empty() ? config.interpolation : overrides.interpolation;
}

}  // namespace vitrail::data
