#include "vitrail/explain/gradients.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::explain {
namespace {

// Zeros that are added to the state of a step, so that their gradient is that of the state.
Tensor probe(const Shape& shape) {
  Tensor zeros = Tensor::zeros(shape);
  autograd::require_grad(zeros);
  return zeros;
}

// The mean over the texts of the norms of gradients [layers, B, H].
double mean_norm(const Tensor& gradient) {
  if (!gradient.defined()) {
    return 0;
  }
  const std::int64_t batch = gradient.size(1);
  double sum = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    double squares = 0;
    for (const float value : gradient.select(1, b).values()) {
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    sum += std::sqrt(squares);
  }
  return sum / static_cast<double>(batch);
}

}  // namespace

GradientReach gradient_reach(const models::RecurrentLanguage& model, const Tensor& ids) {
  check(ids.rank() == 2 && ids.size(1) >= 2, "texts of at least two tokens [B, T + 1] are needed, not {}", ids.shape());
  const nn::Recurrent& network = model.network();
  const std::int64_t batch = ids.size(0);
  const std::int64_t steps = ids.size(1) - 1;
  const bool memory = network.config.has_memory();
  std::vector<Tensor> h;
  std::vector<Tensor> c;
  nn::Pass pass;
  autograd::Tape tape;
  const Tensor x = model.vectors()(ids.narrow(1, 0, steps), pass);
  nn::RecurrentState state;
  for (std::int64_t t = 0; t < steps; ++t) {
    state = network(ops::narrow(x, 1, t, 1), state, {}, pass).state;
    h.push_back(probe(state.h.shape()));
    state.h = ops::add(state.h, h.back());
    if (memory) {
      c.push_back(probe(state.c.shape()));
      state.c = ops::add(state.c, c.back());
    }
  }
  const Tensor logits = model.head(ops::select(state.h, 0, network.config.num_layers - 1));
  const Tensor loss = ops::cross_entropy(logits, ids.select(1, steps).contiguous());
  tape.backward(loss, Tensor::scalar(static_cast<float>(batch)));  // the sum of the texts' own losses
  const auto norms = [](const std::vector<Tensor>& probes) {
    std::vector<double> result;
    std::ranges::transform(probes, std::back_inserter(result),
                           [](const Tensor& zeros) { return mean_norm(autograd::grad(zeros)); });
    std::ranges::reverse(result);
    return result;
  };
  return {norms(h), norms(c)};
}

}  // namespace vitrail::explain
