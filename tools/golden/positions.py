"""Writes tests/golden/nn/positions.safetensors: positional codes as their authors' code computes them.

    python tools/golden/positions.py FOLDER

FOLDER holds checkouts (or folders with these files) of

    scale-mae/mae/util/pos_embed.py                github.com/bair-climate-initiative/scale-mae at 89280d8
    CROMA/pretrain_croma.py                        github.com/antofuller/CROMA at 59505a6
    alibi/fairseq/models/transformer.py            github.com/ofirpress/attention_with_linear_biases at 4b92f28

of which single functions are run. Needs timm 1.0.31, torch 2.13.0, numpy and safetensors.
"""

import ast
import itertools
import math
import pathlib
import sys

import numpy as np
import timm.layers.pos_embed_sincos as rotary
import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]


def functions(path, *names):
    """The functions of these names in a file, wherever they are defined in it, without running the rest."""
    tree = ast.parse(path.read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names]
    assert {node.name for node in found} == set(names), names
    scope = {"torch": torch, "np": np, "math": math, "itertools": itertools}
    for node in found:
        exec(compile(ast.Module([node], []), str(path), "exec"), scope)
    return [scope[name] for name in names]


def main():
    folder = pathlib.Path(sys.argv[1])
    tensors = {}

    names = ("get_2d_sincos_pos_embed_with_resolution", "get_2d_sincos_pos_embed_from_grid_torch",
             "get_1d_sincos_pos_embed_from_grid_torch")
    with_resolution = functions(folder / "scale-mae/mae/util/pos_embed.py", *names)[0]
    resolutions = torch.tensor([0.3, 1.0, 10.0])
    tensors["gsd.metres"] = resolutions
    tensors["gsd.positions"] = with_resolution(16, 5, resolutions, cls_token=True)

    get_alibi = functions(folder / "CROMA/pretrain_croma.py", "get_alibi")[0]
    for heads in (3, 8, 12):
        tensors[f"alibi2d.{heads}"] = get_alibi(heads, 16)
    get_slopes = functions(folder / "alibi/fairseq/models/transformer.py", "get_slopes")[0]
    for heads in (1, 2, 3, 6, 8, 12, 16):
        tensors[f"slopes.{heads}"] = torch.tensor(get_slopes(heads))

    # timm's rotary positions, as sines and cosines of adjacent pairs, and of halves.
    def axial(name, **arguments):
        sines, cosines = rotary.build_rotary_pos_embed([4, 6], dim=16, in_pixels=False, **arguments)
        tensors[f"{name}.sines"] = sines
        tensors[f"{name}.cosines"] = cosines

    axial("axial", temperature=100.0, grid_indexing="xy")
    axial("axial_stretched", grid_offset=1.0, ref_feat_shape=[8, 9], rotate_half=True)
    torch.manual_seed(0)  # of the directions
    mixed = rotary.RotaryEmbeddingMixed(dim=32, depth=2, num_heads=2, feat_shape=[3, 4])
    tensors["mixed.freqs"] = mixed.freqs.detach()
    sines, cosines = mixed.get_embed().detach().chunk(2, -1)
    tensors["mixed.sines"] = sines
    tensors["mixed.cosines"] = cosines

    save_file({k: v.float().contiguous() for k, v in tensors.items()}, ROOT / "tests/golden/nn/positions.safetensors")


if __name__ == "__main__":
    main()
