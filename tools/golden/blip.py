"""Fixtures of BLIP: tests/golden/models/joint/blip_{vqa,caption}.

    python tools/golden/blip.py

Needs torch, transformers 5.23 and safetensors. Each fixture is a folder as save_pretrained() of BlipForQuestionAnswering or
BlipForConditionalGeneration and of BlipProcessor writes it, with every parameter perturbed, and beside it expected.safetensors,
computed in float64: pixel_values [B, 3, H, W]; questions or prompts with padding (input_ids, attention_mask) and
decoder_input_ids; logits; cross_attention.{i} of the question encoder or of the decoder; `grad.NAME` of Σ logits · to_logits; and
what generate() writes, in rows that end with padding: greedy and beams (3 beams), in a batch with padding, and of single questions
(alone.{b}); of captions also behind a prompt (prompted.greedy, prompted.beams). preprocessed is BlipImageProcessor's result for
image [H, W, 3] u8. loss is that of BLIP's train_vqa (models/blip_vqa.py), without label smoothing, of answers [A, N] to the questions
answer_rows [A] with the weights answer_weights [A], and `loss_grad.NAME` its gradients for some parameters.
"""

import json
import pathlib
import shutil
import tempfile

import numpy as np
import torch
import transformers as hf
from PIL import Image
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models/joint"
WORDS = ("what colour is the head of large bird ? how many small circles are there red blue green a picture left no yes two "
         "three ##s ##ish , square and").split()  # fmt: skip
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "[DEC]", "[ENC]"]


def config(width, **text):
    vision = dict(hidden_size=width, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2, image_size=24, patch_size=8)
    text = dict(vocab_size=len(VOCAB), hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
                max_position_embeddings=20, bos_token_id=len(VOCAB) - 2, sep_token_id=3, pad_token_id=0, eos_token_id=3) | text
    return hf.BlipConfig(text_config=text, vision_config=vision)


def perturbed(model, generator, end):
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            scale = 1 if "position_embedding" in name or "transform.dense" in name else 0.4 if tensor.ndim > 1 else 0.2
            tensor.add_(scale * torch.randn(tensor.shape, generator=generator))
            if name == "text_decoder.cls.predictions.bias":
                tensor[3] += end  # [SEP], so that texts of several lengths are written
    return model.eval()


def padded(rows, length=None):
    length = length or max(map(len, rows))
    return torch.tensor([list(row) + [0] * (length - len(row)) for row in rows])


def save(model, tensors, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        (pathlib.Path(temporary) / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
        tokenizer = hf.BertTokenizer(str(pathlib.Path(temporary) / "vocab.txt"))
        processor = hf.BlipProcessor(hf.BlipImageProcessorPil(size={"height": 24, "width": 24}), tokenizer)
        processor.image_processor.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        for name in ("model.safetensors", "config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json"):
            source = pathlib.Path(temporary) / name
            if not source.exists() and name == "preprocessor_config.json":
                (folder / name).write_text(json.dumps(processor.image_processor.to_dict(), indent=2) + "\n")
                continue
            shutil.copy(source, folder)
    image = np.random.default_rng(5).integers(0, 256, (30, 37, 3), dtype=np.uint8)
    image[4:20, 6:30] = image[10, 10]
    pixels = processor.image_processor(Image.fromarray(image), return_tensors="pt").pixel_values[0]
    tensors |= {"image": torch.from_numpy(image), "preprocessed": pixels}
    save_file({k: (t.detach().float() if t.is_floating_point() else t.detach()).contiguous() for k, t in tensors.items()},
              folder / "expected.safetensors")


def recorded(model, name):
    """Hooks that keep the probabilities of the cross-attention of the text model `name`."""
    maps = []
    hooks = [layer.crossattention.self.register_forward_hook(lambda module, args, result: maps.append(result[1]))
             for layer in name.encoder.layer]
    return maps, hooks


def differentiate(model, out, tensors, generator):
    tensors["to_logits"] = torch.randn(out.shape, generator=generator)
    (out * tensors["to_logits"]).sum().backward()
    return {f"grad.{name}": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def questions():
    generator = torch.Generator().manual_seed(14)
    torch.manual_seed(2)
    model = perturbed(hf.BlipForQuestionAnswering(config(16)), generator, 1.5).double()
    pixels = torch.randn(3, 3, 24, 24, generator=generator)
    ids = [[2, 5, 6, 7, 8, 9, 10, 8, 11, 12, 13, 3], [2, 14, 15, 17, 18, 19, 13, 3], [2, 7, 19, 24, 20, 3]]
    tensors = {"pixel_values": pixels, "input_ids": padded(ids)}
    mask = tensors["attention_mask"] = (tensors["input_ids"] != 0).long()
    decoder = tensors["decoder_input_ids"] = padded([[len(VOCAB) - 2, 20, 31, 22], [len(VOCAB) - 2, 28, 3, 0], [len(VOCAB) - 2, 27, 7, 5]])
    maps, hooks = recorded(model, model.text_encoder)
    # The logits of the decoder's call inside forward(), which returns its loss alone.
    kept = []
    hooks.append(model.text_decoder.register_forward_hook(lambda module, args, result: kept.append(result.logits)))
    model(input_ids=tensors["input_ids"], pixel_values=pixels.double(), attention_mask=mask, decoder_input_ids=decoder)
    [hook.remove() for hook in hooks]
    tensors["logits"] = kept[0]
    tensors |= {f"cross_attention.{i}": attention for i, attention in enumerate(maps)}
    tensors |= differentiate(model, kept[0], tensors, generator)
    for name, how in (("greedy", dict(num_beams=1)), ("beams", dict(num_beams=3))):
        tensors[name] = model.generate(tensors["input_ids"], pixels.double(), mask, max_new_tokens=9, do_sample=False, **how)
    for b, row in enumerate(ids):
        tensors[f"alone.{b}"] = model.generate(torch.tensor([row]), pixels[b : b + 1].double(), max_new_tokens=9, do_sample=False)
    print(tensors["greedy"], tensors["beams"])
    tensors |= train_vqa(model, tensors)
    save(model.float(), tensors, ROOT / "blip_vqa")


def train_vqa(model, tensors):
    """What models/blip_vqa.py of salesforce/BLIP computes in training: the states of each question, repeated for its answers. Each
    question by itself, as transformers 5.23 shows the decoder also the states of padding, which BLIP's own code masks."""
    answers = padded([[len(VOCAB) - 2, 19, 3], [len(VOCAB) - 2, 20, 31, 3], [len(VOCAB) - 2, 28, 3], [len(VOCAB) - 2, 21, 22, 24, 3]])
    rows, weights = torch.tensor([0, 0, 1, 2]), torch.tensor([0.75, 0.25, 1, 1], dtype=torch.float64)
    model.zero_grad()
    loss = 0
    for b, (pixels, ids, mask) in enumerate(zip(tensors["pixel_values"], tensors["input_ids"], tensors["attention_mask"])):
        image = model.vision_model(pixels[None].double())[0]
        states = model.text_encoder(ids[None, : mask.sum()], encoder_hidden_states=image)[0]
        own = answers[rows == b]
        out = model.text_decoder(own, attention_mask=(own != 0).long(), encoder_hidden_states=states.expand(len(own), -1, -1),
                                 labels=own.masked_fill(own == 0, -100), reduction="none")  # fmt: skip
        loss = loss + (weights[rows == b] * out.loss).sum() / 3
    loss.backward()
    kept = ("vision_model.encoder.layers.0.self_attn.qkv.weight", "text_encoder.encoder.layer.1.crossattention.self.key.weight",
            "text_encoder.embeddings.word_embeddings.weight", "text_decoder.bert.embeddings.word_embeddings.weight",
            "text_decoder.bert.encoder.layer.0.crossattention.self.value.weight")  # fmt: skip
    named = dict(model.named_parameters())
    return {"answers": answers, "answer_rows": rows, "answer_weights": weights, "loss": loss} | {
        f"loss_grad.{name}": named[name].grad.clone() for name in kept}


def captions():
    generator = torch.Generator().manual_seed(44)
    torch.manual_seed(3)
    model = perturbed(hf.BlipForConditionalGeneration(config(12, num_attention_heads=4, hidden_act="gelu_new")), generator, 2.0).double()
    pixels = torch.randn(2, 3, 24, 24, generator=generator)
    start = len(VOCAB) - 2
    tensors = {"pixel_values": pixels, "decoder_input_ids": padded([[start, 23, 24, 9, 3], [start, 20, 31, 3, 0]])}
    maps, hooks = recorded(model, model.text_decoder.bert)
    out = model(pixel_values=pixels.double(), input_ids=tensors["decoder_input_ids"]).logits
    [hook.remove() for hook in hooks]
    tensors["logits"] = out
    tensors |= {f"cross_attention.{i}": attention for i, attention in enumerate(maps)}
    tensors |= differentiate(model, out, tensors, generator)
    prompt = torch.tensor([[2, 23, 24, 3], [2, 23, 24, 3]])  # [CLS] becomes [DEC], and [SEP] goes
    for name, how in (("greedy", dict(num_beams=1)), ("beams", dict(num_beams=3))):
        how |= dict(max_new_tokens=9, do_sample=False)
        tensors[name] = model.generate(pixels.double(), **how)
        tensors[f"prompted.{name}"] = model.generate(pixels.double(), prompt.clone(), **how)
    print(tensors["greedy"], tensors["beams"], tensors["prompted.greedy"])
    save(model.float(), tensors, ROOT / "blip_caption")


if __name__ == "__main__":
    questions()
    captions()
