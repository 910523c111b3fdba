"""Writes tests/golden/nn/recurrent.safetensors: what recurrent networks compute, in float64, and their gradients.

    python tools/golden/recurrent.py

RNN, LSTM, GRU, their cells and packed sequences are torch's. The GRU that resets before the product (Cho et al. 2014),
MUT1 to MUT3 (Jozefowicz et al. 2015) and the NAS cell (after NASCell of TensorFlow Addons) are written out here, one
sequence and one step after the other.

A case NAME has its inputs NAME.x, NAME.h_0, NAME.c_0 and NAME.lengths, its parameters NAME.p.*, its results NAME.y,
NAME.h_n and NAME.c_n with their gradients NAME.dy, NAME.dh_n and NAME.dc_n, and the gradients NAME.dx, NAME.dh_0,
NAME.dc_0 and NAME.g.*. Needs torch 2.13.0 and safetensors.
"""

import pathlib

import torch
from safetensors.torch import save_file
from torch import nn

generator = torch.Generator().manual_seed(20261123)
tensors = {}


def random(*shape, scale=1.0):
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


class Steps(nn.Module):
    """Layers of a cell `step(self, suffix, x, h, c) -> h, c`, whose parameters `shapes(inputs)` lists by their names."""

    memory = False

    def __init__(self, inputs, hidden, layers=1, bidirectional=False, proj=0):
        super().__init__()
        self.hidden, self.proj, self.layers = hidden, proj, layers
        self.directions = 2 if bidirectional else 1
        for layer in range(layers):
            for direction in range(self.directions):
                for name, shape in self.shapes(inputs).items():
                    self.register_parameter(name + self.suffix(layer, direction), nn.Parameter(torch.zeros(shape)))
            inputs = self.directions * (proj or hidden)

    def suffix(self, layer, direction):
        return f"_l{layer}" + ("_reverse" if direction else "")

    def get(self, name, suffix):
        return getattr(self, name + suffix, None)

    def forward(self, x, state, lengths):
        h_0, c_0 = state if self.memory else (state, torch.zeros(state.shape[0], state.shape[1], self.hidden).to(state))
        lengths = lengths if lengths is not None else torch.full((x.shape[0],), x.shape[1])
        h_n, c_n = [], []
        for layer in range(self.layers):
            outputs = []
            for direction in range(self.directions):
                suffix = self.suffix(layer, direction)
                index = layer * self.directions + direction
                sequences, hs, cs = [], [], []
                for b, length in enumerate(lengths.tolist()):
                    h, c = h_0[index, b], c_0[index, b]
                    ys = [torch.zeros(self.proj or self.hidden).to(x)] * x.shape[1]
                    for t in reversed(range(length)) if direction else range(length):
                        h, c = self.step(suffix, x[b, t], h, c)
                        ys[t] = h
                    sequences.append(torch.stack(ys))
                    hs.append(h)
                    cs.append(c)
                outputs.append(torch.stack(sequences))
                h_n.append(torch.stack(hs))
                c_n.append(torch.stack(cs))
            x = torch.cat(outputs, -1)
        h_n, c_n = torch.stack(h_n), torch.stack(c_n)
        return x, (h_n, c_n) if self.memory else h_n


class GruBefore(Steps):
    def shapes(self, inputs):
        h = self.hidden
        return {"weight_ih": (3 * h, inputs), "weight_hh": (3 * h, h), "bias_ih": (3 * h,), "bias_hh": (3 * h,)}

    def step(self, suffix, x, h, c):
        w_r, w_z, w_n = self.get("weight_ih", suffix).chunk(3)
        u_r, u_z, u_n = self.get("weight_hh", suffix).chunk(3)
        b_r, b_z, b_n = (self.get("bias_ih", suffix) + self.get("bias_hh", suffix)).chunk(3)
        r = torch.sigmoid(w_r @ x + u_r @ h + b_r)
        z = torch.sigmoid(w_z @ x + u_z @ h + b_z)
        n = torch.tanh(w_n @ x + u_n @ (r * h) + b_n)
        return (1 - z) * n + z * h, c


class Mut(Steps):
    """x_in is x, or W_in x if the sizes differ."""

    def shapes(self, inputs):
        h = self.hidden
        project = {} if inputs == h or self.kind == 3 else {"weight_in": (h, inputs)}
        inputs = h if project else inputs
        weights = {f"weight_x{k}": inputs for k in "zrh"} | {f"weight_h{k}": h for k in "zrh"}
        for missing in {1: ("weight_xh", "weight_hz"), 2: ("weight_xr",), 3: ()}[self.kind]:
            del weights[missing]
        return project | {name: (h, size) for name, size in weights.items()} | {f"bias_{k}": (h,) for k in "zrh"}

    def step(self, suffix, x, h, c):
        def get(name):
            return self.get(name, suffix)

        if get("weight_in") is not None:
            x = get("weight_in") @ x
        if self.kind == 1:
            z = torch.sigmoid(get("weight_xz") @ x + get("bias_z"))
            r = torch.sigmoid(get("weight_xr") @ x + get("weight_hr") @ h + get("bias_r"))
            n = torch.tanh(get("weight_hh") @ (r * h) + torch.tanh(x) + get("bias_h"))
        else:
            into_z, into_r = (h, x) if self.kind == 2 else (torch.tanh(h), get("weight_xr") @ x)
            z = torch.sigmoid(get("weight_xz") @ x + get("weight_hz") @ into_z + get("bias_z"))
            r = torch.sigmoid(into_r + get("weight_hr") @ h + get("bias_r"))
            n = torch.tanh(get("weight_hh") @ (r * h) + get("weight_xh") @ x + get("bias_h"))
        return n * z + h * (1 - z), c


class Mut1(Mut):
    kind = 1


class Mut2(Mut):
    kind = 2


class Mut3(Mut):
    kind = 3


class Nas(Steps):
    memory = True

    def shapes(self, inputs):
        h, p = self.hidden, self.proj or self.hidden
        project = {"weight_hr": (self.proj, h)} if self.proj else {}
        return {"weight_ih": (8 * h, inputs), "weight_hh": (8 * h, p), "bias_hh": (8 * h,)} | project

    def step(self, suffix, x, h, c):
        x = (self.get("weight_ih", suffix) @ x).chunk(8)
        u = (self.get("weight_hh", suffix) @ h + self.get("bias_hh", suffix)).chunk(8)
        sigmoid, tanh, relu = torch.sigmoid, torch.tanh, torch.relu
        l = [sigmoid(x[0] + u[0]), relu(x[1] + u[1]), sigmoid(x[2] + u[2]), relu(x[3] * u[3]),
             tanh(x[4] + u[4]), sigmoid(x[5] + u[5]), tanh(x[6] + u[6]), sigmoid(x[7] + u[7])]  # fmt: skip
        m = [tanh(l[0] * l[1]), tanh(l[2] + l[3]), tanh(l[4] * l[5]), sigmoid(l[6] + l[7])]
        c = tanh(m[0] + c) * m[1]
        h = tanh(c * tanh(m[2] + m[3]))
        return (self.get("weight_hr", suffix) @ h if self.proj else h), c


class Packed(nn.Module):
    """A module of torch.nn on padded sequences of the given lengths."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x, state, lengths):
        if lengths is None:
            return self.module(x, state)
        first = self.module.batch_first
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False)
        y, state = self.module(packed, state)
        time = x.shape[1 if first else 0]
        return nn.utils.rnn.pad_packed_sequence(y, batch_first=first, total_length=time)[0], state


def case(name, module, x, h_0, c_0=None, lengths=None, p=None):
    """`p`: the module with the parameters, if it is not the one that is called."""
    module = module.double()
    parameters = dict((p or module).named_parameters())
    with torch.no_grad():
        for parameter in parameters.values():
            parameter.copy_(random(*parameter.shape, scale=0.4))
    inputs = {"x": x, "h_0": h_0, "c_0": c_0}
    leaves = {label: value.clone().requires_grad_() for label, value in inputs.items() if value is not None}
    state = leaves["h_0"] if c_0 is None else (leaves["h_0"], leaves["c_0"])
    if lengths is not None:
        lengths = torch.tensor(lengths)
        tensors[f"{name}.lengths"] = lengths
    y, state = module(leaves["x"], state, lengths)
    results = {"y": y, "h_n": state} if c_0 is None else {"y": y, "h_n": state[0], "c_n": state[1]}
    loss = 0
    for label, value in results.items():
        if value is not None:
            gradient = random(*value.shape)
            tensors[f"{name}.d{label}"] = gradient
            loss = loss + (gradient * value).sum()
            tensors[f"{name}.{label}"] = value
    loss.backward()
    for label, leaf in leaves.items():
        tensors[f"{name}.{label}"] = leaf
        tensors[f"{name}.d{label}"] = leaf.grad
    for label, parameter in parameters.items():
        tensors[f"{name}.p.{label}"] = parameter
        tensors[f"{name}.g.{label}"] = parameter.grad


def hundred_steps():
    def run(name, make, inputs=4, memory=False):
        h = random(1, 2, 5)
        module = make(inputs, 5)
        wrapped = module if isinstance(module, Steps) else Packed(module)
        case(f"long_{name}", wrapped, random(2, 100, inputs), h, random(1, 2, 5) if memory else None, p=module)

    run("rnn", lambda i, h: nn.RNN(i, h, batch_first=True))
    run("rnn_relu", lambda i, h: nn.RNN(i, h, batch_first=True, nonlinearity="relu"))
    run("lstm", lambda i, h: nn.LSTM(i, h, batch_first=True), memory=True)
    run("gru", lambda i, h: nn.GRU(i, h, batch_first=True))
    run("gru_before", GruBefore)
    run("mut1", Mut1, inputs=5)
    run("mut2", Mut2, inputs=5)
    run("mut3", Mut3)
    run("nas", Nas, memory=True)


LENGTHS = [3, 7, 1, 5]


def unequal_lengths():
    def run(name, make, out=6, memory=False, batch_first=True):
        module = make(4, 6, 2)
        wrapped = module if isinstance(module, Steps) else Packed(module)
        x = random(4, 7, 4) if batch_first else random(7, 4, 4)
        case(f"packed_{name}", wrapped, x, random(4, 4, out), random(4, 4, 6) if memory else None, LENGTHS, p=module)

    def both(kind, **options):
        return lambda i, h, n: kind(i, h, n, bidirectional=True, **options)

    run("rnn", both(nn.RNN, batch_first=True))
    run("lstm", both(nn.LSTM, batch_first=True), memory=True)
    run("lstm_proj", both(nn.LSTM, batch_first=True, proj_size=3), out=3, memory=True)
    run("lstm_no_bias", both(nn.LSTM, batch_first=True, bias=False), memory=True)
    run("gru_time_first", both(nn.GRU), batch_first=False)
    run("gru_before", both(GruBefore))
    run("mut1", both(Mut1))
    run("mut2", both(Mut2))
    run("mut3", both(Mut3))
    run("nas", both(Nas), memory=True)
    run("nas_proj", both(Nas, proj=3), out=3, memory=True)


class OneStep(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x, state, lengths):
        state = self.cell(x, state)
        return (state[0] if isinstance(state, tuple) else state), state


def cells():
    for name, cell in (("rnn", nn.RNNCell(4, 6)), ("lstm", nn.LSTMCell(4, 6)), ("gru", nn.GRUCell(4, 6))):
        x, h_0, c_0 = random(3, 4), random(3, 6), random(3, 6) if name == "lstm" else None
        case(f"cell_{name}", OneStep(cell), x, h_0, c_0, p=cell)


hundred_steps()
unequal_lengths()
cells()
path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/nn/recurrent.safetensors"
stored = {}
for name, value in tensors.items():
    value = value.detach().contiguous()
    stored[name] = value if value.dtype == torch.int64 else value.float()
save_file(stored, path)
print(path, path.stat().st_size)
