"""Writes tests/golden/models/resnetv2*: what timm's ResNetV2 computes, for small models with every parameter perturbed.

    python tools/golden/resnetv2.py [VARIANT …]

Needs timm 1.0.31. timm_models.py says what a variant's folder holds.
"""

import sys

import timm
from timm_models import write_initialization, write_variant

SMALL = dict(layers=(1, 2), channels=(32, 48), stem_chs=16, num_classes=7)
GROUPS = dict(layers=(1, 1), channels=(128, 128), stem_chs=32, num_classes=7)  # 32 groups everywhere

# name: (architecture, arguments, shape of x)
VARIANTS = {
    "resnetv2": ("resnetv2_50", SMALL, (2, 3, 32, 32)),
    "resnetv2_basic": ("resnetv2_18d", SMALL | dict(channels=(8, 16), stem_chs=8, in_chans=1, global_pool="max"), (2, 1, 41, 30)),
    "resnetv2_tiered": ("resnetv2_50t", SMALL | dict(num_classes=0, act_layer="silu"), (2, 3, 33, 35)),
    "resnetv2_bit": ("resnetv2_50x1_bit", GROUPS, (2, 3, 30, 37)),
}

INITIALIZATIONS = {
    "resnetv2": ("resnetv2_50", dict(zero_init_last=True)),
    "resnetv2_basic": ("resnetv2_18", dict()),
}


def make(architecture, **arguments):
    if not architecture.endswith("_bit"):
        return timm.create_model(architecture, **arguments)
    model = timm.models.resnetv2._create_resnetv2_bit(architecture, **arguments)  # the name itself takes no other layers
    model._model_args = {}
    return model


def main():
    for seed, (name, (architecture, arguments, shape)) in enumerate(VARIANTS.items()):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            write_variant(name, architecture, arguments, 200 + seed, shape, lambda model: model.stages, lambda model: [],
                          make=make)
    write_initialization("resnetv2", INITIALIZATIONS, dict(layers=(1, 2), channels=(32, 64), num_classes=20))


if __name__ == "__main__":
    main()
