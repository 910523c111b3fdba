"""Times how vitrail turns sentences into vectors beside PyTorch, OpenVINO and ONNX Runtime: an encoder of MiniLM-L6's
shape with random weights, the same sentences and threads, in rounds that alternate.

    python benchmarks/compare/sentences.py SENTENCES [--count 10000] [--rounds 3] [--threads 2] [--rows REGEX]
    python benchmarks/compare/sentences.py peer NAME --work JSON [--threads 2]

SENTENCES is a text with a sentence a line (multi30k's train.en), of which the first --count are taken; its words make the
tokenizer. Every side runs in a process of its own, one at a time; the second form is such a process of a peer. Prints a
table in Markdown: sentences a second, tokenizing and pooling included. Ours is the whole command `vitrail embed`, with its
start, loading and writing; the peers have loaded the model, and get the sentences sorted by length in padded batches, of
the best of some sizes. In int8, PyTorch and ONNX Runtime quantize dynamically; OpenVINO runs in f32.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from compare import VITRAIL, output_of, parser_of, report

PEERS = ["torch", "openvino", "onnxruntime"]
ROWS = [{"name": "MiniLM-L6's shape, sentences to vectors", "dtype": dtype, "peers": PEERS} for dtype in ("f32", "int8")]
BATCH_SIZES = (32, 64, 128)


def make_folder(folder, sentences):
    """A random BERT of this shape, and a tokenizer of WordPiece."""
    import tokenizers
    import torch
    import transformers

    torch.manual_seed(0)
    learned = tokenizers.BertWordPieceTokenizer()
    learned.train_from_iterator(sentences, vocab_size=30522, show_progress=False)
    tokenizer = transformers.BertTokenizerFast(tokenizer_object=learned._tokenizer, model_max_length=512)
    config = transformers.BertConfig(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                                     intermediate_size=1536)
    transformers.BertModel(config).save_pretrained(folder / "f32")
    tokenizer.save_pretrained(folder / "f32")
    subprocess.run([VITRAIL, "quantize", folder / "f32", "--output", folder / "int8"], check=True, capture_output=True)


def run_vitrail(work, threads):
    folder = pathlib.Path(work["folder"])
    begin = time.perf_counter()
    subprocess.run([VITRAIL, "embed", folder / work["dtype"], work["sentences"], "--threads", str(threads), "--output",
                    folder / "vectors.safetensors"], check=True, capture_output=True)
    return {"sentences_per_second": work["count"] / (time.perf_counter() - begin)}


def run_peer(peer, work, threads):
    return output_of([sys.executable, __file__, "peer", peer, "--work", json.dumps(work), "--threads", str(threads)])


def result_of(work, rounds, threads):
    key = "sentences_per_second"
    own, peers = [], {}
    for _ in range(rounds):
        own.append(run_vitrail(work, threads))
        for peer in work["peers"]:
            peers.setdefault(peer, []).append(run_peer(peer, work, threads))
    best = max(run[key] for run in own)
    peers = {name: max(runs, key=lambda run: run[key]) for name, runs in peers.items()}
    return {"name": work["name"], "dtype": work["dtype"], "vitrail": {key: best}, "peers": peers,
            "times_as_fast": best / max(run[key] for run in peers.values())}


def table_line(result):
    key = "sentences_per_second"
    peers = ", ".join(f"{name} {peer[key]:.0f} (batches of {peer['batch_size']})" for name, peer in result["peers"].items())
    return (f"| {result['name']} | {result['dtype']} | {result['vitrail'][key]:.0f} | {peers} | "
            f"**{result['times_as_fast']:.2f}** |")


def exported(work, folder):
    import torch
    import transformers

    class States(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    model = transformers.BertModel.from_pretrained(pathlib.Path(work["folder"]) / "f32", add_pooling_layer=False,
                                                   attn_implementation="eager").eval()
    ids = torch.ones((2, 8), dtype=torch.long)
    axes = {0: "texts", 1: "tokens"}
    names = ["input_ids", "attention_mask"]
    path = folder / "model.onnx"
    torch.onnx.export(States(model), (ids, ids), str(path), input_names=names, output_names=["states"], opset_version=17,
                      dynamic_axes={name: axes for name in (*names, "states")}, dynamo=False)
    return path


def torch_states(work):
    import torch
    import transformers

    model = transformers.BertModel.from_pretrained(pathlib.Path(work["folder"]) / "f32", add_pooling_layer=False).eval()
    if work["dtype"] == "int8":
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)

    @torch.inference_mode()
    def states(ids, mask):
        return model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).last_hidden_state.numpy()

    return states


def openvino_states(path, threads):
    import openvino

    compiled = openvino.Core().compile_model(str(path), "CPU", {"PERFORMANCE_HINT": "LATENCY",
                                                                "INFERENCE_PRECISION_HINT": "f32",  # else bf16, if it can
                                                                "INFERENCE_NUM_THREADS": threads})
    request = compiled.create_infer_request()
    return lambda ids, mask: request.infer({"input_ids": ids, "attention_mask": mask}, share_inputs=True)[0]


def onnxruntime_states(path, threads, int8):
    import onnxruntime

    if int8:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        small = path.with_name("int8.onnx")
        quantize_dynamic(str(path), str(small), weight_type=QuantType.QInt8, per_channel=True)
        path = small
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda ids, mask: session.run(None, {"input_ids": ids, "attention_mask": mask})[0]


def embedded(tokenizer, states, sentences, batch_size):
    """The mean states of the sentences, in batches of similar lengths."""
    import numpy

    encodings = tokenizer.encode_batch(sentences)
    order = sorted(range(len(encodings)), key=lambda i: -len(encodings[i].ids))
    vectors = numpy.empty((len(sentences), 384), numpy.float32)
    for begin in range(0, len(order), batch_size):
        rows = order[begin:begin + batch_size]
        longest = len(encodings[rows[0]].ids)
        ids = numpy.zeros((len(rows), longest), numpy.int64)
        mask = numpy.zeros((len(rows), longest), numpy.int64)
        for row, i in enumerate(rows):
            ids[row, :len(encodings[i].ids)] = encodings[i].ids
            mask[row, :len(encodings[i].ids)] = 1
        real = mask[:, :, None].astype(numpy.float32)
        vectors[rows] = (states(ids, mask) * real).sum(1) / real.sum(1)
    return vectors


def peer(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--work", type=json.loads, required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(words)
    import tokenizers
    import torch

    torch.set_num_threads(args.threads)
    tokenizer = tokenizers.Tokenizer.from_file(str(pathlib.Path(args.work["folder"]) / "f32/tokenizer.json"))
    sentences = pathlib.Path(args.work["sentences"]).read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        if args.peer == "torch":
            states = torch_states(args.work)
        else:
            path = exported(args.work, pathlib.Path(folder))
            states = (openvino_states(path, args.threads) if args.peer == "openvino" else
                      onnxruntime_states(path, args.threads, args.work["dtype"] == "int8"))
        embedded(tokenizer, states, sentences[:1000], 64)
        best = (0, 0)
        for batch_size in BATCH_SIZES:
            begin = time.perf_counter()
            embedded(tokenizer, states, sentences, batch_size)
            best = max(best, (len(sentences) / (time.perf_counter() - begin), batch_size))
    print(json.dumps({"sentences_per_second": best[0], "batch_size": best[1],
                      "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def main():
    parser = parser_of(__doc__)
    parser.add_argument("sentences", metavar="SENTENCES", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=10000)
    args = parser.parse_args()
    sentences = args.sentences.read_text(encoding="utf-8").splitlines()[:args.count]
    print("| work | dtype | vitrail: sentences a second | peers | times as fast |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_folder(folder, sentences)
        (folder / "sentences.txt").write_text("".join(line + "\n" for line in sentences), encoding="utf-8")
        rows = [work | {"folder": str(folder), "sentences": str(folder / "sentences.txt"), "count": len(sentences)}
                for work in ROWS]
        report(args, lambda work: result_of(work, args.rounds, args.threads), table_line, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["peer"]:
        peer(sys.argv[2:])
    else:
        main()
