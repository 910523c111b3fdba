"""Compares vitrail's tokenizers with Hugging Face's on random strings: ids, tokens, offsets and decodings.

    python tools/check_tokenizers.py [--vitrail build/bin/vitrail] [--count 100000] [--seed 1] [--kinds NAME …] [--points]
    python tools/check_tokenizers.py --trained TEXT [--vitrail …] [--count …] [--seed …] [--vocab-size 4000]

The tokenizers are those of tools/golden/text_kinds.py, the strings mixtures of the hard texts there; with --points also
each code point of Unicode between two letters. The second form has vitrail learn tokenizers of each kind from a text:
those in a tokenizer.json must load in tokenizers, and .model files in sentencepiece, and give the same ids; of WordPiece
it prints the tokens a word beside those of tokenizers' own training. Needs tokenizers and sentencepiece; nothing of
vitrail needs this.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import sentencepiece
import tokenizers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "golden"))
from hard_texts import hard_texts, mixture  # noqa: E402
from text_kinds import KINDS, unigram  # noqa: E402


def run(arguments, **options):
    result = subprocess.run(arguments, capture_output=True, text=True, encoding="utf-8", errors="surrogatepass", **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {result.stderr}")
    return result.stdout.split("\n")[:-1]


def encode(tokenizer, text):
    try:
        return tokenizer.encode(text)
    except BaseException:  # the reference itself fails: a panic of Rust is no Exception
        return None


def differences(name, tokenizer, texts, vitrail, folder, file=None):
    if file is None:
        file = folder / f"{name}.json"
        tokenizer.save(str(file))
    expected = [encode(tokenizer, text) for text in texts]
    kept = [(text, each) for text, each in zip(texts, expected) if each is not None]
    if len(kept) < len(texts):
        print(f"{name}: the reference fails on {len(texts) - len(kept)} of them, such as "
              f"{next(t for t, e in zip(texts, expected) if e is None)!r}")
    lines = folder / "texts"
    lines.write_text("".join(json.dumps(text) + "\n" for text, _ in kept))
    found = run([vitrail, "tokenizer", "encode", file, "--input", lines, "--json-lines", "--json"])
    count = 0
    for (text, each), line in zip(kept, found, strict=True):
        ours = json.loads(line)
        theirs = {"ids": each.ids, "tokens": each.tokens, "offsets": [list(pair) for pair in each.offsets],
                  "type_ids": each.type_ids, "special_tokens_mask": [bool(x) for x in each.special_tokens_mask],
                  "attention_mask": [bool(x) for x in each.attention_mask]}
        for key, value in theirs.items():
            if ours[key] != value:
                count += 1
                if count <= 5:
                    print(f"{name}: {key} of {text!r}:\n  theirs {value}\n  ours   {ours[key]}")
                break
    rows = [each.ids for _, each in kept]
    ids = folder / "ids"
    ids.write_text("".join(" ".join(map(str, row)) + "\n" for row in rows))
    for flags, skip in (([], True), (["--keep-special-tokens"], False)):
        found = run([vitrail, "tokenizer", "decode", file, "--input", ids, "--json", *flags])
        for row, line in zip(rows, found, strict=True):
            try:
                theirs = tokenizer.decode(row, skip_special_tokens=skip)
            except BaseException:
                continue
            if json.loads(line) != theirs:
                count += 1
                if count <= 5:
                    print(f"{name}: decoding of {row}:\n  theirs {theirs!r}\n  ours   {json.loads(line)!r}")
    return count


def piece_differences(name, texts, vitrail, folder, file):
    """Of a .model, whose ids sentencepiece gives."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    lines = folder / "texts"
    lines.write_text("".join(json.dumps(text) + "\n" for text in texts))
    count = 0
    for text, line in zip(texts, run([vitrail, "tokenizer", "encode", file, "--input", lines, "--json-lines", "--json",
                                      "--no-special-tokens"]), strict=True):
        theirs = processor.encode(text)
        ours = json.loads(line)["ids"]
        if ours != theirs:
            count += 1
            if count <= 5:
                print(f"{name}: ids of {text!r}:\n  theirs {theirs}\n  ours   {ours}")
    return count


def trained(args, texts):
    """Checks what vitrail learns from a text; returns the number of differences."""
    total = 0
    words = pathlib.Path(args.trained).read_text(encoding="utf-8").split()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in ("bpe", "wordpiece", "unigram", "sentencepiece-bpe"):
            run([args.vitrail, "tokenizer", "train", args.trained, "--model", kind, "--vocab-size", str(args.vocab_size),
                 "--output", folder / kind])
            if kind in ("bpe", "wordpiece"):
                file = folder / kind / "tokenizer.json"
                count = differences(kind, tokenizers.Tokenizer.from_file(str(file)), texts, args.vitrail, folder, file)
            else:
                file = next((folder / kind).glob("*.model"))
                count = piece_differences(kind, texts, args.vitrail, folder, file)
            print(f"{kind}, learnt: {count} differences in {len(texts)} texts", flush=True)
            total += count
        ours = tokenizers.Tokenizer.from_file(str(folder / "wordpiece" / "tokenizer.json"))
        theirs = tokenizers.BertWordPieceTokenizer(lowercase=False, strip_accents=False)
        theirs.train([args.trained], vocab_size=args.vocab_size, min_frequency=0, show_progress=False)
        for who, each in (("vitrail's", ours), ("tokenizers'", theirs)):
            count = len(each.encode(" ".join(words), add_special_tokens=False).ids)
            print(f"WordPiece, {who} training: {count / len(words):.4f} tokens a word")
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default="build/bin/vitrail")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*")
    parser.add_argument("--points", action="store_true")
    parser.add_argument("--trained")
    parser.add_argument("--vocab-size", type=int, default=4000)
    args = parser.parse_args()
    hard = hard_texts()
    draw = random.Random(args.seed)
    texts = hard + [mixture(draw, hard) for _ in range(args.count)]
    if args.points:
        texts += [f"a{chr(c)}b" for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    if args.trained:
        return 1 if trained(args, texts) else 0
    # With the whole map of sentencepiece's own normalization, beside the short one of the fixture.
    kinds = {**KINDS, "unigram_nmt_nfkc": lambda texts: unigram(texts, rules=None)}
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.kinds or kinds:
            count = differences(name, kinds[name](hard), texts, args.vitrail, pathlib.Path(folder))
            print(f"{name}: {count} differences in {len(texts)} texts", flush=True)
            total += count
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
