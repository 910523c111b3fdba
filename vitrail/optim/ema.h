/// \file
/// The exponential moving average of a model's weights.
#pragma once

#include <cstdint>

#include "vitrail/io/safetensors.h"
#include "vitrail/nn/parameters.h"

namespace vitrail::optim {

/// The options of timm's ModelEmaV3, and their flags.
struct EmaOptions {
  double decay = 0.9999;               ///< `--model-ema-decay`
  double min_decay = 0;                ///< lower limit of the decay with `warmup`
  std::int64_t update_after_step = 0;  ///< updates during which the weights are copied instead
  bool warmup = false;  ///< `--model-ema-warmup`: decay = 1 - (1 + step / warmup_gamma)^-warmup_power, at most `decay`
  double warmup_gamma = 1;
  double warmup_power = 2.0 / 3.0;
};

/// Keeps average = decay · average + (1 - decay) · weights for every parameter and f32 buffer; other buffers are
/// copied.
class Ema {
 public:
  Ema(const nn::ParameterStore& store, const EmaOptions& options);

  /// The decay of update `step`, counted from 1. It is 0 for the first update, which copies the weights.
  double decay(std::int64_t step) const;
  /// The share of the average after `updates` that is still made of the weights it began with.
  double share_of_first(std::int64_t updates) const;
  /// Does update `step` with the store's present weights.
  void update(const nn::ParameterStore& store, std::int64_t step);

  /// Exchanges the averages with the store's parameters: called once to evaluate or save the averages, and once more to
  /// continue training.
  void exchange(const nn::ParameterStore& store);

  /// The averages under the names of the parameters. The tensors share memory with the averages.
  const io::NamedTensors& state() const { return averages_; }
  /// Copies such a state into the averages. Throws Error naming what is missing, unknown or of another shape or dtype.
  void load_state(const io::NamedTensors& state);

 private:
  EmaOptions options_;
  io::NamedTensors averages_;  ///< in the order of the store
};

/// target = momentum · target + (1 - momentum) · source for every parameter of the store `target`, but not for its
/// buffers: the update of momentum encoders and teachers. Throws Error if `source` lacks one of them.
void follow(const nn::ParameterStore& target, const nn::ParameterStore& source, double momentum);

}  // namespace vitrail::optim
