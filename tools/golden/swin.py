"""Writes tests/golden/models/swin*: what timm's Swin transformers compute, for small models with every parameter perturbed.

    python tools/golden/swin.py            # all
    python tools/golden/swin.py variants   # one of: variants, adapted, initialization

Needs timm 1.0.31, torch 2.13.0 and safetensors. timm_models.py says what a variant's folder holds.
"""

import sys

import timm
from timm.layers import set_fused_attn
from timm_models import ROOT, random_image, shape_of, write, write_initialization, write_variant

SMALL = dict(img_size=32, patch_size=2, embed_dim=8, depths=(2, 2, 1), num_heads=(2, 2, 4), window_size=4, mlp_ratio=2,
             num_classes=5)
SWIN = "swin_tiny_patch4_window7_224"
V2 = "swinv2_tiny_window8_256"
PADDED = dict(img_size=(36, 44), patch_size=4, in_chans=1, embed_dim=12, num_heads=(3, 2), mlp_ratio=2.0, num_classes=5)

# name: (architecture, arguments, image size of x or None for img_size)
VARIANTS = {
    "swin": (SWIN, SMALL, None),
    # Neither grid is made of whole windows, the odd side is filled up for merging, and the last window is cut short.
    "swin_padded": (
        SWIN,
        PADDED | dict(depths=(2, 2), head_dim=(5, 8), window_size=((4, 3), (2, 6)), mlp_ratio=(2, 1.5), qkv_bias=False,
                      global_pool="max"),
        None,
    ),
    # Windows larger than the grid stay, and images of another size come.
    "swin_partition": (
        SWIN,
        SMALL | dict(depths=(2, 2), num_heads=(2, 4), window_size=(3, 5), always_partition=True, dynamic_img_size=True,
                     img_size=16),
        (20, 12),
    ),
    "swinv2": (V2, SMALL | dict(depths=(2, 1), num_heads=(2, 4)), None),
    # Trained with other windows first.
    "swinv2_padded": (
        V2,
        PADDED | dict(depths=(2, 1), window_size=((4, 3), (5, 6)), pretrained_window_sizes=(3, 4), qkv_bias=False,
                      act_layer="relu", global_pool="max"),
        None,
    ),
    "swinv2_cr": (
        "swinv2_cr_tiny_ns_224",
        dict(img_size=32, patch_size=2, embed_dim=8, depths=(2, 1), num_heads=(2, 4), window_ratio=4, mlp_ratio=2.0,
             num_classes=5),
        None,
    ),
    # Images of any size: what is left over of them is left out.
    "swinv2_cr_padded": (
        "swinv2_cr_tiny_224",
        PADDED | dict(embed_dim=18, depths=(2, 1), window_size=(4, 3), extra_norm_period=2, init_values=None, dynamic_img_size=True,
                      global_pool="avgmax"),
        (41, 35),
    ),
    "swinv2_cr_features": (
        "swinv2_cr_tiny_224",
        dict(img_size=16, patch_size=2, embed_dim=8, depths=(1,), num_heads=(2,), num_classes=0, global_pool=""),
        None,
    ),
    "swin_features": (SWIN, SMALL | dict(img_size=16, embed_dim=24, depths=(2,), num_heads=(2,), num_classes=0, global_pool=""), None),
}

# name: (variant, arguments over the folder's)
ADAPTED = {
    "swin_larger": ("swin", dict(img_size=(48, 40))),
    "swin_smaller": ("swin", dict(img_size=16)),
    "swin_windows": ("swin", dict(window_size=(6, 5))),
    "swin_grayscale": ("swin", dict(in_chans=1)),
    "swinv2_windows": ("swinv2", dict(img_size=(24, 48), window_size=6, pretrained_window_sizes=(4, 4))),
    "swinv2_cr_larger": ("swinv2_cr", dict(img_size=40)),
}

INITIALIZATIONS = {
    "swin": (SWIN, dict(drop_path_rate=0.1)),
    "swin_jax_nlhb": (SWIN, dict(weight_init="jax_nlhb")),
    "swinv2": (V2, dict()),
    "swinv2_cr": ("swinv2_cr_tiny_ns_224", dict()),
    "swinv2_cr_swin": ("swinv2_cr_tiny_ns_224", dict(weight_init="swin", init_values=0.5)),
}


def write_swin_variant(name, seed):
    architecture, arguments, size = VARIANTS[name]

    def stages(model):
        return model.stages if hasattr(model, "stages") else model.layers

    def attention(model):
        return [block.attn.attn_drop for stage in stages(model) for block in stage.blocks]

    write_variant(name, architecture, arguments, seed, shape_of(arguments, size), stages, attention)


def write_adapted():
    """Checkpoints loaded into models of another image size, window or number of channels."""
    expected = {}
    for name, (variant, arguments) in ADAPTED.items():
        model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True, **arguments).double().eval()
        x = random_image((2, model.patch_embed.proj.weight.shape[1], *model.patch_embed.img_size))
        expected[f"{name}.x"] = x
        expected[f"{name}.logits"] = model(x)
    write(ROOT / "swin_adapted.safetensors", expected)


def main():
    set_fused_attn(False)
    wanted = sys.argv[1:] or ["variants", "adapted", "initialization"]
    if "variants" in wanted:
        for seed, name in enumerate(VARIANTS):
            write_swin_variant(name, seed)
    if "adapted" in wanted:
        write_adapted()
    if "initialization" in wanted:
        write_initialization(
            "swin", INITIALIZATIONS, dict(img_size=64, embed_dim=64, depths=(2, 1), num_heads=(16, 32), num_classes=50)
        )


if __name__ == "__main__":
    main()
