#include "vitrail/models/mlp/cycle_mlp.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/mlp/families.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/images/shift.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::Size2;

namespace {

constexpr float cycle_norm_eps = 1e-5F;

std::int64_t hidden_width(std::int64_t dim, double ratio) {
  return static_cast<std::int64_t>(static_cast<double>(dim) * ratio);
}

void check_config(const CycleMlpConfig& c) {
  check(!c.layers.empty() && c.layers.size() <= 16, "layers says the blocks of 1 to 16 stages, not of {}",
        c.layers.size());
  check(c.embed_dims.size() == c.layers.size() && c.mlp_ratios.size() == c.layers.size(),
        "layers, embed_dims and mlp_ratios say one number for each stage, but have {}, {} and {}", c.layers.size(),
        c.embed_dims.size(), c.mlp_ratios.size());
  check(c.img_size[0] >= 3 && c.img_size[1] >= 3, "img_size {}x{} is less than 3x3", c.img_size[0], c.img_size[1]);
  check(c.drop_path_rate < 1, "a drop rate lies in [0, 1), but drop_path_rate is {}", c.drop_path_rate);
  // The approximate number of multiply-accumulates for one image and of parameters; it is bounded so that all counts
  // computed from these numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  double cost = 0;
  double places = (real(c.img_size[0]) / 4 + 1) * (real(c.img_size[1]) / 4 + 1);
  for (std::size_t s = 0; s < c.layers.size(); ++s) {
    const double dim = real(c.embed_dims[s]);
    check(c.embed_dims[s] >= 4, "embed_dims: a stage needs 4 channels or more, not {}", c.embed_dims[s]);
    check(hidden_width(c.embed_dims[s], c.mlp_ratios[s]) > 0, "mlp_ratios: {} leaves no hidden unit to {} channels",
          c.mlp_ratios[s], c.embed_dims[s]);
    cost += (places + 1) * dim *
            (dim * real(c.layers[s]) * (6 + 2 * c.mlp_ratios[s]) + 147 * real(c.in_chans) + 9 * dim +
             9 * real(c.embed_dims[s == 0 ? 0 : s - 1]));
    places = places / 4 + 1;
  }
  check(cost < 1e17, "img_size {}x{} with these embed_dims and layers would take {:.0e} FLOPs for an image",
        c.img_size[0], c.img_size[1], cost);
}

CycleMlpConfig read_cycle_mlp(const nlohmann::json& arguments, const std::string& source) {
  io::Fields f(arguments, source);
  CycleMlpConfig c;
  const io::Range positive{1, largest_size};
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.img_size = read_size(f, "img_size", c.img_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, positive);
  c.layers = f.get<std::vector<std::int64_t>>("layers", c.layers, {1, 1024});
  c.embed_dims = f.get<std::vector<std::int64_t>>("embed_dims", c.embed_dims, positive);
  c.mlp_ratios = f.get<std::vector<double>>("mlp_ratios", c.mlp_ratios, {1e-3, 1e3});
  c.qkv_bias = f.get<bool>("qkv_bias", false);
  c.drop_path_rate = f.get<double>("drop_path_rate", 0, {0, 1});
  f.finish();
  return c;
}

// The initialization of the authors: convolutions as in PyTorch, all other weights from N(0, 0.02²), and their biases
// 0.
nn::Init cycle_start(std::string_view name, const Shape& /*shape*/, const nn::Init& own) {
  const bool convolution =
      name.starts_with("patch_embed.") ||
      (name.starts_with("network.") && name.find(".attn.") == name.npos && name.find(".mlp.") == name.npos);
  if (own.kind != nn::Init::Kind::uniform || convolution) {
    return own;
  }
  return name.ends_with(".weight") ? nn::Init::trunc_normal(0.02F) : nn::Init::zeros();
}

// The offset at which a CycleFC reads channel c, along its stick.
std::int64_t offset_of(std::int64_t c) { return (c + 1) % 3 - 1; }

Tensor offsets(std::int64_t channels, CycleFc::Stick stick) {
  const Tensor table = Tensor::zeros({1, 2 * channels, 1, 1});
  for (std::int64_t c = 0; c < channels; ++c) {
    table.data<float>()[2 * c + (stick == CycleFc::Stick::horizontal ? 1 : 0)] = static_cast<float>(offset_of(c));
  }
  return table;
}

// Applies a convolution to x [B, H, W, C], which gives [B, H', W', C'].
Tensor convolve(const nn::Conv2d& convolution, const Tensor& x) {
  return ops::permute(convolution(ops::permute(x, {0, 3, 1, 2})), {0, 2, 3, 1});
}

}  // namespace

CycleFc::CycleFc(const nn::Scope& scope, std::int64_t in, std::int64_t out, Stick direction)
    : stick(direction),
      weight(scope.parameter("weight", {out, in, 1, 1}, nn::Init::kaiming_uniform({out, in, 1, 1}))),
      bias(scope.parameter("bias", {out}, nn::Init::kaiming_uniform({out, in, 1, 1}))) {
  const Tensor table = scope.buffer("offset", {1, 2 * in, 1, 1}, nn::Init::zeros());
  if (table.raw() != nullptr) {  // null in a model whose parameters have no memory
    table.copy_from(offsets(in, stick));
  }
}

Tensor CycleFc::operator()(const Tensor& x) const {
  const std::int64_t channels = x.size(3);
  std::vector<ops::ChannelShift> shifts;
  for (std::int64_t c = 0; c < 3; ++c) {
    ops::ChannelShift shift{.begin = c, .end = channels, .step = 3};
    (stick == Stick::horizontal ? shift.columns : shift.rows) = offset_of(c);
    shifts.push_back(shift);
  }
  return ops::linear(ops::shift_channels(x, shifts, ops::Border::zeros),
                     ops::reshape(weight, {weight.size(0), weight.size(1)}), bias);
}

CycleMixing::CycleMixing(const nn::Scope& scope, std::int64_t dim, bool qkv_bias)
    : mlp_c(scope / "mlp_c", dim, dim, qkv_bias),
      sfc_h(scope / "sfc_h", dim, dim, CycleFc::Stick::horizontal),
      sfc_w(scope / "sfc_w", dim, dim, CycleFc::Stick::vertical),
      reweight(scope / "reweight", {.dim = dim, .hidden = dim / 4, .out = 3 * dim}),
      proj(scope / "proj", dim, dim) {}

Tensor CycleMixing::operator()(const Tensor& x, nn::Pass& pass, const Tensor& residual) const {
  const Tensor h = sfc_h(x);
  const Tensor w = sfc_w(x);
  const Tensor c = mlp_c(x);
  const Tensor mean = ops::mean(h, {1, 2}) + ops::mean(w, {1, 2}) + ops::mean(c, {1, 2});
  const Tensor a = ops::softmax(ops::reshape(reweight(mean, pass), {x.size(0), 1, 1, x.size(3), 3}), -1);
  const Tensor y = h * ops::select(a, -1, 0) + w * ops::select(a, -1, 1) + c * ops::select(a, -1, 2);
  return proj(y, ops::Activation::identity, residual);
}

std::int64_t CycleMixing::flops(std::int64_t tokens) const {
  return sfc_h.flops(tokens) + sfc_w.flops(tokens) + mlp_c.flops(tokens) + reweight.flops(1) + proj.flops(tokens);
}

CycleBlock::CycleBlock(const nn::Scope& scope, std::int64_t dim, double mlp_ratio, bool qkv_bias, float rate)
    : norm1(scope / "norm1", dim, cycle_norm_eps),
      attn(scope / "attn", dim, qkv_bias),
      norm2(scope / "norm2", dim, cycle_norm_eps),
      mlp(scope / "mlp", {.dim = dim, .hidden = hidden_width(dim, mlp_ratio)}),
      drop_path{rate} {}

Tensor CycleBlock::operator()(Tensor x, nn::Pass& pass) const {
  x = nn::add_branch(x, drop_path, pass, [&](const Tensor& residual) { return attn(norm1(x), pass, residual); });
  return nn::add_branch(x, drop_path, pass, [&](const Tensor& residual) { return mlp(norm2(x), pass, residual); });
}

std::int64_t CycleBlock::flops(std::int64_t tokens) const {
  return 2 * 5 * tokens * mlp.fc1.in_features() + attn.flops(tokens) + mlp.flops(tokens);
}

CycleMlp::CycleMlp(const nn::Scope& scope, const CycleMlpConfig& config) : scope_(scope), config_(config) {
  check_config(config_);
  const nn::Scope root = scope.with_init(cycle_start);
  const std::vector<std::int64_t>& dims = config_.embed_dims;
  patch_embed_.emplace(root / "patch_embed" / "proj", config_.in_chans, dims.front(), std::array<std::int64_t, 2>{7, 7},
                       ops::ConvOptions{.stride = {4, 4}, .padding = {2, 2}});
  const nn::Scope network = root / "network";
  const std::int64_t total = depth();
  std::int64_t index = 0;
  for (std::size_t s = 0; s < dims.size(); ++s) {
    const auto place = static_cast<std::int64_t>(2 * s);
    Stage& stage = stages_.emplace_back();
    if (s > 0) {
      stage.downsample.emplace(network / (place - 1) / "proj", dims[s - 1], dims[s], std::array<std::int64_t, 2>{3, 3},
                               ops::ConvOptions{.stride = {2, 2}, .padding = {1, 1}});
    }
    for (std::int64_t i = 0; i < config_.layers[s]; ++i, ++index) {
      const double rate =
          total > 1 ? config_.drop_path_rate * static_cast<double>(index) / static_cast<double>(total - 1) : 0;
      stage.blocks.emplace_back(network / place / i, dims[s], config_.mlp_ratios[s], config_.qkv_bias,
                                static_cast<float>(rate));
    }
  }
  norm_.emplace(root / "norm", dims.back(), cycle_norm_eps);
  if (config_.num_classes > 0) {
    head_.emplace(root / "head", dims.back(), config_.num_classes);
  }
}

std::int64_t CycleMlp::depth() const {
  return std::accumulate(config_.layers.begin(), config_.layers.end(), std::int64_t{0});
}

Tensor CycleMlp::forward_features(const Tensor& x, nn::Pass& pass) const {
  check(x.rank() == 4 && x.size(1) == config_.in_chans, "the model takes images [B, {}, H, W], not {}",
        config_.in_chans, x.shape());
  check(x.size(2) >= 3 && x.size(3) >= 3, "the model takes images from 3x3 pixels on, not of {}x{}", x.size(2),
        x.size(3));
  Tensor y = ops::permute((*patch_embed_)(ops::cast(x, pass.dtype)), {0, 2, 3, 1});
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    y = stages_[s].downsample ? convolve(*stages_[s].downsample, y) : y;
    for (const CycleBlock& block : stages_[s].blocks) {
      y = nn::run_block([&block](const Tensor& input, nn::Pass& again) { return block(input, again); }, y, pass);
    }
    if (pass.wants_features()) {
      pass.recorder->feature((scope_ / "network" / static_cast<std::int64_t>(2 * s)).path(),
                             y.permute({0, 3, 1, 2}).contiguous());
    }
  }
  return (*norm_)(y);
}

Tensor CycleMlp::forward_head(const Tensor& features, nn::Pass& /*pass*/, bool pre_logits) const {
  const Tensor y = ops::cast(ops::mean(features, {1, 2}), DType::f32);
  return head_ && !pre_logits ? (*head_)(y) : y;  // the head runs in f32 whatever the pass's dtype is
}

namespace {

// The rows and columns of each stage for images of this size.
std::vector<Size2> grids(std::int64_t height, std::int64_t width, std::size_t stages) {
  std::vector<Size2> result;
  Size2 grid = {(height - 3) / 4 + 1, (width - 3) / 4 + 1};  // (H + 2 · 2 - 7) / 4 + 1
  for (std::size_t s = 0; s < stages; ++s) {
    result.push_back(grid);
    grid = {(grid[0] + 1) / 2, (grid[1] + 1) / 2};
  }
  return result;
}

}  // namespace

TokenLayout CycleMlp::token_layout(std::int64_t height, std::int64_t width) const {
  const Size2 grid = grids(height, width, stages_.size()).back();
  return {0, grid[0], grid[1], false};
}

std::int64_t CycleMlp::flops(std::int64_t height, std::int64_t width) const {
  const std::vector<Size2> sizes = grids(height, width, stages_.size());
  std::int64_t total = patch_embed_->flops(sizes[0][0], sizes[0][1]);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const auto& [rows, columns] = sizes[s];
    total += stages_[s].downsample ? stages_[s].downsample->flops(rows, columns) : 0;
    for (const CycleBlock& block : stages_[s].blocks) {
      total += block.flops(rows * columns);
    }
  }
  total += 5 * sizes.back()[0] * sizes.back()[1] * num_features();
  return total + (head_ ? head_->flops(1) : 0);
}

std::int64_t CycleMlp::layer_of(const std::string& parameter) const {
  if (parameter.starts_with("patch_embed.")) {
    return 0;
  }
  const auto place = index_after(parameter, "network.");
  if (!place) {
    return parameter.starts_with("norm.") ? depth() : depth() + 1;
  }
  const auto stage = static_cast<std::ptrdiff_t>((*place + 1) / 2);
  const std::int64_t before = std::accumulate(config_.layers.begin(), config_.layers.begin() + stage, std::int64_t{0});
  const auto block = *place % 2 == 0 ? index_after(parameter, "network." + std::to_string(*place) + ".") : 0;
  return before + block.value_or(0) + 1;
}

Tensor CycleMlp::adapt(const std::string& parameter, const Tensor& value, const Shape& wanted,
                       const Size2& /*source*/) const {
  if (parameter == "patch_embed.proj.weight") {
    return with_channels(value, config_.in_chans);
  }
  if (parameter.ends_with(".offset")) {
    const bool horizontal = parameter.ends_with("sfc_h.offset");
    const Tensor fixed =
        offsets(wanted.numel() / 2, horizontal ? CycleFc::Stick::horizontal : CycleFc::Stick::vertical);
    check(value.shape() == wanted && value.values() == fixed.values(),
          "it holds other offsets than CycleMLP's, which are fixed");
  }
  return value;
}

namespace {

// The authors' CycleMLP_B1 to CycleMLP_B5.
std::string_view cycle_mlp_table() {
  return R"(
cycle_mlp_b1 (cycle_mlp) layers=(2,2,4,2) embed_dims=(64,128,320,512) mlp_ratios=(4,4,4,4)
  in1k: normalization=imagenet
cycle_mlp_b2 (cycle_mlp) layers=(2,3,10,3) embed_dims=(64,128,320,512) mlp_ratios=(4,4,4,4)
  in1k: normalization=imagenet
cycle_mlp_b3 (cycle_mlp) layers=(3,4,18,3) embed_dims=(64,128,320,512) mlp_ratios=(8,8,4,4)
  in1k: normalization=imagenet
cycle_mlp_b4 (cycle_mlp) layers=(3,8,27,3) embed_dims=(64,128,320,512) mlp_ratios=(8,8,4,4)
  in1k: crop_pct=0.875 normalization=imagenet
cycle_mlp_b5 (cycle_mlp) layers=(3,4,24,3) embed_dims=(96,192,384,768) mlp_ratios=(4,4,4,4)
  in1k: crop_pct=0.875 normalization=imagenet
)";
}

}  // namespace

constinit const Family cycle_mlp_family = {.name = "cycle_mlp",
                                           .table = cycle_mlp_table,
                                           .build = build<CycleMlp, read_cycle_mlp>,
                                           .first_conv = "patch_embed.proj",
                                           .sized = false};

}  // namespace vitrail::models
