// What transformers calls the tensors of timm's Swin Transformers in its checkpoints.
#include "vitrail/models/swin/huggingface_swin.h"

namespace vitrail::models {
namespace {

// timm merges patches at the beginning of a stage, transformers at the end of the stage before.
constexpr NameRule swin_patches = {"patch_embed.proj.@", "~embeddings.patch_embeddings.projection.@"};
constexpr NameRule swin_patch_norm = {"patch_embed.norm.@", "~embeddings.norm.@"};
constexpr NameRule swin_merging = {"layers.#+1.downsample.@", "~encoder.layers.#.downsample.@"};
constexpr NameRule swin_norm1 = {"layers.#.blocks.#.norm1.@", "~encoder.layers.#.blocks.#.layernorm_before.@"};
constexpr NameRule swin_norm2 = {"layers.#.blocks.#.norm2.@", "~encoder.layers.#.blocks.#.layernorm_after.@"};
constexpr NameRule swin_proj = {"layers.#.blocks.#.attn.proj.@", "~encoder.layers.#.blocks.#.attention.output.dense.@"};
constexpr NameRule swin_fc1 = {"layers.#.blocks.#.mlp.fc1.@", "~encoder.layers.#.blocks.#.intermediate.dense.@"};
constexpr NameRule swin_fc2 = {"layers.#.blocks.#.mlp.fc2.@", "~encoder.layers.#.blocks.#.output.dense.@"};
constexpr NameRule swin_norm = {"norm.@", "~layernorm.@"};
constexpr NameRule swin_mask_token = {"", "~embeddings.mask_token"};  // of masked pre-training
constexpr NameRule swin_head = {"head.fc.@", "classifier.@"};
constexpr NameRule swin_decoder = {"", "decoder.@"};  // of masked pre-training
constexpr NameRule swin_index = {"", "~encoder.layers.#.blocks.#.attention.self.relative_position_index"};

constexpr NameRule swin[] = {
    swin_patches,
    swin_patch_norm,
    swin_merging,
    swin_norm1,
    swin_norm2,
    {"layers.#.blocks.#.attn.relative_position_bias_table",
     "~encoder.layers.#.blocks.#.attention.self.relative_position_bias_table"},
    {"layers.#.blocks.#.attn.qkv.@", "~encoder.layers.#.blocks.#.attention.self.{query,key,value}.@"},
    swin_proj,
    swin_fc1,
    swin_fc2,
    swin_norm,
    swin_head,
    swin_mask_token,
    swin_decoder,
    swin_index};

constexpr NameRule swin_v2[] = {
    swin_patches,
    swin_patch_norm,
    swin_merging,
    swin_norm1,
    swin_norm2,
    {"layers.#.blocks.#.attn.logit_scale", "~encoder.layers.#.blocks.#.attention.self.logit_scale"},
    {"layers.#.blocks.#.attn.cpb_mlp.@", "~encoder.layers.#.blocks.#.attention.self.continuous_position_bias_mlp.@"},
    {"layers.#.blocks.#.attn.q_bias", "~encoder.layers.#.blocks.#.attention.self.query.bias"},
    {"layers.#.blocks.#.attn.v_bias", "~encoder.layers.#.blocks.#.attention.self.value.bias"},
    {"layers.#.blocks.#.attn.qkv.weight", "~encoder.layers.#.blocks.#.attention.self.{query,key,value}.weight"},
    swin_proj,
    swin_fc1,
    swin_fc2,
    swin_norm,
    swin_head,
    swin_mask_token,
    swin_decoder,
    swin_index,
    {"", "~encoder.layers.#.blocks.#.attention.self.relative_coords_table"}};

}  // namespace

std::span<const NameRule> hub_swin_names() { return swin; }
std::span<const NameRule> hub_swin_v2_names() { return swin_v2; }

}  // namespace vitrail::models
