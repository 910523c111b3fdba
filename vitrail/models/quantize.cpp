#include "vitrail/models/quantize.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "vitrail/io/stored_tensors.h"
#include "vitrail/models/base/held.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::models {
namespace {

// The options of a store for a model like `net`, with these weights in int8.
nn::StoreOptions quantized_store(const nn::Network& net, const std::string& name, HeldWeights held) {
  check(!is_quantized(net), "the model '{}' is quantized already", name);
  check(!held.empty(), "the model '{}' has no linear map that int8 pays for", name);
  return {.fill = nn::Fill::leave, .held = std::move(held)};
}

// Fills a network whose store has int8 weights with the values of another one of the same kind.
void copy_quantized(const nn::Network& from, const nn::Network& to, const InputRanges* ranges) {
  for (const nn::Parameter& parameter : from.parameters.all()) {
    to.parameters.set(to.parameters.at(parameter.name), parameter.value.detach());
    if (ranges != nullptr && to.parameters.at(parameter.name).held) {
      const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
      to.parameters.set(to.parameters.at(layer + ".input_scale"),
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
  const nn::StoreOptions store =
      quantized_store(*model.net, model.architecture, held_weights(*model.net, {DType::i8, ranges != nullptr}));
  nlohmann::json arguments = nlohmann::json::parse(model.model_args);
  arguments["num_classes"] = model.net->num_classes();
  Model result = build_model(model.architecture, arguments, "model_args", store);
  result.pretrained = model.pretrained;
  copy_quantized(*model.net, *result.net, ranges);
  return result;
}

TextModel quantize(const TextModel& model) {
  TextModel result =
      remake_text_model(model, quantized_store(*model.net, model.name, held_text_weights(*model.net, {DType::i8})));
  copy_quantized(*model.net, *result.net, nullptr);
  return result;
}

bool is_quantized(const nn::Network& net) {
  return std::ranges::any_of(net.parameters.all(),
                             [](const nn::Parameter& parameter) { return parameter.value.dtype() == DType::i8; });
}

void check_trainable(const nn::Network& net, const std::string& source) {
  check(!is_quantized(net),
        "the weights of '{}' are in int8 and cannot be trained: train the model that they were quantized from", source);
}

std::int64_t parameter_bytes(const nn::Network& net) {
  std::int64_t sum = 0;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    sum += static_cast<std::int64_t>(parameter.value.bytes());
  }
  return sum;
}

std::int64_t stored_bytes(const nn::Network& net, const std::filesystem::path& given) {
  const std::filesystem::path folder = shipped_or(given);
  if (weights_in(folder).empty()) {
    return parameter_bytes(net);
  }
  const io::StoredTensors file = open_weights(folder);
  const auto is_half = [&](const std::string& name) {
    return io::stored_bits(file.find(name).dtype).value_or(0) == 16;
  };
  const bool half = std::ranges::any_of(file.names(), is_half);
  std::int64_t sum = 0;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    const bool halved = half && parameter.value.dtype() == DType::f32;
    sum += static_cast<std::int64_t>(parameter.value.bytes()) / (halved ? 2 : 1);
  }
  return sum;
}

std::int64_t int8_weights_in(const std::filesystem::path& given) {
  const std::filesystem::path folder = shipped_or(given);
  std::int64_t count = 0;
  if (!weights_in(folder).empty()) {
    const io::StoredTensors file = open_weights(folder);
    for (const auto& [name, how] : quantized_weights(file)) {
      count += file.shape(name).numel();
    }
  }
  return count;
}

}  // namespace vitrail::models
