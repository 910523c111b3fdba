"""Fixtures of DETR: tests/golden/models/detection/*, its matching and losses, tests/golden/sets/*.

    python tools/golden/detr.py CHECKOUT          # all
    python tools/golden/detr.py CHECKOUT detr     # some, by name: detr detr_dc5 criterion assignment

CHECKOUT is github.com/facebookresearch/detr, 29901c51d7fe8712168b8d0d64351170bc0f83e0, whose transformer, matcher and
criterion are run. Needs torch, torchvision, timm 1.0.31, transformers 5.23, scipy and safetensors.

A model's fixture is a folder as save_pretrained() writes it, with every parameter and statistic perturbed, and beside it
expected.safetensors, computed in float64: pixel_values [B, 3, H, W] and pixel_mask (the second image is padded); of
transformers' DetrForObjectDetection logits, pred_boxes, decoder.{i}, encoder_attention.{i}, cross_attention.{i}, and `grad.NAME` of
Σ logits · to_logits + Σ boxes · to_boxes; auxiliary.logits and auxiliary.pred_boxes of the same folder with
"auxiliary_loss", with which transformers feeds normed states on; and of the original's transformer and criterion, with an auxiliary loss for each
layer of the decoder, aux.logits [L, B, Q, C], aux.boxes, the objects (labels.{b}, boxes.{b}), aux.loss and `aux.grad.NAME`.
The backbone is smaller than any that timm has: the fields of "vitrail" in config.json are passed on to timm's model.
"""

import functools
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import scipy.optimize
import timm
import torch
import torchvision
import transformers as hf
from detr_names import as_original
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
CREATE = timm.create_model

VARIANTS = {
    "detr": dict(backbone="resnet18", own=dict(layers=[1, 1, 1, 1], channels=[8, 8, 16, 16]), d_model=16, num_queries=6,
                 encoder_attention_heads=2, decoder_attention_heads=4),
    # A dilated last stage, learned positions, other widths.
    "detr_dc5": dict(backbone="resnet50", own=dict(layers=[1, 1, 1, 1], channels=[4, 4, 4, 4]), d_model=12, num_queries=5,
                     encoder_attention_heads=3, decoder_attention_heads=2, position_embedding_type="learned", dilation=True,
                     activation_function="gelu"),
}  # fmt: skip


def save(tensors, file):
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file({k: (t.detach().float() if t.is_floating_point() else t.detach()).contiguous() for k, t in tensors.items()}, file)


def make(backbone, own, **fields):
    """A detector, and its config with what timm was told of the backbone."""
    timm.create_model = functools.partial(CREATE, **{key: tuple(value) for key, value in own.items()})
    config = {"model_type": "timm_backbone", "backbone": backbone, "num_channels": 3, "features_only": True,
              "use_pretrained_backbone": False, "out_indices": [1, 2, 3, 4]}
    if fields.get("dilation"):
        config["output_stride"] = 16
    config = hf.DetrConfig(backbone_config=config, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=20, decoder_ffn_dim=24,
                           num_labels=3, id2label={0: "circle", 1: "square", 2: "bird"}, **fields)
    model = hf.DetrForObjectDetection._from_config(config, attn_implementation="eager")
    timm.create_model = CREATE
    return model


def perturbed(model, generator):
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not tensor.is_floating_point():
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if name.endswith("running_var"):
                tensor.mul_(0.5 + torch.rand(tensor.shape, generator=generator))
            elif tensor.ndim == 4:  # convolutions keep the size of what goes through them
                tensor.add_(0.3 * tensor.std() * noise)
            elif name.endswith("query_position_embeddings.weight"):
                tensor.add_(noise)
            else:
                tensor.add_((0.5 if tensor.ndim > 1 else 0.1) * noise)
    return model


def original(model, checkout):
    """The transformer of the original with this model's weights, and its criterion."""
    torchvision.__version__ = "0.9"  # the checkout compares it as a number
    sys.path.insert(0, str(checkout))
    from models.detr import SetCriterion
    from models.matcher import HungarianMatcher
    from models.transformer import Transformer

    c = model.config
    net = Transformer(c.d_model, c.encoder_attention_heads, c.encoder_layers, c.decoder_layers, c.encoder_ffn_dim, 0.0,
                      c.activation_function, return_intermediate_dec=True)
    criterion = SetCriterion(c.num_labels, HungarianMatcher(1, 5, 2), {}, 0.1, ["labels", "boxes"])
    return net, criterion


def with_auxiliary_loss(model, pixels, mask):
    model.config.auxiliary_loss = True
    with torch.no_grad():
        out = model(pixel_values=pixels.double(), pixel_mask=mask)
    model.config.auxiliary_loss = False
    return {"auxiliary.logits": out.logits, "auxiliary.pred_boxes": out.pred_boxes}


def write(name, checkout):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    torch.manual_seed(1)
    variant = VARIANTS[name]
    model = perturbed(make(**variant), generator).eval()
    folder = ROOT / "models/detection" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        shutil.copy(pathlib.Path(temporary) / "model.safetensors", folder)
        config = json.loads((pathlib.Path(temporary) / "config.json").read_text())
    config["vitrail"] = {"backbone_kwargs": variant["own"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")

    stored = load_file(folder / "model.safetensors")
    model = model.double()
    pixels = torch.randn(2, 3, 70, 100, generator=generator)
    mask = torch.ones(2, 70, 100, dtype=torch.int64)
    mask[1, 50:], mask[1, :, 64:] = 0, 0
    pixels = pixels * mask[:, None]
    out = model(pixel_values=pixels.double(), pixel_mask=mask, output_attentions=True, output_hidden_states=True)
    tensors = {"pixel_values": pixels, "pixel_mask": mask.bool(), "logits": out.logits, "pred_boxes": out.pred_boxes}
    # hidden_states of the decoder: its input, and what each layer gives
    for i, states in enumerate(out.decoder_hidden_states[1:]):
        tensors[f"decoder.{i}"] = states
    for kind, maps in (("encoder_attention", out.encoder_attentions), ("cross_attention", out.cross_attentions)):
        tensors |= {f"{kind}.{i}": attention for i, attention in enumerate(maps)}
    for key, value in (("to_logits", out.logits), ("to_boxes", out.pred_boxes)):
        tensors[key] = torch.randn(value.shape, generator=generator)
    ((out.logits * tensors["to_logits"]).sum() + (out.pred_boxes * tensors["to_boxes"]).sum()).backward()
    own = {public(key): parameter for key, parameter in model.named_parameters()}
    trained = [key for key in stored if key in own]
    tensors |= {f"grad.{key}": own[key].grad.clone() for key in trained}

    tensors |= with_auxiliary_loss(model, pixels, mask)

    # The original with a loss for each layer: of features and positions of transformers' model, which were compared above.
    net, criterion = original(model, checkout)
    if model.config.decoder_ffn_dim != model.config.encoder_ffn_dim or (
            model.config.decoder_attention_heads != model.config.encoder_attention_heads):
        # The original has one width and one number of heads for both.
        c = model.config
        net.decoder = type(net)(c.d_model, c.decoder_attention_heads, 0, c.decoder_layers, c.decoder_ffn_dim, 0.0,
                                c.activation_function, return_intermediate_dec=True).decoder
    net = net.double()
    model.zero_grad()
    seen = {}
    hook = model.model.encoder.register_forward_hook(
        lambda module, args, kwargs, result: seen.update(kwargs), with_kwargs=True)
    with torch.enable_grad():
        model(pixel_values=pixels.double(), pixel_mask=mask)
    hook.remove()
    embedded, positions, shrunk = encoder_inputs(seen)
    rows, columns = grid_of(model, pixels)
    batch, _, width = embedded.shape
    as_map = lambda tokens: tokens.transpose(1, 2).reshape(tokens.shape[0], width, rows, columns)
    named = as_original(own, net)
    states, _ = torch.func.functional_call(
        net, named, (as_map(embedded), ~shrunk.reshape(batch, rows, columns), own["model.query_position_embeddings.weight"],
                     as_map(positions.expand(batch, -1, -1))))
    logits = torch.nn.functional.linear(states, own["class_labels_classifier.weight"], own["class_labels_classifier.bias"])
    boxes = states
    for i in range(3):
        boxes = torch.nn.functional.linear(boxes, own[f"bbox_predictor.layers.{i}.weight"], own[f"bbox_predictor.layers.{i}.bias"])
        boxes = boxes.relu() if i < 2 else boxes.sigmoid()
    torch.testing.assert_close(logits[-1], out.logits.detach(), atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(boxes[-1], out.pred_boxes.detach(), atol=1e-9, rtol=1e-9)
    targets = [some_objects(3, generator), some_objects(1, generator)]
    outputs = {"pred_logits": logits[-1], "pred_boxes": boxes[-1],
               "aux_outputs": [{"pred_logits": l, "pred_boxes": b} for l, b in zip(logits[:-1], boxes[:-1])]}
    loss = total(criterion.double()(outputs, targets))
    loss.backward()
    tensors |= {"aux.logits": logits, "aux.boxes": boxes, "aux.loss": loss}
    for b, target in enumerate(targets):
        tensors |= {f"labels.{b}": target["labels"], f"boxes.{b}": target["boxes"]}
    tensors |= {f"aux.grad.{key}": own[key].grad for key in trained}
    save(tensors, folder / "expected.safetensors")


def public(name):
    """transformers' name of a parameter in a file, of its name in memory."""
    if name.startswith("model.backbone.") and not name.startswith("model.backbone.position_embedding"):
        name = name.replace("model.backbone.", "model.backbone.conv_encoder.", 1)
    return name.replace(".o_proj.", ".out_proj.").replace(".mlp.fc", ".fc")


def encoder_inputs(seen):
    """Features, positions and the mask of real features, [B, N, D], [B or 1, N, D], [B, N]."""
    return seen["inputs_embeds"], seen["spatial_position_embeddings"], seen["attention_mask"].bool()


def grid_of(model, pixels):
    with torch.no_grad():
        features = model.model.backbone(pixels.double(), torch.ones(pixels.shape[0], *pixels.shape[2:], dtype=torch.int64))
    features = features[0][-1] if isinstance(features, tuple) else features[-1]
    return (features[0] if isinstance(features, tuple) else features).shape[-2:]


def some_objects(count, generator):
    centres = 0.3 + 0.4 * torch.rand(count, 2, generator=generator)
    sizes = 0.1 + 0.4 * torch.rand(count, 2, generator=generator)
    return {"labels": torch.randint(0, 3, (count,), generator=generator), "boxes": torch.cat([centres, sizes], 1).float().double()}


def total(losses):
    weights = {"loss_ce": 1, "loss_bbox": 5, "loss_giou": 2}
    return sum(value * weights[key.rsplit("_", 1)[0] if key[-1].isdigit() else key] for key, value in losses.items()
               if not key.startswith(("class_error", "cardinality")))


def criterion(checkout):
    """Losses of random predictions: usual ones, an image without objects, and more objects than queries."""
    generator = torch.Generator().manual_seed(3)
    torchvision.__version__ = "0.9"
    sys.path.insert(0, str(checkout))
    from models.detr import SetCriterion
    from models.matcher import HungarianMatcher

    tensors = {}
    for name, counts in {"usual": [3, 1, 4], "empty": [0, 0], "some_empty": [2, 0], "many": [9, 2]}.items():
        leaf = lambda value: value.float().double().requires_grad_()
        logits = leaf(torch.randn(len(counts), 5, 4, generator=generator))
        boxes = leaf(torch.rand(len(counts), 5, 4, generator=generator) * 0.6 + 0.2)
        targets = [some_objects(count, generator) for count in counts]
        matcher = HungarianMatcher(1, 5, 2)
        set_criterion = SetCriterion(3, matcher, {}, 0.1, ["labels", "boxes", "cardinality"]).double()
        outputs = {"pred_logits": logits, "pred_boxes": boxes}
        losses = set_criterion(outputs, targets)
        total(losses).backward()
        tensors |= {f"{name}.logits": logits, f"{name}.boxes": boxes, f"{name}.loss_ce": losses["loss_ce"],
                    f"{name}.loss_bbox": losses["loss_bbox"], f"{name}.loss_giou": losses["loss_giou"],
                    f"{name}.class_error": torch.as_tensor(losses["class_error"]).double(),
                    f"{name}.cardinality_error": losses["cardinality_error"],
                    f"{name}.grad.logits": logits.grad,
                    f"{name}.grad.boxes": boxes.grad if boxes.grad is not None else torch.zeros_like(boxes)}
        for b, (target, (queries, objects)) in enumerate(zip(targets, matcher(outputs, targets))):
            tensors |= {f"{name}.labels.{b}": target["labels"], f"{name}.target_boxes.{b}": target["boxes"],
                        f"{name}.queries.{b}": queries, f"{name}.objects.{b}": objects}
    save(tensors, ROOT / "sets/criterion.safetensors")


def assignment():
    """scipy's assignments of random costs: square, wide, tall, with ties, and with costs that are not numbers."""
    random = np.random.default_rng(5)
    tensors = {}
    cases = {"square": random.normal(size=(7, 7)), "wide": random.normal(size=(4, 11)), "tall": random.normal(size=(13, 5)),
             "one": random.normal(size=(1, 1)), "large": random.normal(size=(60, 100))}
    for i in range(12):
        shape = random.integers(1, 8, size=2)
        cases[f"ties{i}"] = random.integers(0, 3, size=shape).astype(float)
    cases["equal"] = np.zeros((4, 6))
    broken = random.normal(size=(6, 6))
    broken[1, 2], broken[3, :3], broken[5, 0] = np.nan, np.inf, -np.inf
    cases["broken"] = broken
    for name, costs in cases.items():
        costs = costs.astype(np.float32)
        finite = np.where(np.isfinite(costs), costs, np.finfo(np.float32).max)
        rows, columns = scipy.optimize.linear_sum_assignment(finite)
        tensors |= {f"{name}.costs": torch.from_numpy(costs), f"{name}.rows": torch.from_numpy(rows.astype(np.int64)),
                    f"{name}.columns": torch.from_numpy(columns.astype(np.int64))}
    save(tensors, ROOT / "sets/assignment.safetensors")


if __name__ == "__main__":
    checkout = pathlib.Path(sys.argv[1])
    for wanted in sys.argv[2:] or [*VARIANTS, "criterion", "assignment"]:
        if wanted == "assignment":
            assignment()
        elif wanted == "criterion":
            criterion(checkout)
        else:
            write(wanted, checkout)
        print(wanted)
