"""Times captions beside PyTorch: transformers' VisionEncoderDecoderModel of a ViT-B/16 and a GPT-2 of 124 M parameters with
cross-attention, random weights, one image at a time, 20 tokens each, greedily, in rounds that alternate.

    python benchmarks/compare/captions.py [--rounds 3] [--threads 2] [--rows REGEX] [--output FILE.json]
    python benchmarks/compare/captions.py peer FOLDER --dtype DTYPE [--threads 2]

Both sides read PNG files of 480 x 640 random pixels, prepare them (224 x 224), write 20 tokens and decode these. Ours is what an
image more costs the whole command: (the time of 17 images - that of one) / 16. The second form is the peer, in a process of its own:
the fastest and the median image, loading left out; in bf16 its weights are. Needs torch, transformers 5.23 and Pillow. Prints a table in
Markdown.
"""

import argparse
import itertools
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from compare import VITRAIL, output_of, parser_of, report

IMAGES, TOKENS = 17, 20
ROWS = [{"name": "caption, ViT-B/16 + GPT-2, batch 1, 20 tokens", "dtype": dtype} for dtype in ("f32", "bf16")]


def make_folder(folder):
    """A captioner with random weights whose tokens never end a text, and IMAGES images in images/."""
    import numpy
    import tokenizers
    import torch
    import transformers as hf
    from PIL import Image

    torch.manual_seed(0)
    config = hf.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        hf.ViTConfig(), hf.GPT2Config(add_cross_attention=True, is_decoder=True, bos_token_id=50256, eos_token_id=50256))
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 50256, 50256, None
    model = hf.VisionEncoderDecoderModel(config).eval()
    model.generation_config = hf.GenerationConfig(decoder_start_token_id=50256, pad_token_id=50256)
    model.save_pretrained(folder)
    hf.ViTImageProcessor().save_pretrained(folder)
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    pairs = list(itertools.islice(itertools.product(letters, letters), 50256 - len(letters)))
    vocab = {piece: i for i, piece in enumerate([*letters, *(a + b for a, b in pairs), "<|endoftext|>"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, pairs))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(folder)
    (folder / "images").mkdir()
    pixels = numpy.random.default_rng(0)
    for i in range(IMAGES):
        Image.fromarray(pixels.integers(0, 256, (480, 640, 3), dtype=numpy.uint8)).save(folder / f"images/{i:02}.png")


def run_vitrail(folder, dtype, threads):
    def seconds(images):
        command = [VITRAIL, "caption", folder, *images, "--num-beams", 1, "--max-new-tokens", TOKENS, "--batch-size", 1,
                   "--threads", threads, *(["--amp"] if dtype == "bf16" else [])]
        begin = time.perf_counter()
        said = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
        return time.perf_counter() - begin, said.stdout

    images = sorted((folder / "images").iterdir())
    one, _ = seconds(images[:1])
    all_of_them, said = seconds(images)
    assert len(said.splitlines()) >= IMAGES, said
    return 1e3 * (all_of_them - one) / (IMAGES - 1)


def peer_main(words):
    import torch
    import transformers as hf
    from PIL import Image

    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dtype", choices=["f32", "bf16"], required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(words)
    torch.set_num_threads(args.threads)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[args.dtype]
    model = hf.VisionEncoderDecoderModel.from_pretrained(args.folder, dtype=dtype).eval()
    processor = hf.ViTImageProcessor.from_pretrained(args.folder)
    tokenizer = hf.AutoTokenizer.from_pretrained(args.folder)
    times = []
    for path in sorted((args.folder / "images").iterdir()):
        begin = time.perf_counter()
        pixels = processor(Image.open(path), return_tensors="pt").pixel_values.to(dtype)
        with torch.inference_mode():
            ids = model.generate(pixel_values=pixels, max_new_tokens=TOKENS, num_beams=1, do_sample=False)
        tokenizer.batch_decode(ids, skip_special_tokens=True)
        times.append(1e3 * (time.perf_counter() - begin))
        assert ids.shape[1] == 1 + TOKENS, ids.shape
    print(json.dumps({"image_ms": times[1:], "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def result_of(folder, work, args):
    own, peer = [], []
    for _ in range(args.rounds):
        own.append(run_vitrail(folder, work["dtype"], args.threads))
        peer += output_of([sys.executable, __file__, "peer", str(folder), "--dtype", work["dtype"], "--threads",
                           str(args.threads)])["image_ms"]
    return work | {"vitrail": {"min": min(own), "all": own}, "transformers": {"min": min(peer), "median": statistics.median(peer)},
                   "times_as_fast": min(peer) / min(own)}


def table_line(result):
    peer = result["transformers"]
    return (f"| {result['name']} | {result['dtype']} | {result['vitrail']['min']:.0f} | {peer['min']:.0f} / {peer['median']:.0f} | "
            f"**{result['times_as_fast']:.2f}** |")


def main():
    if sys.argv[1:2] == ["peer"]:
        return peer_main(sys.argv[2:])
    args = parser_of(__doc__).parse_args()
    if not VITRAIL.exists():
        sys.exit(f"{VITRAIL} is missing: run script/bootstrap first")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_folder(folder)
        print("| work | dtype | vitrail, ms an image | transformers, ms (fastest / median) | times as fast |\n|---|---|---|---|---|")
        report(args, lambda work: result_of(folder, work, args), table_line, ROWS)


if __name__ == "__main__":
    main()
