#include "vitrail/models/quantize.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "vitrail/models/base/registry.h"
#include "vitrail/models/text/decoder.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/products/quantized.h"

namespace vitrail::models {
namespace {

// Whether int8 pays for this parameter: the weight of a linear layer inside a block that is not one of the small layers
// that compute relative positions.
bool pays(const nn::Network& net, const nn::Parameter& parameter) {
  const std::int64_t layer = net.layer_of(parameter.name);
  const Shape& shape = parameter.value.shape();
  return !parameter.buffer && parameter.name.ends_with(".weight") && shape.rank() == 2 && shape[0] > 16 &&
         shape[1] > 16 && layer >= 1 && layer <= net.depth() && !net.is_head(parameter.name);
}

// The options of a store for a model as `net`, with int8 weights where they pay.
nn::StoreOptions quantized_store(const nn::Network& net, const std::string& name, bool fixed_scales) {
  check(!is_quantized(net), "the model '{}' is quantized already", name);
  nn::StoreOptions store;
  store.fill = nn::Fill::leave;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    if (pays(net, parameter)) {
      store.quantized[parameter.name] = fixed_scales;
    }
  }
  check(!store.quantized.empty(), "the model '{}' has no linear map that int8 pays for", name);
  return store;
}

void set_value(const nn::ParameterStore& parameters, const std::string& name, const Tensor& value) {
  const nn::Parameter& parameter = parameters.at(name);
  parameter.value.copy_from(value);
  parameter.value.touch();
}

// Sets the int8 weight `name` to one of f32.
void set_quantized(const nn::ParameterStore& parameters, const std::string& name, const Tensor& value,
                   nn::WeightLayout layout) {
  const bool transposed = layout == nn::WeightLayout::in_out;
  const ops::QuantizedWeight weight = ops::quantize(transposed ? value.transpose(0, 1).contiguous() : value);
  set_value(parameters, name, weight.values);
  set_value(parameters, name + "_scale", weight.scale);
}

// Fills a network whose store has int8 weights with the values of another one of the same kind, whose linear maps have
// this layout.
void copy_quantized(const nn::Network& from, const nn::Network& to, const InputRanges* ranges,
                    nn::WeightLayout layout = nn::WeightLayout::out_in) {
  const auto& quantized = to.parameters.options().quantized;
  for (const nn::Parameter& parameter : from.parameters.all()) {
    if (!quantized.contains(parameter.name)) {
      set_value(to.parameters, parameter.name, parameter.value.detach());
      continue;
    }
    set_quantized(to.parameters, parameter.name, parameter.value.detach(), layout);
    if (ranges != nullptr) {
      const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
      set_value(to.parameters, layer + ".input_scale",
                Tensor::full({1}, std::max(ranges->of(parameter), 1e-12F) / 127.0F));
    }
  }
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
  const nn::StoreOptions store = quantized_store(*model.net, model.architecture, ranges != nullptr);
  nlohmann::json arguments = nlohmann::json::parse(model.model_args);
  arguments["num_classes"] = model.net->num_classes();
  Model result = build_model(model.architecture, arguments, "model_args", store);
  result.pretrained = model.pretrained;
  copy_quantized(*model.net, *result.net, ranges);
  return result;
}

TextModel quantize(const TextModel& model) {
  nn::StoreOptions store = quantized_store(*model.net, model.name, false);
  const std::string head = "lm_head.weight";
  const auto* const decoder = dynamic_cast<const DecoderNetwork*>(model.net.get());
  if (decoder != nullptr) {
    store.quantized[head] = false;
  }
  TextModel result = remake_text_model(model, store);
  const auto layout = decoder != nullptr ? decoder->body.config().block.mlp.layout : nn::WeightLayout::out_in;
  copy_quantized(*model.net, *result.net, nullptr, layout);
  if (decoder != nullptr && model.net->parameters.find(head) == nullptr) {  // the head is the embedding
    set_quantized(result.net->parameters, head, decoder->body.embedding().detach(), nn::WeightLayout::out_in);
  }
  return result;
}

bool is_quantized(const nn::Network& net) {
  return std::ranges::any_of(net.parameters.all(),
                             [](const nn::Parameter& parameter) { return parameter.value.dtype() == DType::i8; });
}

}  // namespace vitrail::models
