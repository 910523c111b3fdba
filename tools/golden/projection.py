"""Writes tests/golden/explain/projection.safetensors: points, their principal components and a t-SNE map of them, as
scikit-learn computes them.

    python tools/golden/projection.py

Needs scikit-learn 1.9.1, torch, numpy and safetensors.
"""

import pathlib

import numpy as np
import sklearn.decomposition
import sklearn.manifold
import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    draws = np.random.default_rng(0)
    centres = 3 * draws.normal(size=(6, 12))
    points = np.concatenate([centre + draws.normal(size=(40, 12)) * draws.uniform(0.3, 1.2, size=12) for centre in centres])
    points = (points + 5).astype(np.float32)
    pca = sklearn.decomposition.PCA(3, svd_solver="full").fit(points.astype(np.float64))
    map_ = sklearn.manifold.TSNE(method="exact", init="pca", random_state=0)
    y = map_.fit_transform(points)
    # Where the descent ends depends on the last bits of where it begins: so does how good the map is, by 3 %.
    divergences = [map_.kl_divergence_]
    for _ in range(8):
        start = pca.transform(points.astype(np.float64))[:, :2] * (1 + 1e-3 * draws.normal(size=(len(points), 2)))
        start = (start / np.std(start[:, 0]) * 1e-4).astype(np.float32)
        divergences.append(sklearn.manifold.TSNE(method="exact", init=start).fit(points).kl_divergence_)
    trust = [sklearn.manifold.trustworthiness(points, y, n_neighbors=k) for k in (5, 12)]
    tensors = {
        "points": torch.from_numpy(points),
        "pca.components": torch.from_numpy(pca.components_).float(),
        "pca.coordinates": torch.from_numpy(pca.transform(points.astype(np.float64))).float(),
        "pca.explained_variance_ratio": torch.from_numpy(pca.explained_variance_ratio_).float(),
        "tsne.coordinates": torch.from_numpy(y).float(),
        "tsne.kl_divergences": torch.tensor(divergences, dtype=torch.float32),
        "tsne.trustworthiness": torch.tensor(trust, dtype=torch.float32),
    }
    path = ROOT / "tests" / "golden" / "explain" / "projection.safetensors"
    path.parent.mkdir(exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)


if __name__ == "__main__":
    main()
