"""Writes vitrail/models/*/*_registry.cpp: timm's models by name, with what its default_cfgs say about them.

    python tools/golden/registry.py          # all tables
    python tools/golden/registry.py swin …   # some of them

Needs timm 1.0.31. A table holds the names of a few of timm's modules whose classes vitrail has.
"""

import dataclasses
import functools
import importlib
import pathlib
import subprocess
import sys
import types
from typing import Callable

import timm

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Table:
    title: str  # of the file's first line
    modules: list  # of timm.models
    families: dict  # timm's class: vitrail's family
    wanted: Callable = lambda name, kwargs: True  # which of the modules' names
    ignored: tuple = ()  # arguments of the entry points that say nothing about the model here


def wanted_eva(name, kwargs):
    """Left out are multimodal rotary positions, and grouped queries."""
    return kwargs.get("rope_type", "cat") in ("cat", "mixed", "dinov3") and "num_kv_heads" not in kwargs


def wanted_resnet(name, kwargs):
    """Left out are the names with anti-aliasing, a replaced stem pool, other norms, attention other than 'se' and blocks
    of several kinds."""
    own = {"aa_layer", "replace_stem_pool", "norm_layer", "drop_block_rate"} & set(kwargs)
    return not own and isinstance(kwargs["block"], type) and kwargs.get("block_args", {"attn_layer": "se"}) == {"attn_layer": "se"}


TABLES = {
    "vit": Table(
        "Vision Transformers",
        ["vision_transformer", "vision_transformer_relpos", "deit"],
        {
            "VisionTransformer": "vit",
            "VisionTransformerDistilled": "vit_distilled",
            "VisionTransformerRelPos": "vit_relpos",
        },
    ),
    "mlp_mixer": Table(
        "token-mixing MLPs",
        ["mlp_mixer"],
        {"MlpMixer": "mlp_mixer"},
    ),
    "eva": Table("EVA and Vision Transformers with rotary positions", ["eva"], {"Eva": "eva"}, wanted_eva),
    "vit_sam": Table("Segment Anything's image encoders", ["vision_transformer_sam"], {"VisionTransformerSAM": "sam"}),
    "beit": Table("BEiT", ["beit"], {"Beit": "beit"}),
    "swin": Table(
        "Swin Transformers",
        ["swin_transformer", "swin_transformer_v2", "swin_transformer_v2_cr"],
        {"SwinTransformer": "swin", "SwinTransformerV2": "swin_v2", "SwinTransformerV2Cr": "swin_v2_cr"},
    ),
    "vit_hybrid": Table(
        "hybrid Vision Transformers",
        ["vision_transformer_hybrid"],
        {"VisionTransformer": "vit_hybrid"},
    ),
    "resnet": Table("Residual networks", ["resnet"], {"ResNet": "resnet"}, wanted_resnet),
    "botnet": Table(
        "Bottleneck Transformers",
        ["byoanet"],
        {"ByobNet": "botnet"},
        lambda name, kwargs: name == "botnet26t_256",
        ("model_cfg", "blocks", "stem_chs", "stem_type", "stem_pool", "fixed_input_size", "self_attn_layer"),
    ),
    "resnetv2": Table(
        "Residual networks with the norms in front",
        ["resnetv2"],
        {"ResNetV2": "resnetv2"},
        lambda name, kwargs: not name.endswith(("_evos", "_frn")),
    ),
    "mvit": Table("Multiscale Vision Transformers", ["mvitv2"], {"MultiScaleVit": "mvit"}),
}
NORMALIZATIONS = {
    ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)): "inception",
    ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)): "imagenet",
    ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)): "clip",
    ((0.43, 0.411, 0.296), (0.213, 0.156, 0.143)): "satellite",
    ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)): "none",
}


class Caught(Exception):
    pass


def entry_arguments(module, name):
    """The class and the arguments that timm's entry point `name` builds its model with."""
    caught = {}

    def catch(cls, variant, pretrained, **kwargs):
        caught.update(cls=cls.__name__, kwargs=kwargs)
        raise Caught

    original = module.build_model_with_cfg
    module.build_model_with_cfg = catch
    try:
        timm.create_model(name)
    except Caught:
        pass
    finally:
        module.build_model_with_cfg = original
    ignored = {"pretrained_filter_fn", "feature_cfg", "pretrained_cfg", "pretrained_cfg_overlay", "cache_dir",
               "pretrained_strict"}
    arguments = {k: v for k, v in caught["kwargs"].items() if k not in ignored}
    config = arguments.pop("model_cfg", None)
    if dataclasses.is_dataclass(config):  # its fields are arguments too
        default = type(config)()
        fields = [field.name for field in dataclasses.fields(config)]
        arguments |= {k: getattr(config, k) for k in fields if getattr(config, k) != getattr(default, k)}
    return caught["cls"], arguments


def backbone(embedding):
    """The network in front of a hybrid, and the numbers of its blocks: none for the stem of a ResNetV2 alone."""
    network = embedding.keywords["backbone"]
    kind = type(network).__name__
    if kind == "ConvStem":
        return {"backbone": "convstem"}
    if kind == "FeatureListNet":  # a ResNet-D
        stages = [stage for name, stage in network.items() if name.startswith("layer")]
        return {"backbone": "resnetd", "backbone_layers": tuple(len(stage) for stage in stages)}
    return {"backbone_layers": tuple(len(stage.blocks) for stage in getattr(network, "stages", []))}


def spelled(key, value):
    """A value in the notation of --model-kwargs."""
    if key in ("norm_layer", "embed_norm_layer"):
        if isinstance(value, functools.partial):
            assert list(value.keywords) == ["eps"]
            return f"({value.func.__name__.lower()},{value.keywords['eps']:g})"
        return value if isinstance(value, str) else value.__name__.lower()
    if key == "mlp_layer" and not isinstance(value, type):
        assert value is timm.layers.SwiGLUPacked
        return "swiglupacked"
    if key == "block_layer" and isinstance(value, functools.partial):
        assert list(value.keywords) == ["init_values"]
        return f"({value.func.__name__.lower()},{value.keywords['init_values']:g})"
    if key == "conv_layer" and isinstance(value, functools.partial):
        assert list(value.keywords) == ["eps"]
        return f"({value.func.__name__.lower()},{value.keywords['eps']:g})"
    if isinstance(value, (type, types.FunctionType)):
        return value.__name__.lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{spelled(k, v)}" for k, v in value.items()) + "}"
    return str(value).replace(" ", "")  # tuples and lists


def settings(cfg):
    """What differs from PretrainedConfig's defaults."""
    result = []
    assert cfg.input_size[0] == 3
    if cfg.input_size != (3, 224, 224):
        result.append(f"size={cfg.input_size[1]}" if cfg.input_size[1] == cfg.input_size[2] else 1 / 0)
    if cfg.crop_pct != 0.9:
        result.append(f"crop_pct={cfg.crop_pct:g}")
    if cfg.interpolation != "bicubic":
        result.append(f"interpolation={cfg.interpolation}")
    if cfg.crop_mode != "center":
        result.append(f"crop_mode={cfg.crop_mode}")
    normalization = NORMALIZATIONS[(tuple(cfg.mean), tuple(cfg.std))]
    if normalization != "inception":
        result.append(f"normalization={normalization}")
    if cfg.num_classes != 1000:
        result.append(f"num_classes={cfg.num_classes}")
    if not cfg.fixed_input_size:
        result.append("fixed_input_size=False")
    return " ".join(result)


def tags(name):
    """[(tags, settings)]: the default tag's first."""
    groups = []
    default = timm.models.get_pretrained_cfg(name)
    found = [key.partition(".")[2] for key in timm.list_pretrained(name + "*") if key.partition(".")[0] == name]
    found = [default.tag or ""] + [tag for tag in found if tag != (default.tag or "")]
    for tag in found:
        cfg = timm.models.get_pretrained_cfg(f"{name}.{tag}" if tag else name)
        text = settings(cfg)
        for group in groups:
            if group[1] == text:
                group[0].append(tag or "untrained")
                break
        else:
            groups.append(([tag or "untrained"], text))
    return [(" ".join(tag_names), text) for tag_names, text in groups]


def write_table(key, table):
    rows = []
    modules = {f"timm.models.{name}": importlib.import_module(f"timm.models.{name}") for name in table.modules}
    for name in sorted(timm.list_models()):
        module = modules.get(timm.models._registry._model_entrypoints[name].__module__)
        if module is None:
            continue
        cls, kwargs = entry_arguments(module, name)
        if cls not in table.families or not table.wanted(name, kwargs):
            continue
        if table.families[cls] == "vit_hybrid":
            kwargs = backbone(kwargs.pop("embed_layer")) | kwargs
        arguments = " ".join(f"{k}={spelled(k, v)}" for k, v in kwargs.items() if k not in table.ignored)
        rows.append(f"{name} ({table.families[cls]}) {arguments}".rstrip())
        rows.extend(f"  {tag_names}: {text}".rstrip() for tag_names, text in tags(name))
    text = "\n".join(rows)
    (path,) = (ROOT / "vitrail/models").glob(f"*/{key}_registry.cpp")  # each lies in its family's folder
    path.write_text(f"""// timm's {table.title} by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/{path.parent.name}/families.h"

namespace vitrail::models {{

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view {key}_table() {{
  return R"(
{text}
)";
}}

}}  // namespace vitrail::models
""")
    subprocess.run(["clang-format", "-i", str(path)], check=True)
    print(f"{key}: {sum(not row.startswith(' ') for row in rows)} architectures")


def main():
    for key in sys.argv[1:] or TABLES:
        write_table(key, TABLES[key])


if __name__ == "__main__":
    main()
