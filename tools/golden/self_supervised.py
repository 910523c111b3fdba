"""Writes tests/golden/self_supervised/: losses, schedules, heads and twenty steps of SimCLR, MoCo v3 and DINO.

    python tools/golden/self_supervised.py FOLDER

FOLDER holds checkouts of

    dino       github.com/facebookresearch/dino      7c446df5b9f45747937fb0d72314eb9f7b66930a
    moco-v3    github.com/facebookresearch/moco-v3   c349e6e24f40d3fedb22d973f92defa4cedf37a7

whose own losses, heads, schedules and updates are run, on the CPU; of lightly 1.5.26 it is NTXentLoss and the projection head.
Needs torch 2.13.0, timm 1.0.31, torchvision, lightly and safetensors.

losses.safetensors: values and gradients of the losses and heads, schedules, clipping, MoCo v3's positions, DINO's resized ones.
simclr.safetensors, mocov3.safetensors, dino.safetensors: start.NAME, end.NAME and losses of twenty steps (ten epochs of two
batches of four images), trained from the views in views_two.safetensors and views_crops.safetensors. Adam's epsilon is 1e-3 in
them: with less, parameters without influence (the keys' biases) follow rounding errors.
"""

import ast
import functools
import math
import pathlib
import sys
import tempfile
import types
from argparse import Namespace

import numpy as np
import timm
import torch
import torch.distributed
from safetensors.torch import save_file
from timm.optim import param_groups_weight_decay

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/self_supervised"
EPOCHS, STEPS, BATCH = 10, 2, 4
VIT = dict(img_size=16, patch_size=4, embed_dim=24, depth=2, num_heads=2)

# The references move tensors to a GPU.
torch.Tensor.cuda = lambda self, *_, **__: self
torch.nn.Module.cuda = lambda self, *_, **__: self


def lightly():
    """The loss and the head of lightly without its package's __init__, which wants a web client."""
    import importlib.util

    place = pathlib.Path(importlib.util.find_spec("lightly").submodule_search_locations[0])
    for name in ("lightly", "lightly.loss", "lightly.models", "lightly.models.modules", "lightly.utils"):
        module = types.ModuleType(name)
        module.__path__ = [str(place.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module
    from lightly.loss.ntx_ent_loss import NTXentLoss
    from lightly.models.modules.heads import SimCLRProjectionHead

    return NTXentLoss, SimCLRProjectionHead


def function(path, name, scope):
    """A function of a file, wherever it is defined in it, without running the rest."""
    found = next(node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef) and node.name == name)
    exec(compile(ast.Module([found], []), str(path), "exec"), scope)
    return scope[name]


def normal(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).float().double()


def leaf(tensor):
    return tensor.clone().requires_grad_()


def perturb(module, seed):
    """Moves every parameter, so that zeros and ones hide nothing."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64).float()
    return module


def vit():
    torch.manual_seed(3)
    model = timm.create_model("vit_tiny_patch16_224", num_classes=0, dynamic_img_size=True, **VIT).double().train()
    model.float().double()
    return perturb(model, 4).float().double()


def named(module, prefix=""):
    return {prefix + name: value.detach().clone() for name, value in module.state_dict().items()}


def add_losses(t, dino, moco, NTXentLoss):
    z0, z1 = normal(5, 7, seed=1), normal(5, 7, seed=2)
    t |= {"z0": z0, "z1": z1}
    for temperature in (0.1, 0.5):
        a, b = leaf(z0), leaf(z1)
        loss = NTXentLoss(temperature=temperature)(a, b)
        loss.backward()
        t |= {f"nt_xent.{temperature}": loss, f"nt_xent.{temperature}.dz0": a.grad, f"nt_xent.{temperature}.dz1": b.grad}
        q = leaf(z0)
        loss = moco.MoCo.contrastive_loss(Namespace(T=temperature), q, z1)
        loss.backward()
        t |= {f"contrastive.{temperature}": loss, f"contrastive.{temperature}.dq": q.grad}

    # Three epochs of the temperature's warm-up, and the centre that each leaves.
    loss_of = dino.DINOLoss(11, 4, 0.04, 0.07, 2, 3).double()
    loss_of.center = normal(1, 11, seed=5) * 0.1
    t["dino.center"] = loss_of.center
    t["dino.temperatures"] = torch.tensor(loss_of.teacher_temp_schedule)
    for epoch in range(3):
        student, teacher = normal(12, 11, seed=6 + epoch), normal(6, 11, seed=9 + epoch) * 0.3
        s = leaf(student)
        loss = loss_of(s, teacher, epoch)
        loss.backward()
        t |= {f"dino.{epoch}.student": student, f"dino.{epoch}.teacher": teacher, f"dino.{epoch}": loss,
              f"dino.{epoch}.dstudent": s.grad, f"dino.{epoch}.center": loss_of.center}  # fmt: skip


def add_head(t, name, head, x, seed):
    """Values and gradients of a head in training."""
    head = perturb(head.double(), seed).float().double()
    t |= named(head, f"{name}.start.")
    inputs = leaf(x)
    y = head(inputs)
    w = normal(*y.shape, seed=seed + 1)
    (y * w).sum().backward()
    t |= {f"{name}.x": x, f"{name}.y": y, f"{name}.w": w, f"{name}.dx": inputs.grad}
    t |= {f"{name}.grad.{key}": value.grad for key, value in head.named_parameters() if value.grad is not None}
    t |= {f"{name}.after.{key}": value for key, value in head.named_buffers() if "running" in key}


def add_schedules(t, folder, utils):
    t["cosine_scheduler"] = torch.tensor(utils.cosine_scheduler(0.5, 1e-3, 12, 7, warmup_epochs=3))
    t["cosine_scheduler.decay"] = torch.tensor(utils.cosine_scheduler(0.04, 0.4, 12, 7))
    t["cosine_scheduler.momentum"] = torch.tensor(utils.cosine_scheduler(0.996, 1, 12, 7))
    scope = {"math": math}
    rate = function(folder / "moco-v3/main_moco.py", "adjust_learning_rate", scope)
    momentum = function(folder / "moco-v3/main_moco.py", "adjust_moco_momentum", scope)
    args = Namespace(lr=0.5, warmup_epochs=3, epochs=12, moco_m=0.99)
    times = [epoch + i / 7 for epoch in range(12) for i in range(7)]
    t["mocov3.lr"] = torch.tensor([rate(Namespace(param_groups=[]), time, args) for time in times])
    t["mocov3.momentum"] = torch.tensor([momentum(time, args) for time in times])

    module = torch.nn.Linear(7, 5).double()
    module.weight.grad, module.bias.grad = normal(5, 7, seed=31), normal(5, seed=32) * 0.01
    t |= {"clip.weight": module.weight.grad.clone(), "clip.bias": module.bias.grad.clone()}
    utils.clip_gradients(module, 0.3)
    t |= {"clip.weight.clipped": module.weight.grad, "clip.bias.clipped": module.bias.grad}

    self = types.SimpleNamespace(patch_embed=types.SimpleNamespace(grid_size=(3, 3)), embed_dim=16, num_tokens=1)
    function(folder / "moco-v3/vits.py", "build_2d_sincos_position_embedding", {"torch": torch, "nn": torch.nn})(self)
    t["mocov3.positions"] = self.pos_embed.detach()


def add_spread(t):
    """Deviation and effective rank (Roy & Vetterli 2007) of normalized embeddings."""
    for name, shape in {"spread.tall": (40, 12), "spread.wide": (10, 24)}.items():
        x = normal(*shape, seed=60) * torch.linspace(0.1, 2, shape[1]).double() + 0.3
        unit = torch.nn.functional.normalize(x, dim=1)
        p = torch.linalg.svdvals(unit - unit.mean(0))
        p = p[p > 1e-9] / p.sum()
        t |= {name: x, f"{name}.deviation": unit.std(0).mean() * shape[1] ** 0.5, f"{name}.rank": (-(p * p.log()).sum()).exp()}


def views(sides, seed):
    """Ready-made views of two batches, which come in every epoch."""
    return {f"view{v}": normal(STEPS * BATCH, 3, side, side, seed=seed + v).float() for v, side in enumerate(sides)}


def batches(all_views):
    for epoch in range(EPOCHS):
        for i in range(STEPS):
            yield epoch, i, [view[i * BATCH : (i + 1) * BATCH].double() for view in all_views.values()]


def set_rates(optimizer, lr):
    for group in optimizer.param_groups:
        group["lr"] = lr


def simclr(NTXentLoss, SimCLRProjectionHead, together):
    """Losses of SimCLR: the head's batch norms over both views together, or over each."""
    encoder = vit()
    torch.manual_seed(5)
    head = perturb(SimCLRProjectionHead(24, 20, 12).layers.double(), 6).float().double()
    network = torch.nn.ModuleDict({"encoder": encoder, "head": head})
    start = named(encoder, "start.") | named(head, "start.head.")
    exempt = {"encoder.pos_embed", "encoder.cls_token"}
    optimizer = torch.optim.AdamW(param_groups_weight_decay(network, 0.05, exempt), eps=1e-3)
    loss_of = NTXentLoss(temperature=0.5)
    losses = []
    for epoch, i, (x0, x1) in batches(views([16, 16], 100)):
        set_rates(optimizer, 1e-3)
        z0, z1 = head(encoder(torch.cat([x0, x1]))).chunk(2) if together else (head(encoder(x0)), head(encoder(x1)))
        loss = loss_of(z0, z1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return start, torch.stack(losses), named(encoder, "end.") | named(head, "end.head.")


def mocov3(folder, moco):
    scope = {"math": math}
    rate = function(folder / "moco-v3/main_moco.py", "adjust_learning_rate", scope)
    momentum = function(folder / "moco-v3/main_moco.py", "adjust_moco_momentum", scope)

    def base(num_classes):
        model = vit()
        model.head = torch.nn.Linear(24, num_classes).double()  # MoCo_ViT replaces it
        return model

    torch.manual_seed(7)
    network = moco.MoCo_ViT(base, dim=12, mlp_dim=20, T=0.2).double().train()
    perturb(network.predictor, 8)
    perturb(network.base_encoder.head, 9)
    network.float().double()
    for b, m in zip(network.base_encoder.parameters(), network.momentum_encoder.parameters()):
        m.data.copy_(b.data)
    for name in ("pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias"):  # fixed positions, --stop-grad-conv1
        network.base_encoder.get_parameter(name).requires_grad = False
    tensors = named(network.base_encoder, "start.") | named(network.predictor, "start.predictor.")
    args = Namespace(lr=1e-3, warmup_epochs=2, epochs=EPOCHS, moco_m=0.9)
    optimizer = torch.optim.AdamW(network.parameters(), args.lr, weight_decay=0.1, eps=1e-3)
    losses = []
    for epoch, i, (x0, x1) in batches(views([16, 16], 100)):
        rate(optimizer, epoch + i / STEPS, args)
        loss = network(x0, x1, momentum(epoch + i / STEPS, args))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    tensors |= named(network.base_encoder, "end.") | named(network.predictor, "end.predictor.")
    return tensors | named(network.momentum_encoder, "momentum.") | {"losses": torch.stack(losses)}


def dino_vit(vits):
    """DINO's own Vision Transformer, which resizes its positions for the small crops by a scale factor."""
    torch.manual_seed(3)
    sizes = VIT | {"img_size": [VIT["img_size"]]}
    norm = functools.partial(torch.nn.LayerNorm, eps=1e-6)
    model = vits.VisionTransformer(qkv_bias=True, norm_layer=norm, **sizes).double().train()
    model.float().double()
    return perturb(model, 4).float().double()


def add_positions(t, vits):
    """Positions of a grid of 4 x 4 patches, resized for images of three other sizes."""
    model = dino_vit(vits)
    t["dino.positions"] = model.pos_embed.detach()
    for seed, (height, width) in enumerate([(8, 8), (24, 40), (12, 28)]):
        rows, columns = height // 4, width // 4
        model.zero_grad()
        y = model.interpolate_pos_encoding(torch.empty(1, 1 + rows * columns, 24), height, width)
        w = normal(*y.shape, seed=70 + seed)
        (y * w).sum().backward()
        key = f"dino.positions.{rows}x{columns}"
        t |= {key: y, f"{key}.w": w, f"{key}.gradient": model.pos_embed.grad.clone()}


def dino_steps(dino, utils, vits):
    out_dim = 48

    def network():
        backbone = dino_vit(vits)
        torch.manual_seed(11)
        head = vits.DINOHead(24, out_dim, hidden_dim=32, bottleneck_dim=16)
        perturb(head.mlp, 12)
        return utils.MultiCropWrapper(backbone, head).double().train()

    student, teacher = network(), network()
    student.float().double()
    teacher.load_state_dict(student.state_dict())

    def tensors_of(module, prefix):
        return named(module.backbone, prefix) | named(module.head, prefix + "head.")

    tensors = tensors_of(student, "start.")
    loss_of = dino.DINOLoss(out_dim, 4, 0.04, 0.07, 5, EPOCHS).double()
    optimizer = torch.optim.AdamW(utils.get_params_groups(student), eps=1e-3)
    rates = utils.cosine_scheduler(1e-3, 1e-6, EPOCHS, STEPS, warmup_epochs=2)
    decays = utils.cosine_scheduler(0.04, 0.4, EPOCHS, STEPS)
    momenta = utils.cosine_scheduler(0.9, 1, EPOCHS, STEPS)
    losses = []
    for epoch, i, images in batches(views([16, 16, 8, 8], 200)):
        it = epoch * STEPS + i
        for number, group in enumerate(optimizer.param_groups):
            group["lr"] = rates[it]
            if number == 0:
                group["weight_decay"] = decays[it]
        with torch.no_grad():
            targets = teacher(images[:2])
        loss = loss_of(student(images), targets, epoch)
        optimizer.zero_grad()
        loss.backward()
        utils.clip_gradients(student, 0.05)
        utils.cancel_gradients_last_layer(epoch, student, 1)
        optimizer.step()
        with torch.no_grad():
            for q, k in zip(student.parameters(), teacher.parameters()):
                k.data.mul_(momenta[it]).add_((1 - momenta[it]) * q.detach().data)
        losses.append(loss.detach())
    tensors |= tensors_of(student, "end.") | tensors_of(teacher, "momentum.")
    return tensors | {"losses": torch.stack(losses), "center": loss_of.center}


def write(name, tensors):
    save_file({k: (v.float() if v.is_floating_point() else v).detach().contiguous().clone() for k, v in tensors.items()}, ROOT / name)


def main():
    folder = pathlib.Path(sys.argv[1])
    sys.path[:0] = [str(folder / "dino"), str(folder / "moco-v3")]
    import main_dino
    import moco.builder
    import utils
    import vision_transformer as vits

    np.random.seed(0)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
    NTXentLoss, SimCLRProjectionHead = lightly()
    ROOT.mkdir(parents=True, exist_ok=True)

    t = {}
    add_losses(t, main_dino, moco.builder, NTXentLoss)
    x = normal(6, 10, seed=40)
    torch.manual_seed(41)
    build = moco.builder.MoCo._build_mlp
    add_head(t, "projector", build(None, 3, 10, 8, 5), x, 42)
    add_head(t, "predictor", build(None, 2, 10, 8, 5, False), x, 44)
    add_head(t, "simclr_head", SimCLRProjectionHead(10, 8, 5).layers, x, 46)
    add_head(t, "dino_head", vits.DINOHead(10, 9, hidden_dim=8, bottleneck_dim=6), x, 48)
    add_head(t, "dino_head_bn", vits.DINOHead(10, 9, use_bn=True, norm_last_layer=False, hidden_dim=8, bottleneck_dim=6), x, 50)
    add_schedules(t, folder, utils)
    add_spread(t)
    add_positions(t, vits)
    write("losses.safetensors", t)

    write("views_two.safetensors", views([16, 16], 100))
    write("views_crops.safetensors", views([16, 16, 8, 8], 200))
    start, both, end = simclr(NTXentLoss, SimCLRProjectionHead, True)
    _, each, _ = simclr(NTXentLoss, SimCLRProjectionHead, False)
    write("simclr.safetensors", start | end | {"losses": both, "losses.view": each})
    write("mocov3.safetensors", mocov3(folder, moco.builder))
    write("dino.safetensors", dino_steps(main_dino, utils, vits))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
