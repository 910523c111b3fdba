"""Golden values of linear, matmul, convolution, pooling and batch norm: PyTorch in float64.

    python tools/golden/ops_gemm.py

writes tests/golden/ops/gemm.safetensors. A case is all tensors with one prefix, "linear.2.x" …: the operands, the gradient
`dy` of the result y, y itself, the gradients "dx", "dweight" … and, as integers, the options of the op.
"""

import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

tensors = {}
generator = torch.Generator().manual_seed(20261121)


def random(*shape):
    # As bf16 can hold them, so that the same operands serve both precisions.
    return torch.randn(shape, generator=generator, dtype=torch.float64).bfloat16().double()


def case(name, function, **operands):
    """Stores the operands, function(**operands) and the gradients under a random dy."""
    leaves = {key: value.clone().requires_grad_() for key, value in operands.items() if value is not None}
    y = function(**{key: leaves.get(key) for key in operands})
    dy = random(*y.shape)
    y.backward(dy)
    for key, value in leaves.items():
        tensors[f"{name}.{key}"] = value.detach()
        tensors[f"{name}.d{key}"] = value.grad
    tensors[f"{name}.y"] = y.detach()
    tensors[f"{name}.dy"] = dy


def option(name, *values):
    tensors[name] = torch.tensor(values, dtype=torch.int64)


# In the order of vitrail::ops::Activation.
activations = [
    lambda x: x,
    F.relu,
    F.gelu,
    lambda x: F.gelu(x, approximate="tanh"),
    lambda x: x * torch.sigmoid(1.702 * x),
    F.silu,
    torch.tanh,
    torch.sigmoid,
]


def linear():
    cases = [  # shape of x, outputs, bias, activation, residual
        ((1, 1), 1, True, 0, False),
        ((7, 17), 5, True, 0, False),
        ((2, 65, 32), 48, False, 0, True),
        ((3, 5, 64), 33, True, 0, True),
        ((33, 16), 96, True, 1, False),
        ((2, 17, 24), 65, True, 2, False),
        ((9, 64), 64, True, 3, True),
        ((2, 3, 4, 8), 16, False, 4, False),
        ((16, 3), 7, True, 5, False),
        ((5, 31), 1, True, 6, True),
        ((40,), 10, True, 7, False),
    ]
    for i, (shape, out, bias, activation, residual) in enumerate(cases):
        option(f"linear.{i}.activation", activation)
        case(
            f"linear.{i}",
            lambda x, weight, bias, residual: activations[activation](F.linear(x, weight, bias))
            + (0 if residual is None else residual),
            x=random(*shape),
            weight=random(out, shape[-1]) / shape[-1] ** 0.5,
            bias=random(out) if bias else None,
            residual=random(*shape[:-1], out) if residual else None,
        )


def matmul():
    cases = [
        ((3, 4), (4, 5)),
        ((1, 1), (1, 1)),
        ((65, 17), (17, 33)),
        ((7,), (7,)),
        ((6,), (2, 6, 3)),
        ((2, 3, 4), (4,)),
        ((2, 3, 7, 5), (5, 6)),
        ((5, 6), (2, 3, 6, 7)),
        ((2, 1, 4, 5), (3, 5, 6)),
        ((2, 3, 9, 16), (2, 3, 16, 9)),
        ((4, 5, 6), (1, 6, 3)),
    ]
    for i, (a, b) in enumerate(cases):
        case(f"matmul.{i}", lambda a, b: torch.matmul(a, b), a=random(*a), b=random(*b))


def conv():
    cases = [  # shape of x, outputs, kernel, stride, padding, dilation, groups, bias
        ((2, 3, 8, 8), 24, (4, 4), (4, 4), (0, 0), (1, 1), 1, True),  # patches
        ((1, 3, 9, 7), 5, (2, 3), (2, 3), (0, 0), (1, 1), 1, True),  # patches with a rest
        ((2, 3, 9, 11), 7, (3, 3), (1, 1), (1, 1), (1, 1), 1, True),
        ((2, 16, 7, 7), 32, (3, 3), (2, 2), (1, 1), (1, 1), 1, False),
        ((1, 5, 6, 5), 4, (1, 1), (1, 1), (0, 0), (1, 1), 1, True),
        ((2, 8, 9, 9), 12, (3, 2), (2, 1), (1, 2), (2, 3), 4, True),
        ((3, 6, 5, 5), 6, (3, 3), (1, 1), (1, 1), (1, 1), 6, False),  # depthwise
        ((2, 8, 4, 4), 16, (1, 1), (2, 2), (0, 0), (1, 1), 1, True),
        ((1, 4, 5, 5), 3, (5, 5), (1, 1), (2, 2), (1, 1), 1, True),
        ((2, 4, 4, 6), 8, (2, 2), (2, 2), (0, 0), (1, 1), 2, True),  # patches in groups
    ]
    for i, (shape, out, kernel, stride, padding, dilation, groups, bias) in enumerate(cases):
        option(f"conv.{i}.options", *stride, *padding, *dilation, groups)
        case(
            f"conv.{i}",
            lambda x, weight, bias: F.conv2d(x, weight, bias, stride, padding, dilation, groups),
            x=random(*shape),
            weight=random(out, shape[1] // groups, *kernel) / (shape[1] // groups * kernel[0] * kernel[1]) ** 0.5,
            bias=random(out) if bias else None,
        )


def pool():
    cases = [  # shape, kernel, stride, padding, ceil_mode, count_include_pad
        ((2, 3, 8, 8), (2, 2), (2, 2), (0, 0), False, True),
        ((1, 4, 9, 7), (3, 3), (2, 2), (1, 1), False, True),
        ((1, 4, 9, 7), (3, 3), (2, 2), (1, 1), True, False),
        ((2, 1, 5, 6), (2, 3), (1, 2), (0, 1), True, True),
        ((1, 17, 10, 10), (3, 3), (3, 3), (0, 0), True, True),
        ((1, 2, 5, 5), (2, 2), (3, 3), (1, 1), True, True),
    ]
    for i, (shape, kernel, stride, padding, ceil_mode, count_include_pad) in enumerate(cases):
        option(f"pool.{i}.options", *kernel, *stride, *padding, ceil_mode, count_include_pad)
        x = random(*shape)
        case(f"pool.{i}.max", lambda x: F.max_pool2d(x, kernel, stride, padding, 1, ceil_mode), x=x)
        case(
            f"pool.{i}.avg",
            lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil_mode, count_include_pad),
            x=x,
        )
    for i, (shape, size) in enumerate(
        [((2, 3, 7, 7), (1, 1)), ((1, 4, 8, 6), (4, 3)), ((2, 2, 7, 5), (3, 4)), ((1, 2, 3, 3), (5, 7))]
    ):
        option(f"adaptive.{i}.options", *size)
        case(f"adaptive.{i}", lambda x: F.adaptive_avg_pool2d(x, size), x=random(*shape))


def batch_norm():
    cases = [  # shape, affine, training, momentum, eps
        ((4, 3, 5, 6), True, True, 0.1, 1e-5),
        ((4, 3, 5, 6), True, False, 0.1, 1e-5),
        ((7, 17), True, True, 0.3, 1e-3),
        ((3, 16, 4, 4), False, True, 0.1, 1e-5),
        ((2, 33, 3, 1), False, False, 0.1, 1e-5),
    ]
    for i, (shape, affine, training, momentum, eps) in enumerate(cases):
        channels = shape[1]
        mean, variance = random(channels), random(channels).abs() + 0.5
        option(f"batch_norm.{i}.training", training)
        tensors[f"batch_norm.{i}.momentum_eps"] = torch.tensor([momentum, eps])
        tensors[f"batch_norm.{i}.mean_before"] = mean.clone()
        tensors[f"batch_norm.{i}.variance_before"] = variance.clone()
        case(
            f"batch_norm.{i}",
            lambda x, weight, bias: F.batch_norm(x, mean, variance, weight, bias, training, momentum, eps),
            x=random(*shape) * 2 + 1,
            weight=random(channels) if affine else None,
            bias=random(channels) if affine else None,
        )
        tensors[f"batch_norm.{i}.mean_after"] = mean
        tensors[f"batch_norm.{i}.variance_after"] = variance


linear()
matmul()
conv()
pool()
batch_norm()
path = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "ops" / "gemm.safetensors"
path.parent.mkdir(parents=True, exist_ok=True)
save_file({k: (v if v.dtype == torch.int64 else v.float()).contiguous() for k, v in tensors.items()}, path)
print(f"{path}: {len(tensors)} tensors, {path.stat().st_size} bytes")
