#include "vitrail/nn/attention/parallel_block.h"

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

constexpr std::int64_t things_in_parallel = 2;

// Throws Error if the config asks for what only sequential blocks have.
void check_parallel(const Scope& scope, const BlockConfig& config) {
  check(config.norm_place == NormPlace::pre, "{}: blocks in parallel have their norms in front", scope.path());
  check(!config.rel_pos, "{}: blocks in parallel have no relative positions", scope.path());
}

const BlockConfig& checked_scaling(const Scope& scope, const BlockConfig& config) {
  check_parallel(scope, config);
  check(!config.attention.scale_norm && !config.mlp.norm && config.mlp_kind == MlpKind::mlp,
        "{}: a block whose attention and Mlp share a product has no norms inside of them (scale_attn_norm, "
        "scale_mlp_norm), and no gate (mlp_layer)",
        scope.path());
  return config;
}

std::optional<Linear> out_linear(bool wanted, const Scope& scope, std::int64_t in, const BlockConfig& config) {
  return wanted ? std::optional<Linear>(std::in_place, scope, in, config.mlp.dim, config.attention.proj_bias)
                : std::nullopt;
}

std::variant<Block, ParallelThingsBlock, ParallelScalingBlock> make_block(const Scope& scope, BlockKind kind,
                                                                          const BlockConfig& config) {
  switch (kind) {
    case BlockKind::sequential:
      return Block(scope, config);
    case BlockKind::parallel_things:
      return ParallelThingsBlock(scope, config);
    case BlockKind::parallel_scaling:
      return ParallelScalingBlock(scope, config);
  }
  fail("no such block: {}", static_cast<int>(kind));
}

}  // namespace

ParallelThingsBlock::ParallelThingsBlock(const Scope& scope, const BlockConfig& config) : drop_path{config.drop_path} {
  check_parallel(scope, config);
  for (std::int64_t i = 0; i < things_in_parallel; ++i) {
    const Scope place = scope / "attns" / i;
    attns.push_back({Norm(place / "norm", config.mlp.dim, config.norm), Attention(place / "attn", config.attention),
                     scale_if(place / "ls", config)});
  }
  for (std::int64_t i = 0; i < things_in_parallel; ++i) {
    const Scope place = scope / "ffns" / i;
    ffns.push_back({Norm(place / "norm", config.mlp.dim, config.norm),
                    FeedForward(place / "mlp", config.mlp_kind, config.mlp), scale_if(place / "ls", config)});
  }
}

Tensor ParallelThingsBlock::operator()(Tensor x, Pass& pass, const AttentionExtras& extras) const {
  check(!extras.residual.defined(), "a block adds its own residual, and takes no other");
  // Each branch is added to the sum of those before it, and sees x.
  const auto add_all = [&](const auto& branches, auto&& run) {
    Tensor sum = x;
    for (const auto& branch : branches) {
      sum = add_scaled_branch(sum, branch.ls, drop_path, pass,
                              [&](const Tensor& residual) { return run(branch.layer, branch.norm(x), residual); });
    }
    return sum;
  };
  x = add_all(attns, [&](const Attention& attn, const Tensor& input, const Tensor& residual) {
    AttentionExtras own = extras;
    own.residual = residual;
    return attn(input, pass, own);
  });
  return add_all(ffns, [&](const FeedForward& mlp, const Tensor& input, const Tensor& residual) {
    return mlp(input, pass, residual);
  });
}

std::int64_t ParallelThingsBlock::flops(std::int64_t tokens) const {
  const auto total = [&](const auto& branches) {
    std::int64_t sum = 0;
    for (const auto& branch : branches) {
      sum += branch.norm.flops(tokens) + branch.layer.flops(tokens);
    }
    return sum;
  };
  return total(attns) + total(ffns);
}

ParallelScalingBlock::ParallelScalingBlock(const Scope& scope, const BlockConfig& given)
    : activation(given.mlp.activation),
      hidden(given.mlp.hidden),
      in_norm(scope / "in_norm", given.mlp.dim, checked_scaling(scope, given).norm),
      in_proj(scope / "in_proj", given.mlp.dim, hidden + 3 * given.attention.dim, given.attention.qkv_bias),
      mlp_bias(given.attention.qkv_bias ? Tensor() : scope.parameter("mlp_bias", {hidden}, Init::zeros())),
      heads(scope, given.attention),
      mlp_drop{given.mlp.drop1},
      out_proj(out_linear(heads.differential.has_value(), scope / "out_proj", given.attention.dim + hidden, given)),
      attn_out_proj(out_linear(!out_proj, scope / "attn_out_proj", given.attention.dim, given)),
      mlp_out_proj(out_linear(!out_proj, scope / "mlp_out_proj", hidden, given)),
      ls(scale_if(scope / "ls", given)),
      drop_path{given.drop_path} {}

// The sum of the two branches, and of `residual` if it is defined.
Tensor ParallelScalingBlock::branches(const Tensor& x, Pass& pass, const AttentionExtras& extras,
                                      const Tensor& residual) const {
  const std::int64_t dim = in_proj.in_features();
  Linear first = in_proj;
  if (mlp_bias.defined()) {
    first.bias = ops::concat({mlp_bias, Tensor::zeros({3 * dim})}, 0);
  }
  const Tensor all = first(in_norm(x));
  const Tensor m = mlp_drop(ops::activate(ops::narrow(all, -1, 0, hidden), activation), pass);
  const Tensor qkv = ops::narrow(all, -1, hidden, 3 * dim);
  Tensor attended;
  if (heads.takes_packed(extras)) {
    attended = heads.packed(qkv, pass, extras);
  } else {
    const std::vector<Tensor> parts = ops::split(qkv, {dim, dim, dim}, -1);
    attended = heads(parts[0], parts[1], parts[2], pass, extras);
  }
  if (out_proj) {
    return (*out_proj)(ops::concat({attended, m}, -1), ops::Activation::identity, residual);
  }
  const Tensor sum = (*attn_out_proj)(attended, ops::Activation::identity, residual);
  return (*mlp_out_proj)(m, ops::Activation::identity, sum);
}

Tensor ParallelScalingBlock::operator()(const Tensor& x, Pass& pass, const AttentionExtras& extras) const {
  check(!extras.residual.defined(), "a block adds its own residual, and takes no other");
  return add_scaled_branch(x, ls, drop_path, pass,
                           [&](const Tensor& residual) { return branches(x, pass, extras, residual); });
}

std::int64_t ParallelScalingBlock::flops(std::int64_t tokens) const {
  std::int64_t total = in_norm.flops(tokens) + in_proj.flops(tokens) + heads.flops(tokens, tokens);
  for (const std::optional<Linear>* linear : {&out_proj, &attn_out_proj, &mlp_out_proj}) {
    total += *linear ? (*linear)->flops(tokens) : 0;
  }
  return total;
}

TowerBlock::TowerBlock(const Scope& scope, BlockKind kind, const BlockConfig& config)
    : block_(make_block(scope, kind, config)) {}

Tensor TowerBlock::score_bias(Pass& pass, const Tensor& shared) const {
  const auto* const block = std::get_if<Block>(&block_);
  return block != nullptr ? block->score_bias(pass, shared) : shared;
}

}  // namespace vitrail::nn
