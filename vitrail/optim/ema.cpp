#include "vitrail/optim/ema.h"

#include <algorithm>
#include <cmath>

#include "vitrail/kernels/optimizer.h"
#include "vitrail/optim/state.h"

namespace vitrail::optim {
namespace {

// The parameter of the i-th average. Throws Error if the store is not that of the averages.
const Tensor& value_at(const nn::ParameterStore& store, const io::NamedTensors& averages, std::size_t i) {
  check(store.all().size() == averages.size() && store.all()[i].name == averages[i].first,
        "the moving average belongs to another model");
  return store.all()[i].value;
}

}  // namespace

Ema::Ema(const nn::ParameterStore& store, const EmaOptions& options) : options_(options) {
  for (const nn::Parameter& parameter : store.all()) {
    averages_.emplace_back(parameter.name, parameter.value.clone());
  }
}

double Ema::decay(std::int64_t step) const {
  const std::int64_t counted = step - options_.update_after_step - 1;
  if (counted <= 0) {
    return 0;
  }
  if (!options_.warmup) {
    return options_.decay;
  }
  const double grown = 1 - std::pow(1 + static_cast<double>(counted) / options_.warmup_gamma, -options_.warmup_power);
  return std::max(std::min(grown, options_.decay), options_.min_decay);
}

double Ema::share_of_first(std::int64_t updates) const {
  const std::int64_t first = options_.update_after_step + 2;
  if (!options_.warmup) {
    return std::pow(options_.decay, static_cast<double>(std::max<std::int64_t>(updates - first + 1, 0)));
  }
  double share = 1;
  for (std::int64_t step = first; step <= updates && share > 0; ++step) {
    share *= decay(step);
  }
  return share;
}

void Ema::update(const nn::ParameterStore& store, std::int64_t step) {
  const auto weight = static_cast<float>(1 - decay(step));
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const Tensor& average = averages_[i].second;
    const Tensor& value = value_at(store, averages_, i);
    if (value.dtype() == DType::f32 && weight != 1) {
      kernels::lerp(average.span<float>().data(), value.span<float>().data(), weight, value.numel());
    } else {
      average.copy_from(value);
    }
  }
}

void Ema::exchange(const nn::ParameterStore& store) {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const Tensor& average = averages_[i].second;
    const Tensor& value = value_at(store, averages_, i);
    if (value.dtype() == DType::f32) {
      kernels::exchange(average.span<float>().data(), value.span<float>().data(), value.numel());
    } else {
      const Tensor kept = average.clone();
      average.copy_from(value);
      value.copy_from(kept);
    }
    value.touch();
  }
}

void follow(const nn::ParameterStore& target, const nn::ParameterStore& source, double momentum) {
  for (const nn::Parameter& parameter : target.all()) {
    if (!parameter.buffer) {
      const Tensor& from = source.at(parameter.name).value;
      check(from.shape() == parameter.value.shape(), "'{}' is {} in one network and {} in the other", parameter.name,
            parameter.value.shape(), from.shape());
      kernels::lerp(parameter.value.span<float>().data(), from.span<float>().data(), static_cast<float>(1 - momentum),
                    from.numel());
      parameter.value.touch();
    }
  }
}

void Ema::load_state(const io::NamedTensors& state) { copy_state("moving average", state, averages_); }

}  // namespace vitrail::optim
