"""Writes tests/golden/ops/video.safetensors: PyTorch's convolution and pooling of videos in float64, with gradients.

    python tools/golden/ops_video.py
"""

import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]


def random(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double().requires_grad_()


def add(tensors, name, options, operands, function):
    y = function(**operands)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(99)).double()
    y.backward(dy)
    case = {"y": y, "dy": dy} | operands | {f"d{k}": v.grad for k, v in operands.items()}
    tensors |= {f"{name}.{k}": v.detach().float().contiguous() for k, v in case.items()}
    tensors[f"{name}.options"] = torch.tensor(options)


# x, weight, bias?, stride, padding, groups
CONV = [
    ((2, 3, 5, 9, 8), (6, 3, 3, 7, 5), True, (2, 4, 3), (1, 3, 2), 1),
    ((1, 4, 4, 6, 5), (8, 2, 2, 3, 3), False, (1, 1, 2), (0, 1, 0), 2),
    ((2, 5, 3, 4, 7), (5, 1, 3, 3, 3), True, (1, 2, 2), (1, 1, 1), 5),
    ((2, 2, 4, 8, 8), (3, 2, 2, 4, 4), True, (2, 4, 4), (0, 0, 0), 1),
    ((1, 3, 3, 5, 5), (4, 3, 1, 3, 3), True, (1, 1, 1), (0, 1, 1), 1),
]
# x, kernel, stride, padding
POOL = [
    ((2, 3, 4, 7, 6), (1, 3, 3), (1, 2, 2), (0, 1, 1)),
    ((1, 5, 5, 6, 9), (3, 3, 2), (2, 1, 3), (1, 1, 0)),
    ((2, 2, 3, 4, 4), (2, 2, 2), (1, 2, 2), (0, 0, 0)),
]
# heads, width, weight's kernel, grid, stride, padding, tokens in front
DEPTHWISE = [
    (3, 5, (1, 3, 3), (1, 7, 6), (1, 1, 1), (0, 1, 1), 0),
    (2, 16, (3, 3, 3), (4, 5, 7), (1, 2, 2), (1, 1, 1), 1),
    (1, 40, (1, 3, 3), (1, 9, 8), (1, 4, 4), (0, 1, 1), 1),
    (2, 33, (3, 1, 5), (3, 4, 9), (2, 1, 3), (1, 0, 2), 2),
    (1, 7, (2, 2, 2), (4, 4, 6), (2, 2, 2), (0, 0, 0), 0),
]


def depthwise(heads, width, kernel, grid, stride, padding, prefix):
    """Each head as a sample of its own, as the references pool them."""

    def function(x, weight):
        weight = weight.reshape(width, 1, *kernel)
        tokens = x.reshape(x.shape[0], x.shape[1], heads, width)
        patches = tokens[:, prefix:].permute(0, 2, 3, 1).reshape(-1, width, *grid)
        pooled = F.conv3d(patches, weight, stride=stride, padding=padding, groups=width)
        pooled = pooled.reshape(x.shape[0], heads, width, -1).permute(0, 3, 1, 2)
        return torch.cat([tokens[:, :prefix], pooled], 1).flatten(2)

    return function


def main():
    tensors = {}
    for i, (shape, weight, bias, stride, padding, groups) in enumerate(CONV):
        operands = {"x": random(shape, 1), "weight": random(weight, 2)}
        if bias:
            operands["bias"] = random(weight[:1], 3)
        options = dict(stride=stride, padding=padding, groups=groups)
        add(tensors, f"conv3d.{i}", [*stride, *padding, groups], operands, lambda **o: F.conv3d(o.pop("x"), **o, **options))
    for op in (F.max_pool3d, F.avg_pool3d):
        for i, (shape, *options) in enumerate(POOL):
            numbers = [n for triple in options for n in triple]
            x = random(shape, 4)
            x.data = (x.data * 2).round() / 2  # so that some elements are equal
            add(tensors, f"{op.__name__}.{i}", numbers, {"x": x}, lambda x: op(x, *options))
    for i, (heads, width, kernel, grid, stride, padding, prefix) in enumerate(DEPTHWISE):
        shape = (width, 1, *kernel) if grid[0] > 1 else (width, 1, *kernel[1:])
        operands = {"x": random((2, prefix + grid[0] * grid[1] * grid[2], heads * width), 5), "weight": random(shape, 6)}
        add(tensors, f"depthwise.{i}", [*grid, *stride, *padding, prefix], operands,
            depthwise(heads, width, kernel, grid, stride, padding, prefix))
    save_file(tensors, ROOT / "tests/golden/ops/video.safetensors")


if __name__ == "__main__":
    main()
