"""Writes tests/golden/models/full_size.safetensors: NAME, the logits of timm's models as they are, with no size made smaller,
and NAME.int8, those of the same model after PyTorch's dynamic quantization of the blocks' linear layers (a scale for each
output of a weight).

    python tools/golden/full_size.py

Needs torch 2.13.0 and timm 1.0.31. Weights and images would be too large to keep: each element is a hash of its tensor's name
and its index, exact in any language (tests/models/full_size_test.cpp computes them again).
"""

import math
import zlib

import numpy as np
import timm
import torch
from timm_models import ROOT, write

NAMES = [
    "vit_base_patch16_224", "deit3_small_patch16_224", "beit_base_patch16_224", "eva02_tiny_patch14_336",
    "vit_relpos_small_patch16_224", "swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256", "mvitv2_tiny",
    "mixer_s16_224", "resnet50", "resnetv2_50", "vit_tiny_r_s16_p8_224",
]  # fmt: skip
QUANTIZED = ["deit3_small_patch16_224", "vit_relpos_small_patch16_224", "mixer_s16_224"]


def uniform(name, shape):
    """Numbers in [-1/2, 1/2) that float32 holds exactly."""
    x = (np.arange(math.prod(shape), dtype=np.uint64) * 0x9E3779B1 + zlib.crc32(name.encode())) & 0xFFFFFFFF
    for factor in (0x85EBCA6B, 0xC2B2AE35):
        x ^= x >> np.uint64(16)
        x = (x * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(16)
    return torch.from_numpy((x >> np.uint64(8)).astype(np.float64) * 2.0**-24 - 0.5).reshape(shape)


def values(name, shape):
    """What a parameter or a running statistic is filled with."""
    u = uniform(name, shape)
    if name.endswith(("bias", "running_mean")):
        return u / 4
    if len(shape) <= 1:  # scales and variances
        return 1 + u / 2
    if name.endswith(("_token", "pos_embed", "bias_table")):
        return u
    fan_in = math.prod(shape[1:])
    return u * 2.0 ** (2 - math.ceil(math.log2(fan_in) / 2))


def main():
    expected = {}
    with torch.no_grad():
        for name in NAMES:
            model = timm.create_model(name).double().eval()
            for key, tensor in model.state_dict().items():
                if tensor.is_floating_point():
                    tensor.copy_(values(key, tuple(tensor.shape)))
            size = model.pretrained_cfg["input_size"]
            image = 4 * uniform("image", (1, *size))
            logits = model(image)
            print(f"{name}: logits of {logits.std():.3g} about {logits.mean():.3g}")
            expected[name] = logits
            if name in QUANTIZED:
                quantize = torch.ao.quantization.quantize_dynamic
                kinds = {torch.nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
                model = model.float()
                model.blocks = quantize(model.blocks, kinds)
                expected[f"{name}.int8"] = model(image.float())
    write(ROOT / "full_size.safetensors", expected)


if __name__ == "__main__":
    main()
