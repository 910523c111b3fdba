"""Times the same step with more and more threads: vitrail beside PyTorch (eager), in one run.

    python benchmarks/compare/threads.py [--counts 1,2,4,8,16] [--rows REGEX] [--output FILE.json]

For a CPU with many cores; python and requirements as of compare.py. Each figure is the fastest step of a process of its own.
Prints a table in Markdown: a line for each row and side, with the milliseconds of a step at each count, and how many
times as fast as with the fewest threads the most of them are.
"""

from compare import BASE, EAGER, SMALL, TINY, parser_of, report, row, run_peer, run_vitrail

ROWS = [
    row("train vit_tiny 224, batch 16", "train", TINY, 16, "bf16", 4, EAGER),
    row("train vit_base 224, batch 8", "train", BASE, 8, "bf16", 3, EAGER),
    row("train vit_base 224, batch 32", "train", BASE, 32, "bf16", 2, EAGER),
    row("train 32 px / 4, dim 192, batch 64", "train", TINY, 64, "bf16", 6, EAGER, SMALL),
    row("train vit_base 224, batch 8", "train", BASE, 8, "f32", 2, EAGER),
    row("infer vit_base, batch 1", "infer", BASE, 1, "bf16", 20, EAGER),
    row("infer vit_base, batch 8", "infer", BASE, 8, "bf16", 6, EAGER),
    row("infer vit_base, batch 1", "infer", BASE, 1, "f32", 10, EAGER),
    row("train resnet50, batch 8", "train", "resnet50", 8, "bf16", 4, EAGER),
    row("train swin_tiny, batch 8", "train", "swin_tiny_patch4_window7_224", 8, "bf16", 4, EAGER),
]


def measure(work, counts):
    """The fastest step of each side at each count of threads, and what the matrix peak was there."""
    result = {"name": work["name"], "dtype": work["dtype"], "threads": counts, "vitrail": [], "peak_gflops": [], "peers": {}}
    for threads in counts:
        own = run_vitrail(work, threads)
        result["cpu"] = own["cpu"]
        result["vitrail"].append(own["step_ms"]["min"])
        result["peak_gflops"].append(own["peak_gflops"])
        for peer, dtype in work["peers"]:
            result["peers"].setdefault(peer, []).append(min(run_peer(peer, dtype, work, threads)["step_ms"]))
    return result


def table_lines(result):
    sides = {"vitrail": result["vitrail"], **result["peers"]}
    return "\n".join(f"| {result['name']} | {result['dtype']} | {side} | " + " | ".join(f"{step:.1f}" for step in steps) +
                     f" | {steps[0] / steps[-1]:.1f} |" for side, steps in sides.items())


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--counts", default="1,2,4,8,16", help="numbers of threads, rising")
    args = parser.parse_args()
    counts = [int(count) for count in args.counts.split(",")]
    print("| work | dtype | side | " + " | ".join(f"{count} threads, ms" for count in counts) + " | times as fast |")
    print("|---|---|---|" + "---|" * (len(counts) + 1))
    report(args, lambda work: measure(work, counts), table_lines, ROWS)


if __name__ == "__main__":
    main()
