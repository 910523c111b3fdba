"""What tools/check_*.py have in common: the program, folders that transformers must read whole, and results that must agree."""

import argparse
import subprocess

from safetensors.torch import load_file, save_file


def parser_of(doc):
    """The parser of a check's arguments; `doc` is its docstring."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--vitrail", default="build/bin/vitrail", help="the program")
    return parser


class Program:
    """vitrail, called with its arguments: gives what it prints, or an AssertionError with what it says went wrong."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *arguments):
        done = subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def forward(self, folder, work, **tensors):
        """The tensors that `vitrail forward` makes of others, by name; `work` is a folder for the files."""
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, work / "x.safetensors")
        self("forward", folder, "--input", work / "x.safetensors", "--output", work / "y.safetensors")
        return load_file(work / "y.safetensors")


def loaded(kind, folder, may_be_left_over=lambda key: False):
    """The model of a folder by a class of transformers: no key may be missing, of another shape, or left over."""
    model, info = kind.from_pretrained(folder, output_loading_info=True, local_files_only=True)
    wrong = {what: names for what, names in info.items() if names and what != "unexpected_keys"}
    assert not wrong and all(map(may_be_left_over, info["unexpected_keys"])), f"{folder}: {info}"
    return model.eval()


def close(ours, theirs, what, limit=1e-5):
    """The relative difference of two tensors, as a whole and at its largest, which is printed, and must be below the limit."""
    assert ours.shape == theirs.shape, f"{what}: {list(ours.shape)} and {list(theirs.shape)}"
    difference = ours - theirs
    error = max((difference.norm() / theirs.norm()).item(), (difference.abs().max() / theirs.abs().max()).item())
    print(f"{what:<40} {error:.1e}")
    assert error < limit, what
