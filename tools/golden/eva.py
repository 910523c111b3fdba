"""Writes fixtures of timm's Eva and Beit, small models with every parameter perturbed, to tests/golden/models.

    python tools/golden/eva.py

Needs timm 1.0.31, torch 2.13.0 and safetensors. timm_models.py says what a variant's folder holds; eva_adapted.safetensors
has the checkpoints at other image sizes.
"""

import timm
import torch
from timm.layers import set_fused_attn
from timm_models import ROOT, random_image, shape_of, write, write_initialization, write_variant

SMALL = dict(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=7)
BEIT = dict(img_size=(32, 24), patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=7)

# name: (architecture, arguments, image size of x or None for img_size)
VARIANTS = {
    "rope": ("vit_small_patch16_rope_224", SMALL | dict(img_size=(32, 40)), None),
    "rope_mixed": ("vit_small_patch16_rope_mixed_224", SMALL | dict(img_size=(32, 40)), None),
    "rope_mixed_ape": ("vit_small_patch16_rope_mixed_ape_224", SMALL, None),
    "rope_dynamic": ("vit_base_patch16_rope_ape_224", SMALL | dict(dynamic_img_size=True, dynamic_img_pad=True), (30, 50)),
    "rope_reg": ("vit_base_patch16_rope_reg1_gap_256", SMALL | dict(num_reg_tokens=2), None),
    "eva02": ("eva02_tiny_patch14_224", SMALL | dict(img_size=(40, 32)), None),
    "eva02_base": ("eva02_base_patch14_224", SMALL | dict(rope_rotate_half=True, rope_grid_offset=0.5), None),
    "eva02_clip": (
        "eva02_base_patch16_clip_224",
        SMALL | dict(swiglu_align_to=8, qk_norm=True, use_fc_norm=True, use_post_transformer_norm=True),
        None,
    ),
    "eva02_post": ("eva02_enormous_patch14_clip_224", SMALL | dict(use_rot_pos_emb=True, mlp_ratio=2.5), None),
    "pe": (
        "vit_pe_core_tiny_patch16_384",
        SMALL | dict(attn_pool_num_heads=2, attn_pool_mlp_ratio=2.0, ref_feat_shape=(6, 5), img_size=(24, 32)),
        None,
    ),
    "beit": ("beit_base_patch16_224", BEIT, None),
    "beit_shared": (
        "beitv2_base_patch16_224",
        SMALL | dict(use_shared_rel_pos_bias=True, use_abs_pos_emb=True, swiglu_mlp=True, scale_mlp=True,
                     global_pool="token"),
        None,
    ),
    "dinov3": ("vit_small_plus_patch16_dinov3", SMALL | dict(swiglu_align_to=8), (24, 40)),
    "dinov3_bias": ("vit_base_patch16_dinov3_qkvb", SMALL | dict(dynamic_img_size=False, rope_rotate_half=False), None),
}


def write_eva_variant(name, seed):
    architecture, arguments, size = VARIANTS[name]
    write_variant(name, architecture, arguments, seed, shape_of(arguments, size), lambda model: model.blocks,
                  lambda model: [block.attn.attn_drop for block in model.blocks])


# name: (variant, arguments over the folder's)
ADAPTED = {
    "rope_larger": ("rope", dict(img_size=48)),
    "rope_mixed_ape_larger": ("rope_mixed_ape", dict(img_size=(48, 40))),
    "eva02_larger": ("eva02", dict(img_size=(56, 32))),
    "beit_larger": ("beit", dict(img_size=(48, 32))),
    "beit_shared_larger": ("beit_shared", dict(img_size=48)),
}


def write_adapted():
    expected = {}
    for name, (variant, arguments) in ADAPTED.items():
        if name in ("beit_larger", "eva02_larger"):  # from a grid that is not square timm resizes only so
            model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True)
            model.set_input_size(arguments["img_size"])
        else:
            model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True, **arguments)
        model = model.double().eval()
        x = random_image((2, 3, *model.patch_embed.img_size))
        expected[f"{name}.x"] = x
        expected[f"{name}.logits"] = model(x)
    write(ROOT / "eva_adapted.safetensors", expected)


INITIALIZATIONS = {
    "eva": ("eva02_tiny_patch14_224", dict(init_values=0.1)),
    "rope_mixed": ("vit_small_patch16_rope_mixed_ape_224", dict()),
    "beit": ("beit_base_patch16_224", dict(use_abs_pos_emb=True)),
}


def main():
    set_fused_attn(False)
    for seed, name in enumerate(VARIANTS):
        write_eva_variant(name, 100 + seed)
    write_adapted()
    write_initialization("eva", INITIALIZATIONS,
                         dict(img_size=64, patch_size=8, embed_dim=96, depth=2, num_heads=4, num_classes=50))


if __name__ == "__main__":
    main()
