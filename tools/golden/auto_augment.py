#!/usr/bin/env python3
"""Golden values for automatic augmentation: every operation of timm at several levels, AugMix, and the policies.

    python tools/golden/auto_augment.py

Writes tests/golden/images/auto_augment.safetensors: images and what timm's AugmentOp makes of them when its draws are
given, and in its metadata the cases and what timm makes of policy strings.
"""
import json
import types

import numpy as np
import timm.data.auto_augment as timm_aa
from PIL import Image
from images import ROOT, drawn_image
from safetensors.numpy import save_file

FILL = (124, 116, 104)
RESAMPLE = {name: getattr(Image.Resampling, name.upper()) for name in ("nearest", "bilinear", "bicubic")}
GEOMETRIC = ("Rotate", "ShearX", "ShearY", "TranslateXRel", "TranslateYRel")
SIGNED = GEOMETRIC + ("ColorIncreasing", "ContrastIncreasing", "BrightnessIncreasing", "SharpnessIncreasing")
FLAT = ("AutoContrast", "Equalize", "Invert")


def fixed(negative: bool, unit: float) -> types.SimpleNamespace:
    """What timm takes for `random`: one sign, one place between two bounds."""
    return types.SimpleNamespace(
        random=lambda: 0.75 if negative else 0.25,
        uniform=lambda low, high: low + (high - low) * unit,
        choice=lambda options: options[0],
    )


def augmented(image: Image.Image, case: dict) -> np.ndarray:
    hparams = {"img_mean": FILL, "interpolation": RESAMPLE[case["interpolation"]], "magnitude_max": 40,
               "translate_pct": case.get("translate_pct", 0.45)}
    timm_aa.random = fixed(case["negative"], case["unit"])
    op = timm_aa.AugmentOp(case["operation"], prob=1.0, magnitude=case["level"], hparams=hparams)
    try:
        return np.asarray(op(image))
    except ValueError:  # Pillow 13 refuses to keep no bits at all; before, that was black
        assert case["operation"].startswith("Posterize")
        return np.zeros_like(np.asarray(image))


def cases() -> list[dict]:
    result = []

    def add(operation, level, image=0, negative=False, interpolation="bicubic", unit=0.5, **more):
        result.append({"operation": operation, "level": level, "image": image, "negative": negative,
                       "interpolation": interpolation, "unit": unit, **more})

    for name in timm_aa.NAME_TO_OP:
        if name in ("TranslateX", "TranslateY"):  # no policy uses them
            continue
        for level in (5.0,) if name in FLAT else (0.0, 3.7, 9.0, 10.0):
            add(name, level, negative=level < 5)
        if name in SIGNED:
            add(name, 6.3, negative=True)
            add(name, 6.3)
        if name in GEOMETRIC:
            for interpolation in ("nearest", "bilinear"):
                add(name, 4.1, negative=True, interpolation=interpolation)
                add(name, 8.2, interpolation=interpolation)
        for image in (1, 2):
            add(name, 7.0, image)
    for level in (30.0, 31.5):  # 90 degrees of a square
        add("Rotate", level, 1)
        add("Rotate", level, 1, negative=True)
    add("TranslateXRel", 5.0, translate_pct=0.3)
    for unit in (0.0, 0.06, 0.999):
        add("GaussianBlurRand", 10.0, unit=unit)
    return result


def augmix(image: Image.Image, blended: bool) -> tuple[np.ndarray, dict]:
    """AugMix with weights, share and chains given; levels are drawn uniformly, which gives a fifth of 5."""
    chains = [["Rotate", "SolarizeIncreasing"], ["Equalize"], ["ShearX", "ColorIncreasing", "PosterizeIncreasing"]]
    weights, share = [0.2, 0.5, 0.3], 0.7
    mix = timm_aa.augment_and_mix_transform(
        f"augmix-m5{'-b1' if blended else ''}",
        {"img_mean": FILL, "interpolation": RESAMPLE["bilinear"], "translate_pct": 0.3})
    named = {op.name: op for op in mix.ops}
    queue = iter(chains)
    timm_aa.random = fixed(True, 0.2)
    numpy = timm_aa.np
    timm_aa.np = types.SimpleNamespace(
        **{name: getattr(numpy, name) for name in ("float32", "zeros_like", "asarray", "clip", "uint8", "array")},
        random=types.SimpleNamespace(dirichlet=lambda _: np.array(weights), beta=lambda *_: share,
                                     randint=lambda *_: 1,
                                     choice=lambda *_, **__: [named[name] for name in next(queue)]))
    result = np.asarray(mix(image))
    timm_aa.np = numpy
    return result, {"chains": chains, "weights": weights, "share": share, "level": 1.0, "blended": blended}


def policies() -> dict:
    result = {}
    for name in ("rand", "rand-m9-mstd0.5-inc1", "rand-m15-n3-p0.7-mmax30-mstd101", "rand-m7-tweights-n3",
                 "rand-t3a-inc1", "rand-m5-t3aw-mstd1.0", "original", "originalr-mstd0.5", "v0-mstd0.25", "v0r", "3a",
                 "augmix-m5-w4-d2", "augmix-b1-a0.5-mstd0.5"):
        hparams = {"img_mean": FILL}
        if name.startswith("rand"):
            made = timm_aa.rand_augment_transform(name, hparams)
            steps = [[op] for op in made.ops]
            more = {"layers": made.num_layers,
                    "weights": [] if made.choice_weights is None else list(made.choice_weights)}
        elif name.startswith("augmix"):
            made = timm_aa.augment_and_mix_transform(name, hparams)
            steps = [[op] for op in made.ops]
            more = {"width": made.width, "depth": made.depth, "alpha": made.alpha, "blended": made.blended}
        else:
            steps = timm_aa.auto_augment_transform(name, hparams).policy
            more = {}
        first = steps[0][0]
        std = first.magnitude_std
        result[name] = {"choices": [[[op.name, op.prob, op.magnitude] for op in step] for step in steps],
                        "std": -1 if std == float("inf") else std, "max": first.magnitude_max or 10, **more}
    return result


if __name__ == "__main__":
    low = drawn_image(16, 16) // 5 + 60
    low[..., 1] = 77  # a channel without contrast
    values = {"image.0": drawn_image(23, 19), "image.1": low, "image.2": drawn_image(2, 5)}
    images = [Image.fromarray(values[f"image.{i}"]) for i in range(3)]
    all_cases = cases()
    for i, case in enumerate(all_cases):
        values[f"case.{i}"] = augmented(images[case["image"]], case)
    mixes = []
    for blended in (False, True):
        values[f"augmix.{len(mixes)}"], mix = augmix(images[0], blended)
        mixes.append(mix)
    path = ROOT / "auto_augment.safetensors"
    save_file(values, path, {"cases": json.dumps(all_cases), "augmix": json.dumps(mixes),
                             "policies": json.dumps(policies())})
    print(len(all_cases), path.stat().st_size)
