"""Fixtures of encoder-decoders: tests/golden/models/text/*.

    python tools/golden/translation.py            # all
    python tools/golden/translation.py marian     # some, by name

A fixture is a folder with config.json and model.safetensors, every parameter perturbed, and beside it
expected.safetensors, computed in float64 of two sources of unequal length: input_ids [B, M] and lengths [B],
decoder_input_ids and labels [B, N] (-100: padding), logits, memory (the encoder's output), loss, and `grad.NAME` of the
loss by the names in the folder's file. Of Marian's models it has what generate() translates the sources to, filled up
with zeros: greedy.*, beams.*, and their scores.

`marian*` are transformers' MarianMTModel. `seq2seq_*` are torch.nn.LSTM, GRU and RNN joined as by Sutskever et al. 2014,
or with the BahdanauAttention of PyTorch's tutorial "Translation with a Sequence to Sequence Network and Attention". `torch*` are the Seq2SeqTransformer of PyTorch's tutorial "Language Translation
with nn.Transformer", which has torch.nn.Transformer inside, with batches first.

Needs transformers 5.23, torch 2.13.0 and safetensors.
"""

import json
import math
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models/text"
START, END = 49, 0  # Marian starts with the padding

MARIAN = dict(vocab_size=50, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
              decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=32,
              pad_token_id=START, eos_token_id=END, decoder_start_token_id=START, forced_eos_token_id=END, dropout=0.0)
MARIANS = {
    "marian": hf.MarianConfig(**MARIAN, scale_embedding=True, activation_function="swish"),
    "marian_separate": hf.MarianConfig(
        **MARIAN | dict(decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=20),
        decoder_vocab_size=60, share_encoder_decoder_embeddings=False, activation_function="relu"),
    "marian_free_head": hf.MarianConfig(
        **MARIAN | dict(encoder_layers=1), share_encoder_decoder_embeddings=False, tie_word_embeddings=False),
}
TORCHES = {
    "torch_post": dict(norm_first=False, activation="relu"),
    "torch_pre": dict(norm_first=True, activation="gelu"),
}
SEQ2SEQS = {
    "seq2seq_lstm": dict(architecture="lstm", num_layers=2, reverse_source=True, tie_word_embeddings=True),
    "seq2seq_rnn": dict(architecture="rnn", bidirectional=True, embedding_size=6, decoder_vocab_size=40,
                        share_encoder_decoder_embeddings=False),
    "seq2seq_gru_bahdanau": dict(architecture="gru", num_layers=2, bidirectional=True, attention="bahdanau",
                                 embedding_size=6, attention_size=5, tie_word_embeddings=True),
    "seq2seq_lstm_bahdanau": dict(architecture="lstm", bidirectional=True, attention="bahdanau", decoder_vocab_size=40,
                                  share_encoder_decoder_embeddings=False),
}


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, width):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)

    def forward(self, ids):
        return self.embedding(ids) * math.sqrt(self.embedding.weight.shape[1])


class PositionalEncoding(nn.Module):
    def __init__(self, width, most=32):
        super().__init__()
        den = torch.exp(-torch.arange(0, width, 2) * math.log(10000) / width)
        pos = torch.arange(0, most).reshape(most, 1)
        table = torch.zeros((most, width))
        table[:, 0::2] = torch.sin(pos * den)
        table[:, 1::2] = torch.cos(pos * den)
        self.register_buffer("pos_embedding", table)

    def forward(self, x):
        return x + self.pos_embedding[:x.shape[1]]


class Seq2SeqTransformer(nn.Module):
    def __init__(self, src_vocab_size, tgt_vocab_size, **arguments):
        super().__init__()
        width = arguments["d_model"]
        self.transformer = nn.Transformer(**arguments, batch_first=True)
        self.generator = nn.Linear(width, tgt_vocab_size)
        self.src_tok_emb = TokenEmbedding(src_vocab_size, width)
        self.tgt_tok_emb = TokenEmbedding(tgt_vocab_size, width)
        self.positional_encoding = PositionalEncoding(width)

    def forward(self, source, target, padding):
        n = target.shape[1]
        causal = torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
        memory = self.transformer.encoder(self.positional_encoding(self.src_tok_emb(source)),
                                          src_key_padding_mask=padding)
        out = self.transformer.decoder(self.positional_encoding(self.tgt_tok_emb(target)), memory, tgt_mask=causal,
                                       memory_key_padding_mask=padding)
        return self.generator(out), memory


class BahdanauAttention(nn.Module):
    """The tutorial's, with a mask for padding, and without the bias of Va, which softmax cancels."""

    def __init__(self, query, state, size):
        super().__init__()
        self.Wa = nn.Linear(query, size)
        self.Ua = nn.Linear(state, size)
        self.Va = nn.Linear(size, 1, bias=False)

    def forward(self, query, keys, padding):
        scores = self.Va(torch.tanh(self.Wa(query)[:, None] + self.Ua(keys))).squeeze(2)
        weights = torch.softmax(scores.masked_fill(padding, -math.inf), dim=-1)
        return torch.bmm(weights[:, None], keys).squeeze(1)


class Seq2Seq(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, layers, both = config["hidden_size"], config["num_layers"], config.get("bidirectional", False)
        self.config, self.attends = config, "attention" in config
        self.reverse, self.layers = config.get("reverse_source", False), layers
        self.lstm = config["architecture"] == "lstm"
        width = config.get("embedding_size", hidden)
        read = 2 * hidden if both else hidden
        kind = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[config["architecture"]]
        self.encoder, self.decoder = nn.Module(), nn.Module()
        self.encoder.embedding = nn.Embedding(config["vocab_size"], width)
        self.encoder.rnn = kind(width, hidden, layers, batch_first=True, bidirectional=both)
        if both:
            self.bridge = nn.Module()
            self.bridge.h = nn.ModuleList(nn.Linear(read, hidden) for _ in range(layers))
            self.bridge.c = nn.ModuleList(nn.Linear(read, hidden) for _ in range(layers if self.lstm else 0))
        vocab = config.get("decoder_vocab_size", config["vocab_size"])
        if not config.get("share_encoder_decoder_embeddings", True):
            self.decoder.embedding = nn.Embedding(vocab, width)
        if self.attends:
            self.decoder.attention = BahdanauAttention(hidden, read, config.get("attention_size", hidden))
            self.decoder.readout = nn.Linear(hidden + read + width, width)
        self.decoder.rnn = kind(width + (read if self.attends else 0), hidden, layers, batch_first=True)
        self.decoder.out = nn.Linear(width if self.attends else hidden, vocab)
        if config.get("tie_word_embeddings"):
            self.decoder.out.weight = self.embedding_of_targets().weight

    def embedding_of_targets(self):
        return getattr(self.decoder, "embedding", self.encoder.embedding)

    def forward(self, source, lengths, target):
        if self.reverse:
            source = torch.stack([torch.cat([s[:n].flip(0), s[n:]]) for s, n in zip(source, lengths)])
        packed = nn.utils.rnn.pack_padded_sequence(self.encoder.embedding(source), lengths, batch_first=True,
                                                   enforce_sorted=False)
        keys, state = self.encoder.rnn(packed)
        keys = nn.utils.rnn.pad_packed_sequence(keys, batch_first=True, total_length=source.shape[1])[0]
        if hasattr(self, "bridge"):
            h, c = state if self.lstm else (state, None)
            pairs = lambda x: [torch.cat([x[2 * i], x[2 * i + 1]], dim=1) for i in range(self.layers)]
            h = torch.stack([torch.tanh(layer(x)) for layer, x in zip(self.bridge.h, pairs(h))])
            state = (h, torch.stack([layer(x) for layer, x in zip(self.bridge.c, pairs(c))])) if self.lstm else h
        embedded = self.embedding_of_targets()(target)
        if not self.attends:
            return self.decoder.out(self.decoder.rnn(embedded, state)[0])
        padding = torch.arange(source.shape[1])[None] >= lengths[:, None]
        logits = []
        for e in embedded.unbind(1):
            h = state[0] if self.lstm else state
            context = self.decoder.attention(h[-1], keys, padding)
            s, state = self.decoder.rnn(torch.cat([e, context], dim=1)[:, None], state)
            logits.append(self.decoder.out(torch.tanh(self.decoder.readout(torch.cat([s[:, 0], context, e], dim=1)))))
        return torch.stack(logits, dim=1)


def perturbed(model, generator):
    with torch.no_grad():
        for parameter in list(model.parameters()) + [b for n, b in model.named_buffers() if n == "final_logits_bias"]:
            if parameter.requires_grad or parameter.ndim == 2 and parameter.shape[0] == 1:
                spread = 0.2 if parameter.ndim > 1 else 0.1
                parameter.add_(spread * torch.randn(parameter.shape, generator=generator))
    return model


def batch(vocab_size, generator, pad, start):
    """Two pairs, of 7 and 4 source tokens and of 4 and 6 target tokens."""
    ids = torch.randint(1, vocab_size - 1, (2, 7), generator=generator)
    lengths = torch.tensor([7, 4])
    ids[1, 4:] = pad
    labels = torch.randint(1, vocab_size - 1, (2, 6), generator=generator)
    labels[0, 4:] = -100
    targets = torch.cat([torch.full((2, 1), start), labels[:, :-1].clamp(min=0)], dim=1)
    return ids, lengths, targets, labels


def finish(folder, stored, own, tensors):
    loss = nn.functional.cross_entropy(tensors["logits"].flatten(0, 1), tensors["labels"].flatten())
    loss.backward()
    tensors["loss"] = loss
    for label in stored:
        if label in own:
            tensors[f"grad.{label}"] = own[label].grad
    save_file({label: (t.detach().float() if t.is_floating_point() else t).contiguous() for label, t in tensors.items()},
              folder / "expected.safetensors")


def write_marian(name):
    config = MARIANS[name]
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    torch.manual_seed(1)
    config.attn_implementation = "eager"
    model = perturbed(hf.MarianMTModel(config), generator).eval()
    model.final_logits_bias[0, END] += 2  # so that translations end at several lengths
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        folder.mkdir(parents=True)
        for file in ("config.json", "model.safetensors"):
            shutil.copy(pathlib.Path(temporary) / file, folder / file)
    stored = load_file(folder / "model.safetensors")
    model = model.double()
    ids, lengths, targets, labels = batch(config.vocab_size, generator, START, START)
    mask = (torch.arange(7)[None] < lengths[:, None]).long()
    out = model(input_ids=ids, attention_mask=mask, decoder_input_ids=targets)
    tensors = dict(input_ids=ids, lengths=lengths, decoder_input_ids=targets, labels=labels, logits=out.logits,
                   memory=out.encoder_last_hidden_state)
    flags = dict(input_ids=ids, attention_mask=mask, bad_words_ids=[[START]], max_length=14)
    modes = {
        "greedy": {},
        "greedy.short": dict(max_length=None, max_new_tokens=4),
        "greedy.penalized": dict(repetition_penalty=1.3, no_repeat_ngram_size=2, min_new_tokens=4,
                                 bad_words_ids=[[START], [7], [4, 9]]),
        "greedy.forced": dict(forced_bos_token_id=11),
        "beams.heuristic": dict(num_beams=4, num_return_sequences=3, early_stopping=False, length_penalty=1.4),
        "beams.true": dict(num_beams=4, num_return_sequences=3, early_stopping=True, length_penalty=1.4),
        "beams.never": dict(num_beams=4, num_return_sequences=3, early_stopping="never", length_penalty=1.4),
        "beams.short": dict(num_beams=5, length_penalty=0.6, max_length=8),
        "beams.penalized": dict(num_beams=3, length_penalty=0.0, repetition_penalty=1.3, no_repeat_ngram_size=2,
                                min_new_tokens=4, forced_bos_token_id=11),
    }
    for label, mode in modes.items():
        result = model.generate(**flags | mode, return_dict_in_generate=True, output_scores=True)
        tensors[label] = result.sequences
        if "num_beams" in mode:
            tensors[f"{label}.scores"] = result.sequences_scores
    finish(folder, stored, dict(model.named_parameters()), tensors)


def write_torch(name):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    torch.manual_seed(1)
    arguments = dict(d_model=16, nhead=2, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=24, dropout=0.0,
                     **TORCHES[name])
    sizes = dict(src_vocab_size=50, tgt_vocab_size=40)
    model = perturbed(Seq2SeqTransformer(**sizes, **arguments), generator).eval()
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = dict(architectures=["Seq2SeqTransformer"], model_type="torch_transformer", **sizes, **arguments,
                  max_position_embeddings=32, bos_token_id=2, eos_token_id=3, pad_token_id=1, dtype="float32")
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    stored = {label: t for label, t in model.state_dict().items()}
    save_file(stored, folder / "model.safetensors")
    model = model.double()
    for module in model.modules():  # the fast path of inference keeps no gradients
        if isinstance(module, nn.TransformerEncoder):
            module.use_nested_tensor = False
    ids, lengths, targets, labels = batch(40, generator, 1, 2)
    logits, memory = model(ids, targets, torch.arange(7)[None] >= lengths[:, None])
    tensors = dict(input_ids=ids, lengths=lengths, decoder_input_ids=targets, labels=labels, logits=logits, memory=memory)
    finish(folder, stored, dict(model.named_parameters()), tensors)


def write_seq2seq(name):
    config = dict(architectures=["RecurrentForConditionalGeneration"], model_type="recurrent_seq2seq", vocab_size=50,
                  hidden_size=8, num_layers=1, eos_token_id=END, pad_token_id=39, decoder_start_token_id=39,
                  dtype="float32") | SEQ2SEQS[name]
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    model = Seq2Seq(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator))
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    own = dict(model.named_parameters())  # a tied head is named once
    stored = {label: t.detach().contiguous() for label, t in own.items()}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    model = model.double()
    ids, lengths, targets, labels = batch(40, generator, 39, 39)
    tensors = dict(input_ids=ids, lengths=lengths, decoder_input_ids=targets, labels=labels,
                   logits=model(ids, lengths, targets))
    finish(folder, stored, dict(model.named_parameters()), tensors)


for wanted in sys.argv[1:] or [*MARIANS, *TORCHES, *SEQ2SEQS]:
    {**dict.fromkeys(MARIANS, write_marian), **dict.fromkeys(TORCHES, write_torch),
     **dict.fromkeys(SEQ2SEQS, write_seq2seq)}[wanted](wanted)
    print(wanted)
