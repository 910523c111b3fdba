#include "vitrail/nn/attention/block.h"

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/scale.h"

namespace vitrail::nn {
namespace {

std::variant<RelPosBias, RelPosMlp> make_rel_pos(const Scope& scope, const RelPos::Config& config) {
  if (config.kind == RelPos::Kind::bias) {
    return RelPosBias(scope, config.window, config.num_heads, config.prefix);
  }
  return RelPosMlp(scope, config.window, config.num_heads, config.hidden, config.prefix,
                   config.kind == RelPos::Kind::mlp_swin);
}

Scope part(const Scope& scope, const std::string& name) { return name.empty() ? scope : scope / name; }

std::optional<RelPos> rel_pos_if(const Scope& scope, const BlockConfig& config) {
  return config.rel_pos ? std::optional<RelPos>(std::in_place, part(scope, config.names.rel_pos), *config.rel_pos)
                        : std::nullopt;
}

float norm_start(const BlockConfig& config) {
  return config.norm_place == NormPlace::res_post ? config.init_values.value_or(1.0F) : 1.0F;
}

// Adds the branch of a layer and its norm to x. layer(input, residual) adds the residual if there is one.
template <class Layer>
Tensor with_branch(const Block& block, const Tensor& x, const Norm& norm, const std::optional<LayerScale>& scale,
                   Pass& pass, Layer&& layer) {
  switch (block.norm_place) {
    case NormPlace::pre:
      return add_scaled_branch(x, scale, block.drop_path, pass,
                               [&](const Tensor& residual) { return layer(norm(x), residual); });
    case NormPlace::post:
      return norm(add_scaled_branch(x, scale, block.drop_path, pass,
                                    [&](const Tensor& residual) { return layer(x, residual); }));
    case NormPlace::both: {
      const Tensor normed = norm(x);
      return add_scaled_branch(normed, scale, block.drop_path, pass,
                               [&](const Tensor& residual) { return layer(normed, residual); });
    }
    case NormPlace::res_post:
      return x + block.drop_path(norm(layer(x, Tensor())), pass);
  }
  fail("no such place of a norm: {}", static_cast<int>(block.norm_place));
}

}  // namespace

std::optional<LayerScale> scale_if(const Scope& scope, const BlockConfig& config, const std::string& name) {
  if (!config.init_values || config.norm_place == NormPlace::res_post) {
    return std::nullopt;
  }
  return LayerScale(scope, config.mlp.dim, *config.init_values, name);
}

LayerScale::LayerScale(const Scope& scope, std::int64_t dim, float init, std::string_view name)
    : gamma(scope.parameter(name, {dim}, Init::constant(init))) {}

Tensor LayerScale::operator()(const Tensor& x) const { return ops::scale(x, gamma); }

RelPos::RelPos(const Scope& scope, const Config& config) : bias_(make_rel_pos(scope, config)) {}

Tensor RelPos::operator()(Pass& pass) const {
  return std::visit([&](const auto& bias) { return bias(pass); }, bias_);
}

std::int64_t RelPos::flops() const {
  return std::visit([](const auto& bias) { return bias.flops(); }, bias_);
}

Block::Block(const Scope& scope, const BlockConfig& config)
    : norm_place(config.norm_place),
      norm1(part(scope, config.names.norm1), config.mlp.dim, config.norm, norm_start(config)),
      attn(part(scope, config.names.attn), config.attention),
      rel_pos(rel_pos_if(scope, config)),
      ls1(scale_if(scope, config, config.names.ls1)),
      norm2(part(scope, config.names.norm2), config.mlp.dim, config.norm, norm_start(config)),
      mlp(part(scope, config.names.mlp), config.mlp_kind, config.mlp),
      ls2(scale_if(scope, config, config.names.ls2)),
      drop_path{config.drop_path} {}

Tensor Block::score_bias(Pass& pass, const Tensor& shared) const {
  if (!rel_pos || !shared.defined()) {
    return rel_pos ? (*rel_pos)(pass) : shared;
  }
  return (*rel_pos)(pass) + shared;
}

Tensor Block::operator()(Tensor x, Pass& pass, const AttentionExtras& extras) const {
  check(!extras.residual.defined(), "a block adds its own residual, and takes no other");
  AttentionExtras own = extras;
  own.bias = score_bias(pass, extras.bias);
  x = with_branch(*this, x, norm1, ls1, pass, [&](const Tensor& input, const Tensor& residual) {
    own.residual = residual;
    return attn(input, pass, own);
  });
  own = {};
  return with_branch(*this, x, norm2, ls2, pass,
                     [&](const Tensor& input, const Tensor& residual) { return mlp(input, pass, residual); });
}

std::int64_t Block::flops(std::int64_t tokens) const {
  return norm1.flops(tokens) + attn.flops(tokens) + (rel_pos ? rel_pos->flops() : 0) + norm2.flops(tokens) +
         mlp.flops(tokens);
}

}  // namespace vitrail::nn
