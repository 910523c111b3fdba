"""Times training steps without labels beside PyTorch: DINO, MoCo v3 and CLIP on the same views or pairs, with the same shapes
and threads, in rounds that alternate.

    python benchmarks/compare/self_supervised.py [--rounds 3] [--threads 2] [--rows REGEX] [--output FILE.json]
    python benchmarks/compare/self_supervised.py peer --work JSON [--threads 2]

Ours is `vitrail pretrain` itself, whose steps are those of its metrics.jsonl, loading and log included; DINO and MoCo v3 read
ready-made views (--views), CLIP rendered scenes with their captions. PyTorch has its data in memory; its Vision Transformer
is written with scaled_dot_product_attention, CLIP is transformers'. Each side runs in a process of its own, one at a time;
the second form is the peer's. Prints a table in Markdown: the fastest and the median step of each side, the ratio of the
fastest, and of resident memory.
"""

import argparse
import copy
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from compare import VITRAIL, output_of, parser_of, report

WARMUP = 2  # steps
VIT = ["--model", "vit_tiny_patch16_224", "--model-kwargs", "img_size=32", "patch_size=4", "--drop-path", "0"]
ROWS = [{"name": name, "method": method, "dtype": dtype, "batch": batch, "steps": 6}
        for name, method, batch in [("DINO step: ViT 32/4, D 192, L 12, 2 x 32 px + 6 x 16 px, out_dim 4096, batch 32", "dino", 32),
                                    ("MoCo v3 step of the same net, batch 128", "mocov3", 128),
                                    ("CLIP step with two such towers, batch 128", "clip", 128)]
        for dtype in ("f32", "bf16")]


def sizes_of(work):
    return {"dino": [32, 32] + 6 * [16], "mocov3": [32, 32]}[work["method"]]


def view_file(work, folder):
    """Ready-made views of noise, enough for all steps."""
    import safetensors.torch
    import torch

    path = folder / f"{work['method']}.safetensors"
    if not path.exists():
        torch.manual_seed(0)
        count = work["batch"] * (work["steps"] + WARMUP)
        safetensors.torch.save_file({f"view{i}": torch.randn(count, 3, size, size) for i, size in enumerate(sizes_of(work))},
                                    path)
    return path


def scenes(work, folder):
    path = folder / "scenes"
    if not path.exists():
        count = work["batch"] * (work["steps"] + WARMUP)
        subprocess.run([VITRAIL, "scenes", path, "--count", str(count), "--size", "32"], check=True, capture_output=True)
    return path


def run_vitrail(work, folder, threads):
    """The steps of one run, in milliseconds, and its peak memory. CLIP's run leaves its model for the peer."""
    command = [VITRAIL, "pretrain", work["method"], "--epochs", 1, "--batch-size", work["batch"], "--threads", threads,
               "--output", folder / "runs", "--experiment", work["method"]]
    command += ["--amp"] if work["dtype"] == "bf16" else []
    if work["method"] == "clip":
        text = {"hidden_size": 192, "num_hidden_layers": 12, "num_attention_heads": 3, "intermediate_size": 768}
        vision = text | {"image_size": 32, "patch_size": 4}
        fields = lambda values: [f"{key}={value}" for key, value in values.items()]
        command += [scenes(work, folder), "--vision-kwargs", *fields(vision), "--text-kwargs", *fields(text)]
    else:
        command += [*VIT, "--views", view_file(work, folder)]
        if work["method"] == "dino":
            command += ["--out-dim", 4096, "--local-crops-number", 6, "--local-crops-size", 16, "--freeze-last-layer", 0]
    shutil.rmtree(folder / "runs" / work["method"], ignore_errors=True)
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command}\n{said[-2000:]}")
    lines = (folder / "runs" / work["method"] / "metrics.jsonl").read_text().splitlines()
    steps = [line for line in map(json.loads, lines) if "images_per_second" in line and "step" in line]
    return {"step_ms": [1e3 * step["images"] / step["images_per_second"] for step in steps[WARMUP:]],
            "peak_memory_bytes": usage.ru_maxrss * 1024}


def run_peer(work, folder, threads):
    return output_of([sys.executable, __file__, "peer", "--work", json.dumps(work | {"folder": str(folder)}), "--threads",
                      str(threads)])


def result_of(work, folder, rounds, threads):
    own, peer = [], []
    for _ in range(rounds):
        own.append(run_vitrail(work, folder, threads))
        peer.append(run_peer(work, folder, threads))
    figures = lambda runs: {"min": min(ms for run in runs for ms in run["step_ms"]),
                            "median": statistics.median(ms for run in runs for ms in run["step_ms"]),
                            "memory": max(run["peak_memory_bytes"] for run in runs)}
    return {key: work[key] for key in ("name", "dtype")} | {"vitrail": figures(own), "peers": {"torch": figures(peer)}}


def table_line(result):
    own, peer = result["vitrail"], result["peers"]["torch"]
    return (f"| {result['name']} | {result['dtype']} | {own['min']:.0f} / {own['median']:.0f} | "
            f"torch {peer['min']:.0f} / {peer['median']:.0f} | **{peer['min'] / own['min']:.2f}** "
            f"({peer['median'] / own['median']:.2f}) | {own['memory'] / peer['memory']:.2f} |")


def vit_of(torch, dim=192, depth=12, heads=3, patch=4, size=32):
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, heads, dim // heads).permute(2, 0, 3, 1, 4)
            x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, dim))
            return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))

    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, dim, patch, patch)
            self.cls = nn.Parameter(torch.zeros(1, 1, dim))
            self.positions = nn.Parameter(0.02 * torch.randn(1, 1 + (size // patch) ** 2, dim))
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.norm = nn.LayerNorm(dim)

        def positions_of(self, side):
            if side == size // patch:
                return self.positions
            grid = self.positions[:, 1:].reshape(1, size // patch, size // patch, dim).permute(0, 3, 1, 2)
            grid = F.interpolate(grid, size=(side, side), mode="bicubic").flatten(2).transpose(1, 2)
            return torch.cat([self.positions[:, :1], grid], 1)

        def forward(self, x):
            x = self.patches(x)
            side = x.shape[-1]
            x = torch.cat([self.cls.expand(len(x), -1, -1), x.flatten(2).transpose(1, 2)], 1) + self.positions_of(side)
            return self.norm(self.blocks(x))[:, 0]

    return Vit()


def dino_step(torch, dtype):
    from torch import nn
    from torch.nn import functional as F

    class Head(nn.Module):
        def __init__(self, width=192, hidden=2048, bottleneck=256, out=4096):
            super().__init__()
            self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
                                     nn.Linear(hidden, bottleneck))
            self.last = nn.utils.parametrizations.weight_norm(nn.Linear(bottleneck, out, bias=False))
            self.last.parametrizations.weight.original0.requires_grad = False

        def forward(self, x):
            return self.last(F.normalize(self.mlp(x), dim=-1))

    student = nn.ModuleList([vit_of(torch), Head()])
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.AdamW([p for p in student.parameters() if p.requires_grad], lr=1e-5, weight_decay=0.04, fused=True)
    centre = torch.zeros(1, 4096)

    def step(batch):
        nonlocal centre
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            with torch.no_grad():
                target = teacher[1](teacher[0](torch.cat(batch[:2]))).float()
            features = torch.cat([student[0](torch.cat(batch[:2])), student[0](torch.cat(batch[2:]))])
            outputs = student[1](features)
        logs = (outputs.float() / 0.1).log_softmax(-1).chunk(len(batch))
        probabilities = ((target - centre) / 0.04).softmax(-1).chunk(2)
        terms = [-(q * logs[v]).sum(-1).mean() for t, q in enumerate(probabilities) for v in range(len(logs)) if v != t]
        torch.stack(terms).mean().backward()
        centre = 0.9 * centre + 0.1 * target.mean(0, keepdim=True)
        with torch.no_grad():
            for p in student.parameters():
                if p.grad is not None:
                    p.grad.mul_((3 / (p.grad.norm() + 1e-6)).clamp(max=1))
            optimizer.step()
            optimizer.zero_grad()
            torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 0.004)

    return step


def mocov3_step(torch, dtype):
    from torch import nn
    from torch.nn import functional as F

    def mlp(widths, last_norm):
        layers = []
        for i, (a, b) in enumerate(zip(widths, widths[1:])):
            layers.append(nn.Linear(a, b, bias=False))
            if i < len(widths) - 2:
                layers += [nn.BatchNorm1d(b), nn.ReLU()]
            elif last_norm:
                layers.append(nn.BatchNorm1d(b, affine=False))
        return nn.Sequential(*layers)

    base = nn.Sequential(vit_of(torch), mlp([192, 4096, 4096, 256], True))
    base[0].patches.requires_grad_(False)
    momentum = copy.deepcopy(base).requires_grad_(False)
    predictor = mlp([256, 4096, 256], True)
    trained = [p for p in [*base.parameters(), *predictor.parameters()] if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, weight_decay=0.1, fused=True)

    def contrast(q, k):
        logits = F.normalize(q.float()) @ F.normalize(k.float()).T / 0.2
        return 0.4 * F.cross_entropy(logits, torch.arange(len(q)))

    def step(batch):
        with torch.no_grad():
            torch._foreach_lerp_(list(momentum.parameters()), list(base.parameters()), 0.01)
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            q = [predictor(base(view)) for view in batch]
            with torch.no_grad():
                k = [momentum(view) for view in batch]
        (contrast(q[0], k[1]) + contrast(q[1], k[0])).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def clip_step(torch, work):
    import transformers

    config = transformers.CLIPConfig.from_pretrained(pathlib.Path(work["folder"]) / "runs/clip/last")
    model = transformers.CLIPModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.1, fused=True)

    def step(batch):
        with torch.autocast("cpu", torch.bfloat16, enabled=work["dtype"] == "bf16"):
            loss = model(**batch, return_loss=True).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def captioned(torch, work):
    """Batches of noise with the scenes' captions, padded to the longest of their batch."""
    import tokenizers

    folder = pathlib.Path(work["folder"])
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "runs/clip/last/tokenizer.json"))
    texts = [entry["caption"] for entry in json.loads((folder / "scenes/captions.json").read_text())["annotations"]]
    encodings = [tokenizer.encode(text).ids for text in texts[:work["batch"] * (work["steps"] + WARMUP)]]
    for begin in range(0, len(encodings), work["batch"]):
        ids = encodings[begin:begin + work["batch"]]
        longest = max(map(len, ids))
        pad = lambda values, filler: torch.tensor([row + (longest - len(row)) * [filler] for row in values])
        yield {"pixel_values": torch.randn(len(ids), 3, 32, 32), "input_ids": pad(ids, ids[0][-1]),
               "attention_mask": pad([len(row) * [1] for row in ids], 0)}


def peer(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=json.loads, required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(words)
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    work = args.work
    if work["method"] == "clip":
        step, batches = clip_step(torch, work), list(captioned(torch, work))
    else:
        import safetensors.torch

        views = safetensors.torch.load_file(pathlib.Path(work["folder"]) / f"{work['method']}.safetensors")
        names = [f"view{i}" for i in range(len(views))]
        step = {"dino": dino_step, "mocov3": mocov3_step}[work["method"]](torch, work["dtype"])
        batches = list(zip(*(views[name].split(work["batch"]) for name in names)))
    times = []
    for batch in batches:
        begin = time.perf_counter()
        step(batch if isinstance(batch, dict) else list(batch))
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"step_ms": times[WARMUP:],
                      "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def main():
    args = parser_of(__doc__).parse_args()
    print("| work | dtype | vitrail, ms | peer, ms | times as fast | memory |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        report(args, lambda work: result_of(work, folder, args.rounds, args.threads), table_line, ROWS)


if __name__ == "__main__":
    peer(sys.argv[2:]) if sys.argv[1:2] == ["peer"] else main()
