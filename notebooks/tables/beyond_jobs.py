"""Other jobs with bubbles: better schedules, two regions, language models and side tasks in them.

Fractions are of 1, times in ms unless their names say otherwise. Closed forms are of p ranks, m
micro-batches and F = I = W = 1: forward, backward by input, backward by weights (B = I + W = 2).
"""
import json

import pandas

from . import results
from .beyond import kept, swept

PLAN = "/training/synth/plan"
SCHEDULE, GLOBAL_BATCH = f"{PLAN}/schedule", f"{PLAN}/global_batch"
CLUSTER = "/training/synth/cluster"
STEP_CV = "/fillers/side/jitter_cv"
SCHEDULES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "Interleaved", "chimera": "Chimera",
             "zb-h1": "ZB-H1", "zb-h2": "ZB-H2", "zb-v": "ZB-V", "dualpipe": "DualPipe",
             "dualpipev": "DualPipeV"}
LINKS = {"two-regions": "1 Gb/s", "two-regions-10g": "10 Gb/s", "two-regions-100g": "100 Gb/s",
         "two-regions-far": "10 Gb/s, far"}
# Tokens of one request in configs/figures/beyond-serving.json: the prompt's pass yields the first.
TOKENS = {"static": 33, "continuous": 33, "speculative": 33, "prefill": 1}


def idle_slots(schedule, ranks):
    """Idle time of a rank in its iteration, in units of F of a whole stage; None: no closed form.

    GPipe, 1F1B: (p-1)(F+B), arXiv 2104.04473, 2.2.1; interleaved in 2 chunks: half, 2.2.2.
    ZB-H1: (p-1)(F+I-W), arXiv 2401.10241, table 2. ZB-H2 and ZB-V idle 0 in a stage's span; an
    iteration that ends for all ranks at once still has the ramp of (p-1)F, of half a stage in the
    V. DualPipe: (p/2-1)(F&B+B-3W) with F&B = F+B, its README; DualPipeV the same on p of 2p
    half-stages.
    """
    ramp = ranks - 1
    return {"gpipe": 3 * ramp, "1f1b": 3 * ramp, "interleaved": 1.5 * ramp, "zb-h1": ramp,
            "zb-h2": ramp, "zb-v": 0.5 * ramp, "dualpipe": 2 * (ranks / 2 - 1),
            "dualpipev": ramp}.get(schedule)


def closed_form(schedule, ranks, micro_batches):
    """Bubble fraction of the iteration by the closed form; None where there is none."""
    idle = idle_slots(schedule, ranks)
    return None if idle is None else idle / (3 * micro_batches + idle)


def bubble_alone(frame, by):
    """Bubble fraction of each row's job alone; `by` names the columns that tell jobs apart."""
    alone = frame[frame["policy"] == "exclusive"].drop_duplicates(by).set_index(by)
    return [alone.loc[key, "bubble_fraction"] for key in zip(*(frame[name] for name in by))]


def schedules(frame, ranks=4):
    """By schedule, micro-batches and policy: bubble, closed form, iteration, and GPU time used.

    `training_part`: time that training's kernels take, times the pace that it keeps; with the
    filler's throughput it is `used_gpus`.
    """
    frame = frame.assign(**{GLOBAL_BATCH: swept(frame, GLOBAL_BATCH, 8)})
    keys = zip(frame[SCHEDULE], frame[GLOBAL_BATCH])
    out = pandas.DataFrame({
        "schedule": frame[SCHEDULE].map(SCHEDULES), "micro_batches": frame[GLOBAL_BATCH],
        "policy": frame["policy"], "bubble": bubble_alone(frame, [SCHEDULE, GLOBAL_BATCH]),
        "closed_form": [closed_form(schedule, ranks, m) for schedule, m in keys],
        "iteration_ms": frame["training_iteration_mean_ms"]})
    out = pandas.concat([out, kept(frame)[["training_kept", "filler_throughput"]]], axis=1)
    out["training_part"] = (1 - out["bubble"]) * out["training_kept"]
    out["used_gpus"] = out["training_part"] + out["filler_throughput"]
    return out


def per_micro_batch(table, schedule):
    """What one more micro-batch adds, in ms: (to the iteration, to a GPU's work in it).

    From the fewest and the most micro-batches, where start, end and optimizer cancel.
    """
    rows = table[(table["schedule"] == schedule) & (table["policy"] == "exclusive")]
    rows = rows.sort_values("micro_batches")
    first, last = rows.iloc[0], rows.iloc[-1]
    more = last["micro_batches"] - first["micro_batches"]
    if more == 0:  # reduced size
        return float("nan"), float("nan")
    work = [(1 - row["bubble"]) * row["iteration_ms"] for row in (first, last)]
    return (last["iteration_ms"] - first["iteration_ms"]) / more, (work[1] - work[0]) / more


def savings(table, ranks=4):
    """How much shorter than 1F1B's each schedule's iteration is, and is by closed form, in ms.

    A slot (F = I = W) is a third of what a micro-batch adds to a GPU's work under 1F1B.
    """
    slot = per_micro_batch(table, "1F1B")[1] / 3
    alone = table[table["policy"] == "exclusive"]
    base = alone[alone["schedule"] == "1F1B"].set_index("micro_batches")["iteration_ms"]
    names = {label: name for name, label in SCHEDULES.items()}
    rows = []
    for _, row in alone.iterrows():
        idle = idle_slots(names[row["schedule"]], ranks)
        rows.append({"schedule": row["schedule"], "micro_batches": row["micro_batches"],
                     "saved_ms": base[row["micro_batches"]] - row["iteration_ms"],
                     "closed_form_ms": None if idle is None
                     else slot * (idle_slots("1f1b", ranks) - idle)})
    return pandas.DataFrame(rows)


def regions(frame):
    """By plan, link and policy: bubble of the job alone, utilisation, training kept, filler.

    `utilisation`: time with any operation on the GPU but collectives.
    """
    out = pandas.DataFrame({
        "plan": frame["config"], "link": frame[CLUSTER].map(LINKS), "policy": frame["policy"],
        "bubble": bubble_alone(frame, ["config", CLUSTER]),
        "iteration_ms": frame["training_iteration_mean_ms"],
        "utilisation": frame["gpu_busy_without_collectives_fraction"]})
    return pandas.concat([out, kept(frame)], axis=1)


def serving(frame):
    """By kind of serving and policy, means and half intervals over seeds: p95, training, tokens."""
    frame = frame.assign(
        p95_s=frame["latency_p95_ms"] / 1000,
        tokens_per_s=frame["filler_requests_per_s"] * frame["config"].map(TOKENS),
        in_time=frame["requests_within_deadline"] / frame["requests_arrived"],
        kept_up=frame["requests_completed"] / frame["requests_arrived"])
    tables = []
    for value in ("p95_s", "training_normalised_fraction", "tokens_per_s", "in_time", "kept_up"):
        part = results.over_seeds(frame, ["config", "policy"], value)
        tables.append(part.assign(value=value))
    return pandas.concat(tables, ignore_index=True).rename(columns={"config": "kind"})


def loop_of(policy):
    """When FreeRide's loop begins a step, by the policy's text: 'fits', 'margin', 'artifact'."""
    if not policy.startswith("{"):
        return "artifact" if policy == "freeride" else "fits"
    given = json.loads(policy).get("parameters", {})
    if given.get("looks") != "completion":
        return "artifact"
    return "fits" if given.get("step_margin") == 1 else "margin"


def side_tasks(frame):
    """FreeRide's set-up, by task, micro-batches, variation, policy and its loop.

    `steps_vary`: the coefficient of variation of a task's steps, in %. Gives the bubble of the job
    alone, training's overhead in %, the task's rate, and the part of the time in which its steps
    ran beside training, in %: what they got done beyond what the oracle does in as much of bubbles.
    """
    frame = frame.assign(**{GLOBAL_BATCH: swept(frame, GLOBAL_BATCH, 16)})
    micro_batches = frame[GLOBAL_BATCH] // 4
    by = ["config", GLOBAL_BATCH, STEP_CV]
    rates = frame["filler_normalised_fraction"] / frame["bubble_recovered_fraction"]
    ideal = frame.assign(rate=rates)[frame["policy"] == "ideal"].set_index(by)["rate"]
    in_bubbles = [ideal.get(tuple(key), float("nan")) * recovered for *key, recovered in zip(
        *(frame[name] for name in by), frame["bubble_recovered_fraction"])]
    return pandas.DataFrame({
        "task": frame["config"], "micro_batches": micro_batches,
        "steps_vary": 100 * frame[STEP_CV], "policy": frame["policy"],
        "loop": frame["/policies/0"].map(loop_of),
        "bubble": bubble_alone(frame, ["config", GLOBAL_BATCH]),
        "closed_form": [closed_form("1f1b", 4, m) for m in micro_batches],
        "overhead_percent":
        100 * (1 / frame["training_normalised_fraction"] - 1),
        "filler_throughput": frame["filler_normalised_fraction"].fillna(0.0),
        "recovered": frame["bubble_recovered_fraction"],
        "beside_percent": 100 * (frame["filler_normalised_fraction"] - in_bubbles)})
