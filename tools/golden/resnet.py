"""Writes tests/golden/models/resnet*: what timm's residual networks compute, for small models with every parameter
perturbed.

    python tools/golden/resnet.py [VARIANT …]

Needs timm 1.0.31 and fvcore. The non-local blocks other than timm's and SAGAN's attention come from image_attention.py;
sagan_table.csv is as table.py's. timm_models.py says what a variant's folder holds.
"""

import sys

import torch
from fvcore.nn import FlopCountAnalysis
from image_attention import make
from timm_models import ROOT, write_initialization, write_variant

SMALL = dict(layers=(1, 1, 2, 1), channels=(8, 8, 8, 12), num_classes=7)

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
    "resnet_nl": ("resnet50", SMALL | dict(block_args=dict(attn_layer="nl")), (2, 3, 37, 30)),
    "resnet_sagan": ("sagan_resnet", SMALL, (2, 3, 37, 30)),
}  # fmt: skip
for kind in ("gaussian", "concatenation", "dot_product"):
    blocks = dict(attn_layer="nl", nl_kind=kind)
    VARIANTS[f"resnet_nl_{kind}"] = ("resnet18", dict(layers=(1, 1, 1, 1), channels=(8, 8, 8, 8), num_classes=7, block_args=blocks),
                                    (2, 3, 33, 41))


def stages(model):
    return [getattr(model, f"attn{i}", getattr(model, f"layer{i}")) for i in range(1, 5)]


def maps(model):
    """The modules that take or see attention maps."""
    return [module.map for module in model.modules() if hasattr(module, "map")]


def add_non_local_maps(model, x, expected):
    """timm's NonLocalAttn has no module at the map: it is worked out from its input."""
    def record(block, inputs, index):
        t, p = block.t(inputs[0]).flatten(2), block.p(inputs[0]).flatten(2)
        expected[f"attention.{index}"] = torch.softmax(torch.einsum("bci,bcj->bij", t, p) * block.scale, 2).unsqueeze(1)

    blocks = [module.se for module in model.modules() if hasattr(module, "se")]
    handles = [block.register_forward_pre_hook(lambda b, i, n=n: record(b, i, n)) for n, block in enumerate(blocks)]
    model(x)
    for handle in handles:
        handle.remove()


def write_sagan_table():
    model = make("sagan_resnet").eval()
    flops = FlopCountAnalysis(model, torch.zeros(1, 3, 224, 224))
    flops = int(flops.unsupported_ops_warnings(False).uncalled_modules_warnings(False).total())
    row = f"sagan_resnet,{sum(p.numel() for p in model.parameters())},{flops},{model.num_features},{model.num_classes}"
    (ROOT / "sagan_table.csv").write_text(f"name,parameters,flops,num_features,num_classes\n{row}\n")


INITIALIZATIONS = {
    "resnet": ("resnet50", dict()),
    "resnet_basic": ("resnet18d", dict(zero_init_last=False, stem_width=16)),
    "resnet_nl": ("resnet50", dict(block_args=dict(attn_layer="nl"))),
    "seresnet": ("seresnet50", dict()),
}


def main():
    for seed, (name, (architecture, arguments, shape)) in enumerate(VARIANTS.items()):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            more = add_non_local_maps if name == "resnet_nl" else None
            write_variant(name, architecture, arguments, 100 + seed, shape, stages, maps, more, make)
    write_sagan_table()
    write_initialization("resnet", INITIALIZATIONS,
                         dict(layers=(1, 1, 2, 1), channels=(16, 16, 32, 32), num_classes=20))


if __name__ == "__main__":
    main()
