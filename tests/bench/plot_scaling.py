#!/usr/bin/python3
"""Draws how the cost of a simulation grows, and prints it as a table.

  BUBBLESIM_BENCH_LARGE=1 scaling_bench --benchmark_out=scaling.json --benchmark_repetitions=3
  plot_scaling.py scaling.json -o tests/bench/scaling.svg

Of several repetitions the fastest counts. Each panel has CPU time over one size: of an iteration,
of 1,000 kernels on each rank or of each filler, of a simulation; and a line of slope 1 through the
size that the axis is judged by: 8 ranks, else the first.
"""
import argparse
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Title, and the kernels of a unit of size whose cost is drawn.
AXES = {
    "kernels": ("an iteration, by kernels", 1),
    "ranks_alone": ("1,000 kernels a rank, by ranks", 1000),
    "ranks_filled": ("the same, each with a filler", 1000),
    "fillers_offline": ("1,000 kernels a filler,\nby offline fillers on 8 GPUs", 1000),
    "fillers_online": ("1,000 kernels a filler,\nby online fillers on 8 GPUs", 1000),
    "milliseconds": ("a simulation, by simulated ms", None),
}
LABELS = {
    "kernels": "kernels an iteration",
    "ranks_alone": "ranks",
    "ranks_filled": "ranks, a filler on each",
    "fillers_offline": "offline fillers",
    "fillers_online": "online fillers",
    "milliseconds": "simulated ms",
}


def read(path):
    """{axis: {size: fastest row}}"""
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["benchmarks"]
    axes = {}
    for row in rows:
        if row.get("run_type") == "aggregate":
            continue
        axis, size = row["run_name"].split("/")[1:3]
        best = axes.setdefault(axis, {})
        if int(size) not in best or row["cpu_time"] < best[int(size)]["cpu_time"]:
            best[int(size)] = row
    return axes


def print_table(axes):
    print("| axis | size | CPU s | ns a kernel | / first | in windows | trace, B a kernel | "
          "run, kB a rank |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for axis, label in LABELS.items():
        rows = axes.get(axis, {})
        for size in sorted(rows):
            row, first = rows[size], rows[min(rows)]
            print(f"| {label} | {size:,} | {row['cpu_time'] / 1e3:.2f} | {row['ns_kernel']:,.0f} | "
                  f"{row['ns_kernel'] / first['ns_kernel']:.2f} | {row['in_windows']:.2f} | "
                  f"{row['trace_bytes']:.1f} | {row['run_kB']:,.0f} |")


def row_ms(row, size, kernels):
    if kernels is None:
        return row["cpu_time"]
    return row["ns_kernel"] * kernels * size / 1e6


def draw(axes, path):
    plt.rcParams["svg.hashsalt"] = "bubblesim scaling"
    plt.rcParams["svg.fonttype"] = "none"
    figure, panels = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
    for panel, (axis, (title, kernels)) in zip(panels.flat, AXES.items()):
        rows = axes.get(axis, {})
        sizes = sorted(rows)
        ms = [row_ms(rows[size], size, kernels) for size in sizes]
        start = sizes.index(8) if 8 in sizes else 0
        panel.loglog(sizes, ms, "o-", color="#1f77b4", label="measured")
        panel.loglog(sizes, [ms[start] * size / sizes[start] for size in sizes], "--",
                     color="#888888", label="slope 1")
        panel.set_title(title, fontsize=9)
        panel.minorticks_off()
        panel.tick_params(labelsize=8)
        panel.grid(True, which="major", linewidth=0.4)
    panels[0][0].legend(frameon=False, fontsize=8)
    figure.supylabel("CPU ms", fontsize=9)
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("json", help="of scaling_bench --benchmark_out")
    parser.add_argument("-o", "--output", help="SVG file (default: the table alone)")
    arguments = parser.parse_args()
    axes = read(arguments.json)
    print_table(axes)
    if arguments.output:
        draw(axes, arguments.output)


if __name__ == "__main__":
    main()
