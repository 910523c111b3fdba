"""Times DETR beside PyTorch and OpenVINO: transformers' DetrForObjectDetection (channels last), with the same shapes and threads, in
rounds that alternate.

    python benchmarks/compare/detection.py [--rounds 3] [--threads 2] [--rows REGEX] [--output FILE.json]
    python benchmarks/compare/detection.py matching       # of 64 images x 100 queries x 30 objects x 6 layers, costs included
    python benchmarks/compare/detection.py peer --work JSON [--threads 2] [--peer NAME]

Images of 4:3 with random pixels; in training ten objects an image, a loss for each layer of the decoder, matching included, a
frozen backbone up to its second stage, AdamW. The second form times matching alone (ours: benchmarks/matching_bench.cpp, one
thread; transformers' HungarianMatcher on --threads), the third is a peer's, in a process of its own. Needs torch, timm, openvino and
transformers 5.23. Prints a table in Markdown as compare.py does.
"""

import json
import resource
import subprocess
import sys
import time

import compare

WARMUP = 2
SMALL = {"d_model": 128, "encoder_layers": 3, "decoder_layers": 3, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512, "num_queries": 50}
SHAPES = [("DETR-R50, 800 x 1066, batch 1", "infer", "detr_resnet50", 800, 1, {}, 5),
          ("train DETR-R50, 480 x 640, batch 2", "train", "detr_resnet50", 480, 2, {}, 3),
          ("train resnet18, d 128, 3 + 3 layers, 50 queries, 240 x 320, batch 8", "train", "detr_resnet18", 240, 8, SMALL, 5)]
ROWS = [{"name": name, "mode": mode, "model": model, "batch": batch, "steps": steps, "dtype": dtype, "kwargs": kwargs,
         "peer_kwargs": kwargs, "flags": ["--img-size", size], "size": size,
         "peers": [("torch", None), *([("openvino", None)] if mode == "infer" else [])]}
        for name, mode, model, size, batch, kwargs, steps in SHAPES for dtype in ("f32", "bf16")]


def run_peer(peer, dtype, work, threads):
    return compare.output_of([sys.executable, __file__, "peer", "--work", json.dumps(work), "--threads", str(threads),
                              "--peer", peer])


def openvino_step(model, x, work, threads):
    import openvino

    class Bare(type(model)):
        def forward(self, pixel_values):
            found = super().forward(pixel_values=pixel_values)
            return found.logits, found.pred_boxes

    model.__class__ = Bare
    x = x.contiguous()
    compiled = openvino.Core().compile_model(openvino.convert_model(model, example_input=x, input=[tuple(x.shape)]), "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": work["dtype"]})
    request = compiled.create_infer_request()
    return lambda: request.infer({0: x.numpy()}, share_inputs=True)


def step_of(torch, work, peer, threads):
    import transformers as hf

    backbone = {"model_type": "timm_backbone", "backbone": work["model"].removeprefix("detr_"), "num_channels": 3,
                "features_only": True, "use_pretrained_backbone": False, "out_indices": [1, 2, 3, 4]}
    config = hf.DetrConfig(backbone_config=backbone, num_labels=91, auxiliary_loss=work["mode"] == "train", **work["kwargs"])
    model = hf.DetrForObjectDetection(config).to(memory_format=torch.channels_last)
    height, width = work["size"], work["size"] * 640 // 480
    x = torch.randn(work["batch"], 3, height, width).to(memory_format=torch.channels_last)
    autocast = lambda: torch.autocast("cpu", torch.bfloat16, enabled=work["dtype"] == "bf16")
    if peer == "openvino":
        return openvino_step(model.eval(), x, work, threads)
    if work["mode"] == "infer":
        model.eval()

        def infer():
            with torch.inference_mode(), autocast():
                model(pixel_values=x)

        return infer
    for name, parameter in model.named_parameters():
        if "backbone" in name and not any(f"layer{i}" in name for i in (2, 3, 4)):
            parameter.requires_grad = False
    labels = [{"class_labels": torch.randint(0, 91, (10,)),
               "boxes": torch.cat([0.3 + 0.4 * torch.rand(10, 2), 0.1 + 0.4 * torch.rand(10, 2)], 1)} for _ in range(work["batch"])]
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, weight_decay=1e-4, fused=True)

    def train():
        with autocast():
            loss = model(pixel_values=x, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return train


def peer_main(work, threads, peer):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    step = step_of(torch, work, peer, threads)
    times = []
    for _ in range(WARMUP + work["steps"]):
        begin = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"step_ms": times[WARMUP:], "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def matching(threads=2, rounds=5):
    import torch
    from transformers.loss.loss_for_object_detection import HungarianMatcher

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    matcher = HungarianMatcher(1, 5, 2)
    layers = [{"logits": torch.randn(64, 100, 92), "pred_boxes": 0.2 + 0.6 * torch.rand(64, 100, 4)} for _ in range(6)]
    targets = [{"class_labels": torch.randint(0, 91, (30,)),
                "boxes": torch.cat([0.3 + 0.4 * torch.rand(30, 2), 0.1 + 0.4 * torch.rand(30, 2)], 1)} for _ in range(64)]
    peer, own = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        for layer in layers:
            matcher(layer, targets)
        peer.append(1e3 * (time.perf_counter() - begin))
        said = subprocess.run([compare.VITRAIL.parent / "vitrail_bench_kernels", "--benchmark_filter=match_layers/six",
                               "--benchmark_format=json"], check=True, capture_output=True, text=True)
        own.append(json.loads(said.stdout)["benchmarks"][0]["real_time"])
    print(json.dumps({"work": "matching, 64 images x 100 queries x 30 objects x 6 layers", "vitrail_ms": min(own),
                      "transformers_ms": min(peer), "ratio": min(peer) / min(own)}))


def main():
    if sys.argv[1:2] == ["matching"]:
        return matching()
    if sys.argv[1:2] == ["peer"]:
        values = dict(zip(sys.argv[2::2], sys.argv[3::2]))
        peer_main(json.loads(values["--work"]), int(values.get("--threads", 2)), values.get("--peer", "torch"))
        return
    args = compare.parser_of(__doc__).parse_args()
    if not compare.VITRAIL.exists():
        sys.exit(f"{compare.VITRAIL} is missing: run script/bootstrap first")
    compare.run_peer = run_peer
    print("| work | dtype | vitrail, ms | of the peak, GF/s | peers, ms | best peer, of the peak | times as fast | memory |")
    print("|---|---|---|---|---|---|---|---|")
    compare.report(args, lambda work: compare.compare(work, args.rounds, args.threads), compare.table_line, ROWS)


if __name__ == "__main__":
    main()
