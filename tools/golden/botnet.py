"""Writes tests/golden/models/botnet*: what timm's botnet26t_256 computes, for a small model with every parameter perturbed.

    python tools/golden/botnet.py

Needs timm 1.0.31. timm_models.py says what a variant's folder holds; the attention maps come from the input of the softmax.
"""

import torch
from timm.layers.bottleneck_attn import BottleneckAttn
from timm_models import write_initialization, write_variant

SMALL = dict(width_factor=0.0625, num_classes=7)

# name: (arguments, shape of x)
VARIANTS = {
    "botnet": (SMALL | dict(img_size=64), (2, 3, 64, 64)),
    "botnet_wide": (SMALL | dict(img_size=(32, 96), in_chans=1, act_layer="silu", global_pool="max"), (2, 1, 32, 96)),
}


def add_maps(model, x, expected):
    """The attention's own equations, from its input: timm has no module at the map."""
    def record(attn, inputs, index):
        q, k, _ = torch.split(attn.qkv(inputs[0]), [attn.dim_out_qk, attn.dim_out_qk, attn.dim_out_v], dim=1)
        batch = len(q)
        q = q.reshape(batch * attn.num_heads, attn.dim_head_qk, -1).transpose(-1, -2)
        k = k.reshape(batch * attn.num_heads, attn.dim_head_qk, -1)
        map = ((q @ k) * attn.scale + attn.pos_embed(q)).softmax(-1)
        expected[f"attention.{index}"] = map.unflatten(0, (batch, attn.num_heads))

    blocks = [module for module in model.modules() if isinstance(module, BottleneckAttn)]
    handles = [block.register_forward_pre_hook(lambda b, i, n=n: record(b, i, n)) for n, block in enumerate(blocks)]
    model(x)
    for handle in handles:
        handle.remove()


def main():
    for seed, (name, (arguments, shape)) in enumerate(VARIANTS.items()):
        write_variant(name, "botnet26t_256", arguments, 400 + seed, shape, lambda model: model.stages, lambda model: [],
                      add_maps)
    write_initialization("botnet", {"botnet": ("botnet26t_256", dict())},
                         dict(img_size=64, width_factor=0.25, num_classes=20))


if __name__ == "__main__":
    main()
