"""Golden values of nearest neighbours: the weighted votes of DINO's evaluation (Caron et al. 2021) and plain ones.

    python tools/golden/knn.py

writes tests/golden/knn.safetensors.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

generator = torch.Generator().manual_seed(5)
CLASSES, WIDTH, TEMPERATURE = 9, 16, 0.07


def clusters(count):
    """Features around a centre for each class, wide enough that the classes overlap, of very different lengths."""
    labels = torch.randint(CLASSES, (count,), generator=generator)
    x = centres[labels] + 1.2 * torch.randn(count, WIDTH, generator=generator)
    return x * torch.exp(torch.randn(count, 1, generator=generator)), labels


def votes(similarities, neighbours, k, weights):
    """[N, C]: the sum over the k nearest of weights where they are of the class."""
    classes = F.one_hot(labels[neighbours[:, :k]], CLASSES).double()
    return (classes * weights[:, :k, None]).sum(1)


def top(scores, truth, n):
    return 100 * (scores.topk(n).indices == truth[:, None]).any(1).double().mean()


centres = torch.randn(CLASSES, WIDTH, generator=generator)
x, labels = clusters(150)
test_x, test_labels = clusters(70)
tensors = {"x": x, "labels": labels, "test_x": test_x, "test_labels": test_labels}
similarities, neighbours = (F.normalize(test_x.double()) @ F.normalize(x.double()).T).sort(descending=True)
for k in (1, 5, 20, 100):
    weighted = votes(similarities, neighbours, k, (similarities / TEMPERATURE).exp())
    plain = votes(similarities, neighbours, k, torch.ones_like(similarities))
    tensors[f"k{k}.predictions"] = weighted.argmax(1)
    tensors[f"k{k}.majorities"] = plain.argmax(1)  # of equals the first
    # A class without a vote is not among the five.
    five = (weighted.topk(5).indices == test_labels[:, None]).any(1) & (weighted.gather(1, test_labels[:, None])[:, 0] > 0)
    tensors[f"k{k}.accuracies"] = torch.stack([top(weighted, test_labels, 1), 100 * five.double().mean(),
                                               100 * (plain.argmax(1) == test_labels).double().mean()])
save_file(tensors, Path(__file__).resolve().parents[2] / "tests/golden/knn.safetensors")
