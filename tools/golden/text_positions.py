"""Fixtures of text models whose positions are chosen by name (`pos_embed`): tests/golden/models/text_positions/*.

    python tools/golden/text_positions.py                       # all
    python tools/golden/text_positions.py gpt2_rope bert_alibi     # some, by name

The models are transformers' GPT2LMHeadModel, BertForMaskedLM and MarianMTModel, whose own positions are taken away, and
whose attention (eager_attention_forward) is told others instead: T5's biases are those of transformers'
T5Attention.compute_bias, rotary positions those of its LlamaRotaryEmbedding, slopes of ALiBi those of its Bloom. A fixture
is a folder with config.json and model.safetensors, every parameter perturbed, and expected.safetensors, computed in
float64: the inputs, logits, loss, `grad.NAME`, and what generate() gives, greedily and by beams.

buckets.safetensors has T5's buckets of all distances.

Needs transformers 5.23, torch 2.13.0 and safetensors.
"""

import json
import pathlib
import shutil
import sys

import torch
import transformers as hf
from safetensors.torch import save_file
from transformers.models.bert import modeling_bert
from transformers.models.bloom.modeling_bloom import _get_alibi_slopes
from transformers.models.gpt2 import modeling_gpt2
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.marian import modeling_marian
from transformers.models.t5.modeling_t5 import T5Attention

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models/text_positions"
HEADS, DIM, VOCAB, POSITIONS = 3, 12, 30, 24
BUCKETS, BUCKET_DISTANCE, CLIPPED = 8, 12, 6
GPT2 = hf.GPT2Config(vocab_size=VOCAB, n_positions=POSITIONS, n_embd=DIM, n_layer=2, n_head=HEADS, n_inner=16,
                     resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)
BERT = hf.BertConfig(vocab_size=VOCAB, max_position_embeddings=POSITIONS, hidden_size=DIM, num_hidden_layers=2,
                     num_attention_heads=HEADS, intermediate_size=16, hidden_dropout_prob=0,
                     attention_probs_dropout_prob=0)
MARIAN = hf.MarianConfig(vocab_size=VOCAB, max_position_embeddings=POSITIONS, d_model=DIM, encoder_layers=2,
                         decoder_layers=2, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
                         encoder_ffn_dim=16, decoder_ffn_dim=16, activation_function="relu", scale_embedding=True,
                         dropout=0, pad_token_id=VOCAB - 1, decoder_start_token_id=VOCAB - 1, eos_token_id=0,
                         forced_eos_token_id=0)
KINDS = ["none", "learn", "sincos", "rope", "alibi", "alibi_learn", "rel_bucket", "rel_bias"]


class Positions(torch.nn.Module):
    """What a code tells attention, with its parameters by the names that they have in the file."""

    def __init__(self, code, causal):
        super().__init__()
        self.code, self.causal = code, causal
        if code == "alibi_learn":
            self.alibi_slopes = torch.nn.Parameter(_get_alibi_slopes(HEADS, torch.device("cpu")))
        if code == "rel_bucket":
            config = hf.T5Config(d_model=DIM, num_heads=HEADS, d_kv=4, relative_attention_num_buckets=BUCKETS,
                                 relative_attention_max_distance=BUCKET_DISTANCE, is_decoder=causal)
            t5 = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
            self.compute_bias = t5.compute_bias
            self.relative_attention_bias = t5.relative_attention_bias
        if code == "rel_bias":
            self.relative_attention_bias = torch.nn.Embedding((1 if causal else 2) * CLIPPED + 1, HEADS)

    def bias(self, queries, keys):
        first = keys - queries
        places = torch.arange(keys)
        offset = places[None, :] - places[first:, None]
        if self.code in ("alibi", "alibi_learn"):
            slopes = self.alibi_slopes if self.code == "alibi_learn" else _get_alibi_slopes(HEADS, offset.device)
            return -slopes.double()[:, None, None] * offset.abs()
        if self.code == "rel_bucket":
            return self.compute_bias(queries, keys, past_seen_tokens=first)
        if self.code == "rel_bias":
            near = offset.clamp(-CLIPPED, CLIPPED)
            row = (-near).clamp(min=0) if self.causal else near + CLIPPED
            return self.relative_attention_bias(row).permute(2, 0, 1)
        return 0

    def turned(self, query, key):
        if self.code != "rope":
            return query, key
        config = hf.LlamaConfig(hidden_size=DIM, num_attention_heads=HEADS, head_dim=DIM // HEADS)
        rotary = LlamaRotaryEmbedding(config)
        places = torch.arange(key.shape[2])
        cos, sin = rotary(key.float(), places[None])
        cos, sin = cos.to(query.dtype), sin.to(query.dtype)
        first = key.shape[2] - query.shape[2]
        query = apply_rotary_pos_emb(query, query, cos[:, first:], sin[:, first:])[0]
        return query, apply_rotary_pos_emb(key, key, cos, sin)[1]


def told(eager):
    def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
        positions = getattr(module, "told", None)
        if positions is not None:
            query, key = positions[0].turned(query, key)
            bias = positions[0].bias(query.shape[2], key.shape[2])
            attention_mask = bias if attention_mask is None else attention_mask + bias
        return eager(module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **kwargs)

    return attention


for module in (modeling_gpt2, modeling_bert, modeling_marian):
    module.eager_attention_forward = told(module.eager_attention_forward)
# Marian's table is looked up without gradients; a learned one has them.
sinusoidal = modeling_marian.MarianSinusoidalPositionalEmbedding
sinusoidal.forward = sinusoidal.forward.__wrapped__


def sines(rows, dim):
    angles = torch.arange(rows)[:, None] * 10000 ** (-torch.arange(0, dim, 2) / dim)
    return torch.stack([angles.sin(), angles.cos()], -1).reshape(rows, dim)


def build(family, code):
    """The model, and for each module of positions the table that the model has in its place, its name and the attention
    that it tells."""
    if family == "gpt2":
        model = hf.GPT2LMHeadModel(GPT2)
        places = [("transformer.wpe", model.transformer.wpe, [b.attn for b in model.transformer.h], True)]
    elif family == "bert":
        model = hf.BertForMaskedLM(BERT)
        embeddings = model.bert.embeddings
        places = [("bert.embeddings.position_embeddings", embeddings.position_embeddings,
                   [b.attention.self for b in model.bert.encoder.layer], False)]
    else:
        model = hf.MarianMTModel(MARIAN)
        body = model.model
        places = [(f"model.{part}.embed_positions", getattr(body, part).embed_positions,
                   [b.self_attn for b in getattr(body, part).layers], part == "decoder") for part in ("encoder", "decoder")]
    model.config._attn_implementation = "eager"
    modules = []
    for name, table, layers, causal in places:
        positions = Positions(code, causal)
        for layer in layers:
            layer.told = [positions]  # in a list: it is no part of the layer
        modules.append((name, table, positions))
    return model, modules


def write(name):
    family, code = name.split("_", 1)
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    torch.manual_seed(1)
    model, modules = build(family, code)
    with torch.no_grad():
        for parameter in [*model.parameters(), *(p for _, _, m in modules for p in m.parameters())]:
            spread = 0.2 if parameter.ndim > 1 else 0.1
            parameter.requires_grad_()
            parameter.add_(spread * torch.randn(parameter.shape, generator=generator))
        if family == "marian":
            model.final_logits_bias.add_(0.1 * torch.randn(model.final_logits_bias.shape, generator=generator))
        for _, table, _ in modules:
            if code != "learn":
                table.weight.copy_(sines(*table.weight.shape) if code == "sincos" else torch.zeros_like(table.weight))
    model.eval()
    # The names and values of the file: without the tables that are none, with the new parameters.
    own = {label: p for label, p in model.named_parameters()}
    for label, table, positions in modules:
        if code != "learn":
            own.pop(f"{label}.weight", None)
        else:
            own[f"{label}.weight"] = table.weight
        own |= {f"{label}.{part}": p for part, p in positions.named_parameters()}
    stored = {label: p.detach().clone().float() for label, p in own.items()}
    if family == "marian":
        stored["final_logits_bias"] = model.final_logits_bias.clone()
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    save_file({label: t.contiguous() for label, t in stored.items()}, folder / "model.safetensors",
              metadata={"format": "pt"})
    config = model.config.to_diff_dict() | {"architectures": [type(model).__name__], "dtype": "float32", "pos_embed": code}
    config.pop("_attn_implementation", None)
    if code == "rel_bucket":
        config |= {"relative_attention_num_buckets": BUCKETS, "relative_attention_max_distance": BUCKET_DISTANCE}
    if code == "rel_bias":
        config["relative_attention_max_distance"] = CLIPPED
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")

    model = model.double()
    for _, _, positions in modules:
        positions.double()
    ids = torch.randint(1, VOCAB - 1, (2, 17), generator=generator)
    labels = torch.randint(1, VOCAB - 1, (2, 17), generator=generator)
    mask = torch.ones_like(ids)
    tensors = {"input_ids": ids}
    if family == "gpt2":
        out = model(input_ids=ids, labels=ids)
    else:
        mask[1, 11:] = 0
        tensors |= {"attention_mask": mask, "labels": labels}
        inputs = dict(input_ids=ids, attention_mask=mask)
        if family == "marian":
            inputs["decoder_input_ids"] = torch.randint(1, VOCAB - 1, (2, 17), generator=generator)
            tensors["decoder_input_ids"] = inputs["decoder_input_ids"]
        out = model(**inputs, labels=torch.where(mask == 1, labels, -100))
    out.loss.backward()
    tensors |= {"logits": out.logits, "loss": out.loss}
    for label, parameter in own.items():
        tensors[f"grad.{label}"] = parameter.grad
    flags = dict(max_new_tokens=14)
    if family == "gpt2":
        flags |= dict(pad_token_id=0, eos_token_id=3, attention_mask=torch.ones(1, 5))
        tensors["greedy"] = model.generate(ids[:1, :5], **flags)
        tensors["beams"] = model.generate(ids[:1, :5], num_beams=4, num_return_sequences=3, length_penalty=1.4, **flags)
    elif family == "marian":
        flags["attention_mask"] = mask
        tensors["greedy"] = model.generate(ids, num_beams=1, **flags)
        tensors["beams"] = model.generate(ids, num_beams=4, **flags)
    save_file({label: (t.detach().float() if t.is_floating_point() else t).contiguous() for label, t in tensors.items()},
              folder / "expected.safetensors")


def write_buckets():
    distances = torch.arange(-5000, 5001)
    tensors = {}
    for count, farthest in ((32, 128), (64, 256), (8, 20), (16, 1000), (33, 77)):
        for both in (True, False):
            buckets = T5Attention._relative_position_bucket(distances, both, count, farthest)
            tensors[f"{count}.{farthest}.{'both' if both else 'causal'}"] = buckets.to(torch.uint8)
    save_file(tensors, ROOT / "buckets.safetensors")


ROOT.mkdir(parents=True, exist_ok=True)
ALL = [f"gpt2_{code}" for code in KINDS] + [f"{family}_{code}" for family in ("bert", "marian")
                                            for code in ("none", "learn", "sincos", "rope", "alibi_learn", "rel_bucket", "rel_bias")]
write_buckets()
for wanted in sys.argv[1:] or ALL:
    write(wanted)
    print(wanted)
