#include "vitrail/models/quantize.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "vitrail/models/base/registry.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/products/quantized.h"

namespace vitrail::models {
namespace {

// Whether int8 pays for this parameter: the weight of a linear layer inside a block that is not one of the small layers
// that compute relative positions.
bool pays(const ImageModel& net, const nn::Parameter& parameter) {
  const std::int64_t layer = net.layer_of(parameter.name);
  const Shape& shape = parameter.value.shape();
  return !parameter.buffer && parameter.name.ends_with(".weight") && shape.rank() == 2 && shape[0] > 16 &&
         shape[1] > 16 && layer >= 1 && layer <= net.depth() && !net.is_head(parameter.name);
}

}  // namespace

void InputRanges::input(const Tensor& weight, const Tensor& x) {
  Range& range = ranges_[weight.raw()];
  range.sum += static_cast<double>(ops::amax(ops::abs(ops::cast(x.detach(), DType::f32))).item());
  ++range.batches;
}

float InputRanges::of(const nn::Parameter& weight) const {
  const auto it = ranges_.find(weight.value.raw());
  check(it != ranges_.end(), "no image has been through '{}': its range is not known", weight.name);
  const auto range = static_cast<float>(it->second.sum / it->second.batches);
  check(std::isfinite(range), "the inputs of '{}' are not finite: no scale fits them", weight.name);
  return range;
}

Model quantize(const Model& model, const InputRanges* ranges) {
  check(!is_quantized(*model.net), "the model '{}' is quantized already", model.architecture);
  nn::StoreOptions store;
  store.fill = nn::Fill::leave;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (pays(*model.net, parameter)) {
      store.quantized[parameter.name] = ranges != nullptr;
    }
  }
  check(!store.quantized.empty(), "the model '{}' has no linear map that int8 pays for", model.architecture);
  nlohmann::json arguments = nlohmann::json::parse(model.model_args);
  arguments["num_classes"] = model.net->num_classes();
  Model result = build_model(model.architecture, arguments, "model_args", store);
  result.pretrained = model.pretrained;
  const auto set = [&](const std::string& name, const Tensor& value) {
    const nn::Parameter& parameter = result.net->parameters.at(name);
    parameter.value.copy_from(value);
    parameter.value.touch();
  };
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    const auto it = store.quantized.find(parameter.name);
    if (it == store.quantized.end()) {
      set(parameter.name, parameter.value.detach());
      continue;
    }
    const ops::QuantizedWeight weight = ops::quantize(parameter.value);
    set(parameter.name, weight.values);
    set(parameter.name + "_scale", weight.scale);
    if (ranges != nullptr) {
      const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
      set(layer + ".input_scale", Tensor::full({1}, std::max(ranges->of(parameter), 1e-12F) / 127.0F));
    }
  }
  return result;
}

bool is_quantized(const ImageModel& net) {
  return std::ranges::any_of(net.parameters.all(),
                             [](const nn::Parameter& parameter) { return parameter.value.dtype() == DType::i8; });
}

}  // namespace vitrail::models
