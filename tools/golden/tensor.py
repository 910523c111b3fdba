"""Golden values of the rounding from f32 to bf16: torch's.

    python tools/golden/tensor.py

writes tests/golden/tensor/bf16.safetensors: `bits` are f32 numbers by their 32 bits, `rounded` torch's bf16 numbers by
their 16.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[2]
generator = torch.Generator().manual_seed(3)

edges = []
for high in (0x0000, 0x0001, 0x007F, 0x0080, 0x3F7F, 0x3F80, 0x3F81, 0x7F7E, 0x7F7F, 0x7F80, 0x7FC0):
    for low in (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        edges += [high << 16 | low, (high << 16 | low) - (1 << 31)]
random = torch.randint(-(2**31), 2**31, (1000,), generator=generator)
bits = torch.cat([torch.tensor(edges), random]).to(torch.int32)
rounded = bits.view(torch.float32).to(torch.bfloat16).view(torch.int16).to(torch.int32) & 0xFFFF
path = ROOT / "tests/golden/tensor/bf16.safetensors"
path.parent.mkdir(parents=True, exist_ok=True)
save_file({"bits": bits, "rounded": rounded}, path)
print(path.relative_to(ROOT), path.stat().st_size)
