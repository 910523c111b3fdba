"""tests/golden/text/training.json.gz: what BpeTrainer learns from the beginning of tinyshakespeare, and layouts of files.

Takes tinyshakespeare's input.txt as its argument. pip install as for text.py.
"""

import base64
import json
import sys
import tempfile
from pathlib import Path

import sentencepiece
from hard_texts import hard_texts
from text import write
from text_kinds import bpe, proto_of, sentencepiece_model
from tokenizers import Tokenizer, models, pre_tokenizers


def bpe_training(text):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    lines = text.splitlines(keepends=True)
    bpe(tokenizer, lines, size=700, special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    return {"lines": lines, "model": json.loads(tokenizer.to_str())["model"]}


def without_ties(model):
    """Other scores for each piece: between cuts of equal scores versions 0.1.97 and 0.2 choose differently."""
    proto = proto_of(model)
    for i, piece in enumerate(proto.pieces):
        piece.score -= 0.01 * (i * 0.6180339887 % 1)
    return proto.SerializeToString()


def rows(processor, texts):
    """Ids, offsets in code points and pieces of each text, and the decoding of the ids."""
    result = []
    for text in texts:
        pieces = processor.encode(text, return_type="proto").pieces
        ids = [piece.id for piece in pieces]
        point = lambda byte: len(text.encode()[:byte].decode())  # noqa: E731
        result.append([ids, [point(bound) for piece in pieces for bound in (piece.begin, piece.end)],
                       [piece.piece for piece in pieces], processor.decode(ids)])
    return result


def main():
    text = Path(sys.argv[1]).read_text()[:20000]
    write("training", bpe_training(text))
    texts = [t for t in hard_texts() if "\0" not in t]  # a NUL ends a text for the trainer
    models_of = {
        "unigram": without_ties(sentencepiece_model(
            texts, "unigram", size=900, character_coverage=0.98, normalization_rule_name="identity")),
        "bpe": sentencepiece_model(texts, "bpe", size=1100, character_coverage=0.98, byte_fallback=True,
                                   normalization_rule_name="identity", remove_extra_whitespaces=False),
    }
    values = {"texts": texts}
    for name, model in models_of.items():
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        values[name] = {"model": base64.b64encode(model).decode(), "rows": rows(processor, texts)}
    write("sentencepiece", values)


if __name__ == "__main__":
    sys.exit(main())
