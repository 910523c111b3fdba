"""Files of tests/golden/text/bleu: translations of a few sentences, and sacrebleu's scores of them.

    python tools/golden/bleu.py

Needs sacrebleu 2.6.0.
"""

import json
import pathlib
import subprocess
import sys

from sacrebleu.metrics import BLEU, CHRF

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "text" / "bleu"

# A translation and two references a line, in several languages and with what tokenizers and scores stumble over.
LINES = [
    ("The cat sat on the mat.", "The cat sat on the mat.", "A cat was sitting on the mat."),
    ("A man is riding a horse through the water", "A man rides a brown horse through shallow water.",
     "A man is riding a horse through the water."),
    ("Zwei Männer stehen am Herd und bereiten Essen zu.", "Zwei Männer stehen am Herd, um Essen zuzubereiten.",
     "ZWEI MÄNNER KOCHEN."),
    ("Le prix était de 1.234,56 € (soit 7-8 % de plus) .", "Le prix était de 1 234,56 € – soit 7 à 8 % de plus.",
     "Le prix s'élevait à 1.234,56€, soit 7-8% de plus !"),
    ("Кошка сидела на коврике, а собака — нет.", "Кошка сидела на коврике; собака – нет.", "Кот сидел на ковре, собака не сидела."),
    ("Ο ΟΔΥΣΣΕΥΣ και ο Σίσυφος.", "Ο Οδυσσεύς και ο ΣΙΣΥΦΟΣ!", "Ὁ Ὀδυσσεὺς καὶ ὁ Σίσυφος·"),
    ("İstanbul'da ILIK bir gün", "istanbul’da ılık bir gün.", "İSTANBUL'DA ılık bir gündü."),
    ("我们在2024年去了北京,买了3个“苹果”。", "我們2024年去了北京,買了三個「蘋果」。", "我们在 2024 年到过北京，买了 3 个苹果。"),
    ("猫はマットの上に座っていた。", "その猫はマットに座っていました。", "ネコは、マットの上に座っていた。"),
    ("القطة جلست على السجادة، أليس كذلك؟", "جلست القطة على السجادة.", "القطة جلست على السجادة؟"),
    ("बिल्ली चटाई पर बैठी थी।", "बिल्ली चटाई पर बैठी हुई थी।", "एक बिल्ली चटाई पर बैठी।"),
    ("Tom &amp; Jerry said &quot;hello&quot; &lt;3 <skipped> -", "Tom & Jerry said \"hello\" <3 -", "Tom &amp; Jerry said hi ."),
    ("👩‍🍳 cooks 🍕🍕 for $5.00 + 2 × £3 = ½", "👩‍🍳 cooks 🍕 for $5 + 2 × £3 = ½", "The cook makes pizza for $5.00 + £6."),
    ("", "This line was not translated.", ""),
    ("There was nothing to translate here.", "", ""),
    ("", "", ""),
    ("(hi) 'quoted', well-known e.g. x.y. 3-4 -5 a.1 1.a ,,, ...", "\"hi\" 'quoted' well-known, i.e. x.y; 3-4 -5 a.1 1.a . . .",
     "(hi), `quoted' - well known e.g. x.y. 3 - 4 - 5 a. 1 1 .a"),
    ("the the the the the the the", "the cat is on the mat", "there is a cat on the mat"),
    ("no\u00a0break\u3000wide\u2009thin\u200bzero", "no break wide thin zero", "no\u00a0break wide\u2009thin\u200bzero"),
    ("ends in spaces \t \u00a0", "ends in spaces", "ends in  spaces\r"),
    ("x", "x", "y"),
    ("\u2018Quotes\u2019 \u201cof\u201d \u2026 \u2013 all\u2014kinds\u2020", "'Quotes' \u201cof\u201d... - all\u2014kinds", "\u2018Quotes\u2019 of all kinds\u2026"),
    ("१२३.४५ und ٣٫١٤, Ⅷ. 5⁄8 ²", "१२३,४५ und ٣٫١٤ Ⅷ . 5⁄8 ²", "123.45 und 3.14, VIII. 5/8 2"),
    ("𠀀𠀁漢字カタカナｶﾀｶﾅＡＢＣ①②☃", "𠀀𠀁漢字、カタカナ ｶﾀｶﾅ ＡＢＣ ①②☃", "漢字"),
]

BLEU_CASES = [
    {},
    {"tokenize": "intl"},
    {"tokenize": "zh"},
    {"tokenize": "char"},
    {"tokenize": "none"},
    {"lowercase": True},
    {"lowercase": True, "tokenize": "intl"},
    {"smooth_method": "none"},
    {"smooth_method": "floor"},
    {"smooth_method": "floor", "smooth_value": 0.5},
    {"smooth_method": "add-k"},
    {"smooth_method": "add-k", "smooth_value": 0.25},
    {"effective_order": True},
]
CHRF_CASES = [
    {},
    {"word_order": 2},
    {"word_order": 1, "lowercase": True},
    {"char_order": 3, "beta": 1},
    {"whitespace": True},
    {"eps_smoothing": True},
    {"eps_smoothing": True, "word_order": 2, "whitespace": True, "beta": 3},
]


def bleu_result(options, hypotheses, references):
    metric = BLEU(**options)
    score = metric.corpus_score(hypotheses, references)
    return {
        "options": options,
        "references": len(references),
        "score": score.score,
        "counts": score.counts,
        "totals": score.totals,
        "precisions": score.precisions,
        "bp": score.bp,
        "sys_len": score.sys_len,
        "ref_len": score.ref_len,
        "signature": str(metric.get_signature()),
        "short_signature": metric.get_signature().format(short=True),
        "verbose": score._verbose,
    }


def chrf_result(options, hypotheses, references):
    metric = CHRF(**options)
    score = metric.corpus_score(hypotheses, references)
    return {
        "options": options,
        "references": len(references),
        "score": score.score,
        "name": score.name,
        "signature": str(metric.get_signature()),
        "short_signature": metric.get_signature().format(short=True),
    }


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    names = ["hyp", "ref0", "ref1"]
    for i, name in enumerate(names):
        (OUT / f"{name}.txt").write_bytes("".join(line[i] + "\n" for line in LINES).encode())
    # As sacrebleu's command reads them.
    hypotheses, *all_references = [[line[i].rstrip() for line in LINES] for i in range(3)]
    result = {"bleu": [], "chrf": [], "sentences": [], "tokenized": {}, "commands": []}
    for references in (all_references[:1], all_references):
        result["bleu"] += [bleu_result(options, hypotheses, references) for options in BLEU_CASES]
        result["chrf"] += [chrf_result(options, hypotheses, references) for options in CHRF_CASES]
    for i, line in enumerate(hypotheses):
        references = [[refs[i]] for refs in all_references]
        for method in ("exp", "floor", "add-k", "none"):
            options = {"effective_order": True, "smooth_method": method}
            result["sentences"].append(bleu_result(options, [line], references) | {"line": i})
        result["sentences"].append(bleu_result({}, [line], references[:1]) | {"line": i})
    for name in ("13a", "intl", "zh", "char", "none"):
        cut = BLEU(tokenize=name).tokenizer
        texts = hypotheses + all_references[0] + all_references[1]
        result["tokenized"][name] = [" ".join(cut(line).split()) for line in texts]
    for arguments in (
        "ref0.txt -i hyp.txt",
        "ref0.txt ref1.txt -i hyp.txt -m bleu chrf -f text -w 6",
        "ref0.txt ref1.txt -i hyp.txt -m chrf bleu -w 4 -lc -tok intl -s floor -sv 0.3",
        "ref0.txt -i hyp.txt -m chrf -cw 2 --chrf-lowercase -f text",
        "ref0.txt -i hyp.txt -b -w 3",
        "ref0.txt -i hyp.txt -b -m bleu chrf",
        "ref0.txt -i hyp.txt -b -m bleu chrf -f text",
        "ref0.txt -i hyp.txt -w 0",
        "ref0.txt -i hyp.txt -e latin-1 -w 4",
        "ref0.txt ref1.txt -i hyp.txt -sl -w 5",
        "ref0.txt -i hyp.txt -sl -m chrf -b",
        "ref0.txt ref1.txt -i hyp.txt -sh -m bleu chrf",
        "ref0.txt -i hyp.txt --short -f text -s floor",
        "ref0.txt -i hyp.txt -l de-zh -w 4 --force",
        "ref0.txt -i hyp.txt --language-pair de-en -w 4",
        "ref0.txt -i hyp.txt -l de-zh -tok intl -w 4",
    ):
        run = subprocess.run([sys.executable, "-m", "sacrebleu", *arguments.split()], cwd=OUT, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        result["commands"].append({"arguments": arguments, "output": run.stdout})
    (OUT / "scores.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
