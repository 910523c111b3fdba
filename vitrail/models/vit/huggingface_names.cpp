// What transformers calls the tensors of timm's Vision Transformers in its checkpoints.
#include "vitrail/models/vit/huggingface_vit.h"

namespace vitrail::models {
namespace {

// The tensors that all Vision Transformers of transformers have.
constexpr NameRule cls_token = {"cls_token", "~embeddings.cls_token"};
constexpr NameRule pos_embed = {"pos_embed", "~embeddings.position_embeddings"};
constexpr NameRule patch_embed = {"patch_embed.proj.@", "~embeddings.patch_embeddings.projection.@"};
constexpr NameRule qkv = {"blocks.#.attn.qkv.@", "~encoder.layer.#.attention.attention.{query,key,value}.@"};
constexpr NameRule attn_proj = {"blocks.#.attn.proj.@", "~encoder.layer.#.attention.output.dense.@"};
constexpr NameRule norm = {"norm.@", "~layernorm.@"};
constexpr NameRule head = {"head.@", "classifier.@"};
constexpr NameRule pooler = {"", "~pooler.@"};  // a layer behind the class token that no classifier reads
constexpr NameRule mask_token = {"", "~embeddings.mask_token"};  // of masked pre-training, which no classifier reads

// The names of norms and Mlp in ViT, DeiT, ViTMAE and BEiT.
constexpr NameRule norm1 = {"blocks.#.norm1.@", "~encoder.layer.#.layernorm_before.@"};
constexpr NameRule norm2 = {"blocks.#.norm2.@", "~encoder.layer.#.layernorm_after.@"};
constexpr NameRule fc1 = {"blocks.#.mlp.fc1.@", "~encoder.layer.#.intermediate.dense.@"};
constexpr NameRule fc2 = {"blocks.#.mlp.fc2.@", "~encoder.layer.#.output.dense.@"};

// The names of norms, Mlp and layer scales in DINOv2; its giant model has a gated Mlp.
constexpr NameRule dino_norm1 = {"blocks.#.norm1.@", "~encoder.layer.#.norm1.@"};
constexpr NameRule dino_norm2 = {"blocks.#.norm2.@", "~encoder.layer.#.norm2.@"};
constexpr NameRule dino_scale1 = {"blocks.#.ls1.gamma", "~encoder.layer.#.layer_scale1.lambda1"};
constexpr NameRule dino_scale2 = {"blocks.#.ls2.gamma", "~encoder.layer.#.layer_scale2.lambda1"};
constexpr NameRule dino_fc1 = {"blocks.#.mlp.fc1.@", "~encoder.layer.#.mlp.fc1.@"};
constexpr NameRule dino_fc2 = {"blocks.#.mlp.fc2.@", "~encoder.layer.#.mlp.fc2.@"};
constexpr NameRule gated_fc1 = {"blocks.#.mlp.fc1.@", "~encoder.layer.#.mlp.weights_in.@"};
constexpr NameRule gated_fc2 = {"blocks.#.mlp.fc2.@", "~encoder.layer.#.mlp.weights_out.@"};

constexpr NameRule vit[] = {cls_token, pos_embed, patch_embed, norm1, qkv,    attn_proj,  norm2,
                            fc1,       fc2,       norm,        head,  pooler, mask_token, {"", "decoder.@"}};

// Without a second head, timm's model has the distillation token as a register token.
constexpr NameRule deit[] = {cls_token,   pos_embed,  {"reg_token", "~embeddings.distillation_token"},

                             patch_embed, norm1,      qkv,
                             attn_proj,   norm2,      fc1,
                             fc2,         norm,       head,

                             pooler,      mask_token, {"", "decoder.@"}};
constexpr NameRule deit_with_teacher[] = {cls_token,
                                          pos_embed,
                                          {"dist_token", "~embeddings.distillation_token"},
                                          patch_embed,
                                          norm1,
                                          qkv,
                                          attn_proj,
                                          norm2,
                                          fc1,
                                          fc2,
                                          norm,
                                          {"head.@", "cls_classifier.@"},
                                          {"head_dist.@", "distillation_classifier.@"},
                                          pooler,
                                          mask_token};

constexpr NameRule dinov2[] = {cls_token,  pos_embed, patch_embed, dino_norm1,  qkv,  attn_proj, dino_scale1,
                               dino_norm2, dino_fc1,  dino_fc2,    dino_scale2, norm, head,      mask_token};
constexpr NameRule dinov2_gated[] = {cls_token,  pos_embed, patch_embed, dino_norm1,  qkv,  attn_proj, dino_scale1,
                                     dino_norm2, gated_fc1, gated_fc2,   dino_scale2, norm, head,      mask_token};

// timm has no position for the class token here: the class token contains it.
constexpr NameRule summed_cls_token = {"cls_token", "~embeddings.{cls_token,position_embeddings}",
                                       Joining::plus_position};
constexpr NameRule patch_positions = {"pos_embed", "~embeddings.position_embeddings", Joining::without_position};
constexpr NameRule register_tokens = {"reg_token", "~embeddings.register_tokens"};
constexpr NameRule dinov2_registers[] = {
    summed_cls_token, patch_positions, register_tokens, patch_embed, dino_norm1, qkv,  attn_proj, dino_scale1,
    dino_norm2,       dino_fc1,        dino_fc2,        dino_scale2, norm,       head, mask_token};
constexpr NameRule dinov2_registers_gated[] = {
    summed_cls_token, patch_positions, register_tokens, patch_embed, dino_norm1, qkv,  attn_proj, dino_scale1,
    dino_norm2,       gated_fc1,       gated_fc2,       dino_scale2, norm,       head, mask_token};

// Keys have no bias, unless queries, keys and values all have one.
constexpr NameRule dinov3[] = {{"cls_token", "embeddings.cls_token"},
                               {"reg_token", "embeddings.register_tokens"},
                               {"patch_embed.proj.@", "embeddings.patch_embeddings.@"},
                               {"blocks.#.norm1.@", "~layer.#.norm1.@"},
                               {"blocks.#.attn.q_bias", "~layer.#.attention.q_proj.bias"},
                               {"blocks.#.attn.v_bias", "~layer.#.attention.v_proj.bias"},
                               {"blocks.#.attn.qkv.@", "~layer.#.attention.{q_proj,k_proj,v_proj}.@"},
                               {"blocks.#.attn.proj.@", "~layer.#.attention.o_proj.@"},
                               {"blocks.#.gamma_1", "~layer.#.layer_scale1.lambda1"},
                               {"blocks.#.norm2.@", "~layer.#.norm2.@"},
                               {"blocks.#.mlp.fc1_g.@", "~layer.#.mlp.gate_proj.@"},
                               {"blocks.#.mlp.fc1_x.@", "~layer.#.mlp.up_proj.@"},
                               {"blocks.#.mlp.fc1.@", "~layer.#.mlp.up_proj.@"},
                               {"blocks.#.mlp.fc2.@", "~layer.#.mlp.down_proj.@"},
                               {"blocks.#.gamma_2", "~layer.#.layer_scale2.lambda1"},
                               {"norm.@", "norm.@"},
                               {"", "embeddings.mask_token"}};

// The keys have no bias, and the norm behind the pooling belongs to the pooler.
constexpr NameRule beit[] = {
    cls_token,
    pos_embed,
    patch_embed,
    {"rel_pos_bias.relative_position_bias_table", "~encoder.relative_position_bias.relative_position_bias_table"},
    {"blocks.#.attn.relative_position_bias_table",
     "~encoder.layer.#.attention.attention.relative_position_bias.relative_position_bias_table"},
    {"blocks.#.attn.q_bias", "~encoder.layer.#.attention.attention.query.bias"},
    {"blocks.#.attn.v_bias", "~encoder.layer.#.attention.attention.value.bias"},
    {"blocks.#.attn.qkv.weight", "~encoder.layer.#.attention.attention.{query,key,value}.weight"},
    attn_proj,
    {"blocks.#.gamma_1", "~encoder.layer.#.lambda_1"},
    {"blocks.#.gamma_2", "~encoder.layer.#.lambda_2"},
    norm1,
    norm2,
    fc1,
    fc2,
    {"fc_norm.@", "~pooler.layernorm.@"},
    norm,
    head,
    mask_token,
    {"", "~encoder.layer.#.attention.attention.relative_position_bias.relative_position_index"},
    {"", "~encoder.relative_position_bias.relative_position_index"}};

// The vision towers of CLIP and SigLIP, whose folders have texts too. Each has parts that the other one lacks.
constexpr NameRule clip_vision[] = {{"cls_token", "~embeddings.class_embedding", Joining::squeezed},
                                    {"pos_embed", "~embeddings.position_embedding.weight", Joining::squeezed},
                                    {"patch_embed.proj.@", "~embeddings.patch_embedding.@"},
                                    {"norm_pre.@", "~pre_layrnorm.@"},  // spelled so
                                    {"blocks.#.norm1.@", "~encoder.layers.#.layer_norm1.@"},
                                    {"blocks.#.attn.qkv.@", "~encoder.layers.#.self_attn.{q_proj,k_proj,v_proj}.@"},
                                    {"blocks.#.attn.proj.@", "~encoder.layers.#.self_attn.out_proj.@"},
                                    {"blocks.#.norm2.@", "~encoder.layers.#.layer_norm2.@"},
                                    {"blocks.#.@", "~encoder.layers.#.@"},
                                    {"norm.@", "~post_layernorm.@"},
                                    {"attn_pool.latent", "~head.probe"},
                                    {"attn_pool.q.@", "~head.attention.in_proj_@", Joining::first_third},
                                    {"attn_pool.kv.@", "~head.attention.in_proj_@", Joining::last_thirds},
                                    {"attn_pool.proj.@", "~head.attention.out_proj.@"},
                                    {"attn_pool.norm.@", "~head.layernorm.@"},
                                    {"attn_pool.mlp.@", "~head.mlp.@"},
                                    {"", "~embeddings.position_ids"},  // a buffer of older files
                                    {"", "visual_projection.@"},
                                    {"", "text_projection.@"},
                                    {"", "text_model.@"},
                                    {"", "logit_scale"},
                                    {"", "logit_bias"}};

// The own names are those of https://github.com/facebookresearch/mae (models_mae.py). '^' stands for the decoder's
// stack of blocks, which transformers has written under two names.
constexpr NameRule mae[] = {cls_token,
                            pos_embed,
                            patch_embed,
                            norm1,
                            qkv,
                            attn_proj,
                            norm2,
                            fc1,
                            fc2,
                            norm,
                            {"decoder_embed.@", "decoder.decoder_embed.@"},
                            {"mask_token", "decoder.mask_token"},
                            {"decoder_pos_embed", "decoder.decoder_pos_embed"},
                            {"decoder_blocks.#.norm1.@", "^#.layernorm_before.@"},
                            {"decoder_blocks.#.attn.qkv.@", "^#.attention.attention.{query,key,value}.@"},
                            {"decoder_blocks.#.attn.proj.@", "^#.attention.output.dense.@"},
                            {"decoder_blocks.#.norm2.@", "^#.layernorm_after.@"},
                            {"decoder_blocks.#.mlp.fc1.@", "^#.intermediate.dense.@"},
                            {"decoder_blocks.#.mlp.fc2.@", "^#.output.dense.@"},
                            {"decoder_norm.@", "decoder.decoder_norm.@"},
                            {"decoder_pred.@", "decoder.decoder_pred.@"}};

}  // namespace

std::span<const NameRule> hub_vit_names() { return vit; }
std::span<const NameRule> hub_deit_names() { return deit; }
std::span<const NameRule> hub_deit_with_teacher_names() { return deit_with_teacher; }
std::span<const NameRule> hub_dinov2_names(bool registers, bool gated) {
  if (registers) {
    return gated ? std::span<const NameRule>(dinov2_registers_gated) : dinov2_registers;
  }
  return gated ? std::span<const NameRule>(dinov2_gated) : dinov2;
}
std::span<const NameRule> hub_dinov3_names() { return dinov3; }
std::span<const NameRule> hub_beit_names() { return beit; }
std::span<const NameRule> hub_clip_vision_names() { return clip_vision; }
std::span<const NameRule> hub_mae_names() { return mae; }

}  // namespace vitrail::models
