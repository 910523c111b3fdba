"""Fixtures of predictions on texts: tests/golden/models/predictions/*.

    python tools/golden/text_predictions.py

A fixture is a folder of a small BERT with every parameter perturbed and its tokenizer, and beside it expected.json: what
transformers' pipeline "fill-mask", "text-classification" or "token-classification" gives for some texts.

Needs transformers 5.23, torch 2.13.0 and tokenizers 0.23.
"""

import json
import pathlib
import shutil
import string

import torch
import transformers as hf
from tokenizers import BertWordPieceTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models/predictions"
WORDS = "a man is riding horse two dogs the snow and run on ##s ##n . , !".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS,
              *[c for c in string.ascii_lowercase if c != "a"],
              *["##" + c for c in string.ascii_lowercase if c not in "sn"]]
TEXTS = ["A man is riding a horse.", "two dogs run", "Snow!"]
MASKED = ["A man is [MASK] a horse.", "[MASK] dogs", "The [MASK] is on the [MASK]."]
SIZES = dict(vocab_size=len(VOCABULARY), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
             intermediate_size=12, max_position_embeddings=20)
NAMES = {0: "O", 1: "B-animal", 2: "B-person"}
LABELS = dict(id2label=NAMES, label2id={name: index for index, name in NAMES.items()})


def made(name, kind, **config):
    torch.manual_seed(sum(map(ord, name)))
    model = kind(hf.BertConfig(**SIZES, **config)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    words = {word: index for index, word in enumerate(VOCABULARY)}
    BertWordPieceTokenizer(words, lowercase=True)._tokenizer.save(str(folder / "tokenizer.json"))
    special = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep", "mask")}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"} | special))
    return folder


def write(folder, expected):
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, default=float) + "\n")


folder = made("fill_mask", hf.BertForMaskedLM)
pipe = hf.pipeline("fill-mask", model=str(folder))
write(folder, {"texts": MASKED, "results": [pipe(text) for text in MASKED],
               "targets": ["snow", "horses"], "with_targets": pipe(MASKED[0], targets=["snow", "horses"])})
folder = made("classes", hf.BertForSequenceClassification, **LABELS)
pipe = hf.pipeline("text-classification", model=str(folder))
write(folder, {"texts": TEXTS, "results": [pipe(text, top_k=3) for text in TEXTS],
               "alone": [pipe(text, top_k=3, function_to_apply="sigmoid") for text in TEXTS]})
folder = made("tokens", hf.BertForTokenClassification, **LABELS)
pipe = hf.pipeline("token-classification", model=str(folder), ignore_labels=[])
TEXTS.append("Zwei Hunde: 狗 on ☃ s.")  # with words that the vocabulary does not have
write(folder, {"texts": TEXTS, "results": [pipe(text) for text in TEXTS]})
