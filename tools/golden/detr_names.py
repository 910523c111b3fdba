"""The names of facebookresearch/detr's transformer for those of transformers, which vitrail's networks have."""

import torch


def as_original(stored, net):
    """A functional call of `net` with parameters that are made of `stored`, so that gradients reach these."""
    def attention(own, theirs):
        parts = [f"{own}.{part}_proj" for part in "qkv"]
        return {f"{theirs}.in_proj_weight": torch.cat([stored[p + ".weight"] for p in parts]),
                f"{theirs}.in_proj_bias": torch.cat([stored[p + ".bias"] for p in parts]),
                f"{theirs}.out_proj.weight": stored[own + ".out_proj.weight"],
                f"{theirs}.out_proj.bias": stored[own + ".out_proj.bias"]}

    named = {}
    for stack, norms in (("encoder", ["self_attn_layer_norm", "final_layer_norm"]),
                         ("decoder", ["self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"])):
        for i in range(len(getattr(net, stack).layers)):
            own, theirs = f"model.{stack}.layers.{i}", f"{stack}.layers.{i}"
            named |= attention(own + ".self_attn", theirs + ".self_attn")
            if stack == "decoder":
                named |= attention(own + ".encoder_attn", theirs + ".multihead_attn")
            for n, norm in enumerate(norms):
                named |= {f"{theirs}.norm{n + 1}.{part}": stored[f"{own}.{norm}.{part}"] for part in ("weight", "bias")}
            for n in (1, 2):
                named |= {f"{theirs}.linear{n}.{part}": stored[f"{own}.fc{n}.{part}"] for part in ("weight", "bias")}
    named |= {f"decoder.norm.{part}": stored[f"model.decoder.layernorm.{part}"] for part in ("weight", "bias")}
    return named
