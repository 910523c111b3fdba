"""Checks that transformers loads what vitrail writes of CLIPModel, SiglipModel and DINOv3ViTModel, with no key missing and
none too many, and computes the same.

    python tools/check_joint.py [--vitrail build/bin/vitrail]

A CLIPModel and a SiglipModel are trained for one epoch on scenes, and the fixtures of DINOv3 converted to timm's layout and
back. Needs transformers 5.23, torch, sentencepiece and safetensors.
"""

import pathlib
import tempfile

import torch
import transformers as hf

from checks import Program, close, loaded, parser_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ROOT / "tests/golden/models"

vitrail = Program(parser_of(__doc__).parse_args().vitrail)


def check_joint(work, name, kind):
    folder = work / f"runs/{name}/best"
    vitrail("pretrain", "clip", work / "scenes", "--model", MODELS / "joint" / name, "--loss", name, "--epochs", 1, "-b", 8,
            "--output", work / "runs", "--experiment", name)
    model = loaded(kind, folder)
    tokenizer, processor = hf.AutoTokenizer.from_pretrained(folder), hf.AutoImageProcessor.from_pretrained(folder)
    assert processor.image_mean == hf.AutoImageProcessor.from_pretrained(MODELS / "joint" / name).image_mean
    inputs = {"pixel_values": torch.randn(2, 3, 12, 12),
              "input_ids": tokenizer(["a red bird", "two circles"], padding="max_length", return_tensors="pt").input_ids}
    ours = vitrail.forward(folder, work, **inputs)
    with torch.no_grad():
        theirs = model(**inputs)
    for what in ("image_embeds", "text_embeds", "logits_per_image"):
        close(ours[what], theirs[what], f"{name} {what}", 1e-4)


def check_dino(work, name):
    vitrail("convert", MODELS / name, "--output", work / f"{name}.timm", "--layout", "timm")
    vitrail("convert", work / f"{name}.timm", "--output", work / name, "--layout", "huggingface")
    model = loaded(hf.DINOv3ViTModel, work / name)
    config = model.config
    size = config.image_size if isinstance(config.image_size, list) else [config.image_size] * 2
    x = torch.randn(2, config.num_channels, *size)
    with torch.no_grad():
        close(vitrail.forward(work / name, work, x=x)["logits"], model(x).pooler_output, name, 1e-4)


with tempfile.TemporaryDirectory() as temporary:
    temporary = pathlib.Path(temporary)
    vitrail("scenes", temporary / "scenes", "--count", 24, "--size", 32, "--objects", 1)
    check_joint(temporary, "clip", hf.CLIPModel)
    check_joint(temporary, "siglip", hf.SiglipModel)
    for fixture in ("hf_dinov3", "hf_dinov3_gated", "hf_dinov3_bias"):
        check_dino(temporary, fixture)
print("passed")
