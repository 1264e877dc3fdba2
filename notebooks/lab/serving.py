"""Measured runs of a language-model server: the same requests on a server with the same settings,
simulated alone.

Figures are those of LLMServingSim's `bench validate` (bench/core/validate.py), on both sides: time
to first token and latency count from the instant at which the engine queued the request (arrivals
are of another clock), time per output token is (last - first) / (tokens - 1), and percentiles lie
between two values."""
from __future__ import annotations

import json
import os
import tempfile
from argparse import ArgumentParser, Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from bubblesim import _core, layers
from bubblesim._table import write_file
from lab.bundle import Bundle, counter
from lab.report import Errors, Fault, check_judged, csv_cell, json_text, quantile, text_table

TIMES = ("ttft", "tpot", "latency")
PERCENTILES = (50, 90, 95, 99)
SHARED_UNKNOWN = counter(
    "notice", "runs with a prefix cache whose prompts are not known (--prompts): none of their "
    "tokens is taken as cached")
# LLMServingSim 2 on its own runs: bench/examples/*/validation/summary.txt at 5daddb2, the mean of
# the fifteen absolute errors.
PEER = "LLMServingSim 2"
PEER_ERRORS = {"RTX4090/Llama-3.1-8B": 0.005, "RTXPRO6000/Llama-3.1-8B": 0.021}


@dataclass(frozen=True)
class Figure:
    name: str         # "ttft_p95"
    measured: float   # ms
    simulated: float

    @property
    def error(self) -> float:
        return self.simulated / self.measured - 1


def simulated_times(request: dict, tokens: int) -> tuple[float, float | None, float]:
    first, last, queued = (request[key] for key in ("first_token_ns", "last_token_ns", "queued_ns"))
    tpot = 1e3 * ((last - first) // (tokens - 1) * 1e-9) if tokens > 1 else None
    return 1e3 * ((first - queued) * 1e-9), tpot, 1e3 * ((last - queued) * 1e-9)


def figures_of(measured: list, simulated: list) -> list[Figure]:
    out = []
    for at, time in enumerate(TIMES):
        sides = [[times[at] for times in side if times[at] is not None]
                 for side in (measured, simulated)]
        if not sides[0]:
            continue
        out.append(Figure(f"{time}_mean", *(sum(side) / len(side) for side in sides)))
        ordered = [sorted(side) for side in sides]
        out += [Figure(f"{time}_p{percent}", *(quantile(side, percent) for side in ordered))
                for percent in PERCENTILES]
    return out


class Judged:
    """A bundle beside its simulation. `layers` and `steps`: files that step times are from; empty:
    the kernel model."""

    def __init__(self, bundle: Bundle, engine: str, layers: str, steps: str) -> None:
        self.bundle = bundle
        given = [(request.name, bundle.arrival_ns(request), request.prompt_tokens,
                  request.output_tokens, request.hashes) for request in bundle.requests]
        self.served = json.loads(_core.serve_measured(
            json_text(bundle.settings), given, bundle.block_size, engine, layers, steps))
        self.measured = [request.times() for request in bundle.requests]
        self.simulated = [simulated_times(served, request.output_tokens) for served, request
                          in zip(self.served["requests"], bundle.requests)]
        self.figures = figures_of(self.measured, self.simulated)
        for figure in self.figures:
            if figure.measured <= 0:
                raise Fault(f"its {figure.name} is measured as {figure.measured} ms; expected more "
                            "than 0", bundle.folder)
        self.errors = Errors.of([(figure.error, figure.name) for figure in self.figures])
        self.peer = PEER_ERRORS.get(bundle.label)
        counters = self.served["counters"] | bundle.ignored
        if self.served["prefix_caching"] and not bundle.prompts_known:
            counters["prompts_shared_unknown"] = SHARED_UNKNOWN
        self.counters = dict(sorted(counters.items()))

    def summary(self) -> str:
        served = self.served
        out = (f"  mean |error| {100 * self.errors.mean_absolute:.2f} %, worst "
               f"{100 * self.errors.worst:+.2f} % ({self.errors.worst_label})")
        if self.peer is not None:
            out += f"; {PEER}: {100 * self.peer:.1f} %"
        out += (f"\n  {len(self.bundle.requests)} requests, {served['steps']} steps, "
                f"{served['preemptions']} preemptions")
        if served["prefix_hit_tokens"]:
            out += f", {served['prefix_hit_tokens']} tokens of prompts were in the cache"
        return out + "\n" + "".join(
            f"  {one['severity']} {name}: {one['count']} ({one['help']})\n"
            for name, one in self.counters.items())

    def text(self, figures: bool) -> str:
        head = (f"{self.bundle.label} on {self.served['gpu']}, step times: "
                f"{self.served['step_times']}\n")
        rows = [("figure", "measured, ms", "simulated, ms", "error")]
        rows += [(figure.name, f"{figure.measured:.2f}", f"{figure.simulated:.2f}",
                  f"{100 * figure.error:+.2f} %") for figure in self.figures]
        return head + (text_table(rows, {0}) if figures else "") + self.summary()

    def figures_csv(self) -> str:
        return "".join(f"{csv_cell(self.bundle.label)},{figure.name},{figure.measured:.4f},"
                       f"{figure.simulated:.4f},{100 * figure.error:.4f}\n"
                       for figure in self.figures)

    def requests_csv(self) -> str:
        first = self.bundle.requests[0].queued
        rows = [[csv_cell(self.bundle.label), csv_cell(request.name),
                 f"{request.queued - first:.6f}", str(served["preemptions"]),
                 *("" if time is None else f"{time:.3f}" for time in (*measured, *simulated))]
                for request, served, measured, simulated in zip(
                    self.bundle.requests, self.served["requests"], self.measured, self.simulated)]
        return "".join(",".join(row) + "\n" for row in rows)

    def json(self) -> dict[str, Any]:
        peer = None if self.peer is None else {
            "name": PEER, "mean_absolute_error_percent": 100 * self.peer}
        return {
            "bundle": self.bundle.label, "gpu": self.served["gpu"],
            "step_times": self.served["step_times"],
            "figures": [{"figure": figure.name, "measured_ms": figure.measured,
                         "simulated_ms": figure.simulated, "error_percent": 100 * figure.error}
                        for figure in self.figures],
            "mean_absolute_error_percent": 100 * self.errors.mean_absolute,
            "bias_percent": 100 * self.errors.bias, "worst_error_percent": 100 * self.errors.worst,
            "worst_figure": self.errors.worst_label, "peer": peer,
            "requests": len(self.bundle.requests),
            **{key: self.served[key] for key in ("steps", "preemptions", "prefix_hit_tokens")},
            "counters": self.counters}


def one_each(option: str, paths: Sequence[str], bundles: int) -> list[str]:
    """Files that an option names, one for all bundles or one each, by bundle."""
    if len(paths) not in (0, 1, bundles):
        raise Fault(f"found {len(paths)} for {bundles} bundles; expected one for all, or one "
                    "each, in their order", place=option)
    return list(paths) if len(paths) == bundles else [*paths, ""][:1] * bundles


def layer_files(paths: list[str], folder: str) -> list[str]:
    """Files of layer times; those of profiles are made in the folder."""
    out = []
    for path in paths:
        if os.path.isdir(path):
            document = layers.Profile(path).document()
            path = os.path.join(folder, f"{len(out)}.json")
            Path(path).write_text(json_text(document), encoding="utf-8")
        out.append(path)
    return out


def judge_all(bundles: list[Bundle], options: Namespace, profiles: list[str],
              steps: list[str]) -> list[Judged]:
    with ThreadPoolExecutor() as pool, tempfile.TemporaryDirectory() as folder:
        return list(pool.map(Judged, bundles, [options.engine] * len(bundles),
                             layer_files(profiles, folder), steps))


def judge(options: Namespace) -> int:
    count = len(options.bundles)
    profiles, steps, prompts = (one_each(f"--{name}", getattr(options, name), count)
                              for name in ("layers", "steps", "prompts"))
    bundles = [Bundle(folder) for folder in options.bundles]
    for bundle, path in zip(bundles, prompts):
        if path:
            bundle.add_prompts(path)
    check_judged(options, "bundle,figure,", "{\n  \"format\": \"bubblesim.validate_serving/",
                 [*profiles, *steps, *prompts, *(file for one in bundles for file in one.files)],
                 ("--requests", options.requests, "bundle,request,"))
    judged = judge_all(bundles, options, profiles, steps)
    write_file(options.csv, "bundle,figure,measured_ms,simulated_ms,error_percent\n" +
               "".join(one.figures_csv() for one in judged))
    write_file(options.json, json_text({"format": "bubblesim.validate_serving/1",
                                        "bundles": [one.json() for one in judged]}, 2) + "\n")
    write_file(options.requests,
               "bundle,request,queued_s,preemptions,measured_ttft_ms,measured_tpot_ms,"
               "measured_latency_ms,simulated_ttft_ms,simulated_tpot_ms,simulated_latency_ms\n" +
               "".join(one.requests_csv() for one in judged))
    print("\n".join(one.text(not options.summary) for one in judged), end="")
    return 0


def add_options(parser: ArgumentParser) -> None:
    parser.description = (
        "Measured runs of a language-model server (folders of LLMServingSim's `bench run`): the "
        "same requests on a server with the same settings, simulated alone. Prints time to first "
        "token, time per output token and latency of both, at mean, p50, p90, p95 and p99. Step "
        "times are from --layers or --steps, else from bubblesim's kernel model. What an option "
        "names is for all bundles, or it is given once for each, in their order.")
    parser.add_argument("bundles", metavar="BUNDLE", nargs="+",
                        help="folders with vllm/ and config.json")
    times = parser.add_mutually_exclusive_group()
    times.add_argument("--layers", action="append", default=[],
                       help="layer times: a file of bubblesim.layers, or a profile's folder")
    times.add_argument("--steps", action="append", default=[],
                       help="steps of the engine as a trace shows them, a file of "
                       "bubblesim.steps, that correct the kernel model")
    parser.add_argument("--prompts", action="append", default=[],
                        help="the workload that the bundle was measured with (LLMServingSim's "
                        "workloads/*.jsonl): its token ids say what prompts share, which the "
                        "prefix cache computes once")
    parser.add_argument("--engine", default="vllm-0.19", help="a file of configs/engines")
    parser.add_argument("--requests",
                        help="write every request's times, measured and simulated, as CSV here")
