#include "vitrail/nn/block.h"

#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/scale.h"

namespace vitrail::nn {
namespace {

std::variant<RelPosBias, RelPosMlp> make_rel_pos(const Scope& scope, const RelPos::Config& config) {
  if (config.kind == RelPos::Kind::bias) {
    return RelPosBias(scope, config.window, config.num_heads, config.prefix);
  }
  return RelPosMlp(scope, config.window, config.num_heads, config.hidden, config.prefix,
                   config.kind == RelPos::Kind::mlp_swin);
}

// The LayerScale of branch 1 or 2.
std::optional<LayerScale> scale_if(const Scope& scope, const BlockConfig& config, int branch) {
  if (!config.init_values) {
    return std::nullopt;
  }
  const std::string number = std::to_string(branch);
  if (config.names == BlockNames::beit) {
    return LayerScale(scope, config.mlp.dim, *config.init_values, "gamma_" + number);
  }
  return LayerScale(scope / ("ls" + number), config.mlp.dim, *config.init_values);
}

std::optional<RelPos> rel_pos_if(const Scope& attention, const BlockConfig& config) {
  const Scope scope = config.names == BlockNames::beit ? attention : attention / "rel_pos";
  return config.rel_pos ? std::optional<RelPos>(std::in_place, scope, *config.rel_pos) : std::nullopt;
}

Tensor added_bias(const std::optional<RelPos>& own, Pass& pass, const Tensor& shared) {
  if (!own || !shared.defined()) {
    return own ? (*own)(pass) : shared;
  }
  return (*own)(pass) + shared;
}

// x + drop_path(scale(branch(x))).
template <class Branch>
Tensor add_scaled_branch(const Tensor& x, const std::optional<LayerScale>& scale, const DropPath& drop_path, Pass& pass,
                         Branch&& branch) {
  return scale ? x + drop_path((*scale)(branch(Tensor())), pass) : add_branch(x, drop_path, pass, branch);
}

template <class B>
std::int64_t block_flops(const B& block, std::int64_t tokens) {
  return block.norm1.flops(tokens) + block.attn.flops(tokens) + (block.rel_pos ? block.rel_pos->flops() : 0) +
         block.norm2.flops(tokens) + block.mlp.flops(tokens);
}

}  // namespace

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

Tensor Block::score_bias(Pass& pass, const Tensor& shared) const { return added_bias(rel_pos, pass, shared); }

Tensor ResPostBlock::score_bias(Pass& pass, const Tensor& shared) const { return added_bias(rel_pos, pass, shared); }

Block::Block(const Scope& scope, const BlockConfig& config)
    : norm1(scope / "norm1", config.mlp.dim, config.norm),
      attn(scope / "attn", config.attention),
      rel_pos(rel_pos_if(scope / "attn", config)),
      ls1(scale_if(scope, config, 1)),
      norm2(scope / "norm2", config.mlp.dim, config.norm),
      mlp(scope / "mlp", config.mlp_kind, config.mlp),
      ls2(scale_if(scope, config, 2)),
      drop_path{config.drop_path} {}

Tensor Block::operator()(Tensor x, Pass& pass, const Tensor& bias, const ops::Rotation& rotation) const {
  const Tensor scores = score_bias(pass, bias);
  x = add_scaled_branch(x, ls1, drop_path, pass, [&](const Tensor& residual) {
    return attn(norm1(x), pass, {.residual = residual, .bias = scores, .rotation = rotation});
  });
  return add_scaled_branch(x, ls2, drop_path, pass,
                           [&](const Tensor& residual) { return mlp(norm2(x), pass, residual); });
}

std::int64_t Block::flops(std::int64_t tokens) const { return block_flops(*this, tokens); }

ResPostBlock::ResPostBlock(const Scope& scope, const BlockConfig& config)
    : attn(scope / "attn", config.attention),
      rel_pos(rel_pos_if(scope / "attn", config)),
      norm1(scope / "norm1", config.mlp.dim, config.norm, config.init_values.value_or(1.0F)),
      mlp(scope / "mlp", config.mlp_kind, config.mlp),
      norm2(scope / "norm2", config.mlp.dim, config.norm, config.init_values.value_or(1.0F)),
      drop_path{config.drop_path} {}

Tensor ResPostBlock::operator()(Tensor x, Pass& pass, const Tensor& bias, const ops::Rotation& rotation) const {
  const Tensor scores = score_bias(pass, bias);
  x = x + drop_path(norm1(attn(x, pass, {.bias = scores, .rotation = rotation})), pass);
  return x + drop_path(norm2(mlp(x, pass)), pass);
}

std::int64_t ResPostBlock::flops(std::int64_t tokens) const { return block_flops(*this, tokens); }

}  // namespace vitrail::nn
