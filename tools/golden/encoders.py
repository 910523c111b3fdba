"""Fixtures of encoders such as BERT, and of classifiers of texts: tests/golden/models/text/*.

    python tools/golden/encoders.py            # all
    python tools/golden/encoders.py bert_bare roberta_masked   # some, by name

A fixture is a folder as save_pretrained() writes it, with every parameter perturbed, and beside it expected.safetensors,
computed in float64: input_ids [B, N], lengths [B] and, if the model has them, token_type_ids [B, N]; the outputs under
transformers' names (of padding zeros); labels, next_sentence_label, loss, and `grad.NAME` of the loss by the names in
the folder's file. The loss of a bare model is the sum of its outputs weighed by weights.*.

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
LENGTHS = (9, 4, 6)

BERT = dict(vocab_size=24, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
            max_position_embeddings=12, type_vocab_size=2)
ROBERTA = BERT | dict(max_position_embeddings=14, layer_norm_eps=1e-5, type_vocab_size=1, pad_token_id=1)
DISTILBERT = dict(vocab_size=24, dim=8, n_layers=2, n_heads=2, hidden_dim=12, max_position_embeddings=12)
GPT2 = dict(vocab_size=24, n_positions=12, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0,
            pad_token_id=0)
NAMES = {0: "anger", 1: "joy", 2: "no idea"}
LABELS = dict(id2label=NAMES, label2id={name: index for index, name in NAMES.items()})

VARIANTS = {
    "bert_bare": (hf.BertModel, hf.BertConfig(**BERT)),
    "bert_pretraining": (hf.BertForPreTraining, hf.BertConfig(**BERT)),
    "bert_masked": (hf.BertForMaskedLM, hf.BertConfig(**BERT, hidden_act="gelu_new", layer_norm_eps=1e-3)),
    "bert_classes": (hf.BertForSequenceClassification, hf.BertConfig(**BERT, **LABELS)),
    "bert_tokens": (hf.BertForTokenClassification, hf.BertConfig(**BERT, **LABELS, hidden_act="relu")),
    "distilbert_bare": (hf.DistilBertModel, hf.DistilBertConfig(**DISTILBERT)),
    "distilbert_masked": (hf.DistilBertForMaskedLM, hf.DistilBertConfig(**DISTILBERT, sinusoidal_pos_embds=True)),
    "distilbert_classes": (hf.DistilBertForSequenceClassification, hf.DistilBertConfig(**DISTILBERT, **LABELS)),
    "distilbert_tokens": (hf.DistilBertForTokenClassification, hf.DistilBertConfig(**DISTILBERT, **LABELS)),
    "roberta_bare": (hf.RobertaModel, hf.RobertaConfig(**ROBERTA)),
    "roberta_masked": (hf.RobertaForMaskedLM, hf.RobertaConfig(**ROBERTA)),
    "roberta_classes": (hf.RobertaForSequenceClassification, hf.RobertaConfig(**ROBERTA, **LABELS)),
    "roberta_tokens": (hf.RobertaForTokenClassification, hf.RobertaConfig(**ROBERTA, **LABELS)),
    "gpt2_classes": (hf.GPT2ForSequenceClassification, hf.GPT2Config(**GPT2, **LABELS)),
}


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
    model = perturbed(kind(config), generator).eval()  # eval: no dropout
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        folder.mkdir(parents=True)
        for file in ("config.json", "model.safetensors"):
            shutil.copy(pathlib.Path(temporary) / file, folder / file)
    stored = load_file(folder / "model.safetensors")
    model = model.double()
    count, longest = len(LENGTHS), max(LENGTHS)
    real = torch.arange(longest)[None, :] < torch.tensor(LENGTHS)[:, None]
    ids = torch.randint(2, config.vocab_size, (count, longest), generator=generator)
    ids[~real] = config.pad_token_id
    inputs = dict(input_ids=ids, attention_mask=real.long())
    if name.startswith("bert"):
        inputs["token_type_ids"] = torch.randint(0, 2, (count, longest), generator=generator) * real
    labels = {}
    if name.endswith("_masked") or name.endswith("_pretraining"):
        labels["labels"] = torch.randint(0, config.vocab_size, (count, longest), generator=generator)
        chosen = (torch.rand(count, longest, generator=generator) < 0.4) & real
        labels["labels"][~chosen] = -100
    if name.endswith("_pretraining"):
        labels["next_sentence_label"] = torch.tensor([0, 1, 1])
    if name.endswith("_classes"):
        labels["labels"] = torch.tensor([2, 0, 1])
    if name.endswith("_tokens"):
        labels["labels"] = torch.randint(0, 3, (count, longest), generator=generator)
        labels["labels"][~real] = -100
    out = model(**inputs, **labels)
    outputs = {label: value for label, value in out.items() if label != "loss" and torch.is_tensor(value)}
    tensors = {"input_ids": ids, "lengths": torch.tensor(LENGTHS), **labels}
    if "token_type_ids" in inputs:
        tensors["token_type_ids"] = inputs["token_type_ids"]
    for label, value in outputs.items():
        if value.ndim == 3:
            outputs[label] = value * real[:, :, None]
    loss = out.get("loss")
    if loss is None:
        loss = 0
        for label, value in outputs.items():
            tensors[f"weights.{label}"] = torch.randn(value.shape, generator=generator)
            loss = loss + (value * tensors[f"weights.{label}"].double()).sum()
    loss.backward()
    own = dict(model.named_parameters())
    tensors |= outputs | {"loss": loss}
    for label in stored:
        if own[label].grad is not None:
            tensors[f"grad.{label}"] = own[label].grad
    save_file({label: (t.detach().float() if t.is_floating_point() else t).contiguous() for label, t in tensors.items()},
              folder / "expected.safetensors")


for wanted in sys.argv[1:] or VARIANTS:
    write(wanted)
    print(wanted)
