"""Checks that transformers loads the BLIP folders that vitrail writes, with no weight missing or left over, and answers the same.

    python tools/check_blip.py [--vitrail build/bin/vitrail]

The folders of tests/golden/models/joint/blip_* are written anew by `vitrail convert`, and go through BlipForQuestionAnswering,
BlipForConditionalGeneration and BlipImageProcessor; `vitrail ask` and generate() answer questions about a scene. Needs
transformers 5.23, torch, pillow.
"""

import json
import pathlib
import tempfile

import transformers as hf
from PIL import Image

from checks import Program, loaded, parser_of

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "tests/golden/models/joint"
QUESTIONS = ["what colour is the head of the large bird?", "how many small circles are there?", "is the picture red?"]

vitrail = Program(parser_of(__doc__).parse_args().vitrail)


def written(work, name, kind):
    vitrail("convert", GOLDEN / name, "--output", work / name)
    return loaded(kind, work / name)


with tempfile.TemporaryDirectory() as temporary:
    work = pathlib.Path(temporary)
    written(work, "blip_caption", hf.BlipForConditionalGeneration)
    model = written(work, "blip_vqa", hf.BlipForQuestionAnswering)
    processor = hf.BlipImageProcessorPil.from_pretrained(work / "blip_vqa")
    tokenizer = hf.AutoTokenizer.from_pretrained(work / "blip_vqa")
    vitrail("scenes", work / "scenes", "--count", 2)
    for number in range(2):
        image = work / f"scenes/images/{number:06}.png"
        pixels = processor(Image.open(image).convert("RGB"), return_tensors="pt").pixel_values
        for question in QUESTIONS:
            ids = tokenizer(question, return_tensors="pt").input_ids
            said = model.generate(ids, pixels, num_beams=5, num_return_sequences=5, max_new_tokens=19, length_penalty=0.0,
                                  do_sample=False, output_scores=True, return_dict_in_generate=True)
            theirs = [tokenizer.decode(row[1:], skip_special_tokens=True).strip() for row in said.sequences]
            best = json.loads(vitrail("ask", work / "blip_vqa", image, question, "--json"))["best"]
            ours = [answer["answer"] for answer in best]
            error = max(abs(answer["probability"] - score) for answer, score in zip(best, said.sequences_scores.exp().tolist()))
            print(f"{question}: {ours}, probabilities within {error:.1e}")
            assert ours == theirs and error < 1e-5, theirs
print("passed")
