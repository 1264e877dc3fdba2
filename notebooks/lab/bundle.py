"""A measured run of a language-model server, as LLMServingSim's `bench run` records it of vLLM
(github.com/casys-kaist/LLMServingSim, bench/README.md): a folder with
  config.json           the GPUs and their link
  vllm/meta.json        the engine's settings, and what it made of them where it was asked
  vllm/requests.jsonl   each request's tokens, and when it came, was queued and had its tokens
Instants are seconds. `arrival_time` is of the wall clock, the others are of the engine's."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Callable

from lab.report import Fault, half_away, json_text, read_text

LONGEST_SPAN_S = 1e9  # thirty years
BLOCK_SIZE = 16       # vLLM's default


def as_number(value: Any) -> float | None:
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if known and abs(value) < 1e300 else None


def as_count(value: Any) -> int | None:
    number = as_number(value)
    return int(number) if number is not None and 1 <= number <= 4e9 and number % 1 == 0 else None


def as_flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


class Document:
    """A foreign JSON object: what is of no use to us may be of any form."""

    def __init__(self, text: str, file: str, place: str = "") -> None:
        self.file, self.place = file, place
        try:
            self.root = json.loads(text)
        except (ValueError, RecursionError):
            self.root = None
        if not isinstance(self.root, dict):
            raise Fault("is no JSON object", file, place)

    def find(self, *pointers: str) -> Any:
        """The value at the first of the pointers that has one."""
        for pointer in pointers:
            value = self.root
            for key in pointer[1:].split("/"):
                if isinstance(value, list):
                    value = value[int(key)] if int(key) < len(value) else None
                else:
                    value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                return value
        return None

    def text(self, pointer: str) -> str:
        value = self.find(pointer)
        return value if isinstance(value, str) else ""

    def fault(self, pointer: str, expected: str) -> Fault:
        value = self.find(pointer)
        found = "is missing" if value is None else f"found {json_text(value)}"
        return Fault(f"{found}; expected {expected}", self.file, self.place + pointer)

    def needed(self, pointer: str, read: Callable[[Any], Any], expected: str) -> Any:
        value = read(self.find(pointer))
        if value is None:
            raise self.fault(pointer, expected)
        return value

    def count(self, pointer: str) -> int:
        return self.needed(pointer, as_count, "a whole number from 1 on")

    def number(self, pointer: str) -> float:
        return self.needed(pointer, as_number, "a number")


@dataclass
class Request:
    name: str
    prompt_tokens: int
    output_tokens: int
    arrival: float
    queued: float
    first_token: float
    last_token: float
    hashes: list[int] = field(default_factory=list)  # of blocks that other prompts may share

    def times(self) -> tuple[float, float | None, float]:
        """Time to first token, time per token and latency, ms."""
        further = self.output_tokens - 1
        tpot = 1e3 * (self.last_token - self.first_token) / further if further else None
        return 1e3 * (self.first_token - self.queued), tpot, 1e3 * (self.last_token - self.queued)


# Settings that the simulated server does not have: what counts them, its severity and help, where
# they are, and the values that change nothing.
IGNORED = [
    ("scheduling_policy_ignored", "notice",
     "runs whose engine scheduled by another policy than first come, first served; which request "
     "was urgent is not recorded, and all are taken as equal",
     ("/resolved_config/scheduler_config/policy", "/engine_kwargs/scheduling_policy"), ("fcfs",)),
    ("quantization_ignored", "loss",
     "runs with quantized weights (quantization); kernel model and computed cache sizes are those "
     "of bf16", ("/resolved_config/model_config/quantization", "/engine_kwargs/quantization"), ()),
    ("kv_cache_dtype_ignored", "loss",
     "runs whose KV cache has elements of another size (kv_cache_dtype); kernel model and "
     "computed cache sizes are those of bf16",
     ("/resolved_config/cache_config/cache_dtype", "/engine_kwargs/kv_cache_dtype"),
     ("auto", "bfloat16", "float16")),
    ("lora_ignored", "loss",
     "runs whose engine served adapters (LoRA), whose products cost more; the simulated one has none",
     ("/resolved_config/lora_config", "/engine_kwargs/enable_lora"), ("false",)),
    ("structured_outputs_ignored", "notice",
     "runs whose engine was told how to keep outputs to a grammar; no step pays for it here",
     ("/engine_kwargs/structured_outputs_config", "/engine_kwargs/guided_decoding_backend"), ()),
    ("speculative_config_ignored", "loss",
     "runs whose engine drafted tokens (speculative_config); the simulated one drafts none",
     ("/resolved_config/speculative_config", "/engine_kwargs/speculative_config"), ()),
]


def counter(severity: str, text: str) -> dict:
    return {"count": 1, "severity": severity, "help": text}


def ignored_settings(meta: Document) -> dict[str, dict]:
    """Counters by name."""
    out = {}
    for name, severity, text, pointers, harmless in IGNORED:
        value = meta.find(*pointers)
        shown = value if isinstance(value, str) else json_text(value)
        if value is not None and shown not in harmless:
            out[name] = counter(severity, text)
    return out


def capture_sizes(meta: Document) -> list[int] | None:
    """Batch sizes of captured graphs; empty: none were captured; None: not recorded."""
    pointer = "/resolved_config/compilation_config/cudagraph_capture_sizes"
    if meta.find("/resolved_config/model_config/enforce_eager",
                 "/engine_kwargs/enforce_eager") is True:
        return []
    sizes = meta.find(pointer)
    if sizes is None:
        return None
    if not isinstance(sizes, list) or not all(
            type(size) is int and 0 <= size < 1 << 32 for size in sizes):
        raise meta.fault(pointer, "a list of whole numbers")
    return sorted(sizes)


def memory_share(meta: Document) -> float | None:
    pointer = "/kv_cache/gpu_memory_utilization"
    share = as_number(meta.find(pointer))
    if share is not None and not 0 < share <= 1:
        raise meta.fault(pointer, "a share of the GPU's memory, above 0 and at most 1")
    return share


def server_settings(meta: Document, cluster: Document | None) -> dict[str, Any]:
    """The server's settings as far as they were recorded, by the keys of ServerSettings
    (sim/validate/serving/serve_measured.hpp)."""
    if meta.find("/engine_kwargs") is None:
        raise meta.fault("/engine_kwargs", "the engine's settings")
    if not meta.text("/model"):
        raise meta.fault("/model", "the model's name")
    given, scheduler = "/engine_kwargs/", "/resolved_config/scheduler_config/"
    out = {
        "model": meta.text("/model"),
        "max_num_seqs": meta.count(given + "max_num_seqs"),
        "max_num_batched_tokens": meta.count(given + "max_num_batched_tokens"),
        "max_model_len": as_count(meta.find("/resolved_config/model_config/max_model_len",
                                            given + "max_model_len")),
        "tensor": as_count(meta.find(given + "tensor_parallel_size")),
        "data": as_count(meta.find(given + "data_parallel_size")),
        "expert_parallel": as_flag(meta.find(given + "enable_expert_parallel")),
    }
    pipeline = given + "pipeline_parallel_size"
    if (as_count(meta.find(pipeline)) or 1) > 1:
        raise meta.fault(pipeline,
                         "1: no server is simulated whose layers are spread over GPUs")
    out |= {
        "gpu_name": meta.text("/hardware/device_name"),
        "num_gpu_blocks": as_count(meta.find("/kv_cache/num_gpu_blocks")),
        "block_size": as_count(meta.find("/kv_cache/block_size")),
        "prefix_caching": as_flag(meta.find("/kv_cache/enable_prefix_caching")),
        "memory_utilization": memory_share(meta),
        "async_scheduling": as_flag(meta.find(scheduler + "async_scheduling")),
        "reserve_full_prompt": as_flag(meta.find(scheduler + "scheduler_reserve_full_isl")),
        "long_prefill_token_threshold": as_count(meta.find(
            scheduler + "long_prefill_token_threshold", given + "long_prefill_token_threshold")),
        "chunked_prefill": as_flag(meta.find(scheduler + "enable_chunked_prefill",
                                             given + "enable_chunked_prefill")),
        "capture_sizes": capture_sizes(meta),
    }
    if cluster is not None:  # link_bw in GB/s, link_latency in ns
        out |= {"gpu_label": cluster.text("/nodes/0/instances/0/hardware"),
                "link_bytes_per_s": 1e9 * (as_number(cluster.find("/link_bw")) or 0),
                "link_latency_ns": half_away(as_number(cluster.find("/link_latency")) or 0)}
    return {key: value for key, value in out.items() if value is not None}


def measured_request(line: Document) -> Request:
    out = Request(line.text("/request_id"), line.count("/input_toks"), line.count("/output_toks"),
                  line.number("/arrival_time"), line.number("/queued_ts"),
                  line.number("/first_token_ts"), line.number("/last_token_ts"))
    if out.first_token <= out.queued:
        raise line.fault("/first_token_ts", "a time after queued_ts")
    if out.last_token < out.first_token:
        raise line.fault("/last_token_ts", "first_token_ts or later")
    if out.last_token - out.queued > LONGEST_SPAN_S:
        raise line.fault("/last_token_ts", "seconds, at most 1e9 after queued_ts")
    return out


def numbered_lines(text: str) -> list[tuple[int, str]]:
    return list(enumerate(text.removesuffix("\n").split("\n") if text else [], 1))


def measured_requests(path: str) -> list[Request]:
    """By arrival."""
    out, names = [], set()
    for number, line in numbered_lines(read_text(path)):
        if not line.strip(" \r"):
            continue
        document = Document(line, path, f"line {number}")
        out.append(measured_request(document))
        if out[-1].name in names:
            raise document.fault("/request_id", "a name of its own")
        names.update([out[-1].name] if out[-1].name else [])
    if not out:
        raise Fault("holds no request", path)
    out.sort(key=lambda request: request.arrival)
    span = out[-1].arrival - out[0].arrival
    if span > LONGEST_SPAN_S:
        raise Fault(f"'{out[-1].name}' arrives {span:f} s after the first request; expected "
                    "arrival_time in seconds, at most 1e9 apart", path)
    return out


class Bundle:
    """`folder` holds vllm/, or is it."""

    def __init__(self, folder: str) -> None:
        outer = os.path.abspath(folder)
        inner = os.path.join(folder, "vllm")
        if os.path.exists(os.path.join(folder, "meta.json")):
            inner, outer = folder, os.path.dirname(outer)
        self.folder, self.prompts_known = folder, False
        self.label = "/".join(outer.split("/")[-2:])
        meta_path, cluster_path = (os.path.join(inner, "meta.json"),
                                   os.path.join(outer, "config.json"))
        meta = Document(read_text(meta_path), meta_path)
        has_cluster = os.path.exists(cluster_path)
        cluster = Document(read_text(cluster_path), cluster_path) if has_cluster else None
        self.settings = {"bundle": folder, **server_settings(meta, cluster)}
        self.ignored = ignored_settings(meta)
        several = self.settings.get("tensor", 1) * self.settings.get("data", 1) > 1
        if several and not self.settings.get("link_bytes_per_s", 0) > 0:
            raise Fault("no link_bw; a server on several GPUs needs their link", folder,
                        "config.json")
        self.files = [meta_path, cluster_path, os.path.join(inner, "requests.jsonl")]
        self.requests = measured_requests(self.files[-1])

    @property
    def block_size(self) -> int:
        return self.settings.get("block_size", BLOCK_SIZE)

    def arrival_ns(self, request: Request) -> int:
        """Since the first arrival."""
        return half_away(1e9 * (request.arrival - self.requests[0].arrival))

    def add_prompts(self, path: str) -> None:
        """What prompts share, from the token ids of the workload that the run was measured with
        (LLMServingSim's workloads/*.jsonl), whose line n is the request "bench-n". A hash stands
        for a block of the engine and all before it; a block that a prompt does not fill has
        none."""
        by_name = {request.name: request for request in reversed(self.requests)}
        expected = f"expected the {len(self.requests)} of the bundle"
        known: dict[tuple[int, tuple[int, ...]], int] = {}
        lines = numbered_lines(read_text(path))
        for number, line in lines:
            tokens, place = token_ids(line, path, number), f"line {number}"
            request = by_name.get(f"bench-{number - 1}")
            if request is None:
                raise Fault(f"found a request that was not measured; {expected}", path, place)
            if len(tokens) != request.prompt_tokens:
                raise Fault(f"found {len(tokens)} tokens; {request.name} was measured with "
                            f"{request.prompt_tokens}", path, place)
            before = 0
            for end in range(self.block_size, len(tokens) + 1, self.block_size):
                block = tuple(tokens[end - self.block_size:end])
                before = known.setdefault((before, block), len(known) + 1)
                request.hashes.append(before)
        if len(lines) < len(self.requests):
            raise Fault(f"found {len(lines)} requests; {expected}", path)
        self.prompts_known = True


def token_ids(line: str, path: str, number: int) -> list[int]:
    try:
        ids = json.loads(line)["input_tok_ids"]
    except (ValueError, TypeError, KeyError, RecursionError):
        ids = None
    if not isinstance(ids, list) or not all(type(one) is int and 0 <= one < 1 << 32
                                            for one in ids):
        raise Fault('has no token ids; expected a list "input_tok_ids" of numbers below 2^32',
                    path, f"line {number}")
    return ids
