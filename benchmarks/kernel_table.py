"""The figures of vitrail_bench_kernels as a table in Markdown: a line for each kind of kernel.

    build/bin/vitrail_bench_kernels --benchmark_min_time=0.2 --benchmark_out=FILE.json --benchmark_out_format=json
    python benchmarks/kernel_table.py FILE.json

A kernel that multiplies is given as a share of the matrix peak of its dtype, another as a share of what the memory gives
(what lies in the caches can be faster than memory): over its shapes from the lowest to the highest.
"""

import collections
import json
import re
import sys


def kind_of(run):
    """Its name without shapes, and what its label says besides; its column."""
    name = re.sub(r"<.*::(\w+)>", r" \1", run["name"].split("/")[0]).replace("_", " ")
    words = run.get("label", "").replace(",", "").split()
    bf16 = "bf16" in words or ("f32" not in words and "bf16:1" in run["name"])
    backward = "backward" in words
    said = " ".join(word for word in words if word not in ("f32", "bf16", "forward", "and", "backward"))
    return f"{name}, {said}" if said else name, 2 * bf16 + backward


def text_of(shares):
    if not shares:
        return ""
    low, high = round(min(shares)), round(max(shares))
    return f"{low} %" if low == high else f"{low} to {high} %"


def main():
    runs = json.load(open(sys.argv[1]))["benchmarks"]
    for measure, title in (("%peak", "of the matrix peak"), ("%memory", "of the memory's bandwidth")):
        rows = collections.defaultdict(lambda: [[], [], [], []])
        for run in runs:
            if measure in run:
                kind, column = kind_of(run)
                rows[kind][column].append(run[measure])
        print(f"| {title} | shapes | f32 | f32, with backward | bf16 | bf16, with backward |\n|---|---|---|---|---|---|")
        for kind, columns in rows.items():
            print(f"| {kind} | {max(map(len, columns))} | {' | '.join(map(text_of, columns))} |")
        print()


if __name__ == "__main__":
    main()
