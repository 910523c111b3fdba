"""Fixture of VQA's accuracy: tests/golden/sets/vqa_accuracy.json.

    python tools/golden/vqa_accuracy.py CHECKOUT

CHECKOUT is github.com/GT-Vision-Lab/VQA, a013f0043c1e2cdc995922dfe257f7149aa9af06, whose evaluation code is run; it is of
Python 2, of which print is all that Python 3 does not know. A list of {"answers": ten of people, "given", "accuracy"} in per cent.
"""

import json
import pathlib
import random
import re
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"

source = (pathlib.Path(sys.argv[1]) / "PythonEvaluationTools/vqaEvaluation/vqaEval.py").read_text()
module = types.ModuleType("vqaEval")
exec(re.sub(r'print ("[^"]*")', r"print(\1)", source), module.__dict__)

WORDS = """one two ten none zero 1 2 3,000 3000 1.5 .5 5. yes no Yes. red Red orange a an the cat dog dont don't didnt couldntve
couldntve couldn'tve couldnt've yall'll somebodyd somebody'd twas Im shed've teddy-bear teddy bear t-shirt (big) "old" u.s.a. 50% what?
left/right 12:30 café É naïve can't cant black&white black,white black, rock&roll 2 1/2""".split()


def answer(rng):
    return rng.choice(["", " ", "", ""]).join([""] + [" ".join(rng.choices(WORDS, k=rng.choice([1, 1, 1, 2, 3])))])


def variants(text, rng):
    return rng.choice([text, text, text + ".", "the " + text, text.upper(), text.replace("'", ""), " " + text + "\n",
                       text.replace(" ", "-"), "a " + text + " ?", text.replace(" ", "\t")])


rng = random.Random(0)
cases = []
for number in range(400):
    pool = [answer(rng) for _ in range(rng.choice([1, 1, 2, 3, 5]))]
    answers = [rng.choice(pool) if rng.random() < 0.7 else variants(rng.choice(pool), rng) for _ in range(10)]
    if number % 8 == 0:
        answers = [answers[0]] * 10
    given = variants(rng.choice(pool), rng) if rng.random() < 0.9 else answer(rng)
    truth = types.SimpleNamespace(getQuesIds=lambda: [1], qa={1: {
        "question_type": "t", "answer_type": "other", "answers": [{"answer": a, "answer_id": i} for i, a in enumerate(answers)]}})
    said = types.SimpleNamespace(qa={1: {"answer": given}})
    out, sys.stdout = sys.stdout, open("/dev/null", "w")
    evaluation = module.VQAEval(truth, said, n=12)
    evaluation.evaluate()
    sys.stdout = out
    cases.append({"answers": answers, "given": given, "accuracy": evaluation.evalQA[1]})
path = ROOT / "sets/vqa_accuracy.json"
path.write_text("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]\n")
print(path, len(cases), sum(0 < c["accuracy"] < 100 for c in cases), "between")
