/// \file
/// Lookahead: slow weights to which the weights return.
#pragma once

#include <cstdint>

#include "vitrail/io/safetensors.h"
#include "vitrail/nn/parameters.h"

namespace vitrail::optim {

struct LookaheadOptions {
  std::int64_t every = 5;    ///< updates between two returns: Lookahead's k
  double decay = 0.95;       ///< at most decay^every of the slow weights stays at a return
  std::int64_t updates = 0;  ///< of the whole run
};

/// Lookahead (Zhang et al. 2019) as in airbench94: after every k-th update t of T, slow = d · slow + (1 - d) · weights
/// with d = decay^k · (t / T)³, and the weights, and f32 buffers, become the slow ones. After update T they become the
/// slow ones without that.
class Lookahead {
 public:
  /// The slow weights start as those of the store.
  Lookahead(const nn::ParameterStore& store, const LookaheadOptions& options);

  /// Does what follows update `step`, counted from 1.
  void update(const nn::ParameterStore& store, std::int64_t step);

  /// The slow weights under the names of the parameters. The tensors share memory with them.
  const io::NamedTensors& state() const { return slow_; }
  /// Copies such a state. Throws Error naming what is missing, unknown or of another shape or dtype.
  void load_state(const io::NamedTensors& state);

 private:
  LookaheadOptions options_;
  io::NamedTensors slow_;
};

}  // namespace vitrail::optim
