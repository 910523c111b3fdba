"""Files of tests/golden/text: tokenizers of every kind, and what Hugging Face's tokenizers make of hard texts by them.

pip install tokenizers==0.23.3 sentencepiece==0.2.3
"""

import gzip
import json
import sys
from pathlib import Path

from hard_texts import hard_texts
from text_kinds import KINDS

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "text"


def row(encoding):
    return [encoding.ids, [bound for pair in encoding.offsets for bound in pair], encoding.tokens]


def values(tokenizer, texts):
    """For each text ids, offsets and tokens, and its decodings without and with special tokens."""
    single = [row(tokenizer.encode(text)) for text in texts]
    decoded = [[tokenizer.decode(ids, skip_special_tokens=skip) for skip in (True, False)] for ids, _, _ in single]
    pair = tokenizer.encode(texts[0], "¿Qué? 2")
    plain = tokenizer.encode(texts[0], add_special_tokens=False)
    more = [[*row(e), e.type_ids, e.special_tokens_mask, e.attention_mask] for e in (pair, plain)]
    return {"single": single, "decoded": decoded, "pair": more[0], "plain": more[1]}


def write(name, value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    with open(OUT / f"{name}.json.gz", "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as out:
        out.write(text)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    texts = hard_texts()
    write("texts", texts)
    for name, make in KINDS.items():
        tokenizer = make(texts)
        write(name, {"tokenizer": json.loads(tokenizer.to_str()), **values(tokenizer, texts)})


if __name__ == "__main__":
    sys.exit(main())
