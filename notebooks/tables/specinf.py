"""SpecInF's figures (arXiv 2503.02550): what inference gains beside training, and what it costs it.

Fractions are of 1: training's iterations a second over those of the job alone, inference's requests
a second over those of the same services on as many GPUs of their own. Latencies are in ms. The
paper's algorithm is not public; the policy is reconstructed (policies/specinf.cpp).
"""
import json

import pandas

from . import results

MODES = {"dp": "DP", "mp": "MP", "pp": "PP"}
# The paper's; which of them is trained how is inferred.
MODELS = {"bert-base": "BERT-base", "roberta-large": "RoBERTa-large", "llama2-7b": "LLaMA2-7B",
          "chatglm-6b": "ChatGLM-6B", "resnet152": "ResNet152", "vgg19": "VGG19",
          "gpt2-large": "GPT2-large"}
POLICIES = ["exclusive", "tgs", "mps", "specinf", "specinf_equal"]
BUDGET = "0.02"  # of training, by default
CELL = ["mode", "job", "inference", "policy"]
TRAINING_COLUMNS = ["training_normalised_fraction", "training_normalised_fraction_half"]
MODEL = "/training/synth/model"
# The mechanism's parts, and the parameters that stand for one of them changed or off.
PARTS = [
    ("as it is", "SpecInF, defaults", {}),
    ("speculation", "begins with 10 us", {"first": "10us"}),
    ("speculation", "begins with 1 ms", {"first": "1ms"}),
    ("speculation", "never grows", {"growth": "0"}),
    ("speculation", "grows four times as fast", {"growth": "2"}),
    ("budget", "0.5 %", {"budget": "0.005"}),
    ("budget", "5 %", {"budget": "0.05"}),
    ("budget", "10 %", {"budget": "0.1"}),
    ("budget", "20 %", {"budget": "0.2"}),
    ("budget", "spent within 3 s", {"horizon": "3s"}),
    ("priority", "requests below training", {"priority": "fixed"}),
    ("sharing", "streams of one process", {"sharing": "one_process"}),
    ("gate", "asks for nothing", {"ask": "0ns", "tell": "0ns"}),
    ("rule", "none (MPS)", None),
]
# PARTS that another policy stands for.
OTHER_RULES = {"none (MPS)": "mps"}


def name(model):
    """What a model is called in figures."""
    return MODELS.get(model, model)


def policy_order(frame):
    """The rows with POLICIES first, in their order, so that legends of all figures agree."""
    place = {p: i for i, p in enumerate(POLICIES)}
    order = frame["policy"].map(lambda p: place.get(p, len(place)))
    return frame.assign(_order=order).sort_values("_order", kind="stable").drop(columns="_order")


def cells(frame, mode):
    """A row a job, inference model, policy and seed."""
    return pandas.DataFrame({
        "mode": MODES[mode], "job": frame[MODEL].map(name),
        "inference": frame["/fillers/0/name"].map(name), "policy": frame["policy"],
        "seed": frame["seed"], "training": frame["training_normalised_fraction"],
        "filler": frame["filler_normalised_fraction"], "p95_ms": frame["latency_p95_ms"],
        "p95_is_bound": frame["requests_unfinished"] > 0.05 * frame["requests_arrived"],
        "bubbles": frame["bubble_fraction"], "recovered": frame["bubble_recovered_fraction"],
        "gpus": frame["filler_gpus_admitted"], "of_gpus": frame["filler_gpus"],
        "budget": results.parameter(frame, "budget")})


def offline(mode):
    """Figures 4 to 6, offline: a row a job, inference model and policy; nothing is drawn by chance.
    """
    frame = policy_order(cells(results.sweep(f"specinf-{mode}"), mode))
    return frame.drop(columns=["seed", "p95_ms", "p95_is_bound", "budget"]).reset_index(drop=True)


def at_equal_cost(frame):
    """As specinf_equal, for each cell, the budget (the default aside) that costs training most and
    still no more than MPS does, to half a point; none: no such row.
    """
    varied = (frame["policy"] == "specinf") & (frame["budget"] != BUDGET)
    kept = [frame[~varied]]
    for _, part in frame.groupby(["mode", "job", "inference"], sort=False):
        bound = part.loc[part["policy"] == "mps", "training"].mean() - 0.005
        ours = part[part["policy"] == "specinf"]
        means = ours.groupby("budget")["training"].mean()
        fitting = [b for b in means.index if means[b] >= bound]
        if fitting:
            budget = max(fitting, key=float)
            kept.append(ours[ours["budget"] == budget].assign(policy="specinf_equal"))
    return pandas.concat(kept, ignore_index=True)


def online(mode):
    """Figures 4 to 6, online: means over seeds and half of their 95 % intervals."""
    frame = policy_order(at_equal_cost(cells(results.sweep(f"specinf-{mode}-online"), mode)))
    frame["p95_ms"] = frame["p95_ms"].where(frame["policy"] != "exclusive")
    training = results.over_seeds(frame, CELL, "training")
    p95 = results.over_seeds(frame, CELL, "p95_ms")
    bound = frame.groupby(CELL, sort=False)["p95_is_bound"].any().reset_index()
    return training.rename(columns={"mean": "training", "half": "training_half"}).assign(
        p95_ms=p95["mean"], p95_half=p95["half"], p95_is_bound=bound["p95_is_bound"])


def everywhere(table):
    """A table of all three modes: `everywhere(offline)`."""
    return pandas.concat([table(mode) for mode in MODES], ignore_index=True)


def against(frame, policy, other, column):
    """A row a cell: `column` under `policy`, under `other`, and the first over the second.

    Cells that lack either, or whose second is 0, are left out.
    """
    wide = frame.pivot_table(index=["mode", "job", "inference"], columns="policy", values=column,
                             sort=False)
    if policy not in wide or other not in wide:
        return pandas.DataFrame(columns=["mode", "job", "inference", policy, other, "ratio"])
    wide = wide[[policy, other]].dropna()
    wide = wide[wide[other] > 0].reset_index()
    wide.columns.name = None
    return wide.assign(ratio=wide[policy] / wide[other])


def kept(frame, policy="specinf"):
    """By mode: training and inference under a policy, least, mean and sum of the two's means."""
    part = frame[frame["policy"] == policy]
    table = part.groupby("mode", sort=False).agg(
        training_least=("training", "min"), training_mean=("training", "mean"),
        filler_least=("filler", "min"), filler_mean=("filler", "mean")).reset_index()
    return table.assign(sum_of_means=table["training_mean"] + table["filler_mean"])


def admitted(frame):
    """Where memory leaves room for inference on some GPUs only, or on none."""
    part = frame[(frame["policy"] != "exclusive") & (frame["gpus"] < frame["of_gpus"])]
    return part[CELL + ["gpus", "of_gpus"]].reset_index(drop=True)


def over_time(run, policy, steps=1):
    """How each GPU is used over time, a row a GPU and sample; `steps` samples joined in one.

    Of policies of one name in a run the first is taken.
    """
    frame = results.usage(run)
    frame = frame[frame["policy"] == policy]
    first = frame["policy_index"] == frame["policy_index"].min()
    frame = frame[first].sort_values(["gpu", "from_ms"]).copy()
    frame["step"] = frame.groupby("gpu").cumcount() // steps
    frame["ms"] = frame["to_ms"] - frame["from_ms"]
    shares = [c for c in frame.columns if c.endswith("_fraction")]
    frame[shares] = frame[shares].mul(frame["ms"], axis=0)
    out = frame.groupby(["gpu", "step"]).agg(
        {**{c: "sum" for c in shares}, "ms": "sum", "from_ms": "min", "to_ms": "max",
         "memory_bytes": "max"})
    out[shares] = out[shares].div(out["ms"], axis=0)
    return out.reset_index().assign(s=lambda f: (f["from_ms"] + f["to_ms"]) / 2e3)


def device_bytes(device):
    """Memory of a file of configs/devices."""
    path = results.CONFIGS / "devices" / f"{device}.json"
    return float(json.loads(path.read_text(encoding="utf-8"))["memory"]["value"].rstrip("B"))


def occupancy(runs, services, memory):
    """Figure 2: a row a training job alone and an inference service alone, means over its GPUs.

    `runs` and `services` are names of runs; `memory` that of a GPU, in bytes.
    """
    rows = []
    for label, run in runs.items():
        gpus = results.run(run)["policies"][0]["gpus"]
        mean = pandas.DataFrame(gpus).mean(numeric_only=True)
        rows.append({"what": label, "busy": mean["busy_fraction"],
                     "computing": mean["busy_without_collectives_fraction"],
                     "sm": mean["training_sm_fraction"],
                     "memory": mean["memory_high_water_bytes"] / memory})
    for each in results.run(services)["baseline"]["fillers"]:
        model, mode = each["name"].rsplit("-", 1)
        rows.append({"what": f"{name(model)} {mode}", "busy": each["busy_fraction"],
                     "computing": each["busy_fraction"], "sm": each["sm_fraction"],
                     "memory": each["memory_high_water_bytes"] / memory})
    return pandas.DataFrame(rows)


def causes(runs):
    """What training alone waits for: a row a job, fractions of its time.

    `nccl`: an exchange, or a stage's turn, which is a receive too; `host`: nothing runs.
    """
    rows = []
    for label, run in runs.items():
        report = results.run(run)["policies"][0]
        window = (report["simulated_ns"] - report["warmup_ns"]) * len(report["gpus"])
        row = {"what": label, "nccl": 0.0, "host": 0.0}
        for gpu in report["gpus"]:
            for bubble in gpu["bubbles"]:
                kind = "nccl" if bubble["cause"] == "collective" else "host"
                row[kind] += bubble["time_ns"] / window
        rows.append(row)
    return pandas.DataFrame(rows)


def job_of(text):
    """What a training job of a swept `/training` is called: RoBERTa-large, DP."""
    synth = json.loads(text)["synth"]
    plan = synth["plan"]
    mode = {"sequential": "MP", "1f1b": "PP"}.get(plan.get("schedule"), "DP")
    return f"{name(synth['model'])}, {mode}"


def jobs_over_seeds(sweep, columns, by=("job", "filler", "series")):
    """Means of `columns` over seeds, each with its half interval, of a sweep over `/training`."""
    frame = results.sweep(sweep)
    frame["job"] = frame["/training"].map(job_of)
    frame["series"] = frame["policy"]
    by = list(by) + [c for c in frame.columns if c.endswith("rate_per_s") and c.startswith("/")]
    out = None
    for column in columns:
        part = results.over_seeds(frame, by, column).rename(
            columns={"mean": column, "half": column + "_half"})
        out = part if out is None else out.assign(
            **{c: part[c] for c in (column, column + "_half")})
    return out


def parts():
    """A row a job, mode of inference and variant of PARTS."""
    frame = results.sweep("specinf-parts")
    defaults = results.parameters(
        frame.loc[frame["policy"] == "specinf", "policy_parameters"].iloc[0])
    rows = []
    for _, row in frame.iterrows():
        found = results.parameters(row["policy_parameters"])
        for part, label, change in PARTS:
            same = (row["policy"] == OTHER_RULES[label] if change is None
                    else row["policy"] == "specinf" and found == {**defaults, **change})
            if same:
                rows.append({
                    "job": job_of(row["/training"]), "mode": row["filler_mode"], "part": part,
                    "variant": label, "training": row["training_normalised_fraction"],
                    "filler": row["filler_normalised_fraction"], "p95_ms": row["latency_p95_ms"],
                    "recovered": row["bubble_recovered_fraction"], "holds": row["policy_holds"]})
    out = pandas.DataFrame(rows)
    order = {label: i for i, (_, label, _) in enumerate(PARTS)}
    return out.sort_values("variant", key=lambda c: c.map(order), kind="stable").reset_index(
        drop=True)


def overhead():
    """What the gate costs a job beside a service that hardly asks, and how often it is called."""
    out = jobs_over_seeds("specinf-overhead", ["training_normalised_fraction", "policy_calls",
                                               "policy_holds", "policy_hold_mean_ms",
                                               "simulated_s", "ranks"])
    rate = [c for c in out.columns if c.startswith("/fillers")][0]
    out = out[out["series"] != "exclusive"]
    return pandas.DataFrame({
        "job": out["job"], "requests_per_gpu_per_s": out[rate] / out["ranks"],
        "policy": out["series"], "training": out["training_normalised_fraction"],
        "calls_per_gpu_per_s": out["policy_calls"] / out["simulated_s"] / out["ranks"],
        "holds": out["policy_holds"], "hold_mean_ms": out["policy_hold_mean_ms"]}).reset_index(
            drop=True)


def grains(runs, report_s=5.0):
    """What part of TGS's report one iteration of training alone is: a row a job."""
    rows = []
    for label, run in runs.items():
        length_s = results.run(run)["baseline"]["training_iteration_mean_ns"] / 1e9
        rows.append({"what": label, "iteration_s": length_s,
                     "iteration_of_a_report": length_s / report_s})
    return pandas.DataFrame(rows)


def alternatives(run):
    """A row a policy of a run: what it cost training and gave inference, and what was changed.

    What was changed is told against the first policy of the same name.
    """
    rows, first = [], {}
    for each in results.run(run)["policies"]:
        found = {p["name"]: p["value"] for p in each["parameters"]}
        usual = first.setdefault(each["policy"], found)
        rows.append({
            "policy": each["policy"],
            "changed": "; ".join(f"{n}={v}" for n, v in found.items() if usual[n] != v),
            "training": each["training"]["normalised_fraction"],
            "filler": sum(f["normalised_fraction"] or 0 for f in each["fillers"])})
    return pandas.DataFrame(rows)


def network():
    """DP's jobs on two networks: a row a job, network and policy."""
    frame = results.sweep("specinf-network")
    node = frame["/training/synth/cluster"].map(
        {"a100-40gb-4": "NVLink", "rtx6000ada-4": "PCIe 4.0"})
    return pandas.DataFrame({
        "job": frame[MODEL].map(name) + ", " + node, "series": frame["policy"],
        "bubbles_alone": frame["bubble_fraction"].where(frame["policy"] == "exclusive"),
        "training": frame["training_normalised_fraction"],
        "filler": frame["filler_normalised_fraction"]})
