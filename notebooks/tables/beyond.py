"""Beyond SpecInF and PipeFill: all policies in one plane, and what each mechanism loses.

Training kept is training's pace over that of the job alone; filler throughput is that of all its
GPUs over so many GPUs of its own. Both are fractions of 1, so that their sum is work in GPUs: what
one GPU does for both. Schedules, regions, services and side tasks are in beyond_jobs.py.
"""
import pandas

from . import draw, results

MODEL = "/training/synth/model"
RATE = "/fillers/bert/arrivals/rate_per_s"
MEMORY = "/fillers/bert/memory"
BATCH = "/fillers/bert/program/batch"
JOBS = {"roberta-large": "data parallel (RoBERTa-large)",
        "llama2-7b": "model parallel (LLaMA2-7B)",
        "gpt2-large": "pipeline (GPT2-large)"}
# A service that completes less of what arrives falls behind: its latency grows with the run.
KEPT_UP = 0.95

# How each real policy comes from its oracle: a step's row of configs/figures/beyond-losses.json,
# what is lost there, and what the step changes. Everything else stays as in the step before.
CHAINS = {
    "specinf": (
        ("bound-spatial", "oracle", "`ideal_spatial`: all time and SMs that training leaves"),
        ("specinf-priority", "no preemption",
         "`stream_priority`: training's waiting blocks go first; what runs is not taken back"),
        ("specinf-mps", "no priority", "`mps`: blocks go as they come"),
        ("specinf", "guarantee", "`specinf` by default: bubbles, and what 2 % of training buys"),
        ("specinf-memory", "memory", "a filler of 10 GB in place of 1 GB")),
    "pipefill": (
        ("bound-time", "oracle", "`ideal`: all time without a kernel of training"),
        ("pipefill-whole-kernels", "no preemption",
         "`pipefill` with `fill_fraction` 1, `sharing` spatial: whole kernels that end in time"),
        ("pipefill-margin", "margin", "`fill_fraction` 0.68"),
        ("pipefill", "turns", "`pipefill` by default: `sharing` time_sliced"),
        ("pipefill-memory", "memory", "a filler of 10 GB in place of 1 GB"),
        ("pipefill-offload", "offload", "`offload` true")),
    "freeride": (
        ("bound-time", "oracle", "`ideal`: all time without a kernel of training"),
        ("freeride-whole-passes", "no preemption",
         "`freeride` with both polls 1 us, `looks` completion, `step_margin` 1: whole passes that "
         "end in time"),
        ("freeride-manager", "detection delay", "`manager_poll` 10 ms"),
        ("freeride", "loop of the task",
         "`freeride` by default: `interface_poll` 5 ms, `looks` launch, `step_margin` 1.2"),
        ("freeride-memory", "memory", "a filler of 10 GB in place of 1 GB")),
}


def swept(frame, pointer, fixed):
    """A swept column; at reduced size, where it is not varied and so no column, `fixed`."""
    return frame[pointer] if pointer in frame else pandas.Series(fixed, index=frame.index)


def jobs(frame):
    """Each row's training job, in words."""
    return swept(frame, MODEL, "gpt2-large").map(JOBS)


def kept(frame):
    """The columns of every plane: training kept, filler throughput, and their sum."""
    out = pandas.DataFrame({"training_kept": frame["training_normalised_fraction"],
                            "filler_throughput": frame["filler_normalised_fraction"].fillna(0.0)})
    out["work_gpus"] = out["training_kept"] + out["filler_throughput"]
    return out


def plane(frame):
    """Policies by job: training kept, filler throughput, work; `admitted`: GPUs with the filler."""
    out = pandas.DataFrame({"job": jobs(frame), "policy": frame["policy"],
                            "oracle": frame["oracle"].astype(bool),
                            "admitted": frame["filler_gpus_admitted"]})
    return pandas.concat([out, kept(frame)], axis=1)


def front(table, oracle):
    """The line that an oracle draws: its point, and whole GPUs given to the filler instead.

    Giving the filler a share a of the time whole, and the oracle the rest, yields any point
    between the oracle's own (f, 1) and (1, 0).
    """
    filler = table.loc[table["policy"] == oracle, "filler_throughput"].iloc[0]
    return [filler, 1.0], [1.0, 0.0]


def beyond_oracle(table, oracle="ideal_spatial"):
    """Policies whose work is more than the oracle's line holds at the same training kept."""
    filler, _ = front(table, oracle)
    most = 1 - table["training_kept"] * (1 - filler[0])
    return list(table.loc[~table["oracle"] & (table["filler_throughput"] > most), "policy"])


def service_plane(frame):
    """Policies by job and load, means over seeds: requests/s, p95 in ms, training kept.

    `kept_up`: the service completed what arrived but for KEPT_UP; else its p95 is a lower bound.
    """
    frame = frame.assign(job=jobs(frame), load_per_s=swept(frame, RATE, 400))
    by = ["job", "load_per_s", "policy"]
    groups = frame.groupby(by, sort=False)
    out = groups.agg(requests_per_s=("filler_requests_per_s", "mean"),
                     p95_ms=("latency_p95_ms", "mean"), half=("latency_p95_ms",
                                                              results.half_interval),
                     training_kept=("training_normalised_fraction", "mean"),
                     completed=("requests_completed", "sum"),
                     arrived=("requests_arrived", "sum"),
                     admitted=("filler_gpus_admitted", "min"), seeds=("seed", "nunique"))
    out["kept_up"] = out["completed"] >= KEPT_UP * out["arrived"]
    return out.reset_index()


def losses(frame):
    """Every step of CHAINS by job: what it changes, what is left, and what it costs in GPUs."""
    rows = []
    for job, part in frame.groupby(jobs(frame), sort=False):
        steps = part.assign(**kept(part)).set_index("config")
        for policy, chain in CHAINS.items():
            before = None
            for name, loss, change in chain:
                step = steps.loc[name]
                rows.append({"job": job, "policy": policy, "loss": loss, "change": change,
                             "training_kept": step["training_kept"],
                             "filler_throughput": step["filler_throughput"],
                             "work_gpus": step["work_gpus"],
                             "cost_gpus": 0.0 if before is None else before - step["work_gpus"]})
                before = step["work_gpus"]
    return pandas.DataFrame(rows)


def largest_loss(table):
    """By job and policy, the step that costs most of the work; memory and its remedy left out."""
    part = table[~table["loss"].isin(["memory", "offload"])].reset_index(drop=True)
    worst = part.groupby(["job", "policy"], sort=False)["cost_gpus"].idxmax()
    return part.loc[worst, ["job", "policy", "loss", "cost_gpus"]].reset_index(drop=True)


def detection(frame):
    """Policies by the delay after which they may learn of a bubble, in ms; the oracle has none."""
    delay = results.parameter(frame, "window").fillna(results.parameter(frame, "manager_poll"))
    out = pandas.DataFrame({"policy": frame["policy"], "delay_ms": [
        None if text is None or text != text else results.milliseconds(text) for text in delay]})
    return pandas.concat([out, kept(frame)], axis=1)


SERIES = {"xsched-1": "XSched, level 1", "xsched-3": "XSched, level 3",
          "reef-wait": "REEF, waiting",
          "reef-reset": "REEF, killing", "tally": "tally", "ideal": "ideal", "mps": "mps",
          "specinf": "specinf", "freeride": "freeride", "pipefill": "pipefill",
          "pipefill-offload": "PipeFill, offloading", "antman": "antman"}


def preemption(frame):
    """By policy and requests a pass: training lost in %, and filler throughput."""
    out = pandas.DataFrame({"series": frame["config"].map(SERIES), "batch": frame[BATCH],
                            "training_lost_percent":
                            100 * (1 - frame["training_normalised_fraction"])})
    return pandas.concat([out, kept(frame)], axis=1)


def memory(frame):
    """By policy and a filler's memory in GB: GPUs that admit it, and what it gets done."""
    out = pandas.DataFrame({"series": frame["config"].map(SERIES),
                            "memory_gb": swept(frame, MEMORY, "2GB").map(results.gigabytes),
                            "admitted": frame["filler_gpus_admitted"]})
    return pandas.concat([out, kept(frame)], axis=1)


def short(policy):
    """A policy's name for a label inside a figure."""
    return draw.label(policy).replace(" (oracle)", "").replace("Ideal, spatial", "Ideal spatial")
