"""Writes tests/golden/generate/filters.safetensors: scores, and what transformers' filters of sampling leave of them.

    python tools/golden/generation.py

Needs transformers 5.23, torch 2.13.0 and safetensors.
"""

import pathlib

import torch
from safetensors.torch import save_file
from transformers.generation import logits_process as lp

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/generate/filters.safetensors"

scores = 2 * torch.randn(1, 50, generator=torch.Generator().manual_seed(7))
filters = {
    "temperature": [lp.TemperatureLogitsWarper(0.7)],
    "top_k": [lp.TopKLogitsWarper(7)],
    "top_p": [lp.TopPLogitsWarper(0.8)],
    "top_p.tiny": [lp.TopPLogitsWarper(1e-3, min_tokens_to_keep=3)],
    "min_p": [lp.MinPLogitsWarper(0.2)],
    "typical_p": [lp.TypicalLogitsWarper(0.6)],
    "epsilon": [lp.EpsilonLogitsWarper(0.02)],
    "eta": [lp.EtaLogitsWarper(0.05)],
    "all": [lp.TemperatureLogitsWarper(1.5), lp.TopKLogitsWarper(30), lp.TopPLogitsWarper(0.9), lp.MinPLogitsWarper(0.05),
            lp.TypicalLogitsWarper(0.9)],
    "renormalized": [lp.TopKLogitsWarper(7), lp.LogitNormalization()],
}
ids = torch.zeros(1, 1, dtype=torch.long)
tensors = {"scores": scores[0]}
for name, steps in filters.items():
    left = scores
    for step in steps:
        left = step(ids, left)
    tensors[name] = left[0].clone()
    print(name, int(left.isfinite().sum()))
PATH.parent.mkdir(parents=True, exist_ok=True)
save_file(tensors, PATH)
