"""The module bubblesim: the C++ and the Python version of a policy give the same report; what goes
wrong in a policy is an error with its words, and never the end of the process."""
import json
import os
import runpy
from pathlib import Path

import bubblesim
import pytest

SOURCE = Path(os.environ["BUBBLESIM_SOURCE"])
EXAMPLE = SOURCE / "sim/plugin/python/examples/quiet_gate.py"
QUIET_GATE = os.environ["BUBBLESIM_QUIET_GATE"]


@pytest.fixture(autouse=True)
def nothing_registered():
    bubblesim.registered.clear()
    yield
    bubblesim.registered.clear()


def config(policies, duration="1s"):
    return {
        "name": "test", "duration": duration, "warmup": "100ms",
        "training": {"trace": str(SOURCE / "traces/samples/training"), "memory": "24GB"},
        "fillers": [{"name": "encoder", "mode": "online", "memory": "2GB",
                     "program": {"trace": str(SOURCE / "traces/samples/inference.json.gz")},
                     "arrivals": {"process": "poisson", "rate_per_s": 200}}],
        "policies": policies}


def run_with(policy_class, duration="200ms", **declared):
    bubblesim.register("mine", policy_class, **declared)
    return bubblesim.run(config(["mine"], duration))


# Held by the same launches at the same instants: not one number differs.
@pytest.mark.parametrize("quiet", ["20us", "100us", "5ms"])
def test_the_cpp_and_the_python_version_of_a_policy_give_identical_reports(quiet):
    policies = [{"name": "quiet_gate", "parameters": {"quiet": quiet}}]
    in_cpp = bubblesim.run(config(policies), libraries=[QUIET_GATE])
    runpy.run_path(str(EXAMPLE))
    in_python = bubblesim.run(config(policies))
    assert json.dumps(in_python) == json.dumps(in_cpp)
    assert in_python["policies"][0]["policy"] == "quiet_gate"
    assert in_python["policies"][0]["activity"]["holds"] > 0


def test_mps_in_python_is_mps_but_for_its_name_and_parameters():
    class Capped(bubblesim.Policy):
        def start(self, gpu, clients):
            return bubblesim.Sharing(bubblesim.SharingMode.MPS)

        def share(self, client):
            return bubblesim.ClientSharing(sm_percentage=100 if client.id == 0 else 30)

    bubblesim.register("mine", lambda parameters: Capped())
    report = bubblesim.run(config(["mine", {"name": "mps",
                                            "parameters": {"filler_percentage": 30}}]))
    mine, mps = report["policies"]
    for key in ("policy", "parameters"):
        mine.pop(key), mps.pop(key)
    assert mine == mps


def test_the_same_run_gives_the_same_report_twice():
    runpy.run_path(str(EXAMPLE))
    first = bubblesim.run(config(["quiet_gate"]))
    assert json.dumps(bubblesim.run(config(["quiet_gate"]))) == json.dumps(first)


def test_a_policy_hears_what_the_contract_says():
    seen = {}

    class Watcher(bubblesim.Policy):
        def __init__(self, parameters):
            super().__init__()
            assert parameters == {"span": 5_000_000, "many": 3, "share": 0.5, "word": "a",
                                  "strict": False}

        def start(self, gpu, clients):
            seen["gpu"], seen["clients"] = gpu, clients
            return bubblesim.Sharing(bubblesim.SharingMode.TIME_SLICED, slice_ns=bubblesim.ms(2))

        def admit(self, filler, used, gpu):
            seen["used"] = used
            return super().admit(filler, used, gpu)

        def on_launch(self, launch, now, actions):
            seen.setdefault("launches", []).append((now, launch))
            return bubblesim.ADMIT

        def on_completion(self, completion, now, actions):
            seen["completion"] = completion

        def add_counts(self, counters):
            counters.add("my_count", bubblesim.Severity.NOTICE, "Counted in a test.", 7)

    report = run_with(Watcher, needs=bubblesim.Needs(completions=True, kernel_durations=True),
                      parameters=[
        bubblesim.declare_duration("span", bubblesim.ms(5), 0, bubblesim.seconds(1)),
        bubblesim.declare_integer("many", 3, 1, 9),
        bubblesim.declare_number("share", 0.5, 0, 1),
        bubblesim.declare_choice("word", ["a", "b"]),
        bubblesim.declare_flag("strict", False)])
    assert seen["gpu"].sm_count > 0
    assert [client.id for client in seen["clients"]] == [0, 1]
    assert seen["clients"][1].role == bubblesim.Role.ONLINE
    assert [client.ranks for client in seen["clients"]] == [4, 1]
    assert seen["used"] == 24_000_000_000
    times = [now for now, _ in seen["launches"]]
    assert max(times) < 200_000_000
    assert any(launch.blocks > 0 and launch.profiled_ns > 0 for _, launch in seen["launches"])
    assert seen["completion"].launch > 0
    assert "my_count" in json.dumps(report["policies"][0]["counters"])


def test_an_exception_ends_the_run_with_policy_method_and_time_and_is_the_cause():
    class Broken(bubblesim.Policy):
        def on_launch(self, launch, now, actions):
            return {}["no such key"]

    with pytest.raises(bubblesim.Error) as caught:
        run_with(lambda parameters: Broken())
    assert "policy mine: threw an exception: on_launch at " in str(caught.value)
    assert "KeyError: 'no such key'" in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.__traceback__ is not None


@pytest.mark.parametrize("method, arguments", [
    ("start", 2), ("share", 1), ("admit", 3), ("next_tick", 0), ("add_counts", 1)])
def test_an_exception_in_any_method_is_an_error(method, arguments):
    def broken(self, *given):
        assert len(given) == arguments
        raise ValueError("broken " + method)

    with pytest.raises(bubblesim.Error, match="ValueError: broken " + method):
        run_with(lambda parameters: type("Broken", (bubblesim.Policy,), {method: broken})())


def test_a_maker_that_raises_or_makes_something_else_is_an_error():
    with pytest.raises(bubblesim.Error, match="make: ZeroDivisionError"):
        run_with(lambda parameters: 1 // 0)
    with pytest.raises(bubblesim.Error, match="made 5, expected an instance of a subclass"):
        run_with(lambda parameters: 5)


def test_a_value_of_a_wrong_type_is_an_error():
    class Undecided(bubblesim.Policy):
        def on_launch(self, launch, now, actions):
            pass

    with pytest.raises(bubblesim.Error, match="on_launch returned None, expected Verdict.ADMIT"):
        run_with(lambda parameters: Undecided())


def test_an_illegal_decision_is_an_error():
    class Releaser(bubblesim.Policy):
        def on_launch(self, launch, now, actions):
            actions.release(1)
            return bubblesim.ADMIT

    with pytest.raises(bubblesim.Error, match="policy mine: illegal decision at .*holds no launch"):
        run_with(lambda parameters: Releaser())


def test_actions_are_for_the_present_call_only():
    kept = []

    class Hoarder(bubblesim.Policy):
        def on_launch(self, launch, now, actions):
            kept.append(actions)
            with pytest.raises(ValueError):
                actions.oldest_held(1)
            return bubblesim.ADMIT

    run_with(lambda parameters: Hoarder())
    with pytest.raises(RuntimeError, match="used after the call"):
        kept[0].release(1)


def test_ctrl_c_in_a_policy_is_ctrl_c():
    class Stopped(bubblesim.Policy):
        def on_launch(self, launch, now, actions):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with(lambda parameters: Stopped())


def test_bad_declarations_are_refused_at_once():
    with pytest.raises(ValueError, match="policy mps: there is a policy of this name already"):
        bubblesim.register("mps", bubblesim.Policy)
    with pytest.raises(ValueError, match="snake_case"):
        bubblesim.register("My-Policy", bubblesim.Policy)
    with pytest.raises(ValueError, match="its default is not allowed"):
        bubblesim.register("mine", bubblesim.Policy,
                           parameters=[bubblesim.declare_integer("many", 10, 1, 9)])
    with pytest.raises(TypeError):
        bubblesim.register("mine", 5)


def test_faults_of_a_config_name_their_place():
    with pytest.raises(bubblesim.Error, match='/policies/0: unknown policy "mpss"; did you mean'):
        bubblesim.run(config(["mpss"]))
    with pytest.raises(bubblesim.Error, match="no-such-file"):
        bubblesim.run("no-such-file.json")


def test_policies_take_the_place_of_the_configs():
    report = bubblesim.run(str(SOURCE / "configs/runs/example.json"), policies=["exclusive"])
    assert [policy["policy"] for policy in report["policies"]] == ["exclusive"]


def test_a_placer_says_where_instances_run():
    asked = []

    class OnTheLast(bubblesim.Placer):
        def place(self, waiting, gpus, now):
            asked.append((now, [job.name for job in waiting], [gpu.id for gpu in gpus]))
            return [(job.id, gpus[-1].id) for job in waiting]

    bubblesim.register("mine", lambda parameters: bubblesim.Policy(),
                       make_placer=lambda parameters: OnTheLast())
    one = config(["mine"], "200ms")
    one["fillers"][0]["instances"] = 1
    filler, = bubblesim.run(one)["policies"][0]["fillers"]
    assert asked == [(0, ["encoder"], [0, 1, 2, 3])]
    assert [instance["gpu"] for instance in filler["instances"]] == [3]

    bubblesim.register("mine", lambda parameters: bubblesim.Policy(),
                       make_placer=lambda parameters: 5)
    with pytest.raises(bubblesim.Error, match="made 5, expected an instance of a subclass of "):
        bubblesim.run(one)


def test_spans_of_time_are_whole_nanoseconds():
    assert bubblesim.us(3.2) == 3200
    assert bubblesim.ms(1.0000005) == 1_000_001  # 1,000,000.5 away from zero
    assert bubblesim.parse_duration("1.024ms") == 1_024_000
    assert bubblesim.format_duration(1_500_000) == "1.5ms"
    with pytest.raises(ValueError):
        bubblesim.seconds(1e300)
    with pytest.raises(ValueError, match="unit"):
        bubblesim.parse_duration("5")
