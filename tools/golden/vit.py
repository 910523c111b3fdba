"""Writes tests/golden/models: what timm's Vision Transformers compute, for small models with every parameter perturbed.

    python tools/golden/vit.py            # all
    python tools/golden/vit.py variants   # one of: variants, adapted, training, initialization, table

Needs timm 1.0.31, torch 2.13.0, safetensors and fvcore. Each variant is a folder as timm's save_for_hf writes it, and
beside it expected.safetensors, computed in float64: x, logits (head, head_dist), features.{i}, attention.{i}, the
gradient `grad.NAME` of every parameter of Σ logits · seed, and facts.json with timm's layer and weight-decay groups.
"""

import csv
import json
import pathlib
import shutil
import sys

import timm
import torch
from safetensors.torch import save_file
from timm.layers import set_fused_attn
from timm.models import group_parameters, save_for_hf

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models"
REGISTRY = pathlib.Path(__file__).resolve().parents[2] / "vitrail/models/vit_registry.cpp"
SMALL = dict(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=7)

# name: (architecture, arguments, picture size of x or None for img_size)
VARIANTS = {
    "plain": ("vit_tiny_patch16_224", SMALL, None),
    "avg": ("vit_tiny_patch16_224", SMALL | dict(global_pool="avg", mlp_ratio=2.5, act_layer="gelu_tanh"), None),
    "distilled": ("deit_tiny_distilled_patch16_224", SMALL, None),
    "deit3": ("deit3_small_patch16_224", SMALL, None),
    "reg4": ("vit_base_patch16_reg4_gap_256", SMALL, None),
    "dinov2": (
        "vit_giant_patch14_reg4_dinov2",
        SMALL | dict(num_heads=2, mlp_ratio=2.67, dynamic_img_size=True),
        (24, 48),
    ),
    "relpos": ("vit_relpos_small_patch16_224", SMALL, None),
    "relpos_bias": (
        "vit_relpos_base_patch16_cls_224",
        SMALL | dict(rel_pos_type="bias", img_size=(32, 24)),
        None,
    ),
    "relpos_shared": ("vit_srelpos_small_patch16_224", SMALL | dict(rel_pos_type="mlp_swin", rel_pos_dim=16), None),
    "relpos_cls": ("vit_relpos_medium_patch16_cls_224", SMALL | dict(rel_pos_dim=20), None),
    "relpos_rpn": ("vit_relpos_small_patch16_rpn_224", SMALL, None),
    "map": ("vit_base_patch16_siglip_224", SMALL, None),
    "norms": (
        "test_vit4",
        SMALL | dict(qk_norm=True, scale_attn_norm=True, scale_mlp_norm=True, proj_bias=False, dynamic_img_size=False),
        None,
    ),
    "clip": ("vit_base_patch32_clip_quickgelu_224", SMALL, None),
    "post_norm": ("vit_base_patch16_rpn_224", SMALL, None),
    "rectangles": (
        "vit_tiny_patch16_224",
        SMALL | dict(img_size=(24, 40), patch_size=(8, 4), in_chans=1, global_pool="avgmax", fc_norm=False),
        None,
    ),
    "padded": (
        "vit_tiny_patch16_224",
        SMALL | dict(dynamic_img_size=True, dynamic_img_pad=True, global_pool="max", reg_tokens=2),
        (30, 37),
    ),
    "tokens": (
        "vit_tiny_patch16_224",
        SMALL | dict(class_token=False, pos_embed="none", global_pool="", final_norm=False),
        None,
    ),
    "features": ("vit_small_patch14_dinov2", SMALL | dict(num_classes=0), None),
}


def perturb(model, seed):
    """Every parameter gets values far from what it started with, of a size that keeps the model well-conditioned."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_scale = parameter.ndim == 1 and not name.endswith("bias")
            if is_scale:
                parameter.copy_(1 + 0.2 * noise)
            elif parameter.ndim == 1:
                parameter.copy_(0.1 * noise)
            elif name.endswith("_token") or name.endswith("pos_embed") or name.endswith("bias_table"):
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(noise / parameter[0].numel() ** 0.5)


def build(architecture, arguments, seed):
    torch.manual_seed(seed)
    model = timm.create_model(architecture, **arguments)
    perturb(model, seed)
    return model.eval()


def picture(model, size, batch=2, seed=1):
    generator = torch.Generator().manual_seed(seed)
    channels = model.patch_embed.proj.weight.shape[1]
    size = size or model.patch_embed.img_size
    return torch.randn((batch, channels, *size), generator=generator).double()


def record(model, x):
    """Outputs of every block, and the probabilities of every block's attention."""
    features, maps, handles = {}, {}, []
    for i, block in enumerate(model.blocks):
        handles.append(block.register_forward_hook(lambda m, a, out, i=i: features.__setitem__(f"features.{i}", out)))
        handles.append(
            block.attn.attn_drop.register_forward_pre_hook(lambda m, a, i=i: maps.__setitem__(f"attention.{i}", a[0]))
        )
    logits = model(x)
    for handle in handles:
        handle.remove()
    return logits, features | maps


def write(path, tensors):
    save_file({name: t.detach().float().contiguous() for name, t in tensors.items()}, path)


def write_variant(name, seed):
    architecture, arguments, size = VARIANTS[name]
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    model = build(architecture, arguments, seed)
    save_for_hf(model, folder, model_args=arguments, safe_serialization=True)
    model = model.double()
    x = picture(model, size)
    logits, recorded = record(model, x)
    expected = {"x": x, "logits": logits} | recorded
    if name == "distilled":
        model.distilled_training = True
        model.train()
        expected["head"], expected["head_dist"] = model(x)
        model.eval()
    generator = torch.Generator().manual_seed(3)
    expected["seed"] = torch.randn(logits.shape, generator=generator).double()
    (logits * expected["seed"]).sum().backward()
    for parameter_name, parameter in model.named_parameters():
        if parameter.grad is not None:
            expected[f"grad.{parameter_name}"] = parameter.grad
    write(folder / "expected.safetensors", expected)
    layers = group_parameters(model, model.group_matcher(coarse=False), reverse=True)
    facts = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "num_features": model.num_features,
        "layers": layers,
        "no_weight_decay": sorted(n for n, _ in model.named_parameters() if n in model.no_weight_decay()),
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


# name: (variant, arguments over the folder's)
ADAPTED = {
    "larger": ("plain", dict(img_size=48)),
    "other_shape": ("reg4", dict(img_size=(40, 24))),
    "grayscale": ("plain", dict(in_chans=1)),
    "five_channels": ("clip", dict(in_chans=5)),
    "relpos_larger": ("relpos", dict(img_size=40)),
    "relpos_bias_larger": ("relpos_bias", dict(img_size=(48, 32))),
}


def write_adapted():
    """Checkpoints loaded into models of another picture size or number of channels."""
    expected = {}
    for name, (variant, arguments) in ADAPTED.items():
        if name == "relpos_bias_larger":  # from a window that is not square timm resizes only so
            model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True)
            model.set_input_size(arguments["img_size"])
        else:
            model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True, **arguments)
        model = model.double().eval()
        x = picture(model, None)
        expected[f"{name}.x"] = x
        expected[f"{name}.logits"] = model(x)
    write(ROOT / "adapted.safetensors", expected)


def write_training():
    """Twenty steps of AdamW on one batch, with timm's parameter groups."""
    from timm.optim import param_groups_weight_decay

    expected = {}
    for variant in ("plain", "deit3"):
        model = timm.create_model(f"local-dir:{ROOT / variant}", pretrained=True).double().train()
        x = picture(model, None, batch=8, seed=5)
        labels = torch.arange(8) % 7
        groups = param_groups_weight_decay(model, 0.05, no_weight_decay_list=model.no_weight_decay())
        optimizer = torch.optim.AdamW(groups, lr=1e-3)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        expected[f"{variant}.x"] = x
        expected[f"{variant}.losses"] = torch.stack(losses)
    write(ROOT / "training.safetensors", expected)


INITIALIZATIONS = {
    "timm": ("vit_giant_patch14_reg4_dinov2", dict(weight_init="", mlp_ratio=4.0)),
    "fixed": ("vit_base_patch16_siglip_224", dict(weight_init="", fix_init=True)),
    "jax": ("vit_tiny_patch16_224", dict(weight_init="jax")),
    "jax_nlhb": ("deit_tiny_distilled_patch16_224", dict(weight_init="jax_nlhb")),
    "moco": ("vit_tiny_patch16_224", dict(weight_init="moco")),
    "reset": ("vit_giant_patch14_dinov2", dict(weight_init="reset", mlp_ratio=4.0)),
    "relpos": ("vit_relpos_base_patch16_rpn_224", dict(rel_pos_type="bias")),
    "relpos_timm": ("vit_relpos_base_patch16_cls_224", dict(weight_init="")),
    "post_norm": ("vit_base_patch16_rpn_224", dict()),
}


def write_initialization():
    """Mean, standard deviation and largest magnitude of the halves of every parameter of fresh models."""
    result = {}
    for name, (architecture, arguments) in INITIALIZATIONS.items():
        arguments = arguments | dict(img_size=64, patch_size=8, embed_dim=96, depth=2, num_heads=4, num_classes=50)
        torch.manual_seed(0)
        model = timm.create_model(architecture, **arguments)
        statistics = {}
        for parameter_name, parameter in model.named_parameters():
            halves = torch.tensor_split(parameter.detach().double(), 2) if parameter.shape[0] > 1 else [parameter]
            statistics[parameter_name] = [
                [h.mean().item(), h.std(correction=0).item(), h.abs().max().item()] for h in halves
            ]
        result[name] = {"architecture": architecture, "arguments": arguments, "statistics": statistics}
    (ROOT / "initialization.json").write_text(json.dumps(result, indent=1) + "\n")


def count_flops(name, **arguments):
    from fvcore.nn import FlopCountAnalysis

    with torch.device("meta"):
        model = timm.create_model(name, **arguments)
    for module in model.to_empty(device="cpu").modules():
        if hasattr(module, "init_non_persistent_buffers"):
            module.init_non_persistent_buffers()
    x = torch.zeros((1, *model.pretrained_cfg["input_size"]))
    analysis = FlopCountAnalysis(model.eval(), x)
    return int(analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).total())


def write_table():
    """Parameters and fvcore's FLOPs, with unfused attention, of every name in the registry at its own picture size.

    All blocks of a model cost the same, so the large ones are counted with one block and with two, and continued.
    """
    rows = []
    for line in REGISTRY.read_text().splitlines():
        if not (" (vit" in line and "=" in line and not line.startswith(" ")):
            continue
        name = line.split()[0]
        with torch.device("meta"):
            model = timm.create_model(name)
        depth = len(model.blocks)
        one, two = count_flops(name, depth=1), count_flops(name, depth=2)
        flops = one + (depth - 1) * (two - one)
        if model.embed_dim <= 384 and "_224" in name:
            assert flops == count_flops(name), name
        rows.append([name, sum(p.numel() for p in model.parameters()), flops, model.num_features, model.num_classes])
    with open(ROOT / "timm_table.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "parameters", "flops", "num_features", "num_classes"])
        writer.writerows(rows)


def main():
    set_fused_attn(False)
    ROOT.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[1:] or ["variants", "adapted", "training", "initialization", "table"]
    if "variants" in wanted:
        for seed, name in enumerate(VARIANTS):
            write_variant(name, seed)
    if "adapted" in wanted:
        write_adapted()
    if "training" in wanted:
        write_training()
    if "initialization" in wanted:
        write_initialization()
    if "table" in wanted:
        write_table()


if __name__ == "__main__":
    main()
