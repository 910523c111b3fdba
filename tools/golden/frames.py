"""Fixtures of recurrent networks over frames, tests/golden/models/frames_*, and the table of the linear classifier.

    python tools/golden/frames.py

A fixture is a folder with config.json and the weights of torch's modules over the features of a linear map of pixels (the
pixels themselves) or of timm's VisionTransformer, every parameter perturbed. Beside them lies expected.safetensors, computed
in float64: frames x [N, C, H, W] of sequences of unequal `lengths`, one after the other; outputs, loss, `grad.NAME` of the loss,
and what the loss compares with, `targets`.

Needs torch 2.13.0 or later, timm 1.0.31 and safetensors.
"""

import json
import pathlib

import timm
import torch
from safetensors.torch import save_file
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models"
LENGTHS = [3, 5, 1]
SIZE = 8
PIXELS = dict(architecture="linear", arguments=dict(img_size=SIZE, in_chans=3, num_classes=0))
VIT = dict(architecture="vit_tiny_patch16_224", arguments=dict(
    img_size=SIZE, patch_size=4, embed_dim=12, depth=1, num_heads=2, num_classes=0, global_pool="avg", class_token=False))
VARIANTS = {
    "frames_sequence": dict(target="sequence", label_names=["apple", "cow", "cup"], encoder=PIXELS,
                            network=dict(architecture="lstm", hidden_size=6, num_layers=2, bidirectional=True)),
    "frames_frames": dict(target="frames", label_names=["up", "down"], encoder=VIT,
                          network=dict(architecture="gru", hidden_size=5)),
    "frames_angle": dict(target="angle", circular=True, encoder=PIXELS,
                         network=dict(architecture="rnn", hidden_size=7, nonlinearity="relu", bidirectional=True)),
    "frames_bins": dict(target="angle", angle_bins=4, encoder=PIXELS, network=dict(architecture="lstm", hidden_size=4)),
}


class Frames(nn.Module):
    """What tests/models/recurrent/frame_network_test.cpp loads."""

    def __init__(self, config):
        super().__init__()
        self.target = config["target"]
        encoder, network = config["encoder"], dict(config["network"])
        if encoder["architecture"] == "linear":
            self.features, width = nn.Flatten(), 3 * SIZE * SIZE
        else:
            self.features = timm.create_model(encoder["architecture"], **encoder["arguments"])
            width = self.features.num_features
        kind = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[network.pop("architecture")]
        self.rnn = kind(width, network.pop("hidden_size"), batch_first=True, **network)
        states = self.rnn.hidden_size * (2 if self.rnn.bidirectional else 1)
        angle = 2 if self.target == "angle" else 0
        self.head = nn.Linear(states, config.get("angle_bins") or angle or len(config["label_names"]))

    def forward(self, x):
        parts = self.features(x).split(LENGTHS)
        packed = nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
        output, state = self.rnn(packed)
        if self.target == "sequence":
            h = state[0] if isinstance(state, tuple) else state
            last = h[-2:] if self.rnn.bidirectional else h[-1:]
            return self.head(torch.cat(list(last), dim=1))
        padded, lengths = nn.utils.rnn.pad_packed_sequence(output, batch_first=True)
        return self.head(torch.cat([row[:length] for row, length in zip(padded, lengths)]))

    def parameters_by_name(self):
        for name, value in self.named_parameters():
            yield name.removeprefix("features.") if name.startswith("features.") else "sequence." + name, value


def write(name, config):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    model = Frames(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((0.3 * torch.randn(parameter.shape, generator=generator)).float().double())
    x = torch.randn((sum(LENGTHS), 3, SIZE, SIZE), generator=generator)
    outputs = model(x.double())
    rows, count = outputs.shape
    if config["target"] == "angle":
        targets = torch.tensor([360.0 * t / length for length in LENGTHS for t in range(length)], dtype=torch.float64)
        radians = torch.deg2rad(targets)
        bins = torch.round(targets / 360 * count).long() % count
        loss = (((outputs - torch.stack([radians.cos(), radians.sin()], 1)) ** 2).sum(1).mean()
                if not config.get("angle_bins") else nn.functional.cross_entropy(outputs, bins))
    else:
        targets = torch.arange(rows) % count
        loss = nn.functional.cross_entropy(outputs, targets)
    loss.backward()
    expected = {"outputs": outputs, "loss": loss} | {"grad." + key: p.grad for key, p in model.parameters_by_name()}
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "recurrent_frames"} | config, indent=2) + "\n")
    weights = {key: p.detach().float().contiguous() for key, p in model.parameters_by_name()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    save_file({"x": x, "lengths": torch.tensor(LENGTHS), "targets": targets.long() if targets.dtype == torch.int64 else targets.float()}
              | {key: value.detach().float().contiguous() for key, value in expected.items()}, folder / "expected.safetensors")


for variant, fields in VARIANTS.items():
    write(variant, fields)
classes, pixels = 1000, 3 * 32 * 32
(ROOT / "linear_table.csv").write_text("name,parameters,flops,num_features,num_classes\n"
                                       f"linear,{classes * pixels + classes},{classes * pixels},{pixels},{classes}\n")
