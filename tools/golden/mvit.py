"""Writes tests/golden/models/mvit*: what timm's Multiscale Vision Transformers compute, for small models with every
parameter perturbed, and what they start from.

    python tools/golden/mvit.py            # all
    python tools/golden/mvit.py variants   # one of: variants, adapted, initialization

Needs timm 1.0.31, torch 2.13.0 and safetensors. timm_models.py says what a variant's folder holds. timm's entry points
take no fields of MultiScaleVitCfg; here they do, as vitrail's do.
"""

import contextlib
import dataclasses
import sys

import timm
import torch
from timm.models import mvitv2
from timm_models import ROOT, random_image, shape_of, write, write_initialization, write_variant

TINY = dict(img_size=32, depths=(1, 2, 1), embed_dim=(8, 16, 32), num_heads=(1, 2, 4),
            stride_q=((1, 1), (2, 2), (2, 2)), mlp_ratio=2.0, num_classes=7)

# name: (architecture, arguments)
VARIANTS = {
    "mvit": ("mvitv2_tiny", TINY | dict(depths=(1, 2, 2), drop_path_rate=0.1)),
    "mvit_mlp": ("mvitv2_large", TINY | dict(depths=(2, 1, 1), expand_attn=False, qkv_bias=False)),
    "mvit_cls": ("mvitv2_small_cls", TINY | dict(use_cls_token=True, use_abs_pos=True, in_chans=1)),
    # grids of 5, 5 and 3 for queries, of 2, 5 and 5 for keys
    "mvit_odd": (
        "mvitv2_tiny",
        TINY | dict(img_size=20, stride_kv=((3, 3), (1, 1), (1, 1)), stride_q=((1, 1), (1, 1), (2, 2)), global_pool="",
                    residual_pooling=False),
    ),
    "mvit_max": (
        "mvitv2_tiny",
        TINY | dict(img_size=(24, 40), mode="max", rel_pos_type="none", kernel_qkv=(3, 1), patch_kernel=(3, 5),
                    patch_stride=(2, 4), patch_padding=(0, 2), num_classes=0, norm_eps=1e-3),
    ),
    "mvit_avg": ("mvitv2_tiny", TINY | dict(mode="avg", embed_dim=8, num_heads=2)),
}


@contextlib.contextmanager
def with_fields():
    """Within it, timm.create_model takes the fields of MultiScaleVitCfg."""
    original, configs = mvitv2._create_mvitv2, mvitv2.model_cfgs
    fields = {field.name for field in dataclasses.fields(mvitv2.MultiScaleVitCfg)}

    def create(variant, cfg_variant=None, pretrained=False, **kwargs):
        given = {k: kwargs.pop(k) for k in list(kwargs) if k in fields}
        configs["given"] = mvitv2.MultiScaleVitCfg(**given)
        return original(variant, "given", pretrained, **kwargs)

    mvitv2._create_mvitv2 = create
    yield
    mvitv2._create_mvitv2 = original


def record(model, x, expected):
    """The stages' outputs, and what softmax gives in all blocks."""
    softmax, maps = torch.Tensor.softmax, []

    def caught(self, dim):
        maps.append(softmax(self, dim))
        return maps[-1]

    handles = [
        stage.register_forward_hook(lambda m, a, out, i=i: expected.__setitem__(f"features.{i}", out[0]))
        for i, stage in enumerate(model.stages)
    ]
    torch.Tensor.softmax = caught
    model(x)
    torch.Tensor.softmax = softmax
    for handle in handles:
        handle.remove()
    expected |= {f"attention.{i}": map_ for i, map_ in enumerate(maps)}


def write_mvit_variant(name, seed):
    architecture, arguments = VARIANTS[name]
    write_variant(name, architecture, arguments, seed, shape_of(arguments), lambda model: [], lambda model: [], record)


# name: (variant, arguments over the folder's)
ADAPTED = {"larger": ("mvit", dict(img_size=48)), "grayscale": ("mvit", dict(in_chans=1))}


def write_adapted():
    """Checkpoints loaded into models of another image size or number of channels."""
    expected = {}
    for name, (variant, arguments) in ADAPTED.items():
        model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True, **arguments).double().eval()
        x = random_image((2, model.in_chans, arguments.get("img_size", 32), arguments.get("img_size", 32)))
        expected |= {f"{name}.x": x, f"{name}.logits": model(x)}
    write(ROOT / "mvit_adapted.safetensors", expected)


INITIALIZATION = TINY | dict(depths=(1, 1), embed_dim=(32, 64), num_heads=(1, 2), stride_q=((1, 1), (2, 2)),
                             use_cls_token=True, use_abs_pos=True, num_classes=50)


def main():
    wanted = sys.argv[1:] or ["variants", "adapted", "initialization"]
    with with_fields():
        if "variants" in wanted:
            for seed, name in enumerate(VARIANTS):
                # With seed 1, rounding to bf16 alone takes PyTorch's autocast 2.5 % away.
                write_mvit_variant(name, 21 if name == "mvit_mlp" else seed)
        if "adapted" in wanted:
            write_adapted()
        if "initialization" in wanted:
            write_initialization("mvit", {"mvit": ("mvitv2_small_cls", INITIALIZATION)}, {})


if __name__ == "__main__":
    main()
