#include "vitrail/models/mvit/mvit_video.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/mvit/families.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/images/conv3d.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using io::Fields;
using nn::Size2;
using nn::Size3;

namespace {

constexpr Size3 ones = {1, 1, 1};

nn::MultiscaleNames torchvision_names() {
  nn::MultiscaleNames names;
  names.proj = "attn.project.0";
  for (auto& pool : names.pools) {
    pool += ".pool";
  }
  names.norms = {"attn.pool_q.norm_act.0", "attn.pool_k.norm_act.0", "attn.pool_v.norm_act.0"};
  names.fc1 = "mlp.0";
  names.fc2 = "mlp.3";
  names.shortcut_attn = names.shortcut_mlp = "project";
  return names;
}

void check_config(const MvitVideoConfig& c) {
  check(!c.blocks.empty(), "a model has at least one block (num_heads, input_channels, …)");
  for (std::size_t i = 0; i < c.blocks.size(); ++i) {
    const MvitVideoBlock& block = c.blocks[i];
    const std::int64_t given = i == 0 ? block.input_channels : c.blocks[i - 1].output_channels;
    check(block.input_channels == given, "block {} takes {} channels, but the one before it gives {}", i,
          block.input_channels, given);
    for (const Size3& kernel : {block.kernel_q, block.kernel_kv}) {
      check(std::ranges::all_of(kernel, [](std::int64_t k) { return k % 2 == 1; }),
            "the kernels of block {} must be odd, not {} x {} x {}", i, kernel[0], kernel[1], kernel[2]);
    }
  }
  // The approximate number of multiply-accumulates for one clip; it is bounded so that all counts computed from these
  // numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const Size3 size = {c.temporal_size, c.img_size[0], c.img_size[1]};
  double tokens = 1;
  double patch = real(c.in_chans);
  for (std::size_t i = 0; i < 3; ++i) {
    tokens *= real(size[i] + 2 * c.patch_embed_padding[i]) / real(c.patch_embed_stride[i]) + 1;
    patch *= real(c.patch_embed_kernel[i]);
  }
  double cost = tokens * patch * real(c.blocks.front().input_channels);
  for (const MvitVideoBlock& block : c.blocks) {
    const double width = real(std::max(block.input_channels, block.output_channels));
    double kernel = 0;
    for (const Size3& size3 : {block.kernel_q, block.kernel_kv}) {
      kernel += real(size3[0]) * real(size3[1]) * real(size3[2]);
    }
    cost += tokens * width * (2 * tokens + 2 * kernel + 13 * width);
  }
  check(cost < 1e17, "temporal_size {} and img_size {}x{} with {} blocks would take {:.0e} FLOPs for a clip",
        c.temporal_size, c.img_size[0], c.img_size[1], c.blocks.size(), cost);
}

// In torchvision, the weights of linear layers start from a truncated normal distribution.
nn::Init torchvision_start(std::string_view name, const Shape& shape, const nn::Init& own) {
  if (own.kind != nn::Init::Kind::uniform || shape.rank() > 2 || name.starts_with("conv_proj.")) {
    return own;
  }
  return name.ends_with(".weight") ? nn::Init::trunc_normal(0.02F) : nn::Init::zeros();
}

Size3 read_triple(const nlohmann::json& json, const std::string& source, const std::string& key, std::int64_t low) {
  const bool fits =
      json.is_array() && json.size() == 3 && std::ranges::all_of(json, [low](const nlohmann::json& one) {
        return one.is_number_integer() && one.get<double>() >= static_cast<double>(low) && one.get<double>() <= 1024;
      });
  check(fits, "{}: '{}' takes three whole numbers (frames, rows, columns) from {} to 1024, not {}", source, key, low,
        json.dump());
  return {json[0].get<std::int64_t>(), json[1].get<std::int64_t>(), json[2].get<std::int64_t>()};
}

Size3 read_triple(Fields& f, const std::string& key, const Size3& fallback, std::int64_t low) {
  return f.kind(key) == io::Kind::absent ? fallback : read_triple(f.raw(key), f.source(), key, low);
}

std::int64_t MvitVideoBlock::*const counts[] = {&MvitVideoBlock::num_heads, &MvitVideoBlock::input_channels,
                                                &MvitVideoBlock::output_channels};
Size3 MvitVideoBlock::*const triples[] = {&MvitVideoBlock::kernel_q, &MvitVideoBlock::kernel_kv,
                                          &MvitVideoBlock::stride_q, &MvitVideoBlock::stride_kv};

// Reads torchvision's block_setting: for each field a list over the blocks, where () means no pooling.
std::vector<MvitVideoBlock> read_blocks(Fields& f) {
  std::vector<MvitVideoBlock> blocks;
  const char* count_names[] = {"num_heads", "input_channels", "output_channels"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto values = f.get<std::vector<std::int64_t>>(count_names[i], io::Range{1, largest_size});
    if (i == 0) {
      check(values.size() <= 4096, "{}: there are at most 4096 blocks, not {}", f.source(), values.size());
      blocks.resize(values.size());
    }
    check(values.size() == blocks.size(), "{}: 'num_heads' names {} blocks, but '{}' has {} values", f.source(),
          blocks.size(), count_names[i], values.size());
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      blocks[block].*counts[i] = values[block];
    }
  }
  const char* triple_names[] = {"kernel_q", "kernel_kv", "stride_q", "stride_kv"};
  for (std::size_t i = 0; i < 4; ++i) {
    const nlohmann::json& list = f.raw(triple_names[i]);
    check(list.is_array() && list.size() == blocks.size(), "{}: '{}' must be a list of {} triples, one for each block",
          f.source(), triple_names[i], blocks.size());
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      const bool none = list[block].is_array() && list[block].empty();
      blocks[block].*triples[i] = none ? ones : read_triple(list[block], f.source(), triple_names[i], 1);
    }
  }
  return blocks;
}

MvitVideoConfig read_mvit_video(const nlohmann::json& arguments, const std::string& source) {
  Fields f(arguments, source);
  MvitVideoConfig c;
  const io::Range rate{0, 1};
  c.img_size = read_size(f, "img_size", c.img_size);
  c.temporal_size = f.get<std::int64_t>("temporal_size", c.temporal_size, {1, largest_size});
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, {1, largest_size});
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.blocks = read_blocks(f);
  c.residual_pool = f.get<bool>("residual_pool", c.residual_pool);
  c.residual_with_cls_embed = f.get<bool>("residual_with_cls_embed", c.residual_with_cls_embed);
  c.rel_pos_embed = f.get<bool>("rel_pos_embed", c.rel_pos_embed);
  c.proj_after_attn = f.get<bool>("proj_after_attn", c.proj_after_attn);
  c.patch_embed_kernel = read_triple(f, "patch_embed_kernel", c.patch_embed_kernel, 1);
  c.patch_embed_stride = read_triple(f, "patch_embed_stride", c.patch_embed_stride, 1);
  c.patch_embed_padding = read_triple(f, "patch_embed_padding", c.patch_embed_padding, 0);
  c.drop_rate = f.get<double>("drop_rate", c.drop_rate, rate);
  c.proj_drop_rate = f.get<double>("proj_drop_rate", c.proj_drop_rate, rate);
  c.drop_path_rate = f.get<double>("drop_path_rate", c.drop_path_rate, rate);
  f.finish();
  for (const double one : {c.drop_rate, c.proj_drop_rate, c.drop_path_rate}) {
    check(one < 1, "{}: a drop rate lies in [0, 1), but one is {}", source, one);
  }
  return c;
}

}  // namespace

VideoMultiscaleVit::VideoMultiscaleVit(const nn::Scope& scope, const MvitVideoConfig& config)
    : scope_(scope), config_(config) {
  const MvitVideoConfig& c = config_;
  check_config(c);
  const nn::Scope root = scope.with_init(torchvision_start);
  const std::int64_t dim = c.blocks.front().input_channels;
  const Size3& kernel = c.patch_embed_kernel;
  const Shape patch = {dim, c.in_chans, kernel[0], kernel[1], kernel[2]};
  patch_weight_ = (root / "conv_proj").parameter("weight", patch, nn::Init::kaiming_uniform(patch));
  patch_bias_ = (root / "conv_proj").parameter("bias", {dim}, nn::Init::kaiming_uniform(patch));
  Size3 grid = this->grid(c.img_size[0], c.img_size[1]);
  Size3 counted = nn::divided({c.temporal_size, c.img_size[0], c.img_size[1]}, c.patch_embed_stride);  // by torchvision
  check(grid == counted,
        "clips of {} frames of {}x{} (temporal_size, img_size) cannot be divided by patch_embed_stride {} x {} x {}",
        c.temporal_size, c.img_size[0], c.img_size[1], c.patch_embed_stride[0], c.patch_embed_stride[1],
        c.patch_embed_stride[2]);
  const nn::Init small = nn::Init::trunc_normal(0.02F);
  const nn::Scope positions = root / "pos_encoding";
  class_token_ = positions.parameter("class_token", {dim}, small);
  if (!c.rel_pos_embed) {
    spatial_pos_ = positions.parameter("spatial_pos", {grid[1] * grid[2], dim}, small);
    temporal_pos_ = positions.parameter("temporal_pos", {grid[0], dim}, small);
    class_pos_ = positions.parameter("class_pos", {dim}, small);
  }
  for (std::size_t i = 0; i < c.blocks.size(); ++i) {
    const MvitVideoBlock& given = c.blocks[i];
    nn::MultiscaleBlockConfig block;
    block.names = torchvision_names();
    block.dim = given.input_channels;
    block.dim_out = given.output_channels;
    block.num_heads = given.num_heads;
    block.mlp_hidden = 4 * (c.proj_after_attn ? given.output_channels : given.input_channels);
    block.expand_attn = c.proj_after_attn;
    block.video = true;
    block.kernel_q = given.kernel_q;
    block.kernel_kv = given.kernel_kv;
    block.stride_q = given.stride_q;
    block.stride_kv = given.stride_kv;
    block.prefix = 1;
    block.residual_pooling = c.residual_pool;
    block.residual_prefix = c.residual_with_cls_embed;
    block.rel_pos_init = small;
    if (c.rel_pos_embed) {
      block.rel_pos_lengths = nn::rel_pos_lengths(counted, given.stride_q, given.stride_kv, true);
    }
    block.proj_drop = static_cast<float>(c.proj_drop_rate);
    block.drop_path =
        c.blocks.size() > 1
            ? static_cast<float>(c.drop_path_rate * static_cast<double>(i) / static_cast<double>(c.blocks.size() - 1))
            : 0.0F;
    blocks_.emplace_back(root / "blocks" / static_cast<std::int64_t>(i), block);
    grid = blocks_.back().output_grid(grid);  // throws Error if a kernel does not fit
    counted = nn::divided(counted, given.stride_q);
  }
  norm_.emplace(root / "norm", num_features());
  if (c.num_classes > 0) {
    head_.emplace(root / "head" / 1, num_features(), c.num_classes);
  }
}

Size3 VideoMultiscaleVit::grid(std::int64_t height, std::int64_t width) const {
  return ops::pooled_grid({config_.temporal_size, height, width}, config_.patch_embed_kernel,
                          config_.patch_embed_stride, config_.patch_embed_padding);
}

nn::GridTokens VideoMultiscaleVit::embed(const Tensor& x, nn::Pass& pass) const {
  check(x.rank() == 5 && x.shape().with(0, 1) == Shape{1, config_.in_chans, config_.temporal_size, config_.img_size[0],
                                                       config_.img_size[1]},
        "the model takes clips [B, {}, {}, {}, {}] (in_chans, temporal_size, img_size), not {}", config_.in_chans,
        config_.temporal_size, config_.img_size[0], config_.img_size[1], x.shape());
  const std::int64_t dim = patch_weight_.size(0);
  const Tensor video = ops::conv3d(ops::cast(x, pass.dtype), patch_weight_, patch_bias_,
                                   {.stride = config_.patch_embed_stride, .padding = config_.patch_embed_padding});
  Tensor patches = ops::reshape(ops::permute(video, {0, 2, 3, 4, 1}), {x.size(0), -1, dim});
  Tensor front = ops::reshape(class_token_, {1, 1, dim});
  if (spatial_pos_.defined()) {
    const Tensor positions =
        ops::unsqueeze(temporal_pos_, 1) + ops::unsqueeze(spatial_pos_, 0);  // [T, rows · columns, D]
    patches = patches + ops::cast(ops::reshape(positions, {1, -1, dim}), pass.dtype);
    front = front + ops::reshape(class_pos_, {1, 1, dim});
  }
  return {ops::concat({ops::expand(ops::cast(front, pass.dtype), {x.size(0), 1, dim}), patches}, 1),
          {video.size(2), video.size(3), video.size(4)}};
}

// Returns the tokens after the last block, without the final norm.
Tensor VideoMultiscaleVit::encode(const Tensor& x, nn::Pass& pass) const {
  nn::GridTokens tokens = embed(x, pass);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const nn::MultiscaleBlock& block = blocks_[i];
    const auto run = [&block, grid = tokens.grid](const Tensor& input, nn::Pass& block_pass) {
      return block({input, grid}, block_pass).x;
    };
    tokens = {nn::run_block(run, tokens.x, pass), block.output_grid(tokens.grid)};
    // A stage ends in front of a block that pools its queries.
    const bool ends = i + 1 == blocks_.size() || blocks_[i + 1].config.stride_q != ones;
    if (ends && pass.wants_features()) {
      pass.recorder->feature((scope_ / "blocks" / static_cast<std::int64_t>(i)).path(), tokens.x);
    }
  }
  return tokens.x;
}

Tensor VideoMultiscaleVit::classify(const Tensor& token, nn::Pass& pass, bool pre_logits) const {
  const Tensor dropped = nn::Dropout{static_cast<float>(config_.drop_rate)}(token, pass);
  return head_ && !pre_logits ? (*head_)(dropped) : dropped;
}

Tensor VideoMultiscaleVit::forward_features(const Tensor& x, nn::Pass& pass) const { return (*norm_)(encode(x, pass)); }

Tensor VideoMultiscaleVit::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  return classify(ops::cast(ops::select(features, 1, 0), DType::f32), pass, pre_logits);
}

Tensor VideoMultiscaleVit::forward(const Tensor& x, nn::Pass& pass) const {
  // The norm is applied to the class token only; it and the head run in f32 whatever the pass's dtype is.
  return classify((*norm_)(ops::cast(ops::select(encode(x, pass), 1, 0), DType::f32)), pass, false);
}

TokenLayout VideoMultiscaleVit::token_layout(std::int64_t height, std::int64_t width) const {
  const Size3 cells = grid(height, width);
  return {1, cells[0] * cells[1], cells[2], true, cells[0]};
}

std::int64_t VideoMultiscaleVit::flops(std::int64_t height, std::int64_t width) const {
  Size3 cells = grid(height, width);
  std::int64_t total = cells[0] * cells[1] * cells[2] * patch_weight_.numel();
  for (const nn::MultiscaleBlock& block : blocks_) {
    total += block.flops(cells);
    cells = block.output_grid(cells);
  }
  return total + norm_->flops(1 + cells[0] * cells[1] * cells[2]) + (head_ ? head_->flops(1) : 0);
}

std::int64_t VideoMultiscaleVit::layer_of(const std::string& parameter) const {
  if (starts_with_any(parameter, {"conv_proj.", "pos_encoding."})) {
    return 0;
  }
  if (const auto block = index_after(parameter, "blocks.")) {
    return *block + 1;
  }
  return parameter.starts_with("norm.") ? depth() : depth() + 1;
}

bool VideoMultiscaleVit::no_weight_decay(const std::string& parameter) const {
  return parameter.starts_with("pos_encoding.") || parameter.find(".rel_pos_") != std::string::npos;
}

Tensor VideoMultiscaleVit::adapt(const std::string& parameter, const Tensor& value, const Shape& /*wanted*/,
                                 const Size2& /*source*/) const {
  return parameter == "conv_proj.weight" ? with_channels(value, config_.in_chans) : value;
}

constinit const Family mvit_video_family = {.name = "mvit_video",
                                            .table = mvit_video_table,
                                            .build = build<VideoMultiscaleVit, read_mvit_video>,
                                            .first_conv = "conv_proj"};

}  // namespace vitrail::models
