"""Writes tests/golden/models/cycle_mlp … and cycle_mlp_table.csv: what the authors' CycleMLP (github.com/ShoufaChen/CycleMLP
at 4e062a0) computes, for small models with every parameter perturbed.

    python tools/golden/cycle_mlp.py path/to/CycleMLP/cycle_mlp.py

Needs the authors' file, torch 2.13.0, torchvision, timm 1.0.31, fvcore and safetensors. timm_models.py says what a
variant's folder holds. Where torchvision comes without its compiled operators, its deform_conv2d is computed from its
definition.
"""

import importlib.util
import sys

import timm.layers.helpers
import torch
import torchvision
from fvcore.nn.jit_handles import conv_flop_count, get_shape
from timm_models import write_reference, write_table


def deform_conv2d(input, offset, weight, bias=None, **_):
    """torchvision.ops.deform_conv2d with a kernel of 1x1, stride 1 and no padding, by its definition (Dai et al. 2017): channel
    c of the image is read, bilinearly, at the place moved by offset[2 c] rows and offset[2 c + 1] columns, zeros beyond
    the image, and what is read is multiplied by the kernel."""
    batch, channels, height, width = input.shape
    assert offset.shape == (batch, 2 * channels, height, width) and weight.shape[2:] == (1, 1)
    offset = offset.reshape(batch, channels, 2, height, width)
    rows = offset[:, :, 0] + torch.arange(height)[:, None]
    columns = offset[:, :, 1] + torch.arange(width)
    read = torch.zeros_like(input)
    for row in (rows.floor(), rows.floor() + 1):
        for column in (columns.floor(), columns.floor() + 1):
            share = (1 - (rows - row).abs()) * (1 - (columns - column).abs())
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
            values = input.flatten(2).gather(2, place.long().flatten(2)).reshape(input.shape)
            read = read + values * share * inside
    return torch.nn.functional.conv2d(read, weight, bias)


def authors_code(path):
    # The file asks for a module by a name that timm has given up.
    sys.modules.setdefault("timm.models.layers.helpers", timm.layers.helpers)
    spec = importlib.util.spec_from_file_location("cycle_mlp_of_the_authors", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not torchvision.extension._has_ops():
        module.deform_conv2d_tv = deform_conv2d
    return module


SMALL = dict(layers=[1, 2, 1, 1], embed_dims=[8, 12, 16, 20], mlp_ratios=[2, 2, 2, 2], num_classes=7)

# name: (architecture, arguments, image)
VARIANTS = {
    "cycle_mlp": ("cycle_mlp_b1", SMALL, (2, 3, 64, 64)),
    # Sizes that are not whole at any stage, down to one place, channels that three does not divide.
    "cycle_mlp_odd": (
        "cycle_mlp_b3",
        SMALL | dict(layers=[2, 1, 1], embed_dims=[10, 13, 17], mlp_ratios=[1.5, 3, 2], qkv_bias=True),
        (3, 3, 37, 22),
    ),
    "cycle_mlp_one_place": ("cycle_mlp_b5", SMALL | dict(layers=[1, 1], embed_dims=[7, 8], mlp_ratios=[4, 2]), (2, 3, 6, 9)),
}


class Image(torch.nn.Module):
    """A stage's output as [B, C, H, W], for the recorder."""

    def forward(self, x):
        return x.permute(0, 3, 1, 2)


def layer_of(layers):
    def layer(name):
        parts = name.split(".")
        if parts[0] == "patch_embed":
            return 0
        if parts[0] == "network":
            place = int(parts[1])
            before = sum(layers[: (place + 1) // 2])
            return before + 1 + (int(parts[2]) if place % 2 == 0 else 0)
        return sum(layers) + (0 if parts[0] == "norm" else 1)

    return layer


def count_deformable(inputs, outputs):
    """As the convolution that a product over channels read from other places is."""
    return {"conv": conv_flop_count(get_shape(inputs[0]), get_shape(inputs[1]), get_shape(outputs[0]))}


def write_flops(code):
    """fvcore is shown a convolution of 1x1, or counts torchvision's operator as one."""
    if code.deform_conv2d_tv is deform_conv2d:
        code.deform_conv2d_tv = lambda x, offset, weight, bias, **_: torch.nn.functional.conv2d(x, weight, bias)
    models = {f"cycle_mlp_b{i}": getattr(code, f"CycleMLP_B{i}")() for i in range(1, 6)}
    write_table("cycle_mlp", models, {"torchvision::deform_conv2d": count_deformable})


def main():
    code = authors_code(sys.argv[1])
    for seed, (name, (architecture, arguments, shape)) in enumerate(VARIANTS.items()):
        layers = arguments["layers"]
        model = code.CycleNet(transitions=[True] * len(layers), mlp_fn=code.CycleMLP, **arguments)
        stages = [model.network[2 * i] for i in range(len(layers))]
        images = [Image() for _ in stages]
        for stage, image in zip(stages, images):
            stage.register_forward_hook(lambda m, a, out, image=image: (image(out), None)[1])
        write_reference(name, architecture, arguments, model, seed, shape, images, layer_of(layers))
    write_flops(code)


if __name__ == "__main__":
    main()
