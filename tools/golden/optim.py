"""Golden values of the optimizers, schedules, clipping, averaging and parameter groups: torch's and timm's, in float64.

    python tools/golden/optim.py

writes tests/golden/optim.safetensors.
"""

from pathlib import Path

import timm
import torch
from safetensors.torch import save_file
from timm.models import group_parameters
from timm.optim import create_optimizer_v2, param_groups_layer_decay, param_groups_weight_decay
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV3
from timm.utils.clip_grad import dispatch_clip_grad

ROOT = Path(__file__).resolve().parents[2]
generator = torch.Generator().manual_seed(23)
tensors = {}

# name: (shape, weight decay, lr scale); "late" has no gradient in the first steps.
PARAMETERS = {
    "proj.weight": ((5, 7), 0.05, 1.0),
    "proj.bias": ((5,), 0.0, 1.0),
    "head.weight": ((3, 17), 0.3, 0.25),
    "late": ((1,), 0.05, 1.0),
}
STEPS = 20
# LARS trusts a thousandth of the weights' norm; LARC's ratio counts for some parameters, and is cut off for others.
RATES = {"lars": 10.0, "lars_plain": 10.0, "nlars": 10.0, "larc": 0.002, "nlarc": 0.002}


def normal(*shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64).float().double()


def optimizers():
    start = {name: normal(*shape) for name, (shape, _, _) in PARAMETERS.items()}
    gradients = [{name: normal(*shape) for name, (shape, _, _) in PARAMETERS.items()} for _ in range(STEPS)]
    for name in PARAMETERS:
        tensors[f"start.{name}"] = start[name]
        tensors[f"gradients.{name}"] = torch.stack([step[name] for step in gradients])
    for opt, settings in {
        "adamw": {"eps": 1e-6, "betas": (0.8, 0.95)},
        "adam": {},
        "sgd": {"momentum": 0.8},
        "momentum": {},
        "plain": {"momentum": 0.0},
        "nadamw": {"betas": (0.85, 0.95)},
        "lion": {},
        "lion_betas": {"betas": (0.95, 0.98)},
        "lamb": {},
        "lamb_unclipped": {"max_grad_norm": None, "eps": 1e-5},
        "lambc": {"betas": (0.8, 0.95)},
        "lars": {},
        "lars_plain": {"momentum": 0.0},
        "larc": {"momentum": 0.8},
        "nlars": {},
        "nlarc": {},
    }.items():
        leaves = {name: torch.nn.Parameter(value.clone()) for name, value in start.items()}
        groups = [{"params": [leaves[name]], "weight_decay": decay, "lr_scale": scale}
                  for name, (_, decay, scale) in PARAMETERS.items()]
        optimizer = create_optimizer_v2(groups, "momentum" if opt == "plain" else opt.split("_")[0], lr=1.0, **settings)
        for step in range(STEPS):
            for group in optimizer.param_groups:
                group["lr"] = RATES.get(opt, 0.01) * (1 + 0.1 * step) * group["lr_scale"]
            for name, leaf in leaves.items():
                leaf.grad = None if name == "late" and step < 4 else 0.5 * gradients[step][name]
            optimizer.step()
            if step in (0, STEPS - 1):
                for name, leaf in leaves.items():
                    tensors[f"{opt}.{step}.{name}"] = leaf.detach().clone()


def schedules():
    base = {"num_epochs": 12, "warmup_lr": 1e-5}
    cases = {
        "cosine": {"sched": "cosine", "warmup_epochs": 3, "min_lr": 1e-4},
        "cosine_prefix": {"sched": "cosine", "warmup_epochs": 3, "warmup_prefix": True, "cooldown_epochs": 2},
        "cosine_updates": {"sched": "cosine", "warmup_epochs": 2, "step_on_epochs": False, "updates_per_epoch": 7,
                           "cooldown_epochs": 1, "k_decay": 1.5},
        "cosine_cycles": {"sched": "cosine", "cycle_mul": 2.0, "cycle_decay": 0.5, "cycle_limit": 2, "min_lr": 1e-3},
        "cosine_equal_cycles": {"sched": "cosine", "cycle_decay": 0.5, "cycle_limit": 3, "warmup_epochs": 2,
                                "warmup_prefix": True},
        "tanh": {"sched": "tanh", "warmup_epochs": 3, "min_lr": 1e-4},
        "poly": {"sched": "poly", "decay_rate": 0.5, "k_decay": 2.0, "min_lr": 1e-4, "cooldown_epochs": 1},
        "step": {"sched": "step", "decay_epochs": 2.5, "decay_rate": 0.3, "warmup_epochs": 1},
        "step_updates": {"sched": "step", "decay_epochs": 2.5, "decay_rate": 0.3, "warmup_epochs": 1,
                         "warmup_prefix": True, "step_on_epochs": False, "updates_per_epoch": 3},
        "multistep": {"sched": "multistep", "decay_milestones": [4, 9], "decay_rate": 0.2, "warmup_epochs": 2},
        "constant": {"sched": "constant", "warmup_epochs": 4},
    }
    for name, settings in cases.items():
        settings = base | settings
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
        scheduler, epochs = create_scheduler_v2(optimizer, **settings)
        by_epochs = settings.get("step_on_epochs", True)
        values = []
        for t in range((epochs + 2) * (1 if by_epochs else settings["updates_per_epoch"])):
            (scheduler.step if by_epochs else scheduler.step_update)(t)
            values.append(optimizer.param_groups[0]["lr"])
        tensors[f"schedule.{name}"] = torch.tensor(values, dtype=torch.float64)
        tensors[f"schedule.{name}.epochs"] = torch.tensor([epochs], dtype=torch.int64)


def clipping():
    weights = {"w": normal(4, 3, 5), "b": normal(6), "small": 1e-5 * normal(2, 9)}
    gradients = {name: 0.3 * normal(*value.shape) for name, value in weights.items()}
    for name in weights:
        tensors[f"clip.weight.{name}"] = weights[name]
        tensors[f"clip.gradient.{name}"] = gradients[name]
    for mode, limit in (("norm", 0.7), ("norm", 100.0), ("value", 0.2), ("agc", 0.05)):
        leaves = [torch.nn.Parameter(value.clone()) for value in weights.values()]
        for leaf, gradient in zip(leaves, gradients.values()):
            leaf.grad = gradient.clone()
        dispatch_clip_grad(leaves, limit, mode)
        for name, leaf in zip(weights, leaves):
            tensors[f"clip.{mode}.{limit:g}.{name}"] = leaf.grad
    tensors["clip.total"] = torch.cat([gradient.flatten() for gradient in gradients.values()]).norm().reshape(1)


def averages():
    weights = [normal(3, 11) for _ in range(9)]
    tensors["ema.weights"] = torch.stack(weights)
    for name, settings in {
        "plain": {"decay": 0.9},
        "late": {"decay": 0.8, "update_after_step": 3},
        "warmup": {"decay": 0.7, "use_warmup": True, "warmup_gamma": 2.0, "warmup_power": 0.75, "min_decay": 0.1},
    }.items():
        model = torch.nn.Linear(11, 3, bias=False).double()
        model.weight.data.copy_(weights[0])
        ema = ModelEmaV3(model, **settings)
        seen = []
        for step, value in enumerate(weights[1:], 1):
            model.weight.data.copy_(value)
            ema.update(model, step=step)
            seen.append(ema.module.weight.detach().clone())
        tensors[f"ema.{name}"] = torch.stack(seen)


def groups():
    """groups.NAME = [decayed, decayed with layer decay, lr scale, layer, layers, sizes …] of a small ViT's parameters."""
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, embed_dim=8, depth=3, num_heads=2, reg_tokens=2,
                              init_values=1e-5, num_classes=5, fc_norm=True)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    no_decay = model.no_weight_decay()
    plain = {names[id(p)]: g["weight_decay"] for g in param_groups_weight_decay(model, 0.05, no_weight_decay_list=no_decay)
             for p in g["params"]}
    layered = {names[id(p)]: g
               for g in param_groups_layer_decay(model, 0.05, no_weight_decay_list=no_decay, layer_decay=0.7,
                                                 min_scale=0.3)
               for p in g["params"]}
    layers = group_parameters(model, model.group_matcher(coarse=False), reverse=True)
    for name, parameter in model.named_parameters():
        tensors[f"groups.{name}"] = torch.tensor(
            [float(plain[name] > 0), float(layered[name]["weight_decay"] > 0), layered[name]["lr_scale"], layers[name],
             max(layers.values()) + 1, *parameter.shape])
    # The names that the model asks to be left out.
    for name in sorted(no_decay):
        tensors[f"no_weight_decay.{name}"] = torch.zeros(1)


optimizers()
schedules()
clipping()
averages()
groups()
path = ROOT / "tests/golden/optim.safetensors"
save_file({key: (value.float() if value.is_floating_point() else value).contiguous() for key, value in tensors.items()},
          path)
print(path.relative_to(ROOT), path.stat().st_size)
