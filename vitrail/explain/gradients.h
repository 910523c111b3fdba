/// \file
/// How far back in time a recurrent network learns: the gradient of its loss by the states before.
#pragma once

#include <vector>

#include "vitrail/models/recurrent/recurrent_language.h"

namespace vitrail::explain {

/// Norms of ∂loss_t/∂h_{t-k}, and ∂loss_t/∂c_{t-k} with h held fixed, for k = 0, 1, …
struct GradientReach {
  std::vector<double> h;
  std::vector<double> c;  ///< of cells with a memory, else empty
};

/// The gradient of the loss at the end of texts `ids` [B, T + 1] i64 by the state that each of their T steps hands on
/// to the next: loss_t is the cross-entropy of the last token, given those before it, of which the network reads the
/// first from a state of zeros. h_{t-k} and c_{t-k} are those of all layers k steps before the end, k = 0 … T - 1, and
/// the norms are means over the texts. Throws Error if the texts have less than two tokens.
GradientReach gradient_reach(const models::RecurrentLanguage& model, const Tensor& ids);

}  // namespace vitrail::explain
