"""Fixtures of sentence embeddings: tests/golden/models/sentences/*.

    python tools/golden/sentences.py

A fixture is a folder of sentence-transformers around a small BERT with every parameter perturbed, whose tokenizer.json
asks for other lengths than the model (it cuts to 6 tokens and pads to 16), and beside it expected.safetensors: the
vectors [N, D] that sentence-transformers computes of the lines of texts.txt. `ranking` has what training needs in
addition: MultipleNegativesRankingLoss of the first four texts with the last four, and `grad.NAME`.

Needs sentence-transformers 6.2, transformers 5.23, torch 2.13.0 and safetensors.
"""

import json
import pathlib
import shutil
import string
import tempfile

import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import BertWordPieceTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models/sentences"
TEXTS = ["A man is riding a horse.", "two dogs", "A horse is ridden by a man, and two dogs run along in the snow!",
         "snow", "Dogs run.", "the man", "a", "The snow is on the dogs and the horse"]
WORDS = "a man is riding horse two dogs the snow and run on ##s ##n . , !".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS,
              *[c for c in string.ascii_lowercase if c != "a"],
              *["##" + c for c in string.ascii_lowercase if c not in "sn"]]
# Name: pooling, whether vectors are normalized, max_seq_length, whether the files are in the layout of older versions.
VARIANTS = {
    "mean": ("mean", True, 12, True),
    "cls": ("cls", False, 8, False),
    "max": ("max", False, None, True),
    "mean_sqrt_len_tokens": ("mean_sqrt_len_tokens", False, 12, False),
    "weightedmean": ("weightedmean", True, 12, True),
    "lasttoken": ("lasttoken", False, 12, True),
}


def tokenizer():
    words = {word: index for index, word in enumerate(VOCABULARY)}
    inner = BertWordPieceTokenizer(words, lowercase=True)._tokenizer
    inner.enable_truncation(6)
    inner.enable_padding(length=16)
    return inner


def write(name):
    pooling, normalized, longest, old = VARIANTS[name]
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(sum(map(ord, name)))
    model = hf.BertModel(hf.BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12,
        max_position_embeddings=20, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    with tempfile.TemporaryDirectory() as temporary:
        bert = pathlib.Path(temporary) / "bert"
        model.save_pretrained(bert)
        tokenizer().save(str(bert / "tokenizer.json"))
        config = {"tokenizer_class": "BertTokenizer", "model_max_length": 20, "do_lower_case": True}
        (bert / "tokenizer_config.json").write_text(json.dumps(config))
        modules = [Transformer(str(bert), max_seq_length=longest), Pooling(8, pooling)]
        modules += [Normalize()] if normalized else []
        sentences = SentenceTransformer(modules=modules, device="cpu")
        sentences.save(str(folder))
    shutil.rmtree(folder / "0_Transformer", ignore_errors=True)
    for extra in ("README.md", "model_head.json", "special_tokens_map.json"):
        (folder / extra).unlink(missing_ok=True)
    tokenizer().save(str(folder / "tokenizer.json"))  # with its truncation and padding, which save() leaves out
    if old:  # as version 2 wrote them
        kinds = dict(Transformer="", Pooling="1_Pooling", Normalize="2_Normalize")
        used = [kind for kind in kinds if kind != "Normalize" or normalized]
        (folder / "modules.json").write_text(json.dumps([
            dict(idx=i, name=str(i), path=kinds[kind], type=f"sentence_transformers.models.{kind}")
            for i, kind in enumerate(used)], indent=2))
        modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
        chosen = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens",
                  "weightedmean": "weightedmean_tokens"}.get(pooling, pooling)
        (folder / "1_Pooling/config.json").write_text(json.dumps(
            {"word_embedding_dimension": 8} | {f"pooling_mode_{mode}": mode == chosen for mode in modes}))
        (folder / "sentence_bert_config.json").write_text(json.dumps(
            {"max_seq_length": longest, "do_lower_case": False}))
    again = SentenceTransformer(str(folder), device="cpu")
    assert longest is None or again.max_seq_length == longest, again.max_seq_length
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    expected = {"embeddings": torch.from_numpy(again.encode(TEXTS))}
    if name == "mean":
        expected |= ranking(again, load_file(folder / "model.safetensors"))
    save_file(expected, folder / "expected.safetensors")
    return again.max_seq_length


def ranking(sentences, stored):
    sentences = sentences.double().train()
    loss = MultipleNegativesRankingLoss(sentences)
    halves = [sentences.preprocess(TEXTS[:4]), sentences.preprocess(TEXTS[4:])]
    value = loss(halves, None)
    value.backward()
    own = dict(sentences[0].model.named_parameters())
    gradients = {f"grad.{name}": own[name].grad.float() for name in stored if own[name].grad is not None}
    return {"ranking_loss": value.detach().float(), **gradients}


for wanted in VARIANTS:
    print(wanted, write(wanted))
