"""Times vitrail's language models beside PyTorch (transformers) and CTranslate2: the same work, shapes and threads, in
rounds that alternate.

    python benchmarks/compare/language.py [--rounds 3] [--threads 2] [--rows REGEX] [--output FILE.json]
    python benchmarks/compare/language.py peer NAME --work JSON [--threads 2]

Models have random weights and prompts random tokens; no token ends a text. Every side runs in a process of its own, one
at a time; the second form is such a process of a peer. Prints a table in Markdown. Training: the fastest and the median step,
and the share of the matrix peak as compare.py has them. Generating: tokens a second behind the prompt, all texts
together, and of the prompt, of the fastest run; a peer's time for the prompt is that of a run that adds one token.
"""

import argparse
import json
import pathlib
import resource
import statistics
import sys
import tempfile
import time

from compare import VITRAIL, output_of, parser_of, report


def training(name, dtype, steps, model="gpt2", batch=4, seq_len=256):
    return {"name": name, "mode": "train", "model": model, "dtype": dtype, "batch": batch, "seq_len": seq_len, "steps": steps,
            "peers": [("torch", dtype)]}


def generating(name, dtype, peers, batch=1, prompt=32, new=64, beams=1, model="gpt2", steps=5):
    return {"name": name, "mode": "generate", "model": model, "dtype": dtype, "batch": batch, "prompt": prompt, "new": new,
            "beams": beams, "steps": steps, "peers": peers}


# What each dtype is measured against: a peer without it runs in the nearest that it has.
PEERS = {"f32": [("torch", "f32"), ("ctranslate2", "f32")], "bf16": [("torch", "bf16")], "int8": [("ctranslate2", "int8")]}

ROWS = [
    training("train GPT-2 124M, 4 x 256 tokens", "f32", 3),
    training("train GPT-2 124M, 4 x 256 tokens", "bf16", 4),
    *(generating(name, dtype, PEERS[dtype], **how)
      for name, how in [("GPT-2 124M, 32 + 64 tokens", {}), ("the same, 5 beams", {"beams": 5}),
                        ("the same, 8 texts", {"batch": 8}), ("the same, a prompt of 512", {"prompt": 512})]
      for dtype in ("f32", "bf16", "int8")),
]


def run_vitrail(work, threads):
    command = [VITRAIL, "bench", work["mode"], "--model", work["model"], "--batch-size", work["batch"], "--steps", work["steps"],
               "--threads", threads, "--dtype", work["dtype"], "--json"]
    if work["mode"] == "train":
        command += ["--seq-len", work["seq_len"]]
    else:
        command += ["--prompt-len", work["prompt"], "--new-tokens", work["new"], "--num-beams", work["beams"]]
    return output_of([str(word) for word in command])


def run_peer(peer, dtype, work, threads):
    return output_of([sys.executable, __file__, "peer", peer, "--work", json.dumps(work | {"dtype": dtype}), "--threads",
                      str(threads)])


def result_of(work, rounds, threads):
    own, peers = [], {}
    for _ in range(rounds):
        own.append(run_vitrail(work, threads))
        for peer, dtype in work["peers"]:
            peers.setdefault(f"{peer} {dtype}", []).append(run_peer(peer, dtype, work, threads))
    result = {"name": work["name"], "mode": work["mode"], "dtype": work["dtype"], "work": work, "cpu": own[0]["cpu"],
              "vitrail": {"memory": max(run["peak_memory_bytes"] for run in own)}, "peers": {}}
    memory = lambda runs: max(run["peak_memory_bytes"] for run in runs)
    if work["mode"] == "train":
        result["vitrail"] |= {"min": min(run["step_ms"]["min"] for run in own),
                              "median": statistics.median(run["step_ms"]["median"] for run in own),
                              "mfu": max(run["mfu"] for run in own), "peak_gflops": max(run["peak_gflops"] for run in own)}
        for name, runs in peers.items():
            steps = [step for run in runs for step in run["step_ms"]]
            result["peers"][name] = {"min": min(steps), "median": statistics.median(steps), "memory": memory(runs)}
    else:
        best = max(own, key=lambda run: run["tokens_per_second"])
        result["vitrail"] |= {key: best[key] for key in ("tokens_per_second", "bandwidth_share", "bandwidth_bytes_per_second")}
        result["vitrail"]["prompt_tokens_per_second"] = max(run["prompt_tokens_per_second"] for run in own)
        for name, runs in peers.items():
            result["peers"][name] = {key: max(run[key] for run in runs)
                                     for key in ("tokens_per_second", "prompt_tokens_per_second")} | {"memory": memory(runs)}
    return result


def table_line(result):
    own, peers = result["vitrail"], result["peers"]
    # CTranslate2's process has converted the model before.
    held = [peer["memory"] for name, peer in peers.items() if name.startswith("torch")]
    memory = f"{own['memory'] / held[0]:.2f}" if held else ""
    if result["mode"] == "train":
        best = min(peer["min"] for peer in peers.values())
        others = ", ".join(f"{name} {peer['min']:.0f} / {peer['median']:.0f} ms" for name, peer in peers.items())
        return (f"| {result['name']} | {result['dtype']} | {own['min']:.0f} / {own['median']:.0f} ms | {100 * own['mfu']:.0f} % of "
                f"{own['peak_gflops']:.0f} GF/s | {others} | **{best / own['min']:.2f}** | {memory} |")
    best = max(peer["tokens_per_second"] for peer in peers.values())
    others = ", ".join(f"{name} {peer['tokens_per_second']:.0f} ({peer['prompt_tokens_per_second']:.0f})"
                       for name, peer in peers.items())
    return (f"| {result['name']} | {result['dtype']} | {own['tokens_per_second']:.0f} ({own['prompt_tokens_per_second']:.0f}) | "
            f"{100 * own['bandwidth_share']:.0f} % of {own['bandwidth_bytes_per_second'] / 1e9:.0f} GB/s | {others} | "
            f"**{own['tokens_per_second'] / best:.2f}** | {memory} |")


def make_gpt2(work):
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(bos_token_id=None, eos_token_id=None)
    return transformers.GPT2LMHeadModel(config)


def torch_training(work):
    import torch

    model = make_gpt2(work).train()
    ids = torch.randint(model.config.vocab_size, (work["batch"], work["seq_len"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.1, fused=True)
    times = []
    for _ in range(2 + work["steps"]):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=work["dtype"] == "bf16"):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(1e3 * (time.perf_counter() - begin))
    return {"step_ms": times[2:]}


def rates(generate, work):
    """Of the fastest of several runs, with generate(n) adding n tokens to each text."""
    def fastest(n):
        times = []
        for _ in range(1 + work["steps"]):
            begin = time.perf_counter()
            generate(n)
            times.append(time.perf_counter() - begin)
        return min(times[1:])

    first, whole = fastest(1), fastest(work["new"])
    return {"tokens_per_second": work["batch"] * (work["new"] - 1) / (whole - first),
            "prompt_tokens_per_second": work["batch"] * work["prompt"] / first}


def torch_generation(work):
    import torch

    model = make_gpt2(work).eval().to({"f32": torch.float32, "bf16": torch.bfloat16}[work["dtype"]])
    ids = torch.randint(model.config.vocab_size, (1, work["prompt"])).repeat(work["batch"], 1)

    @torch.inference_mode()
    def generate(n):
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, min_new_tokens=n, num_beams=work["beams"],
                       do_sample=False, pad_token_id=0)

    return rates(generate, work)


def ctranslate2_generation(work, threads):
    import ctranslate2
    import tokenizers
    import torch
    import transformers

    with tempfile.TemporaryDirectory() as folder:
        source, converted = pathlib.Path(folder) / "source", pathlib.Path(folder) / "converted"
        model = make_gpt2(work)
        model.save_pretrained(source)
        words = {f"t{i}": i for i in range(model.config.vocab_size)}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="t0"))
        transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="t0", bos_token="t0",
                                             eos_token="t0").save_pretrained(source)
        ctranslate2.converters.TransformersConverter(str(source)).convert(str(converted))
        generator = ctranslate2.Generator(str(converted), intra_threads=threads,
                                          compute_type={"f32": "float32", "int8": "int8"}[work["dtype"]])
        prompt = [f"t{int(i)}" for i in torch.randint(1, model.config.vocab_size, (work["prompt"],))]
        generate = lambda n: generator.generate_batch([prompt] * work["batch"], max_length=n, min_length=n,
                                                      beam_size=work["beams"], include_prompt_in_result=False)
        return rates(generate, work)


def peer(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=["torch", "ctranslate2"])
    parser.add_argument("--work", type=json.loads, required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(words)
    if args.peer == "torch":
        import torch

        torch.set_num_threads(args.threads)
        found = torch_training(args.work) if args.work["mode"] == "train" else torch_generation(args.work)
    else:
        found = ctranslate2_generation(args.work, args.threads)
    print(json.dumps(found | {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def main():
    args = parser_of(__doc__).parse_args()
    print("| work | dtype | vitrail | share | peers | times as fast | memory |")
    print("|---|---|---|---|---|---|---|")
    report(args, lambda work: result_of(work, args.rounds, args.threads), table_line, ROWS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["peer"]:
        peer(sys.argv[2:])
    else:
        main()
