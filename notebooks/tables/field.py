"""Tables of 04_field: other systems' settings, one function a figure.

Each takes the frame of one sweep (configs/figures/field-NAME.json) and returns a frame with units in
its columns' names. What is said against what we find is in field_claims.py.
"""
import json

import pandas

CLUSTER = "/training/synth/cluster"
PLAN = "/training/synth/plan"


def power_setting(text):
    """A run's `power` as a column shows it: 'none', '320 W', '1110 MHz'."""
    power = json.loads(text) if isinstance(text, str) else text
    if "cap_w" in power:
        return f"{power['cap_w']} W"
    return f"{power['clock_mhz']} MHz" if "clock_mhz" in power else "none"


def power(frame):
    """Training alone, decode on a GPU of its own, and both, by limit.

    A GPU of the filler's own is what normalises its requests. What decode draws alone is idle power
    and its energy above idle a request times those requests: `idle_w` is what a GPU draws that
    computes nothing, from the device's file.
    """
    rows = []
    for limit, part in frame.assign(limit=frame["/power"].map(power_setting)).groupby(
            "limit", sort=False):
        alone = part[part["policy"] == "exclusive"].iloc[0]
        both = part[part["policy"] == "mps"].iloc[0]
        own = both["filler_requests_per_s"] / (
            both["filler_normalised_fraction"] * both["filler_gpus"])
        rows.append({
            "limit": limit, "clock_mhz": alone["gpu_clock_mean_mhz"],
            "training_per_s": alone["training_iterations_per_s"],
            "training_w": alone["gpu_power_mean_w"],
            "iteration_j": alone["training_iteration_energy_j"],
            "decode_per_s": own, "decode_above_idle_w": own * both["filler_request_energy_j"],
            "both_w": both["gpu_power_mean_w"], "both_peak_w": both["gpu_power_peak_w"],
            "both_clock_mhz": both["gpu_clock_mean_mhz"],
            "both_training_kept": both["training_normalised_fraction"]})
    table = pandas.DataFrame(rows)
    first = table.iloc[0]
    for name in ("training", "decode"):
        table[f"{name}_lost"] = 1 - table[f"{name}_per_s"] / first[f"{name}_per_s"]
    return table


def plan_parts(text):
    """What of ZeRO++ a plan has: 'ZeRO-3', 'hpZ', 'hpZ + qwZ', 'ZeRO++'."""
    named = {"zero3-384": "ZeRO-3", "zeropp-384": "ZeRO++"}
    if text in named:
        return named[text]
    parameters = json.loads(text)["parameters"]
    return "hpZ + qwZ" if "element_bytes" in parameters else "hpZ"


def zero(frame):
    """Iterations of each part of ZeRO++ against ZeRO-3's, by network."""
    table = pandas.DataFrame({
        "cluster": frame[CLUSTER], "parts": frame[PLAN].map(plan_parts),
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3})
    base = table[table["parts"] == "ZeRO-3"].set_index("cluster")["iteration_s"]
    table["gain"] = table["cluster"].map(base) / table["iteration_s"]
    return table


def experts(frame):
    """Iterations by skew and placement; the skew's cost, and the placement's gain."""
    table = pandas.DataFrame({
        "group": frame[PLAN + "/tensor"].map(
            lambda tensor: "inside a node" if tensor == 1 else "over nodes"),
        "zipf": frame[PLAN + "/routing/zipf"], "placement": frame[PLAN + "/routing/placement"],
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3})
    wide = table.pivot(index=["group", "zipf"], columns="placement", values="iteration_s")
    wide = wide.reset_index().rename_axis(columns=None)
    even = wide[wide["zipf"] == 0].set_index("group")["contiguous"]
    wide["skew_costs"] = wide["contiguous"] / wide["group"].map(even) - 1
    wide["placement_gains"] = wide["contiguous"] / wide["balanced"] - 1
    return wide


def paths(frame):
    """Iterations by how flows take up-links, against flows that are spread over all of them."""
    table = pandas.DataFrame({
        "flows": frame[CLUSTER].str.replace("h800-clos-", "", regex=False),
        "iteration_s": frame["training_iteration_mean_ms"] / 1e3})
    spread = table.loc[table["flows"] == "spread", "iteration_s"].iloc[0]
    table["throughput_kept"] = spread / table["iteration_s"]
    return table
