"""Writes tests/golden/models/swin*: what timm's Swin transformers compute, for small models with every parameter perturbed.

    python tools/golden/swin.py            # all
    python tools/golden/swin.py variants   # one of: variants, adapted

Needs timm 1.0.31, torch 2.13.0 and safetensors. timm_models.py says what a variant's folder holds.
"""

import sys

import timm
from timm.layers import set_fused_attn
from timm_models import ROOT, random_picture, write, write_variant

SMALL = dict(img_size=32, patch_size=2, embed_dim=8, depths=(2, 2, 1), num_heads=(2, 2, 4), window_size=4, mlp_ratio=2,
             num_classes=5)
SWIN = "swin_tiny_patch4_window7_224"

# name: (architecture, arguments, picture size of x or None for img_size)
VARIANTS = {
    "swin": (SWIN, SMALL, None),
    # Neither grid is made of whole windows, the odd side is filled up for merging, and the last window is cut short.
    "swin_padded": (
        SWIN,
        dict(img_size=(36, 44), patch_size=4, in_chans=1, embed_dim=12, depths=(2, 2), num_heads=(3, 2), head_dim=(5, 8),
             window_size=((4, 3), (2, 6)), mlp_ratio=(2, 1.5), qkv_bias=False, global_pool="max", num_classes=5),
        None,
    ),
    # Windows larger than the grid stay, and pictures of another size come.
    "swin_partition": (
        SWIN,
        SMALL | dict(depths=(2, 2), num_heads=(2, 4), window_size=(3, 5), always_partition=True, dynamic_img_size=True,
                     img_size=16),
        (20, 12),
    ),
    "swin_features": (SWIN, SMALL | dict(depths=(2,), num_heads=(2,), mlp_ratio=4.0, num_classes=0, global_pool=""), None),
}

# name: (variant, arguments over the folder's)
ADAPTED = {
    "swin_larger": ("swin", dict(img_size=(48, 40))),
    "swin_smaller": ("swin", dict(img_size=16)),
    "swin_windows": ("swin", dict(window_size=(6, 5))),
    "swin_grayscale": ("swin", dict(in_chans=1)),
}


def write_swin_variant(name, seed):
    architecture, arguments, size = VARIANTS[name]
    size = size or arguments["img_size"]
    shape = (2, arguments.get("in_chans", 3), *((size, size) if isinstance(size, int) else size))

    def stages(model):
        return model.stages if hasattr(model, "stages") else model.layers

    def attention(model):
        return [block.attn.attn_drop for stage in stages(model) for block in stage.blocks]

    write_variant(name, architecture, arguments, seed, shape, stages, attention)


def write_adapted():
    """Checkpoints loaded into models of another picture size, window or number of channels."""
    expected = {}
    for name, (variant, arguments) in ADAPTED.items():
        model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True, **arguments).double().eval()
        x = random_picture((2, model.patch_embed.proj.weight.shape[1], *model.patch_embed.img_size))
        expected[f"{name}.x"] = x
        expected[f"{name}.logits"] = model(x)
    write(ROOT / "swin_adapted.safetensors", expected)


def main():
    set_fused_attn(False)
    wanted = sys.argv[1:] or ["variants", "adapted"]
    if "variants" in wanted:
        for seed, name in enumerate(VARIANTS):
            write_swin_variant(name, seed)
    if "adapted" in wanted:
        write_adapted()


if __name__ == "__main__":
    main()
