"""Checks a translator's folder in transformers and CTranslate2: no missing or unexpected key, and vitrail's translations.

    python tools/check_translator.py build/bin/vitrail runs/de-en/best test.de [LINES]

Translates the first lines of the file (default 100) greedily and by beam search with both, and names each difference.
Where CTranslate2 is installed, its converter takes the folder, and its greedy translations must be the same; of those by
beams, whose search is another, it counts how many are. Needs transformers 5.23, torch 2.13.0 and sentencepiece.
"""

import itertools
import json
import subprocess
import sys
import tempfile

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
answers = {}
for beams in (1, 5):
    command = [program, "translate", folder, "-", "--json", "--num-beams", str(beams)]
    ours = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answers[beams] = list(map(json.loads, ours.stdout.splitlines()))
    for line, answer in zip(lines, answers[beams]):
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

try:
    import ctranslate2
except ImportError:
    print("CTranslate2 is not installed")
    sys.exit(different > 0)
with tempfile.TemporaryDirectory() as converted:
    ctranslate2.converters.TransformersConverter(folder).convert(converted, force=True)
    translator = ctranslate2.Translator(converted)
    for beams, ours in answers.items():
        results = translator.translate_batch([answer["tokens"] for answer in ours], beam_size=beams,
                                             # without the start and the end, which transformers forces
                                             max_decoding_length=model.generation_config.max_length - 2)
        same = 0
        for line, answer, result in zip(lines, ours, results):
            text = tokenizer.decode(tokenizer.convert_tokens_to_ids(result.hypotheses[0]), skip_special_tokens=True)
            same += text == answer["translations"][0]["text"]
            if beams == 1 and text != answer["translations"][0]["text"]:
                different += 1
                print(f"greedily: {line}\n  CTranslate2: {text}\n  vitrail:     {answer['translations'][0]['text']}")
        print(f"CTranslate2, {beams} beams: {same} of {len(lines)} translations are the same")
sys.exit(different > 0)
