"""One table of every policy over several jobs, from what `bubblesim run --out` wrote.

    python3 scripts/policy_table.py DIR

DIR holds one folder a job, each with a results.csv of an offline and an online run. Prints the
table and writes DIR/table.csv. Columns a job: training kept and filler gained offline (1 is alone,
and a GPU of its own), bubble time recovered; training kept online and p95 latency in ms, `>` where
it is a lower bound because requests had not finished, `overload` where it would grow with the run.
"xsched, idle": with `collectives: idle`, "tally, work" with `work`, which is not their own.
"""

import csv
import pathlib
import sys

JOBS = {"dp": "data parallel", "mp": "model parallel", "pp": "pipeline parallel"}
COLUMNS = ("train", "filler", "bubbles%", "train", "p95_ms")
NAMES = ("offline_training_normalised", "offline_filler_normalised", "offline_recovered_fraction",
         "online_training_normalised", "online_latency_p95_ms")


def label(row):
    """The policy, and how it counts collectives where that is not as its authors do."""
    other = "work" if row["policy"] == "tally" else "idle"
    given = f"collectives={other}" in row["policy_parameters"].split(";")
    return row["policy"] + (f", {other}" if given else "")


def read(path):
    """Rows by policy and mode."""
    with open(path, newline="", encoding="utf-8") as file:
        return {(label(row), row["filler_mode"]): row for row in csv.DictReader(file)}


def fixed(text, scale=1.0, digits=3):
    return f"{float(text) * scale:.{digits}f}" if text else "-"


def cells(rows, policy):
    offline = rows[policy, "offline"]
    online = rows[policy, "online"]
    bound = online["latency_lower_bound_from"] in ("p50", "p90", "p95")
    p95 = fixed(online["latency_p95_ms"], digits=1)
    return (
        fixed(offline["training_normalised_fraction"]),
        fixed(offline["filler_normalised_fraction"]),
        fixed(offline["bubble_recovered_fraction"], 100, 1),
        fixed(online["training_normalised_fraction"]),
        "overload" if online["overloaded"] == "1" else (">" if bound else "") + p95,
    )


def main(folder):
    jobs = {name: read(folder / name / "results.csv") for name in JOBS}
    policies = list(dict.fromkeys(policy for policy, _ in jobs["dp"]))
    oracles = {p for p in policies if jobs["dp"][p, "offline"]["oracle"] == "1"}
    lines = [[""] + [c for name in JOBS for c in (JOBS[name], "", "", "", "")],
             ["policy"] + [c for _ in JOBS for c in ("offline", "", "", "online", "")],
             [""] + list(COLUMNS) * len(JOBS)]
    for policy in policies:
        name = policy + " (oracle)" if policy in oracles else policy
        lines.append([name] + [c for rows in jobs.values() for c in cells(rows, policy)])
    first = max(len(line[0]) for line in lines)
    for line in lines:
        row = line[0].ljust(first)
        for i in range(0, len(line) - 1, len(COLUMNS)):
            part = line[i + 1:i + 1 + len(COLUMNS)]
            row += "  |" + "".join(cell.rjust(9) if line is not lines[0] else "" for cell in part)
            if line is lines[0]:
                row += part[0].rjust(9 * len(COLUMNS))
        print(row.rstrip())
    with open(folder / "table.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["policy", "oracle", "job", *NAMES])
        for policy in policies:
            for name, rows in jobs.items():
                writer.writerow([policy, int(policy in oracles), name, *cells(rows, policy)])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
