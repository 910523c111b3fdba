"""Writes tests/golden/explain/patch_tokens.safetensors: points put into groups by scikit-learn's k-means from the same start, and
mutual nearest neighbours by cosine.

    python tools/golden/patch_tokens.py

Needs scikit-learn 1.9.1, torch, numpy and safetensors.
"""

import pathlib

import numpy as np
import sklearn.cluster
import sklearn.metrics.pairwise
import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    draws = np.random.default_rng(0)
    points = (draws.normal(size=(5, 1, 8)) + 0.8 * draws.normal(size=(5, 24, 8))).reshape(-1, 8).astype(np.float32)
    points = points[draws.permutation(len(points))]
    starts = {"near": points[:6].copy(), "empty": np.concatenate([points[:4], points[:1] + 100]).astype(np.float32)}
    tensors = {"points": torch.from_numpy(points)}
    for name, start in starts.items():
        found = sklearn.cluster.KMeans(len(start), init=start, n_init=1, algorithm="lloyd").fit(points.astype(np.float64))
        tensors |= {f"{name}.start": torch.from_numpy(start), f"{name}.centers": torch.from_numpy(found.cluster_centers_).float(),
                    f"{name}.labels": torch.from_numpy(found.labels_).long(), f"{name}.inertia": torch.tensor([found.inertia_]).float(),
                    f"{name}.iterations": torch.tensor([found.n_iter_])}  # fmt: skip
    first, second = points[:50], points[50:]
    cosines = sklearn.metrics.pairwise.cosine_similarity(first, second)
    of_row, of_column = cosines.argmax(1), cosines.argmax(0)
    pairs = sorted((-cosines[i, j], i, j) for i, j in enumerate(of_row) if of_column[j] == i)
    tensors["matches"] = torch.tensor([[i, j] for _, i, j in pairs])
    tensors["similarities"] = torch.tensor([-c for c, _, _ in pairs]).float()
    path = ROOT / "tests/golden/explain/patch_tokens.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    print({name: tuple(tensor.shape) for name, tensor in tensors.items()}, tensors["empty.iterations"], tensors["near.iterations"])


if __name__ == "__main__":
    main()
