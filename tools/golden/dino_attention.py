"""Writes tests/golden/explain/dino_attention.safetensors: maps and masks of a small ViT as DINO's visualize_attention.py has them.

    python tools/golden/dino_attention.py FOLDER

FOLDER is a checkout of github.com/facebookresearch/dino, 7c446df5b9f45747937fb0d72314eb9f7b66930a. The lines of its
visualize_attention.py from the image to the masks are run as they stand. Needs torch 2.13.0, torchvision, Pillow, numpy and safetensors.
"""

import ast
import pathlib
import sys
import types

import numpy as np
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
THRESHOLDS = (0.6, 0.25)


def reference_lines(path, begin, end):
    """The statements of the script's main part from the one that assigns `begin` up to the one before that which saves."""
    main = next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If))
    texts = [ast.unparse(node) for node in main.body]
    first = next(i for i, text in enumerate(texts) if text.startswith(begin))
    last = next(i for i, text in enumerate(texts) if text.startswith(end))
    return "\n".join(texts[first:last])


def main():
    folder = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(folder))
    import vision_transformer as vits

    torch.manual_seed(0)
    model = vits.VisionTransformer([32], patch_size=4, embed_dim=24, depth=3, num_heads=3, num_classes=0, qkv_bias=True,
                                   norm_layer=lambda dim: nn.LayerNorm(dim, eps=1e-6)).eval()  # fmt: skip
    for name, p in model.named_parameters():
        p.requires_grad = False
        p += torch.randn(p.shape) * (0.5 if "qkv" in name else 0.2)
    pixels = np.random.default_rng(0).integers(0, 256, (7, 8, 3), dtype=np.uint8)
    image = Image.fromarray(pixels).resize((30, 26), Image.Resampling.BICUBIC)
    tensors = {"image": torch.from_numpy(np.array(image))}
    tensors |= {f"model.{name}": p.data for name, p in model.named_parameters()}
    lines = reference_lines(folder / "visualize_attention.py", "transform", "os.makedirs")
    for size in (None, 40):
        for threshold in THRESHOLDS:
            scope = {
                "pth_transforms": torchvision.transforms, "nn": nn, "torch": torch, "model": model, "device": "cpu",
                "img": image,
                "args": types.SimpleNamespace(image_size=size or min(image.size), patch_size=4, threshold=threshold),
            }  # fmt: skip
            exec(lines, scope)
            at = "own" if size is None else str(size)
            tensors[f"{at}.input"] = scope["img"]
            tensors[f"{at}.maps"] = torch.from_numpy(scope["attentions"])[:, ::4, ::4]
            tensors[f"{at}.mask.{threshold}"] = torch.from_numpy(scope["th_attn"])[:, ::4, ::4].to(torch.uint8)
    path = ROOT / "tests/golden/explain/dino_attention.safetensors"
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, path)
    print({name: tuple(t.shape) for name, t in tensors.items() if not name.startswith("model")})


if __name__ == "__main__":
    main()
