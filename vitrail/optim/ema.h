// The moving average of a model's weights.
#pragma once

#include <cstdint>

#include "vitrail/io/safetensors.h"
#include "vitrail/nn/parameters.h"

namespace vitrail::optim {

// timm's ModelEmaV3 and its flags.
struct EmaOptions {
  double decay = 0.9999;  // --model-ema-decay
  double min_decay = 0;
  std::int64_t update_after_step = 0;
  bool warmup = false;  // --model-ema-warmup: decay = 1 - (1 + step / warmup_gamma)^-warmup_power, at most `decay`
  double warmup_gamma = 1;
  double warmup_power = 2.0 / 3.0;
};

// Keeps average = decay · average + (1 - decay) · weights of every parameter and f32 buffer; other buffers are copied.
class Ema {
 public:
  Ema(const nn::ParameterStore& store, const EmaOptions& options);

  // The decay of update `step` (1 for the first, which copies the weights).
  double decay(std::int64_t step) const;
  void update(const nn::ParameterStore& store, std::int64_t step);

  // Exchanges the averages with the contents of the store's parameters: once to evaluate or save them, and once more to
  // train on.
  void exchange(const nn::ParameterStore& store);

  // The averages under the parameters' names, sharing memory.
  const io::NamedTensors& state() const { return averages_; }
  // Takes over (copies) such a state; Error names what is missing, unknown or of another shape.
  void load_state(const io::NamedTensors& state);

 private:
  EmaOptions options_;
  io::NamedTensors averages_;  // in the order of the store
};

}  // namespace vitrail::optim
