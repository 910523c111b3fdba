"""Writes tests/golden/nn/blocks.safetensors: transformer blocks of torch and transformers in float64, with their gradients,
in nn.py's format.

    python tools/golden/blocks.py

Samples have lengths, NAME.lengths: what lies behind them is padding, which is masked here. Needs torch 2.13.0,
transformers 5.23.0 and safetensors.
"""

import pathlib

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import BertConfig, GPT2Config, LlamaConfig
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

TOKENS, DIM, HEADS, HIDDEN = 7, 12, 3, 20
LENGTHS = torch.tensor([4, 7, 2])
PADDING = torch.arange(TOKENS)[None] >= LENGTHS[:, None]  # [B, N]
FUTURE = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)

generator = torch.Generator().manual_seed(20261123)
tensors = {}


def random(*shape, scale=1.0):
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def added(hidden):
    """The mask that transformers adds to the scores, [B, 1, N, N], of pairs that may not see each other."""
    return torch.zeros(hidden.shape, dtype=torch.float64).masked_fill(hidden, -1e30)


def case(name, module, run, *inputs, lengths=False):
    """run(module, *inputs) is what the case computes."""
    module = module.double().train()
    with torch.no_grad():
        for label, parameter in module.named_parameters():
            is_scale = parameter.ndim == 1 and label.endswith("weight")
            parameter.copy_(random(*parameter.shape, scale=0.2) + (1 if is_scale else 0))
    for label, parameter in module.named_parameters():
        tensors[f"{name}.p.{label}"] = parameter.detach().clone()
    leaves = [value.clone().requires_grad_() for value in inputs]
    y = run(module, *leaves)
    dy = random(*y.shape)
    y.backward(dy)
    tensors[f"{name}.y"] = y
    tensors[f"{name}.dy"] = dy
    for label, leaf in zip(("x", "context"), leaves):
        tensors[f"{name}.{label}"] = leaf
        tensors[f"{name}.d{label}"] = leaf.grad
    for label, parameter in module.named_parameters():
        tensors[f"{name}.g.{label}"] = parameter.grad
    if lengths:
        tensors[f"{name}.lengths"] = LENGTHS.clone()


def torch_blocks():
    def layer(activation, norm_first):
        return nn.TransformerEncoderLayer(DIM, HEADS, HIDDEN, dropout=0, activation=activation, norm_first=norm_first,
                                          batch_first=True)

    x = (random(3, TOKENS, DIM),)
    for activation in ("relu", "gelu"):
        for norm_first in (False, True):
            name = f"torch_{'pre' if norm_first else 'post'}_{activation}"
            case(name, layer(activation, norm_first), lambda m, x: m(x), *x)
            case(f"{name}_padded", layer(activation, norm_first), lambda m, x: m(x, src_key_padding_mask=PADDING), *x,
                 lengths=True)
            case(f"{name}_causal", layer(activation, norm_first), lambda m, x: m(x, src_mask=FUTURE, is_causal=True), *x)
    case("torch_post_relu_padded_causal", layer("relu", False),
         lambda m, x: m(x, src_mask=FUTURE, src_key_padding_mask=PADDING), *x, lengths=True)
    case("torch_cross_attention", nn.MultiheadAttention(DIM, HEADS, batch_first=True),
         lambda m, x, context: m(x, context, context, key_padding_mask=PADDING, need_weights=False)[0],
         random(3, 4, DIM), random(3, TOKENS, DIM), lengths=True)


def text_blocks():
    x = (random(3, TOKENS, DIM),)
    padding = PADDING[:, None, None].expand(3, 1, TOKENS, TOKENS)
    bert = BertConfig(hidden_size=DIM, num_attention_heads=HEADS, intermediate_size=HIDDEN, hidden_dropout_prob=0,
                      attention_probs_dropout_prob=0, attn_implementation="eager")
    case("bert", BertLayer(bert), lambda m, x: m(x), *x)
    case("bert_padded", BertLayer(bert), lambda m, x: m(x, added(padding)), *x, lengths=True)
    llama = LlamaConfig(hidden_size=DIM, num_attention_heads=HEADS, num_key_value_heads=HEADS, intermediate_size=HIDDEN,
                        attn_implementation="eager")
    positions = LlamaRotaryEmbedding(llama)(x[0], torch.arange(TOKENS)[None])
    case("llama", LlamaDecoderLayer(llama, 0),
         lambda m, x: m(x, added(FUTURE[None, None]), position_embeddings=positions), *x)
    case("llama_padded", LlamaDecoderLayer(llama, 0),
         lambda m, x: m(x, added(FUTURE[None, None] | padding), position_embeddings=positions), *x, lengths=True)
    gpt2 = GPT2Config(n_embd=DIM, n_head=HEADS, n_inner=HIDDEN, n_positions=16, resid_pdrop=0, attn_pdrop=0,
                      attn_implementation="eager")
    case("gpt2", GPT2Block(gpt2, 0), lambda m, x: first(m(x, attention_mask=added(FUTURE[None, None]))), *x)


def first(output):
    return output[0] if isinstance(output, tuple) else output


def main():
    torch_blocks()
    text_blocks()
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/nn/blocks.safetensors"
    save_file({k: (t if t.dtype == torch.int64 else t.detach().float()).contiguous() for k, t in tensors.items()}, path)


if __name__ == "__main__":
    main()
