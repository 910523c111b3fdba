"""tests/golden/text/marian.json.gz: what transformers' MarianTokenizer makes of texts with special tokens and codes of languages.

The pieces are those of the model "unigram" in sentencepiece.json.gz (text_training.py), the vocabulary has three codes too.
Needs transformers 5.23 and sentencepiece; pip install as for text.py.
"""

import base64
import gzip
import json
import tempfile
from pathlib import Path

import sentencepiece
from text import write
from transformers import MarianTokenizer

TEXTS = Path(__file__).resolve().parents[2] / "tests/golden/text/sentencepiece.json.gz"
MARKED = [
    "Ein </s> Mann", "</s>", " </s>", "</s> </s>", "a<pad>b", "<unk> is unknown", "one <pad> two </s> three <unk>", "</s", "<pad",
    "<pad></s>", ">>de<< Ein Mann", ">>de<<Ein", ">>xx<< Ein", ">>x<< Ein >>de<< Mann", ">>de<<>>de<< Ein", ">><< Ein", ">> << Ein",
    ">>de< <", " >>de<< Ein", "Ein >>de<<", "</s>>>de<< Ein", "</s> >>de<< Ein", ">>de</s><< Ein", ">>d\ne<< Ein", ">>de<<", ">>", "<<",
    ">>fr<< über </s> 日本",
]

saved = json.loads(gzip.decompress(TEXTS.read_bytes()))
model = base64.b64decode(saved["unigram"]["model"])
processor = sentencepiece.SentencePieceProcessor(model_proto=model)
pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
tokens = ["</s>", "<unk>"] + [p for p in pieces if p not in ("</s>", "<unk>", "<s>")] + [">>de<<", ">>fr<<", ">>de</s><<", "<pad>"]
vocab = {token: i for i, token in enumerate(tokens)}
with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model)
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "de", "target_lang": "en"}))
    tokenizer = MarianTokenizer.from_pretrained(folder)
    texts = MARKED + saved["texts"][:200]
    write("marian", {"vocab": vocab, "rows": [[text, tokenizer(text).input_ids] for text in texts]})
