"""Which fill work goes to which of many training jobs: `python3 -m bubblesim.fleet JOBS.csv`.

Jobs that are alike (trace, plan, device, memory) are one kind. `advise` answers for each kind and
work, per GPU of the job. A day's GPU-hours of the kinds are split among the works so that weighted
gains less what training loses are greatest; no more requests are done than the queue has. Jobs of a
kind take the works in the queue's order. configs/README.md ("A fleet") explains tables and output.
"""
import argparse
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import Error, _core, format_duration, parse_duration
from ._advise import Advice
from ._frames import _needed
from ._table import (FORCE_HELP, STOPPED, Parser, Rows, check_outputs, ended, failed, names,
                     number_from, table_text, threads, write_file)

JOB_COLUMNS = ["job", "hours", "gpus", "trace", "model", "plan", "cluster", "device", "memory"]
WORK_COLUMNS = ["work", "trace", "model", "batch", "prompt_tokens", "output_tokens", "memory",
                "requests", "weight"]
HOURS_OF_DAY = 24
SECONDS_OF_HOUR = 3600
LEAST_BUDGET_NS = 100_000_000  # of one kind and work
NO_HOURS = 1e-9                # rounding


@dataclass
class Job:
    name: str
    place: str
    training: dict            # as in a run config, paths absolute
    device: str
    gpus: float | None        # None: as many as its traces or plan have
    hours: float              # of a day


@dataclass
class Work:
    name: str
    place: str
    filler: dict              # as in a run config, offline
    requests: float | None = None  # None: no end
    weight: float = 1


@dataclass
class Answer:
    """A kind with a work, per GPU of the job; `reason`: why it takes none of it."""
    reason: str = ""
    policy: str = ""
    setting: str = ""
    gains: float = 0.0        # of a filler's own GPU
    costs: float = 0.0        # share of training that is lost
    requests_per_s: float = 0.0
    run_config: dict | None = None


@dataclass
class Kind:
    first: int                # job
    jobs: int = 0
    device: str = ""
    own_gpus: float = 0.0     # of its traces or plan
    gpu_hours: float = 0.0    # a day
    bubble: float = 0.0
    answers: list = field(default_factory=list)  # by work
    hours: list = field(default_factory=list)    # GPU-hours a day, by work


@dataclass
class Plan:
    jobs: list
    work: list
    keep: float
    kinds: list = field(default_factory=list)
    kind_of: list = field(default_factory=list)     # by job
    gpus: list = field(default_factory=list)        # by job
    placements: list = field(default_factory=list)  # (job, work, hours), by job, then by time
    stopped: bool = False
    simulated: int = 0
    stored: int = 0

    def answer_of(self, job, work):
        return self.kinds[self.kind_of[job]].answers[work]

    def gained(self, work=None):
        """GPU-hours (filled, gained, lost) and requests a day, of a work or of all."""
        sums = [0.0, 0.0, 0.0, 0.0]
        for job, placed, hours in self.placements:
            if work in (None, placed):
                answer, gpu_hours = self.answer_of(job, placed), hours * self.gpus[job]
                for i, rate in enumerate((1, answer.gains, answer.costs, answer.requests_per_s)):
                    sums[i] += gpu_hours * rate * (SECONDS_OF_HOUR if i == 3 else 1)
        return sums


def _path(table, row):
    path = Path(os.path.abspath(Path(table.file).parent / row["trace"]))
    if not path.exists():
        table.fault(row, "trace", "a file or folder that exists")
    return str(path)


def _program(table, row, of_model):
    """{"trace": ...} or {"model": ...}; cells `of_model` are nothing beside a trace."""
    model, trace = row.get("model", ""), row.get("trace", "")
    if bool(model) == bool(trace):
        table.fault(row, "trace" if model else "model",
                    "either a trace or a model (of a job: with plan and cluster)")
        return {}
    if model:
        return {"model": model}
    for column in of_model:
        if row.get(column):
            table.fault(row, column, "nothing, as there is a trace")
    return {"trace": _path(table, row)}


def _with_memory(settings, memory):
    return {**settings, "memory": memory} if memory else settings


def read_jobs(path):
    """The table of training jobs; raises Error with all its faults."""
    table, jobs = Rows(path, JOB_COLUMNS, ["job", "hours"]), []
    for row in table:
        training = _program(table, row, ["plan", "cluster"])
        if "model" in training:
            for key in ("plan", "cluster"):
                training[key] = row.get(key, "")
                if not training[key]:
                    table.fault(row, key, "a name, as there is a model")
            training = {"synth": training}
        elif training:
            training = {"trace": [training["trace"]]}
        hours = table.above_zero(row, "hours")
        if hours is None:
            table.fault(row, "hours", "a number above 0")
        jobs.append(Job(table.name(row, "job"), row["place"],
                        _with_memory(training, row.get("memory")), row.get("device", ""),
                        table.above_zero(row, "gpus"), min(hours or 1, HOURS_OF_DAY)))
    table.check()
    return jobs


def filler_of(name, program, memory):
    return _with_memory({"name": name, "mode": "offline", "program": program}, memory)


def read_work(path):
    """The queue of fill work; raises Error with all its faults."""
    table, work = Rows(path, WORK_COLUMNS, ["work"]), []
    sizes = ["batch", "prompt_tokens", "output_tokens"]
    for row in table:
        name, program = table.name(row, "work"), _program(table, row, sizes)
        if "model" in program:
            given = {size: table.above_zero(row, size, whole=True) for size in sizes}
            program.update({size: value for size, value in given.items() if value is not None})
        work.append(Work(name, row["place"], filler_of(name, program, row.get("memory")),
                         table.above_zero(row, "requests"), table.above_zero(row, "weight", 1.0)))
    table.check()
    return work


def best_split(hours, left, value, done):
    """GPU-hours of each kind (first index) that each work gets, of the greatest value: `hours` by
    kind; `left` by work, requests or None for no end; `value` and `done` by kind and work, worth
    and requests of an hour. A linear programme, by the simplex method with Bland's rule, which
    never cycles (R. G. Bland, "New Finite Pivoting Rules for the Simplex Method", 1977)."""
    numpy = _needed("numpy", "splits of fleets")
    zero, most_pivots = 1e-12, 100_000
    kinds, works = len(hours), len(left)
    ends = [work for work in range(works) if left[work] is not None]
    variables, rows = kinds * works, kinds + len(ends)
    tableau = numpy.zeros((rows + 1, variables + rows + 1))
    tableau[:rows, variables:-1] = numpy.eye(rows)
    tableau[:kinds, -1] = hours
    for kind in range(kinds):
        own = slice(kind * works, (kind + 1) * works)
        tableau[kind, own] = 1
        tableau[-1, own] = [-worth for worth in value[kind]]
        for row, work in enumerate(ends, kinds):
            tableau[row, kind * works + work] = done[kind][work]
    tableau[kinds:rows, -1] = [left[work] for work in ends]
    basis = list(range(variables, variables + rows))
    for _ in range(most_pivots):
        entering = numpy.flatnonzero(tableau[-1, :-1] < -zero)
        if not len(entering):
            break
        column, best, least = entering[0], None, 0.0
        for row in range(rows):
            if tableau[row, column] <= zero:
                continue
            ratio, equal = tableau[row, -1] / tableau[row, column], zero * max(1.0, least)
            if best is None or ratio < least - equal or (
                    ratio <= least + equal and basis[row] < basis[best]):
                best, least = row, ratio
        if best is None:
            break
        tableau[best] /= tableau[best, column]
        factors = tableau[:, column].copy()
        factors[best] = 0
        tableau -= numpy.outer(factors, tableau[best])
        basis[best] = int(column)
    split = numpy.zeros(variables)
    for row, variable in enumerate(basis):
        if variable < variables:
            split[variable] = max(0.0, tableau[row, -1])
    return split.reshape(kinds, works).tolist()


def place_work(plan):
    """Splits the kinds' hours among the works, and gives them to jobs one by one."""
    split = best_split(
        [kind.gpu_hours for kind in plan.kinds], [work.requests for work in plan.work],
        [[answer.gains * work.weight - answer.costs
          for answer, work in zip(kind.answers, plan.work)] for kind in plan.kinds],
        [[answer.requests_per_s * SECONDS_OF_HOUR for answer in kind.answers]
         for kind in plan.kinds])
    for kind, hours in zip(plan.kinds, split):
        kind.hours = list(hours)
    for job, kind in enumerate(plan.kind_of):
        free = plan.jobs[job].hours
        for work, left in enumerate(split[kind]):
            hours = min(free, left / plan.gpus[job])
            if hours > NO_HOURS:
                plan.placements.append((job, work, hours))
                split[kind][work] -= hours * plan.gpus[job]
                free -= hours


class Planner:
    """Asks `advise` for each kind and work. `options`: of the command line."""

    def __init__(self, plan, options, stopped):
        self.plan, self.options, self.stopped = plan, options, stopped
        self.fits = False     # some work beside some job

    def base_of(self, job, *fillers):
        base = {"name": "fleet", "seed": self.options.seed,
                "duration": format_duration(self.options.duration),
                "warmup": format_duration(self.options.warmup), "training": job.training,
                "fillers": list(fillers), "policies": ["exclusive"]}
        return {**base, "device": job.device} if job.device else base

    def at_job(self, job, message):
        return (self.options.jobs, job.place, f"job {job.name}: {message}")

    def at_work(self, work, fault):
        """A fault of the work's row, by its column."""
        key = fault.place.rpartition("/")[2] if fault.place.startswith("/fillers") else ""
        column = {"name": "work"}.get(key, key)
        if column not in WORK_COLUMNS[3:7]:
            column = "model" if "model" in work.filler["program"] else "trace"
        file = self.options.queue or "--filler"
        text = fault.message if key else ": ".join(part for part in fault if part)
        return (file, work.place, f"{column}: {text}")

    def sort_into_kinds(self):
        plan, known, faults = self.plan, {}, []
        contents = _core.run_contents([json.dumps(self.base_of(job)) for job in plan.jobs],
                                      self.options.configs)
        for number, (job, content) in enumerate(zip(plan.jobs, contents)):
            if not isinstance(content, str):
                faults += [self.at_job(job, fault.message) for fault in content]
                continue
            if content not in known:
                known[content] = len(plan.kinds)
                plan.kinds.append(Kind(number))
            plan.kind_of.append(known[content])
            plan.kinds[known[content]].jobs += 1
        if faults:
            raise failed(faults)

    def check_work(self, job, works):
        """What is wrong with works that do not load beside a job that does."""
        def load(*fillers):
            return _core.load_faults(json.dumps(self.base_of(job, *fillers)), self.options.configs)
        if load():
            return
        faults = [self.at_work(work, fault) for work in works for fault in load(work.filler)]
        if faults:
            raise failed(faults)

    def question_of(self, job, work):
        budget = self.options.budget // (len(self.plan.kinds) * len(self.plan.work))
        question = {"name": f"{job.name}-{work.name}", "base": self.base_of(job, work.filler),
                    "keep": self.plan.keep, "budget": f"{max(LEAST_BUDGET_NS, budget)}ns"}
        for key in ("can", "cannot", "policies"):
            if getattr(self.options, key) is not None:
                question[key] = getattr(self.options, key)
        return question

    def ask(self, kind, work):
        if self.plan.stopped:
            return Answer("stopped")
        job = self.plan.jobs[kind.first]
        self.check_work(job, [work])
        options = self.options
        try:
            data = _core.answer_question(self.question_of(job, work), None, options.store,
                                         options.configs, options.threads, None,
                                         options.libraries, self.stopped)
        except Error as error:
            if self.stopped():
                return Answer("stopped")
            fault = error.faults[0]
            if fault.place.startswith("/fillers"):  # what it asks for in vain is this pair's
                return Answer(fault.message)
            if fault.file in (*options.libraries, options.store):
                raise
            if fault.place[1:] in ("can", "cannot", "policies"):
                option = "policy" if fault.place == "/policies" else fault.place[1:]
                raise failed([(f"--{option}", "", fault.message)]) from None
            raise failed([self.at_job(job, one.message) for one in error.faults]) from None
        self.fits = True
        return self.answer_of(kind, Advice(data), data)

    def answer_of(self, kind, advice, data):
        alone, best = advice["alone"], advice["recommended"]
        kind.device, kind.own_gpus = alone["device"], float(alone["gpus"])
        kind.bubble = alone["bubble_share"]
        self.plan.simulated += data.simulated
        self.plan.stored += data.stored
        if best is None:
            return Answer("nothing that was tried keeps the limits")
        if best["gpus_worth"] <= 0:
            return Answer("nothing gains anything within the limits")
        run = next(part["title"] for part in advice["text"] if part["title"].startswith("Run "))
        name = best["policy"] if isinstance(best["policy"], str) else best["policy"]["name"]
        gpus = alone["gpus_simulated"]
        return Answer("", name, run.removeprefix("Run "), best["gpus_worth"] / gpus,
                      1 - best["training_kept"], best["requests_per_s"] / gpus, advice.config)

    def run(self, told):
        plan = self.plan
        self.sort_into_kinds()
        self.check_work(plan.jobs[0], plan.work)  # before hours of searches
        for kind in plan.kinds:
            for work in plan.work:
                told(f"{plan.jobs[kind.first].name} with {work.name}")
                kind.answers.append(self.ask(kind, work))
                plan.stopped = plan.stopped or self.stopped()
        if not self.fits and not plan.stopped:
            raise failed([(self.options.queue or "--filler", work.place,
                           f"fits no job; beside {plan.jobs[0].name}: {answer.reason}")
                          for work, answer in zip(plan.work, plan.kinds[0].answers)])
        for job, number in zip(plan.jobs, plan.kind_of):
            plan.gpus.append(job.gpus or plan.kinds[number].own_gpus)
            plan.kinds[number].gpu_hours += plan.gpus[-1] * job.hours
        place_work(plan)


def two_digits(number):
    return f"{0.0 if abs(number) < 0.005 else number:.2f}"  # what rounds to nothing has no sign


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole > 0 else "-"


def summary(plan):
    hours = sum(kind.gpu_hours for kind in plan.kinds)
    _, gained, lost, _ = plan.gained()
    return (f"{len(plan.jobs)} jobs of {len(plan.kinds)} kinds, {len(plan.work)} works: "
            f"{gained:.1f} of {hours:.1f} GPU-hours a day gained ({percent(gained, hours)}), "
            f"training loses {lost:.1f} ({percent(lost, hours)})")


def _kind_rows(plan, kind):
    head = [plan.jobs[kind.first].name, str(kind.jobs), f"{kind.gpu_hours:.1f}"]
    rows = []
    for work, answer, hours in zip(plan.work, kind.answers, kind.hours):
        if hours > 0:
            rows.append([*(["", "", ""] if rows else head), work.name, f"{hours:.1f}",
                         two_digits(hours * answer.gains), two_digits(hours * answer.costs),
                         f"{1 - answer.costs:.4f}", answer.setting])
    why = kind.answers[0].reason or ("no work pays under the setting that gains most, or none is "
                                     "left")
    return rows or [[*head, "-", "", "", "", "", why]]


def plan_text(plan):
    """Kinds and works; jobs one by one are in the other forms."""
    kinds = table_text(["kind", "jobs", "GPU-h", "work", "GPU-h filled", "gained", "lost", "keeps",
                        "setting"], {1, 2, 4, 5, 6, 7},
                       [row for kind in plan.kinds for row in _kind_rows(plan, kind)], "  ")
    works = []
    for number, work in enumerate(plan.work):
        _, gained, _, requests = plan.gained(number)
        works.append([work.name, two_digits(gained), f"{requests:.0f}",
                      percent(requests, work.requests) if work.requests else "no end"])
    queue = table_text(["work", "gained, GPU-h", "requests a day", "of the queue"], {1, 2, 3},
                       works, "  ")
    stopped = "; stopped before the end" if plan.stopped else ""
    return (f"{summary(plan)}\n\n{kinds}\n{queue}\n{plan.simulated} runs now, {plan.stored} stored "
            f"before{stopped}\n")


def _answer_json(work, answer, hours):
    head = {"work": work.name, "gpu_hours": hours}
    if answer.reason:
        return {**head, "reason": answer.reason}
    return {**head, "policy": answer.policy, "setting": answer.setting,
            "gains_per_gpu": answer.gains, "training_kept": 1 - answer.costs,
            "requests_per_gpu_s": answer.requests_per_s, "run_config": answer.run_config}


def plan_json(plan):
    """The whole plan, as a dict."""
    filled, gained, lost, _ = plan.gained()
    name = [plan.jobs[kind.first].name for kind in plan.kinds]
    kinds = [{"kind": name[number], "jobs": kind.jobs, "device": kind.device,
              "gpu_hours": kind.gpu_hours, "bubble_share": kind.bubble,
              "answers": [_answer_json(*each)
                          for each in zip(plan.work, kind.answers, kind.hours)]}
             for number, kind in enumerate(plan.kinds)]
    works = []
    for number, work in enumerate(plan.work):
        sums = plan.gained(number)
        works.append({"work": work.name, "weight": work.weight, "requests_in_queue": work.requests,
                      "requests": sums[3], "gained_gpu_hours": sums[1]})
    placements = []
    for job, work, hours in plan.placements:
        answer, gpu_hours = plan.answer_of(job, work), hours * plan.gpus[job]
        placements.append({"job": plan.jobs[job].name, "kind": name[plan.kind_of[job]],
                           "gpus": plan.gpus[job], "work": plan.work[work].name, "hours": hours,
                           "policy": answer.policy, "gained_gpu_hours": gpu_hours * answer.gains,
                           "lost_gpu_hours": gpu_hours * answer.costs})
    return {"jobs": len(plan.jobs), "limits": {"keep": plan.keep},
            "gpu_hours": sum(kind.gpu_hours for kind in plan.kinds), "filled_gpu_hours": filled,
            "gained_gpu_hours": gained, "lost_gpu_hours": lost, "stopped": plan.stopped,
            "kinds": kinds, "work": works, "placements": placements}


def _cell(text):
    return "\"" + text.replace("\"", "\"\"") + "\"" if set(text) & set("\",\r\n") else text


def plan_csv(plan):
    """A row a job and work; a job that takes nothing has a row with an empty work."""
    lines = ["job,kind,gpus,work,hours,policy,setting,gained_gpu_hours,lost_gpu_hours,requests"]
    for job, kind in enumerate(plan.kind_of):
        head = [_cell(plan.jobs[job].name), _cell(plan.jobs[plan.kinds[kind].first].name),
                f"{plan.gpus[job]:g}"]
        placed = [place for place in plan.placements if place[0] == job]
        for _, work, hours in placed:
            answer, gpu_hours = plan.answer_of(job, work), hours * plan.gpus[job]
            lines.append(",".join([
                *head, _cell(plan.work[work].name), f"{hours:.6g}", answer.policy,
                _cell(answer.setting), f"{gpu_hours * answer.gains:.6g}",
                f"{gpu_hours * answer.costs:.6g}",
                f"{gpu_hours * answer.requests_per_s * SECONDS_OF_HOUR:.0f}"]))
        if not placed:
            lines.append(",".join([*head, "", "0", "", "", "0", "0", "0"]))
    return "\n".join(lines) + "\n"


def plan_page(plan):
    """The plan as an HTML page that needs nothing else."""
    return _core.fleet_page(json.dumps({**plan_json(plan), "summary": summary(plan)}))


def _span(text):
    try:
        return parse_duration(text)
    except (Error, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _words(text):
    return [word.strip() for word in text.split(",") if word.strip()]


def _parser():
    parser = Parser(
        prog="python3 -m bubblesim.fleet",
        description="Says which fill work goes to which of many training jobs, what a day gains "
                    "and what training loses. configs/README.md (A fleet) has the tables' columns.",
        epilog="Example: python3 -m bubblesim.fleet configs/advise/fleet/jobs.csv --queue "
               "configs/advise/fleet/work.csv --duration 2s --warmup 500ms --budget 2s. Exit "
               "codes: 0 there is a plan; 2 a fault of the input; 130 stopped by Ctrl-C or "
               "SIGTERM, with what was known by then.")
    add = parser.add_argument
    add("jobs", metavar="JOBS.csv", help="table of training jobs")
    work = parser.add_mutually_exclusive_group(required=True)
    work.add_argument("--queue", metavar="WORK.csv", help="table of fill work")
    work.add_argument("--filler", metavar="TRACE", help="one work without an end, a recorded pass")
    add("--filler-memory", help="device memory that it holds, such as 4GB (default: not known)")
    add("--keep", type=number_from(0.01, 1), default=0.98,
        help="least share of training's throughput that stays (default: %(default)s)")
    add("--can", type=_words, help="what the system has, comma-separated (default: all; `bubblesim "
                                   "policies` says who demands what)")
    add("--cannot", type=_words, help="what of it the system has not")
    add("--policy", dest="policies", type=names, help="policies to try (default: all)")
    add("--budget", type=_span, default="30s", help="how much to simulate, all searches together: "
                                                    "work of two cores (default: %(default)s)")
    add("--duration", type=_span, default="20s", help="simulated time of a full trial (default: "
                                                      "%(default)s)")
    add("--warmup", type=_span, default="5s", help="of it before anything is measured (default: "
                                                   "%(default)s)")
    add("--seed", type=number_from(0, 2 ** 53, whole=True), default=1,
        help="of jitter (default: %(default)s)")
    add("-o", "--store", help="store that keeps all runs; started again, it goes on there")
    add("--csv", help="write a row a job and work here")
    add("--html", help="write the page here")
    add("--json", action="store_true", help="print JSON instead of text")
    add("--force", action="store_true", help=FORCE_HELP)
    add("--threads", type=threads, default=0,
        help="simulations at once; the plan does not depend on it (default: all cores)")
    add("--policy-library", dest="libraries", action="append", default=[],
        help="shared library with policies of your own; may be given several times")
    add("--configs", help="folder with devices/ (default: the installed one)")
    return parser


def _check(options):
    faults = []
    if options.budget < 10_000_000:
        faults.append(("--budget", "", f"found {format_duration(options.budget)}, expected at "
                                       "least 10ms"))
    if options.warmup >= options.duration:
        faults.append(("--warmup", "", f"found {format_duration(options.warmup)}, expected less "
                                       "than --duration"))
    if options.queue and options.filler_memory:
        faults.append(("--filler-memory", "", "found with --queue; a row of WORK.csv says it: "
                                              "column \"memory\""))
    if faults:
        raise failed(faults)
    check_outputs([("--csv", options.csv, "job,kind,gpus,work,"),
                   ("--html", options.html, "Which fill work goes where"),
                   ("--store", _file_of(options.store), "SQLite format 3")],
                  [options.jobs, *filter(None, [options.queue, options.filler]),
                   *options.libraries], options.force)


def _file_of(store):
    return None if (store or "").startswith("postgresql://") else store


def _queue_of(options):
    if options.queue:
        return read_work(options.queue)
    trace = Path(os.path.abspath(options.filler))
    name = Path(trace.stem).stem
    return [Work(name, "", filler_of(name, {"trace": str(trace)}, options.filler_memory))]


def make_plan(options, asked):
    _needed("numpy", "splits of fleets")  # before hours of searches
    _check(options)
    plan = Plan(read_jobs(options.jobs), _queue_of(options), options.keep)
    clear = "\r\33[K" if sys.stderr.isatty() else ""
    Planner(plan, options, lambda: bool(asked)).run(
        lambda step: clear and print(clear + step, end="", file=sys.stderr, flush=True))
    sys.stderr.write(clear)
    write_file(options.html, plan_page(plan))
    write_file(options.csv, plan_csv(plan))
    text = json.dumps(plan_json(plan), indent=1, ensure_ascii=False) + "\n"
    sys.stdout.write(text if options.json else plan_text(plan))
    return 0


def main(arguments=None):
    """The command; returns its exit code."""
    asked = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.append(1) if not asked else os._exit(STOPPED))
    code = ended("bubblesim.fleet", lambda: make_plan(_parser().parse_args(arguments), asked))
    return STOPPED if asked else code


if __name__ == "__main__":
    sys.exit(main())
