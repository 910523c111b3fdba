"""Times how vitrail's tokenizers encode texts beside Hugging Face's: the same tokenizer.json, lines and threads, in rounds
that alternate.

    python benchmarks/compare/tokenizing.py TEXT … [--rounds 3] [--threads 1 2] [--rows REGEX] [--output FILE.json]
    python benchmarks/compare/tokenizing.py peer TOKENIZER TEXT RUNS

TEXT is a file with a sentence a line (tinyshakespeare's input.txt, multi30k's train.en), of which a tokenizer of each kind
is learned: byte-level BPE as GPT-2's, WordPiece as BERT's, Unigram as T5's, of 8,000 tokens. Both sides encode all lines in
one call of encode_batch, offsets included, in processes of their own; loading does not count. Prints a table in Markdown:
MB a second of the fastest run. Ours is build/bin/vitrail_bench_tokenizing.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from compare import VITRAIL

RUNS = 5
OURS = VITRAIL.with_name("vitrail_bench_tokenizing")


def bpe(lines):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=8000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|endoftext|>"],
        show_progress=False))
    return tokenizer


def wordpiece(lines):
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer()
    tokenizer.train_from_iterator(lines, vocab_size=8000, show_progress=False)
    return tokenizer


def unigram(lines):
    from tokenizers import SentencePieceUnigramTokenizer

    tokenizer = SentencePieceUnigramTokenizer()
    tokenizer.train_from_iterator(lines, vocab_size=8000, show_progress=False, special_tokens=["<unk>"], unk_token="<unk>")
    return tokenizer


KINDS = {"byte-level BPE": bpe, "WordPiece": wordpiece, "Unigram": unigram}


def last_object(command, threads):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env=os.environ | {"RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def peer(file, text, runs):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(file)
    lines = pathlib.Path(text).read_text(encoding="utf-8").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    seconds = []
    for _ in range(int(runs)):
        begin = time.perf_counter()
        encodings = tokenizer.encode_batch(lines)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"tokens": sum(len(encoding.ids) for encoding in encodings), "seconds": seconds}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", default="", help="only rows whose text and kind match this regular expression")
    parser.add_argument("--output", type=pathlib.Path, help="also write all figures as JSON")
    args = parser.parse_args()
    results = []
    print("| text | kind | threads | vitrail, MB/s | tokenizers, MB/s | times as fast |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for text in args.texts:
            for kind, learn in KINDS.items():
                name = f"{text.parent.name}/{text.name}"
                if not re.search(args.rows, f"{name} {kind}"):
                    continue
                file = pathlib.Path(folder) / "tokenizer.json"
                learn(text.read_text(encoding="utf-8").splitlines()).save(str(file))
                for threads in args.threads:
                    own, theirs = [], []
                    for _ in range(args.rounds):
                        own.append(last_object([OURS, file, text, threads, RUNS], threads))
                        theirs.append(last_object([sys.executable, __file__, "peer", file, text, RUNS], threads))
                    if own[0]["tokens"] != theirs[0]["tokens"]:
                        sys.exit(f"{name}, {kind}: {own[0]['tokens']} tokens here, {theirs[0]['tokens']} there")
                    size = text.stat().st_size / 1e6
                    pace = lambda runs: size / min(second for run in runs for second in run["seconds"])
                    results.append({"text": name, "kind": kind, "threads": threads, "tokens": own[0]["tokens"],
                                    "vitrail": pace(own), "tokenizers": pace(theirs)})
                    print(f"| {name} | {kind} | {threads} | {pace(own):.1f} | {pace(theirs):.1f} | "
                          f"**{pace(own) / pace(theirs):.2f}** |", flush=True)
                    if args.output:
                        args.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["peer"]:
        peer(*sys.argv[2:])
    else:
        main()
