"""Fixtures of recurrent language models: tests/golden/models/text/recurrent_*.

    python tools/golden/recurrent_language.py

A fixture is a folder with config.json and the weights of a network of torch's modules that are joined, and named, as in
RNNModel of PyTorch's example word_language_model, every parameter perturbed. Beside them lies expected.safetensors,
computed in float64: input_ids [B, N], logits, loss (of the next tokens), `grad.NAME` of the loss, and h_n and c_n.

Needs torch 2.13.0 and safetensors.
"""

import json
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models/text"
VOCAB, HIDDEN, LAYERS = 20, 8, 2
VARIANTS = {
    "recurrent_lstm": dict(architecture="lstm", tie_word_embeddings=True),
    "recurrent_gru": dict(architecture="gru", embedding_size=6, dropout=0.25),
    "recurrent_rnn": dict(architecture="rnn", nonlinearity="relu", embedding_size=0, bias=False),
}


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.get("embedding_size", HIDDEN)
        self.one_hot = width == 0
        if not self.one_hot:
            self.encoder = nn.Embedding(VOCAB, width)
        kind = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[config["architecture"]]
        further = {key: config[key] for key in ("nonlinearity", "bias") if key in config}
        self.rnn = kind(width or VOCAB, HIDDEN, LAYERS, batch_first=True, **further)
        self.decoder = nn.Linear(HIDDEN, VOCAB)
        if config.get("tie_word_embeddings"):
            self.decoder.weight = self.encoder.weight

    def forward(self, ids):
        x = nn.functional.one_hot(ids, VOCAB).double() if self.one_hot else self.encoder(ids)
        output, state = self.rnn(x)
        return self.decoder(output), state


def write(name, config):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    model = Model(config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((0.4 * torch.randn(parameter.shape, generator=generator)).float().double())
    ids = torch.randint(0, VOCAB, (3, 11), generator=generator)
    logits, state = model(ids)
    loss = nn.functional.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
    loss.backward()
    h, c = state if isinstance(state, tuple) else (state, None)
    expected = {"logits": logits, "loss": loss, "h_n": h} | ({} if c is None else {"c_n": c})
    expected |= {"grad." + key: value.grad for key, value in model.named_parameters()}
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    common = dict(architectures=["RecurrentForCausalLM"], model_type="recurrent", vocab_size=VOCAB, hidden_size=HIDDEN,
                  num_layers=LAYERS, dtype="float32")
    (folder / "config.json").write_text(json.dumps(common | config, indent=2) + "\n")
    weights = {key: value.detach().float().contiguous() for key, value in model.named_parameters()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    save_file({"input_ids": ids} | {key: value.detach().float().contiguous() for key, value in expected.items()},
              folder / "expected.safetensors")


for variant, fields in VARIANTS.items():
    write(variant, fields)
