"""Checks that transformers and sentence-transformers read what vitrail has trained, and say the same.

    python tools/check_encoders.py [--vitrail build/bin/vitrail]

For each family and head, vitrail learns a tokenizer and a small model from a few sentences. from_pretrained() must then
find no missing or unexpected key, and transformers' pipelines (for sentence vectors, sentence-transformers) must give
what `vitrail predict`, `fill-mask` and `embed` print. Needs transformers 5.23, sentence-transformers 6.2, torch;
nothing of vitrail needs this.
"""

import json
import pathlib
import tempfile

import numpy
import transformers as hf
from sentence_transformers import SentenceTransformer

from checks import Program, loaded, parser_of

SENTENCES = {
    "animal": ["the dog runs", "a cat eats today", "the old horse sleeps", "a dog sleeps", "the cat runs today"],
    "weather": ["the rain falls", "a storm ends today", "the cold snow comes", "a rain comes", "the storm falls"],
}
BERT = ["hidden_size=16", "num_hidden_layers=2", "num_attention_heads=2", "intermediate_size=32"]
FAMILIES = {
    "bert": ("Bert", "bert-tiny", BERT),
    "distilbert": ("DistilBert", "distilbert-base-uncased", ["dim=16", "n_layers=2", "n_heads=2", "hidden_dim=32"]),
    "roberta": ("Roberta", "roberta-base", BERT),
    "gpt2": ("GPT2", "gpt2", ["n_embd=16", "n_layer=2", "n_head=2"]),
}
RUN = ["--epochs", "2", "--batch-size", "4", "--lr", "1e-2", "--threads", "1"]

vitrail = Program(parser_of(__doc__).parse_args().vitrail)


def tokenizer_of(folder):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    for text in ("The dog RUNS", "a café, a cat!"):
        ids = [int(word) for word in vitrail("tokenizer", "encode", folder, text).split()]
        assert tokenizer(text)["input_ids"] == ids, (folder, text)
    return tokenizer


def near(ours, theirs, what):
    difference = numpy.abs(numpy.array(ours, float) - numpy.array(theirs, float)).max()
    assert difference < 1e-5, (what, difference)


def check(work, family):
    prefix, name, sizes = FAMILIES[family]
    common = ["--model", name, "--model-kwargs", *sizes, "--tokenizer", work / "tokenizer", *RUN,
              "--output", work / "runs"]

    def trained(task, *data):
        folder = work / "runs" / f"{family}-{task}"
        command = ["pretrain", "bert"] if task == "bert" else ["train", "--task", task]
        vitrail(*command, *data, *common, "--experiment", folder.name)
        return folder / "best"

    texts = [text for some in SENTENCES.values() for text in some]
    folder = trained("classify-text", work / "texts.tsv")
    model = loaded(getattr(hf, f"{prefix}ForSequenceClassification"), folder)
    model.config.pad_token_id = tokenizer_of(folder).pad_token_id
    pipe = hf.pipeline("text-classification", model=model, tokenizer=tokenizer_of(folder))
    for ours in json.loads(vitrail("predict", folder, work / "lines.txt", "--format", "json")):
        theirs = pipe(ours["text"], top_k=2)
        assert [one["label"] for one in ours["top"]] == [one["label"] for one in theirs]
        near([one["probability"] for one in ours["top"]], [one["score"] for one in theirs], family)
    if family == "gpt2":
        return ["classify-text"]
    folder = trained("tag", work / "tags.txt")
    pipe = hf.pipeline("token-classification", model=loaded(getattr(hf, f"{prefix}ForTokenClassification"), folder),
                       tokenizer=tokenizer_of(folder), ignore_labels=[])
    for ours in json.loads(vitrail("predict", folder, work / "lines.txt", "--format", "json")):
        theirs = pipe(ours["text"])
        assert [one["entity"] for one in ours["tokens"]] == [one["entity"] for one in theirs]
        near([one["score"] for one in ours["tokens"]], [one["score"] for one in theirs], family)
    folder = trained("bert", work / "corpus.txt")
    kind = "ForPreTraining" if family == "bert" else "ForMaskedLM"
    masked = loaded(getattr(hf, f"{prefix}{kind}"), folder)
    if family == "bert":  # whose pipeline takes no model for pretraining
        masked = hf.BertForMaskedLM.from_pretrained(folder)
    pipe = hf.pipeline("fill-mask", model=masked, tokenizer=tokenizer_of(folder))
    ours = json.loads(vitrail("fill-mask", folder, "the [MASK] runs", "--json"))
    theirs = pipe("the [MASK] runs")
    assert [one["token"] for one in ours] == [one["token"] for one in theirs]
    near([one["score"] for one in ours], [one["score"] for one in theirs], family)
    folder = trained("embed", "--src", work / "lines.txt", "--tgt", work / "others.txt")
    loaded(getattr(hf, f"{prefix}Model"), folder)
    sentences = SentenceTransformer(str(folder), device="cpu")
    ours = [one["embedding"] for one in json.loads(vitrail("embed", folder, work / "lines.txt", "--json"))]
    near(ours, sentences.encode(texts), family)
    return ["classify-text", "tag", "bert", "embed"]


with tempfile.TemporaryDirectory() as temporary:
    work = pathlib.Path(temporary)
    pairs = [(label, text) for label, some in SENTENCES.items() for text in some]
    (work / "texts.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in pairs))
    (work / "lines.txt").write_text("".join(f"{text}\n" for _, text in pairs))
    (work / "others.txt").write_text("".join(f"indeed {text}\n" for _, text in pairs))
    (work / "corpus.txt").write_text("".join(f"{text}\n{text} again\n\n" for _, text in pairs))
    (work / "tags.txt").write_text("".join(
        "".join(f"{word} {'VERB' if word.endswith('s') else 'OTHER'}\n" for word in text.split()) + "\n"
        for _, text in pairs))
    vitrail("tokenizer", "train", work / "corpus.txt", "--model", "wordpiece", "--lowercase", "--vocab-size", 60,
            "--output", work / "tokenizer")
    for family in FAMILIES:
        print(family, *check(work, family))
print("passed")
