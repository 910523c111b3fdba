"""Files of tests/golden/io/torch, written by torch.save, and beside them what torch.load makes of them, as safetensors.

    python tools/golden/torch_files.py

Needs torch 2.13.0 and safetensors. In the older format storages are called by their addresses, so that those files differ
from run to run. Some files are broken on purpose, and some want to run a program: they are only written
here, and never read.
"""

import argparse
import os
import pathlib
import pickle
import sys
import zipfile

import torch
from safetensors.torch import load_file, save_file

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "io" / "torch"


def save(value, name, **options):
    torch.save(value, OUT / name, **options)


def dtypes():
    return {
        "f32": torch.arange(15, dtype=torch.float32).reshape(3, 5) / 8 - 1,
        "f64": torch.tensor([[1 / 3, -1e-3, 1e300], [1e-50, 16777217.0, -2.5]], dtype=torch.float64),
        "f16": torch.tensor([0.0, -0.0, 6e-8, -6.1e-5, 1.0, -2.5, 65504.0, float("inf")], dtype=torch.float16),
        "bf16": (torch.arange(12, dtype=torch.float32).reshape(4, 3) / 3).to(torch.bfloat16),
        "i8": torch.tensor([-128, 0, 127], dtype=torch.int8),
        "u8": torch.tensor([0, 1, 255], dtype=torch.uint8),
        "i16": torch.tensor([-32768, 32767], dtype=torch.int16),
        "i32": torch.tensor([[-(2**31), 2**31 - 1]], dtype=torch.int32),
        "i64": torch.tensor([-(2**53), 2**53 + 1], dtype=torch.int64),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(0.1),
        "empty": torch.zeros(0, 4),
        "größe.0": torch.arange(7, dtype=torch.float32),
        "parameter": torch.nn.Parameter(torch.arange(6, dtype=torch.float32).reshape(2, 3)),
    }


def views():
    """Tensors that share one storage, or lie in theirs with strides and offsets."""
    base = torch.arange(120, dtype=torch.float32).reshape(2, 3, 4, 5)
    half = torch.arange(24, dtype=torch.float16).reshape(4, 6) / 8
    return {
        "base": base,
        "transposed": base.transpose(1, 3),
        "permuted": base.permute(3, 0, 2, 1),
        "narrow": base[1, 1:],
        "every other": base[:, :, ::2, 1::3],
        "one": base[1, 2, 3, 4],
        "expanded": base[0, 0, 0, :3].unsqueeze(1).expand(3, 4),
        "none of it": base[:, 3:],
        "half": half.t(),
        "half part": half[1:3, 2:4],
        "truth": torch.tensor([[True, False, False], [True, True, False]]).t(),
        "wide": torch.arange(6, dtype=torch.int64).reshape(2, 3).t(),
    }


def expected(tensors):
    wide = {torch.float16: torch.float32, torch.float64: torch.float32}
    return {name: t.detach().to(wide.get(t.dtype, t.dtype)).contiguous().clone() for name, t in tensors.items()}


def rewritten(name, source, change=lambda file, content: content, **options):
    """Copies an archive of torch.save by Python's zipfile, each file stored as it is unless `options` say otherwise."""
    with zipfile.ZipFile(OUT / source) as old, zipfile.ZipFile(OUT / name, "w", **options) as new:
        for entry in old.infolist():
            content = change(entry.filename, old.read(entry))
            if content is not None:
                new.writestr(zipfile.ZipInfo(entry.filename), content, compress_type=new.compression)


def archive(name, pickled, storages=None):
    """An archive with this pickle, of which torch.save knows nothing."""
    with zipfile.ZipFile(OUT / name, "w") as file:
        file.writestr(zipfile.ZipInfo("archive/data.pkl"), pickled)
        for key, content in (storages or {}).items():
            file.writestr(zipfile.ZipInfo(f"archive/data/{key}"), content)


class Command:
    """Wants to run a program when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch /tmp/vitrail-was-here",)


def refused():
    save({"weight": torch.zeros(2), "extra": Command()}, "command.bin")
    save({"weight": torch.zeros(2), "extra": Command()}, "command_legacy.bin", _use_new_zipfile_serialization=False)
    (OUT / "command.pkl").write_bytes(pickle.dumps(Command(), protocol=2))
    save({"weight": torch.zeros(2)}, "protocol4.bin", pickle_protocol=4)
    save(torch.zeros(2), "tensor.bin")
    save([torch.zeros(2)], "list.bin")
    save({"net": {"weight": torch.zeros(2)}, "epoch": 3}, "other_key.bin")
    save({1: torch.zeros(2)}, "number_key.bin")
    save({"weight": torch.eye(3).to_sparse()}, "sparse.bin")
    save({"weight": torch.zeros(2, dtype=torch.uint16)}, "unsigned.bin")
    save({"weight": torch.zeros(2, dtype=torch.complex64)}, "complex.bin")
    save(torch.nn.Linear(2, 1), "module.bin")
    # Without the places of its sources on this machine.
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 1)), OUT / "whole_program.bin")
    rewritten("program.bin", "whole_program.bin", lambda name, old: None if name.endswith("debug_pkl") else old,
              compression=zipfile.ZIP_DEFLATED)
    (OUT / "whole_program.bin").unlink()
    rewritten("compressed.bin", "small.bin", compression=zipfile.ZIP_DEFLATED)
    rewritten("big_endian.bin", "small.bin", lambda name, old: b"big" if name.endswith("byteorder") else old)
    rewritten("no_storage.bin", "small.bin", lambda name, old: None if name.endswith("data/0") else old)
    rewritten("short_storage.bin", "small.bin", lambda name, old: old[:-1] if name.endswith("data/0") else old)
    with zipfile.ZipFile(OUT / "no_pickle.bin", "w") as file:
        file.writestr(zipfile.ZipInfo("archive/version"), "3\n")


def zip64():
    """The same archive with all sizes and offsets in Zip64's fields, as if it had 4 GiB."""
    limit = zipfile.ZIP64_LIMIT
    zipfile.ZIP64_LIMIT = 0
    rewritten("zip64.bin", "small.bin")
    zipfile.ZIP64_LIMIT = limit


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for name, tensors in [("dtypes", dtypes()), ("views", views())]:
        save(tensors, f"{name}.bin")
        save(tensors, f"{name}_legacy.bin", _use_new_zipfile_serialization=False)
        save_file(expected(tensors), OUT / f"{name}.safetensors")
        (OUT / f"{name}.safetensors").chmod(0o644)
    save({"weight": torch.arange(6, dtype=torch.float32).reshape(2, 3)}, "small.bin")
    zip64()
    save(load_file(OUT.parents[1] / "models" / "hf_vit" / "model.safetensors"), "hf_vit.bin")

    # What timm's train.py writes: the weights of a wrapped model beside much else.
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    state = {f"_orig_mod.module.{name}": value for name, value in model.state_dict().items()}
    save(
        {
            "epoch": 2**40,
            "arch": "tiny",
            "state_dict": state,
            "optimizer": optimizer.state_dict(),
            "args": argparse.Namespace(lr=1e-3, amp=True, size=torch.Size([3, 4]), device=torch.device("cpu")),
            "metric": -1.5,
            "dtype": torch.float32,
            "state_dict_ema": None,
        },
        "training.pth",
    )
    save_file(expected(model.state_dict()), OUT / "training.safetensors")
    (OUT / "training.safetensors").chmod(0o644)
    save({"model": model.state_dict(), "step": 7}, "model_key.pth")
    refused()


if __name__ == "__main__":
    sys.exit(main())
