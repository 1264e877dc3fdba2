"""PipeFill's figures (MLSys 2025, arXiv 2410.07192): what bubbles hold, what filling them gives.

The main job: 40B parameters, 16 stages of 8 GPUs, a fixed global batch; more GPUs, more replicas,
fewer micro-batches a pipeline. One GPU a stage is simulated. Fractions are of 1, rates of a second,
FLOPs useful ones (flops.py). A fill job's work "in GPUs" is its rate over that of a GPU of its own.
"""
import json

import pandas

from . import draw, flops, results

PLAN = "/training/synth/plan/"
PROGRAM = "/fillers/0/program"
SCALES = ("1k", "2k", "4k", "8k", "16k")
# PipeFill's contexts have time slices by default; under MPS they run at once.
SHARINGS = {"time_sliced": "pipefill", "spatial": "PipeFill, MPS"}
# The order in which figures show them.
TURN = {"exclusive": 0, "pipefill": 1, "PipeFill, MPS": 2}
# Tokens to train on: those of GPT-3 (Brown et al. 2020, section 2.2), a free choice.
TOKENS = 300e9
DAY_S = 86400


def config(name):
    """configs/figures/NAME.json."""
    return json.loads((results.CONFIGS / "figures" / f"{name}.json").read_text(encoding="utf-8"))


def job(name):
    """The main job of configs/figures/NAME.json: its `training/synth`."""
    whole = config(name)
    return whole.get("base", whole)["training"]["synth"]


def sharing(frame):
    """Each row's series: a policy, or `PipeFill, MPS`."""
    return results.parameter(frame, "sharing").map(SHARINGS).fillna(frame["policy"])


def slowdown(frame):
    """By what part the main job's iterations are longer than alone."""
    return 1 / frame["training_normalised_fraction"] - 1


def setting(frame, pointer, name):
    """What each row's config has at a pointer: what the sweep put there, else its base's."""
    if pointer in frame:
        return frame[pointer]
    place = config(name)["base"]
    for key in pointer.strip("/").split("/"):
        place = place[int(key)] if isinstance(place, list) else place[key]
    return pandas.Series([place] * len(frame), index=frame.index)


def gpus(frame, name):
    """GPUs of the whole main job, folded ones too."""
    plan = job(name)["plan"]
    return setting(frame, PLAN + "data", name) * plan["tensor"] * plan["pipeline"]


def micro_batches(plan, data):
    """Micro-batches of a pipeline in an iteration."""
    return plan["global_batch"] // (data * plan.get("micro_batch", 1))


def law(stages, micro):
    """The part of a pipeline's time that is bubble, all stages alike: (p - 1) / (m + p - 1)."""
    return (stages - 1) / (micro + stages - 1)


def bubble_row(report, plan):
    """Bubbles of the job alone, from a run's report: fractions of an iteration.

    The last stage has the output layer, is the slowest and waits for the pipeline alone; the others
    wait for it too, in every micro-batch.
    """
    alone = report["baseline"]
    pass_ns = alone["training_iteration_mean_ns"]
    time = [each["time_ns"] / pass_ns for each in alone["bubbles"]]
    pipeline = [each["pipeline_time_ns"] / pass_ns for each in alone["bubbles"]]
    free = [each["free_memory_least_bytes"] / 1e9 for each in alone["bubbles"]]
    return {"gpus": report["world_size"], "micro_batches": micro_batches(plan, plan["data"]),
            "law": law(plan["pipeline"], micro_batches(plan, plan["data"])),
            "last_stage": pipeline[-1], "pipeline": sum(pipeline) / len(pipeline),
            "all": sum(time) / len(time), "free_least_GB": min(free), "free_most_GB": max(free)}


def bubbles():
    """A row a scale: what part of an iteration is bubble, by three measures and by the law."""
    rows = []
    for scale in SCALES:
        name = f"pipefill-bubbles-{scale}"
        rows.append(bubble_row(results.run(name), job(name)["plan"]))
    return pandas.DataFrame(rows)


def days(frame, name="pipefill-scale"):
    """Training time of the job alone over scale: days for TOKENS, and relative to the smallest.

    `law` is (m + p - 1 + 3) relative to the smallest: what the paper's 82, 34 and 26 days follow.
    """
    plan = job(name)["plan"]
    tokens = plan["global_batch"] * flops.model(job(name)["model"])["max_sequence"]
    part = frame[(frame["policy"] == "exclusive") & (frame[PLAN + "schedule"] == "gpipe")]
    part = part.drop_duplicates(PLAN + "data").sort_values(PLAN + "data")
    micro = part[PLAN + "data"].map(lambda data: micro_batches(plan, data))
    slots = micro + plan["pipeline"] - 1 + 3
    seconds = part["training_iteration_mean_ms"] / 1e3
    return pandas.DataFrame({
        "gpus": gpus(part, name), "micro_batches": micro, "iteration_s": seconds,
        "days": TOKENS / tokens * seconds / DAY_S, "relative": seconds / seconds.iloc[0],
        "law": slots / slots.iloc[0]}).reset_index(drop=True)


def paper_days():
    """What a summary says of the paper: days by GPUs, and relative to the first."""
    frame = pandas.DataFrame({"gpus": [1024, 4096, 8192], "days": [82, 34, 26]})
    return frame.assign(relative=frame["days"] / frame["days"].iloc[0])


def main_flops(name):
    """Useful FLOPs of a sample of the main job."""
    return flops.TRAINING_OVER_FORWARD * flops.forward(job(name)["model"])


def programs(frame, name):
    """Model, kind, batch and FLOPs a request of each row's fill job."""
    given = setting(frame, PROGRAM, name)
    given = given.map(lambda value: json.loads(value) if isinstance(value, str) else value)
    return pandas.DataFrame([flops.program(value) for value in given], index=frame.index,
                            columns=["model", "kind", "batch", "request_flops"])


def filled(frame, name):
    """A row a run and policy: utilisation, FLOP/s a GPU, what filling gains, what it costs.

    busy: part of the time in which a kernel that is no collective runs. gain_flops: the fill job's
    FLOP/s over the main job's alone; gain_busy: more busy time over the busy time alone, where the
    frame has the policy `exclusive`.
    """
    frame = frame.reset_index(drop=True)
    out = programs(frame, name)
    out["gpus"] = gpus(frame, name)
    out["schedule"] = setting(frame, PLAN + "schedule", name)
    out["series"] = sharing(frame)
    out["busy"] = frame["gpu_busy_without_collectives_fraction"]
    out["slowdown"] = slowdown(frame)
    out["recovered"] = frame["bubble_recovered_fraction"]
    share = frame["filler_normalised_fraction"].fillna(0.0)
    out["share"] = share
    out["worth_gpus"] = share * out["gpus"]
    main = frame["training_samples_per_s"] * main_flops(name) / out["gpus"]
    out["main_tflops"] = main / 1e12
    rate = frame["filler_requests_per_s"].fillna(0.0) / frame["filler_gpus"]
    out["fill_tflops"] = rate * out.pop("request_flops") / 1e12
    alone = out["main_tflops"] / frame["training_normalised_fraction"]
    out["gain_flops"] = out["fill_tflops"] / alone
    return _gain_busy(out)


def _gain_busy(out):
    by = ["gpus", "schedule", "kind", "model", "batch"]
    alone = out[out["series"] == "exclusive"].drop_duplicates(by)
    joined = out.merge(alone[by + ["busy"]], on=by, how="left", suffixes=("", "_alone"))
    return joined.assign(gain_busy=joined["busy"] / joined.pop("busy_alone") - 1)


def stack(axes, table):
    """Bars of useful FLOP/s a GPU, one a series in each group of GPUs: the main job's, and above
    it in the series' colour the fill job's."""
    scales = list(dict.fromkeys(table["gpus"]))
    looks = draw.looks(dict.fromkeys(table["series"]))
    width = 0.8 / len(looks)
    for i, (series, (colour, _, hatch, _)) in enumerate(looks.items()):
        part = table[table["series"] == series]
        x = [scales.index(g) + (i - (len(looks) - 1) / 2) * width for g in part["gpus"]]
        edge = {"edgecolor": "black", "linewidth": 0.4}
        axes.bar(x, part["main_tflops"], width, color=draw.GREY, **edge,
                 label="main job" if i == 0 else None)
        if part["fill_tflops"].any():
            axes.bar(x, part["fill_tflops"], width, bottom=part["main_tflops"], color=colour,
                     hatch=hatch, label=f"fill job, {draw.label(series)}", **edge)
    axes.set_xticks(range(len(scales)), scales, rotation=45)
    axes.set_ylim(top=1.4 * axes.get_ylim()[1])  # for the legend
    axes.legend()


def types(frame, name="pipefill-types"):
    """A row a kind of fill job, scale and sharing: the batch of most FLOP/s, as PipeFill chooses
    among the configurations of a fill job."""
    out = filled(frame, name)
    order = {model: place for place, model in enumerate(out["model"].unique())}
    by = ["gpus", "kind", "series", "model"]
    best = out.loc[out.groupby(by, sort=False)["fill_tflops"].idxmax()]
    return best.sort_values(by, ignore_index=True, key=lambda column: (
        column.map(order) if column.name == "model" else
        column.map(TURN) if column.name == "series" else column))


def mix(best):
    """Means over the models: what a GPU in turn with each of the fill jobs would see.

    Columns: gpus, series, kind, models, share, worth_gpus, gain_flops, and the largest slowdown.
    """
    groups = best.groupby(["gpus", "series", "kind"], sort=False)
    return groups.agg(
        models=("model", "nunique"), share=("share", "mean"), worth_gpus=("worth_gpus", "mean"),
        gain_flops=("gain_flops", "mean"), slowdown=("slowdown", "max")).reset_index()


def fraction(frame):
    """A row a fill fraction and sharing: means and half intervals over seeds."""
    given = frame.assign(series=sharing(frame), slowdown_percent=100 * slowdown(frame),
                         fill_fraction=results.parameter(frame, "fill_fraction").astype(float),
                         worth_percent=100 * frame["filler_normalised_fraction"])
    out = [results.over_seeds(given, ["series", "fill_fraction"], column).assign(of=column)
           for column in ("slowdown_percent", "worth_percent")]
    return pandas.concat(out, ignore_index=True)


def schedules(table):
    """1F1B's fill work over GPipe's, by scale, kind and series (1: as much)."""
    part = table[table["series"] != "exclusive"]
    wide = part.pivot_table(index=["gpus", "kind", "series"], columns="schedule",
                            values=["share", "slowdown"], sort=False)
    return pandas.DataFrame({
        "ratio": wide["share", "1f1b"] / wide["share", "gpipe"],
        "slowdown_gpipe": wide["slowdown", "gpipe"],
        "slowdown_1f1b": wide["slowdown", "1f1b"]}).reset_index()
