"""Times training of a Vision Transformer by PyTorch's DistributedDataParallel over Gloo: the peer of benchmarks/network.

    mpirun -n 2 python benchmarks/compare/ddp.py --steps 20 [--batch 16] [--init tcp://node1:29500]

The network is vit_tiny_patch16_224 as torch.nn.TransformerEncoder has it (pre-norm, GELU), in bf16 by autocast, with AdamW and
one thread a rank. Rank 0 prints one line of JSON: images a second of all ranks at the fastest and the median step. Without
mpirun it is one process.
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn


class Vit(nn.Module):
    def __init__(self, dim=192, depth=12, heads=3, size=224, patch=16, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.blocks(x)[:, 0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--bucket-mb", type=float, default=25, help="DistributedDataParallel's default")
    parser.add_argument("--init", default="tcp://127.0.0.1:29500")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ranks = int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))
    model = Vit()
    if ranks > 1:
        dist.init_process_group("gloo", init_method=args.init, rank=rank, world_size=ranks)
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=args.bucket_mb)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    x, labels = torch.randn(args.batch, 3, 224, 224), torch.arange(args.batch) % 10
    seconds = []
    for step in range(args.warmup + args.steps):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step >= args.warmup:
            seconds.append(time.perf_counter() - begin)
    if rank == 0:
        images = args.batch * ranks
        print(json.dumps({"images_per_second": round(images / min(seconds), 2),
                          "median": round(images / statistics.median(seconds), 2), "torch": torch.__version__}))
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
