"""Writes tests/golden/models/s2_mlp … and s2_mlp_table.csv: what S²-MLP (Yu et al. 2021, arXiv 2106.07477) computes, for
small models with every parameter perturbed, by PyTorch modules that follow the paper's equations.

    python tools/golden/s2_mlp.py

Needs torch 2.13.0, timm 1.0.31, fvcore and safetensors. timm_models.py says what a variant's folder holds.
"""

import torch
from timm_models import write_reference, write_table
from torch import nn


def spatial_shift(t):
    """Eq. 5 to 8 for t [B, h, w, c]: four groups of channels, each shifted by one. The equations assign to T what stands
    on their right before any of them: the parts are cut from t as it is, and nothing is read that was just written."""
    t1, t2, t3, t4 = t.chunk(4, dim=3)
    return torch.cat(
        [
            torch.cat([t1[:, :, :1], t1[:, :, :-1]], dim=2),  # T1[1:w] ← T1[0:w-1]
            torch.cat([t2[:, :, 1:], t2[:, :, -1:]], dim=2),  # T2[0:w-1] ← T2[1:w]
            torch.cat([t3[:, :1], t3[:, :-1]], dim=1),  # T3[:, 1:h] ← T3[:, 0:h-1]
            torch.cat([t4[:, 1:], t4[:, -1:]], dim=1),  # T4[:, 0:h-1] ← T4[:, 1:h]
        ],
        dim=3,
    )


class Mlp(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(nn.functional.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, dim, ratio, pre_norm):
        super().__init__()
        self.pre_norm = pre_norm
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.fc1, self.fc2 = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.mlp = Mlp(dim, int(ratio * dim))

    def mix(self, x):
        return self.fc2(spatial_shift(nn.functional.gelu(self.fc1(x))))

    def forward(self, x):
        if self.pre_norm:
            x = x + self.mix(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = x + self.norm1(self.mix(x))
        return x + self.norm2(self.mlp(x))


class PatchEmbed(nn.Module):
    def __init__(self, patch_size, channels, dim):
        super().__init__()
        self.proj = nn.Conv2d(channels, dim, patch_size, patch_size)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return self.norm(self.proj(x).permute(0, 2, 3, 1))


class S2Mlp(nn.Module):
    def __init__(self, patch_size=16, in_chans=3, embed_dim=384, depth=36, mlp_ratio=4, pre_norm=False, num_classes=1000):
        super().__init__()
        self.patch_embed = PatchEmbed(patch_size, in_chans, embed_dim)
        self.blocks = nn.Sequential(*[Block(embed_dim, mlp_ratio, pre_norm) for _ in range(depth)])
        self.head = nn.Linear(embed_dim, num_classes)

    def forward(self, x):
        return self.head(self.blocks(self.patch_embed(x)).mean((1, 2)))


class Tokens(nn.Module):
    """A block's output as [B, N, D], for the recorder."""

    def forward(self, x):
        return x.flatten(1, 2)


SMALL = dict(patch_size=8, embed_dim=24, depth=2, num_classes=7)

# name: (architecture, arguments, image)
VARIANTS = {
    "s2_mlp": ("s2_mlp_deep_224", SMALL, (2, 3, 32, 40)),
    "s2_mlp_pre_norm": ("s2_mlp_wide_224", SMALL | dict(pre_norm=True, in_chans=1, mlp_ratio=2.5), (3, 1, 24, 16)),
    "s2_mlp_narrow": ("s2_mlp_deep_224", SMALL | dict(patch_size=(4, 8), embed_dim=12), (2, 3, 4, 40)),
}


def layer_of(depth):
    def layer(name):
        parts = name.split(".")
        return 0 if parts[0] == "patch_embed" else int(parts[1]) + 1 if parts[0] == "blocks" else depth + 1

    return layer


def main():
    for seed, (name, (architecture, arguments, shape)) in enumerate(VARIANTS.items()):
        model = S2Mlp(**arguments)
        for block in model.blocks:
            block.tokens = Tokens()
            block.register_forward_hook(lambda m, a, out: (m.tokens(out), None)[1])
        write_reference(name, architecture, arguments, model, seed, shape, [block.tokens for block in model.blocks],
                        layer_of(arguments["depth"]))
    write_table("s2_mlp", {"s2_mlp_deep_224": S2Mlp(), "s2_mlp_wide_224": S2Mlp(embed_dim=768, depth=12)})


if __name__ == "__main__":
    main()
