"""Writes vitrail/models/vit_registry.cpp: timm's Vision Transformers by name, with what its default_cfgs say about them.

    python tools/golden/vit_registry.py

Needs timm 1.0.31. Left out are the names whose blocks vitrail does not have (parallel blocks, differential attention).
"""

import functools
import pathlib
import subprocess

import timm
import timm.models.deit
import timm.models.vision_transformer
import timm.models.vision_transformer_relpos

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = (timm.models.vision_transformer, timm.models.vision_transformer_relpos, timm.models.deit)
FAMILIES = {
    "VisionTransformer": "vit",
    "VisionTransformerDistilled": "vit_distilled",
    "VisionTransformerRelPos": "vit_relpos",
}
NORMALIZATIONS = {
    ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)): "inception",
    ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)): "imagenet",
    ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)): "clip",
    ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)): "none",
}
PREFIXES = ("vit_", "deit", "test_vit")
UNSUPPORTED = {"ParallelScalingBlock", "ParallelThingsBlock", "DiffParallelScalingBlock"}


class Caught(Exception):
    pass


def entry_arguments(name):
    """The class and the arguments that timm's entry point `name` builds its model with."""
    caught = {}

    def catch(cls, variant, pretrained, **kwargs):
        caught.update(cls=cls.__name__, kwargs=kwargs)
        raise Caught

    originals = [module.build_model_with_cfg for module in MODULES]
    for module in MODULES:
        module.build_model_with_cfg = catch
    try:
        timm.create_model(name)
    except Caught:
        pass
    finally:
        for module, original in zip(MODULES, originals):
            module.build_model_with_cfg = original
    ignored = {"pretrained_filter_fn", "feature_cfg", "pretrained_cfg", "pretrained_cfg_overlay", "cache_dir",
               "pretrained_strict"}
    return caught["cls"], {k: v for k, v in caught["kwargs"].items() if k not in ignored}


def spelled(key, value):
    """A value in the notation of --model-kwargs."""
    if key == "norm_layer":
        if isinstance(value, functools.partial):
            assert list(value.keywords) == ["eps"]
            return f"({value.func.__name__.lower()},{value.keywords['eps']:g})"
        return value if isinstance(value, str) else value.__name__.lower()
    if key == "mlp_layer":
        assert value is timm.layers.SwiGLUPacked
        return "swiglupacked"
    if isinstance(value, type):
        return value.__name__.lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


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
                group[0].append(tag)
                break
        else:
            groups.append(([tag], text))
    return [(" ".join(tag_names), text) for tag_names, text in groups]


def main():
    rows = []
    for name in sorted(timm.list_models()):
        module = timm.models._registry._model_entrypoints[name].__module__
        if module not in {m.__name__ for m in MODULES} or not name.startswith(PREFIXES):
            continue
        cls, kwargs = entry_arguments(name)
        block = kwargs.get("block_fn")
        if (block and block.__name__ in UNSUPPORTED) or "attn_layer" in kwargs:
            continue
        arguments = " ".join(f"{key}={spelled(key, value)}" for key, value in kwargs.items())
        rows.append(f"{name} ({FAMILIES[cls]}) {arguments}")
        rows.extend(f"  {tag_names}: {text}".rstrip() for tag_names, text in tags(name))
    table = "\n".join(rows)
    path = ROOT / "vitrail/models/vit_registry.cpp"
    path.write_text(f"""// timm's Vision Transformers by name (timm 1.0.31). Written by tools/golden/vit_registry.py.
#include "vitrail/models/family.h"

namespace vitrail::models {{

// A name, its family and its arguments; below, tags of its checkpoints with how their pictures are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view vit_table() {{
  return R"(
{table}
)";
}}

}}  // namespace vitrail::models
""")
    subprocess.run(["clang-format", "-i", str(path)], check=True)
    print(f"{sum(not row.startswith(' ') for row in rows)} architectures")


if __name__ == "__main__":
    main()
