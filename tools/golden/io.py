"""Files of tests/golden/io, written by the reference implementations: safetensors, tensorboard, Python's tarfile.

pip install torch==2.13.0 safetensors tensorboard
"""

import io
import sys
import tarfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "io"


def safetensors():
    double = torch.tensor([[1 / 3, -1e-3, 1e300], [1e-50, 16777217.0, -2.5]], dtype=torch.float64)
    brain = (torch.arange(12, dtype=torch.float32).reshape(4, 3) / 3).to(torch.bfloat16)
    tensors = {
        "f32": torch.arange(15, dtype=torch.float32).reshape(3, 5) / 8 - 1,
        "f64": double,
        "f64 as f32": double.to(torch.float32),
        "bf16": brain,
        "bf16 as f32": brain.to(torch.float32),
        # Zeros, subnormals, the largest, infinities and a NaN of half precision.
        "f16": torch.tensor(
            [0.0, -0.0, 6e-8, -6.1e-5, 1.0, -2.5, 65504.0, float("inf"), -float("inf"), float("nan")],
            dtype=torch.float16,
        ),
        "i8": torch.tensor([-128, 0, 127], dtype=torch.int8),
        "u8": torch.tensor([0, 1, 255], dtype=torch.uint8),
        "i16": torch.tensor([-32768, 32767], dtype=torch.int16),
        "i32": torch.tensor([[-(2**31), 2**31 - 1]], dtype=torch.int32),
        "i64": torch.tensor([-(2**53), 2**53 + 1], dtype=torch.int64),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(0.1),
        "empty": torch.zeros(0, 4),
        "größe.0": torch.arange(7, dtype=torch.float32),
    }
    tensors["f16 as f32"] = tensors["f16"].to(torch.float32)
    # One entry only: the package writes several in an order that changes from run to run.
    save_file(tensors, OUT / "dtypes.safetensors", metadata={"note": 'a "quoted" line\nand another'})
    (OUT / "dtypes.safetensors").chmod(0o644)


def events():
    """What torch.utils.tensorboard writes for scalars, with fixed times."""
    records = [Event(wall_time=1.5, file_version="brain.Event:2")]
    for step, tag, value in [(0, "loss", 2.5), (1, "loss", -0.125), (300, "eval/top1", 87.25), (2**40, "lr", 1e-4)]:
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        records.append(Event(wall_time=1700000000.25 + step, step=step, summary=summary))
    with open(OUT / "events.tfevents", "wb") as file:
        writer = RecordWriter(file)
        for record in records:
            writer.write(record.SerializeToString())


def add(archive, name, content, **fields):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    archive.addfile(info, io.BytesIO(content))


def tars():
    long = "/".join(["a-folder-with-a-rather-long-name"] * 9) + "/long.txt"
    for kind, form in [("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)]:
        with tarfile.open(OUT / f"{kind}.tar", "w", format=form) as archive:
            folder = tarfile.TarInfo("cat")
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
            add(archive, "./cat/1.txt", b"one")
            add(archive, "cat//empty.txt", b"")
            add(archive, "cat/block.txt", b"x" * 512)
            link = tarfile.TarInfo("cat/link.txt")
            link.type = tarfile.SYMTYPE
            link.linkname = "1.txt" if kind == "ustar" else "y" * 150
            archive.addfile(link)
            add(archive, long if kind != "ustar" else "p" * 90 + "/" + "q" * 90, b"long name")
            if kind != "ustar":
                add(archive, "größe/ß.txt", "süß".encode())
            add(archive, "cat/1.txt", b"replaced")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    safetensors()
    events()
    tars()


if __name__ == "__main__":
    sys.exit(main())
