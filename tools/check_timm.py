"""Checks that vitrail and timm read each other's model folders and compute the same, both ways.

    python tools/check_timm.py [--vitrail build/bin/vitrail] [--models NAME …]

timm to vitrail: timm makes a small model of each name with every parameter perturbed, saves it by save_for_hf, and
`vitrail forward` must give its logits, features and attention. vitrail to timm: `vitrail train` trains such a model for
a few steps, timm loads the folder that it wrote as local-dir:, strictly, and must give the logits of `vitrail forward`.
Needs timm, torch, Pillow and safetensors; nothing of vitrail needs this.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import timm
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from timm.layers import set_fused_attn
from timm.models import save_for_hf

SIZE = 64
VIT = dict(img_size=SIZE, embed_dim=96, depth=3, num_heads=3)
SWIN = dict(img_size=SIZE, window_size=4, embed_dim=24, depths=(1, 2, 1, 1), num_heads=(1, 2, 4, 8))
MIXER = dict(img_size=SIZE)  # timm takes no other width of these by name
RESNET = dict(layers=(1, 1, 2, 1), channels=(16, 32, 48, 64))
# timm's names, and the arguments that make small models of them.
MODELS = {
    **dict.fromkeys((
        "vit_tiny_patch16_224",
        "vit_small_patch32_224",
        "vit_base_patch16_reg4_gap_256",
        "vit_base_patch16_siglip_224",
        "vit_base_patch32_clip_quickgelu_224",
        "vit_base_patch16_rpn_224",
        "vit_giant_patch14_reg4_dinov2",
        "vit_relpos_small_patch16_224",
        "vit_srelpos_small_patch16_224",
        "vit_relpos_medium_patch16_cls_224",
        "deit_tiny_distilled_patch16_224",
        "deit3_small_patch16_224",
        "vit_small_r26_s32_224",
        "vit_base_r50_s16_224",
        "vit_small_patch16_rope_mixed_ape_224",
        "eva02_tiny_patch14_224",
        "beit_base_patch16_224",
        "vit_small_plus_patch16_dinov3",
        "beit3_base_patch16_224",
        "vit_small_patch16_18x2_224",
        "vit_base_patch16_xp_224",
        "vit_pwee_patch16_reg1_gap_256",
        "vit_dwee_patch16_reg1_gap_256",
        "vit_dpwee_patch16_reg1_gap_256",
        "aimv2_large_patch14_224",
        "vit_small_resnet26d_224",
    ), VIT),
    "vit_base_mci_224": dict(img_size=SIZE, depth=2),
    "vit_tiny_r_s16_p8_224": VIT | dict(patch_size=2),
    "resnet18": RESNET,
    "resnet26d": RESNET,
    "seresnet50": RESNET,
    "resnet50": RESNET | dict(block_args=dict(attn_layer="nl")),
    "resnetv2_50": dict(layers=(1, 1, 1, 1), channels=(32, 64, 96, 128)),
    "botnet26t_256": {},
    "swin_tiny_patch4_window7_224": SWIN,
    "swinv2_tiny_window8_256": SWIN,
    "swinv2_cr_tiny_ns_224": SWIN,
    "mvitv2_tiny": dict(img_size=SIZE),
    "mixer_s16_224": MIXER,
    "resmlp_12_224": MIXER,
    "gmlp_ti16_224": MIXER,
    "gmixer_12_224": MIXER,
}


def small(name):
    return timm.create_model(name, num_classes=11, **MODELS[name])


def images_for(model, name, count):
    """Of the size that the model was made for."""
    own = model.pretrained_cfg["input_size"][-1] if model.pretrained_cfg.get("fixed_input_size") else SIZE
    size = MODELS[name].get("img_size", own)
    return torch.randn(count, 3, size, size)


def perturb(model, name):
    """Every parameter; running statistics become those of some images."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
        model.train()
        for _ in range(20):
            model(images_for(model, name, 4))
        model.eval()


def relative_error(actual, expected):
    return ((actual.float() - expected.float()).abs().max() / expected.float().abs().max().clamp(min=1e-12)).item()


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return result.stdout


def forward(vitrail, folder, x, *flags):
    with tempfile.TemporaryDirectory() as scratch:
        save_file({"x": x.contiguous()}, f"{scratch}/in.safetensors")
        run(vitrail, "forward", folder, "--input", f"{scratch}/in.safetensors", "--output",
            f"{scratch}/out.safetensors", *flags)
        return load_file(f"{scratch}/out.safetensors")


def timm_records(model, x):
    """Logits; of a plain Transformer also the output of every block and its attention probabilities."""
    records = {}
    handles = []
    blocks = [block for block in getattr(model, "blocks", ()) if hasattr(block, "attn")]
    for i, block in enumerate(blocks):
        handles += [
            block.register_forward_hook(lambda m, a, out, i=i: records.__setitem__(f"features.{i}", out)),
            block.attn.attn_drop.register_forward_pre_hook(
                lambda m, a, i=i: records.__setitem__(f"attention.{i}", a[0])
            ),
        ]
    records["logits"] = model(x)
    for handle in handles:
        handle.remove()
    return records


class Report:
    def __init__(self):
        self.failures = 0

    def line(self, what, error, tolerance):
        good = error <= tolerance
        self.failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {what}: {error:.1e} (at most {tolerance:g})", flush=True)


def timm_to_vitrail(name, vitrail, report):
    with tempfile.TemporaryDirectory() as scratch:
        model = small(name)
        perturb(model, name)
        save_for_hf(model, scratch, model_args=MODELS[name], safe_serialization=True)
        x = images_for(model, name, 2)
        with torch.no_grad():
            expected = timm_records(model, x)
        attends = any(key.startswith("attention") for key in expected)
        actual = forward(vitrail, scratch, x, "--features", *(["--attention"] if attends else []))
        for kind in ("logits", "features", "attention"):
            keys = [key for key in expected if key.startswith(kind)]
            if not keys:
                continue
            report.line(f"timm → vitrail {name} {kind}",
                        max(relative_error(actual[key], expected[key]) for key in keys), 1e-4)
        in_bf16 = forward(vitrail, scratch, x, "--amp")
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            own = relative_error(model(x), expected["logits"])  # what timm itself loses
        report.line(f"timm → vitrail {name} logits bf16", relative_error(in_bf16["logits"], expected["logits"]),
                    max(2e-2, 2 * own))


def write_images(folder):
    """Two classes of noise, in two splits."""
    for split in ("train", "validation"):
        for label in range(2):
            place = folder / split / f"class{label}"
            place.mkdir(parents=True)
            for i in range(8):
                noise = torch.randint(0, 128, (64, 64, 3), dtype=torch.uint8) + 127 * label
                Image.fromarray(noise.numpy()).save(place / f"{i}.png")


def vitrail_to_timm(name, vitrail, report):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        write_images(scratch / "images")
        run(vitrail, "train", scratch / "images", "--model", name, "--num-classes", 2, "--epochs", 2, "--batch-size",
            4, "--lr", "1e-3", "--output", scratch / "runs", "--experiment", "run",
            *(["--model-kwargs"] if MODELS[name] else []), *(f"{key}={value}" for key, value in MODELS[name].items()))
        folder = scratch / "runs" / "run" / "last"
        # Building it for its own number of classes, timm loads strictly.
        pretrained = "_resnet" not in name  # of such a hybrid timm would download the ResNet's weights
        model = timm.create_model(f"local-dir:{folder}", pretrained=pretrained).eval()
        model.load_state_dict(load_file(folder / "model.safetensors"), strict=True)
        x = images_for(model, name, 2)
        with torch.no_grad():
            expected = model(x)
        report.line(f"vitrail → timm {name} logits", relative_error(forward(vitrail, folder, x)["logits"], expected),
                    1e-4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vitrail", default="build/bin/vitrail", help="the program")
    parser.add_argument("--models", nargs="*", default=MODELS, help="timm's names to try")
    arguments = parser.parse_args()
    set_fused_attn(False)
    torch.manual_seed(0)
    report = Report()
    for name in arguments.models:
        timm_to_vitrail(name, arguments.vitrail, report)
        vitrail_to_timm(name, arguments.vitrail, report)
    print("passed" if report.failures == 0 else f"failed {report.failures} times")
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()
