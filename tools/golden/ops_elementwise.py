"""Golden values of arithmetic, reductions, shape ops, embeddings and interpolation: torch's, with gradients, in float64.

    python tools/golden/ops_elementwise.py

writes tests/golden/ops/{arithmetic,reduce,shape,embedding,interpolate}.safetensors. A case NAME is its inputs NAME.x …,
its settings, the result NAME.y, the gradient NAME.dy that goes in and those that come out, NAME.dx …
"""

from itertools import product
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
generator = torch.Generator().manual_seed(11)
tensors = {}


def normal(*shape):
    # As bf16 can hold them, so that the same inputs serve both precisions.
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(torch.bfloat16).double()


def coarse(*shape):
    """Many equal elements."""
    return torch.randint(-3, 4, shape, generator=generator).double() / 2


def case(name, function, settings=None, **inputs):
    """The result of function(**inputs) and the gradients of the inputs; settings are only written down."""
    inputs = {key: tensor.clone().requires_grad_() for key, tensor in inputs.items()}
    y = function(**inputs)
    dy = normal(*y.shape)
    y.backward(dy)
    tensors[f"{name}.y"] = y.detach().float()
    tensors[f"{name}.dy"] = dy.float()
    for key, tensor in inputs.items():
        tensors[f"{name}.{key}"] = tensor.detach().float()
        tensors[f"{name}.d{key}"] = tensor.grad.float()
    for key, values in (settings or {}).items():
        tensors[f"{name}.{key}"] = torch.as_tensor(values, dtype=torch.int64)


def save(area):
    path = ROOT / "tests/golden/ops" / f"{area}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({key: tensor.clone(memory_format=torch.contiguous_format) for key, tensor in tensors.items()}, path)
    tensors.clear()
    print(path.relative_to(ROOT), path.stat().st_size)


def arithmetic():
    shapes = [
        ((2, 5, 17), (2, 5, 17)),
        ((2, 5, 17), (1, 5, 17)),
        ((2, 5, 17), (17,)),
        ((16,), (4, 3, 16)),
        ((3, 1, 7), (1, 9, 1)),
        ((3, 130), (3, 1)),
        ((2, 1, 3, 5), (1, 4, 1, 5)),
        ((), (7, 3)),
        ((1,), ()),
    ]
    binary = {
        "add": torch.add,
        "subtract": torch.sub,
        "multiply": torch.mul,
        "divide": torch.div,
        "maximum": torch.maximum,
        "minimum": torch.minimum,
    }
    for (name, function), (i, (a, b)) in product(binary.items(), enumerate(shapes)):
        values = coarse if name in ("maximum", "minimum") else normal
        b = values(*b)
        if name == "divide":
            b = torch.where(b < 0, b - 0.5, b + 0.5)
        case(f"{name}.{i}", lambda a, b, function=function: function(a, b), a=values(*a), b=b)
    x = torch.cat([normal(130), torch.tensor([0.0, -0.5, 1.5])])
    positive = normal(3, 43).abs() + 0.125
    unary = {
        "add_number": (lambda x: x + 0.75, x),
        "multiply_number": (lambda x: x * -1.25, x),
        "negative": (torch.neg, x),
        "square": (lambda x: x**2, x),
        "cube": (lambda x: x**3, x),
        "power": (lambda x: x**-1.5, positive),
        "exp": (torch.exp, x),
        "log": (torch.log, positive),
        "sqrt": (torch.sqrt, positive),
        "rsqrt": (torch.rsqrt, positive),
        "abs": (torch.abs, x),
        "clamp": (lambda x: x.clamp(-0.5, 1.5), x),
    }
    for name, (function, values) in unary.items():
        case(name, function, x=values)
    save("arithmetic")


def reductions():
    functions = {
        "sum": (torch.sum, normal),
        "mean": (torch.mean, normal),
        "variance": (lambda x, dims, keep: torch.var(x, dims, correction=1, keepdim=keep), normal),
        "biased_variance": (lambda x, dims, keep: torch.var(x, dims, correction=0, keepdim=keep), normal),
        "amax": (torch.amax, coarse),
        "amin": (torch.amin, coarse),
    }
    shapes = [
        ((3, 5, 7), [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]),
        ((2, 3, 1, 17), [(1, 3), (-2, -3), (0, 3)]),
        ((65,), [(0,)]),
    ]
    for name, (function, values) in functions.items():
        i = 0
        for shape, choices in shapes:
            for dims in choices:
                keep = i % 2 == 1
                case(f"{name}.{i}", lambda x: function(x, dims, keep), {"dims": dims, "keep": [keep]},
                     x=values(*shape))
                i += 1
    for i, dim in enumerate((0, 1, -1)):
        x = coarse(4, 5, 6)
        tensors[f"argmax.{i}.x"] = x.float()
        tensors[f"argmax.{i}.dims"] = torch.tensor([dim])
        # torch does not promise which of several; the first is ours.
        best = x.amax(dim, keepdim=True)
        position = torch.arange(x.shape[dim]).view([-1 if d == dim % 3 else 1 for d in range(3)])
        tensors[f"argmax.{i}.y"] = torch.where(x == best, position, 99).amin(dim)
    save("reduce")


def shapes():
    x, y, z = normal(2, 3, 5), normal(2, 1, 5), normal(2, 4, 5)
    case("reshape", lambda x: x.reshape(5, -1), x=x)
    case("permute", lambda x: x.permute(2, 0, 1), x=x)
    case("transpose", lambda x: x.transpose(0, 2), x=x)
    case("expand", lambda x: x.expand(3, 2, 7, 5), x=y)
    case("narrow", lambda x: x[:, 1:3], x=x)
    case("two_narrows", lambda x: x[:, 0:2] * x[:, 1:3], x=x)
    case("select", lambda x: x[:, :, 3], x=x)
    case("unsqueeze", lambda x: x.unsqueeze(1), x=x)
    case("squeeze", lambda x: x.squeeze(1), x=y)
    case("contiguous", lambda x: x.transpose(0, 1).contiguous(), x=x)
    case("concat", lambda a, b, c: torch.cat([a, b, c], 1), a=x, b=y, c=z)
    case("concat_last", lambda a, b: torch.cat([a.transpose(1, 2), b.transpose(1, 2)], -1), a=x, b=y)
    case("split", lambda x: torch.cat([part * (i + 1) for i, part in enumerate(x.split([1, 3, 1], 2))][::-1], 2), x=x)
    case("split_part", lambda x: x.split([1, 3, 1], 2)[1] * 1, x=x)
    case("stack", lambda a, b: torch.stack([a, b], 2), a=x, b=normal(2, 3, 5))
    case("pad", lambda x: F.pad(x, (0, 0, 2, 1), value=0.5), x=x)
    case("flip", lambda x: x.flip(1), x=x)
    case("roll", lambda x: x.roll(-2, 2), x=x)
    case("roll_far", lambda x: x.roll(13, 1), x=x)
    save("shape")


def embeddings():
    indices = torch.tensor([[4, 0, 4], [1, 4, 2]])
    case("embedding", lambda x: F.embedding(indices, x), {"indices": indices}, x=normal(6, 17))
    for i, dim in enumerate((0, 1, -1)):
        picks = torch.tensor([2, 0, 2, 2, 1])
        case(f"index_select.{i}", lambda x: x.index_select(dim, picks), {"indices": picks, "dim": [dim]},
             x=normal(3, 4, 5))
        x = normal(3, 4, 5)
        shape = list(x.shape)
        shape[dim] = 6
        places = torch.randint(0, x.shape[dim], shape, generator=generator)
        case(f"gather.{i}", lambda x: x.gather(dim, places), {"indices": places, "dim": [dim]}, x=x)
    save("embedding")


def interpolations():
    sizes = [((7, 5), (13, 9)), ((13, 9), (7, 5)), ((6, 6), (8, 8)), ((8, 8), (4, 4)), ((6, 7), (3, 11)),
             ((3, 3), (1, 1)), ((1, 1), (4, 3)), ((5, 5), (5, 5))]
    settings = [("nearest", False, False)] + list(product(("bilinear", "bicubic"), (False, True), (False, True)))
    i = 0
    for (size, to), (mode, antialias, align) in product(sizes, settings):
        numbers = {"size": to, "mode": [("nearest", "bilinear", "bicubic").index(mode), antialias, align]}
        keywords = {} if mode == "nearest" else {"antialias": antialias, "align_corners": align}
        case(f"interpolate.{i}", lambda x: F.interpolate(x, to, mode=mode, **keywords), numbers, x=normal(1, 2, *size))
        i += 1
    save("interpolate")


def main():
    arithmetic()
    reductions()
    shapes()
    embeddings()
    interpolations()


if __name__ == "__main__":
    main()
