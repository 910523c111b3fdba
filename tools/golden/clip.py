"""Fixtures of models of images and texts: tests/golden/models/joint/*, and of their losses, losses.safetensors.

    python tools/golden/clip.py            # all
    python tools/golden/clip.py clip       # some, by name
    python tools/golden/clip.py losses

A fixture is a folder as save_pretrained() writes it, with every parameter perturbed, and beside it expected.safetensors,
computed in float64: pixel_values [B, C, H, W], input_ids [B, N] (behind its end token, a text has padding: end tokens
again); transformers' image_embeds, text_embeds, logits_per_image, the loss of return_loss=True, and `grad.NAME` of that
loss by the names in the folder's file. `clip` has a tokenizer and a preprocessor too, and captions.json with the ids that
the tokenizer gives each text, padded and cut to the positions of the model.

Needs transformers 5.23, torch 2.13.0, tokenizers and safetensors.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers.models.clip.modeling_clip import image_text_contrastive_loss

from text_kinds import CLIP, affixed

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
CAPTIONS = [
    "a photo of a red bird", "a photo of a blue circle", "a small green square on the left", "two red triangles",
    "The Bird's   wing isn't RED!", "a large bird, and a circle", "an ORANGE cafe\u0301", "42 circles",
    "a red bird " * 9, "",
]


def captions_tokenizer():
    """A CLIPTokenizer of the captions: as OpenAI's, its special tokens are the last."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    split = pre_tokenizers.Split(Regex(CLIP), "removed", invert=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    vocab, merges = affixed(CAPTIONS, tokenizer, lambda c: c + "</w>", size=110, end_of_word_suffix="</w>",
                            special_tokens=[])
    for token in ("<|startoftext|>", "<|endoftext|>"):
        vocab[token] = len(vocab)
    return hf.CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=16)


TOKENIZER = captions_tokenizer()
START, END = TOKENIZER.bos_token_id, TOKENIZER.eos_token_id
VISION = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2, image_size=12, patch_size=4)
TEXT = dict(vocab_size=len(TOKENIZER), hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
            max_position_embeddings=16, bos_token_id=START, eos_token_id=END, pad_token_id=END)

VARIANTS = {
    "clip": dict(vision_config=VISION, text_config=TEXT, projection_dim=10),
    # As laion's: gelu; and OpenAI's first configs named an end token that is none.
    "clip_gelu": dict(vision_config=VISION | dict(hidden_act="gelu", num_channels=1, layer_norm_eps=1e-3),
                      text_config=TEXT | dict(hidden_act="gelu", eos_token_id=2, num_attention_heads=2), projection_dim=6),
}


def perturbed(model, generator):
    with torch.no_grad():
        for parameter in model.parameters():
            spread = 0.2 if parameter.ndim > 1 else 0.1
            parameter.add_(spread * torch.randn(parameter.shape, generator=generator))
    return model


def save(tensors, file):
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: (t.detach().float() if t.is_floating_point() else t).contiguous() for name, t in tensors.items()},
              file)


def write(name):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    torch.manual_seed(1)
    config = hf.CLIPConfig(**VARIANTS[name])
    model = perturbed(hf.CLIPModel(config), generator).eval()
    folder = ROOT / "models/joint" / name
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        folder.mkdir(parents=True)
        for file in ("config.json", "model.safetensors"):
            shutil.copy(pathlib.Path(temporary) / file, folder / file)
    if name == "clip":
        TOKENIZER.save_pretrained(folder)
        processor = hf.CLIPImageProcessor(size={"shortest_edge": 12}, crop_size={"height": 12, "width": 12})
        processor.save_pretrained(folder)
        ids = TOKENIZER(CAPTIONS, padding="max_length", truncation=True).input_ids
        (folder / "captions.json").write_text(json.dumps({"captions": CAPTIONS, "ids": ids}) + "\n")
    write_expected(folder, model, TOKENIZER(CAPTIONS[:3], padding="max_length", truncation=True).input_ids, generator)


def write_expected(folder, model, ids, generator):
    """expected.safetensors: what the model of the folder makes of random images and of texts with these ids."""
    stored = load_file(folder / "model.safetensors")
    model = model.double()
    vision = model.config.vision_config
    pixels = torch.randn(3, vision.num_channels, vision.image_size, vision.image_size, generator=generator)
    ids = torch.tensor(ids)
    out = model(input_ids=ids, pixel_values=pixels.double(), return_loss=True)
    out.loss.backward()
    own = dict(model.named_parameters())
    tensors = {"pixel_values": pixels, "input_ids": ids, "image_embeds": out.image_embeds, "text_embeds": out.text_embeds,
               "logits_per_image": out.logits_per_image, "loss": out.loss}
    tensors |= {f"grad.{label}": own[label].grad for label in stored}
    save(tensors, folder / "expected.safetensors")


def siglip_loss(model_type, images, texts, scale, bias):
    """The loss in transformers' SiglipModel.forward, of embeddings in place of a model's outputs."""
    class Fixed(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def forward(self, **_):
            return hf.modeling_outputs.BaseModelOutputWithPooling(pooler_output=self.value)

    class Embeddings(torch.nn.Module):
        config = hf.SiglipConfig()

    model = Embeddings()
    model.vision_model, model.text_model = Fixed(images), Fixed(texts)
    model.get_image_features = lambda **_: model.vision_model()
    model.get_text_features = lambda **_: model.text_model()
    model.logit_scale, model.logit_bias = scale, bias
    return model_type.forward(model, input_ids=None, pixel_values=None, return_loss=True)


def losses():
    generator = torch.Generator().manual_seed(7)
    leaf = lambda value: value.float().double().requires_grad_()
    images, texts = (leaf(torch.randn(5, 6, generator=generator)) for _ in range(2))
    scale = leaf(torch.tensor(1.7))
    tensors = {"images": images, "texts": texts, "clip.logit_scale": scale}
    normed = lambda x: x / x.norm(dim=-1, keepdim=True)
    logits = normed(texts) @ normed(images).T * scale.exp()
    loss = image_text_contrastive_loss(logits)
    loss.backward()
    tensors |= {"clip.loss": loss, "clip.grad.images": images.grad.clone(), "clip.grad.texts": texts.grad.clone(),
                "clip.grad.logit_scale": scale.grad.clone()}
    images.grad = texts.grad = None
    scale, bias = leaf(torch.tensor([1.3])), leaf(torch.tensor([-2.5]))
    out = siglip_loss(hf.SiglipModel, images, texts, scale, bias)
    out.loss.backward()
    tensors |= {"siglip.logit_scale": scale, "siglip.logit_bias": bias, "siglip.loss": out.loss,
                "siglip.logits_per_image": out.logits_per_image, "siglip.grad.images": images.grad,
                "siglip.grad.texts": texts.grad, "siglip.grad.logit_scale": scale.grad, "siglip.grad.logit_bias": bias.grad}
    save(tensors, ROOT / "models/joint/losses.safetensors")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [*VARIANTS, "losses"]:
        losses() if wanted == "losses" else write(wanted)
        print(wanted)
