"""Writes tests/golden/models/mvit_video*: what torchvision's MViT computes, for small models with every parameter
perturbed, and what they start from.

    python tools/golden/mvit_video.py

Needs torchvision, torch 2.13.0 and safetensors. timm_models.py says what a variant's folder holds; config.json is
vitrail's own, in timm's layout.
"""

import json
import math
import re
import shutil

import torch
from safetensors.torch import save_file
from torchvision.models.video.mvit import MSBlockConfig, MViT
from timm_models import ROOT, add_gradients, perturb, random_image, write, write_initialization

BLOCK = ("num_heads", "input_channels", "output_channels", "kernel_q", "kernel_kv", "stride_q", "stride_kv")
# vitrail's name: torchvision's, of what is called by timm's name
RENAMED = {"img_size": "spatial_size", "drop_rate": "dropout", "proj_drop_rate": "attention_dropout",
           "drop_path_rate": "stochastic_depth_prob"}

V1 = dict(
    img_size=(32, 32), temporal_size=4, num_classes=7, num_heads=(1, 2, 2), input_channels=(8, 16, 16),
    output_channels=(16, 16, 24), kernel_q=((), (3, 3, 3), ()), kernel_kv=((3, 3, 3), (3, 3, 3), ()),
    stride_q=((), (1, 2, 2), ()), stride_kv=((1, 4, 4), (1, 2, 2), ()), residual_pool=False,
    residual_with_cls_embed=False, rel_pos_embed=False, proj_after_attn=False,
)
V2 = dict(
    img_size=(32, 32), temporal_size=4, num_classes=7, num_heads=(1, 2, 2, 4), input_channels=(8, 8, 16, 16),
    output_channels=(8, 16, 16, 32), kernel_q=((3, 3, 3),) * 4, kernel_kv=((3, 3, 3),) * 4,
    stride_q=((1, 1, 1), (1, 2, 2), (1, 1, 1), (1, 2, 2)), stride_kv=((1, 4, 4), (1, 2, 2), (1, 2, 2), (1, 1, 1)),
    residual_pool=True, residual_with_cls_embed=False, rel_pos_embed=True, proj_after_attn=True,
)
# name: (architecture whose arguments are replaced, arguments)
VARIANTS = {
    "mvit_video_v1": ("mvit_v1_b", V1),
    "mvit_video_v2": ("mvit_v2_s", V2),
    # grids that are not square and odd, strides in time: tables of positions are resized
    "mvit_video_odd": (
        "mvit_v2_s",
        V2 | dict(img_size=(20, 28), temporal_size=6, residual_with_cls_embed=True, stride_q=((1, 1, 1), (2, 2, 2), (1, 1, 1), (1, 1, 2)),
                  stride_kv=((1, 2, 4), (3, 2, 2), (1, 1, 2), (1, 1, 1)), patch_embed_kernel=(2, 5, 5),
                  patch_embed_stride=(2, 4, 4), patch_embed_padding=(0, 1, 1)),
    ),
}


def make(architecture, **arguments):
    blocks = [MSBlockConfig(**{k: list(v) if isinstance(v, tuple) else v for k, v in zip(BLOCK, values)})
              for values in zip(*(arguments[k] for k in BLOCK))]
    others = {RENAMED.get(k, k): v for k, v in arguments.items() if k not in BLOCK}
    return MViT(block_setting=blocks, **others)


def layer(name, depth):
    block = re.match(r"blocks\.(\d+)\.", name)
    if block:
        return int(block[1]) + 1
    return 0 if name.startswith(("conv_proj", "pos_encoding")) else depth + (not name.startswith("norm"))


def record(model, x):
    """The last blocks' outputs of all stages, and what softmax gives in all blocks."""
    strides = [math.prod(block.pool_skip.pool.stride) if block.pool_skip else 1 for block in model.blocks] + [2]
    ends = [block for block, following in zip(model.blocks, strides[1:]) if following > 1]
    tensors, maps, softmax = {}, [], torch.Tensor.softmax

    def caught(self, dim):
        maps.append(softmax(self, dim))
        return maps[-1]

    for i, block in enumerate(ends):
        block.register_forward_hook(lambda m, a, out, i=i: tensors.__setitem__(f"features.{i}", out[0]))
    torch.Tensor.softmax = caught
    tensors["logits"] = model(x)
    torch.Tensor.softmax = softmax
    return tensors | {f"attention.{i}": map_ for i, map_ in enumerate(maps)}


def write_variant(name, seed):
    architecture, arguments = VARIANTS[name]
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    model = make(architecture, **arguments)
    perturb(model, seed)
    model = model.eval()
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "model.safetensors")
    size = [3, *arguments["img_size"]]
    cfg = {"input_size": size, "num_classes": arguments["num_classes"], "first_conv": "conv_proj", "classifier": "head.1",
           "interpolation": "bilinear", "crop_pct": 0.875, "mean": [0.45] * 3, "std": [0.225] * 3}
    config = {"architecture": architecture, "num_classes": arguments["num_classes"], "model_args": arguments,
              "pretrained_cfg": cfg}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    model = model.double()
    x = random_image((2, 3, arguments["temporal_size"], *arguments["img_size"]))
    expected = {"x": x} | record(model, x)
    add_gradients(model, expected["logits"], expected)
    write(folder / "expected.safetensors", expected)
    names = [n for n, _ in model.named_parameters()]
    facts = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "num_features": model.head[1].in_features,
        "layers": {n: layer(n, len(model.blocks)) for n in names},
        "no_weight_decay": [n for n in names if "rel_pos" in n or "pos_encoding" in n],
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


def main():
    # Seeds with which rounding to bf16 alone takes PyTorch's autocast less than 2 % away.
    for name, seed in zip(VARIANTS, (1, 1, 2)):
        write_variant(name, seed)
    models = {"mvit_v1": ("mvit_v1_b", V1), "mvit_v2": ("mvit_v2_s", V2)}
    write_initialization("mvit_video", models, dict(num_classes=50), make)


if __name__ == "__main__":
    main()
