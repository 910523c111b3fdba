"""Writes tests/golden/nn/images.safetensors: layers of convolutional networks as torch's and timm's compute them, in float64,
with their gradients, in nn.py's format.

    python tools/golden/nn_images.py

Needs timm 1.0.31, torch 2.13.0 and safetensors.
"""

import pathlib

import torch
from image_attention import NonLocal, SaganAttention
from safetensors.torch import save_file
from timm.layers import NonLocalAttn, SqueezeExcite, StdConv2d, StdConv2dSame
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
generator = torch.Generator().manual_seed(20261122)
tensors = {}


def random(*shape, scale=1.0):
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def case(name, module, x):
    module = module.double().eval()
    with torch.no_grad():
        for label, parameter in module.named_parameters():
            is_scale = parameter.ndim == 1 and not label.endswith("bias")
            parameter.copy_(random(*parameter.shape, scale=0.3) + (1 if is_scale else 0))
        for label, buffer in module.named_buffers():
            if label.endswith("running_mean"):
                buffer.copy_(random(*buffer.shape))
            elif label.endswith("running_var"):
                buffer.copy_(random(*buffer.shape).abs() + 0.5)
    for label, value in module.state_dict().items():
        tensors[f"{name}.p.{label}"] = value.clone()
    leaf = x.clone().requires_grad_()
    y = module(leaf)
    dy = random(*y.shape)
    y.backward(dy)
    tensors.update({f"{name}.x": x, f"{name}.y": y, f"{name}.dy": dy, f"{name}.dx": leaf.grad})
    for label, parameter in module.named_parameters():
        tensors[f"{name}.g.{label}"] = parameter.grad


def main():
    case("group_norm", nn.GroupNorm(4, 12), random(2, 12, 5, 3))
    case("std_conv", StdConv2d(3, 5, 3, stride=2, eps=1e-6), random(2, 3, 7, 6))
    case("std_conv_same", StdConv2dSame(3, 5, 3, stride=2, eps=1e-8), random(2, 3, 7, 6))
    case("std_conv_same_seven", StdConv2dSame(2, 4, 7, stride=2, eps=1e-8), random(1, 2, 9, 12))
    case("std_conv_same_unit", StdConv2dSame(3, 5, 3, eps=1e-8), random(1, 3, 4, 6))
    case("squeeze_excite", SqueezeExcite(12, rd_channels=8), random(2, 12, 3, 4))
    case("non_local_embedded_gaussian", NonLocalAttn(24), random(2, 24, 3, 4))
    for kind in ("gaussian", "dot_product", "concatenation"):
        case(f"non_local_{kind}", NonLocal(24, kind), random(2, 24, 3, 4, scale=0.3))
    case("sagan", SaganAttention(24), random(2, 24, 4, 3))
    path = ROOT / "tests/golden/nn/images.safetensors"
    save_file({k: t.detach() if t.dtype == torch.int64 else t.detach().float().contiguous() for k, t in tensors.items()},
              path)


if __name__ == "__main__":
    main()
