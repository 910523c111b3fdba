"""Writes tests/golden/dino_evaluation.safetensors: how DINO's code judges features.

    python tools/golden/dino_evaluation.py FOLDER

FOLDER holds a checkout of

    dino       github.com/facebookresearch/dino      7c446df5b9f45747937fb0d72314eb9f7b66930a

whose own functions are run, on the CPU: knn_classifier of eval_knn.py, train and validate_network of eval_linear.py, and
get_intermediate_layers of its Vision Transformer. Needs torch 2.13.0 or later, and safetensors.
"""

import ast
import functools
import sys
import types
from argparse import Namespace
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

CLASSES, WIDTH, TEMPERATURE = 10, 16, 0.07
EPOCHS, BATCH, RATES = 4, 32, (0.05, 2.0)

# The reference moves tensors to a GPU.
torch.Tensor.cuda = lambda self, *_, **__: self
torch.cuda.synchronize = lambda *_: None


def definition(path, name, scope):
    """A function or class of a file, without running the rest."""
    nodes = (ast.FunctionDef, ast.ClassDef)
    found = next(node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, nodes) and node.name == name)
    found.decorator_list = []
    exec(compile(ast.Module([found], []), str(path), "exec"), scope)
    return scope[name]


def clusters(count, generator, centres):
    """Features around a centre for each class, wide enough that the classes overlap, of very different lengths."""
    labels = torch.randint(CLASSES, (count,), generator=generator)
    x = centres[labels] + 1.4 * torch.randn(count, WIDTH, generator=generator)
    return x * torch.exp(0.3 * torch.randn(count, 1, generator=generator)), labels


def batches(x, labels):
    return [(x[i : i + BATCH].double(), labels[i : i + BATCH]) for i in range(0, len(x), BATCH)]


class Features(nn.Module):
    """A model whose only block gives what it is given, as its class token."""

    def get_intermediate_layers(self, x, n):
        return [x[:, None]]


def linear(folder, t, utils):
    path = folder / "dino/eval_linear.py"
    scope = {"torch": torch, "nn": nn, "utils": utils, "args": Namespace(arch="vit_tiny")}
    train, validate = definition(path, "train", scope), definition(path, "validate_network", scope)
    make = definition(path, "LinearClassifier", scope)
    generator = torch.Generator().manual_seed(8)
    weight, bias = (0.3 * torch.randn(shape, generator=generator) for shape in ((CLASSES, WIDTH), (CLASSES,)))
    t |= {"linear.weight": weight, "linear.bias": bias}
    for rate in RATES:
        torch.manual_seed(0)
        classifier = make(WIDTH, CLASSES).double()
        with torch.no_grad():
            classifier.linear.weight.copy_(weight)
            classifier.linear.bias.copy_(bias)
        classifier.module = classifier  # DistributedDataParallel
        # Those of eval_linear().
        optimizer = torch.optim.SGD(classifier.linear.parameters(), rate * BATCH / 256.0, momentum=0.9, weight_decay=0)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS, eta_min=0)
        object.__setattr__(classifier, "train", lambda: None)  # a module that holds itself
        object.__setattr__(classifier, "eval", lambda: None)
        figures = []
        for epoch in range(EPOCHS):
            train(Features(), classifier, optimizer, batches(t["x"], t["labels"]), epoch, 1, False)
            scheduler.step()
            with torch.no_grad():
                # One batch, for the reference takes the mean of the batches' losses, whatever their sizes.
                figures.append(validate([(t["test_x"].double(), t["test_labels"])], Features(), classifier, 1, False))
        key = f"linear.{rate}"
        t |= {f"{key}.weight": classifier.linear.weight, f"{key}.bias": classifier.linear.bias,
              f"{key}.figures": torch.tensor([figures[-1]["loss"], figures[-1]["acc1"], figures[-1]["acc5"],
                                              max(f["acc1"] for f in figures)])}  # fmt: skip


def layers(t, vits):
    """The class tokens of the last four blocks, those of a block in the middle, and means of patches."""
    torch.manual_seed(3)
    norm = functools.partial(nn.LayerNorm, eps=1e-6)
    model = vits.VisionTransformer(img_size=[8], patch_size=4, embed_dim=12, depth=5, num_heads=2, qkv_bias=True,
                                   norm_layer=norm).double().eval()  # fmt: skip
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        model.float().double()
        x = torch.randn(3, 3, 8, 8, generator=generator).double()
        blocks = model.get_intermediate_layers(x, 5)
    t |= {f"vit.{name}": value for name, value in model.state_dict().items()}
    t |= {"vit_x": x, "last4": torch.cat([b[:, 0] for b in blocks[-4:]], -1), "layer2": blocks[2][:, 0],
          "layer2.avg": blocks[2][:, 1:].mean(1)}  # fmt: skip


def main():
    folder = Path(sys.argv[1])
    sys.path[:0] = [str(folder / "dino")]
    import utils
    import vision_transformer as vits

    utils.MetricLogger.synchronize_between_processes = lambda self: None
    utils.MetricLogger.log_every = lambda self, iterable, *_: iter(iterable)
    generator = torch.Generator().manual_seed(5)
    centres = torch.randn(CLASSES, WIDTH, generator=generator)
    t = {}
    t["x"], t["labels"] = clusters(300, generator, centres)
    t["test_x"], t["test_labels"] = clusters(200, generator, centres)
    vote = definition(folder / "dino/eval_knn.py", "knn_classifier", {"torch": torch})
    unit, unit_test = F.normalize(t["x"].double()), F.normalize(t["test_x"].double())
    for k in (10, 20, 100, 200):
        t[f"k{k}"] = torch.tensor(vote(unit, t["labels"], unit_test, t["test_labels"], k, TEMPERATURE, CLASSES))
    linear(folder, t, types.SimpleNamespace(MetricLogger=utils.MetricLogger, SmoothedValue=utils.SmoothedValue, accuracy=utils.accuracy))
    layers(t, vits)
    t = {key: (v.float() if v.is_floating_point() else v).detach().contiguous().clone() for key, v in t.items()}
    save_file(t, Path(__file__).resolve().parents[2] / "tests/golden/dino_evaluation.safetensors")


if __name__ == "__main__":
    main()
