"""Writes tests/golden/models/hybrid*: what timm's Vision Transformers behind convolutions compute, for small models with every
parameter perturbed.

    python tools/golden/vit_hybrid.py

Needs timm 1.0.31. timm_models.py says what a variant's folder holds. The backbone, which timm's names fix, is described by
vitrail's own arguments backbone, backbone_layers, backbone_channels and backbone_stem_chs.
"""

import functools

import timm
import torch
from timm.layers import HybridEmbed, StdConv2d, StdConv2dSame, set_fused_attn
from timm.models.resnet import resnet26d
from timm.models.resnetv2 import ResNetV2, create_resnetv2_stem
from timm.models.vision_transformer_hybrid import ConvStem
from timm_models import ROOT, random_image, write, write_initialization, write_variant

SMALL = dict(embed_dim=24, depth=2, num_heads=3, num_classes=7)

# name: (architecture, arguments)
VARIANTS = {
    "hybrid_stem": ("vit_tiny_r_s16_p8_224", SMALL | dict(img_size=30, patch_size=4, backbone_stem_chs=32)),
    "hybrid": (
        "vit_small_r26_s32_224",
        SMALL | dict(img_size=(30, 37), backbone_layers=(1, 1), backbone_channels=(128, 128), backbone_stem_chs=32),
    ),
    "hybrid_even": (
        "vit_base_r50_s16_224",
        SMALL | dict(img_size=32, in_chans=1, padding_same=False, global_pool="avg", class_token=False,
                     backbone_layers=(1, 1), backbone_channels=(128, 128), backbone_stem_chs=32),
    ),
    "hybrid_resnetd": (
        "vit_small_resnet50d_s16_224",
        SMALL | dict(img_size=(37, 48), backbone_layers=(1, 2), backbone_channels=(16, 8), backbone_stem_chs=8),
    ),
    "hybrid_conv_stem": ("vit_base_mci_224", SMALL | dict(img_size=(32, 64), in_chans=2)),
}  # fmt: skip

INITIALIZATIONS = {
    "hybrid_stem": ("vit_tiny_r_s16_p8_224", dict(patch_size=4, backbone_stem_chs=32)),
    "hybrid": (
        "vit_small_r26_s32_224",
        dict(backbone_layers=(1, 1), backbone_channels=(128, 128), backbone_stem_chs=32),
    ),
    "hybrid_resnetd": ("vit_base_resnet26d_224", dict(backbone_layers=(1, 1), backbone_channels=(32, 32))),
    "hybrid_conv_stem": ("vit_base_mci_224", dict()),
    "hybrid_conv_stem_jax": ("vit_base_mci_224", dict(weight_init="jax")),
}


def resnetv2(in_chans, layers=(), channels=(), stem_chs=64, padding_same=True):
    """As timm's _resnetv2, of any size."""
    same = dict(
        stem_type="same" if padding_same else "",
        conv_layer=functools.partial(StdConv2dSame if padding_same else StdConv2d, eps=1e-8),
        preact=False,
    )
    if layers:
        sizes = dict(layers=layers, channels=channels, stem_chs=stem_chs)
        return ResNetV2(num_classes=0, global_pool="", in_chans=in_chans, **sizes, **same)
    return create_resnetv2_stem(in_chans, stem_chs, **same)


def resnetd(in_chans, layers=(), channels=(), stem_chs=32):
    """As timm's resnet26d, of any size."""
    return resnet26d(features_only=True, out_indices=[len(layers)], in_chans=in_chans, layers=layers, channels=channels,
                     stem_width=stem_chs)


def conv_stem(in_chans, dim):
    """As that of timm's vit_base_mci_224, of any width."""
    return ConvStem(channels=(dim // 4, dim // 4, dim), stride=(4, 2, 2), kernel_size=(4, 2, 2), padding=0,
                    in_chans=in_chans, act_layer=torch.nn.GELU)


def make(architecture, **arguments):
    """As timm's _create_vision_transformer_hybrid, with a backbone of any size."""
    own = {key.removeprefix("backbone_"): arguments.pop(key) for key in list(arguments)
           if key.startswith("backbone_") or key == "padding_same"}
    in_chans = arguments.get("in_chans", 3)
    if "mci" in architecture:
        embed = dict(backbone=conv_stem(in_chans, arguments["embed_dim"]), proj=False)
    elif "resnet" in architecture:
        embed = dict(backbone=resnetd(in_chans, **own))
    else:
        embed = dict(backbone=resnetv2(in_chans, **own))
    model = timm.create_model(architecture, embed_layer=functools.partial(HybridEmbed, **embed), **arguments)
    del model._model_args["embed_layer"]  # not for config.json
    return model


def write_adapted():
    """A checkpoint loaded for another image size and number of channels."""
    from safetensors.torch import load_file
    from timm.models.vision_transformer_hybrid import checkpoint_filter_fn

    arguments = VARIANTS["hybrid"][1] | dict(img_size=48)
    model = make("vit_small_r26_s32_224", **arguments)
    state = load_file(ROOT / "hybrid/model.safetensors")
    # timm takes the old grid for a square one; this one is 4 x 5.
    state["pos_embed"] = timm.layers.resample_abs_pos_embed(state["pos_embed"], (6, 6), old_size=(4, 5))
    model.load_state_dict(checkpoint_filter_fn(state, model))
    model = model.double().eval()
    x = random_image((1, 3, 48, 48))
    write(ROOT / "hybrid_adapted.safetensors", {"x": x, "logits": model(x)})


def main():
    set_fused_attn(False)
    for seed, (name, (architecture, arguments)) in enumerate(VARIANTS.items()):
        size = torch.broadcast_to(torch.tensor(arguments["img_size"]), (2,)).tolist()
        write_variant(name, architecture, arguments, 300 + seed, (2, arguments.get("in_chans", 3), *size),
                      lambda model: model.blocks, lambda model: [block.attn.attn_drop for block in model.blocks],
                      make=make)
    write_adapted()
    write_initialization("vit_hybrid", INITIALIZATIONS,
                         dict(img_size=64, embed_dim=96, depth=1, num_heads=4, num_classes=50),
                         make)


if __name__ == "__main__":
    main()
