#include "vitrail/models/vit/hybrid.h"

#include <algorithm>
#include <utility>

#include "vitrail/models/vit/vit_init.h"

namespace vitrail::models {

using nn::Size2;

namespace {

// A convolution that cuts patches of this side.
ops::ConvOptions patches_of(std::int64_t side) { return {.stride = {side, side}}; }

std::vector<nn::ConvNorm> stem_layers(const nn::Scope& scope, const ConvStemConfig& c) {
  check(c.dim % 4 == 0, "the stem needs a width that 4 divides, not {}", c.dim);
  const std::int64_t inner = c.dim / 4;
  return {nn::ConvNorm(scope / 0 / "conv", scope / 0 / "bn", c.in_chans, inner, {4, 4}, patches_of(4)),
          nn::ConvNorm(scope / 1 / "conv", scope / 1 / "bn", inner, inner, {2, 2}, patches_of(2))};
}

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

using Network = std::variant<ResNetV2Stem, ResNetV2Body, ResNet, ConvStem>;

Network make_network(const nn::Scope& scope, const HybridConfig& config) {
  return std::visit(Overloaded{[&](const ResNetV2Config& c) -> Network {
                                 check_resnetv2(c);
                                 if (c.layers.empty()) {  // timm's stem alone has no init_weights
                                   return ResNetV2Stem(scope.with_init({}), c);
                                 }
                                 return ResNetV2Body(scope.with_init(hybrid_init_rule(c)), c);
                               },
                               [&](const ResNetConfig& c) -> Network { return ResNet(scope, c); },
                               [&](const ConvStemConfig& c) -> Network { return ConvStem(scope, c); }},
                    config);
}

}  // namespace

ConvStem::ConvStem(const nn::Scope& scope, const ConvStemConfig& config)
    : layers(stem_layers(scope, config)), last(scope / 2 / "conv", config.dim / 4, config.dim, {2, 2}, patches_of(2)) {}

Tensor ConvStem::operator()(const Tensor& x, const nn::Pass& pass) const {
  Tensor y = x;
  for (const nn::ConvNorm& layer : layers) {
    y = layer(y, pass, ops::Activation::gelu);
  }
  return last(y);
}

Size2 ConvStem::output_size(const Size2& size) const {
  Size2 result = size;
  for (const nn::ConvNorm& layer : layers) {
    result = layer.conv.output_size(result);
  }
  return last.output_size(result);
}

std::int64_t ConvStem::flops(Size2& size) const {
  std::int64_t total = 0;
  for (const nn::ConvNorm& layer : layers) {
    total += layer.flops(size);
  }
  size = last.output_size(size);
  return total + last.flops(size[0], size[1]);
}

std::int64_t hybrid_stride(const HybridConfig& config) {
  const auto of_stages = [](std::size_t stages) { return std::int64_t{1} << std::max<std::size_t>(2, 1 + stages); };
  return std::visit(Overloaded{[&](const ConvStemConfig&) { return std::int64_t{16}; },
                               [&](const auto& resnet) { return of_stages(resnet.layers.size()); }},
                    config);
}

HybridBackbone::HybridBackbone(const nn::Scope& scope, const HybridConfig& config)
    : config_(config), network_(make_network(scope, config)) {}

Tensor HybridBackbone::operator()(const Tensor& x, nn::Pass& pass) const {
  return std::visit(Overloaded{[&](const ResNetV2Body& body) { return body(x, pass, true); },
                               [&](const ResNet& net) { return net.forward_features(x, pass, true); },
                               [&](const auto& stem) { return stem(x, pass); }},
                    network_);
}

std::int64_t HybridBackbone::out_channels() const {
  return std::visit(Overloaded{[](const ResNetV2Config& c) { return c.out_channels(); },
                               [&](const ResNetConfig&) { return std::get<ResNet>(network_).num_features(); },
                               [](const ConvStemConfig& c) { return c.dim; }},
                    config_);
}

Size2 HybridBackbone::output_size(const Size2& size) const {
  return std::visit(Overloaded{[&](const ResNet& net) {
                                 const TokenLayout pixels = net.token_layout(size[0], size[1]);
                                 return Size2{pixels.rows, pixels.columns};
                               },
                               [&](const auto& network) { return network.output_size(size); }},
                    network_);
}

std::int64_t HybridBackbone::flops(const Size2& size) const {
  if (const auto* const c = std::get_if<ResNetV2Config>(&config_)) {
    check(resnetv2_cost(*c, static_cast<double>(size[0]), static_cast<double>(size[1])) < 1e18,
          "an image of {}x{} would take more FLOPs than can be counted", size[0], size[1]);
  }
  return std::visit(Overloaded{[&](const ResNet& net) { return net.flops(size[0], size[1]); },
                               [&](const auto& network) {
                                 Size2 left = size;
                                 return network.flops(left);
                               }},
                    network_);
}

bool is_first_convolution(std::string_view parameter) {
  constexpr std::string_view firsts[] = {"stem.conv.weight", "conv.weight", "conv1.weight", "conv1.0.weight",
                                         "0.conv.weight"};
  return std::ranges::find(firsts, parameter) != std::end(firsts);
}

}  // namespace vitrail::models
