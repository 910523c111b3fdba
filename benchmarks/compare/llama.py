"""Times vitrail's int8 beside llama.cpp's Q8_0: Llamas with random weights, the same shapes and threads, in rounds that
alternate.

    python benchmarks/compare/llama.py LLAMA_CPP [--rounds 3] [--threads 2] [--rows REGEX] [--output FILE.json]

LLAMA_CPP is a checkout of https://github.com/ggml-org/llama.cpp in which llama-bench has been built for this CPU:

    cmake -B build -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF && cmake --build build --target llama-bench

Its gguf-py writes the file that llama-bench reads, in a temporary folder (1.2 GB for TinyLlama). Prints a table in
Markdown: tokens a second of a prompt of 512, and of 64 tokens one by one behind a prompt of 32 (llama-bench: behind none),
each of the fastest run, and how many times as fast ours are.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from compare import VITRAIL, output_of, parser_of, report

# hidden, intermediate, layers, heads, key heads, vocabulary, head tied to the embedding, rope's base, longest text.
SHAPES = {"smollm2-135m": (576, 1536, 30, 9, 3, 49152, True, 100000.0, 8192),
          "tinyllama-1.1b": (2048, 5632, 22, 32, 4, 32000, False, 10000.0, 2048)}
ROWS = [{"name": name, "dtype": "int8", "prompt": 512, "new": 64} for name in SHAPES]


def write_gguf(llama, name, path):
    sys.path.insert(0, str(llama / "gguf-py"))
    import gguf
    import numpy

    hidden, intermediate, layers, heads, key_heads, vocab, tied, base, longest = SHAPES[name]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(layers)
    writer.add_context_length(longest)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(intermediate)
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(base)
    writer.add_rope_dimension_count(hidden // heads)
    writer.add_vocab_size(vocab)
    writer.add_tokenizer_model("no_vocab")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    draws = numpy.random.default_rng(0)

    def matrix(tensor, rows, columns):
        values = draws.standard_normal((rows, columns), numpy.float32) * 0.02
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(f"{tensor}.weight", gguf.quants.quantize(values, kind), raw_dtype=kind)

    norm = lambda tensor: writer.add_tensor(f"{tensor}.weight", numpy.ones(hidden, numpy.float32))
    keys = hidden // heads * key_heads
    matrix("token_embd", vocab, hidden)
    for layer in range(layers):
        block = f"blk.{layer}"
        norm(f"{block}.attn_norm")
        matrix(f"{block}.attn_q", hidden, hidden)
        matrix(f"{block}.attn_k", keys, hidden)
        matrix(f"{block}.attn_v", keys, hidden)
        matrix(f"{block}.attn_output", hidden, hidden)
        norm(f"{block}.ffn_norm")
        matrix(f"{block}.ffn_gate", intermediate, hidden)
        matrix(f"{block}.ffn_up", intermediate, hidden)
        matrix(f"{block}.ffn_down", hidden, intermediate)
    norm("output_norm")
    if not tied:
        matrix("output", vocab, hidden)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run_vitrail(work, threads):
    def bench(prompt, new):
        return output_of([str(word) for word in (
            VITRAIL, "bench", "generate", "--model", work["name"], "--dtype", "int8", "--prompt-len", prompt, "--new-tokens",
            new, "--steps", 2, "--threads", threads, "--json")])

    generated = bench(32, work["new"])
    return {"prompt": bench(work["prompt"], 2)["prompt_tokens_per_second"], "new": generated["tokens_per_second"],
            "bandwidth_share": generated["bandwidth_share"],
            "bandwidth_bytes_per_second": generated["bandwidth_bytes_per_second"]}


def run_llama(llama, file, work, threads):
    done = subprocess.run([str(word) for word in (
        llama / "build/bin/llama-bench", "-m", file, "-p", work["prompt"], "-n", work["new"], "-t", threads, "-ngl", 0, "-r",
        3, "-o", "json")], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr[-2000:])
    found = json.loads(done.stdout)
    fastest = lambda tests: max(max(test["samples_ts"]) for test in tests)
    return {"prompt": fastest([test for test in found if test["n_gen"] == 0]),
            "new": fastest([test for test in found if test["n_gen"] > 0]), "build": found[0]["build_commit"]}


def result_of(llama, work, rounds, threads):
    own, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.gguf"
        write_gguf(llama, work["name"], file)
        for _ in range(rounds):
            own.append(run_vitrail(work, threads))
            theirs.append(run_llama(llama, file, work, threads))
    best = lambda runs: runs[0] | {key: max(run[key] for run in runs) for key in ("prompt", "new")}
    return work | {"vitrail": best(own), "llama.cpp": best(theirs)}


def table_line(result):
    own, theirs = result["vitrail"], result["llama.cpp"]
    return (f"| {result['name']} | {own['prompt']:.0f} | {theirs['prompt']:.0f} | **{own['prompt'] / theirs['prompt']:.2f}** | "
            f"{own['new']:.1f} | {theirs['new']:.1f} | **{own['new'] / theirs['new']:.2f}** |")


def main():
    parser = parser_of(__doc__)
    parser.add_argument("llama", metavar="LLAMA_CPP", type=pathlib.Path)
    args = parser.parse_args()
    print("| shape | a prompt of 512: vitrail | llama.cpp | | 64 new tokens: vitrail | llama.cpp | |")
    print("|---|---|---|---|---|---|---|")
    report(args, lambda work: result_of(args.llama, work, args.rounds, args.threads), table_line, ROWS)


if __name__ == "__main__":
    main()
