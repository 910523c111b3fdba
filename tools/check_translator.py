"""Checks a translator's folder in transformers: no missing or unexpected key, and the same translations as vitrail's.

    python tools/check_translator.py build/bin/vitrail runs/de-en/best test.de [LINES]

Translates the first lines of the file (default 100) greedily and by beam search with both, and names each difference.
Needs transformers 5.23, torch 2.13.0 and sentencepiece.
"""

import itertools
import json
import subprocess
import sys

import torch
from transformers import MarianMTModel, MarianTokenizer

program, folder, file = sys.argv[1:4]
count = int(sys.argv[4]) if len(sys.argv) > 4 else 100
lines = [line.rstrip("\n") for line in itertools.islice(open(file, encoding="utf-8"), count)]

model, info = MarianMTModel.from_pretrained(folder, output_loading_info=True)
problems = {key: value for key, value in info.items() if value}
assert not problems, problems
tokenizer = MarianTokenizer.from_pretrained(folder)
model.eval()

different = 0
for beams in (1, 5):
    command = [program, "translate", folder, "-", "--json", "--num-beams", str(beams)]
    ours = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    for line, answer in zip(lines, map(json.loads, ours.stdout.splitlines())):
        with torch.no_grad():
            batch = tokenizer([line], return_tensors="pt")
            assert batch["input_ids"][0].tolist() == tokenizer.convert_tokens_to_ids(answer["tokens"]), line
            theirs = model.generate(**batch, num_beams=beams)[0].tolist()
        text = tokenizer.decode(theirs, skip_special_tokens=True)
        one = answer["translations"][0]
        if theirs[1:] != one["ids"] or text != one["text"]:
            different += 1
            print(f"{beams} beams: {line}\n  transformers: {text}\n  vitrail:      {one['text']}")
print(f"{2 * len(lines)} translations, {different} different; no missing or unexpected key")
sys.exit(different > 0)
