"""Times builds of vitrail beside each other, such as one on Debian 12 and one on Debian 13, whose libraries and compiler
differ: the rows of docs/performance.md, in rounds that alternate.

    python benchmarks/compare/builds.py NAME=COMMAND NAME=COMMAND… [--rounds 3] [--threads 2] [--rows REGEX] [--output FILE.json]

COMMAND runs a build's program, and may have words of its own:

    builds.py "12=build/bin/vitrail" "13=docker exec trixie /vitrail/build-13/bin/vitrail"

Prints a table in Markdown: for each row the fastest and the median step of each build in ms, its share of the first build's
matrix peak (the products of one build are another one's yardstick too), and how many times as fast as the first it is, by
the fastest steps and by the medians. The last line has the geometric means. Needs Python alone.
"""

import math
import shlex
import statistics
import sys

import compare


def measure(work, programs, rounds, threads):
    """One row: {"builds": {name: {...}}} with the fastest and median step, the peak and the memory of each."""
    runs = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            runs[name].append(compare.run_vitrail(work, threads, program))
    first = next(iter(runs.values()))
    return {
        "name": work["name"], "mode": work["mode"], "dtype": work["dtype"], "cpu": first[0]["cpu"],
        "flops": first[0]["flops_per_image"] * work["batch"],
        "builds": {name: {"min": min(run["step_ms"]["min"] for run in of_one),
                          "median": statistics.median(run["step_ms"]["median"] for run in of_one),
                          "peak_gflops": max(run["peak_gflops"] for run in of_one),
                          "memory": max(run["peak_memory_bytes"] for run in of_one)} for name, of_one in runs.items()},
    }


def ratios(result, name):
    first = next(iter(result["builds"].values()))
    return tuple(first[key] / result["builds"][name][key] for key in ("min", "median"))


def table_line(result):
    peak = next(iter(result["builds"].values()))["peak_gflops"]
    cells = [f"| {result['name']} | {result['dtype']}"]
    for place, (name, build) in enumerate(result["builds"].items()):
        mfu = result["flops"] / (build["min"] * 1e-3) / (peak * 1e9)
        cells.append(f"{build['min']:.1f} / {build['median']:.1f}")
        cells.append(f"{100 * mfu:.0f} % of {peak:.0f}")
        if place > 0:
            cells.append("**{:.2f}** ({:.2f})".format(*ratios(result, name)))
    return " | ".join(cells) + " |"


def main():
    parser = compare.parser_of(__doc__)
    parser.add_argument("programs", nargs="+", metavar="NAME=COMMAND")
    args = parser.parse_args()
    programs = {name: shlex.split(command) for name, _, command in (word.partition("=") for word in args.programs)}
    if len(programs) < 2 or not all(programs.values()):
        parser.error("at least two builds with different names are needed, each as NAME=COMMAND")

    names = list(programs)
    heads = ["work", "dtype"]
    for name in names:
        heads += [f"{name}, ms", "of the peak, GF/s"] + ([f"{name} is times as fast"] if name != names[0] else [])
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    results = compare.report(args, lambda work: measure(work, programs, args.rounds, args.threads), table_line)
    if not results:
        sys.exit(f"no row matches {args.rows}")
    for name in names[1:]:
        fastest, median = (math.exp(statistics.fmean(map(math.log, column)))
                           for column in zip(*(ratios(result, name) for result in results)))
        print(f"\n{name} is {fastest:.3f} times as fast as {names[0]} ({median:.3f} by the medians), "
              f"in the geometric mean of {len(results)} rows.")


if __name__ == "__main__":
    main()
