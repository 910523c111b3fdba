"""Golden values of distillation: losses and gradients, what a teacher sees, and some steps of training.

    python tools/golden/distill.py        # after vit.py, whose models it uses

writes tests/golden/distill.safetensors. The losses are those of DeiT's losses.py (facebookresearch/deit), written out
below, and of timm's distillation tasks themselves.
"""

from pathlib import Path

import timm
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.task import LogitDistillationTask, TokenDistillationTask

ROOT = Path(__file__).resolve().parents[2] / "tests/golden"
generator = torch.Generator().manual_seed(41)
tensors = {}


def normal(*shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64).float().double()


def deit_loss(base_loss, student, teacher, kind, alpha, tau):
    """DistillationLoss.forward: equations 2 and 3 of Touvron et al. 2021, the first over C as the code has it."""
    if kind == "soft":
        log_q = F.log_softmax(student / tau, dim=1)
        log_p = F.log_softmax(teacher / tau, dim=1)
        loss = F.kl_div(log_q, log_p, reduction="sum", log_target=True) * (tau * tau) / student.numel()
    else:
        loss = F.cross_entropy(student, teacher.argmax(dim=1))
    return base_loss * (1 - alpha) + loss * alpha


class Heads(torch.nn.Module):
    """Logits handed out as a model's."""

    num_classes, in_chans = 7, 3
    pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}

    def __init__(self, *logits):
        super().__init__()
        self.logits = logits

    def set_distilled_training(self, enable):
        pass

    def forward(self, x):
        return self.logits if len(self.logits) > 1 else self.logits[0]


def losses():
    """One batch of five images: logits of two heads and of the teacher, hard labels or mixed targets."""
    leaves = {"head": 2 * normal(5, 7), "head_dist": 2 * normal(5, 7), "teacher": 2 * normal(5, 7)}
    labels = torch.tensor([3, 0, 6, 3, 1])
    targets = F.softmax(normal(5, 7), dim=1)
    tensors.update({f"loss.{name}": value for name, value in leaves.items()})
    tensors["loss.labels"], tensors["loss.targets"] = labels, targets
    smoothed = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

    def record(name, compute):
        head, head_dist = (leaves[n].clone().requires_grad_() for n in ("head", "head_dist"))
        loss = compute(head, head_dist, leaves["teacher"])
        loss.backward()
        tensors[f"{name}.value"] = loss
        tensors[f"{name}.dhead"] = head.grad
        if head_dist.grad is not None:
            tensors[f"{name}.dhead_dist"] = head_dist.grad

    record("deit_hard", lambda h, d, t: deit_loss(smoothed(h, labels), d, t, "hard", 0.3, 1))
    record("deit_soft", lambda h, d, t: deit_loss(smoothed(h, labels), d, t, "soft", 0.3, 2.5))
    record("deit_mixed", lambda h, d, t: deit_loss(SoftTargetCrossEntropy()(h, targets), d, t, "hard", 0.5, 1))
    x = torch.zeros(5, 3, 1, 1, dtype=torch.float64)
    common = dict(criterion=smoothed, temperature=2.5, dtype=torch.float64, verbose=False)
    for kind in ("soft", "hard"):
        record(f"timm_{kind}", lambda h, d, t, kind=kind: TokenDistillationTask(
            Heads(h, d), Heads(t), distill_type=kind, task_loss_weight=0.8, **common)(x, labels)["loss"])
    record("timm_logit", lambda h, d, t: LogitDistillationTask(
        Heads(h), Heads(t), task_loss_weight=0.6, distill_loss_weight=2.0, **common)(x, labels)["loss"])
    # Of images without labels, here the last two, there is the loss with the teacher alone.
    record("unlabeled", lambda h, d, t: deit_loss(smoothed(h[:3], labels[:3]), d, t, "hard", 0.3, 1))


def model_of(name):
    return timm.create_model(f"local-dir:{ROOT / 'models' / name}", pretrained=True).double().eval()


def seen(x, student, teacher, size):
    """x, normalized for the student, as the teacher takes it."""
    mean, std, its_mean, its_std = (torch.tensor(cfg[key], dtype=torch.float64).view(1, -1, 1, 1)
                                    for cfg in (student, teacher) for key in ("mean", "std"))
    x = (x * std + mean - its_mean) / its_std
    return x if x.shape[-1] == size else F.interpolate(x, (size, size), mode="bicubic", antialias=True)


def teachers():
    """Logits of `plain`, a teacher for images of 32 x 32 and inception's mean, for images of two sizes."""
    teacher, student = model_of("plain"), model_of("distilled").pretrained_cfg
    assert student["mean"] != teacher.pretrained_cfg["mean"]
    for size in (32, 40):
        x = normal(2, 3, size, size)
        tensors[f"teacher{size}.x"] = x
        tensors[f"teacher{size}.logits"] = teacher(seen(x, student, teacher.pretrained_cfg, 32)).detach()


def training():
    """Five steps of AdamW on one batch, `distilled` and `deit3` learning from `plain`."""
    teacher = model_of("plain")
    x, labels = normal(6, 3, 32, 32), torch.tensor([0, 1, 2, 3, 4, 5])
    tensors["training.x"], tensors["training.labels"] = x, labels
    for name in ("distilled", "deit3"):
        for kind in ("hard", "soft"):
            student = model_of(name)
            if name == "distilled":
                student.set_distilled_training(True)
            optimizer = create_optimizer_v2(student, "adamw", lr=1e-3, weight_decay=0.05)
            with torch.no_grad():
                taught = teacher(seen(x, student.pretrained_cfg, teacher.pretrained_cfg, 32))
            values = []
            for _ in range(5):
                student.train()
                out = student(x)
                heads = out if isinstance(out, tuple) else (out, out)
                base = F.cross_entropy(heads[0], labels, label_smoothing=0.1)
                log_q, log_p = (F.log_softmax(z / 2, dim=1) for z in (heads[1], taught))
                loss = 0.5 * base + 0.5 * (
                    F.cross_entropy(heads[1], taught.argmax(1)) if kind == "hard"
                    else 4 * F.kl_div(log_q, log_p, reduction="batchmean", log_target=True))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                values.append(loss.item())
            tensors[f"training.{name}.{kind}"] = torch.tensor(values)


def main():
    losses()
    teachers()
    training()
    save_file({name: (value.detach() if value.dtype == torch.int64 else value.detach().float()).contiguous()
               for name, value in tensors.items()}, ROOT / "distill.safetensors")


if __name__ == "__main__":
    main()
