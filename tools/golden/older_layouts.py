"""tests/golden/text/older_layouts.json.gz: what transformers' AutoTokenizer makes of texts by folders in the files of its older
classes, with tokens that were added to them: GPT-2's vocab.json and merges.txt, BERT's vocab.txt, Llama's tokenizer.model.

The vocabularies of the first two are those of gpt2.json.gz and bert_uncased.json.gz (text.py). LlamaTokenizer's
"add_bos_token" is given, as without it transformers 5 has no token in front, against its own documentation.
Needs transformers 5.23 and sentencepiece; pip install as for text.py.
"""

import base64
import gzip
import io
import json
import tempfile
from pathlib import Path

import sentencepiece
from text import OUT, write
from transformers import AutoTokenizer

MARKED = [
    "<|im_start|>user\nHi<|im_end|>", "a<tool>b <tool> c", " <tool>", "<TOOL> <pad>", "<s>x</s>", "x </s> y", "</s></s>", " two", "", " ",
    "<unk> is <0x41>", "[PAD] [mask]", "x<user>y <user> z",
]
ADDED = {"<|im_start|>": 0, "<|im_end|>": 1, "<tool>": 2, "<pad>": 3}
NAMED = {"additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "pad_token": "<pad>"}


def saved(name):
    return json.loads(gzip.decompress((OUT / f"{name}.json.gz").read_bytes()))


def flags(content, **more):
    return {"content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True, **more}


def rows(files, texts):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        tokenizer = AutoTokenizer.from_pretrained(folder)
        ids = [tokenizer(text).input_ids for text in texts]
        decoded = [[tokenizer.decode(row, skip_special_tokens=skip) for skip in (True, False)] for row in ids]
    return [list(row) for row in zip(texts, ids, decoded)]


def added(first):
    return json.dumps({token: first + i for token, i in ADDED.items()})


def decoder(first):
    tokens = {"<|im_start|>": {}, "<|im_end|>": {"rstrip": True}, "<tool>": {"special": False, "normalized": True},
              "<pad>": {"lstrip": True}}
    return {str(first + i): flags(token, **more) for i, (token, more) in enumerate(tokens.items())}


def gpt2(texts):
    model = saved("gpt2")["tokenizer"]["model"]
    vocab = {**model["vocab"], "<|endoftext|>": len(model["vocab"])}
    merges = "#version: 0.2\n" + "".join(" ".join(merge) + "\n" for merge in model["merges"])
    own = {"vocab.json": json.dumps(vocab), "merges.txt": merges}
    config = {"tokenizer_class": "GPT2Tokenizer"}
    special = {"additional_special_tokens": NAMED["additional_special_tokens"]}
    return own, {
        "list": {"tokenizer_config.json": json.dumps({**config, **special}), "added_tokens.json": added(len(vocab)),
                 "special_tokens_map.json": json.dumps({"pad_token": flags("<pad>")})},
        "flags": {"tokenizer_config.json": json.dumps({**config, "added_tokens_decoder": decoder(len(vocab))})},
        "named": {"tokenizer_config.json": json.dumps({**config, "pad_token": "[PAD]", "eos_token": "a", **special})},
        "bos": {"tokenizer_config.json": json.dumps({**config, "add_bos_token": True, "bos_token": "<|endoftext|>"})},
        "qwen2": {"config.json": json.dumps({"model_type": "qwen2"}), "tokenizer_config.json": json.dumps({"tokenizer_class": "Qwen2Tokenizer"})},
        "map": {"tokenizer_config.json": json.dumps(config), "special_tokens_map.json": json.dumps({"pad_token": flags("<pad>", lstrip=True)})},
    }


def bert(texts):
    vocab = saved("bert_uncased")["tokenizer"]["model"]["vocab"]
    own = {"vocab.txt": "".join(f"{token}\n" for token in sorted(vocab, key=vocab.get))}
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    return own, {
        "list": {"tokenizer_config.json": json.dumps({**config, **NAMED}), "added_tokens.json": added(len(vocab))},
        "flags": {"tokenizer_config.json": json.dumps({**config, "added_tokens_decoder": decoder(len(vocab))})},
        "bare": {"tokenizer_config.json": json.dumps({**config, "added_tokens_decoder": {str(len(vocab)): {"content": "<TOOL>"}}})},
        "named": {"tokenizer_config.json": json.dumps({**config, "cls_token": "x", "sep_token": "y", **NAMED})},
    }


def llama(texts):
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text for text in texts if text.strip()]), model_writer=file, model_type="bpe", vocab_size=1200,
        byte_fallback=True, character_coverage=0.98, split_digits=True, normalization_rule_name="identity", minloglevel=2,
        remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, user_defined_symbols=["<user>"], num_threads=1)
    config = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}
    both = {**config, "add_eos_token": True, "legacy": False, "added_tokens_decoder": decoder(1200)}
    return {"tokenizer.model": file.getvalue()}, {
        "legacy": {"tokenizer_config.json": json.dumps({**config, "legacy": True})},
        "list": {"tokenizer_config.json": json.dumps({**config, "pad_token": "<pad>"}), "added_tokens.json": added(1200)},
        "flags": {"tokenizer_config.json": json.dumps(both)},
        "bare": {"tokenizer_config.json": json.dumps({**config, "add_bos_token": False, "add_prefix_space": False})},
        "named": {"tokenizer_config.json": json.dumps({**config, "pad_token": "<pad>", "eos_token": "<tool>"})},
    }


def main():
    texts = MARKED + saved("texts")
    more = saved("sentencepiece")["texts"]
    layouts = {}
    for make in (gpt2, bert, llama):
        own, cases = make(texts + more)
        layouts[make.__name__] = {
            "own": {name: base64.b64encode(content).decode() if isinstance(content, bytes) else "" for name, content in own.items()},
            "cases": {name: {"files": beside, "rows": rows({**own, **beside}, texts)} for name, beside in cases.items()},
        }
    write("older_layouts", layouts)


if __name__ == "__main__":
    main()
