"""Writes tests/golden/models/row_network_table.csv: the parameters and multiply-accumulates of the recurrent networks that
read images of 32 x 32 pixels row by row, of torch's modules.

    python tools/golden/row_networks.py

Needs torch 2.13.0.
"""

import pathlib

from torch import nn

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models/row_network_table.csv"
SIZE, CHANNELS, HIDDEN, CLASSES = 32, 3, 256, 1000

with PATH.open("w") as file:
    file.write("name,parameters,flops,num_features,num_classes\n")
    for name, kind in (("gru", nn.GRU), ("lstm", nn.LSTM), ("rnn", nn.RNN)):
        network, head = kind(CHANNELS * SIZE, HIDDEN), nn.Linear(HIDDEN, CLASSES)
        parameters = sum(p.numel() for module in (network, head) for p in module.parameters())
        flops = SIZE * sum(p.numel() for p in network.parameters() if p.ndim == 2) + head.weight.numel()
        file.write(f"{name}_rows,{parameters},{flops},{HIDDEN},{CLASSES}\n")
