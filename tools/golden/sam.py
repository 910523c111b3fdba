"""Writes tests/golden/models/sam*: what timm's image encoders of Segment Anything compute, for small models with every
parameter perturbed, and what they start from.

    python tools/golden/sam.py            # all
    python tools/golden/sam.py variants   # one of: variants, sizes, initialization

sam_sizes.safetensors has what the variant `sam` computes for images of other sizes: x, and HEIGHTxWIDTH.logits, .seed and
.grad.NAME of the tables of positions for its part x[:, :, :HEIGHT, :WIDTH].

Needs timm 1.0.31, torch 2.13.0 and safetensors. timm_models.py says what a variant's folder holds.
"""

import sys

import timm
import torch
from timm.layers import set_fused_attn
from timm_models import ROOT, build, random_image, shape_of, write, write_initialization, write_variant

# Grids of 5 x 5 patches in windows of 3, and of 4 x 6 in windows of 4.
TINY = dict(img_size=40, patch_size=8, embed_dim=24, depth=3, num_heads=3, mlp_ratio=2.0, window_size=3,
            global_attn_indexes=(1,), neck_chans=10, num_classes=7)
VARIANTS = {
    "sam": ("samvit_base_patch16", TINY),
    "sam_plain": ("samvit_base_patch16_224", TINY | dict(img_size=(32, 48), window_size=4, neck_chans=None, num_classes=0,
                                                         init_values=0.5, qkv_bias=False, in_chans=1)),
}
SIZES = [(24, 24), (48, 32), (56, 64)]


def in_heads(heads):
    """The probabilities [windows · heads, N, N] as [windows, heads, N, N]."""
    return lambda tensor: tensor.reshape(-1, heads, *tensor.shape[1:])


def write_sam_variant(name, seed):
    architecture, arguments = VARIANTS[name]

    def as_ours(model, x, expected):
        for key, tensor in list(expected.items()):
            if key.startswith("features."):
                expected[key] = tensor.flatten(1, 2)
            elif key.startswith("attention."):
                expected[key] = in_heads(arguments["num_heads"])(tensor)

    write_variant(name, architecture, arguments, seed, shape_of(arguments), lambda model: list(model.blocks),
                  lambda model: [block.attn.attn_drop for block in model.blocks], as_ours)


def write_sizes():
    architecture, arguments = VARIANTS["sam"]
    model = build(architecture, arguments, 0).double()
    x = random_image((2, 3, 64, 64), 5)
    expected = {"x": x}
    for height, width in SIZES:
        model.zero_grad()
        start = f"{height}x{width}"
        logits = model(x[:, :, :height, :width])
        expected[f"{start}.logits"] = logits
        expected[f"{start}.seed"] = torch.randn(logits.shape, generator=torch.Generator().manual_seed(6)).double()
        (logits * expected[f"{start}.seed"]).sum().backward()
        expected |= {f"{start}.grad.{name}": p.grad.clone() for name, p in model.named_parameters() if "pos" in name}
    write(ROOT / "sam_sizes.safetensors", expected)


def main():
    set_fused_attn(False)
    wanted = sys.argv[1:] or ["variants", "sizes", "initialization"]
    if "variants" in wanted:
        for seed, name in enumerate(VARIANTS):
            write_sam_variant(name, seed)
    if "sizes" in wanted:
        write_sizes()
    if "initialization" in wanted:
        wide = dict(embed_dim=96, num_classes=60)
        write_initialization("sam", {"sam": (VARIANTS["sam"][0], TINY | wide | dict(neck_chans=64)),
                                     "sam_plain": (VARIANTS["sam_plain"][0], VARIANTS["sam_plain"][1] | wide)}, {})


if __name__ == "__main__":
    main()
