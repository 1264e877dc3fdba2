"""Stages of a load generator against a language-model server, as tables have them: a rate of
requests for so long, and what their client saw. The same requests on a server with the same
settings, simulated alone by the kernel model.

A table's columns: inference-sim's training runs of vLLM. `prompts` x `users` prompts come in turn,
again and again; those of one of `prompts` begin with the same `system_prompt` tokens. From its
second time on all full blocks of a prompt are cached: times between tokens hardly grow with the
rate, as they would if prompts were computed. A token comes in one chunk of the stream or in
several, each of which clients count: how many, whole requests' times say.

What the client and the server's front end take, a client's time to first token holds: the median
over rows marked fit."""
from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Any

from bubblesim import _core
from bubblesim._table import write_file
from lab.report import (Errors, Fault, check_judged, csv_cell, half_away, json_text, quantile,
                        text_table)
from lab.table import Cells, Table, gathered

COLUMNS = ("gpu", "run", "stage", "model", "tp", "max_num_seqs", "max_num_batched_tokens", "rate",
           "duration", "system_prompt", "prompts", "users", "output", "fail", "prompt_len_mean",
           "throughput_requests_per_sec", "e2e_mean_ms", "e2e_p99_ms", "ttft_mean_ms",
           "itl_mean_ms")
BLOCK = 16
# By what tables call them: the name that the driver reports, and the NVLink ports of a server.
# Bandwidth, each direction: NVIDIA H100 data sheet, SXM. Latency of an exchange: vllm-project/vllm
# pull request 24111 reduces 512 KiB in one stage on 2, 4 and 6 H100s in 7, 10 and 13 us, in graphs
# of ten; the median, less 1.2 us for each other GPU's array and graph_gap.
CHIPS = {"H100": ("NVIDIA H100 80GB HBM3", {"link_bytes_per_s": 450e9, "link_latency_ns": 6000,
                                            "fully_connected": True})}
LEAST_SERVED = 0.98  # of what is asked for; a stage that serves less is overloaded
AIMS = {"e2e_mean": 0.05, "e2e_p99": 0.08, "ttft_mean": 0.15, "itl_mean": 0.06}


@dataclass
class Stage:
    label: str
    role: str
    settings: dict[str, Any]
    rate: float
    count: int
    system: int
    prompts: int
    users: int
    prompt_tokens: int
    output_tokens: int
    overloaded: bool
    measured: dict[str, float]  # ms
    chunks: int                 # of the stream a token

    def requests(self) -> list[tuple[str, int, int, int, list[int]]]:
        out = []
        shared, blocks = self.system // BLOCK, self.prompt_tokens // BLOCK
        for at in range(self.count):
            prompt = at % (self.prompts * self.users)
            begins = prompt // self.users  # what its first blocks are of; the others are its own
            hashes = [(begins if block < shared else self.prompts + prompt) << 32 | block
                      for block in range(blocks)]
            out.append((f"request-{at}", half_away(1e9 * at / self.rate), self.prompt_tokens,
                        self.output_tokens, hashes))
        return out


def chip_of(cells: Cells) -> tuple[str, dict[str, Any]]:
    name = cells.text("gpu")
    for chip, known in CHIPS.items():
        if chip in name:
            return known
    raise cells.fault("gpu", f"one of {', '.join(CHIPS)}")


def read_stage(cells: Cells) -> Stage:
    def whole(column: str) -> int:
        return cells.count(column, 1 << 20)
    (gpu, link), rate, output = chip_of(cells), cells.needed("rate"), whole("output")
    measured = {name: cells.needed(f"{name}_ms") for name in AIMS}
    between = measured["e2e_mean"] - measured["ttft_mean"]
    chunks = max(1, half_away(between / measured["itl_mean"] / output))
    measured["itl_mean"] *= chunks
    settings = {"bundle": cells.place, "model": cells.text("model"), "gpu_name": gpu,
                "max_num_seqs": whole("max_num_seqs"), "tensor": whole("tp"),
                "max_num_batched_tokens": whole("max_num_batched_tokens"), "block_size": BLOCK,
                "prefix_caching": True, "async_scheduling": True}
    if settings["tensor"] > 1:
        settings |= link
    served = cells.needed("throughput_requests_per_sec") / rate
    overloaded = served < LEAST_SERVED or (cells.figure("fail") or 0) > 0
    return Stage(f"{cells.text('run')} {cells.text('stage')}", cells.role, settings, rate,
                 half_away(rate * cells.needed("duration")), whole("system_prompt"),
                 whole("prompts"), whole("users"), half_away(cells.needed("prompt_len_mean")),
                 output, overloaded, measured, chunks)


class Judged:
    def __init__(self, stage: Stage, engine: str) -> None:
        self.stage = stage
        given = stage.requests()
        served = json.loads(_core.serve_measured(json_text(stage.settings), given, BLOCK, engine,
                                                 "", ""))
        times = [[1e-6 * (one[key] - request[1]) for key in ("first_token_ns", "last_token_ns")]
                 for one, request in zip(served["requests"], given)]
        first, last = (sorted(side) for side in zip(*times))
        e2e, ttft = sum(last) / len(last), sum(first) / len(first)
        self.simulated = {"e2e_mean": e2e, "e2e_p99": quantile(last, 99), "ttft_mean": ttft,
                          "itl_mean": (e2e - ttft) / (stage.output_tokens - 1)}
        end = 1e9 * stage.count / stage.rate
        done = sum(end / 2 < one["last_token_ns"] <= end for one in served["requests"])
        self.overloaded = done < LEAST_SERVED * stage.count / 2

    @property
    def compared(self) -> bool:
        return not (self.stage.overloaded or self.overloaded)

    def error(self, name: str) -> float:
        return self.simulated[name] / self.stage.measured[name] - 1


def add_front_end(judged: list[Judged]) -> float:
    """ms, the median over fit rows; it is in every request's times."""
    apart = [one.stage.measured["ttft_mean"] - one.simulated["ttft_mean"]
             for one in judged if one.compared and one.stage.role == "fit"]
    front = max(0.0, median(apart)) if apart else 0.0
    for one in judged:
        for name in ("e2e_mean", "e2e_p99", "ttft_mean"):
            one.simulated[name] += front
    return front


def load_text(overloaded: bool) -> str:
    return "overloaded" if overloaded else "served"


def rows_text(judged: list[Judged]) -> str:
    rows = [("role", "stage", "load: measured, simulated",
             *(f"{name}, error" for name in AIMS))]
    for one in judged:
        loads = f"{load_text(one.stage.overloaded)}, {load_text(one.overloaded)}"
        cells = [f"{one.stage.measured[name]:.1f} {100 * one.error(name):+.1f} %"
                 if one.compared else "" for name in AIMS]
        rows.append((one.stage.role, one.stage.label, loads, *cells))
    return text_table(rows, {0, 1, 2}, "")


def summaries(judged: list[Judged]) -> list[dict[str, Any]]:
    out = []
    for role in ("fit", "judge"):
        own = [one for one in judged if one.stage.role == role]
        for name, aim in AIMS.items():
            errors = [(one.error(name), one.stage.label) for one in own if one.compared]
            if errors:
                of = Errors.of(errors)
                middle = median(abs(error) for error, _ in errors)
                out.append({"role": role, "figure": name, "stages": len(errors),
                            "median_absolute_error": middle, "bias": of.bias, "worst": of.worst,
                            "aim": aim, "met": middle <= aim})
    return out


def summary_text(judged: list[Judged], summary: list[dict[str, Any]], front: float) -> str:
    rows = [("role", "figure", "stages", "median |error|", "bias", "worst", "aim")]
    rows += [(one["role"], one["figure"], str(one["stages"]),
              f"{100 * one['median_absolute_error']:.1f} %", f"{100 * one['bias']:+.1f} %",
              f"{100 * one['worst']:+.1f} %",
              f"<= {100 * one['aim']:.0f} %: {'met' if one['met'] else 'missed'}")
             for one in summary]
    right = sum(one.overloaded == one.stage.overloaded for one in judged)
    return (text_table(rows, {0, 1, 6}, "") +
            f"front end and client: {front:.1f} ms, fitted; {right} of {len(judged)} stages are "
            "told rightly to be served or overloaded\n")


def judge(options: Namespace) -> int:
    check_judged(options, "role,stage,figure,", "{\n  \"stages\": [", [options.table])
    table = Table(options.table)
    table.expect(COLUMNS)
    stages = gathered(lambda at: read_stage(Cells(table, at)), len(table))
    if not stages:
        raise Fault("has no row", options.table)
    with ThreadPoolExecutor() as pool:
        judged = list(pool.map(Judged, stages, [options.engine] * len(stages)))
    front = add_front_end(judged)
    summary = summaries(judged)
    write_file(options.csv, "role,stage,figure,measured_ms,simulated_ms,error_percent\n" + "".join(
        f"{one.stage.role},{csv_cell(one.stage.label)},{name},{one.stage.measured[name]:.4f},"
        f"{one.simulated[name]:.4f},{100 * one.error(name):.4f}\n"
        for one in judged if one.compared for name in AIMS))
    write_file(options.json, json_text({"stages": [
        {"stage": one.stage.label, "role": one.stage.role, "overloaded": one.stage.overloaded,
         "overloaded_simulated": one.overloaded, "measured_ms": one.stage.measured,
         "simulated_ms": one.simulated, "chunks_per_token": one.stage.chunks} for one in judged],
        "front_end_ms": front, "summary": summary}, 2) + "\n")
    if not options.summary:
        print(rows_text(judged))
    print(summary_text(judged, summary, front), end="")
    return 0


def add_options(parser: ArgumentParser) -> None:
    parser.description = (
        "Stages of a load generator against a language-model server: time of a request, time to "
        "first token and time between tokens, as a client saw them and as simulated.")
    parser.add_argument("--table", default="../shared/validation/vllm_h100_stages.csv",
                        help="a CSV file with the columns of %(default)s")
    parser.add_argument("--engine", default="vllm-0.19", help="a file of configs/engines")
