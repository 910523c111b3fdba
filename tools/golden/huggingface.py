"""Fixtures of models in the layout of Hugging Face's transformers: tests/golden/models/hf_*.

    python tools/golden/huggingface.py                        # all
    python tools/golden/huggingface.py hf_vit encoder sizes   # some: names of variants, encoder, sizes

A fixture is a folder as save_pretrained() writes it, and beside it expected.safetensors, computed in float64: x, logits
(of a bare model the class token's features, or the pooled ones of BEiT and Swin), seed, and `grad.NAME` of Σ logits · seed by the names in the folder's file.
hf_sizes.safetensors has what some of them compute for images of other sizes. Masked autoencoders have noise, mask, logits (all predicted patches), loss, and the gradients of the loss.

Needs transformers 5.23, timm 1.0.31, torch 2.13.0 and safetensors.
"""

import copy
import functools
import pathlib
import shutil
import sys
import tempfile

import timm
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models"

SIZES = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, image_size=32, patch_size=8)
VIT = SIZES | dict(intermediate_size=60)
LABELS = {i: name for i, name in enumerate(["ant", "bee", "cat", "dog", "elk", "fox", "gnu"])}
NAMES = dict(id2label=LABELS, label2id={name: i for i, name in LABELS.items()})
SWIN = dict(image_size=32, patch_size=2, embed_dim=8, depths=[1, 2, 1], num_heads=[1, 2, 4], window_size=4)
MAE = VIT | dict(decoder_hidden_size=16, decoder_num_hidden_layers=2, decoder_num_attention_heads=2,
                 decoder_intermediate_size=40)

# name: (class, config, image processor or None)
VARIANTS = {
    "hf_vit": (hf.ViTForImageClassification, hf.ViTConfig(**VIT, **NAMES),
               hf.ViTImageProcessorPil(size={"height": 32, "width": 32})),
    "hf_vit_unusual": (
        hf.ViTForImageClassification,
        hf.ViTConfig(**(VIT | dict(image_size=[24, 40], patch_size=[8, 4], num_channels=1, qkv_bias=False,
                                   hidden_act="quick_gelu", layer_norm_eps=1e-5, intermediate_size=50)), num_labels=5),
        None,
    ),
    "hf_vit_model": (hf.ViTModel, hf.ViTConfig(**VIT),
                     hf.BitImageProcessorPil(size={"shortest_edge": 36}, crop_size={"height": 32, "width": 32},
                                          image_mean=[0.1, 0.2, 0.3])),
    "hf_deit": (hf.DeiTForImageClassification, hf.DeiTConfig(**VIT, **NAMES),
                hf.DeiTImageProcessorPil(size={"height": 36, "width": 36}, crop_size={"height": 32, "width": 32})),
    "hf_deit_teacher": (hf.DeiTForImageClassificationWithTeacher, hf.DeiTConfig(**VIT, **NAMES), None),
    "hf_dinov2": (hf.Dinov2ForImageClassification, hf.Dinov2Config(**SIZES, mlp_ratio=2, **NAMES),
                  hf.BitImageProcessorPil(size={"shortest_edge": 48}, crop_size={"height": 32, "width": 32})),
    "hf_dinov2_gated": (hf.Dinov2Model, hf.Dinov2Config(**SIZES, mlp_ratio=3, use_swiglu_ffn=True), None),
    "hf_dinov2_registers": (hf.Dinov2WithRegistersForImageClassification,
                            hf.Dinov2WithRegistersConfig(**SIZES, mlp_ratio=2, num_register_tokens=3, num_labels=5),
                            None),
    "hf_dinov2_registers_gated": (hf.Dinov2WithRegistersModel,
                                  hf.Dinov2WithRegistersConfig(**SIZES, mlp_ratio=3, use_swiglu_ffn=True), None),
    "hf_dinov3": (hf.DINOv3ViTModel, hf.DINOv3ViTConfig(**VIT, num_register_tokens=4),
                  hf.DINOv3ViTImageProcessor(size={"height": 32, "width": 32})),
    "hf_dinov3_gated": (hf.DINOv3ViTModel, hf.DINOv3ViTConfig(
        **(VIT | dict(image_size=[24, 40], num_channels=1, intermediate_size=52, hidden_act="silu", layer_norm_eps=1e-6)),
        use_gated_mlp=True, num_register_tokens=2, query_bias=False, value_bias=False, layerscale_value=0.5,
        rope_theta=50.0), None),
    "hf_dinov3_bias": (hf.DINOv3ViTModel, hf.DINOv3ViTConfig(**VIT, key_bias=True, num_register_tokens=1), None),
    "hf_mae": (hf.ViTMAEForPreTraining, hf.ViTMAEConfig(**MAE, norm_pix_loss=True), hf.ViTImageProcessorPil(
        size={"height": 32, "width": 32})),
    "hf_mae_pixels": (hf.ViTMAEForPreTraining, hf.ViTMAEConfig(**(MAE | dict(patch_size=4, mask_ratio=0.6)),
                                                               layer_norm_eps=1e-6), None),
    "hf_beit": (hf.BeitForImageClassification,
                hf.BeitConfig(**VIT, **NAMES, use_relative_position_bias=True), None),
    "hf_beit_unusual": (hf.BeitForImageClassification, hf.BeitConfig(
        **(VIT | dict(image_size=24, layer_norm_eps=1e-5)), num_labels=5, use_mask_token=True,
        use_shared_relative_position_bias=True, use_absolute_position_embeddings=True, use_mean_pooling=False,
        layer_scale_init_value=0.0), None),
    "hf_beit_model": (hf.BeitModel, hf.BeitConfig(**VIT, use_relative_position_bias=True,
                                                  use_shared_relative_position_bias=True), None),
    "hf_swin": (hf.SwinForImageClassification, hf.SwinConfig(**SWIN, **NAMES), hf.ViTImageProcessorPil(
        size={"height": 32, "width": 32}, resample=3)),
    "hf_swin_model": (hf.SwinModel, hf.SwinConfig(**(SWIN | dict(image_size=[64, 48], patch_size=[4, 2], depths=[2, 1],
                                                                 num_heads=[2, 4], mlp_ratio=2.5, qkv_bias=False,
                                                                 num_channels=1))), None),
    "hf_swinv2": (hf.Swinv2ForImageClassification, hf.Swinv2Config(**SWIN, **NAMES), None),
    "hf_swinv2_unusual": (hf.Swinv2ForImageClassification, hf.Swinv2Config(
        **(SWIN | dict(window_size=8, mlp_ratio=2.0, hidden_act="relu")), pretrained_window_sizes=[6, 4, 4],
        num_labels=5), None),
    # Towers by themselves: logits are what CLIP pools, before its projection, and what SigLIP's attention pools.
    "hf_clip_vision": (hf.CLIPVisionModel, hf.CLIPVisionConfig(**VIT, hidden_act="quick_gelu"), None),
    "hf_siglip_vision": (hf.SiglipVisionModel, hf.SiglipVisionConfig(**VIT), None),
    # Neither patches nor windows divide the images, and the last stage is one window high.
    "hf_swin_padded": (hf.SwinForImageClassification, hf.SwinConfig(
        **(SWIN | dict(image_size=[31, 43], depths=[2, 1, 2])), num_labels=5), None),
    # The windows of the last stage are those of fewer rows than it has.
    "hf_swinv2_padded": (hf.Swinv2ForImageClassification, hf.Swinv2Config(
        **(SWIN | dict(image_size=[43, 27], depths=[2, 1, 2], window_size=8)), num_labels=5), None),
    # It has no register tokens, and a tensor without elements for them.
    "hf_dinov3_bare": (hf.DINOv3ViTModel, hf.DINOv3ViTConfig(
        **(VIT | dict(num_hidden_layers=1, intermediate_size=30)), num_register_tokens=0), None),
}

# Of images at another size than the model's. The second of hf_dinov2's has as many patches as the model has positions,
# and the last one is cut short.
OTHER_SIZES = {
    "hf_vit": [(48, 48), (40, 24)],
    "hf_deit_teacher": [(40, 56)],
    "hf_beit": [(40, 56), (24, 24)],
    "hf_beit_unusual": [(40, 32)],
    "hf_beit_model": [(48, 40)],
    "hf_dinov2": [(48, 40), (16, 64), (24, 24), (36, 36), (37, 52)],
    "hf_dinov2_registers": [(48, 40), (16, 64), (37, 52)],
    "hf_dinov3": [(48, 40), (37, 52)],
    "hf_swin": [(40, 40), (43, 37), (25, 64)],
    "hf_swinv2": [(40, 40), (43, 37), (25, 64)],
    "hf_swinv2_padded": [(64, 20)],
}


def perturb(model, seed):
    """Every parameter gets values far from what it started with, of a size that keeps the model well-conditioned."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 1:
                is_scale = not name.endswith("bias")
                parameter.copy_(1 + 0.2 * noise if is_scale else 0.1 * noise)
            elif "token" in name or "pos" in name:
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(noise / parameter[0].numel() ** 0.5)


def saved(model):
    """The parameters by the names that save_pretrained() gives them."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(pathlib.Path(folder) / "model.safetensors")


def gradients(model):
    holder = copy.deepcopy(model)
    with torch.no_grad():
        for (_, parameter), (_, own) in zip(holder.named_parameters(), model.named_parameters()):
            parameter.copy_(torch.zeros_like(parameter) if own.grad is None else own.grad)
    without = {name for name, p in model.named_parameters() if p.grad is None}
    assert all("pooler" in name or "mask_token" in name or "pos" in name for name in without), without
    return {f"grad.{name}": tensor.float() for name, tensor in saved(holder).items()}


def image(config):
    size = config.image_size if isinstance(config.image_size, (list, tuple)) else [config.image_size] * 2
    return torch.randn((2, config.num_channels, *size), generator=torch.Generator().manual_seed(1)).double()


def write_variant(name, seed):
    cls, config, processor = VARIANTS[name]
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    model = cls(config).eval()
    perturb(model, seed)
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    if processor is not None:
        processor.save_pretrained(folder)
    model = model.double()
    x = image(config)
    expected = {"x": x}
    if cls is hf.ViTMAEForPreTraining:
        patches = (config.image_size // config.patch_size) ** 2
        noise = torch.rand((2, patches), generator=torch.Generator().manual_seed(2)).double()
        outputs = model(x, noise=noise)
        expected |= {"noise": noise, "mask": outputs.mask, "logits": outputs.logits, "loss": outputs.loss}
        outputs.loss.backward()
    else:
        outputs = model(x)
        pooled = isinstance(model, (hf.BeitModel, hf.SwinModel, hf.CLIPVisionModel, hf.SiglipVisionModel))
        logits = outputs.logits if hasattr(outputs, "logits") else outputs.pooler_output if pooled else \
            outputs.last_hidden_state[:, 0]
        expected["logits"] = logits
        expected["seed"] = torch.randn(logits.shape, generator=torch.Generator().manual_seed(3)).double()
        (logits * expected["seed"]).sum().backward()
    expected = {key: tensor.detach().float().contiguous() for key, tensor in expected.items()}
    save_file(expected | gradients(model), folder / "expected.safetensors")


def write_other_sizes():
    """For each of OTHER_SIZES the logits of the part x[:, :, :height, :width], NAME.HEIGHTxWIDTH.logits, and for a model whose
    forward takes every size .seed and .grad. of the tables of positions and of the bias of the patches."""
    x = torch.randn((1, 3, 64, 64), generator=torch.Generator().manual_seed(5)).double()
    expected = {"x": x}
    for name, sizes in OTHER_SIZES.items():
        cls = VARIANTS[name][0]
        for height, width in sizes:
            model = cls.from_pretrained(ROOT / name, attn_implementation="eager").eval().double()
            asked = dict(interpolate_pos_encoding=True) if "hf_vit" in name or "hf_deit" in name else {}
            outputs = model(x[:, :, :height, :width], **asked)
            start = f"{name}.{height}x{width}"
            logits = outputs.logits if hasattr(outputs, "logits") else outputs.pooler_output
            expected[f"{start}.logits"] = logits
            if "dino" in name or "swin" in name:
                seed = torch.randn(logits.shape, generator=torch.Generator().manual_seed(6)).double()
                expected[f"{start}.seed"] = seed
                (logits * seed).sum().backward()
                expected |= {f"{start}.{key}": value for key, value in gradients(model).items()
                             if key.endswith(("position_embeddings", "position_bias_table", "projection.bias"))}
    # At the largest scale of its scores V2 sees through a mask of -100, but not through the -200 of one that counts twice.
    # Windows of 2 x 2 have corners of a single token after the shift.
    model = hf.Swinv2ForImageClassification.from_pretrained(ROOT / "hf_swinv2_padded", window_size=2).eval().double()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "logit_scale" in key:
                parameter.fill_(5)
    expected["largest_scale.logits"] = model(x).logits
    expected = {key: tensor.detach().float().contiguous() for key, tensor in expected.items()}
    save_file(expected, ROOT / "hf_sizes.safetensors")


def encoder_for_timm(weights):
    """The tensors of ViTModel by timm's names, the final norm behind the pooling."""
    renamed = {"embeddings.cls_token": "cls_token", "embeddings.position_embeddings": "pos_embed",
               "embeddings.patch_embeddings.projection": "patch_embed.proj", "layernorm": "fc_norm"}
    parts = {"layernorm_before": "norm1", "attention.output.dense": "attn.proj", "layernorm_after": "norm2",
             "intermediate.dense": "mlp.fc1", "output.dense": "mlp.fc2"}
    state = {}
    for kind in ["weight", "bias"]:
        for i in range(SIZES["num_hidden_layers"]):
            layer = f"encoder.layer.{i}"
            joined = [weights[f"{layer}.attention.attention.{part}.{kind}"] for part in ["query", "key", "value"]]
            state[f"blocks.{i}.attn.qkv.{kind}"] = torch.cat(joined)
            renamed |= {f"{layer}.{theirs}": f"blocks.{i}.{own}" for theirs, own in parts.items()}
    for theirs, own in renamed.items():
        state |= {own + name.removeprefix(theirs): weights[name] for name in weights
                  if name == theirs or name in (f"{theirs}.weight", f"{theirs}.bias")}
    return state


def write_encoder_of_mae():
    """What the encoder of a masked autoencoder gives for all patches, as ViTModel has it; and with a head behind it, as it is
    fine-tuned: `token`, by the class token (ViTForImageClassification), and `avg`, by the mean of the patches as He et al. do
    (timm's VisionTransformer), with the gradients of Σ logits · seed."""
    folder = ROOT / "hf_mae"
    model = hf.ViTModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager").eval()
    config, weights = model.config, saved(model)
    x = image(config)
    generator = torch.Generator().manual_seed(4)
    head = {"weight": torch.randn((5, config.hidden_size), generator=generator) / config.hidden_size ** 0.5,
            "bias": 0.1 * torch.randn(5, generator=generator)}
    seed = torch.randn((2, 5), generator=generator)
    expected = {"x": x, "logits": model.double()(x).last_hidden_state[:, 0], "seed": seed}
    expected |= {f"head.{name}": tensor for name, tensor in head.items()}

    token = hf.ViTForImageClassification.from_pretrained(folder, num_labels=5, attn_implementation="eager").double().eval()
    token.classifier.load_state_dict(head)
    logits = token(x).logits
    (logits * seed).sum().backward()
    expected |= {"token.logits": logits} | {f"token.{name}": tensor for name, tensor in gradients(token).items()}

    mean = timm.models.VisionTransformer(
        img_size=config.image_size, patch_size=config.patch_size, num_classes=5, global_pool="avg",
        embed_dim=config.hidden_size, depth=config.num_hidden_layers, num_heads=config.num_attention_heads,
        mlp_ratio=config.intermediate_size / config.hidden_size,
        norm_layer=functools.partial(torch.nn.LayerNorm, eps=config.layer_norm_eps)).double().eval()
    mean.load_state_dict(encoder_for_timm(weights) | {f"head.{name}": tensor for name, tensor in head.items()})
    logits = mean(x)
    (logits * seed).sum().backward()
    expected |= {"avg.logits": logits} | {f"avg.grad.{name}": p.grad for name, p in mean.named_parameters()}
    save_file({key: tensor.detach().float().contiguous() for key, tensor in expected.items()},
              folder / "encoder.safetensors")


def main():
    wanted = sys.argv[1:] or [*VARIANTS, "encoder", "sizes"]
    for seed, name in enumerate(VARIANTS):
        if name in wanted:
            write_variant(name, seed)
    if "encoder" in wanted:
        write_encoder_of_mae()
    if "sizes" in wanted:
        write_other_sizes()


if __name__ == "__main__":
    main()
