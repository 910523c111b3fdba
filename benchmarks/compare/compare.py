"""Times vitrail beside PyTorch, OpenVINO and ONNX Runtime: the same work, shapes and threads, in rounds that alternate.

    python benchmarks/compare/compare.py [--rounds 3] [--threads 2] [--rows REGEX] [--output FILE.json]

Run it with the Python of a virtual environment that has benchmarks/compare/requirements.txt; vitrail is
build/bin/vitrail. Every side runs in a process of its own, one at a time. Prints a table in Markdown: for each row the
fastest and the median step of each side, the ratio of the fastest steps to the best peer's, and the share of the matrix
peak (oneDNN's packed GEMM in that dtype, measured by vitrail in the same run) that each uses; of training also the ratio of
resident memory.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VITRAIL = HERE.parent.parent / "build/bin/vitrail"
SMALL = {"img_size": 32, "patch_size": 4}


def row(name, mode, model, batch, dtype, steps, peers, kwargs=None, flags=(), peer_kwargs=None):
    return {"name": name, "mode": mode, "model": model, "batch": batch, "dtype": dtype, "steps": steps, "peers": peers,
            "kwargs": kwargs or {}, "flags": list(flags), "peer_kwargs": peer_kwargs or kwargs or {}}


TORCH = [("torch", None), ("torch-compile", None)]
EAGER = [("torch", None)]
ALL = [("torch", None), ("torch-compile", None), ("openvino", None), ("onnxruntime", None)]
BF16 = [("torch", None), ("torch-compile", None), ("openvino", None)]
INT8 = [("onnxruntime", "int8"), ("openvino", "bf16")]
# A small decoder beside a small encoder, in the words of both.
MAE = ["--decoder-dim", 192, "--decoder-depth", 4, "--decoder-heads", 3]
HUB_MAE = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536, "decoder_hidden_size": 192,
           "decoder_num_hidden_layers": 4, "decoder_num_attention_heads": 3, "decoder_intermediate_size": 768}
SMALL_VIT = "vit_small_patch16_224"
TINY, BASE = "vit_tiny_patch16_224", "vit_base_patch16_224"
SWIN = "swin_tiny_patch4_window7_224"

ROWS = [
    row("train 32 px / 4, dim 192, batch 64", "train", TINY, 64, "bf16", 8, TORCH, SMALL),
    row("train 32 px / 4, dim 192, batch 64", "train", TINY, 64, "f32", 6, TORCH, SMALL),
    row("train vit_tiny 224, batch 16", "train", TINY, 16, "bf16", 8, TORCH),
    row("train vit_tiny 224, batch 16", "train", TINY, 16, "f32", 6, TORCH),
    row("train vit_base 224, batch 8", "train", BASE, 8, "bf16", 3, TORCH),
    row("train vit_base 224, batch 8", "train", BASE, 8, "f32", 2, TORCH),
    row("infer vit_base, batch 1", "infer", BASE, 1, "f32", 20, ALL),
    row("infer vit_base, batch 8", "infer", BASE, 8, "f32", 5, ALL),
    row("infer vit_base, batch 1", "infer", BASE, 1, "bf16", 30, BF16),
    row("infer vit_base, batch 8", "infer", BASE, 8, "bf16", 8, BF16),
    row("infer vit_base, batch 1", "infer", BASE, 1, "int8", 30, INT8),
    row("infer vit_base, batch 8", "infer", BASE, 8, "int8", 8, INT8),
    row("train vit_tiny 512 px (1025 tokens), batch 1", "train", TINY, 1, "bf16", 8, EAGER, {"img_size": 512}),
    row("train vit_tiny 1024 px (4097 tokens), batch 1", "train", TINY, 1, "bf16", 3, EAGER, {"img_size": 1024}),
    row("train swin_tiny, batch 8", "train", SWIN, 8, "bf16", 6, TORCH),
    row("train swin_tiny, batch 8", "train", SWIN, 8, "f32", 4, TORCH),
    row("train mvitv2_tiny, batch 8", "train", "mvitv2_tiny", 8, "bf16", 4, TORCH),
    row("train mixer_s16, batch 16", "train", "mixer_s16_224", 16, "bf16", 6, TORCH),
    row("train resmlp_12, batch 16", "train", "resmlp_12_224", 16, "bf16", 6, TORCH),
    row("train resnet50, batch 8", "train", "resnet50", 8, "bf16", 6, TORCH),
    row("train resnet50, batch 8", "train", "resnet50", 8, "f32", 4, TORCH),
    row("infer swin_tiny, batch 8", "infer", SWIN, 8, "f32", 16, ALL),
    row("infer swin_tiny, batch 8", "infer", SWIN, 8, "bf16", 24, BF16),
    row("infer resnet50, batch 8", "infer", "resnet50", 8, "f32", 16, ALL),
    row("infer resnet50, batch 8", "infer", "resnet50", 8, "bf16", 24, BF16),
    *(row(f"pretrain vit_small 224, {ratio:.0%} hidden, batch 16", "pretrain", SMALL_VIT, 16, dtype, 5, EAGER,
          flags=[*MAE, "--mask-ratio", ratio], peer_kwargs=HUB_MAE | {"mask_ratio": ratio})
      for dtype in ("bf16", "f32") for ratio in (0.75, 0.5, 0.25)),
]


def output_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_vitrail(work, threads, program=(VITRAIL,)):
    command = [*program, "bench", work["mode"], "--model", work["model"], "--batch-size", work["batch"], "--steps",
               work["steps"], "--threads", threads, "--json", *work["flags"]]
    command += ["--amp", "--int8"] if work["dtype"] == "int8" else ["--amp", "--amp-dtype", work["dtype"]]
    if work["kwargs"]:
        command += ["--model-kwargs", *(f"{key}={value}" for key, value in work["kwargs"].items())]
    return output_of([str(word) for word in command])


def run_peer(peer, dtype, work, threads):
    command = [sys.executable, HERE / "peers.py", peer, work["mode"], "--model", work["model"], "--kwargs",
               json.dumps(work["peer_kwargs"]), "--batch-size", work["batch"], "--dtype", dtype or work["dtype"], "--steps",
               work["steps"], "--threads", threads]
    return output_of([str(word) for word in command])


def compare(work, rounds, threads):
    """One row: {"vitrail": {...}, "peers": {name: {...}}} with the fastest and median step and the memory of each."""
    own, peers = [], {}
    for _ in range(rounds):
        own.append(run_vitrail(work, threads))
        for peer, dtype in work["peers"]:
            peers.setdefault(f"{peer} {dtype}" if dtype else peer, []).append(run_peer(peer, dtype, work, threads))
    flops = own[0]["flops_per_image"] * work["batch"]
    peak = max(run["peak_gflops"] for run in own)
    mfu = lambda fastest: flops / (fastest * 1e-3) / (peak * 1e9)
    fastest = min(run["step_ms"]["min"] for run in own)
    result = {
        "name": work["name"], "mode": work["mode"], "dtype": work["dtype"], "cpu": own[0]["cpu"], "peak_gflops": peak,
        "vitrail": {"min": fastest, "median": statistics.median(run["step_ms"]["median"] for run in own),
                    "mfu": mfu(fastest), "memory": max(run["peak_memory_bytes"] for run in own)},
        "peers": {},
    }
    for name, runs in peers.items():
        steps = [step for run in runs for step in run["step_ms"]]
        result["peers"][name] = {"min": min(steps), "median": statistics.median(steps), "mfu": mfu(min(steps)),
                                 "memory": max(run["peak_memory_bytes"] for run in runs)}
    return result


def table_line(result):
    own = result["vitrail"]
    # In inference a peer's process holds the exporter too.
    memory = lambda peer: f"{own['memory'] / peer['memory']:.2f}" if result["mode"] != "infer" else ""
    best_name, best = min(result["peers"].items(), key=lambda item: item[1]["min"])
    others = ", ".join(f"{name} {peer['min']:.0f} / {peer['median']:.0f}" for name, peer in result["peers"].items())
    return (f"| {result['name']} | {result['dtype']} | {own['min']:.1f} / {own['median']:.1f} | {100 * own['mfu']:.0f} % of "
            f"{result['peak_gflops']:.0f} | {others} | {best_name} {100 * best['mfu']:.0f} % | "
            f"**{best['min'] / own['min']:.2f}** ({best['median'] / own['median']:.2f}) | "
            f"{memory(best)} |")


def parser_of(description):
    """The flags that all comparisons take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", default="", help="only rows whose name and dtype match this regular expression")
    parser.add_argument("--output", type=pathlib.Path, help="also write all figures as JSON")
    return parser


def report(args, result_of, line_of, rows=ROWS):
    """Measures the rows that were asked for, prints each and writes what there is so far; returns all results."""
    results = []
    for work in rows:
        if re.search(args.rows, f"{work['name']} {work['dtype']}"):
            results.append(result_of(work))
            print(line_of(results[-1]), flush=True)
            if args.output:
                args.output.write_text(json.dumps(results, indent=1) + "\n")
    return results


def main():
    args = parser_of(__doc__).parse_args()
    if not VITRAIL.exists():
        sys.exit(f"{VITRAIL} is missing: run script/bootstrap first")
    print("| work | dtype | vitrail, ms | of the peak, GF/s | peers, ms | best peer, of the peak | times as fast | memory |")
    print("|---|---|---|---|---|---|---|---|")
    report(args, lambda work: compare(work, args.rounds, args.threads), table_line)


if __name__ == "__main__":
    main()
