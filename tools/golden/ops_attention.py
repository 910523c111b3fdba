"""Attention's golden values: torch's scaled_dot_product_attention and its gradients, in float64.

    python tools/golden/ops_attention.py

writes tests/golden/ops/attention.safetensors. A case NAME is the tensors NAME.{q,k,v,dout} (bf16), the result NAME.out,
the gradients NAME.{dq,dk,dv}, where it has them NAME.{mask,bias,dbias}, and NAME.settings = [scale, causal].
"""

import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn.functional import scaled_dot_product_attention

ROOT = Path(__file__).resolve().parents[2]
tensors = {}
generator = torch.Generator().manual_seed(11)


def normal(*shape):
    # As bf16 can hold them, so that the same inputs serve both precisions.
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(torch.bfloat16).double()


def case(name, batch, heads, n, m, d, e, *, causal=False, mask=None, bias=None, scale=None, size=1.0):
    leaves = {
        "q": size * normal(batch, heads, n, d),
        "k": size * normal(batch, heads, m, d),
        "v": normal(batch, heads, m, e),
    }
    if bias is not None:
        leaves["bias"] = bias
    for leaf in leaves.values():
        leaf.requires_grad_()
    allowed = torch.ones(batch, heads, n, m, dtype=torch.bool)
    if causal:
        allowed = allowed.tril(m - n)
    if mask is not None:
        allowed = allowed & mask
    if bias is not None:
        allowed = allowed & (bias.detach() > -math.inf)
    # A query without keys has no softmax; here it gives zeros.
    seeing = allowed.any(-1, keepdim=True)
    added = torch.zeros(batch, heads, n, m, dtype=torch.float64)
    if bias is not None:
        added = added + torch.where(bias > -math.inf, bias, 0.0)
    added = added.masked_fill(~allowed & seeing, -math.inf)
    out = scaled_dot_product_attention(leaves["q"], leaves["k"], leaves["v"], attn_mask=added, scale=scale)
    out = torch.where(seeing, out, 0.0)
    dout = normal(batch, heads, n, e)
    out.backward(dout)
    if mask is not None:
        tensors[f"{name}.mask"] = mask
    for key, leaf in leaves.items():
        tensors[f"{name}.{key}"] = leaf.detach().to(torch.float32 if key == "bias" else torch.bfloat16)
        tensors[f"{name}.d{key}"] = leaf.grad.float()
    tensors[f"{name}.dout"] = dout.to(torch.bfloat16)
    tensors[f"{name}.out"] = out.detach().float()
    tensors[f"{name}.settings"] = torch.tensor([scale or 0.0, float(causal)])


def main():
    case("one token", 1, 1, 1, 1, 1, 1)
    case("two tokens", 3, 2, 2, 2, 16, 16)
    case("plain", 2, 3, 17, 17, 20, 20)
    case("ViT", 1, 1, 65, 65, 64, 64)
    case("197 tokens", 1, 1, 197, 197, 16, 8)
    case("wide head", 1, 1, 9, 9, 128, 128)
    case("head of 80", 1, 2, 7, 7, 80, 80)
    case("cross", 2, 2, 17, 9, 20, 12)
    case("one query", 2, 3, 1, 33, 16, 24)
    case("one key", 2, 3, 33, 1, 16, 5)
    case("odd dims", 2, 1, 19, 23, 3, 7)
    case("scale", 1, 2, 11, 13, 16, 16, scale=0.3)
    case("negative scale", 1, 2, 11, 13, 16, 16, scale=-0.3)
    case("causal", 2, 2, 33, 33, 16, 16, causal=True)
    case("causal with a past", 1, 2, 5, 37, 16, 16, causal=True)
    case("causal with fewer keys", 1, 2, 37, 5, 16, 16, causal=True)

    mask = torch.rand(2, 1, 17, 21, generator=generator) < 0.6
    mask[1, 0, 3] = False
    mask[0, 0, 16] = False
    case("mask with empty rows", 2, 3, 17, 21, 16, 16, mask=mask)
    case("mask of keys", 2, 2, 9, 19, 16, 16, mask=torch.arange(19) % 3 > 0)
    case("mask of samples", 2, 2, 9, 19, 16, 16, mask=torch.rand(2, 1, 1, 19, generator=generator) < 0.5)
    case("mask of queries", 2, 2, 9, 19, 16, 16, mask=(torch.arange(9) % 4 > 0)[:, None])

    case("bias of heads", 3, 2, 17, 17, 16, 16, bias=normal(1, 2, 17, 17))
    case("bias in full", 2, 2, 9, 21, 16, 16, bias=normal(2, 2, 9, 21))
    case("bias of keys", 2, 2, 9, 21, 16, 16, bias=normal(2, 1, 1, 21))
    case("bias of pairs", 2, 2, 9, 21, 16, 16, bias=normal(9, 21))
    case("bias of queries", 2, 2, 9, 21, 16, 16, bias=normal(9, 1))
    infinite = normal(1, 2, 17, 17)
    infinite[torch.rand(1, 2, 17, 17, generator=generator) < 0.3] = -math.inf
    infinite[0, 1, 4] = -math.inf
    case("bias with infinities", 2, 2, 17, 17, 16, 16, bias=infinite)
    case("mask, bias and causal", 2, 2, 33, 35, 16, 16, causal=True, bias=normal(2, 33, 35),
         mask=torch.rand(33, 35, generator=generator) < 0.7)
    case("large scores", 1, 2, 17, 17, 16, 16, size=16.0)

    # More keys than a tile holds, and one more than tiles divide.
    case("1025 tokens", 1, 1, 1025, 1025, 8, 8)
    case("1025 tokens, causal", 1, 1, 1025, 1025, 8, 8, causal=True)
    case("4097 keys", 1, 1, 67, 4097, 8, 8)

    path = ROOT / "tests" / "golden" / "ops" / "attention.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({key: value.contiguous() for key, value in sorted(tensors.items())}, path)
    print(path.relative_to(ROOT), path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
