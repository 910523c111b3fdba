"""tests/golden/text/tokenizer_config.json.gz: what transformers' AutoTokenizer makes of texts by a tokenizer.json with a
tokenizer_config.json beside it that says something else.

The tokenizer.json are those of gpt2.json.gz, roberta.json.gz, bert_uncased.json.gz and unigram.json.gz (text.py).
Needs transformers 5.23; pip install as for text.py.
"""

import json

from older_layouts import flags, rows, saved
from text import write

TEXTS = ["king of all", " the king", "kings", "A Größe 北京 is.", "x<|endoftext|>y [SEP] z</s> <pad>", "<tool> b<tool>c", "Hi [MASK]", ""]
CONFIGS = {
    "gpt2": {
        "prefix": {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True},
        "prefix of no class": {"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": True},
        "listed": {"tokenizer_class": "PreTrainedTokenizerFast",
                   "added_tokens_decoder": {"5000": flags("king", special=False), "5001": flags("<tool>", lstrip=True)}},
        "named": {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "eos_token": "king",
                  "additional_special_tokens": ["<tool>"]},
        "extra": {"tokenizer_class": "PreTrainedTokenizerFast", "extra_special_tokens": ["king", "<tool>"]},
        "split": {"tokenizer_class": "PreTrainedTokenizerFast", "split_special_tokens": True, "eos_token": "<|endoftext|>"},
    },
    "roberta": {
        "prefix": {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True},
        "listed": {"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": {"5000": flags("<tool>", rstrip=True)}},
    },
    "bert_uncased": {
        "cased": {"tokenizer_class": "BertTokenizer", "do_lower_case": False},
        "accents": {"tokenizer_class": "BertTokenizer", "strip_accents": False, "tokenize_chinese_chars": False},
        "cased of no class": {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False},
    },
    "unigram": {
        "extra": {"tokenizer_class": "PreTrainedTokenizerFast", "extra_special_tokens": ["king"], "pad_token": "<pad>"},
    },
}


def main():
    golden = {}
    for name, configs in CONFIGS.items():
        document = json.dumps(saved(name)["tokenizer"])
        golden[name] = {
            case: {"config": config, "rows": rows({"tokenizer.json": document, "tokenizer_config.json": json.dumps(config)}, TEXTS)}
            for case, config in configs.items()
        }
    write("tokenizer_config", golden)


if __name__ == "__main__":
    main()
