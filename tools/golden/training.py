"""Writes tests/golden/models/training.safetensors: what PyTorch does with the small models of the other fixtures in training.

    python tools/golden/training.py

Needs torch 2.13.0, timm 1.0.31, transformers 5.23.0 and the fixtures of resnet.py, swin.py … (each script's variants).

VARIANT.x, VARIANT.losses: twenty steps of AdamW on one batch with timm's parameter groups; VARIANT.noise as well for a masked
autoencoder. VARIANT.batch.x, .logits, .seed, .grad.NAME and .NAME of running statistics: one batch of a model with batch
norms, which take that batch's own statistics, and the gradients of Σ logits · seed.

VARIANT.bf16: how far the gradient in bf16 is from that in float64, |g - g64| / |g64| over all parameters: the larger of what
PyTorch's autocast and a model that is bf16 as a whole give. ReLUs and max pooling choose otherwise after a small change, so
this is much for convolutional networks and MViT.
"""

import copy
import itertools
import json

import image_attention
import mlp_mixer
import resnetv2
import torch
import transformers
import vit_hybrid
from mvit import with_fields
from safetensors.torch import load_file
from timm.optim import param_groups_weight_decay
from timm_models import ROOT, no_weight_decay, random_image, rounding, write

# Twenty steps. No ReLUs: one that is off instead of on, for an input near zero, changes all that follows.
STEPPED = ["plain", "deit3", "swin", "mvit_avg", "mixer", "resnet_groups"]
# Batch statistics. The images are larger than those of the variant, so that the last stage's batch has more than a few values.
NORMALIZED = {
    "resnet_basic": (4, 3, 64, 64),
    "resnet_bottleneck": (4, 1, 64, 64), "resnetv2_basic": (4, 1, 64, 64), "botnet": (4, 3, 64, 64),
    "resnet_nl": (4, 3, 48, 48), "resnet_nl_gaussian": (4, 3, 48, 48), "resnet_nl_concatenation": (4, 3, 48, 48),
    "resnet_nl_dot_product": (4, 3, 48, 48), "resnet_sagan": (4, 3, 48, 48), "hybrid_resnetd": (4, 3, 37, 48),
    "hybrid_conv_stem": (4, 2, 32, 64),
}  # fmt: skip
ROUNDED = [
    *(f"resnet_{kind}" for kind in ["basic", "bottleneck", "deep", "tiered", "se", "groups", "nl", "nl_gaussian",
                                    "nl_concatenation", "nl_dot_product", "sagan"]),
    "resnetv2", "resnetv2_basic", "resnetv2_bit", "resnetv2_tiered", "botnet", "botnet_wide", "hybrid", "hybrid_even",
    "hybrid_stem", "hybrid_resnetd", "mvit", "mvit_mlp", "mvit_odd", "mvit_max", "mvit_avg", "swinv2_padded", "swinv2_cr", "eva02_clip",
]  # fmt: skip


def load(variant, **more):
    """The model of a fixture, in float64 and in training."""
    config = json.loads((ROOT / variant / "config.json").read_text())
    makers = {"mixer": mlp_mixer, "resnetv2": resnetv2, "hybrid": vit_hybrid}
    maker = next((module for start, module in makers.items() if variant.startswith(start)), image_attention)
    with with_fields():
        model = maker.make(config["architecture"], **config["model_args"], **more)
    model.load_state_dict(load_file(ROOT / variant / "model.safetensors"))
    return model.double().train()


def steps(groups, loss_of):
    """The losses before each of twenty steps."""
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def groups_of(model):
    return param_groups_weight_decay(model, 0.05, no_weight_decay_list=no_weight_decay(model))


def add_steps(variant, expected):
    model = load(variant, **({"drop_path_rate": 0.0} if "swin" in variant else {}))
    config = json.loads((ROOT / variant / "config.json").read_text())
    shape = config["pretrained_cfg"]["input_size"]
    if "resnet" in variant:
        shape = [shape[0], 48, 48]
    x = random_image((8, *shape), seed=5)
    labels = torch.arange(8) % config["num_classes"]
    losses = steps(groups_of(model), lambda: torch.nn.functional.cross_entropy(model(x), labels))
    expected |= {f"{variant}.x": x, f"{variant}.losses": losses}


def add_masked_autoencoder(variant, expected):
    model = transformers.ViTMAEForPreTraining.from_pretrained(ROOT / variant, attn_implementation="eager")
    model = model.double().train()
    for name, parameter in model.named_parameters():  # its constructor says so, but from_pretrained() does not
        parameter.requires_grad_(not name.endswith(("position_embeddings", "decoder_pos_embed")))
    config = model.config
    x = random_image((4, config.num_channels, config.image_size, config.image_size), seed=5)
    noise = torch.rand(4, model.vit.embeddings.patch_embeddings.num_patches, generator=torch.Generator().manual_seed(6))
    groups = param_groups_weight_decay(model, 0.05)  # as facebookresearch/mae does it: the tokens decay
    losses = steps(groups, lambda: model(x, noise=noise.to(x.dtype)).loss)
    expected |= {f"{variant}.x": x, f"{variant}.noise": noise, f"{variant}.losses": losses}


def nearest_to_zero(model, x):
    """The smallest magnitude of what the model's ReLUs get where that is small enough for one of them to matter."""
    nearest = [1.0]

    def look(_, inputs):
        if inputs[0].numel() < 50000:
            nearest.append(inputs[0].abs().min().item())

    modules = [module for module in model.modules() if isinstance(module, torch.nn.ReLU)]
    for module in modules:
        module.register_forward_pre_hook(look)
    model(x)
    return min(nearest)


def add_batch(variant, shape, expected):
    model = load(variant)
    images = (random_image(shape, seed) for seed in itertools.count(7))
    x = next(x for x in images if nearest_to_zero(copy.deepcopy(model), x) > 2e-5)  # so that rounding switches none
    logits = model(x)
    seed = torch.randn(logits.shape, generator=torch.Generator().manual_seed(3)).double()
    (logits * seed).sum().backward()
    values = {"x": x, "logits": logits, "seed": seed}
    values |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()}
    values |= {name: buffer for name, buffer in model.named_buffers() if "running" in name}
    expected |= {f"{variant}.batch.{name}": value for name, value in values.items()}


def add_rounding(variant, expected):
    expected[f"{variant}.bf16"] = rounding(load(variant), load_file(ROOT / variant / "expected.safetensors"))


def main():
    expected = {}
    for variant in STEPPED:
        add_steps(variant, expected)
    add_masked_autoencoder("hf_mae", expected)
    for variant, shape in NORMALIZED.items():
        add_batch(variant, shape, expected)
    for variant in ROUNDED:
        add_rounding(variant, expected)
    write(ROOT / "training.safetensors", expected)


if __name__ == "__main__":
    main()
