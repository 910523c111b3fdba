"""Writes tests/golden/nn/layers.safetensors: what timm's and torch's layers compute, in float64, and their gradients.

    python tools/golden/nn.py

A case NAME has its inputs NAME.x (and NAME.context), its parameters NAME.p.*, the output NAME.y, the output's gradient
NAME.dy, and the gradients NAME.dx, NAME.dcontext and NAME.g.*. Needs timm 1.0.31, torch 2.13.0 and safetensors.
"""

import functools
import pathlib

import torch
from safetensors.torch import save_file
from timm.layers import (
    Attention,
    AttentionPoolLatent,
    GluMlp,
    LayerNorm,
    Mlp,
    RelPosBias,
    RelPosMlp,
    RmsNorm,
    SwiGLU,
    SwiGLUPacked,
    resample_abs_pos_embed,
    resize_rel_pos_bias_table,
    set_fused_attn,
)
from timm.layers.pos_embed_rel import gen_relative_position_index
from timm.models.vision_transformer import Block, ResPostBlock
from torch import nn

generator = torch.Generator().manual_seed(20261121)
tensors = {}


def random(*shape, scale=1.0):
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def fill(module):
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(random(*parameter.shape, scale=0.2))
            if parameter.ndim == 1 and name.endswith("weight"):
                parameter.add_(1)
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(random(*buffer.shape))
            if name.endswith("running_var"):
                buffer.copy_(random(*buffer.shape).abs() + 0.5)


def case(name, module, *inputs, names=("x", "context"), buffers_after=False):
    module = module.double()
    fill(module)
    leaves = [value.clone().requires_grad_() for value in inputs]
    for label, value in zip(names, inputs):
        tensors[f"{name}.{label}"] = value
    for label, value in module.state_dict().items():
        tensors[f"{name}.p.{label}"] = value.clone()
    y = module(*leaves)
    dy = random(*y.shape)
    y.backward(dy)
    tensors[f"{name}.y"] = y
    tensors[f"{name}.dy"] = dy
    for label, leaf in zip(names, leaves):
        tensors[f"{name}.d{label}"] = leaf.grad
    for label, parameter in module.named_parameters():
        tensors[f"{name}.g.{label}"] = parameter.grad
    if buffers_after:
        for label, buffer in module.named_buffers():
            tensors[f"{name}.after.{label}"] = buffer


class Attend(nn.Module):
    """Attention with every dimension free, written out."""

    def __init__(self, dim, context_dim, heads, key_dim, value_dim, out_dim, fused, qk_norm, bias, cross):
        super().__init__()
        self.heads, self.key_dim, self.value_dim, self.fused, self.cross = heads, key_dim, value_dim, fused, cross
        keys, values = heads * key_dim, heads * value_dim
        if cross:
            self.q = nn.Linear(dim, keys, bias=bias)
            if fused:
                self.kv = nn.Linear(context_dim, keys + values, bias=bias)
            else:
                self.k = nn.Linear(context_dim, keys, bias=bias)
                self.v = nn.Linear(context_dim, values, bias=bias)
        elif fused:
            self.qkv = nn.Linear(dim, 2 * keys + values, bias=bias)
        else:
            self.q_proj = nn.Linear(dim, keys, bias=bias)
            self.k_proj = nn.Linear(dim, keys, bias=bias)
            self.v_proj = nn.Linear(dim, values, bias=bias)
        if qk_norm:
            self.q_norm = LayerNorm(key_dim)
            self.k_norm = LayerNorm(key_dim)
        self.proj = nn.Linear(values, out_dim)

    def parts(self, x, context):
        keys, values = self.heads * self.key_dim, self.heads * self.value_dim
        if self.cross:
            k, v = self.kv(context).split([keys, values], -1) if self.fused else (self.k(context), self.v(context))
            return self.q(x), k, v
        if self.fused:
            return self.qkv(x).split([keys, keys, values], -1)
        return self.q_proj(x), self.k_proj(x), self.v_proj(x)

    def forward(self, x, context=None):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.parts(x, context))
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        y = (q @ k.transpose(-2, -1) * self.key_dim**-0.5).softmax(-1) @ v
        return self.proj(y.transpose(1, 2).flatten(2))


def layers():
    case("linear", nn.Linear(7, 5), random(2, 3, 7))
    case("linear_without_bias", nn.Linear(7, 5, bias=False), random(3, 7))
    case("conv2d", nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2), random(2, 4, 7, 5))
    case("batch_norm_training", nn.BatchNorm2d(3).train(), random(2, 3, 4, 5), buffers_after=True)
    case("batch_norm", nn.BatchNorm2d(3).eval(), random(2, 3, 4, 5))
    case("layer_norm", LayerNorm(17), random(2, 3, 17))
    case("rms_norm", RmsNorm(17), random(2, 3, 17))
    case("token_norm", nn.LayerNorm(17, eps=1e-6, elementwise_affine=False), random(2, 3, 17))
    case("mlp", Mlp(10, 23, norm_layer=LayerNorm), random(2, 3, 10))
    case("glu", GluMlp(10, 24, act_layer=nn.Sigmoid, gate_last=False), random(2, 3, 10))
    case("swiglu_packed", SwiGLUPacked(10, 24, norm_layer=RmsNorm), random(2, 3, 10))
    case("swiglu", SwiGLU(10, 13, bias=False), random(2, 3, 10))
    attention = functools.partial(Attention, 24, num_heads=3, norm_layer=LayerNorm)
    case("attention", attention(qkv_bias=True), random(2, 9, 24))
    case("attention_normed", attention(qk_norm=True, scale_norm=True, proj_bias=False), random(2, 9, 24))
    dims = dict(dim=10, context_dim=14, heads=3, key_dim=4, value_dim=6, out_dim=8)
    for fused in (True, False):
        suffix = "fused" if fused else "apart"
        case(f"attention_free_{suffix}", Attend(**dims, fused=fused, qk_norm=not fused, bias=fused, cross=False),
             random(2, 5, 10))
        case(f"cross_attention_{suffix}", Attend(**dims, fused=fused, qk_norm=fused, bias=True, cross=True),
             random(2, 5, 10), random(2, 7, 14))
    case("attention_pool", AttentionPoolLatent(24, num_heads=3, mlp_ratio=2.0, norm_layer=LayerNorm),
         random(2, 9, 24))
    block = dict(dim=24, num_heads=3, mlp_ratio=2.0, qkv_bias=True)
    case("block", Block(**block), random(2, 9, 24))
    case("block_scaled", Block(**block, init_values=0.1), random(2, 9, 24))
    case("block_post_norm", ResPostBlock(**block), random(2, 9, 24))


class NoInput(nn.Module):
    """A relative position bias as a function of nothing: the input is a zero that is added."""

    def __init__(self, bias):
        super().__init__()
        self.bias = bias

    def forward(self, x):
        return self.bias.get_bias() + x

    def state_dict(self, *arguments, **keywords):
        return self.bias.state_dict()

    def named_parameters(self, *arguments, **keywords):
        return self.bias.named_parameters()


def positions():
    zero = torch.zeros(1, dtype=torch.float64)
    case("rel_pos_bias", NoInput(RelPosBias((3, 4), 2, prefix_tokens=1)), zero)
    case("rel_pos_mlp", NoInput(RelPosMlp((3, 4), 2, hidden_dim=8, prefix_tokens=1)).eval(), zero)
    case("rel_pos_mlp_swin", NoInput(RelPosMlp((4, 3), 2, hidden_dim=8, mode="swin")).eval(), zero)
    tensors["index"] = gen_relative_position_index((3, 2), class_token=True)
    table = random(1, 2 + 4 * 6, 8)
    tensors["resample.x"] = table
    for name, size in {"smaller": (3, 2), "larger": (7, 9), "mixed": (2, 11)}.items():
        tensors[f"resample.{name}"] = resample_abs_pos_embed(table.float(), size, (4, 6), num_prefix_tokens=2)
    bias = random(7 * 9 + 3, 2)
    tensors["table.x"] = bias
    for name, window in {"larger": (7, 6), "smaller": (3, 3)}.items():
        shape = ((2 * window[0] - 1) * (2 * window[1] - 1) + 3, 2)
        tensors[f"table.{name}"] = resize_rel_pos_bias_table(bias.float(), window, shape, (4, 5))

    def one_dimension(dim, position):  # MAE's get_1d_sincos_pos_embed_from_grid
        omega = 1.0 / 10000 ** (torch.arange(dim // 2, dtype=torch.float64) / (dim / 2.0))
        out = position.reshape(-1)[:, None] * omega[None]
        return torch.cat([out.sin(), out.cos()], 1)

    rows, columns = torch.meshgrid(torch.arange(3.0).double(), torch.arange(4.0).double(), indexing="ij")
    tensors["sincos"] = torch.cat([one_dimension(8, columns), one_dimension(8, rows)], 1)


def main():
    set_fused_attn(False)
    layers()
    positions()
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/nn/layers.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    converted = {k: t.detach().float() if t.is_floating_point() else t.detach() for k, t in tensors.items()}
    save_file({k: t.contiguous() for k, t in converted.items()}, path)


if __name__ == "__main__":
    main()
