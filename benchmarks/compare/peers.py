"""Times one kind of work in one of vitrail's peers, and prints one JSON object.

    peers.py PEER MODE --model NAME [--kwargs JSON] --batch-size B --dtype D --steps N --warmup W --threads T

PEER: torch (eager), torch-compile, openvino, onnxruntime. MODE: train (forward, loss, backward, AdamW), infer, or
pretrain (the same step of transformers' ViTMAEForPreTraining; --kwargs are its config). Each is
set up as its own documentation advises for a CPU: PyTorch with inference mode, channels-last and its fused AdamW,
OpenVINO with the LATENCY hint, ONNX Runtime with all graph optimizations; int8 is ONNX Runtime's dynamic quantization.
Prints {"peer", "step_ms": [...], "peak_memory_bytes"}: every timed step.
"""

import argparse
import json
import pathlib
import resource
import tempfile
import time

import torch


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=["torch", "torch-compile", "openvino", "onnxruntime"])
    parser.add_argument("mode", choices=["train", "infer", "pretrain"])
    parser.add_argument("--model", required=True)
    parser.add_argument("--kwargs", type=json.loads, default={})
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--dtype", choices=["f32", "bf16", "int8"], required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def make_model(args):
    import timm

    torch.manual_seed(0)
    return timm.create_model(args.model, **args.kwargs)


def images(args, model):
    side = args.kwargs.get("img_size", model.pretrained_cfg["input_size"][-1])
    return torch.randn(args.batch_size, 3, side, side)


def times(step, args):
    result = []
    for i in range(args.warmup + args.steps):
        begin = time.perf_counter()
        step()
        if i >= args.warmup:
            result.append(1e3 * (time.perf_counter() - begin))
    return result


def torch_training(args):
    """A step of timm's classifier, or of transformers' masked autoencoder."""
    if args.mode == "pretrain":
        import transformers

        torch.manual_seed(0)
        config = transformers.ViTMAEConfig(**args.kwargs, norm_pix_loss=True)
        model = transformers.ViTMAEForPreTraining(config).train()
        x = torch.randn(args.batch_size, 3, config.image_size, config.image_size)
        loss_of = lambda outputs: outputs.loss
    else:
        model = make_model(args).train().to(memory_format=torch.channels_last)
        x = images(args, model).to(memory_format=torch.channels_last)
        labels = torch.arange(args.batch_size) % model.num_classes
        loss_of = lambda logits: torch.nn.functional.cross_entropy(logits.float(), labels)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.05, fused=True)
    forward = torch.compile(model) if args.peer == "torch-compile" else model
    bf16 = args.dtype == "bf16"

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            outputs = forward(x)
        loss_of(outputs).backward()
        optimizer.step()
        optimizer.zero_grad()

    return times(step, args)


def torch_inference(args):
    model = make_model(args).eval().to(memory_format=torch.channels_last)
    x = images(args, model).to(memory_format=torch.channels_last)
    if args.dtype == "bf16":
        model, x = model.bfloat16(), x.bfloat16()
    forward = torch.compile(model) if args.peer == "torch-compile" else model

    @torch.inference_mode()
    def step():
        forward(x)

    return times(step, args)


def exported(args, folder):
    model = make_model(args).eval()
    x = images(args, model)
    path = folder / "model.onnx"
    torch.onnx.export(model, (x,), str(path), input_names=["x"], output_names=["logits"], opset_version=17, dynamo=False)
    return path, x.numpy()


def openvino_inference(args):
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        path, x = exported(args, pathlib.Path(folder))
        core = openvino.Core()
        compiled = core.compile_model(
            str(path),
            "CPU",
            {
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_NUM_THREADS": args.threads,
                "INFERENCE_PRECISION_HINT": {"f32": "f32", "bf16": "bf16"}[args.dtype],
            },
        )
        request = compiled.create_infer_request()
        return times(lambda: request.infer({0: x}, share_inputs=True), args)


def onnxruntime_inference(args):
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path, x = exported(args, pathlib.Path(folder))
        if args.dtype == "int8":
            from onnxruntime.quantization import QuantType, quantize_dynamic

            small = path.with_name("int8.onnx")
            quantize_dynamic(str(path), str(small), weight_type=QuantType.QInt8, per_channel=True)
            path = small
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return times(lambda: session.run(None, {"x": x}), args)


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    if args.mode != "infer":
        step_ms = torch_training(args)
    elif args.peer == "openvino":
        step_ms = openvino_inference(args)
    elif args.peer == "onnxruntime":
        step_ms = onnxruntime_inference(args)
    else:
        step_ms = torch_inference(args)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"peer": args.peer, "step_ms": step_ms, "peak_memory_bytes": peak}))


if __name__ == "__main__":
    main()
