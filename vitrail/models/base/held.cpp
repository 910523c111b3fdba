#include "vitrail/models/base/held.h"

namespace vitrail::models {

HeldWeights held_weights(const nn::Network& net, const nn::Held& how) {
  HeldWeights result;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    const std::int64_t layer = net.layer_of(parameter.name);
    const Shape& shape = parameter.value.shape();
    if (!parameter.buffer && parameter.name.ends_with(".weight") && shape.rank() == 2 && shape[0] > 16 &&
        shape[1] > 16 && layer >= 1 && layer <= net.depth() && !net.is_head(parameter.name)) {
      result[parameter.name] = how;
    }
  }
  return result;
}

}  // namespace vitrail::models
