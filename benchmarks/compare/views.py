"""Times the views of an image that DINO learns from (two of 224 x 224 pixels and eight of 96 x 96 of an image of 500 x 375) beside
torchvision on Pillow: crop, flip, colours, blur, solarization and normalization, on one thread.

    python benchmarks/compare/views.py [--images 200] [--rounds 3]

Needs torch, torchvision and Pillow. Ours is benchmarks/views_bench.cpp (build/bin/vitrail_bench_kernels --benchmark_filter=dino_views).
Prints the milliseconds an image of each, the fastest round, and one JSON line.
"""

import argparse
import json
import pathlib
import random
import subprocess
import time

import numpy
import torch
from PIL import Image, ImageFilter, ImageOps
from torchvision import transforms

BENCH = pathlib.Path(__file__).resolve().parents[2] / "build/bin/vitrail_bench_kernels"


class Blur:
    """A Gaussian blur of a deviation from 0.1 to 2."""

    def __init__(self, probability):
        self.probability = probability

    def __call__(self, image):
        if random.random() > self.probability:
            return image
        return image.filter(ImageFilter.GaussianBlur(radius=random.uniform(0.1, 2)))


def view(size, scale, blur, solarize=0.0):
    steps = [
        transforms.RandomResizedCrop(size, scale=scale, interpolation=transforms.InterpolationMode.BICUBIC),
        transforms.RandomHorizontalFlip(),
        transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
        transforms.RandomGrayscale(0.2),
        Blur(blur),
    ]
    if solarize:
        steps.append(transforms.RandomApply([transforms.Lambda(ImageOps.solarize)], p=solarize))
    return transforms.Compose([*steps, transforms.ToTensor(),
                               transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])


def photograph(width=500, height=375):
    y, x, c = numpy.mgrid[:height, :width, :3]
    return Image.fromarray(((x * (c + 1) // 3 + y * (3 - c) // 3 + (x * 7 + y * 13) % 16) % 256).astype(numpy.uint8))


def torchvision_ms(images):
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    image = photograph()
    views = [view(224, (0.4, 1), 1.0), view(224, (0.4, 1), 0.1, 0.2), *(8 * [view(96, (0.05, 0.4), 0.5)])]
    begin = time.perf_counter()
    for _ in range(images):
        for one in views:
            one(image)
    return 1e3 * (time.perf_counter() - begin) / images


def vitrail_ms():
    done = subprocess.run([BENCH, "--benchmark_filter=dino_views", "--benchmark_format=json"], check=True, capture_output=True)
    return json.loads(done.stdout)["benchmarks"][0]["real_time"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    own, peer = [], []
    for _ in range(args.rounds):
        own.append(vitrail_ms())
        peer.append(torchvision_ms(args.images))
    result = {"name": "views for DINO of an image of 500 x 375, one thread", "vitrail_ms": own, "torchvision_ms": peer,
              "times_as_fast": min(peer) / min(own)}
    print(f"vitrail {min(own):.2f} ms, torchvision {min(peer):.2f} ms: {result['times_as_fast']:.2f} times as fast")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
