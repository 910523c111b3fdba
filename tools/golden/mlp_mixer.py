"""Writes tests/golden/models/mixer …: what timm's MlpMixer computes, for small models with every parameter perturbed, and
mlp_mixer_initialization.json, how fresh ones start.

    python tools/golden/mlp_mixer.py

Needs timm 1.0.31, torch 2.13.0 and safetensors. timm_models.py says what a variant's folder holds.
"""

import timm
from registry import entry_arguments
from timm_models import shape_of, write_initialization, write_variant

SMALL = dict(img_size=32, patch_size=8, embed_dim=24, num_blocks=2, num_classes=7)

# name: (architecture, arguments)
VARIANTS = {
    "mixer": ("mixer_s16_224", SMALL),
    "mixer_odd": (
        "mixer_b32_224",
        SMALL | dict(img_size=(20, 43), patch_size=4, in_chans=1, mlp_ratio=(0.7, 2.5), stem_norm=True, embed_dim=19),
    ),
    "mixer_tokens": ("mixer_s32_224", SMALL | dict(global_pool="", num_classes=5, mlp_ratio=1.5)),
    "mixer_features": ("mixer_s16_224", SMALL | dict(num_classes=0)),
    "resmlp": ("resmlp_24_224", SMALL),
    "resmlp_odd": ("resmlp_12_224", SMALL | dict(img_size=(24, 40), embed_dim=13, num_blocks=3)),
    "gmlp": ("gmlp_ti16_224", SMALL),
    "gmlp_odd": ("gmlp_s16_224", SMALL | dict(img_size=(24, 40), embed_dim=10, mlp_ratio=3, num_blocks=3)),
    "gmixer": ("gmixer_12_224", SMALL),
    "gmixer_odd": ("gmixer_24_224", SMALL | dict(img_size=(24, 56), embed_dim=22, mlp_ratio=(1, 2))),
}

INITIALIZATIONS = {
    "mixer": ("mixer_s16_224", dict(nlhb=True)),
    "resmlp": ("resmlp_24_224", dict()),
    "gmlp": ("gmlp_ti16_224", dict()),
    "gmixer": ("gmixer_12_224", dict()),
}


def make(architecture, **arguments):
    """timm's model, also with other values for the arguments that timm's entry points fix."""
    _, own = entry_arguments(timm.models.mlp_mixer, architecture)
    return timm.models.mlp_mixer._create_mixer(architecture, **(own | arguments))


def main():
    for seed, (name, (architecture, arguments)) in enumerate(VARIANTS.items()):
        write_variant(name, architecture, arguments, seed, shape_of(arguments), lambda model: model.blocks,
                      lambda model: [], make=make)
    write_initialization("mlp_mixer", INITIALIZATIONS,
                         dict(img_size=64, patch_size=8, embed_dim=96, num_blocks=2, num_classes=50), make)


if __name__ == "__main__":
    main()
