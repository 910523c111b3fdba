"""tests/golden/text/captions.json: captions, and the scores and words that pycocoevalcap has of them.

    python tools/golden/caption_metric.py

Needs pycocoevalcap 1.2 and, for its PTBTokenizer, Java.
"""

import json
import pathlib
import random

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "text" / "captions.json"

# A candidate and its references, of each image.
PEOPLE = [
    ("a man riding a horse on the beach",
     ["a man rides a brown horse through shallow water", "a man is riding a horse on the beach", "person on horseback"]),
    ("two dogs", ["two dogs play in the snow", "a black dog and a white dog are playing in deep snow"]),
    ("", ["a red bus drives down the street", "a double decker bus"]),
    ("a zeppelin quaffs quixotic xylophones", ["a bowl of fruit on a table", "fruit in a bowl", "apples and pears in a bowl"]),
    ("the the the the the the", ["the cat is on the mat", "there is a cat on the mat", "the cat sat on the mat"]),
    ("a cat a cat a cat on a mat", ["a cat and a cat and a cat", "a cat on a mat next to a cat on a chair"]),
    ("a group of people standing around a kitchen preparing food for a large party of guests in the evening",
     ["people cook", "a group of people in a kitchen"]),
    ("a red bus", ["a red bus"]),
    ("bus", ["a red bus", "a double decker bus on a street in the city", "bus"]),
    ("on the beach a man", ["a man on the beach", "the beach"]),
]


def drawn(count, seed):
    """Sentences of few words, so that many n-grams are shared."""
    draw = random.Random(seed)
    words = "a the two red blue small large bird circle square left right of above and on".split()
    sentence = lambda: " ".join(draw.choices(words, k=draw.randint(0, 12)))
    images = []
    for _ in range(count):
        references = [sentence() or "a" for _ in range(draw.randint(1, 5))]
        candidate = sentence()
        if draw.random() < 0.5:
            kept = draw.choice(references).split()
            candidate = " ".join(word for word in kept if draw.random() < 0.8)
        images.append((candidate, references))
    return images


CORPORA = {
    "people": PEOPLE,
    "one image": PEOPLE[:1],
    "one image without a caption": PEOPLE[2:3],
    "two images": PEOPLE[3:5],
    "an empty reference": [("", [""]), ("a cat", ["", "a cat"]), ("", ["a dog"])],
    "drawn": drawn(60, 7),
    "none right": [("x y z w", ["a b c d"]), ("x y", ["c d"])],
}

# Captions as people write them, with what a tokenizer has to decide.
CAPTIONS = [
    "A man's dog, sitting on the \"red\" bench -- in front of a T-shirt shop.",
    "The dog doesn't like it; can't it? It's they're I've I'll he'd I'm",
    "Two (small) birds... on the left!",
    "A cat . A dog - a bird",
    "black/white cat & dog @ $5.00 at 10:30 50% #1",
    "the dogs' owner and 'quoted' words",
    "U.S. flag and Mr. Smith went to St. Mary.",
    "man rides , a horse.",
    "He is gonna fall, he cannot stand and I wanna know.",
    "Café naïve «hm» “quoted” ‘a’ it’s – dash — em…",
    "red,blue and a,b 1,000 3.5 well-known x-ray",
    "\"hello\" ''hi'' `x` ``y`` [b] {c}",
    "a.b.c. e.g. p.m. 5 o'clock",
    "a man w/ hat *star* under_score ^ + = ~ | \\",
    "a  man\ttab  -",
    "-foo foo- foo--bar foo - bar t-shirt.",
    "wow!! what?! so ! and ?",
    "a man 's dog does n't bark",
    "3rd place of the 1950s, 1950's cars and 20's hats",
    "Männer stehen am Herd; ÉCOLE",
    "a #tag and a # sign < or > 2*3",
    "",
    ".",
    "Plan B.",
    "Two young, White males are outside near many bushes.",
    "A trendy girl talking on her cellphone while gliding slowly down the street.",
    "A little girl climbing into a wooden playhouse: she's five.",
]


def scores(images):
    references = {i: refs for i, (_, refs) in enumerate(images)}
    candidates = {i: [candidate] for i, (candidate, _) in enumerate(images)}
    bleu, _ = Bleu(4).compute_score(references, candidates, verbose=0)
    rouge, rouge_of = Rouge().compute_score(references, candidates)
    cider, cider_of = Cider().compute_score(references, candidates)
    return {"bleu": bleu, "rouge_l": float(rouge), "rouge_l_of": rouge_of.tolist(), "cider": float(cider),
            "cider_of": cider_of.tolist()}


def main():
    result = {"corpora": {}, "tokenized": []}
    for name, images in CORPORA.items():
        result["corpora"][name] = {"candidates": [candidate for candidate, _ in images],
                                   "references": [references for _, references in images]} | scores(images)
    cut = PTBTokenizer().tokenize({i: [{"caption": caption}] for i, caption in enumerate(CAPTIONS)})
    result["tokenized"] = [[caption, cut[i][0]] for i, caption in enumerate(CAPTIONS)]
    OUT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
