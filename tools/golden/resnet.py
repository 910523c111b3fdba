"""Writes tests/golden/models/resnet*: what timm's residual networks compute, for small models with every parameter
perturbed.

    python tools/golden/resnet.py [VARIANT …]

Needs timm 1.0.31. timm_models.py says what a variant's folder holds; `training` also has the loss, the gradient of the
first convolution and the running statistics of a batch in training.
"""

import sys

import torch
from timm_models import ROOT, build, random_picture, write, write_variant

SMALL = dict(layers=(2, 1, 2, 1), channels=(8, 8, 16, 16), num_classes=7)

# name: (architecture, arguments, shape of x)
VARIANTS = {
    "resnet_basic": ("resnet18", SMALL, (2, 3, 32, 32)),
    "resnet_bottleneck": ("resnet50", SMALL | dict(in_chans=1), (2, 1, 45, 38)),
    "resnet_deep": ("resnet26d", SMALL | dict(stem_width=8, global_pool="max"), (2, 3, 41, 33)),
    "resnet_tiered": ("resnet10t", SMALL | dict(stem_width=8, global_pool="avgmax", num_classes=0), (1, 3, 32, 32)),
    "resnet_se": ("seresnet50", SMALL, (2, 3, 32, 40)),
    "resnet_groups": (
        "resnext50_32x4d",
        SMALL | dict(cardinality=2, base_width=32, output_stride=8, down_kernel_size=3, block_reduce_first=2,
                     act_layer="silu"),
        (1, 3, 37, 37),
    ),
}  # fmt: skip


def stages(model):
    return [getattr(model, f"layer{i}") for i in range(1, 5)]


def add_training(model, x, expected):
    """One batch in training, with the batch's own statistics."""
    import copy

    model = copy.deepcopy(model).train()
    logits = model(x)
    expected["training.logits"] = logits
    torch.nn.functional.cross_entropy(logits, torch.arange(len(x))).backward()
    expected["training.grad.conv1.weight"] = model.conv1.weight.grad
    for name, buffer in model.named_buffers():
        if "running" in name:
            expected[f"training.{name}"] = buffer


def main():
    for seed, (name, (architecture, arguments, shape)) in enumerate(VARIANTS.items()):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            more = add_training if name == "resnet_basic" else None
            write_variant(name, architecture, arguments, 100 + seed, shape, stages, lambda model: [], more)


if __name__ == "__main__":
    main()
