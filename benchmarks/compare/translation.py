"""Times vitrail's translators beside PyTorch (training) and CTranslate2 (translating): the same work, shapes and threads,
in rounds that alternate.

    python benchmarks/compare/translation.py MULTI30K FOLDER [--max-length 100] [--rounds 3] [--threads 2] [--rows REGEX]
    python benchmarks/compare/translation.py peer NAME --work JSON [--threads 2]

MULTI30K is a folder with train.de, train.en and test_2016_flickr.de; FOLDER is a translator that
`vitrail train --task translate` made of them with 8,000 pieces (best/ of its run folder). Every side runs in a process of
its own, one at a time; the second form is such a process of a peer. Prints a table in Markdown.

Training takes from both the lengths alone: a model of FOLDER's shape with random weights learns random tokens, by AdamW
with label smoothing. Ours has about 128 pairs in one row without padding; PyTorch has 128 pairs, padded, that were drawn
at random or that are neighbours after sorting by length. Padding counts as no work: target tokens a second, each batch by
its fastest step.

Translating: the lines of test_2016_flickr.de a second with 5 beams, tokenizing and joining included. Ours is the whole
command, start and loading included; CTranslate2 has loaded the model, sorts the lines into batches, and has its threads
inside of one batch or one for each of two, whichever is faster. --max-length cuts both, so that a model that has learned
little serves too: its translations do not end.
"""

import argparse
import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

from compare import VITRAIL, output_of, parser_of, report

PAIRS = 128  # of a batch


def training(dtype, steps=3):
    return {"name": "train a translator", "mode": "train", "dtype": dtype, "steps": steps, "batches": 6,
            "peers": ["random", "sorted"]}


def translating(dtype):
    return {"name": "translate test_2016, 5 beams", "mode": "translate", "dtype": dtype, "beams": 5, "peers": ["ctranslate2"]}


ROWS = [training("f32"), training("bf16"), translating("f32"), translating("int8")]


def lengths_of(work):
    """The tokens, with their ends, of each training pair, in an order drawn at random."""
    import sentencepiece

    folder, data = pathlib.Path(work["folder"]), pathlib.Path(work["multi30k"])
    def counts(pieces, text):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / pieces))
        return [len(ids) + 1 for ids in processor.encode((data / text).read_text(encoding="utf-8").splitlines())]

    pairs = list(zip(counts("source.spm", "train.de"), counts("target.spm", "train.en"), strict=True))
    random.Random(0).shuffle(pairs)
    return pairs


def run_vitrail(work, threads):
    if work["mode"] == "train":
        pairs = lengths_of(work)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.writelines(f"{source} {target}\n" for source, target in pairs)
            file.flush()
            tokens = PAIRS * sum(target for _, target in pairs) // len(pairs)
            run = output_of([str(word) for word in (
                VITRAIL, "bench", "train", "--model", work["folder"], "--lengths", file.name, "--batch-size", tokens,
                "--steps", work["steps"], "--threads", threads, "--dtype", work["dtype"], "--json")])
        fastest = run["tokens_per_second"] * run["step_ms"]["median"] / run["step_ms"]["min"]
        return run | {"tokens_per_second": fastest}
    command = [VITRAIL, "translate", work["folder"], source_of(work), "--num-beams", work["beams"], "--max-length",
               work["max_length"], "--threads", threads,
               "--dtype", work["dtype"]]
    begin = time.perf_counter()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    return {"lines_per_second": len(done.stdout.splitlines()) / (time.perf_counter() - begin)}


def source_of(work):
    return pathlib.Path(work["multi30k"]) / "test_2016_flickr.de"


def run_peer(peer, work, threads):
    return output_of([sys.executable, __file__, "peer", peer, "--work", json.dumps(work), "--threads", str(threads)])


def result_of(work, rounds, threads):
    key = "tokens_per_second" if work["mode"] == "train" else "lines_per_second"
    own, peers = [], {}
    for _ in range(rounds):
        own.append(run_vitrail(work, threads))
        for peer in work["peers"]:
            peers.setdefault(peer, []).append(run_peer(peer, work, threads))
    best = max(own, key=lambda run: run[key])
    result = {"name": work["name"], "mode": work["mode"], "dtype": work["dtype"], "work": work, "vitrail": best,
              "peers": {name: max(runs, key=lambda run: run[key]) for name, runs in peers.items()}}
    result["times_as_fast"] = {name: best[key] / peer[key] for name, peer in result["peers"].items()}
    return result


def table_line(result):
    key = "tokens_per_second" if result["mode"] == "train" else "lines_per_second"
    own = result["vitrail"]
    share = ""
    if result["mode"] == "train":
        share = f"{100 * own['mfu']:.0f} % of {own['peak_gflops']:.0f} GF/s"
    peers = ", ".join(f"{name} {peer[key]:.0f}" for name, peer in result["peers"].items())
    times = ", ".join(f"**{times:.2f}**" for times in result["times_as_fast"].values())
    return f"| {result['name']} | {result['dtype']} | {own[key]:.0f} | {share} | {peers} | {times} |"


def padded_batches(work, kind):
    """Some batches of lengths: of pairs drawn at random, or evenly spaced over all pairs sorted by length."""
    pairs = lengths_of(work)
    if kind == "sorted":
        pairs.sort(key=lambda pair: (pair[1], pair[0]))
    batches = [pairs[i:i + PAIRS] for i in range(0, len(pairs) - PAIRS, PAIRS)]
    count = work["batches"]
    return batches[:count] if kind == "random" else [batches[(2 * i + 1) * len(batches) // (2 * count)] for i in range(count)]


def torch_training(kind, work):
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.MarianConfig.from_pretrained(work["folder"])
    model = transformers.MarianMTModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=-100)

    def padded(lengths):
        ids = torch.randint(1, config.vocab_size - 1, (len(lengths), max(lengths)))
        return ids, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]

    def step(batch):
        (source, source_mask), (target, target_mask) = batch
        with torch.autocast("cpu", torch.bfloat16, enabled=work["dtype"] == "bf16"):
            logits = model(input_ids=source, attention_mask=source_mask.long(), decoder_input_ids=target).logits
        labels = target.roll(-1, 1).masked_fill(~target_mask, -100)
        loss_of(logits.float().flatten(0, 1), labels.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    tokens, seconds, padding = 0, 0.0, []
    for lengths in padded_batches(work, kind):
        batch = [padded(side) for side in zip(*lengths)]
        times = []
        for _ in range(1 + work["steps"]):
            begin = time.perf_counter()
            step(batch)
            times.append(time.perf_counter() - begin)
        tokens += sum(target for _, target in lengths)
        seconds += min(times[1:])
        padding += [float((~mask).float().mean()) for _, mask in batch]
    return {"tokens_per_second": tokens / seconds, "padding": sum(padding) / len(padding)}


def ctranslate2_translation(work, threads):
    import ctranslate2
    import sentencepiece

    folder = pathlib.Path(work["folder"])
    source = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    target = sentencepiece.SentencePieceProcessor(model_file=str(folder / "target.spm"))
    lines = source_of(work).read_text(encoding="utf-8").splitlines()
    best = 0.0
    with tempfile.TemporaryDirectory() as converted:
        ctranslate2.converters.TransformersConverter(work["folder"]).convert(converted, force=True)
        for inter in {1, threads}:
            translator = ctranslate2.Translator(converted, inter_threads=inter, intra_threads=threads // inter,
                                                compute_type={"f32": "float32", "int8": "int8"}[work["dtype"]])
            for size in (1024, 2048, 4096):
                begin = time.perf_counter()
                tokens = [pieces + ["</s>"] for pieces in source.encode(lines, out_type=str)]
                results = translator.translate_batch(tokens, beam_size=work["beams"], max_batch_size=size,
                                                     batch_type="tokens", max_decoding_length=work["max_length"])
                target.decode([result.hypotheses[0] for result in results])
                best = max(best, len(lines) / (time.perf_counter() - begin))
    return {"lines_per_second": best}


def peer(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=["random", "sorted", "ctranslate2"])
    parser.add_argument("--work", type=json.loads, required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(words)
    if args.peer == "ctranslate2":
        found = ctranslate2_translation(args.work, args.threads)
    else:
        import torch

        torch.set_num_threads(args.threads)
        found = torch_training(args.peer, args.work)
    print(json.dumps(found | {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def main():
    parser = parser_of(__doc__)
    parser.add_argument("multi30k", metavar="MULTI30K")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--max-length", type=int, default=100, help="most tokens of a translation")
    args = parser.parse_args()
    given = {"multi30k": args.multi30k, "folder": args.folder, "max_length": args.max_length}
    rows = [work | given for work in ROWS]
    print("| work | dtype | vitrail: target tokens or lines a second | share | peers | times as fast |")
    print("|---|---|---|---|---|---|")
    report(args, lambda work: result_of(work, args.rounds, args.threads), table_line, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["peer"]:
        peer(sys.argv[2:])
    else:
        main()
