"""Checks that transformers loads what vitrail writes of CLIPModel, SiglipModel and DINOv3ViTModel, with no key missing and
none too many, and computes the same.

    python tools/check_joint.py [--vitrail build/bin/vitrail]

A CLIPModel and a SiglipModel are trained for one epoch on scenes, and the fixtures of DINOv3 converted to timm's layout and
back. Needs transformers 5.23, torch, sentencepiece and safetensors.
"""

import argparse
import pathlib
import subprocess
import tempfile

import torch
import transformers as hf
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ROOT / "tests/golden/models"

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--vitrail", default="build/bin/vitrail")
options = parser.parse_args()


def vitrail(*arguments):
    subprocess.run([options.vitrail, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def loaded(kind, folder):
    model, info = kind.from_pretrained(folder, output_loading_info=True)
    wrong = {key: names for key, names in info.items() if names}
    assert not wrong, f"{folder}: {wrong}"
    return model.eval()


def close(ours, theirs, what):
    error = ((ours - theirs).norm() / theirs.norm()).item()
    assert error < 1e-4, f"{what}: {error:.1e}"
    print(f"{what:<40} {error:.1e}")


def forward(folder, work, **tensors):
    save_file({name: t.contiguous() for name, t in tensors.items()}, work / "x.safetensors")
    vitrail("forward", folder, "--input", work / "x.safetensors", "--output", work / "y.safetensors")
    return load_file(work / "y.safetensors")


def check_joint(work, name, kind):
    folder = work / f"runs/{name}/best"
    vitrail("pretrain", "clip", work / "scenes", "--model", MODELS / "joint" / name, "--loss", name, "--epochs", 1, "-b", 8,
            "--output", work / "runs", "--experiment", name)
    model = loaded(kind, folder)
    tokenizer, processor = hf.AutoTokenizer.from_pretrained(folder), hf.AutoImageProcessor.from_pretrained(folder)
    assert processor.image_mean == hf.AutoImageProcessor.from_pretrained(MODELS / "joint" / name).image_mean
    inputs = {"pixel_values": torch.randn(2, 3, 12, 12),
              "input_ids": tokenizer(["a red bird", "two circles"], padding="max_length", return_tensors="pt").input_ids}
    ours = forward(folder, work, **inputs)
    with torch.no_grad():
        theirs = model(**inputs)
    for what in ("image_embeds", "text_embeds", "logits_per_image"):
        close(ours[what], theirs[what], f"{name} {what}")


def check_dino(work, name):
    vitrail("convert", MODELS / name, "--output", work / f"{name}.timm", "--layout", "timm")
    vitrail("convert", work / f"{name}.timm", "--output", work / name, "--layout", "huggingface")
    model = loaded(hf.DINOv3ViTModel, work / name)
    config = model.config
    size = config.image_size if isinstance(config.image_size, list) else [config.image_size] * 2
    x = torch.randn(2, config.num_channels, *size)
    with torch.no_grad():
        close(forward(work / name, work, x=x)["logits"], model(x).pooler_output, name)


with tempfile.TemporaryDirectory() as temporary:
    temporary = pathlib.Path(temporary)
    vitrail("scenes", temporary / "scenes", "--count", 24, "--size", 32, "--objects", 1)
    check_joint(temporary, "clip", hf.CLIPModel)
    check_joint(temporary, "siglip", hf.SiglipModel)
    for fixture in ("hf_dinov3", "hf_dinov3_gated", "hf_dinov3_bias"):
        check_dino(temporary, fixture)
