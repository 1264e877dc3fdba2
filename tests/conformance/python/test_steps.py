"""bubblesim.steps: steps as an engine's trace shows them, by hand."""
import json
from types import SimpleNamespace

import bubblesim
import pytest

numpy = pytest.importorskip("numpy")
from bubblesim.steps import Steps, can_be, main, step_of_name

DECODE = "execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk12sqsq2sqsk12)"
MIXED = "execute_context_2(8)_generation_3(3)"
KERNEL, COLLECTIVE = map(bubblesim.DEVICE_OP_KINDS.index, ("kernel", "collective"))
NONE = 2 ** 32 - 1


class Recording:
    """A thread that launches, a device that runs; times in ns."""

    def __init__(self):
        self.names, self.spans, self.calls, self.ops = [], [], [], []

    def step(self, name, start, end):
        self.names.append(name)
        self.spans.append((len(self.names) - 1, 0, start, end - start))

    def launch(self, start):
        """Its number, for operations that it launches."""
        self.calls.append((start, 0, 0))
        return len(self.calls) - 1

    def op(self, launch, start, end, kind=KERNEL):
        self.ops.append((start, end - start, kind, launch))

    def read(self, context=None):
        def records(fields, rows):
            return numpy.array(rows, dtype=[(field, "i8") for field in fields])
        return Steps(SimpleNamespace(
            metadata={"source": "made"}, device={"name": ""}, names=self.names,
            ranges=records(["name", "thread", "start", "duration"], self.spans),
            host_calls=records(["start", "duration", "thread"], self.calls),
            device_ops=records(["start", "duration", "kind", "launch"], self.ops)), context)


def lengths(steps):
    return [step["kernels_us"] for step in steps.steps]


def test_names_say_what_a_step_computes():
    """Prompts of 3 tokens behind 5 cached ones and of 2 alone; one that generates behind 9. Then two
    prompts of 4; three tokens that attend to 7 each, themselves among them."""
    assert step_of_name("execute_6_context_2(sq5sk10sqsq13sqsk28)_generation_1"
                        "(sq1sk10sqsq1sqsk10)", 0) == (
        [2, 5, 10, 13, 28], [1, 1, 10, 1, 10], True)
    assert step_of_name(MIXED, 7) == ([2, 8, 8, 32, 32], [3, 3, 21, 3, 21], False)
    for name in ("", "step[EXTEND bs=15 toks=15360]", "execute_context_1(2)",
                 "execute_context_1(2)_generation_", "aten::mm",
                 "execute_context_1(2)_generation_0(0)xyz",
                 "execute_context_1(99999999999999999999)_generation_0(0)"):
        assert step_of_name(name, 1) is None


def test_sums_that_no_sequences_have():
    """Sums of equal sequences are whole only in the mean: rounding must not make them impossible."""
    for sequences in range(1, 60):
        for tokens in range(sequences, 900, 7):
            assert can_be(step_of_name(
                f"execute_context_{sequences}({tokens})_generation_0(0)", 1)[0])
    assert not can_be(step_of_name("execute_context_0(512)_generation_8(8)", 9)[0])
    assert not can_be([1, 512, 512, 512, 512])  # one prompt of 512 has 512^2
    assert not can_be([2, 8, 8, 31, 31])        # two of 4 have 32
    assert can_be([2, 8, 8, 32, 32]) and can_be([2, 8, 8, 50, 50])  # 7 and 1
    assert not can_be([2, 8, 8, 51, 51])


def test_kernels_are_those_that_the_thread_launched_wherever_they_run():
    made = Recording()
    made.step(DECODE, 1000, 2000)
    made.step(DECODE, 2000, 3000)
    first, second, stray = made.launch(1100), made.launch(2100), made.launch(3100)
    made.op(first, 5000, 15_000)
    made.op(second, 15_000, 18_000)
    made.op(stray, 18_000, 19_000)
    made.op(NONE, 19_000, 20_000)
    steps = made.read()
    assert lengths(steps) == pytest.approx([10, 3])
    assert steps.counters["kernels_of_no_step"] == 2


def test_gaps_before_what_was_launched_already_count_and_none_that_the_host_makes():
    made = Recording()
    made.step(DECODE, 0, 9000)
    graph, kernel = made.launch(100), made.launch(8500)
    made.op(graph, 1000, 2000)
    made.op(graph, 2500, 4000)  # 500 from one to the next
    made.op(graph, 4000, 7000, COLLECTIVE)
    made.op(graph, 7200, 8000)     # behind a collective: as it started
    made.op(kernel, 9000, 10_000)  # launched when the device was idle
    made.op(kernel, 9500, 11_000)  # 500 at the same time
    assert lengths(made.read()) == pytest.approx([3 + 0.8 + 2])


def test_of_two_ranges_the_inner_one_has_a_kernel():
    made = Recording()
    made.step(DECODE, 0, 1000)
    made.step(DECODE, 200, 400)  # as a draft model's
    for at in (100, 300, 500):
        made.op(made.launch(at), at + 10, at + 60)
    assert lengths(made.read()) == pytest.approx([0.1, 0.05])


def test_what_is_left_out_is_counted():
    made = Recording()
    made.step(DECODE, 0, 100)
    made.step("execute_context_0(0)_generation_0(0)", 200, 300)
    made.step(MIXED, 400, 500)
    made.step("execute_0_context_3(sq2sk2sqsq2sqsk2)_generation_0(sq0sk0sqsq0sqsk0)", 600, 700)
    made.op(made.launch(50), 1000, 2000)
    steps = made.read(5.0)
    assert len(steps.steps) == 1 and dict(steps.counters) == {
        "steps_without_tokens": 1, "steps_without_kernels": 1,
        "steps_with_impossible_sums": 1,  # 3 sequences, 2 tokens
        "contexts_assumed": 1}


def test_traces_that_say_too_little_are_refused():
    def fault(made, context=None):
        with pytest.raises(bubblesim.Error) as raised:
            made.read(context)
        return str(raised.value)
    made = Recording()
    assert "names no step of an engine" in fault(made)
    made.step(MIXED, 0, 100)
    assert "--context TOKENS" in fault(made)
    assert "has no kernel of any step" in fault(made, 5.0)
    made = Recording()
    made.step("execute_context_0(0)_generation_8(3)", 0, 100)
    made.step("execute_context_0(512)_generation_8(8)", 100, 200)
    assert ("has no step but 2 with sums that no sequences have, as "
            "\"execute_context_0(512)_generation_8(8)\"") in fault(made)


def event(cat, name, ts, dur, correlation=None, device=False):
    place = {"pid": 0, "tid": 7} if device else {"pid": 7, "tid": 7}
    arguments = {} if correlation is None else {"correlation": correlation}
    return {"ph": "X", "cat": cat, "name": name, **place, "ts": ts, "dur": dur,
            "args": {**arguments, **({"stream": 7, "device": 0} if device else {})}}


def test_the_command_writes_what_pytorchs_profiler_says_of_an_engine(tmp_path, capsys):
    """A prompt of 300 tokens in 80 ms, and one sequence that decodes behind 300 tokens in 20 ms, of
    which the name says no context."""
    trace, output = tmp_path / "engine.json", tmp_path / "steps.json"
    trace.write_text(json.dumps({"traceEvents": [
        event("user_annotation", "execute_context_1(300)_generation_0(0)", 1000, 500),
        event("cuda_runtime", "cudaLaunchKernel", 1100, 5, 1),
        event("kernel", "prompt", 2000, 80000, 1, True),
        event("user_annotation", "execute_context_0(0)_generation_1(1)", 1600, 400),
        event("cuda_runtime", "cudaLaunchKernel", 1700, 5, 2),
        event("kernel", "decode", 90000, 20000, 2, True)]}))
    words = [str(trace), "-o", str(output)]
    assert main(words) == 2 and "--context TOKENS" in capsys.readouterr().err
    assert main([*words, "--context", "301"]) == 0
    out = capsys.readouterr().out
    for line in (f"{output}: 2 steps of engine.json", "decode only: 1, of 1 to 1 tokens, kernels of "
                 "20.000 ms", "with prompts: 1, of 300 to 300 tokens, kernels of 80.000 ms",
                 "notice contexts_assumed: 1 ("):
        assert line in out
    document = json.loads(output.read_text())
    assert list(document) == ["format", "gpu", "source", "steps"]
    assert document["steps"][1]["singles"] == {"sequences": 1, "tokens": 1, "keys": 301,
                                               "squares": 1, "products": 301}
    output.write_text("mine")
    assert main([*words, "--context", "301"]) == 2
    assert "bubblesim did not make it" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*words, "--context", "0"])
