#include "vitrail/optim/lookahead.h"

#include <cmath>

#include "vitrail/kernels/optimizer.h"
#include "vitrail/optim/state.h"
#include "vitrail/tensor/error.h"

namespace vitrail::optim {

Lookahead::Lookahead(const nn::ParameterStore& store, const LookaheadOptions& options) : options_(options) {
  check(options.every > 0 && options.updates > 0 && options.decay >= 0 && options.decay < 1,
        "lookahead cannot return every {} of {} updates with a decay of {}", options.every, options.updates,
        options.decay);
  check(options.every <= options.updates,
        "lookahead returns every {} updates to weights that follow, but there are {} in all: nothing would be learned",
        options.every, options.updates);
  for (const nn::Parameter& parameter : store.all()) {
    if (parameter.value.dtype() == DType::f32) {
      slow_.emplace_back(parameter.name, parameter.value.clone());
    }
  }
}

void Lookahead::update(const nn::ParameterStore& store, std::int64_t step) {
  const bool returns = step % options_.every == 0;
  const bool last = step == options_.updates;
  if (!returns && !last) {
    return;
  }
  const double share = static_cast<double>(step) / static_cast<double>(options_.updates);
  const double decay = std::pow(options_.decay, static_cast<double>(options_.every)) * share * share * share;
  for (const auto& [name, slow] : slow_) {
    const Tensor& value = store.at(name).value;
    if (returns) {
      kernels::lerp(slow.span<float>().data(), value.span<float>().data(), static_cast<float>(1 - decay),
                    value.numel());
    }
    value.copy_from(slow);
    value.touch();
  }
}

void Lookahead::load_state(const io::NamedTensors& state) { copy_state("lookahead", state, slow_); }

}  // namespace vitrail::optim
