"""Measured kernels: public tables and profiler traces as their authors published them, below one
folder as OWNER+REPOSITORY/path, packed or not. Rows are for fitting or for judging by whole models,
never by rows; README.md lists the publishers.
"""
import json
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from bubblesim._table import dict_rows, failed, number_of, read_packed

KINDS = ["gemm", "attention", "convolution", "elementwise", "normalisation", "softmax", "embedding",
         "optimizer"]
PRECISIONS = ["fp32", "tf32", "fp16", "bf16", "fp8"]
BYTES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}


class Work(NamedTuple):
    name: str
    kind: str
    precision: str
    flops: float
    bytes: float
    elements: float
    shape: tuple = (0, 0, 0, 1)  # m, n, k, batch of products


class Row(NamedTuple):
    work: Work
    ns: int
    device: str
    source: str
    role: str


def gemm(name, precision, m, n, k, batch=1):
    size = (m * k + k * n + m * n) * batch * BYTES[precision]
    return Work(name, "gemm", precision, 2 * m * n * k * batch, size, m * n * batch,
                tuple(int(min(max(side, 1), 1e15)) for side in (m, n, k, batch)))


def stream(name, kind, precision, elements, size):
    return Work(name, kind, precision, 0.0, size, elements)


def upper_median(values):
    return sorted(values)[len(values) // 2] if values else 0.0


# ---- Vidur's mlp.csv: a row a number of tokens, times in ms of an operator's CUDA kernels, in
# whole us. Of vLLM's kernels only those that training uses too: its RMS norm, rotary embedding and
# SiLU-and-multiply load element by element, at half the bandwidth of PyTorch's.

def vidur_work(op, tokens, split, heads, kv_heads, hidden, expanded, gated):
    head, own, inner = hidden / heads, heads / split, expanded / split
    kv = max(1.0, kv_heads / split)
    if op == "attn_pre_proj":
        return gemm("qkv gemm", "fp16", tokens, (own + 2 * kv) * head, hidden)
    if op == "attn_post_proj":
        return gemm("attention output gemm", "fp16", tokens, hidden, own * head)
    if op == "mlp_up_proj":
        return gemm("mlp up gemm", "fp16", tokens, (2 if gated else 1) * inner, hidden)
    if op == "mlp_down_proj":
        return gemm("mlp down gemm", "fp16", tokens, hidden, inner)
    if op == "add" and gated:  # phi-2, which is not gated, adds three arrays in two kernels
        return stream("add", "elementwise", "fp16", tokens * hidden, 3 * 2 * tokens * hidden)
    if op == "mlp_act" and not gated:
        return stream("gelu", "elementwise", "fp16", tokens * inner, 2 * 2 * tokens * inner)
    return None


def read_vidur(path):
    columns = ["num_tokens", "num_tensor_parallel_workers", "n_head", "n_kv_head", "n_embd",
               "n_expanded_embd"]
    operators = ["attn_pre_proj", "attn_post_proj", "mlp_up_proj", "mlp_down_proj", "add",
                 "mlp_act"]
    times = {op: f"time_stats.{op}.median" for op in operators}
    table = dict_rows(path, [*columns, "use_gated_mlp", *times.values()])
    for op in operators:
        for row in table:
            shape = [number_of(row[column]) for column in columns]
            known = all(side is not None and side > 0 for side in shape)
            yield (vidur_work(op, *shape, row["use_gated_mlp"] == "True") if known else None,
                   number_of(row[times[op]]), 1e6)


# ---- NeuSight's labels: PyTorch operators in ms between CUDA events, fp32 throughout: linear
# layers reach 50 TFLOP/s, within the CUDA cores' 67 and far from TF32.

LINEAR = (".query", ".key", ".value", ".dense", "fc1", "fc2", "_proj", "lm_head",
          "predictions.decoder")
STREAMS = [("softmax", "softmax", ["function softmax"], ()),
           ("layer norm", "normalisation", ["LayerNorm", "layer_norm", ".ln_"], ()),
           ("embedding", "embedding", [], ("wte", "word_embeddings", "embed_tokens")),
           ("elementwise", "elementwise", ["function add>", "function mul>", "function truediv>",
                                           "method tanh", "function gelu>", "activation_fn",
                                           "method pow"], ())]


def shapes_of(cell):
    """Lists of whole numbers, one for each innermost pair of brackets: "[[16, 512], [1]]"."""
    return [[float(size) for size in re.findall(r"\d+", inner)]
            for inner in re.findall(r"[\[(]([^\[\]()]*)[\])]", cell)]


def neusight_work(target, inputs, out):
    if "method addmm" in target and len(inputs) >= 3 and len(inputs[1]) == 2:
        return gemm("addmm", "fp32", inputs[1][0], inputs[2][-1], inputs[1][1])
    if (("method bmm" in target or "method matmul" in target) and len(inputs) >= 2
            and len(inputs[0]) >= 3 and len(inputs[1]) >= 3):
        m, k = inputs[0][-2:]
        return gemm("bmm", "fp32", m, inputs[1][-1], k, math.prod(inputs[0]) / (m * k))
    if target.endswith(LINEAR) and inputs and len(inputs[0]) >= 2 and out:
        k = inputs[0][-1]
        return gemm("linear", "fp32", math.prod(inputs[0]) / k, out[-1], k)
    elements = math.prod(out)
    for name, kind, parts, endings in STREAMS:
        if any(part in target for part in parts) or target.endswith(endings or ("\0",)):
            size = (4 * (sum(math.prod(shape) for shape in inputs) + elements)
                    if kind == "elementwise" else 8 * elements)
            return stream(name, kind, "fp32", elements, size)
    return None


def read_neusight(path):
    table = dict_rows(path, ["target", "input_shapes", "output_shape", "fw_latency"])
    # Operators of these names launch nothing: their time is what the measurement itself takes.
    idle = upper_median([ms for ms in (
        number_of(row["fw_latency"]) for row in table
        if row["target"] in ("size", "dim", "view", "permute")) if ms and ms > 0])
    for row in table:
        ms, outputs = number_of(row["fw_latency"]), shapes_of(row["output_shape"])
        work = None
        # The host's share differs from operator to operator: short times say little of the kernel.
        if len(outputs) == 1 and (ms is None or ms >= 7 * idle):
            work = neusight_work(row["target"], shapes_of(row["input_shapes"]), outputs[0])
        yield work, None if ms is None else ms - idle, 1e6


# ---- TrioSim's VGG13 (Simonyan and Zisserman 2015, configuration B), batch 128: 3x3 convolutions
# on squares, forward, in us. Layers of odd number are for fitting.

VGG13 = [(3, 64, 224), (64, 64, 224), (64, 128, 112), (128, 128, 112), (128, 256, 56),
         (256, 256, 56), (256, 512, 28), (512, 512, 28), (512, 512, 14), (512, 512, 14)]


def read_vgg13(path):
    rows = [row for row in dict_rows(path, ["OperatorName", "Operator_cudatime"])
            if row["OperatorName"] == "aten::conv2d"]
    if len(rows) != len(VGG13):
        raise failed([(str(path), "OperatorName", f"found {len(rows)} rows of aten::conv2d; "
                                                  f"expected VGG13's {len(VGG13)}")])
    for layer, (row, (inner, outer, side)) in enumerate(zip(rows, VGG13)):
        pixels = 128.0 * side * side
        work = gemm("convolution", "tf32", pixels, outer, inner * 9)._replace(
            kind="convolution", bytes=4 * (pixels * (inner + outer) + inner * outer * 9))
        yield work, number_of(row["Operator_cudatime"]), 1e3, "fit" if layer % 2 == 0 else "judge"


# ---- Kineto traces whose operators carry their shapes ("Input Dims") and whose kernels carry the
# operator's "External id". Equal operators give one row, their median.

def aligned(sides, precision):
    """Rows of whole 16 bytes: others run kernels at a quarter of the speed."""
    return all(side % (16 / BYTES[precision]) == 0 for side in sides)


def traced_product(name, shapes, precision):
    first, rank = (1 if name == "aten::addmm" else 0), (3 if name == "aten::bmm" else 2)
    a, b = (shapes + [[], [], []])[first:first + 2]
    if len(a) != rank or len(b) != rank:
        return None
    (m, k), n = a[-2:], b[-1]
    if min(m, n, k) < 8 or not aligned((n, k), precision):  # matrix-vector kernels are no tiles
        return None
    return gemm(name[6:], precision, m, n, k, a[0] if rank == 3 else 1)


def traced_stream(name, shapes, precision):
    if not shapes or not shapes[0]:
        return None
    elements, size, row = math.prod(shapes[0]), BYTES[precision], shapes[0][-1]
    long_rows = row >= 512  # as those of transformers; shorter ones leave most of a block idle
    same = len(shapes) > 1 and shapes[1] == shapes[0]
    kind, passes = {"aten::native_layer_norm": ("normalisation" if long_rows else None, 2),
                    "aten::_softmax": ("softmax" if long_rows and row * size % 16 == 0 else None,
                                       2),
                    "aten::gelu": ("elementwise", 2),
                    "aten::add": ("elementwise" if same else None, 3),
                    "aten::mul": ("elementwise" if same else None, 3)}.get(name, (None, 0))
    return stream(name[6:], kind, precision, elements, passes * size * elements) if kind else None


def traced_attention(name, shapes, precision):
    """q, k, v: samples x sequence x heads x head size; image models, no mask."""
    if name != "aten::_flash_attention_forward" or len(shapes) < 3:
        return None
    q, k = shapes[:2]
    if len(q) != 4 or len(k) != 4 or k[1] < 64 or q[3] < 32:  # those are padded most of all
        return None
    return gemm("flash attention", precision, q[1], k[1], q[3], q[0] * q[2])._replace(
        kind="attention", flops=4 * q[0] * q[2] * q[1] * k[1] * q[3],
        bytes=2 * (math.prod(q) + math.prod(k)) * BYTES[precision])


def traced_work(name, types, shapes, tensor_cores):
    precision = {"c10::Half": "fp16", "c10::BFloat16": "bf16",
                 "float": "tf32" if tensor_cores else "fp32"}.get(types)
    if precision is None:
        return None
    if name in ("aten::mm", "aten::addmm", "aten::bmm"):
        return traced_product(name, shapes, precision)
    return (traced_attention(name, shapes, precision)
            or traced_stream(name, shapes, precision))


def take_operator(event, operators):
    arguments, name = event.get("args"), event.get("name")
    if not isinstance(arguments, dict) or not str(name).startswith("aten::"):
        return
    dims, types = arguments.get("Input Dims"), arguments.get("Input type")
    if type(arguments.get("External id")) is not int or dims is None:
        return
    sizes = [[float(size) for size in shape if type(size) in (int, float)]
             if isinstance(shape, list) else [] for shape in dims] if isinstance(dims, list) else []
    first = next((text for text in types if isinstance(text, str) and text),
                 "") if isinstance(types, list) else ""
    operators[arguments["External id"]] = [name, first, sizes, 0.0, False]


def take_kernel(event, operators):
    arguments, name, us = event.get("args"), event.get("name"), event.get("dur")
    if not isinstance(arguments, dict) or type(us) not in (int, float):
        return
    # Some profilers write the correlation of the launch there, which names no operator.
    number_of_op = arguments.get("External id")
    if arguments.get("correlation") == number_of_op or number_of_op not in operators:
        return
    operator = operators[number_of_op]
    operator[3] += us * 1e-6
    operator[4] = operator[4] or any(part in str(name) for part in ("tensorop", "tf32", "s1688"))


def read_trace(path):
    try:
        events = json.loads(read_packed(path))["traceEvents"]
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise failed([(str(path), "", f"found no list \"traceEvents\": {fault}; expected a Kineto "
                                      "trace")]) from None
    operators, groups = {}, defaultdict(list)
    for category, take in (("cpu_op", take_operator), ("kernel", take_kernel)):
        for event in events:
            if isinstance(event, dict) and event.get("cat") == category:
                take(event, operators)
    for name, types, shapes, seconds, tensor_cores in operators.values():
        if seconds > 0:
            key = name + types + ("t" if tensor_cores else "") + "".join(
                "|" + "".join(f"{size:f}," for size in shape) for shape in shapes)
            groups[key, traced_work(name, types, shapes, tensor_cores)].append(seconds)
    for (_, work), times in sorted(groups.items(), key=lambda group: group[0][0]):
        for seconds in [upper_median(times)] if work else times:
            yield work, seconds, 1e9


def vidur(model, role):
    return ("a100", "a100-80gb", f"vidur {model}", role, read_vidur,
            f"microsoft+vidur/data/profiling/compute/a100/{model}/mlp.csv")


def neusight(run, role):
    return ("h100", "h100", f"neusight {run}", role, read_neusight,
            f"sitar-lab+NeuSight/scripts/asplos/label/NVIDIA_H100_80GB_HBM3/{run}.csv")


def trace(family, device, source, role, path):
    return family, device, f"{source} trace" if family == "h100" else source, role, read_trace, path


NANOGPT = ("KellerJordan+modded-nanogpt/records/track_1_short/2025-12-11_NorMuonOptimsAndFixes/"
           "profiler-example-traces/Baseline_-_12-11_-_220ff-rank6-chrome-trace.json")
LENS = "AMD-AGI+TraceLens/tests/traces/h100/"
# Family, device, source, role, reader, path.
TABLES = [
    *(vidur(model, "fit") for model in (
        "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-70b-hf", "microsoft/phi-2")),
    *(vidur(model, "judge") for model in (
        "codellama/CodeLlama-34b-Instruct-hf", "internlm/internlm-20b", "Qwen/Qwen-72B",
        "meta-llama/Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-70B")),
    trace("a100", "a100-40gb", "sam2 trace, eager", "fit",
          "facebookresearch+sam2/amg_example/amg_example_trace.c33d09d.json"),
    trace("a100", "a100-40gb", "sam2 trace, compiled", "judge",
          "facebookresearch+sam2/amg_example/amg_example_trace.eb67acd.json"),
    trace("a100", "a100-40gb", "segment-anything-fast trace, compiled", "judge",
          "pytorch-labs+segment-anything-fast/amg_example/asdf_True.3b766a9.json"),
    *(neusight(run, "fit") for run in (
        "bert_large-inf-512-16", "bert_large-inf-512-8", "bert_large-train-512-2",
        "bert_large-train-512-8", "gpt2_large-inf-1024-4", "gpt2_large-inf-1024-8",
        "gpt2_large-train-1024-1", "gpt2_large-train-1024-4", "opt_13-inf-2048-2",
        "opt_13-inf-2048-8", "opt_13-train-2048-1", "opt_13-train-2048-2")),
    *(neusight(run, "judge") for run in (
        "gpt3_27-inf-2048-2", "gpt3_27-inf-2048-8", "gpt3_27-train-2048-1", "gpt3_xl-inf-2048-2",
        "gpt3_xl-inf-2048-8", "gpt3_xl-train-2048-1")),
    ("h100", "h100", "triosim vgg13", "fit", read_vgg13,
     "sarchlab+triosim/sample_trace/trace2-h100-bs128/vgg13/trace.csv"),
    trace("h100", "h100", "modded-nanogpt", "fit", NANOGPT),
    trace("h100", "h100", "Qwen1.5-0.5B", "fit", LENS + "Qwen_Qwen1.5-0.5B-Chat__1016005.json"),
    trace("h100", "h100", "ViT classifier", "fit",
          LENS + "Falconsai_nsfw_image_detection__1016002.json"),
    trace("h100", "h100", "OWLv2", "judge",
          LENS + "google_owlv2-large-patch14-ensemble__1016001.json")]
FAMILIES = ["a100", "h100", "h200"]


def entries(read, path):
    """What a reader gives, or the fault of a table that breaks it: a shape without sides, say."""
    try:
        yield from read(path)
    except (ArithmeticError, LookupError, TypeError, ValueError) as fault:
        raise failed([(str(path), "", f"found a row that cannot be read ({fault}); expected the "
                                      "table as its publisher has it")]) from None


def read_measured_kernels(folder, family, tables=TABLES):
    """(rows, sources as read, what was left out: {counter: number})."""
    if family not in FAMILIES:
        raise failed([("", "", f"unknown family of measured devices \"{family}\"; known: "
                               f"{', '.join(FAMILIES)}")])
    rows, sources, left_out = [], [], defaultdict(int)
    for of, device, source, role, read, path in tables:
        if of != family:
            continue
        packed, plain = Path(folder, path + ".gz"), Path(folder, path)
        if not packed.exists() and not plain.exists():
            left_out["kernel_tables_missing"] += 1
            continue
        sources.append(source)
        for work, time, nanoseconds, *own_role in entries(
                read, packed if packed.exists() else plain):
            ns = math.floor(time * nanoseconds + 0.5) if time and math.isfinite(time) else 0
            if work is None or ns <= 0:
                left_out["kernel_rows_unread"] += 1
            else:
                rows.append(Row(work, ns, device, source, *(own_role or [role])))
    if not rows:
        raise failed([(str(folder), "", f"no table of measured kernels of {family}; expected the "
                                        "public data sets as notebooks/lab/README.md names them")])
    return rows, sources, left_out
