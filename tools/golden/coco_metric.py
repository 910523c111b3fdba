"""Writes tests/golden/sets/coco_metric.json: pycocotools' twelve figures of random detections.

    python tools/golden/coco_metric.py

Each case has images, with objects [x, y, width, height, area, class, crowd] and detections [x, y, width, height, class,
score], the stats of COCOeval and its average precision of each class (at all thresholds, at 0.50). Needs pycocotools 2.0.11.
"""

import contextlib
import io
import json
import pathlib

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"


def figures(images, classes):
    truth = COCO()
    annotations = []
    for i, image in enumerate(images):
        for x, y, w, h, area, label, crowd in image["objects"]:
            annotations.append(dict(id=len(annotations) + 1, image_id=i + 1, bbox=[x, y, w, h], area=area,
                                    category_id=label + 1, iscrowd=crowd))
    truth.dataset = dict(images=[dict(id=i + 1, width=640, height=480) for i in range(len(images))],
                         categories=[dict(id=c + 1, name=str(c)) for c in range(classes)], annotations=annotations)
    found = [dict(image_id=i + 1, bbox=list(d[:4]), category_id=d[4] + 1, score=d[5])
             for i, image in enumerate(images) for d in image["detections"]]
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(found), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    precision = evaluation.eval["precision"][:, :, :, 0, 2]  # thresholds, recalls, classes
    mean = lambda p: float(p[p > -1].mean()) if (p > -1).any() else -1.0
    return dict(stats=[float(s) for s in evaluation.stats], class_ap=[mean(precision[:, :, c]) for c in range(classes)],
                class_ap50=[mean(precision[0, :, c]) for c in range(classes)])


def some_boxes(random, count, smallest=4, largest=250):
    size = np.exp(random.uniform(np.log(smallest), np.log(largest), size=(count, 2)))
    corner = random.uniform(0, 1, size=(count, 2)) * np.maximum(1, [640, 480] - size)
    return np.concatenate([corner, size], 1).round(2)


def case(seed, images, classes, most, noise=0.12, crowds=0.0, scores=None, whole=False):
    random = np.random.default_rng(seed)
    result = []
    for _ in range(images):
        boxes = some_boxes(random, int(random.integers(0, most + 1)))
        if whole:
            boxes = boxes.round()
        labels = random.integers(0, classes, size=len(boxes))
        objects = [[*map(float, box), float(round(box[2] * box[3] * random.uniform(0.6, 1), 2)), int(label),
                    int(random.uniform() < crowds)] for box, label in zip(boxes, labels)]
        detections = []
        for box, label in zip(boxes, labels):
            for _ in range(int(random.integers(0, 4))):
                moved = box + noise * random.normal(size=4) * np.tile(box[2:], 2)
                moved = np.concatenate([moved[:2], np.maximum(moved[2:], 1)])
                moved = moved.round() if whole else moved.round(3)
                guess = int(label if random.uniform() < 0.85 else random.integers(0, classes))
                detections.append([*map(float, moved), guess])
        for box in some_boxes(random, int(random.integers(0, 6))):
            detections.append([*map(float, box), int(random.integers(0, classes))])
        random.shuffle(detections)
        for detection in detections:
            score = random.uniform() if scores is None else random.choice(scores)
            detection.append(float(round(score, 4)))
        result.append(dict(objects=objects, detections=detections))
    return dict(classes=classes, images=result, **figures(result, classes))


def main():
    cases = {
        "usual": case(1, 12, 3, 8),
        "crowds": case(2, 12, 2, 8, crowds=0.3),
        "ties": case(3, 10, 2, 8, scores=[0.2, 0.5, 0.9], whole=True),
        "no_class": case(4, 4, 6, 2),  # some classes have no objects
        "none": case(5, 3, 2, 0),  # no objects at all
        # More detections of a class in an image than count.
        "many": case(6, 1, 1, 60, noise=0.05),
    }
    cases["many"]["images"][0]["detections"] *= 3
    cases["many"] |= figures(cases["many"]["images"], 1)
    file = ROOT / "sets/coco_metric.json"
    file.write_text("{\n" + ",\n".join(f'"{name}": {json.dumps(c)}' for name, c in cases.items()) + "\n}\n")
    for name, c in cases.items():
        print(name, [round(s, 3) for s in c["stats"]])


if __name__ == "__main__":
    main()
