"""Checks that transformers reads the language models that vitrail has trained, and computes and writes the same.

    python tools/check_language.py [--vitrail build/bin/vitrail] [FAMILY …]

For each family, vitrail learns a tokenizer of byte-level BPE and a small model from a few sentences (of a family without
a name in vitrail, from a model that transformers has made), Image GPT from a few pictures. from_pretrained() must then
find no missing or unexpected key, its logits be those of `vitrail forward`, and its greedy texts those of
`vitrail generate`. Needs transformers 5.23, torch and pillow; nothing of vitrail needs this.
"""

import json
import pathlib
import tempfile

import torch
import transformers as hf
from PIL import Image

from checks import Program, close, loaded, parser_of

NOUNS = ["dog", "cat", "old horse", "small bird"]
VERBS = ["runs today", "sleeps in the rain", "eats the snow", "sees the café"]
LINES = [f"The {noun} {verb}." for noun in NOUNS for verb in VERBS]
LLAMA = ["hidden_size=32", "num_hidden_layers=2", "num_attention_heads=4", "num_key_value_heads=2", "intermediate_size=64"]
LLAMA_CONFIG = {key: int(value) for key, value in (item.split("=") for item in LLAMA)}
# Of each family, its class in transformers and the arguments of vitrail, or what transformers makes the model of.
FAMILIES = {
    "gpt2": ("GPT2LMHeadModel", ["--model", "gpt2", "--model-kwargs", "n_embd=32", "n_layer=2", "n_head=4"]),
    "llama3": ("LlamaForCausalLM", ["--model", "llama-3.2-1b", "--model-kwargs", *LLAMA, "head_dim=8"]),
    "tinyllama": ("LlamaForCausalLM", ["--model", "tinyllama-1.1b", "--model-kwargs", *LLAMA]),
    "smollm2": ("LlamaForCausalLM", ["--model", "smollm2-135m", "--model-kwargs", *LLAMA]),
    "qwen2": ("Qwen2ForCausalLM", ["--model", "qwen2-0.5b", "--model-kwargs", *LLAMA]),
    "bloom": ("BloomForCausalLM", ["--model", "bloom-560m", "--model-kwargs", "hidden_size=32", "n_layer=2", "n_head=4"]),
    "mistral": ("MistralForCausalLM", hf.MistralConfig(sliding_window=8, max_position_embeddings=128, **LLAMA_CONFIG)),
    "imagegpt": ("ImageGPTForCausalImageModeling",
                 ["--model", "imagegpt-small", "--model-kwargs", "n_embd=32", "n_layer=2", "n_head=4"]),
}

parser = parser_of(__doc__)
parser.add_argument("families", nargs="*", metavar="FAMILY", default=list(FAMILIES), help=", ".join(FAMILIES))
options = parser.parse_args()
vitrail = Program(options.vitrail)


def write_pictures(folder):
    for label in ("dark", "light"):
        (folder / label).mkdir(parents=True)
        for i in range(8):
            noise = torch.randint(0, 120, (8, 8, 3), generator=torch.Generator().manual_seed(i)).to(torch.uint8)
            Image.fromarray((noise + (120 if label == "light" else 0)).numpy()).save(folder / label / f"{i}.png")


def trained(work, family, model):
    """The folder of a model that vitrail has trained."""
    common = ["--epochs", 3, "--batch-size", 4, "--lr", "1e-2", "--warmup-epochs", 0, "--drop", 0, "--threads", 1, "--output",
              work / "runs", "--experiment", family]
    if family == "imagegpt":
        write_pictures(work / "pictures")
        vitrail("train", work / "pictures", "--task", "pixels", "--img-size", 8, "--clusters", 16, "--val-split", "", *model,
                *common)
    else:
        if not isinstance(model, list):
            tokenizer = hf.AutoTokenizer.from_pretrained(work / "tokenizer")
            model.vocab_size = tokenizer.vocab_size
            made = work / f"{family}-made"
            getattr(hf, FAMILIES[family][0])(model).save_pretrained(made)
            tokenizer.save_pretrained(made)
            model = ["--model", made]
        else:
            model = [*model, "--tokenizer", work / "tokenizer"]
        vitrail("train", work / "lines.txt", "--task", "lm", "--block-size", 32, *model, *common)
    return work / "runs" / family / "best"


def check(work, family):
    kind, model = FAMILIES[family]
    folder = trained(work, family, model)
    theirs = loaded(getattr(hf, kind), folder)
    ids = torch.randint(0, theirs.config.vocab_size, (3, 14), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        close(vitrail.forward(folder, work, input_ids=ids)["logits"], theirs(ids).logits, f"{family} logits")
    if family == "imagegpt":
        return
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    for prompt in ("The dog", "The small bird sleeps", "A café"):
        said = json.loads(vitrail("generate", folder, prompt, "--max-new-tokens", 20, "--json"))
        with torch.no_grad():
            batch = tokenizer([prompt], return_tensors="pt")
            batch.pop("token_type_ids", None)
            rows = theirs.generate(**batch, max_new_tokens=20, do_sample=False, pad_token_id=0)[0].tolist()
        new = rows[batch["input_ids"].shape[1]:]
        assert said["sequences"][0]["ids"] == new, (family, prompt, said, new)
    print(f"{family} texts are the same")


with tempfile.TemporaryDirectory() as temporary:
    work = pathlib.Path(temporary)
    (work / "lines.txt").write_text("\n".join(LINES * 4) + "\n", encoding="utf-8")
    vitrail("tokenizer", "train", work / "lines.txt", "--model", "bpe", "--vocab-size", 300, "--output", work / "tokenizer")
    for family in options.families:
        check(work, family)
print("passed")
