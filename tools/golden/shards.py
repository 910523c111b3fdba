"""Shards as the webdataset package writes them: tests/golden/shards/train-00000{0,1,2}.tar.

Nine images of 6 x 6 pixels of one colour, (20 i, 0, 0) for image i, of class i % 4; the last three have their class in .json alone.

usage: python tools/golden/shards.py
"""

import io
import os
import shutil

import webdataset
from PIL import Image

folder = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "golden", "shards")
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
with webdataset.ShardWriter(os.path.join(folder, "train-%06d.tar"), maxcount=3, verbose=0, mtime=0) as writer:
    for i in range(9):
        png = io.BytesIO()
        Image.new("RGB", (6, 6), (20 * i, 0, 0)).save(png, "PNG")
        sample = {"__key__": f"part/{i:04}", "png": png.getvalue()}
        if i < 6:
            sample["cls"] = i % 4
        else:
            sample["json"] = {"label": i % 4, "width": 6}
        writer.write(sample)
