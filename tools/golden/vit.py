"""Writes tests/golden/models: what timm's Vision Transformers compute, for small models with every parameter perturbed.

    python tools/golden/vit.py            # all
    python tools/golden/vit.py variants   # one of: variants, adapted, initialization

Needs timm 1.0.31, torch 2.13.0 and safetensors. timm_models.py says what a variant's folder holds; distilled models
also have head and head_dist.
"""

import sys

import timm
import torch
from timm.layers import set_fused_attn
from timm_models import ROOT, build, random_image, write, write_initialization, write_variant

SMALL = dict(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=7)

# name: (architecture, arguments, image size of x or None for img_size)
VARIANTS = {
    "plain": ("vit_tiny_patch16_224", SMALL, None),
    "avg": ("vit_tiny_patch16_224", SMALL | dict(global_pool="avg", mlp_ratio=2.5, act_layer="gelu_tanh"), None),
    "distilled": ("deit_tiny_distilled_patch16_224", SMALL, None),
    "deit3": ("deit3_small_patch16_224", SMALL, None),
    "reg4": ("vit_base_patch16_reg4_gap_256", SMALL, None),
    "dinov2": (
        "vit_giant_patch14_reg4_dinov2",
        SMALL | dict(num_heads=2, mlp_ratio=2.67, dynamic_img_size=True),
        (24, 48),
    ),
    "relpos": ("vit_relpos_small_patch16_224", SMALL, None),
    "relpos_bias": (
        "vit_relpos_base_patch16_cls_224",
        SMALL | dict(rel_pos_type="bias", img_size=(32, 24)),
        None,
    ),
    "relpos_shared": ("vit_srelpos_small_patch16_224", SMALL | dict(rel_pos_type="mlp_swin", rel_pos_dim=16), None),
    "relpos_cls": ("vit_relpos_medium_patch16_cls_224", SMALL | dict(rel_pos_dim=20), None),
    "relpos_rpn": ("vit_relpos_small_patch16_rpn_224", SMALL, None),
    "map": ("vit_base_patch16_siglip_224", SMALL, None),
    "norms": (
        "test_vit4",
        SMALL | dict(qk_norm=True, scale_attn_norm=True, scale_mlp_norm=True, proj_bias=False, dynamic_img_size=False),
        None,
    ),
    "clip": ("vit_base_patch32_clip_quickgelu_224", SMALL, None),
    "post_norm": ("vit_base_patch16_rpn_224", SMALL, None),
    "rectangles": (
        "vit_tiny_patch16_224",
        SMALL | dict(img_size=(24, 40), patch_size=(8, 4), in_chans=1, global_pool="avgmax", fc_norm=False),
        None,
    ),
    "padded": (
        "vit_tiny_patch16_224",
        SMALL | dict(dynamic_img_size=True, dynamic_img_pad=True, global_pool="max", reg_tokens=2),
        (30, 37),
    ),
    "tokens": (
        "vit_tiny_patch16_224",
        SMALL | dict(class_token=False, pos_embed="none", global_pool="", final_norm=False),
        None,
    ),
    "features": ("vit_small_patch14_dinov2", SMALL | dict(num_classes=0), None),
    "parallel_things": ("vit_small_patch16_18x2_224", SMALL, None),
    "parallel_scaling": ("vit_base_patch16_xp_224", SMALL | dict(img_size=(32, 24)), None),
    "parallel_scaling_bias": ("vit_pwee_patch16_reg1_gap_256", SMALL | dict(mlp_ratio=3), None),
    "differential": ("vit_dlittle_patch16_reg1_gap_256", SMALL | dict(qk_norm=True, scale_attn_norm=True), None),
    "differential_parallel": ("vit_dpwee_patch16_reg1_gap_256", SMALL | dict(qkv_bias=False), None),
    "aimv2": ("aimv2_large_patch14_224", SMALL, None),
    "beit3": ("beit3_base_patch16_224", SMALL, None),
}


def attention_of(model):
    """The dropouts behind the softmaxes, in the order of the forward pass."""
    for block in model.blocks:
        branches = [branch.attn for branch in block.attns] if hasattr(block, "attns") else [getattr(block, "attn", block)]
        yield from (attention.attn_drop for attention in branches)


def image(model, size, batch=2, seed=1):
    channels = model.patch_embed.proj.weight.shape[1]
    return random_image((batch, channels, *(size or model.patch_embed.img_size)), seed)


def write_vit_variant(name, seed):
    architecture, arguments, size = VARIANTS[name]

    def both_heads(model, x, expected):
        if name == "distilled":
            model.distilled_training = True
            model.train()
            expected["head"], expected["head_dist"] = model(x)
            model.eval()

    shape = image(build(architecture, arguments, seed), size).shape
    write_variant(name, architecture, arguments, seed, shape, lambda model: model.blocks,
                  attention_of, both_heads)


# name: (variant, arguments over the folder's)
ADAPTED = {
    "larger": ("plain", dict(img_size=48)),
    "other_shape": ("reg4", dict(img_size=(40, 24))),
    "grayscale": ("plain", dict(in_chans=1)),
    "five_channels": ("clip", dict(in_chans=5)),
    "relpos_larger": ("relpos", dict(img_size=40)),
    "relpos_bias_larger": ("relpos_bias", dict(img_size=(48, 32))),
}


def write_adapted():
    """Checkpoints loaded into models of another image size or number of channels."""
    expected = {}
    for name, (variant, arguments) in ADAPTED.items():
        if name == "relpos_bias_larger":  # from a window that is not square timm resizes only so
            model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True)
            model.set_input_size(arguments["img_size"])
        else:
            model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True, **arguments)
        model = model.double().eval()
        x = image(model, None)
        expected[f"{name}.x"] = x
        expected[f"{name}.logits"] = model(x)
    write(ROOT / "adapted.safetensors", expected)


INITIALIZATIONS = {
    "timm": ("vit_giant_patch14_reg4_dinov2", dict(weight_init="", mlp_ratio=4.0)),
    "fixed": ("vit_base_patch16_siglip_224", dict(weight_init="", fix_init=True)),
    "jax": ("vit_tiny_patch16_224", dict(weight_init="jax")),
    "jax_nlhb": ("deit_tiny_distilled_patch16_224", dict(weight_init="jax_nlhb")),
    "moco": ("vit_tiny_patch16_224", dict(weight_init="moco")),
    "reset": ("vit_giant_patch14_dinov2", dict(weight_init="reset", mlp_ratio=4.0)),
    "relpos": ("vit_relpos_base_patch16_rpn_224", dict(rel_pos_type="bias")),
    "relpos_timm": ("vit_relpos_base_patch16_cls_224", dict(weight_init="")),
    "post_norm": ("vit_base_patch16_rpn_224", dict()),
    "parallel_things": ("vit_small_patch16_18x2_224", dict()),
    "parallel_scaling": ("vit_base_patch16_xp_224", dict(weight_init="jax")),
    "parallel_scaling_moco": ("vit_pwee_patch16_reg1_gap_256", dict(weight_init="moco")),
    "differential": ("vit_dwee_patch16_reg1_gap_256", dict(num_heads=1)),  # which has more values for its λ
    "differential_parallel": ("vit_dpwee_patch16_reg1_gap_256", dict(num_heads=1, qkv_bias=False)),
}


def main():
    set_fused_attn(False)
    ROOT.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[1:] or ["variants", "adapted", "initialization"]
    if "variants" in wanted:
        for seed, name in enumerate(VARIANTS):
            write_vit_variant(name, seed)
    if "adapted" in wanted:
        write_adapted()
    if "initialization" in wanted:
        write_initialization("vit", INITIALIZATIONS,
                             dict(img_size=64, patch_size=8, embed_dim=96, depth=2, num_heads=4, num_classes=50))


if __name__ == "__main__":
    main()
