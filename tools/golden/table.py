"""Writes tests/golden/models/timm_table.csv: parameters and fvcore's FLOPs, with unfused attention, of every timm name in
vitrail's registry at its own image size, and of torchvision's names of videos.

    python tools/golden/table.py          # all; some minutes
    python tools/golden/table.py swin …   # the rows of these tables anew, the others as they are

Needs timm 1.0.31 and fvcore.
"""

import csv
import pathlib
import sys

import timm
import torch
import torchvision
from fvcore.nn import FlopCountAnalysis
from timm.layers import set_fused_attn

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = ROOT / "tests/golden/models/timm_table.csv"
FIELDS = ["name", "parameters", "flops", "num_features", "num_classes"]


def count_flops(name, **arguments):
    with torch.device("meta"):
        model = timm.create_model(name, **arguments)
    for module in model.to_empty(device="cpu").modules():
        if hasattr(module, "init_non_persistent_buffers"):
            module.init_non_persistent_buffers()
    x = torch.zeros((1, *model.pretrained_cfg["input_size"]))
    analysis = FlopCountAnalysis(model.eval(), x)
    return int(analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).total())


def flops_of(name, model):
    """All blocks of a plain ViT cost the same, so the large ones are counted with one block and with two, and continued. Those
    of Segment Anything's encoders are of two kinds, in windows and global."""
    if name.startswith("samvit"):
        none, window, whole = (count_flops(name, depth=depth, global_attn_indexes=indexes)
                               for depth, indexes in [(0, ()), (1, ()), (1, (0,))])
        windows = sum(block.window_size > 0 for block in model.blocks)
        return none + windows * (window - none) + (len(model.blocks) - windows) * (whole - none)
    if not hasattr(model, "blocks") or not name.startswith(("vit_", "deit", "eva", "beit", "aim", "flexi")) or "_r" in name.replace("_re", "").replace("_rope", ""):
        return count_flops(name)
    depth = len(model.blocks)
    one, two = count_flops(name, depth=1), count_flops(name, depth=2)
    flops = one + (depth - 1) * (two - one)
    if model.embed_dim <= 384 and "_224" in name:
        assert flops == count_flops(name), name
    return flops


def names_of(path):
    """The architectures of a table: the lines that begin with a name that timm knows."""
    for line in path.read_text().splitlines():
        if " (" in line and not line.startswith((" ", "//")):
            name = line.split()[0]
            if timm.is_model(name) or name in VIDEO:
                yield name


VIDEO = torchvision.models.list_models(torchvision.models.video)


def video_row(name):
    model = torchvision.models.get_model(name).eval()
    analysis = FlopCountAnalysis(model, torch.zeros(1, 3, 16, 224, 224))
    flops = int(analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).total())
    classifier = model.head[-1]
    return [name, sum(p.numel() for p in model.parameters()), flops, classifier.in_features, classifier.out_features]


def main():
    set_fused_attn(False)
    rows = {}
    if PATH.exists():
        rows = {row["name"]: row for row in csv.DictReader(PATH.open())}
    tables = {path.name.removesuffix("_registry.cpp"): path for path in (ROOT / "vitrail/models").glob("*/*_registry.cpp")}
    wanted = sys.argv[1:] or list(tables)
    known = set()
    for key, path in tables.items():
        for name in names_of(path):
            known.add(name)
            if (key in wanted or name not in rows) and name in VIDEO:
                rows[name] = dict(zip(FIELDS, video_row(name)))
            elif key in wanted or name not in rows:
                with torch.device("meta"):
                    model = timm.create_model(name)
                values = [name, sum(p.numel() for p in model.parameters()), flops_of(name, model), model.num_features,
                          model.num_classes]
                rows[name] = dict(zip(FIELDS, values))
    with PATH.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(known))


if __name__ == "__main__":
    main()
