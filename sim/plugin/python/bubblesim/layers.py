"""Layer times that LLMServingSim's profiler measured of an engine, as one file for "layers" of a
config's engine and `scripts/judge serving --layers`: `python3 -m bubblesim.layers DIR -o FILE`.

DIR (github.com/casys-kaist/LLMServingSim, its page "Output bundle") has meta.yaml and, for each
number of GPUs that share a layer, tpN/ with dense.csv, per_sequence.csv, attention.csv and, for
mixtures of experts, moe.csv in tp1. Tables may be packed by gzip. Times are of one GPU, in us.

The points of attention.csv that meta.yaml declares (attention_grid) are taken; one that is missing
is a fault. A batch of n decoding sequences beside a prompt needs n + 1 places, so points with n =
max_num_seqs are declared for decoding alone only; none is taken above that, and of an engine of one
sequence nothing beside a prompt. Other points are counted.
"""
import itertools
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

from ._table import (FORCE_HELP, Parser, check_outputs, dict_rows, end_on_signals, ended, failed,
                     number_of, read_packed, write_file)

MOST_CALL_US = 1e9     # a layer's call that lasts longer is a slip of a unit
MOST_TENSOR, MOST_SEQUENCES, MOST_POINTS = 1024, 10 ** 9, 1000
ALWAYS = ["embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "final_layernorm"]
FEED_FORWARD = ["gate_up_proj", "act_fn", "down_proj"]  # not of mixtures of experts
DENSE = ["embedding", "layernorm", "qkv_proj", "qk_norm", "rotary_emb", "o_proj", *FEED_FORWARD,
         "final_layernorm"]
ATTENTION = ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode"]
NOTES = {"attention_points_off_grid": (
    "info", "points of attention.csv that meta.yaml does not declare, or of more sequences than its "
            "max_num_seqs; not used"),
    "layers_copied_from_one_gpu": (
        "notice", "numbers of GPUs for which the profiler copied qk_norm from one GPU, though each has "
                  "only its own heads; taken at as many rows as it has"),
    "layer_points_measured_twice": (
        "notice", "rows of a point for which an earlier row says another time; the last row's time "
                  "is taken")}


def whole_of(text):
    value = number_of(text)
    return value if value is not None and 0 <= value <= 1e9 and value == int(value) else None


def points_of(text):
    """"0, 16-2048 x2" as 0, 16, 32, ... 2048: whole values, and ranges whose neighbours have that
    ratio, rounded, with the end of the range at last. Empty: not of this form."""
    points = []
    for part in text.split(","):
        one, span = whole_of(part.strip(" '\"")), re.fullmatch(
            r"\s*(\d+)-(\d+) x(\d+(?:\.\d+)?)\s*", part)
        if one is not None:
            points.append(one)
        elif span and 1 <= int(span[1]) <= int(span[2]) <= 1e9 and float(span[3]) > 1:
            at = float(span[1])
            for _ in range(MOST_POINTS):
                if at >= int(span[2]):
                    break
                point = float(math.floor(at + 0.5))
                if not points or point > points[-1]:
                    points.append(point)
                at *= float(span[3])
            else:
                return []
            points.append(float(span[2]))
        else:
            return []
    return points if all(a < b for a, b in itertools.pairwise(points)) else []


class Meta:
    """meta.yaml as the profiler writes it: a key and its value on a line, at any depth."""

    def __init__(self, path):
        self.path = str(path)
        self.lines = [line.strip(" '\"\r") for line in read_packed(path).split("\n")]

    def fault(self, key, message):
        return failed([(self.path, key, message)])

    def has(self, text):
        return any(line.startswith(text) for line in self.lines)

    def text(self, key):
        for line in self.lines:
            if line.startswith(key + ":"):
                value = line[len(key) + 1:].strip(" '\"\r")
                if value:
                    return value
                break
        raise self.fault(key, "is missing; expected as LLMServingSim's profiler writes it")

    def counts(self, key, most):
        """Whole numbers from 1 on, each once, ascending."""
        value = self.text(key).replace("[", "").replace("]", "")
        numbers = [whole_of(part.strip(" '\"")) for part in value.split(",")]
        if any(number is None or not 1 <= number <= most for number in numbers) or len(
                set(numbers)) < len(numbers):
            raise self.fault(key, f"found '{value}'; expected whole numbers from 1 to {most}, each "
                                  "once")
        return sorted(int(number) for number in numbers)

    def count(self, key, most):
        value = whole_of(self.text(key))
        if value is None or not 1 <= value <= most:
            raise self.fault(key, f"found '{self.text(key)}'; expected a whole number from 1 to "
                                  f"{most}")
        return int(value)

    def points(self, key, most, use):
        value = self.text(key)
        points = points_of(value)
        if not points:
            raise self.fault(key, f"found '{value}'; expected points such as '0, 16-2048 x2'")
        if not any(1 <= point <= most for point in points):
            raise self.fault(key, f"found '{value}'; expected a point {use}")
        return points


class Profile:
    """A folder as it is read; `counters`: what was left out."""

    def __init__(self, folder):
        self.folder, self.counters = Path(folder), Counter()
        if not (self.folder / "meta.yaml").exists():
            below = sorted(str(meta.parent.relative_to(self.folder)) for depth in range(1, 6)
                           for meta in self.folder.glob("*/" * depth + "meta.yaml"))
            if below:
                raise failed([(str(folder), "", f"no meta.yaml; profiles are below it: "
                                                f"{', '.join(below[:24])}")])
        self.meta = meta = Meta(self.folder / "meta.yaml")
        self.head = {"gpu": meta.text("gpu"), "model": meta.text("model"),
                     "engine": "vLLM " + meta.text("vllm_version"),
                     "source": "LLMServingSim profile of " + meta.text("profiled_at")}
        self.degrees = meta.counts("tp_degrees", MOST_TENSOR)
        self.most = meta.count("max_num_seqs", MOST_SEQUENCES)
        self.chunks = meta.points("chunks", math.inf, "above 0, for prompts")
        used = max(1, self.most - 1)
        self.sequences = meta.points("n_decode", used, f"from 1 to {used}, max_num_seqs being "
                                                       f"{self.most}")
        self.cached = meta.points("kv", math.inf, "above 0, for sequences that decode")

    def rows(self, path, columns):
        """The table at `path` or packed beside it: its file, and rows with a time."""
        packed = path.with_name(path.name + ".gz")
        if not path.exists() and not packed.exists():
            raise failed([(str(path), "", f"is missing, and so is '{packed}'")])
        file = path if path.exists() else packed
        rows = dict_rows(file, [*columns, "time_us"])
        for row in rows:
            for column, least in [(column, columns[column]) for column in columns
                                  if columns[column] is not None]:
                value = whole_of(row[column])
                if value is None or value < least:
                    raise failed([(str(file), row["place"], f"{column}: found \"{row[column]}\"; "
                                   f"expected a whole number{' from 1 on' if least else ''}")])
                row[column] = value
            time = number_of(row["time_us"])
            if time is None or not 0 < time <= MOST_CALL_US:
                raise failed([(str(file), row["place"], f"time_us: found \"{row['time_us']}\"; "
                                                        "expected a number above 0, at most 1e9")])
            row["time_us"] = time
        return str(file), rows

    def put(self, times, point, time):
        if times.get(point, time) != time:
            self.counters["layer_points_measured_twice"] += 1
        times[point] = time

    def curves(self, path, axis, known):
        """{layer: {"at", "us"}}, by name."""
        _, rows = self.rows(path, {"layer": None, axis: 1})
        layers = {}
        for row in rows:
            if row["layer"] not in known:
                raise failed([(str(path), "", f"the layer '{row['layer']}' is not known; known: "
                                              f"{', '.join(known)}")])
            self.put(layers.setdefault(row["layer"], {}), row[axis], row["time_us"])
        return {name: curve_of(layers[name]) for name in sorted(layers)}

    def attention(self, path):
        """The grids "decode", "prefill" and, of several sequences, "mixed"."""
        file, rows = self.rows(path, dict.fromkeys(ATTENTION, 0))
        times, taken = {}, set()
        for row in rows:
            self.put(times, tuple(row[column] for column in ATTENTION), row["time_us"])

        def grid(names, *axes):
            us = []
            for point in itertools.product(*axes):
                if point not in times:
                    at = ", ".join(f"{name} {value:.0f}" for name, value in zip(ATTENTION, point))
                    raise failed([(file, "", f"a hole: no time at {at}, which meta.yaml declares")])
                taken.add(point)
                us.append(times[point])
            return {**dict(zip(names, [axis for axis in axes if axis != [0.0]])), "us": us}

        def above_zero(axis, most=math.inf):
            return [at for at in axis if 1 <= at <= most]
        none, chunks, cached = [0.0], above_zero(self.chunks), above_zero(self.cached)
        grids = {"decode": grid(["sequences", "cached"], none, none,
                                above_zero(self.sequences, self.most), cached),
                 "prefill": grid(["chunk", "before"], chunks, self.cached, none, none)}
        if self.most > 1:
            grids["mixed"] = grid(["chunk", "before", "sequences", "cached"], chunks, self.cached,
                                  above_zero(self.sequences, self.most - 1), cached)
        self.counters["attention_points_off_grid"] += len(times) - len(taken)
        return grids

    def experts(self):
        """A mixture's experts are profiled on one GPU; sharing a layer does not change a rank's."""
        path = self.folder / "tp1/moe.csv"
        if not path.exists() and not path.with_name("moe.csv.gz").exists():
            return None
        by_tokens = {}
        for row in self.rows(path, {"tokens": 1, "activated_experts": 1})[1]:
            self.put(by_tokens.setdefault(row["tokens"], {}), row["activated_experts"],
                     row["time_us"])
        return [{"tokens": tokens, **curve_of(by_tokens[tokens])} for tokens in sorted(by_tokens)]

    def rank(self, tensor, experts):
        here = self.folder / f"tp{tensor}"
        dense = self.curves(here / "dense.csv", "tokens", DENSE)
        ends = self.curves(here / "per_sequence.csv", "sequences", ["lm_head", "sampler"])
        for name in ["lm_head", "sampler"]:
            if name not in ends:
                raise failed([(str(here / "per_sequence.csv"), "", f"no times of the layer "
                                                                   f"'{name}'")])
        if tensor > 1 and "qk_norm" in dense and self.is_copied(dense["qk_norm"]):
            dense["qk_norm"]["at"] = [at * tensor for at in dense["qk_norm"]["at"]]
            self.counters["layers_copied_from_one_gpu"] += 1
        for name in ALWAYS + ([] if experts else FEED_FORWARD):
            if name not in dense:
                raise failed([(str(self.folder), f"tp{tensor}", f"no times of the layer '{name}'")])
        rank = {"tensor": tensor, "dense": dense, **ends, **self.attention(here / "attention.csv")}
        return {**rank, "experts": experts} if experts else rank

    def is_copied(self, curve):
        """Whether the profiler measured this norm of heads on one GPU only, as it did until its
        models/qwen3.yaml no longer said tp_stable of qk_norm: it is the curve of tp1, or, where
        that is missing, profiler and hooks are as old."""
        path = self.folder / "tp1/dense.csv"
        if path.exists() or path.with_name("dense.csv.gz").exists():
            return self.curves(path, "tokens", DENSE).get("qk_norm") == curve
        return self.meta.has("worker_extension_cls: profiler.hooks.")

    def document(self):
        experts = self.experts()
        ranks = [self.rank(tensor, experts) for tensor in self.degrees
                 if (self.folder / f"tp{tensor}").exists()]  # it may hold fewer than were profiled
        if not ranks:
            raise failed([(str(self.folder), "", "no folder tp1, tp2, ... of layer times")])
        return {"format": "bubblesim.layers/1", **self.head, "ranks": ranks}


def curve_of(points):
    return {"at": sorted(points), "us": [points[at] for at in sorted(points)]}


def notes_text(notes):
    """notes: (severity, name, count, help) each; those that counted something."""
    return "".join(f"  {severity} {name}: {count} ({text})\n"
                   for severity, name, count, text in sorted(notes, key=lambda note: note[1])
                   if count)


def document_text(document):
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"


def convert(arguments):
    parser = Parser(
        prog="python3 -m bubblesim.layers",
        description="Layer times that LLMServingSim's profiler measured of an engine, as one file for "
                    "\"layers\" of a config's engine. Example: python3 -m bubblesim.layers "
                    "perf/RTX4090/bf16 -o rtx4090.json")
    parser.add_argument("folder", metavar="DIR", help="folder with meta.yaml and tp1/, tp2/, ...")
    parser.add_argument("-o", "--output", required=True, help="the file to write")
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    options = parser.parse_args(arguments)
    check_outputs([("--output", options.output, "{\"format\":\"bubblesim.layers/")],
                  [*Path(options.folder).glob("meta.yaml"),
                   *Path(options.folder).glob("tp*/*.csv*")], options.force)
    profile = Profile(options.folder)
    document = profile.document()
    write_file(options.output, document_text(document))
    print(f"{options.output}: {document['model']} on {document['gpu']}, {document['engine']}")
    for rank in document["ranks"]:
        times = sum(len(rank.get(grid, {}).get("us", [])) for grid in ("decode", "prefill", "mixed"))
        print(f"  {rank['tensor']} GPU{'s' if rank['tensor'] > 1 else ''} a layer: "
              f"{len(rank['dense']) + 3} layers, {times} attention times"
              f"{', experts' if 'experts' in rank else ''}")
    print(notes_text((*NOTES[name][:1], name, count, NOTES[name][1])
                     for name, count in profile.counters.items()), end="")
    return 0


def main(arguments=None):
    """The command; returns its exit code."""
    return ended("bubblesim.layers", lambda: convert(arguments))


if __name__ == "__main__":
    end_on_signals()
    sys.exit(main())
