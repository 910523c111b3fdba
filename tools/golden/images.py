#!/usr/bin/env python3
"""Golden values for images: decoding, resizing, timm's transforms, colours, MixUp and CutMix.

    python tools/golden/images.py

Writes tests/golden/images/: small image files of every kind in decode/, and what Pillow 13, torchvision and timm make
of them in *.safetensors.
"""
import io
import json
import pathlib
import struct
import zlib

import numpy as np
import timm.data.mixup
import torch
import torchvision.transforms.functional as F
from PIL import Image, ImageOps
from safetensors.numpy import save_file
from timm.data import create_transform
from timm.data.transforms_factory import transforms_imagenet_eval

ROOT = pathlib.Path(__file__).parents[2] / "tests/golden/images"
random = np.random.default_rng(20261121)


def drawn_image(width: int, height: int, channels: int = 3) -> np.ndarray:
    """Smooth colours with some noise and a hard edge, so that filters and codecs have something to do."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 120 * np.sin(0.31 * x + 0.23 * (c + 1) * y + c) for c in range(channels)]
    values = np.stack(planes, -1) + random.normal(0, 12, (height, width, channels))
    values[height // 3 : height // 2, width // 4 : width // 2] = 255 * random.integers(0, 2, channels)
    return np.clip(values, 0, 255).astype(np.uint8)


# Decoding.


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_rows(samples: np.ndarray, depth: int) -> bytes:
    """Filter type 0 rows of [height, width, channels] samples of `depth` bits."""
    rows = b""
    for row in samples.reshape(samples.shape[0], -1):
        if depth == 16:
            packed = row.astype(">u2").tobytes()
        else:
            bits = "".join(format(int(value), f"0{depth}b") for value in row)
            bits += "0" * (-len(bits) % 8)
            packed = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
        rows += b"\0" + packed
    return rows


def png(samples: np.ndarray, depth: int, color: int, *, interlaced: bool = False, before=(), after=()) -> bytes:
    """A PNG file of any kind, which Pillow cannot always write."""
    height, width = samples.shape[:2]
    samples = samples.reshape(height, width, -1)
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        parts = [samples[y::dy, x::dx] for x, y, dx, dy in passes]
        data = b"".join(png_rows(part, depth) for part in parts if part.size)
    else:
        data = png_rows(samples, depth)
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    chunks = [(b"IHDR", header), *before, (b"IDAT", zlib.compress(data, 9)), *after, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*chunk) for chunk in chunks)


def exif(orientation: int, big_endian: bool = False) -> bytes:
    """An EXIF block that holds nothing but an orientation."""
    order = ">" if big_endian else "<"
    head = b"MM" if big_endian else b"II"
    entry = struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    return head + struct.pack(order + "HI", 42, 8) + struct.pack(order + "H", 1) + entry + b"\0\0\0\0"


XMP = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'


def encoded(image: Image.Image, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def jpegs() -> dict[str, bytes]:
    rgb = Image.fromarray(drawn_image(37, 29))
    small = Image.fromarray(drawn_image(11, 7))
    cmyk = Image.fromarray(drawn_image(21, 18, 4), "CMYK")
    files = {
        "rgb444.jpg": encoded(rgb, "JPEG", quality=90, subsampling=0),
        "rgb422.jpg": encoded(rgb, "JPEG", quality=80, subsampling=1),
        "rgb420.jpg": encoded(rgb, "JPEG", quality=75, subsampling=2),
        "keep_rgb.jpg": encoded(rgb, "JPEG", quality=85, keep_rgb=True),
        "progressive.jpg": encoded(rgb, "JPEG", quality=80, progressive=True),
        "restarts.jpg": encoded(rgb, "JPEG", quality=80, restart_marker_blocks=2),
        "coarse.jpg": encoded(rgb, "JPEG", quality=5),
        "gray.jpg": encoded(rgb.convert("L"), "JPEG", quality=85),
        "cmyk.jpg": encoded(cmyk, "JPEG", quality=90),
        "one_pixel.jpg": encoded(rgb.crop((5, 5, 6, 6)), "JPEG"),
        "xmp.jpg": encoded(small, "JPEG", xmp=XMP),
    }
    # The same inks called YCCK: the last byte of Adobe's marker is the transform.
    adobe = files["cmyk.jpg"].index(b"Adobe") + 11
    files["ycck.jpg"] = files["cmyk.jpg"][:adobe] + b"\x02" + files["cmyk.jpg"][adobe + 1 :]
    for orientation in range(1, 9):
        data = b"Exif\0\0" + exif(orientation, big_endian=orientation % 2 == 0)
        files[f"orientation{orientation}.jpg"] = encoded(small, "JPEG", quality=90, exif=data)
    return files


def pngs() -> dict[str, bytes]:
    gray = drawn_image(19, 13, 1)
    rgb = drawn_image(19, 13, 3)
    rgba = drawn_image(19, 13, 4)
    high = (drawn_image(19, 13, 4).astype(np.uint16) << 8) | random.integers(0, 256, (13, 19, 4)).astype(np.uint16)
    dark = random.integers(0, 600, (13, 19, 1)).astype(np.uint16)
    palette = drawn_image(16, 16, 3).reshape(-1)
    files = {
        "rgb.png": encoded(Image.fromarray(rgb), "PNG"),
        "rgba.png": encoded(Image.fromarray(rgba), "PNG"),
        "gray_alpha.png": encoded(Image.fromarray(rgba[..., :2], "LA"), "PNG"),
        "gray16.png": png(high[..., :1], 16, 0),
        "gray16_dark.png": png(dark, 16, 0),
        "gray16_alpha.png": png(high[..., :2], 16, 4),
        "rgb16.png": png(high[..., :3], 16, 2),
        "rgba16.png": png(high, 16, 6),
        "rgb_transparent.png": png(rgb, 8, 2, before=[(b"tRNS", struct.pack(">HHH", *map(int, rgb[0, 0])))]),
        "gray_transparent.png": png(gray, 8, 0, before=[(b"tRNS", struct.pack(">H", int(gray[0, 0, 0])))]),
        "gamma.png": png(rgb, 8, 2, before=[(b"gAMA", struct.pack(">I", 100000))]),
        "interlaced_rgb.png": png(rgb, 8, 2, interlaced=True),
        "interlaced_rgba16.png": png(high, 16, 6, interlaced=True),
        "exif_before.png": png(rgb, 8, 2, before=[(b"eXIf", exif(6))]),
        "exif_after.png": png(rgb, 8, 2, after=[(b"eXIf", exif(8, big_endian=True))]),
        "xmp.png": png(rgb, 8, 2, before=[(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP)]),
    }
    profile = (b"Exif\0\0" + exif(5)).hex()
    text = f"\nexif\n{len(profile) // 2:8}\n{profile}\n".encode()
    files["exif_text.png"] = png(rgb, 8, 2, before=[(b"tEXt", b"Raw profile type exif\0" + text)])
    for depth in (1, 2, 4, 8):
        few = gray >> (8 - depth)
        colors = palette[: 3 << depth].tobytes()
        files[f"gray{depth}.png"] = png(few, depth, 0)
        files[f"palette{depth}.png"] = png(few, depth, 3, before=[(b"PLTE", colors)])
        files[f"interlaced_gray{depth}.png"] = png(few, depth, 0, interlaced=True)
    alphas = bytes(range(0, 256, 2))
    files["palette_alpha.png"] = png(gray, 8, 3, before=[(b"PLTE", palette.tobytes()), (b"tRNS", alphas)])
    files["palette_short.png"] = png(gray >> 5, 8, 3, before=[(b"PLTE", palette[:24].tobytes())])
    files["palette_overrun.png"] = png(gray >> 3, 8, 3, before=[(b"PLTE", palette[:24].tobytes())])
    return files


def webps() -> dict[str, bytes]:
    rgb = Image.fromarray(drawn_image(23, 17))
    rgba = Image.fromarray(drawn_image(23, 17, 4))
    return {
        "lossy.webp": encoded(rgb, "WEBP", quality=70),
        "lossless.webp": encoded(rgb, "WEBP", lossless=True),
        "lossy_alpha.webp": encoded(rgba, "WEBP", quality=70),
        "lossless_alpha.webp": encoded(rgba, "WEBP", lossless=True, exact=True),
        "exif.webp": encoded(rgb, "WEBP", quality=60, exif=b"Exif\0\0" + exif(7)),
        "xmp.webp": encoded(rgb, "WEBP", quality=60, xmp=XMP),
        "animated.webp": encoded(rgb, "WEBP", save_all=True, append_images=[ImageOps.mirror(rgb)], duration=100),
    }


def decoding() -> None:
    folder = ROOT / "decode"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    expected = {}
    for name, data in {**jpegs(), **pngs(), **webps()}.items():
        (folder / name).write_bytes(data)
        with Image.open(io.BytesIO(data)) as image:
            expected[name] = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    save_file(expected, ROOT / "decode.safetensors")


# Resizing.

FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")


def resizing() -> None:
    source = drawn_image(53, 41)
    image = Image.fromarray(source)
    values = {"image": source}
    for name in FILTERS:
        resample = getattr(Image.Resampling, name.upper())
        for width, height in ((24, 24), (53, 20), (31, 41), (97, 65), (1, 1), (7, 90), (53, 41), (71, 19), (43, 20),
                              (44, 23)):
            values[f"{name}.{width}x{height}"] = np.asarray(image.resize((width, height), resample))
        # A part of the image: x, y, width, height.
        values[f"{name}.region"] = np.asarray(image.crop((9, 4, 9 + 30, 4 + 17)).resize((16, 19), resample))
    save_file(values, ROOT / "resize.safetensors")


# timm's transforms.


def transforms() -> None:
    sizes = ((50, 75), (30, 20), (33, 33), (101, 37), (16, 16))  # width, height
    configs = []
    for crop_mode in ("center", "squash", "border"):
        for crop_pct in (1.0, 0.875, 0.95):
            configs.append({"height": 16, "width": 16, "crop_mode": crop_mode, "crop_pct": crop_pct})
        configs.append({"height": 12, "width": 22, "crop_mode": crop_mode, "crop_pct": 0.9})
    interpolations = ("bicubic", "bilinear", "lanczos", "nearest")
    values = {}
    cases = []
    for i, (width, height) in enumerate(sizes):
        values[f"image.{i}"] = drawn_image(width, height)
    for c, config in enumerate(configs):
        config.update(
            interpolation=interpolations[c % len(interpolations)],
            mean=[0.485, 0.456, 0.406] if c % 2 else [0.5, 0.5, 0.5],
            std=[0.229, 0.224, 0.225] if c % 2 else [0.5, 0.5, 0.5],
        )
        transform = transforms_imagenet_eval(
            img_size=(config["height"], config["width"]),
            **{k: v for k, v in config.items() if k not in ("height", "width")},
        )
        cases.append(config)
        for i in range(len(sizes)):
            values[f"eval.{c}.{i}"] = transform(Image.fromarray(values[f"image.{i}"])).numpy()
    # Training transforms whose draws leave only one result.
    train = []
    for options in (
        {"no_aug": True},
        {"train_crop_mode": "rrc", "scale": [1.0, 1.0], "ratio": [1.0, 1.0]},
        {"train_crop_mode": "rkrc", "scale": [1.0, 1.0], "ratio": [1.0, 1.0]},
    ):
        transform = create_transform(
            (3, 16, 20),
            is_training=True,
            hflip=0.0,
            color_jitter=None,
            interpolation="bicubic",
            mean=(0.485, 0.456, 0.406),
            std=(0.229, 0.224, 0.225),
            **{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()},
        )
        for i in range(len(sizes)):
            values[f"train.{len(train)}.{i}"] = transform(Image.fromarray(values[f"image.{i}"])).numpy()
        train.append(options)
    metadata = {"eval": json.dumps(cases), "train": json.dumps(train), "images": str(len(sizes))}
    save_file(values, ROOT / "transforms.safetensors", metadata)


# Colours.


def colors() -> None:
    source = np.concatenate([drawn_image(31, 23), random.integers(0, 256, (20, 31, 3), dtype=np.uint8)])
    source[-1, :16] = np.arange(0, 256, 16, dtype=np.uint8)[:, None]  # grays have no hue
    image = Image.fromarray(source)
    values = {"image": source, "grayscale": np.asarray(F.to_grayscale(image, 3))}
    for operation in ("brightness", "contrast", "saturation"):
        for factor in (0.0, 0.37, 1.0, 1.4, 2.5):
            values[f"{operation}.{factor}"] = np.asarray(getattr(F, f"adjust_{operation}")(image, factor))
    for factor in (-0.5, -0.13, 0.0, 0.07, 0.5):
        values[f"hue.{factor}"] = np.asarray(F.adjust_hue(image, factor))
    save_file(values, ROOT / "colors.safetensors")


# MixUp and CutMix.


def mixing() -> None:
    x = torch.from_numpy(random.normal(size=(6, 2, 9, 11)).astype(np.float32))
    labels = torch.tensor([4, 0, 2, 2, 1, 3])
    values = {"x": x.numpy(), "labels": labels.numpy()}
    cases = []
    randint = timm.data.mixup.np.random.randint
    for lam, center, smoothing in ((0.3, None, 0.1), (0.81, None, 0.0), (0.6, (4, 5), 0.1), (0.2, (0, 10), 0.0)):
        mix = timm.data.mixup.Mixup(mixup_alpha=1, cutmix_alpha=1, label_smoothing=smoothing, num_classes=5)
        mix._params_per_batch = lambda lam=lam, center=center: (lam, center is not None)
        draws = iter(center or ())
        timm.data.mixup.np.random.randint = lambda *_, draws=draws, **__: next(draws)
        mixed, targets = mix(x.clone(), labels)
        values[f"x.{len(cases)}"] = mixed.numpy()
        values[f"targets.{len(cases)}"] = targets.numpy()
        cases.append({"lambda": lam, "center": center, "smoothing": smoothing})
    timm.data.mixup.np.random.randint = randint
    # The other modes, with a mixture for each image: MixUp, CutMix around a centre, nothing. 'half' is of the collating
    # Mixup alone, which rounds to 8 bits.
    modes = []
    lams, cut = np.array([0.3, 0.6, 1.0, 0.81, 0.2, 0.45], np.float32), np.array([0, 1, 0, 0, 1, 0], bool)
    whole = (40 * x + 128).clip(0, 255).byte()
    for mode in ("pair", "elem", "half"):
        kind = timm.data.mixup.FastCollateMixup if mode == "half" else timm.data.mixup.Mixup
        mix = kind(mixup_alpha=1, cutmix_alpha=1, label_smoothing=0.1, num_classes=5, mode=mode)
        mix._params_per_elem = lambda n: (lams[:n].copy(), cut[:n])
        timm.data.mixup.np.random.randint = lambda low, high, **__: (high - 1) // 2
        batch = list(zip(whole.numpy(), labels.tolist()))
        mixed, targets = mix(batch) if mode == "half" else mix(x.clone(), labels)
        values[f"{mode}.x"] = mixed.numpy()
        values[f"{mode}.targets"] = targets.numpy()
        modes.append(mode)
    timm.data.mixup.np.random.randint = randint
    values["half.from"] = whole.numpy()
    more = {"modes": json.dumps(modes), "lambdas": json.dumps(lams.tolist()), "cut": json.dumps(cut.tolist())}
    save_file(values, ROOT / "mix.safetensors", {"cases": json.dumps(cases), **more})


if __name__ == "__main__":
    ROOT.mkdir(parents=True, exist_ok=True)
    decoding()
    resizing()
    transforms()
    colors()
    mixing()
