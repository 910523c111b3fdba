"""The fixture of set2set: tests/golden/models/detection/set2set.

    python tools/golden/set2set.py CHECKOUT

CHECKOUT is github.com/facebookresearch/detr, 29901c51d7fe8712168b8d0d64351170bc0f83e0, whose transformer is run, with positions of
zeros; what its encoder says is compared with torch.nn.TransformerEncoder. Needs torch and safetensors.

The folder is one that vitrail loads, with every parameter drawn; beside it expected.safetensors, computed in float64: x [B, N, 2]
and mask [B, N] (true where an element is there), logits and values of all layers of the decoder, [L B, Q, .], and `grad.x` and
`grad.NAME` of sum(logits * to_logits) + sum(values * to_values).
"""

import importlib.util
import json
import pathlib
import shutil
import sys

import torch
from detr_names import as_original
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models/detection/set2set"
SIZES = dict(d_model=16, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=4,
             encoder_ffn_dim=20, decoder_ffn_dim=20, num_queries=5, input_size=2, output_size=3)  # fmt: skip
LABELS = ["circle", "square", "bird"]


def transformer_of(checkout):
    spec = importlib.util.spec_from_file_location("detr_transformer", pathlib.Path(checkout) / "models/transformer.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Transformer(SIZES["d_model"], SIZES["encoder_attention_heads"], SIZES["encoder_layers"], SIZES["decoder_layers"],
                              SIZES["encoder_ffn_dim"], 0.0, "relu", return_intermediate_dec=True)


def shapes():
    """The parameters of a set2set by name."""
    d, ffn = SIZES["d_model"], SIZES["encoder_ffn_dim"]
    result = {"model.input_projection.weight": (d, SIZES["input_size"]), "model.input_projection.bias": (d,),
              "model.query_position_embeddings.weight": (SIZES["num_queries"], d)}
    for stack, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        for i in range(SIZES[f"{stack}_layers"]):
            layer = f"model.{stack}.layers.{i}"
            for attention in attentions:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    result |= {f"{layer}.{attention}.{part}.weight": (d, d), f"{layer}.{attention}.{part}.bias": (d,)}
            for norm in [f"{attention}_layer_norm" for attention in attentions] + ["final_layer_norm"]:
                result |= {f"{layer}.{norm}.weight": (d,), f"{layer}.{norm}.bias": (d,)}
            result |= {f"{layer}.fc1.weight": (ffn, d), f"{layer}.fc1.bias": (ffn,),
                       f"{layer}.fc2.weight": (d, ffn), f"{layer}.fc2.bias": (d,)}
    result |= {f"model.decoder.layernorm.{part}": (d,) for part in ("weight", "bias")}
    result |= {"class_labels_classifier.weight": (len(LABELS) + 1, d), "class_labels_classifier.bias": (len(LABELS) + 1,)}
    for i in range(3):
        width = d if i < 2 else SIZES["output_size"]
        result |= {f"value_predictor.layers.{i}.weight": (width, d), f"value_predictor.layers.{i}.bias": (width,)}
    return result


def draw(name, shape, generator):
    noise = torch.randn(shape, generator=generator)
    if "norm" in name and name.endswith("weight"):
        return 1 + 0.2 * noise
    if name == "model.query_position_embeddings.weight":
        return noise
    return noise * (1.2 / shape[-1] ** 0.5 if len(shape) > 1 else 0.2)


def as_torch_encoder(named, layers):
    """torch.nn.TransformerEncoder with the encoder of `named`."""
    layer = torch.nn.TransformerEncoderLayer(SIZES["d_model"], SIZES["encoder_attention_heads"], SIZES["encoder_ffn_dim"], 0.0,
                                             "relu", batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).double()
    encoder.load_state_dict({key.removeprefix("encoder."): value.detach() for key, value in named.items()
                             if key.startswith("encoder.")})
    return encoder


def main(checkout):
    generator = torch.Generator().manual_seed(11)
    stored = {name: draw(name, shape, generator) for name, shape in shapes().items()}
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    save_file(stored, FOLDER / "model.safetensors")
    config = {"model_type": "vitrail_set2set", **SIZES, "label_names": LABELS}
    (FOLDER / "config.json").write_text(json.dumps(config, indent=2) + "\n")

    own = {name: value.double().requires_grad_() for name, value in stored.items()}
    linear = lambda x, name: torch.nn.functional.linear(x, own[name + ".weight"], own[name + ".bias"])
    x = torch.randn(3, 7, SIZES["input_size"], generator=generator).double().requires_grad_()
    mask = torch.arange(7)[None] < torch.tensor([7, 4, 1])[:, None]
    net = transformer_of(checkout).double()
    named = as_original(own, net)
    tokens = linear(x, "model.input_projection")
    as_map = tokens.transpose(1, 2)[..., None]  # [B, D, N, 1]
    states, memory = torch.func.functional_call(
        net, named, (as_map, ~mask[..., None], own["model.query_position_embeddings.weight"], torch.zeros_like(as_map)))
    plain = as_torch_encoder(named, SIZES["encoder_layers"])(tokens, src_key_padding_mask=~mask)
    torch.testing.assert_close(memory[..., 0].transpose(1, 2)[mask], plain[mask], atol=1e-12, rtol=1e-12)
    states = states.flatten(0, 1)
    logits = linear(states, "class_labels_classifier")
    values = linear(linear(linear(states, "value_predictor.layers.0").relu(), "value_predictor.layers.1").relu(),
                    "value_predictor.layers.2")
    tensors = {"x": x, "mask": mask, "logits": logits, "values": values}
    for key, value in (("to_logits", logits), ("to_values", values)):
        tensors[key] = torch.randn(value.shape, generator=generator)
    ((logits * tensors["to_logits"]).sum() + (values * tensors["to_values"]).sum()).backward()
    tensors |= {"grad.x": x.grad} | {f"grad.{name}": parameter.grad for name, parameter in own.items()}
    save_file({key: (value.detach().float() if value.is_floating_point() else value).contiguous() for key, value in tensors.items()},
              FOLDER / "expected.safetensors")


if __name__ == "__main__":
    main(sys.argv[1])
