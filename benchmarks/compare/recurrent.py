"""Times training steps (forward and backward) of PyTorch's recurrent networks: the work of
benchmarks/recurrent_bench.cpp.

    recurrent.py {lstm,gru,rnn,gru_before,mut1,mut2,mut3,nas} {f32,bf16} [--steps 5] [--threads 2] [--each-step]
    recurrent.py lengths f32 [--hidden 512]

The first: two layers of 512 units, 64 sequences of 128 steps; cells that PyTorch lacks are written step by step, with
the products of the input computed for all steps at once or, with --each-step, step by step too. The second: one LSTM,
32 sequences of 5 to 100 steps packed, beside 32 of 52. Prints the milliseconds of every timed step.
"""

import argparse
import time

import torch
from torch import nn


class Stepped(nn.Module):
    """Two layers of a cell of `gates` input products, and the weights of the state `step` takes."""

    def __init__(self, size, gates, weights, step, at_once):
        super().__init__()
        self.at_once = at_once
        self.inputs = nn.ModuleList(nn.Linear(size, gates * size) for _ in range(2))
        states = lambda: nn.ModuleList(nn.Linear(size, w * size, bias=False) for w in weights)
        self.states = nn.ModuleList(states() for _ in range(2))
        self.step = step

    def forward(self, x):
        for inputs, states in zip(self.inputs, self.states):
            h = c = torch.zeros(x.shape[0], x.shape[2], dtype=x.dtype)
            outputs = []
            products = inputs(x).unbind(1) if self.at_once else map(inputs, x.unbind(1))
            for x_t, raw in zip(products, x.unbind(1)):
                h, c = self.step(x_t, raw, h, c, states)
                outputs.append(h)
            x = torch.stack(outputs, 1)
        return x, None


def gru_before(x, raw, h, c, w):
    x_r, x_z, x_n = x.chunk(3, 1)
    r, z = (torch.cat([x_r, x_z], 1) + w[0](h)).sigmoid().chunk(2, 1)
    n = torch.tanh(x_n + w[1](r * h))
    return n + z * (h - n), c


def mut1(x, raw, h, c, w):
    x_z, x_r = x.chunk(2, 1)
    z, r = x_z.sigmoid(), (x_r + w[0](h)).sigmoid()
    return h + z * (torch.tanh(w[1](r * h) + raw.tanh()) - h), c


def mut2(x, raw, h, c, w):
    x_z, x_h = x.chunk(2, 1)
    u_z, u_r = w[0](h).chunk(2, 1)
    z, r = (x_z + u_z).sigmoid(), (raw + u_r).sigmoid()
    return h + z * (torch.tanh(w[1](r * h) + x_h) - h), c


def mut3(x, raw, h, c, w):
    x_z, x_r, x_h = x.chunk(3, 1)
    z, r = (x_z + w[0](h.tanh())).sigmoid(), (x_r + w[1](h)).sigmoid()
    return h + z * (torch.tanh(w[2](r * h) + x_h) - h), c


def nas(x, raw, h, c, w):
    x, u = x.chunk(8, 1), w[0](h).chunk(8, 1)
    m0 = ((x[0] + u[0]).sigmoid() * (x[1] + u[1]).relu()).tanh()
    m1 = ((x[2] + u[2]).sigmoid() + (x[3] * u[3]).relu()).tanh()
    m2 = ((x[4] + u[4]).tanh() * (x[5] + u[5]).sigmoid()).tanh()
    m3 = ((x[6] + u[6]).tanh() + (x[7] + u[7]).sigmoid()).sigmoid()
    c = (m0 + c).tanh() * m1
    return (c * (m2 + m3).tanh()).tanh(), c


def make(kind, at_once, size=512):
    if kind in ("lstm", "gru", "rnn"):
        return {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[kind](size, size, 2, batch_first=True)
    gates, weights, step = {
        "gru_before": (3, (2, 1), gru_before),
        "mut1": (2, (1, 1), mut1),
        "mut2": (2, (2, 1), mut2),
        "mut3": (3, (1, 1, 1), mut3),
        "nas": (8, (8,), nas),
    }[kind]
    return Stepped(size, gates, weights, step, at_once)


def timed(network, x, dtype, count, lengths=None):
    result = []
    x = x.requires_grad_()
    for _ in range(count + 1):
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
            packed = x
            if lengths is not None:
                packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            y = network(packed)[0]
            y = y if lengths is None else nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0]
        y.backward(torch.ones_like(y))
        result.append(round(1e3 * (time.perf_counter() - begin), 1))
    return result[1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("dtype", choices=["f32", "bf16"])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--each-step", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    if args.kind == "lengths":
        size = args.hidden
        network = nn.LSTM(size, size, batch_first=True)
        lengths = torch.tensor([5 + i * 37 % 32 * 95 // 31 for i in range(32)])
        equal = timed(network, torch.randn(32, 52, size), args.dtype, args.steps)
        unequal = timed(network, torch.randn(32, 100, size), args.dtype, args.steps, lengths)
        ratio = min(unequal) / int(lengths.sum()) / (min(equal) / (32 * 52))
        print("equal", equal, "unequal", unequal, f"per real step {ratio:.2f} times")
        return
    print(timed(make(args.kind, not args.each_step), torch.randn(64, 128, 512), args.dtype, args.steps))


if __name__ == "__main__":
    main()
