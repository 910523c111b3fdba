"""Writes tests/golden/generate/filters.safetensors: scores, and what transformers' filters of sampling leave of them; and lengths.json:
what its generate() makes of tests/golden/models/text/gpt2 where several fields say how long a text becomes.

    python tools/golden/generation.py

Needs transformers 5.23, torch 2.13.0 and safetensors.
"""

import json
import pathlib

import torch
import transformers
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

model = transformers.GPT2LMHeadModel.from_pretrained(PATH.parents[1] / "models/text/gpt2", attn_implementation="eager")
prompt = [5, 9, 2, 11]
ends = {"eos_token_id": list(range(0, model.config.vocab_size, 3)), "pad_token_id": 0}  # a text would end soon
lengths = {
    "min_length": {"max_length": 16, "min_length": 12},
    "min_new_tokens": {"max_length": 16, "min_new_tokens": 6},
    "fewer min_new_tokens than min_length": {"max_length": 16, "min_length": 12, "min_new_tokens": 3},
    "more min_new_tokens than min_length": {"max_length": 16, "min_length": 5, "min_new_tokens": 8},
    "min_new_tokens of none": {"max_length": 16, "min_length": 12, "min_new_tokens": 0},
    "forced end": {"max_length": 12, "min_new_tokens": 8, "forced_eos_token_id": 3},
    "beams": {"max_length": 16, "min_length": 12, "min_new_tokens": 3, "num_beams": 3},
}
made = []
for name, fields in lengths.items():
    found = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), do_sample=False, **fields, **ends)
    made.append({"name": name, "config": fields | ends, "prompt": prompt, "ids": found[0, len(prompt):].tolist()})
    print(name, made[-1]["ids"])
(PATH.parent / "lengths.json").write_text(json.dumps(made, indent=1) + "\n")
