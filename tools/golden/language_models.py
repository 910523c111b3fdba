"""Fixtures of language models: tests/golden/models/text/*.

    python tools/golden/language_models.py            # all
    python tools/golden/language_models.py gpt2 llama3   # some, by name

A fixture is a folder as save_pretrained() writes it, with every parameter perturbed, and beside it expected.safetensors,
computed in float64: input_ids [B, N], logits, loss (of the next tokens), `grad.NAME` of the loss by the names in the
folder's file, what generate() continues the first five tokens with: greedy.* and beams.*, filled up with zeros, and
attention_mask with padding behind a text, and masked.logits.

Needs transformers 5.23, torch 2.13.0 and safetensors.
"""

import pathlib
import shutil
import sys
import tempfile

import torch
import transformers as hf
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models/text"

GPT2 = dict(vocab_size=50, n_positions=24, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
LLAMA = dict(vocab_size=50, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=0)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}

BLOOM = dict(vocab_size=50, n_layer=2, bos_token_id=0, eos_token_id=0)

IMAGEGPT = dict(vocab_size=51, n_positions=24, n_embd=16, n_layer=2, n_head=2)

VARIANTS = {
    "bloom": (hf.BloomForCausalLM, hf.BloomConfig(**BLOOM, hidden_size=16, n_head=4)),
    "bloom_unusual": (hf.BloomForCausalLM, hf.BloomConfig(
        **BLOOM, hidden_size=24, n_head=6, layer_norm_epsilon=1e-3, apply_residual_connection_post_layernorm=True,
        tie_word_embeddings=False)),
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config(**GPT2)),
    "gpt2_unusual": (hf.GPT2LMHeadModel, hf.GPT2Config(
        **GPT2, n_inner=20, activation_function="relu", layer_norm_epsilon=1e-3, tie_word_embeddings=False,
        scale_attn_by_inverse_layer_idx=True)),
    "imagegpt": (hf.ImageGPTForCausalImageModeling, hf.ImageGPTConfig(**IMAGEGPT)),
    "imagegpt_unusual": (hf.ImageGPTForCausalImageModeling, hf.ImageGPTConfig(
        **IMAGEGPT, n_inner=20, layer_norm_epsilon=1e-3, scale_attn_weights=False, scale_attn_by_inverse_layer_idx=True)),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig(**LLAMA)),
    "llama3": (hf.LlamaForCausalLM, hf.LlamaConfig(
        **LLAMA | dict(num_key_value_heads=6), head_dim=8, rope_parameters=LLAMA3, tie_word_embeddings=True,
        attention_bias=True, mlp_bias=True)),
    "llama_linear": (hf.LlamaForCausalLM, hf.LlamaConfig(
        **LLAMA, rope_parameters={"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0})),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig(**LLAMA, sliding_window=5)),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config(**LLAMA, use_sliding_window=True, sliding_window=4,
                                                  max_window_layers=1, tie_word_embeddings=True)),
}


class EndsInOneOf(hf.StoppingCriteria):
    """Ends a text behind some of the tokens, as stop_strings do behind some words."""

    def __call__(self, input_ids, scores, **_):
        return input_ids[:, -1] % 5 == 2


def perturbed(model, generator):
    with torch.no_grad():
        for parameter in model.parameters():
            spread = 0.2 if parameter.ndim > 1 else 0.1
            parameter.add_(spread * torch.randn(parameter.shape, generator=generator))
    return model


def write(name):
    kind, config = VARIANTS[name]
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    torch.manual_seed(1)
    config.attn_implementation = "eager"
    for rate in ("resid_pdrop", "embd_pdrop", "attn_pdrop"):
        if hasattr(config, rate):
            setattr(config, rate, 0.0)
    model = perturbed(kind(config), generator).eval()
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        folder.mkdir(parents=True)
        for file in ("config.json", "model.safetensors"):
            shutil.copy(pathlib.Path(temporary) / file, folder / file)
    stored = load_file(folder / "model.safetensors")
    model = model.double()
    ids = torch.randint(0, config.vocab_size, (2, 11), generator=generator)
    if kind is hf.ImageGPTForCausalImageModeling:  # a token that begins pictures, and is never predicted
        ids = ids.clamp(max=config.vocab_size - 2)
        ids[:, 0] = config.vocab_size - 1
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    tensors = {"input_ids": ids, "logits": out.logits, "loss": out.loss}
    own = dict(model.named_parameters())
    for label in stored:
        tensors[f"grad.{label}"] = own[label].grad
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    tensors |= {"attention_mask": mask, "masked.logits": model(input_ids=ids, attention_mask=mask).logits}
    prompt = ids[:1, :5]
    # Without a mask, generate() takes tokens of the prompt that are equal to the padding for padding.
    flags = dict(max_new_tokens=12, pad_token_id=0, eos_token_id=3, attention_mask=torch.ones_like(prompt))
    tensors["greedy"] = model.generate(prompt, **flags)
    for stop in (False, True, "never"):
        label = "heuristic" if stop is False else str(stop).lower()
        tensors[f"beams.{label}"] = model.generate(prompt, num_beams=4, num_return_sequences=3, early_stopping=stop,
                                                   length_penalty=1.4, **flags)
    tensors["beams.penalized"] = model.generate(prompt, num_beams=3, length_penalty=0.0, repetition_penalty=1.3,
                                                no_repeat_ngram_size=2, min_new_tokens=4, **flags)
    stops = hf.StoppingCriteriaList([EndsInOneOf()])
    tensors["beams.stopped"] = model.generate(prompt, num_beams=4, num_return_sequences=3, length_penalty=0.2,
                                              stopping_criteria=stops, **flags)
    tensors["greedy.penalized"] = model.generate(prompt, repetition_penalty=1.3, no_repeat_ngram_size=2,
                                                 min_new_tokens=4, bad_words_ids=[[7], [4, 9]], **flags)
    save_file({label: (t.detach().float() if t.is_floating_point() else t).contiguous() for label, t in tensors.items()},
              folder / "expected.safetensors")


for wanted in sys.argv[1:] or VARIANTS:
    write(wanted)
    print(wanted)
