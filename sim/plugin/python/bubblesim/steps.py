"""What each step of a language-model server took, from a profiler's trace of the engine, as one file
for "steps" of a config's engine and `scripts/judge serving --steps`:
`python3 -m bubblesim.steps TRACE -o FILE`.

An engine under a profiler names each step on its host thread. Two forms are known:

  execute_context_9(8155)_generation_37(37)                                    vLLM
  execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_...    detailed

9 sequences whose prompts have 8155 tokens in this step, and 37 that generate. sq: new tokens, sk:
those and the cached ones, sqsq and sqsk: sums over sequences of sq^2 and of sq x sk. The first form
does not say how much the cache holds: each generating sequence then attends to --context tokens, its
new one included, and prompts are equally long and nothing of them is cached. A step's kernels are
those that its thread launched within the name's span, wherever the device runs them.
"""
import bisect
import re
import sys
from collections import Counter, defaultdict

from . import DEVICE_OP_KINDS, open_trace
from ._table import (FORCE_HELP, Parser, check_outputs, end_on_signals, ended, failed, number_from,
                     write_file)
from .layers import document_text, notes_text

SUMS = ["sequences", "tokens", "keys", "squares", "products"]
KIND = r"(\d{1,18})\((?:(\d{1,18})|sq(\d{1,18})sk(\d{1,18})sqsq(\d{1,18})sqsk(\d{1,18}))\)"
NAME = re.compile(rf"execute_(?:\d+_)?context_{KIND}_generation_{KIND}")
MOST_TOKENS, MOST_KEYS = 1e8, 1e12  # of a step: beyond what any engine computes at once
ROUNDING = 1e-9                     # relative
MOST_WITHIN = 8                     # ranges that may end before the one that a call is in
SUMS_THAT_CAN_BE = ("sequences <= tokens <= keys, squares <= products, and squares from tokens^2 / "
                    "sequences to (tokens - sequences + 1)^2 + sequences - 1")
NOTES = {
    "steps_without_kernels": ("loss", "steps that the trace names and of which it has no kernel; they "
                                      "are left out"),
    "steps_without_tokens": ("info", "steps that computed nothing, such as warm-up; they are left "
                                     "out"),
    "steps_with_impossible_sums": ("loss", "steps whose names have sums that no sequences have; they "
                                           "are left out"),
    "contexts_assumed": ("notice", "steps whose names do not say how much the cache holds; --context "
                                   "stands in"),
    "kernels_of_no_step": ("info", "kernels that were launched outside of all named steps, or before "
                                   "the trace began")}


def _sums(groups, cached):
    """The sums of one kind of sequences, in the order of SUMS."""
    sequences = float(groups[0])
    if groups[1] is None:
        return [sequences, *map(float, groups[2:])]
    tokens = float(groups[1])
    if sequences <= 0:  # tokens of no sequence stay, for can_be to refuse
        return [0.0, tokens, 0.0, 0.0, 0.0]
    squares = tokens * (tokens / sequences)
    return [sequences, tokens, sequences * cached + tokens, squares, tokens * cached + squares]


def step_of_name(name, context):
    """(sums of prompts, of sequences that generate, whether it says what the cache holds), or
    None: it names no step."""
    found = NAME.fullmatch(name)
    if not found:
        return None
    groups = found.groups()
    return (_sums(groups[:6], 0.0), _sums(groups[6:], context - 1),
            groups[1] is None and groups[7] is None)


def can_be(sums):
    """Whether some sequences have these sums: each has a new token at least, which attends to
    itself. Squares are least of equal sequences, up to their rounding, and most if all but one have
    a single token."""
    sequences, tokens, keys, squares, products = sums
    if tokens <= 0:
        return not any(sums)
    longest = tokens - sequences + 1
    return (sequences == int(sequences) and tokens == int(tokens) and 1 <= sequences <= tokens <= keys
            and squares * sequences >= tokens * tokens * (1 - ROUNDING)
            and squares <= longest * longest + sequences - 1 and squares <= products
            and products <= tokens * keys and tokens <= MOST_TOKENS and keys <= MOST_KEYS)


class Span:
    def __init__(self, start, end, prompts, singles):
        self.start, self.end, self.prompts, self.singles = start, end, prompts, singles
        self.ops = []  # (start, end, start and end of the call, whether it is a collective)


class Steps:
    """The steps of one rank; raises Error where it names none whose kernels were recorded."""

    def __init__(self, rank, context=None):
        self.rank, self.counters, self.impossible = rank, Counter(), ""
        self.source, self.gpu = rank.metadata["source"], rank.device["name"]
        spans = self._spans(context)
        self._give_ops(spans)
        self.steps = []
        for span in sorted((span for of_thread in spans.values() for span in of_thread),
                           key=lambda span: span.start):
            us = kernels_us(span.ops)
            if us > 0:
                self.steps.append({"prompts": dict(zip(SUMS, span.prompts)),
                                   "singles": dict(zip(SUMS, span.singles)), "kernels_us": us})
            else:
                self.counters["steps_without_kernels"] += 1
        if not self.steps:
            raise failed([(self.source, "", self._why_none(spans))])

    def _spans(self, context):
        """Spans of steps that compute tokens, by thread, in the order of their starts."""
        spans, names = defaultdict(list), {}
        for mark in self.rank.ranges[["name", "thread", "start", "duration"]].tolist():
            name, thread, start, duration = mark
            if name not in names:
                names[name] = step_of_name(self.rank.names[name], context or 1.0)
            if names[name] is None:
                continue
            prompts, singles, tells = names[name]
            if prompts[1] + singles[1] < 1:
                self.counters["steps_without_tokens"] += 1
            elif not can_be(prompts) or not can_be(singles):
                self.counters["steps_with_impossible_sums"] += 1
                self.impossible = self.rank.names[name]
            else:
                if not tells and singles[1] > 0:
                    if context is None:
                        raise failed([(self.source, "", (
                            f"its steps, as \"{self.rank.names[name]}\", do not say how much the cache "
                            "holds; expected --context TOKENS, the mean of sequences that generate"))])
                    self.counters["contexts_assumed"] += 1
                spans[thread].append(Span(start, start + duration, prompts, singles))
        return {thread: sorted(spans[thread], key=lambda span: span.start)
                for thread in sorted(spans)}

    def _give_ops(self, spans):
        """Each span gets what its thread launched in it; of ranges within each other, the inner."""
        starts = {thread: [span.start for span in of_thread] for thread, of_thread in spans.items()}
        kernel, collective = map(DEVICE_OP_KINDS.index, ("kernel", "collective"))
        calls = self.rank.host_calls[["start", "duration", "thread"]].tolist()
        for start, duration, kind, launch in self.rank.device_ops[
                ["start", "duration", "kind", "launch"]].tolist():
            if kind not in (kernel, collective):
                continue
            of_thread, after = [], 0
            if launch < len(calls):
                call, length, thread = calls[launch]
                of_thread = spans.get(thread, [])
                after = bisect.bisect_right(starts.get(thread, []), call)
            for span in reversed(of_thread[max(0, after - MOST_WITHIN):after]):
                if call < span.end:
                    span.ops.append((start, start + duration, call + length, kind == collective))
                    break
            else:
                self.counters["kernels_of_no_step"] += 1

    def _why_none(self, spans):
        if spans:
            return "has no kernel of any step that it names"
        if self.impossible:
            return (f"has no step but {self.counters['steps_with_impossible_sums']} with sums that no "
                    f"sequences have, as \"{self.impossible}\"; expected {SUMS_THAT_CAN_BE}")
        return ("names no step of an engine that computes something; expected ranges as "
                "\"execute_context_1(512)_generation_8(8)\", which vLLM and SGLang write under a "
                "profiler")

    def document(self):
        return {"format": "bubblesim.steps/1", "gpu": self.gpu, "source": self.source,
                "steps": self.steps}


def kernels_us(ops):
    """Time in which a kernel ran, or the device passed to a kernel that it had been given already;
    without collectives. Operations are in the order of their starts. One that was launched before
    the last one ended waited for the device alone: the gap between them is the device's."""
    busy = last = 0
    follows = False  # a kernel, and no collective
    for start, end, called, collective in ops:
        if not collective:
            queued = follows and called <= last
            busy += max(0, end - (last if queued else max(last, start)))
        follows = not collective
        last = max(last, end)
    return 1e6 * (busy * 1e-9)


def _kind_text(kind, steps):
    if not steps:
        return f"  {kind}: none\n"
    tokens = [step["prompts"]["tokens"] + step["singles"]["tokens"] for step in steps]
    mean = sum(step["kernels_us"] for step in steps) / len(steps)
    return (f"  {kind}: {len(steps)}, of {min(tokens):.0f} to {max(tokens):.0f} tokens, kernels of "
            f"{1e-3 * mean:.3f} ms in the mean\n")


def convert(arguments):
    parser = Parser(
        prog="python3 -m bubblesim.steps",
        description="What each step of a language-model server took, from a profiler's trace of the "
                    "engine that names its steps (vLLM and SGLang under PyTorch's profiler), as one "
                    "file for \"steps\" of a config's engine. Example: python3 -m bubblesim.steps "
                    "rank0.pt.trace.json.gz --context 900 -o steps.json. Exit code 1: the trace has "
                    "lost so much that the file must not be trusted.")
    parser.add_argument("trace", metavar="TRACE", help="a trace of one GPU of the server")
    parser.add_argument("-o", "--output", required=True, help="the file to write")
    parser.add_argument("--context", type=number_from(1, 10_000_000),
                        help="tokens that a generating sequence attends to, its new one included, in "
                             "the mean: for traces whose steps do not say it")
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    options = parser.parse_args(arguments)
    check_outputs([("--output", options.output, "{\"format\":\"bubblesim.steps/")],
                  [options.trace], options.force)
    trace = open_trace(options.trace)
    if len(trace) != 1:
        raise failed([(options.trace, "", f"found {len(trace)} ranks; expected one GPU of the "
                                          "server")])
    steps = Steps(trace[0], options.context)
    write_file(options.output, document_text(steps.document()))
    print(f"{options.output}: {len(steps.steps)} steps of {steps.source}"
          f"{' on ' + steps.gpu if steps.gpu else ''}")
    prompts = [step for step in steps.steps if step["prompts"]["tokens"] > 0]
    singles = [step for step in steps.steps if step["prompts"]["tokens"] <= 0]
    notes = [(NOTES[name][0], name, count, NOTES[name][1])
             for name, count in steps.counters.items()]
    lost = [(str(one["severity"]), one["name"], one["count"], one["help"])
            for one in trace.counters]
    print(_kind_text("that decode only", singles) + _kind_text("with prompts", prompts)
          + notes_text(notes + lost), end="")
    return 1 if any(one[0] == "error" for one in lost) else 0


def main(arguments=None):
    """The command; returns its exit code."""
    return ended("bubblesim.steps", lambda: convert(arguments))


if __name__ == "__main__":
    end_on_signals()
    sys.exit(main())
