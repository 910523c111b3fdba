"""What the scripts that make fixtures of models share: perturbed parameters, recorded features and attention maps, files.

A fixture is a folder as timm's save_for_hf writes it, and beside it expected.safetensors, computed in float64: x, logits,
features.{i}, attention.{i}, the gradient `grad.NAME` of every parameter of Σ logits · seed, and facts.json with timm's
layer and weight-decay groups. tests/models/timm_variant.h reads them.
"""

import contextlib
import copy
import json
import pathlib
import shutil

import timm
import torch
from safetensors.torch import save_file
from timm.models import group_parameters, save_for_hf

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models"


def perturb(model, seed):
    """Every parameter gets values far from what it started with, of a size that keeps the model well-conditioned."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_scale = parameter.ndim == 1 and not name.endswith("bias")
            if ".lambda_" in name:  # of differential attention, which takes the exponential of their products
                parameter.copy_(0.4 * noise)
            elif is_scale:
                parameter.copy_(1 + 0.2 * noise)
            elif parameter.ndim == 1:
                parameter.copy_(0.1 * noise)
            elif name.endswith("_token") or name.endswith("pos_embed") or name.endswith("bias_table"):
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(noise / parameter[0].numel() ** 0.5)
        for name, buffer in model.named_buffers():  # of batch norms
            if name.endswith("running_mean"):
                buffer.copy_(0.2 * torch.randn(buffer.shape, generator=generator))
            elif name.endswith("running_var"):
                buffer.copy_(torch.exp(0.3 * torch.randn(buffer.shape, generator=generator)))


def build(architecture, arguments, seed, make=timm.create_model):
    """A timm model with every parameter perturbed, in evaluation."""
    torch.manual_seed(seed)
    model = make(architecture, **arguments)
    perturb(model, seed)
    return model.eval()


def shape_of(arguments, size=None):
    """The shape of two images as a model with these arguments takes them, of its own size or another one."""
    size = size or arguments["img_size"]
    return (2, arguments.get("in_chans", 3), *(size if isinstance(size, tuple) else (size, size)))


def random_image(shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()


@contextlib.contextmanager
def recorded(features, attention):
    """Within it, the outputs of the modules `features`, and what the modules `attention` take: dropouts that stand right
    behind a softmax, or functions for torch.nn.Module.register_forward_hook that return the probabilities."""
    tensors, handles = {}, []
    for i, module in enumerate(features):
        handles.append(module.register_forward_hook(lambda m, a, out, i=i: tensors.__setitem__(f"features.{i}", out)))
    for i, module in enumerate(attention):
        handles.append(
            module.register_forward_pre_hook(lambda m, a, i=i: tensors.__setitem__(f"attention.{i}", a[0].clone()))
        )
    yield tensors
    for handle in handles:
        handle.remove()


def write(path, tensors):
    save_file({name: t.detach().float().contiguous() for name, t in tensors.items()}, path)


def add_gradients(model, logits, expected):
    """The seed and the gradients of Σ logits · seed."""
    expected["seed"] = torch.randn(logits.shape, generator=torch.Generator().manual_seed(3)).double()
    (logits * expected["seed"]).sum().backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            expected[f"grad.{name}"] = parameter.grad


def rounding(model, fixture):
    """How far the gradient in bf16 is from that in float64, which `fixture` has, relative to it: the larger of the distances
    with bf16 for the products alone and for the whole model."""
    errors = []
    for whole in (False, True):
        rounded = copy.deepcopy(model).to(torch.bfloat16 if whole else torch.float32).eval()
        rounded.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=not whole):
            logits = rounded(fixture["x"].bfloat16() if whole else fixture["x"])
        (logits.double() * fixture["seed"]).sum().backward()
        pairs = [(parameter.grad.double(), fixture[f"grad.{name}"].double()) for name, parameter in rounded.named_parameters()
                 if f"grad.{name}" in fixture]
        difference = sum((a - b).square().sum() for a, b in pairs)
        errors.append((difference / sum(b.square().sum() for _, b in pairs)).sqrt())
    return torch.stack(errors).max()


def facts(model):
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "num_features": model.num_features,
        "layers": group_parameters(model, model.group_matcher(coarse=False), reverse=True),
        "no_weight_decay": sorted(n for n, _ in model.named_parameters() if n in no_weight_decay(model)),
    }


def no_weight_decay(model):
    return model.no_weight_decay() if hasattr(model, "no_weight_decay") else set()


def write_variant(name, architecture, arguments, seed, shape, features, attention, more=None, make=timm.create_model):
    """The fixture `name` of a timm model for an image of `shape`. `features` and `attention` map the model to its
    modules for recorded(); `more` may add to what is expected; `make` makes the model."""
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    model = build(architecture, arguments, seed, make)
    save_for_hf(model, folder, model_args=arguments, safe_serialization=True)
    model = model.double()
    x = random_image(shape)
    with recorded(features(model), attention(model)) as tensors:
        logits = model(x)
    expected = {"x": x, "logits": logits} | tensors
    if more is not None:
        more(model, x, expected)
    add_gradients(model, logits, expected)
    write(folder / "expected.safetensors", expected)
    (folder / "facts.json").write_text(json.dumps(facts(model), indent=1) + "\n")


def write_initialization(family, models, common, make=timm.create_model):
    """FAMILY_initialization.json: mean, standard deviation and largest magnitude of the halves of every parameter of fresh
    models, {name: (architecture, arguments over those in common)}."""
    result = {}
    for name, (architecture, arguments) in models.items():
        arguments = arguments | {key: value for key, value in common.items() if key not in arguments}
        torch.manual_seed(0)
        model = make(architecture, **arguments)
        statistics = {}
        for parameter_name, parameter in model.named_parameters():
            halves = torch.tensor_split(parameter.detach().double(), 2) if parameter.shape[0] > 1 else [parameter]
            statistics[parameter_name] = [
                [h.mean().item(), h.std(correction=0).item(), h.abs().max().item()] for h in halves
            ]
        result[name] = {"architecture": architecture, "arguments": arguments, "statistics": statistics}
    (ROOT / f"{family}_initialization.json").write_text(json.dumps(result, indent=1) + "\n")


def write_reference(name, architecture, arguments, model, seed, shape, features, layers):
    """The fixture `name` of a model that timm does not have, laid out as write_variant() does. `arguments` are vitrail's,
    `features` the modules whose outputs are recorded; `layers` maps a parameter's name to its layer."""
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    perturb(model, seed)
    tensors = {key: value.contiguous() for key, value in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    pretrained = {
        "input_size": list(shape[1:]),
        "fixed_input_size": False,
        "interpolation": "bicubic",
        "crop_pct": 0.9,
        "mean": [0.485, 0.456, 0.406][: shape[1]],
        "std": [0.229, 0.224, 0.225][: shape[1]],
    }
    config = {"architecture": architecture, "num_classes": arguments.get("num_classes", 1000), "model_args": arguments,
              "pretrained_cfg": pretrained}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    model = model.double().eval()
    x = random_image(shape)
    with recorded(features, []) as outputs:
        logits = model(x)
    expected = {"x": x, "logits": logits} | outputs
    add_gradients(model, logits, expected)
    write(folder / "expected.safetensors", expected)
    known = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "num_features": logits.shape[-1] if arguments.get("num_classes") == 0 else model.head.in_features,
        "layers": {key: layers(key) for key in tensors},
        "no_weight_decay": [],
    }
    (folder / "facts.json").write_text(json.dumps(known, indent=1) + "\n")


def write_table(family, models, handles=None):
    """FAMILY_table.csv: parameters and fvcore's FLOPs for an image of 224x224 of {name: model}; `handles` counts what
    fvcore does not know."""
    from fvcore.nn import FlopCountAnalysis

    rows = ["name,parameters,flops,num_features,num_classes"]
    for name, model in models.items():
        analysis = FlopCountAnalysis(model.eval(), torch.zeros(1, 3, 224, 224)).set_op_handle(**(handles or {}))
        flops = int(analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).total())
        count = sum(p.numel() for p in model.parameters())
        rows.append(f"{name},{count},{flops},{model.head.in_features},{model.head.out_features}")
    (ROOT / f"{family}_table.csv").write_text("\n".join(rows) + "\n")
