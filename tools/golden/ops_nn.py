"""Golden values of activations, norms, softmax, losses and casts: torch's, with gradients, in float64.

    python tools/golden/ops_nn.py

writes tests/golden/ops/{activation,norm,softmax,loss,cast,group_norm}.safetensors. A case NAME is its inputs NAME.x, NAME.weight …,
the result NAME.y, the gradient NAME.dy that goes in and those that come out, NAME.dx, NAME.dweight …
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
generator = torch.Generator().manual_seed(7)
tensors = {}


def normal(*shape, scale=1.0, shift=0.0):
    # As bf16 can hold them, so that the same inputs serve both precisions.
    values = shift + scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    return values.to(torch.bfloat16).double()


def case(name, function, constants=None, **inputs):
    """The result of function(**inputs) and the gradients of the inputs; constants are only written down."""
    for tensor in inputs.values():
        tensor.requires_grad_()
    y = function(**inputs)
    dy = normal(*y.shape)
    y.backward(dy)
    tensors[f"{name}.y"] = y.detach().float()
    tensors[f"{name}.dy"] = dy.float()
    for key, tensor in inputs.items():
        tensors[f"{name}.{key}"] = tensor.detach().float()
        tensors[f"{name}.d{key}"] = tensor.grad.float()
    for key, tensor in (constants or {}).items():
        tensors[f"{name}.{key}"] = tensor if tensor.dtype == torch.int64 else tensor.float()


def save(area):
    path = ROOT / "tests/golden/ops" / f"{area}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({key: tensor.clone(memory_format=torch.contiguous_format) for key, tensor in tensors.items()}, path)
    tensors.clear()
    print(path.relative_to(ROOT), path.stat().st_size)


def activations():
    functions = {
        "relu": F.relu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
        "silu": F.silu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
    }
    # Both tails and the middle; an odd number.
    x = torch.cat([normal(150, scale=2), torch.linspace(-12, 12, 97).to(torch.bfloat16).double()])
    for name, function in functions.items():
        case(name, lambda x, function=function: function(x), x=x.clone())
    save("activation")


def norms():
    for width in (1, 3, 17, 64, 65):
        weight, bias = normal(width, scale=0.5, shift=1), normal(width, scale=0.5)
        x = normal(2, 7, width, scale=2, shift=0.5)
        case(f"layer_norm.{width}", lambda x, weight, bias: F.layer_norm(x, weight.shape, weight, bias, 1e-6), x=x,
             weight=weight, bias=bias)
        case(f"rms_norm.{width}", lambda x, weight: F.rms_norm(x, weight.shape, weight, 1e-6), x=x.detach().clone(),
             weight=weight.detach().clone())
    x = normal(3, 5, 33)
    case("layer_norm.plain", lambda x: F.layer_norm(x, (33,), eps=1e-5), x=x)
    case("rms_norm.plain", lambda x: F.rms_norm(x, (33,), eps=1e-5), x=x.detach().clone())
    # Far from zero: what a one-pass variance would lose.
    case("layer_norm.shifted", lambda x: F.layer_norm(x, (48,), eps=1e-5), x=normal(4, 48, scale=8, shift=256))
    save("norm")


def softmaxes():
    for size in (1, 3, 17, 65):
        x = normal(4, 5, size, scale=3)
        case(f"softmax.{size}", lambda x: F.softmax(x, -1), x=x)
        case(f"log_softmax.{size}", lambda x: F.log_softmax(x, -1), x=x.detach().clone())
    for dim in (0, 1):
        x = normal(4, 6, 7, scale=3)
        case(f"softmax.dim{dim}", lambda x, dim=dim: F.softmax(x, dim), x=x)
        case(f"log_softmax.dim{dim}", lambda x, dim=dim: F.log_softmax(x, dim), x=x.detach().clone())
    case("softmax.large", lambda x: F.softmax(x, -1), x=normal(3, 19, scale=1000))
    save("softmax")


def losses():
    for classes in (1, 2, 10, 37):
        labels = torch.randint(classes, (9,), generator=generator)
        for smoothing in (0.0, 0.1):
            case(f"hard.{classes}.{smoothing}",
                 lambda x, s=smoothing, t=labels: F.cross_entropy(x, t, label_smoothing=s), {"labels": labels},
                 x=normal(9, classes, scale=3))
            soft = torch.softmax(normal(9, classes), -1)
            soft[0] *= 0.5  # rows that do not add up to 1
            case(f"soft.{classes}.{smoothing}",
                 lambda x, s=smoothing, t=soft: F.cross_entropy(x, t, label_smoothing=s), {"soft": soft},
                 x=normal(9, classes, scale=3))
    labels = torch.tensor([3, -100, 0, 4, -100])
    for smoothing in (0.0, 0.2):
        case(f"ignored.{smoothing}", lambda x, s=smoothing: F.cross_entropy(x, labels, label_smoothing=s),
             {"labels": labels}, x=normal(5, 5))
    case("large", lambda x: F.cross_entropy(x, torch.arange(4)), {"labels": torch.arange(4)}, x=normal(4, 6, scale=1000))
    targets = torch.rand(5, 13, generator=generator, dtype=torch.float64)
    case("bce", lambda x: F.binary_cross_entropy_with_logits(x, targets), {"targets": targets}, x=normal(5, 13, scale=20))
    case("mse", lambda x, target: F.mse_loss(x, target), x=normal(3, 7, 5), target=normal(3, 7, 5))
    save("loss")


def casts():
    # bf16 rounding: ties to even on both sides, subnormals, the largest number, infinities.
    bits = torch.tensor([0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x00000001,
                         0x00008000, 0x00018000, 0x80000000], dtype=torch.int64)
    special = bits.where(bits < 2**31, bits - 2**32).to(torch.int32).view(torch.float32)
    values = torch.cat([special, torch.randn(206, generator=generator)])
    tensors["f32"] = values
    tensors["bf16"] = values.to(torch.bfloat16)
    save("cast")


def group_norms():
    def one(name, groups, weight, x):
        case(name, lambda x, weight, bias: F.group_norm(x, groups, weight, bias, 1e-5),
             {"groups": torch.tensor([groups])}, x=x, weight=weight, bias=normal(len(weight), scale=0.5))

    one("plain", 4, normal(32, scale=0.5, shift=1), normal(2, 32, 5, 4, scale=2, shift=0.5))
    one("odd", 3, normal(21, scale=0.5, shift=1), normal(3, 21, 3, 7))
    one("instance", 5, normal(5, scale=0.5, shift=1), normal(2, 5, 6, 6))
    one("layer", 1, normal(17, scale=0.5, shift=1), normal(2, 17, 3, 3))
    one("shifted", 2, normal(4, scale=0.5, shift=1), normal(2, 4, 5, 5, scale=8, shift=256))
    one("many_pixels", 2, normal(6, scale=0.5, shift=1), normal(1, 6, 23, 25))
    save("group_norm")


activations()
norms()
softmaxes()
losses()
casts()
group_norms()
