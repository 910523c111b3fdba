"""Golden values of sorting, the best of many, running sums, choices, sums of segments, convolutions of sequences and
arithmetic of integers: torch's, with gradients, in float64.

    python tools/golden/ops_order.py

writes tests/golden/ops/order.safetensors. A case NAME is its inputs NAME.x …, its settings, the result NAME.y (of sort
and topk also NAME.indices), the gradient NAME.dy that goes in and those that come out, NAME.dx …
"""

from itertools import product

import torch
from ops_elementwise import case, coarse, generator, normal, save, tensors
from torch.nn import functional as F


def sorting():
    shapes = [(3, 5, 7), (2, 17, 3), (130,)]
    for i, (shape, dim, descending) in enumerate((s, d, r) for s in shapes for d in range(len(s)) for r in (0, 1)):
        x = coarse(*shape) if i % 2 else normal(*shape)
        indices = torch.sort(x, dim=dim, descending=bool(descending), stable=True).indices
        case(f"sort.{i}", lambda x: torch.sort(x, dim=dim, descending=bool(descending), stable=True).values,
             {"settings": [dim, descending], "indices": indices}, x=x)
    # Without equal elements, among which torch does not say which it takes.
    choices = [((4, 9), 3, -1), ((4, 9), 9, 1), ((6, 3, 5), 2, 0), ((1, 1200), 5, 1), ((1, 1200), 300, 1)]
    for i, ((shape, k, dim), largest) in enumerate(product(choices, (0, 1))):
        x = torch.randperm(torch.Size(shape).numel(), generator=generator).double().reshape(shape)
        x = x / 8 - 20 if x.numel() < 256 else x  # exact in bf16 where that is tested
        indices = torch.topk(x, k, dim, largest=bool(largest)).indices
        case(f"topk.{i}", lambda x: torch.topk(x, k, dim, largest=bool(largest)).values,
             {"settings": [k, dim, largest], "indices": indices}, x=x)


def sums():
    for i, (shape, dim) in enumerate([((3, 5, 7), 0), ((3, 5, 7), 1), ((3, 5, 7), -1), ((2, 40, 70), 1), ((130,), 0)]):
        case(f"cumsum.{i}", lambda x: torch.cumsum(x, dim), {"dim": [dim]}, x=normal(*shape))
    offsets = torch.tensor([0, 3, 4, 9, 16])
    for i, reduce in enumerate(("sum", "mean", "max")):
        x = normal(16, 7)
        lengths = offsets.diff()
        case(f"segments.{i}", lambda x: torch.segment_reduce(x, reduce, lengths=lengths, axis=0),
             {"offsets": offsets}, x=x)


def choices():
    shapes = [((2, 5, 17), (2, 5, 17), (2, 5, 17)), ((5, 1), (2, 5, 17), (17,)), ((17,), (), (3, 1)),
              ((3, 130), (3, 1), (3, 130))]
    for i, (condition, a, b) in enumerate(shapes):
        chosen = torch.rand(condition, generator=generator) < 0.5
        case(f"where.{i}", lambda a, b: torch.where(chosen, a, b), {"condition": chosen}, a=normal(*a), b=normal(*b))


def convolutions():
    # x, weight, stride, padding, dilation, groups
    settings = [((2, 3, 11), (4, 3, 3), 1, 1, 1, 1), ((2, 4, 16), (6, 2, 4), 2, 0, 1, 2), ((1, 6, 13), (6, 1, 3), 1, 2, 2, 6),
                ((3, 2, 9), (5, 2, 1), 3, 0, 1, 1), ((2, 8, 20), (8, 4, 5), 2, 3, 2, 2)]
    for i, (x, weight, stride, padding, dilation, groups) in enumerate(settings):
        inputs = {"x": normal(*x), "weight": normal(*weight)}
        if i % 2 == 0:
            inputs["bias"] = normal(weight[0])
        case(f"conv1d.{i}",
             lambda x, weight, bias=None: F.conv1d(x, weight, bias, stride, padding, dilation, groups),
             {"settings": [stride, padding, dilation, groups]}, **inputs)


def integers():
    functions = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "floor_divide": torch.floor_divide,
                 "remainder": torch.remainder, "maximum": torch.maximum, "minimum": torch.minimum}
    for (name, function), (i, dtype) in product(functions.items(), enumerate((torch.int32, torch.int64))):
        info = torch.iinfo(dtype)
        a = torch.randint(-50, 51, (3, 4, 9), generator=generator).to(dtype)
        b = torch.randint(1, 8, (4, 1), generator=generator).to(dtype) * torch.tensor([-1, 1, -1, 1], dtype=dtype)[:, None]
        if name in ("add", "subtract", "multiply"):
            a[0, 0] = info.max - 1
            a[0, 1] = info.min
        if name == "multiply":
            b = b * (info.max // 5)
        tensors[f"integers.{name}.{i}.a"] = a
        tensors[f"integers.{name}.{i}.b"] = b
        tensors[f"integers.{name}.{i}.y"] = function(a, b)


def main():
    sorting()
    sums()
    choices()
    convolutions()
    integers()
    save("order")


if __name__ == "__main__":
    main()
