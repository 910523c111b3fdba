"""tests/golden/text/tokenizer_config.json.gz: what transformers' AutoTokenizer makes of texts by a tokenizer.json with
files beside it that say something else.

The tokenizer.json are those of gpt2.json.gz and others that text.py has made.
Needs transformers 5.23; pip install as for text.py.
"""

import json

from older_layouts import flags, rows, saved
from text import write

TEXTS = ["king of all", " the king", "kings", "A Größe 北京 is.", "x<|endoftext|>y [SEP] z</s> <pad>", "<tool> b<tool>c", "Hi [MASK]",
         "a <mask> b", "", "x <image>y"]
FAST = "PreTrainedTokenizerFast"
CONFIG, MAP, ADDED, MODEL = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json"


def config(kind, **more):
    return {CONFIG: {"tokenizer_class": kind, **more}}


CASES = {
    "gpt2": {
        "prefix": config("GPT2Tokenizer", add_prefix_space=True),
        "prefix of no class": config(FAST, add_prefix_space=True),
        "prefix by the model": {CONFIG: {"add_prefix_space": True}, MODEL: {"model_type": "gpt2"}},
        "listed": config(FAST, added_tokens_decoder={"5000": flags("king", special=False), "5001": flags("<tool>", lstrip=True)}),
        "named": config(FAST, pad_token="<pad>", eos_token="king", additional_special_tokens=["<tool>"]),
        "of a model": config(FAST, image_token="<image>", boi_token={"content": "<tool>", "__type": "AddedToken"}),
        "extra": config(FAST, extra_special_tokens=["king", "<tool>"]),
        "extra and additional": config(FAST, extra_special_tokens=["king"], additional_special_tokens=["<tool>"]),
        "extra of an object": config(FAST, extra_special_tokens={"second": "<tool>", "first": "<image>"}),
        "extra of an object that is listed": config(FAST, added_tokens_decoder={"5000": flags("king", special=False)}, extra_special_tokens={"x": "king"}),
        "of a model and extra": config(FAST, extra_special_tokens={"first": "king"}, sound_token="<tool>", image_token="<image>"),
        "of a model, not by the alphabet": config(FAST, sound_token="<tool>", image_token="<image>"),
        "no extra but additional": config(FAST, extra_special_tokens={}, additional_special_tokens=["<tool>"]),
        "extra of listed": config(FAST, added_tokens_decoder={"5000": flags("king", special=False)}, extra_special_tokens=["king"]),
        "empty": config(FAST, bos_token="", eos_token="<|endoftext|>"),
        "map": {**config(FAST), MAP: {"pad_token": "<pad>", "additional_special_tokens": ["king"], "bos_token": ""}},
        "added": {**config(FAST), ADDED: {"<tool>": 601}},
        "split": config(FAST, split_special_tokens=True, eos_token="<|endoftext|>"),
    },
    "roberta": {
        "prefix": config("RobertaTokenizer", add_prefix_space=True),
        "silent": config("RobertaTokenizer"),
        "bart": config("BartTokenizer", add_prefix_space=True),
        "listed": config(FAST, added_tokens_decoder={"5000": flags("<tool>", rstrip=True)}),
        "changed": config(FAST, added_tokens_decoder={"604": flags("<mask>", lstrip=False, special=False)}),
    },
    "bert_uncased": {
        "cased": config("BertTokenizer", do_lower_case=False),
        "cased by the model": {CONFIG: {"do_lower_case": False}, MODEL: {"model_type": "bert"}},
        "named by the model": {CONFIG: {"do_lower_case": False}, MODEL: {"model_type": "bert", "tokenizer_class": FAST}},
        "cased distilbert": config("DistilBertTokenizer", do_lower_case=False),
        "accents": config("BertTokenizer", strip_accents=False, tokenize_chinese_chars=False),
        "cased of no class": config(FAST, do_lower_case=False),
    },
    "bert_cased": {"silent": config("BertTokenizer")},
    "qwen2": {"prefix": config("Qwen2Tokenizer", add_prefix_space=True)},
    "clip": {"silent": config("CLIPTokenizer")},
    "unigram": {"extra": config(FAST, extra_special_tokens=["king"], pad_token="<pad>")},
}


def main():
    golden = {}
    for name, cases in CASES.items():
        document = json.dumps(saved(name)["tokenizer"])
        golden[name] = {}
        for case, beside in cases.items():
            files = {file: json.dumps(content) for file, content in beside.items()}
            golden[name][case] = {"files": files, "rows": rows({"tokenizer.json": document, **files}, TEXTS)}
    write("tokenizer_config", golden)


if __name__ == "__main__":
    main()
