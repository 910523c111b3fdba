"""Golden values for the image processors of transformers: tests/golden/images/processors.safetensors.

    python tools/golden/image_processors.py

For each case, the metadata has a preprocessor_config.json, and CASE.FILE the pixel values that transformers' Pillow backend
(…ImageProcessorPil) makes of tests/golden/images/decode/FILE by it. The sizes leave odd margins on images of odd and even
sides.

Needs transformers 5.23, torch 2.13.0, Pillow 13 and safetensors.
"""

import json
import pathlib
import tempfile

import transformers as hf
from safetensors.numpy import save_file
from transformers.image_utils import load_image

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/images"
FILES = ["rgb444.jpg", "gray8.png", "orientation6.jpg", "cmyk.jpg"]

VIT, DEIT, BIT = hf.ViTImageProcessorPil, hf.DeiTImageProcessorPil, hf.BitImageProcessorPil
MEAN = dict(image_mean=[0.1, 0.4, 0.7], image_std=[0.3, 0.2, 0.6])


def sides(height, width):
    return {"height": height, "width": width}


# name: (class, what its file says); "processor" makes the file with save_pretrained(), other files are old or by hand
CASES = {
    "vit": (VIT, dict(processor=dict(size=sides(12, 15), **MEAN))),
    "vit_lanczos": (VIT, dict(processor=dict(size=sides(15, 10), resample=1))),
    "vit_nearest": (VIT, dict(processor=dict(size=sides(10, 11), resample=0))),
    "deit": (DEIT, dict(processor=dict(size=sides(20, 19), crop_size=sides(13, 14), **MEAN))),
    "deit_wider": (DEIT, dict(processor=dict(size=sides(9, 22), crop_size=sides(12, 11)))),
    "bit": (BIT, dict(processor=dict(size={"shortest_edge": 21}, crop_size=sides(12, 13)))),
    "bit_padded": (BIT, dict(processor=dict(size={"shortest_edge": 9}, crop_size=sides(14, 12)))),
    "beit": (hf.BeitImageProcessorPil, dict(processor=dict(size=sides(18, 18), crop_size=sides(11, 13),
                                                           do_center_crop=True))),
    "convnext": (hf.ConvNextImageProcessorPil, dict(processor=dict(size={"shortest_edge": 13}, crop_pct=0.8))),
    "crop_alone": (DEIT, dict(processor=dict(do_resize=False, crop_size=sides(14, 12)))),
    "rescaled": (VIT, dict(processor=dict(size=sides(9, 10), rescale_factor=1 / 127.5, image_mean=[1.0, 0.9, 1.1],
                                          image_std=[1.0, 0.7, 0.8]))),
    "not_rescaled": (VIT, dict(processor=dict(size=sides(9, 10), do_rescale=False, image_mean=[127.0, 90.0, 110.0],
                                              image_std=[50.0, 70.0, 80.0]))),
    "not_normalized": (VIT, dict(processor=dict(size=sides(9, 10), do_normalize=False, resample=3))),
    "old_vit": (VIT, dict(feature_extractor_type="ViTFeatureExtractor", do_resize=True, size=11)),
    "old_deit": (DEIT, dict(feature_extractor_type="DeiTFeatureExtractor", size=18, crop_size=13, resample=2)),
    "old_bit": (BIT, dict(image_processor_type="BitImageProcessorFast", size=18, crop_size=13)),
}


def main():
    values, configs = {}, {}
    for name, (cls, said) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "preprocessor_config.json"
            if "processor" in said:
                cls(**said["processor"]).save_pretrained(folder)
            else:
                path.write_text(json.dumps(said))
            configs[name] = json.loads(path.read_text())
            processor = cls.from_pretrained(folder)
        for file in FILES:
            image = load_image(str(ROOT / "decode" / file))
            pixels = processor(image, return_tensors="np")["pixel_values"][0]
            values[f"{name}.{file}"] = pixels.astype("float32")
    save_file(values, ROOT / "processors.safetensors", {"configs": json.dumps(configs)})


if __name__ == "__main__":
    main()
