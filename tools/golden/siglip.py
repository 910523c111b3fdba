"""Fixtures of transformers' SiglipModel: tests/golden/models/joint/siglip*.

    python tools/golden/siglip.py            # all
    python tools/golden/siglip.py siglip     # some, by name

A fixture is a folder as save_pretrained() writes it, with every parameter perturbed, and beside it expected.safetensors,
computed in float64: pixel_values [B, C, H, W], input_ids [B, N] padded to the positions of the model; transformers'
image_embeds, text_embeds, logits_per_image, the loss of return_loss=True, and `grad.NAME` of that loss by the names in the
folder's file. captions.json has the ids that the folder's tokenizer gives each text, padded and cut. `siglip` has a
SiglipTokenizer (spiece.model), as Google's first ones, and `siglip_json` a tokenizer.json whose padding is a token of its
own, as SigLIP 2.

Needs transformers 5.23, torch 2.13.0, sentencepiece, tokenizers and safetensors.
"""

import io
import json
import pathlib
import shutil
import sys
import tempfile

import sentencepiece
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from clip import CAPTIONS, ROOT, perturbed, write_expected

TEXTS = CAPTIONS + ["  two  birds ", "a_b (c) \u2014 d\u2581e", "\u0130STANBUL stra\u00dfe"]
LONGEST = 16


def sentencepiece_tokenizer(folder):
    """As that of C4 with which Google's models were trained: padding, end and unknown token come first."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text.lower() for text in TEXTS if text]), model_writer=model, vocab_size=96,
        hard_vocab_limit=False, normalization_rule_name="identity", pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        character_coverage=1.0, num_threads=1, minloglevel=2)
    file = folder / "spiece.model"
    file.write_bytes(model.getvalue())
    return hf.SiglipTokenizer(str(file), model_max_length=LONGEST, model_input_names=["input_ids"])


def fast_tokenizer(_):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(" ", "\u2581")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.Fuse()])
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=90, special_tokens=["<pad>", "<eos>", "<unk>"],
                                                             show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LONGEST, pad_token="<pad>",
                                      eos_token="<eos>", unk_token="<unk>", model_input_names=["input_ids"])


VISION = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2, image_size=12, patch_size=4)
TEXT = dict(hidden_size=16, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=LONGEST)
VARIANTS = {
    "siglip": (sentencepiece_tokenizer, VISION, TEXT),
    "siglip_json": (fast_tokenizer, VISION | dict(hidden_size=12, num_attention_heads=3, num_channels=1, layer_norm_eps=1e-3),
                    TEXT | dict(hidden_size=20, projection_size=12, hidden_act="gelu", num_hidden_layers=1)),
}


def write(name):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    torch.manual_seed(1)
    make_tokenizer, vision, text = VARIANTS[name]
    folder = ROOT / "models/joint" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        tokenizer = make_tokenizer(temporary)
        tokenizer.save_pretrained(folder)
        model = hf.SiglipModel(hf.SiglipConfig(vision_config=vision, text_config=text | dict(vocab_size=len(tokenizer))))
        perturbed(model, generator).eval().save_pretrained(temporary)
        for file in ("config.json", "model.safetensors"):
            shutil.copy(temporary / file, folder / file)
    if name == "siglip":
        hf.SiglipImageProcessor(size={"height": 12, "width": 12}).save_pretrained(folder)
    ids = tokenizer(TEXTS, padding="max_length", truncation=True).input_ids
    (folder / "captions.json").write_text(json.dumps({"captions": TEXTS, "ids": ids}) + "\n")
    write_expected(folder, model, ids[:3], generator)


for wanted in sys.argv[1:] or VARIANTS:
    write(wanted)
    print(wanted)
