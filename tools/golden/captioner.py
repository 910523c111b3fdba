"""Writes the fixtures of transformers' VisionEncoderDecoderModel with a ViT, DeiT or Swin as encoder and GPT-2 as decoder:
folders with perturbed random weights, logits and gradients of a batch, and what greedy and beam search write.

usage: captioner.py tests/golden
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (DeiTConfig, DeiTImageProcessor, DeiTModel, GPT2Config, GPT2LMHeadModel,
                          SwinConfig, SwinModel, VisionEncoderDecoderModel, ViTConfig, ViTImageProcessor, ViTModel)

START, VOCABULARY = 58, 60
KEPT = ["h.1.", "wte", "enc_to_dec_proj", "patch_embeddings", "layer.0.attention.output", "lm_head"]  # gradients


def perturb(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            size = 0.6 if "crossattention" in name or "wpe" in name else 0.2
            parameter.add_(size * torch.randn(parameter.shape, generator=generator))


def vit(**more):
    return dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40, image_size=16,
                patch_size=8, **more)


def gpt2(**more):
    return GPT2Config(vocab_size=VOCABULARY, n_positions=24, n_layer=2, n_head=2, add_cross_attention=True,
                      is_decoder=True, bos_token_id=START, **more)


CASES = {
    # The end token is one that these weights write. Another width than the decoder's: there is an enc_to_dec_proj.
    "vit": lambda: (7, ViTModel(ViTConfig(**vit(hidden_act="gelu"))), gpt2(n_embd=32, n_inner=48)),
    # The same width, two special tokens in front, no pooler, an untied head, scores that are scaled by the layer's number.
    "deit": lambda: (9, DeiTModel(DeiTConfig(**vit()), add_pooling_layer=False),
                     gpt2(n_embd=24, activation_function="gelu", scale_attn_by_inverse_layer_idx=True,
                          tie_word_embeddings=False)),
    # Features on a grid, whose width grows from stage to stage.
    "swin": lambda: (9, SwinModel(SwinConfig(image_size=16, patch_size=2, embed_dim=12, depths=[1, 1], num_heads=[1, 2],
                                             window_size=2, mlp_ratio=2.0)),
                     gpt2(n_embd=16)),
}


def main(root):
    for name, parts in CASES.items():
        torch.manual_seed(0)
        end, encoder, config = parts()
        config.eos_token_id = end
        model = VisionEncoderDecoderModel(encoder=encoder, decoder=GPT2LMHeadModel(config))
        model.config.decoder_start_token_id = START
        model.config.eos_token_id = end
        model.config.pad_token_id = end
        model.generation_config.decoder_start_token_id = START
        model.generation_config.eos_token_id = end
        model.generation_config.pad_token_id = end
        perturb(model, 1)
        model.eval()
        folder = root / "models/joint/captioner" / name
        folder.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(folder)
        size = {"height": 16, "width": 16}
        processor = ViTImageProcessor(size=size) if name != "deit" else DeiTImageProcessor(size=size, crop_size=size)
        processor.save_pretrained(folder)

        generator = torch.Generator().manual_seed(2)
        x = torch.randn(3, 3, 16, 16, generator=generator)
        labels = torch.randint(0, START, (3, 6), generator=generator)
        labels[1, 4:] = -100
        labels[2, 5:] = -100
        out = model(pixel_values=x, labels=labels, output_attentions=True)
        out.loss.backward()
        tensors = {"pixel_values": x, "labels": labels, "logits": out.logits, "loss": out.loss}
        tensors["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
        tensors["encoder_last_hidden_state"] = out.encoder_last_hidden_state
        for key, parameter in model.named_parameters():
            if parameter.grad is not None and any(part in key for part in KEPT):
                tensors["grad." + key] = parameter.grad
        written = {}
        with torch.no_grad():
            model.set_attn_implementation("eager")
            seen = model(pixel_values=x, decoder_input_ids=tensors["decoder_input_ids"], output_attentions=True)
            for i, attention in enumerate(seen.cross_attentions):
                tensors[f"cross_attention.{i}"] = attention
            ways = {"greedy": dict(num_beams=1), "beams": dict(num_beams=4),
                    "short": dict(num_beams=4, length_penalty=-1.0, early_stopping=True),
                    "long": dict(num_beams=4, length_penalty=2.0, early_stopping=False, num_return_sequences=2)}
            for way, how in ways.items():
                ids = model.generate(x, max_length=12, do_sample=False, **how)
                written[way] = {"config": how, "ids": [row.tolist() for row in ids]}
        save_file({k: v.detach().contiguous().clone() for k, v in tensors.items()}, folder / "expected.safetensors")
        (folder / "expected.json").write_text(json.dumps(written, indent=1) + "\n")
        print(name, sum(p.numel() for p in model.parameters()), sorted(f.name for f in folder.iterdir()))
        print({k: v for k, v in written.items()})


main(Path(sys.argv[1]))
