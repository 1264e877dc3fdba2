"""Kernels of this project's recordings (traces/samples/h200). A recording has a kernel's name, grid
and time. Which product it is follows from its job (tests/validation/h200/captures.md): a pass has
as many products of each layout as the model has matrices, in the order of its layers.
"""
import json
import re
from collections import defaultdict
from functools import partial
from itertools import cycle
from pathlib import Path

import bubblesim
from bubblesim import _core
from bubblesim._table import failed

from .kernel_tables import gemm, stream, upper_median

# The groups of jobs that fit a kind; others are its judges. `empty` jobs compute mostly with zeros,
# weights (FSDP) or activations (stages) that nobody sent: their products draw less power. Attention
# (few rows without dropout), norms (1.2 to 3.5 TB/s by the length of a row) and elementwise kernels
# (sums 4.4 TB/s, GELU 3.0) only judge: one share of the bandwidth for all, fitted, gains nothing on
# held-out rows, of elementwise kernels from 20 us on.
FITTED = {"gemm": {"fit"}, "optimizer": {"fit", "real"}}
PRODUCT = re.compile(r"(?:nvjet|gemm).*?_([TN][TN])[TN]?(?:_|$)", re.IGNORECASE)
# PyTorch's streaming kernels: arrays passed over (None: the name says) and elements of a block
# (None: the whole pass).
STREAMS = [(re.compile(name), kind, precision, arrays, block)
           for name, kind, precision, arrays, block in [
    (r"vectorized_elementwise_kernel<8, .*(?:CUDAFunctor_add|MulFunctor|silu_|Gelu).*"
     r"std::array<char\*, (\d)", "elementwise", "bf16", None, 1024),
    ("vectorized_layer_norm_kernel", "normalisation", "bf16", 2, None),
    ("layer_norm_grad_input_kernel", "normalisation", "bf16", 3, None),
    ("GammaBetaBackward", "normalisation", "bf16", 2, None),
    ("FusedAdamMathFunctor<c10::BFloat16", "optimizer", "bf16", 7, 65536),
    ("FusedAdamMathFunctor<float", "optimizer", "fp32", 7, 65536)]]
SMS, FULL = 132, 320  # blocks of an optimiser's launch; smaller ones hold the ends of tensors


class Job:
    """`split`: tensor ranks. `stage`: of a pipeline of four. `made`: tokens of each sample after
    the prompt, one a pass."""

    def __init__(self, model, samples, tokens, trains, split=1, stage=None, made=0):
        model = json.loads(Path(_core.config_folder(), "models", f"{model}.json").read_text())
        self.samples, self.split, self.tokens = samples, split, [tokens, *[1] * made]
        self.hidden, self.layers = model["hidden"], model["layers"] // (1 if stage is None else 4)
        self.heads, self.head_size = model["heads"] // split, model["hidden"] // model["heads"]
        self.mask = 2 if model["attention"] == "causal" else 1
        self.drops = trains and model["dropout"]
        own, inner = self.hidden // split, model.get("ffn", 4 * self.hidden) // split
        up = [("up", inner, self.hidden)] * (2 if model["activation"] == "swiglu" else 1)
        self.block = [*[("qkv", own, self.hidden)] * 3, ("attention output", self.hidden, own),
                      *up, ("down", self.hidden, inner)]
        self.classes = model.get("classes")
        self.head = [] if stage in (0, 1, 2) else [
            ("pooler", self.hidden, self.hidden), ("classes", self.classes, self.hidden)
        ] if self.classes else [("logits", model["vocabulary"], self.hidden)]

    def products(self, layout):
        """Of all passes in the order of launches: TN forward, NN and NT backward."""
        out = []
        for tokens in self.tokens if layout == "TN" else self.tokens[:1]:
            rows = tokens * self.samples
            one = [(name, rows, n, k) for name, n, k in self.block] * self.layers + [
                (name, self.samples if self.classes else rows, n, k) for name, n, k in self.head]
            out += one if layout == "TN" else one[::-1]
        return [self.product(layout, *each) for each in out]

    def product(self, layout, name, rows, n, k):
        name, m, n, k = {"TN": (f"{name} gemm", rows, n, k),
                         "NN": (f"{name} gemm input-grad", rows, k, n),
                         "NT": (f"{name} gemm weight-grad", n, k, rows)}[layout]
        sides = (m, n, k) if layout == "NT" else (n, k)
        # Rows of whole 16 bytes: others run kernels at a quarter of the speed.
        return gemm(name, "bf16", m, n, k) if all(side % 8 == 0 for side in sides) else None

    def attention(self, tokens, backward):
        """As sim/model/transformer_attention.cpp, where nothing is dropped. Single tokens run a
        kernel of the A100's."""
        if tokens == 1 or self.drops:
            return None
        heads, s, d = self.samples * self.heads, tokens, self.head_size
        name, ratio, arrays = ("attention input-grad", 2.5, 2) if backward else ("attention", 1, 1)
        return gemm(name, "bf16", s, s, d, heads)._replace(
            kind="attention", flops=ratio * 4 * heads * s * s * d / self.mask,
            bytes=arrays * heads * s * (8 * d + 4))

    def streaming(self, name, blocks):
        for pattern, kind, precision, arrays, block in STREAMS:
            match = pattern.search(name)
            if match and blocks >= (FULL if kind == "optimizer" else SMS):
                arrays = arrays or int(match[1])
                elements = blocks * block if block else self.samples * self.tokens[0] * self.hidden
                return stream(f"{kind} of {arrays} arrays", kind, precision, elements,
                              arrays * (4 if precision == "fp32" else 2) * elements)
        return None


def read_recording(group, job, path):
    """Equal kernels give one row, their median."""
    job = Job(*job[:3], trains="train" in path.name, **job[3])
    rank = bubblesim.open_trace(path).ranks[0]
    ops = rank.device_ops[rank.device_ops["kind"] == _core.DEVICE_OP_KINDS.index("kernel")]
    blocks = rank.shapes["grid"].prod(axis=1, dtype="u8")[ops["shape"]]
    products = [PRODUCT.search(name) for name in rank.names]
    found, times, works, last = defaultdict(list), defaultdict(list), {}, []
    for number, count, ns in zip(ops["name"].tolist(), blocks.tolist(), ops["duration"].tolist()):
        name = rank.names[number]
        part = products[number] and products[number][1].upper() or next(
            (part for part in ("fprop", "bprop") if part in name), None)
        if part:
            last = found[part]
            last.append(ns)
        elif last and ("splitKreduce" in name or "convert_dq" in name):
            last[-1] += ns
        else:
            if (number, count) not in works:
                works[number, count] = job.streaming(name, count)
            times[works[number, count]].append(ns)
    passes = {layout: job.products(layout) for layout in ("TN", "NN", "NT")}
    passes["fprop"] = [job.attention(tokens, False) for tokens in job.tokens
                       for _ in range(job.layers)]
    passes["bprop"] = [job.attention(job.tokens[0], True)]
    for part, pass_works in passes.items():
        if len(found[part]) % len(pass_works):
            raise failed([(str(path), "", f"found {len(found[part])} kernels of {part}; expected a "
                                          f"multiple of {len(pass_works)}, those of a pass")])
        for work, ns in zip(cycle(pass_works), found[part]):
            times[work].append(ns)
    for work, of in times.items():
        role = "fit" if work and group in FITTED.get(work.kind, ()) else "judge"
        yield work, upper_median(of), 1, role


# Group, file, model, samples, tokens of a sample, and what else Job takes.
JOBS = [("fit", "train-gpt2-large-ddp", "gpt2-large", 8, 512, {}),
        ("fit", "train-gpt-3.6b-tp", "gpt-3.6b", 2, 2048, {"split": 8}),
        ("fit", "infer-llama2-7b", "llama2-7b", 4, 512, {"made": 16}),
        ("fit", "client-infer-bert-base-32x128", "bert-base", 32, 128, {}),
        ("real", "train-bert-base-ddp", "bert-base", 32, 128, {}),
        ("real", "client-train-gpt2-large-4x512", "gpt2-large", 4, 512, {}),
        ("real", "infer-bert-base", "bert-base", 8, 128, {}),
        ("empty", "train-llama2-7b-fsdp", "llama2-7b", 1, 2048, {}),
        *(("empty", f"train-pipefill-5b-stage-{stage}", "pipefill-5b", 2, 1024, {"stage": stage})
          for stage in (0, 1, 3))]
RECORDINGS = [("h200", "h200", f"traces/samples/h200 {file}", "judge",
               partial(read_recording, group, job), f"h200/{file}.btr")
              for group, file, *job in JOBS]
