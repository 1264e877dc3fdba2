"""Tables of 04_field: other systems' settings, one function a figure.

Each takes the frame of one sweep (configs/figures/field-NAME.json) and returns a frame with units
in its columns' names. What is said against what we find is in field_claims.py.
"""
import json

import pandas

CLUSTER = "/training/synth/cluster"
PLAN = "/training/synth/plan"
HASH_SEED = "/training/synth/hash_seed"


def power_setting(text):
    """A run's `power` as a column shows it: 'none', '320 W', '960 W a node', '1110 MHz'."""
    power = json.loads(text) if isinstance(text, str) else text
    if "node_cap_w" in power:
        return f"{power['node_cap_w']} W a node"
    if "cap_w" in power:
        return f"{power['cap_w']} W"
    return f"{power['clock_mhz']} MHz" if "clock_mhz" in power else "none"


def power(frame):
    """Training alone, decode on a GPU of its own, and both, by plan and limit.

    `both` is under MPS, `bubbles` under the oracle whose fillers run in bubbles only.
    A GPU of the filler's own is what normalises its requests. What decode draws alone, above idle,
    is its energy a request times those requests.
    """
    rows = []
    for (plan, limit), part in frame.assign(limit=frame["/power"].map(power_setting)).groupby(
            [PLAN, "limit"], sort=False):
        alone = part[part["policy"] == "exclusive"].iloc[0]
        both = part[part["policy"] == "mps"].iloc[0]
        bubbles = part[part["policy"] == "ideal"].iloc[0]
        own = both["filler_requests_per_s"] / (
            both["filler_normalised_fraction"] * both["filler_gpus"])
        rows.append({
            "plan": plan, "limit": limit, "clock_mhz": alone["gpu_clock_mean_mhz"],
            "training_per_s": alone["training_iterations_per_s"],
            "training_w": alone["gpu_power_mean_w"],
            "iteration_j": alone["training_iteration_energy_j"],
            "decode_per_s": own, "decode_above_idle_w": own * both["filler_request_energy_j"],
            "both_w": both["gpu_power_mean_w"], "both_peak_w": both["gpu_power_peak_w"],
            "both_clock_mhz": both["gpu_clock_mean_mhz"],
            "both_training_kept": both["training_normalised_fraction"],
            "bubbles_w": bubbles["gpu_power_mean_w"],
            "bubbles_training_kept": bubbles["training_normalised_fraction"],
            "bubbles_clock_mhz": bubbles["gpu_clock_mean_mhz"]})
    table = pandas.DataFrame(rows)
    for name in ("training", "decode"):
        free = table.groupby("plan")[f"{name}_per_s"].transform("first")
        table[f"{name}_lost"] = 1 - table[f"{name}_per_s"] / free
    return table


def plan_parts(text):
    """What of ZeRO++ a plan has: 'ZeRO-3', 'hpZ', 'hpZ + qwZ', 'ZeRO++'; 'levels': copies in nodes.

    With ' x 8' where a replica has 8 micro-batches.
    """
    named = {"zero3-384": "ZeRO-3", "zeropp-384": "ZeRO++"}
    if text in named:
        return named[text]
    plan = json.loads(text)
    parameters, gradients = plan["parameters"], plan.get("gradients", {})
    if "primary" in parameters:
        parts = "levels"
    elif "element_bytes" in parameters:
        parts = "ZeRO++" if "element_bytes" in gradients else "hpZ + qwZ"
    else:
        parts = "hpZ"
    return parts if micro_batches(text) == 1 else f"{parts} x {micro_batches(text)}"


def micro_batches(text):
    """Micro-batches of a replica, by a plan's text; 1 for a plan given by name."""
    if not text.startswith("{"):
        return 1
    plan = json.loads(text)
    replica = plan.get("data", 1) * plan.get("micro_batch", 1)
    return plan.get("global_batch", replica) // replica


def zero(frame):
    """Iterations of each part of ZeRO++, and throughput against ZeRO-3's, by network."""
    table = pandas.DataFrame({
        "cluster": frame[CLUSTER], "parts": frame[PLAN].map(plan_parts),
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3})
    base = table[table["parts"] == "ZeRO-3"].set_index("cluster")["iteration_s"]
    samples = frame[PLAN].map(micro_batches)
    table["gain"] = table["cluster"].map(base) * samples / table["iteration_s"]
    return table


def overlap_form(text):
    """How a plan's tensor ranks exchange: 'in turn', 'beside', 'beside, 8 SMs, fused'."""
    overlap = json.loads(text).get("tensor_overlap")
    if overlap is None:
        return "in turn"
    parts = ["beside"] + ([f"{overlap['sms']} SMs"] if "sms" in overlap else [])
    return ", ".join(parts + (["fused"] if overlap.get("fused_norm") else []))


def overlap(frame):
    """Iterations by how tensor ranks exchange, against exchanges that computing waits for.

    Tokens are those of a micro-batch; `waiting` is the share of an iteration in which nothing but
    collectives runs, or nothing.
    """
    plans = frame[PLAN].map(json.loads)
    table = pandas.DataFrame({
        "form": frame[PLAN].map(overlap_form),
        "tokens": plans.map(lambda plan: plan["micro_batch"]) * frame[PLAN + "/sequence"],
        "iteration_ms": frame["training_iteration_mean_ms"], "waiting": frame["bubble_fraction"]})
    base = table[table["form"] == "in turn"].set_index("tokens")["iteration_ms"]
    return table.assign(gain=table["tokens"].map(base) / table["iteration_ms"])


def experts(frame):
    """Iterations by skew and placement; the skew's cost, and the placement's gain.

    `waiting` is the mean over ranks of the time in which no kernel but collectives runs: what the
    others wait for the busiest at the all-to-all.
    """
    table = pandas.DataFrame({
        "group": frame[PLAN + "/tensor"].map(
            lambda tensor: "inside a node" if tensor == 1 else "over nodes"),
        "zipf": frame[PLAN + "/routing/zipf"], "placement": frame[PLAN + "/routing/placement"],
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3,
        "waiting": frame["bubble_fraction"]})
    wide = table.pivot(index=["group", "zipf"], columns="placement", values="iteration_s")
    waiting = table[table["placement"] == "contiguous"].set_index(["group", "zipf"])["waiting"]
    wide = wide.assign(waiting=waiting).reset_index().rename_axis(columns=None)
    even = wide[wide["zipf"] == 0].set_index("group")["contiguous"]
    wide["skew_costs"] = wide["contiguous"] / wide["group"].map(even) - 1
    wide["placement_gains"] = wide["contiguous"] / wide["balanced"] - 1
    return wide


def paths(frame):
    """Iterations by how flows take up-links, against flows that are spread over all of them.

    Flows by hash have a row a seed.
    """
    table = pandas.DataFrame({
        "flows": frame[CLUSTER].str.replace("h800-clos-", "", regex=False),
        "hash_seed": frame[HASH_SEED], "iteration_s": frame["training_iteration_mean_ms"] / 1e3})
    spread = table.loc[table["flows"] == "spread", "iteration_s"].iloc[0]
    table["throughput_kept"] = spread / table["iteration_s"]
    return table


def links(frame):
    """Iterations and bubbles while a NIC is slow, against the same job whole.

    `link_gb` is what an iteration moves over the NIC, from what a slower one costs it: the growth
    from the row before, times the NIC's 24 GB/s.
    """
    jobs = frame["/training/synth"].map(json.loads)
    table = pandas.DataFrame({
        "model": jobs.map(lambda job: job["model"]),
        "plan": jobs.map(lambda job: "pipeline" if "pipeline" in job["plan"] else "data parallel"),
        "slowdown": frame["/training/slow_links"].map(
            lambda text: max([1.0] + [link["slowdown"] for link in json.loads(text)])),
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3,
        "bubble": frame["bubble_fraction"]}).sort_values(["plan", "slowdown"], ignore_index=True)
    steps = table.groupby("plan")[["iteration_s", "slowdown"]].diff()
    whole = table[table["slowdown"] == 1].set_index("plan")["iteration_s"]
    return table.assign(iteration_ratio=table["iteration_s"] / table["plan"].map(whole),
                        link_gb=24 * steps["iteration_s"] / steps["slowdown"])


def faults(frame):
    """Iterations and bubbles while a rank is slow, against the same job whole."""
    table = pandas.DataFrame({
        "plan": frame[PLAN], "slowdown": frame["/training/stragglers"].map(
            lambda text: max([1.0] + [each["slowdown"] for each in json.loads(text)])),
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3,
        "bubble": frame["bubble_fraction"]})
    whole = table[table["slowdown"] == 1].set_index("plan")["iteration_s"]
    return table.assign(iteration_ratio=table["iteration_s"] / table["plan"].map(whole))


def goodput(faults_per_day, slow, until_found_s, restart_s, checkpoint_s):
    """Share of a day's work that a job keeps.

    A fault slows the job, to iterations `slow` times as long (infinity: it stands still), until it
    is found; then the job restarts, and does again what it did since the last checkpoint, half of
    an interval on average.
    """
    lost = until_found_s * (1 - 1 / slow) + restart_s + checkpoint_s / 2
    return max(0.0, 1 - faults_per_day * lost / 86_400)


# A fault that stops the job, found by people and by C4D: free choices of the order that summaries
# of C4 name (hours to days; seconds), with a restart of ten minutes and a checkpoint every ten.
DAYS = {"found by people": 6 * 3600.0, "found in 30 s": 30.0}


def days(faults_per_day=(0.5, 1.0, 1.5, 2.0)):
    """Goodput over a day by how a fault is found."""
    return pandas.DataFrame([
        {"found": found, "faults_per_day": count,
         "goodput": goodput(count, float("inf"), seconds, 600.0, 600.0)}
        for found, seconds in DAYS.items() for count in faults_per_day])


def span_s(text):
    """A span of a config in seconds: '500ms', '2s'."""
    for unit, seconds in (("ms", 1e-3), ("s", 1.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * seconds
    raise ValueError(f"{text!r}: found no span in ms or s")


def outages(frame):
    """One fault by how it is found and how often the job is checkpointed, beside the closed form.

    `kept` is goodput over what the same job does without faults; `closed_form` takes the fault's
    spans and the iterations since the last checkpoint off the measured window.
    """
    faults = frame["/training/faults"].map(json.loads)
    seconds = faults.map(lambda faults: sum(
        span_s(fault[key]) for fault in faults
        for key in ("detection", "restart")))
    table = pandas.DataFrame({
        "stands_still_s": seconds, "checkpoint_every": frame["/training/checkpoint_every"],
        "policy": frame["policy"],
        "goodput_per_s": frame["training_goodput_per_s"].fillna(
            frame["training_iterations_per_s"]),
        "redone": frame["training_redone_iterations"].fillna(0),
        "bubble": frame["bubble_fraction"], "filler_per_s": frame["filler_requests_per_s"],
        "window_s": frame["simulated_s"] - frame["warmup_s"]})
    whole = table[table["stands_still_s"] == 0].groupby("policy")["goodput_per_s"].first()
    rate = table["policy"].map(whole)
    table["kept"] = table["goodput_per_s"] / rate
    lost = table["stands_still_s"] + table["redone"] / rate
    return table.assign(closed_form=1 - lost / table["window_s"])


def host_form(text):
    """What a plan keeps on the host: 'nothing', '50 % of activations, 6.5 GB/s', 'optimiser'."""
    host = json.loads(text).get("host")
    if host is None:
        return "nothing"
    if "checkpoint_every" in host:
        form = "checkpoint"
    elif "optimizer_per_s" in host:
        form = "optimiser"
    else:
        form = f"{100 * host['activations']:.0f} % of activations"
    rate = host.get("bandwidth_gb_per_s")
    return form if rate is None else f"{form}, {rate:g} GB/s"


def host(frame):
    """What training keeps on the host: its cost, its memory, and on how many GPUs a filler fits."""
    alone = frame[frame["policy"] == "exclusive"].set_index(PLAN)
    both = frame[frame["policy"] == "mps"].set_index(PLAN)
    table = pandas.DataFrame({
        "on_host": alone.index.map(host_form),
        "iteration_s": (alone["training_iteration_mean_ms"] / 1e3).to_numpy(),
        "training_gb": (alone["memory_high_water_bytes"] / 1e9).to_numpy(),
        "filler_gpus": both.loc[alone.index, "filler_gpus_admitted"].to_numpy(),
        "filler_per_s": both.loc[alone.index, "filler_requests_per_s"].to_numpy()})
    nothing = table.loc[table["on_host"] == "nothing", "iteration_s"].iloc[0]
    return table.assign(costs=table["iteration_s"] / nothing - 1)


def rollout_form(text):
    """How long a plan's responses are: 'no rollout', 'even', 'cv 1', 'cv 1, spare 1.25'."""
    lengths = json.loads(text).get("rollout")
    if lengths is None:
        return "no rollout"
    form = "even" if lengths["cv"] < 0.1 else f"cv {lengths['cv']:g}"
    return form if "spare" not in lengths else f"{form}, spare {lengths['spare']:g}"


def rollout(frame):
    """Iterations with rollouts by their lengths: the rollout's share, the wait, what fills it."""
    table = pandas.DataFrame({
        "lengths": frame[PLAN].map(rollout_form), "policy": frame["policy"],
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3,
        "waiting": frame["bubble_fraction"], "kept": frame["training_normalised_fraction"],
        "filler": frame["filler_normalised_fraction"]})
    plain = table[table["lengths"] == "no rollout"].set_index("policy")["iteration_s"]
    return table.assign(rollout=1 - table["policy"].map(plain) / table["iteration_s"])


def phases(frame):
    """GPUs that generate and GPUs that train: an iteration by when a rollout may begin, against the
    closed form of its phases; who idles how long, and steps a GPU-hour against one job in turn."""
    plans = frame[PLAN].map(json.loads).map(lambda plan: plan.get("rollout"))
    form = plans.map(lambda plan: "training alone" if plan is None else
                     "2 jobs" if plan.get("jobs", 1) > 1 else
                     "a step behind" if plan.get("staleness", 0) else "in turn")
    table = pandas.DataFrame({
        "most_tokens": plans.map(lambda plan: 0 if plan is None else plan["most_tokens"]),
        "form": form, "iteration_s": frame["training_iteration_mean_ms"] / 1e3,
        "idle": frame["bubble_fraction"]})
    trains = table.loc[table["form"] == "training alone", "iteration_s"].iloc[0]
    table = table[table["form"] != "training alone"].copy()
    in_turn = table[table["form"] == "in turn"].set_index("most_tokens")["iteration_s"]
    generates = table["most_tokens"].map(in_turn) - trains
    longer = generates.clip(lower=trains)
    table["closed_form_s"] = longer.where(table["form"] != "in turn", generates + trains)
    table["trainers_idle"] = 1 - trains / table["iteration_s"]
    table["generators_idle"] = 1 - generates / table["iteration_s"]
    table["gain"] = (generates + trains) / table["iteration_s"]
    return table.reset_index(drop=True)


def speculation(frame):
    """Requests a second on a GPU of one's own, by how often a drafted token is accepted."""
    programs = frame["/fillers/0/program"].map(json.loads)
    table = pandas.DataFrame({
        "acceptance": programs.map(lambda p: p.get("speculation", {}).get("acceptance", 0.0)),
        "requests_per_s": frame["filler_requests_per_s"] / frame["filler_normalised_fraction"]})
    plain = table.loc[table["acceptance"] == 0, "requests_per_s"].iloc[0]
    return table.assign(gain=table["requests_per_s"] / plain)


def stages(frame):
    """Iterations of a chain of stages, of a graph, and of one with larger micro-batches."""
    def form(text):
        stages = json.loads(text)
        chained = all(stage["after"] == [i - 1] for i, stage in enumerate(stages) if i)
        size = stages[0].get("micro_batch", 1)
        return "chain" if chained else f"graph, micro-batches x {size}"
    table = pandas.DataFrame({
        "stages": frame[PLAN + "/stages"].map(form),
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3})
    chain = table.loc[table["stages"] == "chain", "iteration_s"].iloc[0]
    return table.assign(gain=chain / table["iteration_s"])


def regions(frame):
    """Iterations by how regions synchronise, against an exchange in every one."""
    table = pandas.DataFrame({
        "cluster": frame[CLUSTER], "synchronised": frame["config"],
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3})
    base = table[table["synchronised"] == "synchronous"].set_index("cluster")["iteration_s"]
    return table.assign(gain=table["cluster"].map(base) / table["iteration_s"])


def sharing(frame):
    """Training kept and filler throughput by policy."""
    return pandas.DataFrame({
        "policy": frame["policy"], "training_kept": frame["training_normalised_fraction"],
        "filler_throughput": frame["filler_normalised_fraction"]})


def apart(frame):
    """Requests a second and what users wait for, by how many of 8 GPUs compute prompts."""
    return pandas.DataFrame({
        "prefill_gpus": frame["/fillers/0/program/engine/prefill/gpus"],
        "requests_per_s": frame["filler_requests_per_s"],
        "ttft_p50_ms": frame["ttft_p50_ms"], "tbt_p50_ms": frame["tbt_p50_ms"],
        "tbt_p99_ms": frame["tbt_p99_ms"]})


SWAPS = {"blocks": "block by block", "groups": "groups of 20 blocks",
         "beside": "groups, beside the steps", "reuse": "groups, beside, copies kept"}


def swaps(frame):
    """Tails of TTFT and of the time between tokens under a tight cache; means over seeds."""
    columns = ["ttft_p95_ms", "ttft_p99_ms", "tbt_p99_ms", "tbt_max_ms", "server_preemptions"]
    table = frame.groupby("config", sort=False)[columns].mean().reset_index()
    return table.assign(config=table["config"].map(SWAPS)).rename(columns={"config": "swapped"})
