"""Small tokenizers of every kind, made by Hugging Face's tokenizers and trained on the hard texts themselves."""

import io
import json
import tempfile
from collections import Counter
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
])
DEEPSEEK = [
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def special(content, **flags):
    return AddedToken(content, special=True, normalized=False, **flags)


def bpe(tokenizer, texts, size=600, limit=None, **options):
    """Trains a BPE. Of equally rare characters limit_alphabet leaves out others in each run, so `limit` is kept here."""
    counts = Counter("".join(texts))
    kept = set(sorted(counts, key=lambda c: (-counts[c], c))[:limit]) | {" "}
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, **options)
    tokenizer.train_from_iterator(["".join(c if c in kept else " " for c in text) for text in texts], trainer)
    return tokenizer


def affixed(texts, tokenizer, make, **options):
    """The vocabulary and merges of a BPE with a prefix or suffix. BpeTrainer numbers affixed characters in the order of a
    hash table; as special tokens they have their order."""
    pieces = {c for text in texts for part, _ in tokenizer.pre_tokenizer.pre_tokenize_str(
        tokenizer.normalizer.normalize_str(text)) for c in part}
    first = options.pop("special_tokens")
    bpe(tokenizer, texts, special_tokens=first + sorted(make(c) for c in pieces), **options)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def byte_level(texts, pre_tokenizer, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    return bpe(tokenizer, texts, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))


def gpt2(texts):
    tokenizer = byte_level(texts, pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer.add_tokens([special("<|endoftext|>")])
    return tokenizer


def roberta(texts):
    tokenizer = byte_level(texts, pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.add_tokens([special(t) for t in ("<s>", "</s>", "<unk>", "<pad>")] + [special("<mask>", lstrip=True)])
    ids = [(t, tokenizer.token_to_id(t)) for t in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ids, trim_offsets=True, add_prefix_space=True)
    return tokenizer


def llama3(texts):
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = byte_level(texts, pre_tokenizers.Sequence([split, level]), ignore_merges=True)
    tokenizer.add_tokens([special("<|begin_of_text|>"), special("<|end_of_text|>")])
    template = processors.TemplateProcessing(
        single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
        special_tokens=[("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def with_regex(*patterns, normalizer=None, behavior="isolated"):
    def make(texts):
        splits = [pre_tokenizers.Split(Regex(p), behavior) for p in patterns]
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False, trim_offsets=False)
        tokenizer = byte_level(texts, pre_tokenizers.Sequence([*splits, level]))
        tokenizer.normalizer = normalizer
        tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
        tokenizer.add_tokens([special("<|endoftext|>")])
        return tokenizer
    return make


def clip(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    split = pre_tokenizers.Split(Regex(CLIP), "removed", invert=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    vocab, merges = affixed(
        texts, tokenizer, lambda c: c + "</w>", size=900, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        end_of_word_suffix="</w>", special_tokens=["<|startoftext|>", "<|endoftext|>"])
    made = Tokenizer(models.BPE(vocab, merges, unk_token="<|endoftext|>", end_of_word_suffix="</w>",
                                continuing_subword_prefix=""))
    made.normalizer, made.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    made.add_tokens([special("<|startoftext|>"), special("<|endoftext|>")])
    made.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False)
    made.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.BPEDecoder("</w>")])
    return made


def wordpiece_vocab(texts, normalizer, pre_tokenizer):
    """WordPieceTrainer is BpeTrainer with a prefix."""
    trained = Tokenizer(models.BPE())
    trained.normalizer, trained.pre_tokenizer = normalizer, pre_tokenizer
    return affixed(texts, trained, "##{}".format, size=1000, limit=300, continuing_subword_prefix="##",
                   special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])[0]


def bert(lowercase, template, **flags):
    def make(texts):
        normalizer = normalizers.BertNormalizer(lowercase=lowercase, **flags)
        pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer = Tokenizer(models.WordPiece(wordpiece_vocab(texts, normalizer, pre_tokenizer), unk_token="[UNK]",
                                               max_input_chars_per_word=40))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
        tokenizer.decoder = decoders.WordPiece(cleanup=lowercase)
        tokenizer.add_tokens([special(t) for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")])
        if template:
            tokenizer.post_processor = processors.TemplateProcessing(
                single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
                special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        else:
            tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        return tokenizer
    return make


def sentence_embedding(texts):
    tokenizer = bert(True, True)(texts)
    tokenizer.enable_truncation(12)
    tokenizer.enable_padding(length=16)
    return tokenizer


def cut_left(texts):
    tokenizer = bert(True, False)(texts)
    tokenizer.enable_truncation(11, strategy="only_first", direction="left")
    tokenizer.enable_padding(direction="left", pad_to_multiple_of=8, pad_type_id=2, pad_id=1, pad_token="[UNK]")
    return tokenizer


def fallback(vocab_size, texts, normalizer, pre_tokenizer, decoder, **model):
    """BPE with tokens for bytes, as Llama 2 and Mistral have."""
    trained = Tokenizer(models.BPE())
    trained.normalizer, trained.pre_tokenizer = normalizer, pre_tokenizer
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    bpe(trained, texts, size=vocab_size, special_tokens=specials, limit=150)
    state = json.loads(trained.to_str())["model"]
    tokenizer = Tokenizer(models.BPE(
        state["vocab"], [tuple(m) for m in state["merges"]], unk_token="<unk>", fuse_unk=True, byte_fallback=True, **model))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, pre_tokenizer, decoder
    tokenizer.add_tokens([special("<unk>"), special("<s>"), special("</s>")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return tokenizer


def llama2(texts):
    decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(content=" ", left=1)])
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return fallback(700, texts, normalizer, None, decoder)


def mistral(texts):
    decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return fallback(700, texts, None, pre_tokenizers.Metaspace("▁", "first", False), decoder, ignore_merges=True)


RULES = """2026\t2E 2E 2E
FB01\t66 69
FB02\t66 6C
FB03\t66 66 69
41 30A\tC5
212B\tC5
65 301\tE9
61 323 302\t1EAD
A0\t20
3000\t20
2003\t20
9\t20
A\t20
D\t20
200B
AD
FF11\t31
FF21\t41
FF76 FF9E\t30AC
FF77 FF9E\t30AE
FF76\t30AB
33CD\t4B 4B
337F\t682A 5F0F 4F1A 793E
AC00 11A8\tAC01
BD\t31 2044 32
B2\t32
FDFA\t635 644 649
A9 200D\t63
"""


def sentencepiece_model(texts, kind, size=500, rules=None, **options):
    out = io.BytesIO()
    lines = [line for text in texts for line in text.replace("\0", "").splitlines() if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        if rules:
            path = Path(folder) / "rules.tsv"
            path.write_text(rules)
            options["normalization_rule_tsv"] = str(path)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=out, vocab_size=size, model_type=kind, minloglevel=2,
            hard_vocab_limit=False, num_threads=1, **options)
    return out.getvalue()


def proto_of(model):
    from sentencepiece import sentencepiece_model_pb2 as pb
    proto = pb.ModelProto()
    proto.ParseFromString(model)
    return proto


def unigram(texts, rules=RULES):
    """What transformers makes of a sentencepiece model such as T5's."""
    proto = proto_of(sentencepiece_model(texts, "unigram", rules=rules, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, size=900,
                                            character_coverage=0.98))
    vocab = [(piece.piece, piece.score) for piece in proto.pieces]
    tokenizer = Tokenizer(models.Unigram(vocab, 2, False))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap), normalizers.Strip(left=False, right=True),
        normalizers.Replace(Regex(" {2,}"), "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always")
    tokenizer.decoder = decoders.Metaspace("▁", "always")
    tokenizer.add_tokens([special("<pad>"), special("</s>"), special("<unk>")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return tokenizer


def unigram_bytes(texts):
    proto = proto_of(sentencepiece_model(texts, "unigram", size=1100, byte_fallback=True, character_coverage=0.98,
                                            normalization_rule_name="identity"))
    vocab = [(piece.piece, piece.score) for piece in proto.pieces]
    tokenizer = Tokenizer(models.Unigram(vocab, 0, True))
    tokenizer.normalizer = normalizers.NFKC()
    split = pre_tokenizers.Metaspace("▁", "never", False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), split])
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace("▁", "never")])
    tokenizer.add_tokens([special("<unk>"), special("<s>"), special("</s>")])
    return tokenizer


def wordlevel(texts):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    counts = {}
    for text in texts:
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text)):
            counts[word] = counts.get(word, 0) + 1
    words = sorted(sorted(counts), key=lambda word: -counts[word])[:300]
    tokenizer.model = models.WordLevel({"<unk>": 0, **{word: i + 1 for i, word in enumerate(words)}}, unk_token="<unk>")
    tokenizer.add_tokens([special("<unk>")])
    return tokenizer


def marked(texts):
    """BPE with the prefix of WordPiece, unknown characters fused, and CTC's decoder."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD(), normalizers.Strip(True, True)])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous"), pre_tokenizers.Digits(True),
        pre_tokenizers.CharDelimiterSplit("|"), pre_tokenizers.FixedLength(7)])
    common = [text for text in texts if max(text, default="") < "\u0600"]
    vocab, merges = affixed(common, tokenizer, "##{}".format, continuing_subword_prefix="##", special_tokens=["[UNK]"])
    made = Tokenizer(models.BPE(vocab, merges, unk_token="[UNK]", fuse_unk=True, continuing_subword_prefix="##"))
    made.normalizer, made.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    made.decoder = decoders.CTC("[UNK]", "|", True)
    return made


def added(texts):
    """Added tokens with each flag, where a normalizer changes them."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(False)])
    bpe(tokenizer, texts, limit=200, special_tokens=["<unk>"])
    tokenizer.add_tokens([
        AddedToken("Hello", single_word=True), AddedToken("left", lstrip=True, normalized=True),
        AddedToken("right", rstrip=True, normalized=False), AddedToken("both", lstrip=True, rstrip=True, normalized=False),
        AddedToken("É", normalized=True), AddedToken("[MASK]", special=True, normalized=True)])
    return tokenizer


def normalized_bytes(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.ByteLevel()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("Ġ", "merged_with_next")
    tokenizer.decoder = decoders.ByteLevel()
    bpe(tokenizer, texts, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_tokens([AddedToken("İx", normalized=True), special("<|endoftext|>")])
    return tokenizer


KINDS = {
    "gpt2": gpt2,
    "roberta": roberta,
    "llama3": llama3,
    "qwen2": with_regex(QWEN2, normalizer=normalizers.NFC()),
    "o200k": with_regex(O200K),
    "deepseek": with_regex(*DEEPSEEK),
    "clip": clip,
    "bert_uncased": bert(True, True),
    "bert_cased": bert(False, False),
    "bert_accents": bert(True, False, strip_accents=False, handle_chinese_chars=False, clean_text=False),
    "sentence_embedding": sentence_embedding,
    "cut_left": cut_left,
    "llama2": llama2,
    "mistral": mistral,
    "unigram": unigram,
    "unigram_bytes": unigram_bytes,
    "wordlevel": wordlevel,
    "marked": marked,
    "added": added,
    "normalized_bytes": normalized_bytes,
}
