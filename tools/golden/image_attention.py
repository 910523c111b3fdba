"""The attention over pixels that timm does not have, from the papers' equations: the reference of resnet.py's variants.

Non-local blocks (Wang et al. 2018): "gaussian" (eq. 2), "dot_product" (eq. 4) and "concatenation" (eq. 5), with the
parameters and the norm of timm's NonLocalAttn, which is the embedded Gaussian (eq. 3). SAGAN's self-attention (Zhang et al.
2019, eq. 2 to 4).
"""

import timm
import torch
from timm.layers import make_divisible
from torch import nn


class NonLocal(nn.Module):
    def __init__(self, channels, kind):
        super().__init__()
        inner = make_divisible(channels / 8)
        self.kind = kind
        if kind != "gaussian":
            self.t = nn.Conv2d(channels, inner, 1)
            self.p = nn.Conv2d(channels, inner, 1)
        if kind == "concatenation":
            self.f = nn.Linear(2 * inner, 1, bias=False)
        self.g = nn.Conv2d(channels, inner, 1)
        self.z = nn.Conv2d(inner, channels, 1)
        self.norm = nn.BatchNorm2d(channels)
        self.map = nn.Identity()  # sees the weights

    def weights(self, x):
        """f(x_i, x_j) / C(x): [B, N, N]."""
        if self.kind == "gaussian":
            pixels = x.flatten(2)
            return torch.softmax(torch.einsum("bci,bcj->bij", pixels, pixels), dim=2)
        theta, phi = self.t(x).flatten(2), self.p(x).flatten(2)
        n = theta.shape[2]
        if self.kind == "dot_product":
            return torch.einsum("bci,bcj->bij", theta, phi) / n
        pairs = torch.cat([theta.unsqueeze(3).expand(-1, -1, n, n), phi.unsqueeze(2).expand(-1, -1, n, n)], dim=1)
        return torch.relu(self.f(pairs.permute(0, 2, 3, 1))).squeeze(3) / n

    def forward(self, x):
        weights = self.map(self.weights(x).unsqueeze(1)).squeeze(1)
        y = torch.einsum("bij,bcj->bci", weights, self.g(x).flatten(2))
        return self.norm(self.z(y.unflatten(2, x.shape[2:]))) + x


class SaganAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.f, self.g, self.h = (nn.Conv2d(channels, channels // 8, 1, bias=False) for _ in range(3))
        self.v = nn.Conv2d(channels // 8, channels, 1, bias=False)
        self.gamma = nn.Parameter(torch.zeros(1))
        self.map = nn.Identity()

    def forward(self, x):
        f, g, h = self.f(x).flatten(2), self.g(x).flatten(2), self.h(x).flatten(2)
        s = torch.einsum("bci,bcj->bij", f, g)
        beta = torch.softmax(s, dim=1)  # over i, which j attends to
        beta = self.map(beta.transpose(1, 2).unsqueeze(1)).squeeze(1)  # [B, j, i]
        o = self.v(torch.einsum("bji,bci->bcj", beta, h).unflatten(2, x.shape[2:]))
        return self.gamma * o + x


class SaganResNet(timm.models.ResNet):
    """timm's ResNet with attention behind its second stage."""

    def __init__(self, **arguments):
        super().__init__(block=timm.models.resnet.BasicBlock, **arguments)
        self.attn2 = SaganAttention(arguments.get("channels", (64, 128))[1])
        self.pretrained_cfg = dict(timm.models.get_pretrained_cfg("resnet18.a1_in1k").to_dict(), architecture="sagan_resnet")
        self._model_args = {}

    def group_matcher(self, coarse=False):
        blocks = [(r"^layer(\d+)\.(\d+)", None), (r"^attn2", (2, 99999))]
        return dict(stem=r"^conv1|bn1", blocks=blocks)

    def forward_features(self, x):
        x = self.maxpool(self.act1(self.bn1(self.conv1(x))))
        return self.layer4(self.layer3(self.attn2(self.layer2(self.layer1(x)))))


def make(architecture, block_args=None, **arguments):
    """A model of timm's, or with the blocks above in place."""
    if architecture == "sagan_resnet":
        arguments.setdefault("layers", (2, 2, 2, 2))
        return SaganResNet(**arguments)
    kind = (block_args or {}).get("nl_kind")
    if kind is None:
        return timm.create_model(architecture, **arguments, **({"block_args": block_args} if block_args else {}))
    model = timm.create_model(architecture, block_args={"attn_layer": "nl"}, **arguments)
    for module in model.modules():
        if hasattr(module, "se"):
            module.se = NonLocal(module.se.norm.num_features, kind)
    return model
