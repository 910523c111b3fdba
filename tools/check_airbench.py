"""Trains airbench94 by its authors' own code on a copy of CIFAR-10, and prints what it reaches with their six views.

    python tools/check_airbench.py FILE CIFAR [--epochs 9.9] [--seed 0] [--amp] [--threads 0]

FILE is legacy/airbench94.py of github.com/KellerJordan/cifar10-airbench at f1c599c, CIFAR a folder with train.tar and
test.tar (class/NNNN.jpg). On the CPU, in float32 or, with --amp, in bfloat16 by autocast. What `script/train-weights
cifar10_resnet CIFAR` reaches is to be compared with this: the published 94 % are of the images as they were published.
Needs torch, torchvision, timm, safetensors, pillow; nothing of vitrail needs this.
"""

import argparse
import io
import json
import pathlib
import sys
import tarfile

import numpy
import torch
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "golden"))
from airbench import reference  # noqa: E402  (replaces what only a GPU has)


def read(archive):
    """The images [N, 32, 32, 3] and labels of class/NNNN.jpg."""
    images, names = [], []
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(".jpg"):
                data = tar.extractfile(member).read()
                images.append(numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB")))
                names.append(pathlib.PurePath(member.name).parent.name)
    classes = sorted(set(names))
    labels = torch.tensor([classes.index(name) for name in names])
    return torch.from_numpy(numpy.stack(images)), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("cifar", type=pathlib.Path)
    parser.add_argument("--epochs", type=float, default=9.9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--amp", action="store_true", help="bfloat16 by autocast")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    options = parser.parse_args()
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    module = reference(options.file)
    module["hyp"]["opt"]["train_epochs"] = options.epochs
    parts = {train: read(options.cifar / f"{'train' if train else 'test'}.tar") for train in (True, False)}

    class Loader(module["CifarLoader"]):
        """The authors' loader, without their download."""

        def __init__(self, _, train=True, batch_size=500, aug=None):
            images, self.labels = parts[train]
            self.images = (images.float() / 255).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
            self.normalize = module["T"].Normalize(module["CIFAR_MEAN"], module["CIFAR_STD"])
            self.proc_images, self.epoch, self.aug = {}, 0, aug or {}
            self.batch_size, self.drop_last, self.shuffle = batch_size, train, train

    def say(variables, is_final_entry):
        if not is_final_entry:
            figures = {key: round(variables[key], 4) for key in ("train_loss", "train_acc", "val_acc")}
            print(json.dumps({"epoch": variables["epoch"] + 1, **figures}), file=sys.stderr, flush=True)

    module["CifarLoader"] = Loader
    module["print_training_details"] = say
    make_net = module["make_net"]

    def made():  # the whitening before the training stays in float32
        net = make_net()
        forward = net.forward

        def cast(images):
            with torch.autocast("cpu", torch.bfloat16, enabled=options.amp):
                return forward(images).float()

        net.forward = cast
        return net

    module["make_net"] = made
    torch.manual_seed(options.seed)
    accuracy = module["main"](None)
    print(json.dumps({"epochs": options.epochs, "seed": options.seed, "dtype": "bf16" if options.amp else "f32",
                      "images": len(parts[True][1]), "torch": torch.__version__, "top1": round(100 * accuracy, 2)}))


if __name__ == "__main__":
    main()
