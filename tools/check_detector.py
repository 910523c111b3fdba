"""Checks that transformers loads the detectors that vitrail trains, with no weight missing, and finds the same.

    python tools/check_detector.py [--vitrail build/bin/vitrail]

Detectors with the backbones resnet18 (trained norms) and resnet50 with a dilated last stage (frozen norms) learn scenes for a
moment; the folders go through DetrForObjectDetection and DetrImageProcessor. Needs transformers 5.23, timm 1.0.31, torch, pillow.
"""

import json
import pathlib
import tempfile

import torch
import transformers as hf
from PIL import Image

from checks import Program, close, loaded, parser_of

vitrail = Program(parser_of(__doc__).parse_args().vitrail)


def check(work, name, *flags):
    vitrail("train", work / "scenes", "--task", "detect", "--val-split", "", "--model", name, "--shortest-edge", 96, "--epochs", 1,
            "-b", 4, "--lr", 1e-4, "--num-queries", 8, "--output", work / "runs", "--experiment", name, *flags)
    folder = work / f"runs/{name}/best"
    # Norms that were trained have counted their batches, of which transformers' frozen ones know nothing.
    model = loaded(hf.DetrForObjectDetection, folder, lambda key: key.endswith("num_batches_tracked"))
    processor = hf.DetrImageProcessorPil.from_pretrained(folder)
    images = [Image.open(work / f"scenes/images/{i:06}.png") for i in range(2)]
    images[1] = images[1].resize((64, 40))
    inputs = processor(images, return_tensors="pt")
    with torch.no_grad():
        theirs = model(**inputs)
    ours = vitrail.forward(folder, work, pixel_values=inputs.pixel_values, pixel_mask=inputs.pixel_mask.bool())
    for key in ("logits", "pred_boxes"):
        close(ours[key], theirs[key], f"{name} {key}", 1e-4)
    # The program's own way from a file to boxes, and transformers'.
    found = json.loads(vitrail("detect", folder, work / "scenes/images/000000.png", "--threshold", 0, "--format", "json"))
    alone = processor(images[0], return_tensors="pt")
    with torch.no_grad():
        result = processor.post_process_object_detection(model(**alone), threshold=0, target_sizes=[(64, 64)])[0]
    order = result["scores"].argsort(descending=True)
    scores = torch.tensor([f["score"] for f in found])
    boxes = torch.tensor([[f["bbox"][0], f["bbox"][1], f["bbox"][0] + f["bbox"][2], f["bbox"][1] + f["bbox"][3]] for f in found])
    print(f"{name}: scores {(scores - result['scores'][order]).abs().max():.1e}, "
          f"boxes {(boxes - result['boxes'][order]).abs().max():.1e} pixels")
    assert (scores - result["scores"][order]).abs().max() < 1e-4 and (boxes - result["boxes"][order]).abs().max() < 0.05


with tempfile.TemporaryDirectory() as temporary:
    work = pathlib.Path(temporary)
    vitrail("scenes", work / "scenes", "--count", 16)
    check(work, "detr_resnet18")
    check(work, "detr_resnet50_dc5", "--backbone-norm", "frozen")
print("passed")
