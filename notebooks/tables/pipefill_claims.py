"""PipeFill's claims (MLSys 2025, arXiv 2410.07192), judged from the tables of pipefill.py.

The paper's text was not at hand: its abstract was, and summaries. "About" means within a fifth of
the stated number. Verdicts are of PipeFill as `bubblesim policies pipefill` sets it, with time
slices; what MPS in their place would give stands beside.
"""
from .claims import Claim, percent, within

ABSTRACT = "arXiv 2410.07192, abstract"
SUMMARY = "a summary of arXiv 2410.07192"
PAPER = {"gain_large": 0.63, "gain_small": (0.05, 0.15), "slowdown": 0.02, "worth_gpus": 2600,
         "days": {1024: 82, 4096: 34, 8192: 26}, "fraction": 0.68}
TIME, MPS = "pipefill", "PipeFill, MPS"
SMALL, LARGE = 1024, 8192
FIFTH = 0.2
JOB = "40B, 16 stages of 8 V100-32GB, batch 512, GPipe"
STOPPED = ("The bubble instruction stops the main job before it receives (inferred), so that its "
           "receive does not spin for every other slice")
ONE_PASS = ("A fill job's host waits for each of its passes, and what then no longer fits is not "
            "launched: at most the last pass of a bubble overruns it")


def pick(frame, column, **where):
    """The one value of a column; NaN if there is no such row."""
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return float(frame[column].iloc[0]) if len(frame) else float("nan")


def both(frame, column, form, scale=1, **where):
    """Our number with time slices and under MPS, as text."""
    found = [scale * pick(frame, column, series=series, **where) for series in (TIME, MPS)]
    return f"{form.format(found[0])} (time slices); {form.format(found[1])} (MPS)"


def about(value, stated):
    return within(value, stated * (1 - FIFTH), stated * (1 + FIFTH))


def every(*answers):
    """All of them; None where one cannot be told."""
    return None if None in answers else all(answers)


def of_bubbles(bubbles):
    small, large = (pick(bubbles, "last_stage", gpus=g) for g in (SMALL, LARGE))
    mean = [pick(bubbles, "pipeline", gpus=g) for g in (SMALL, LARGE)]
    rule = [pick(bubbles, "law", gpus=g) for g in (SMALL, LARGE)]
    return Claim(
        "pipefill-bubbles", "bubbles are often 15-30 % of the job's GPU time, and can exceed 60 %",
        ABSTRACT, "stated",
        f"{percent(small)} at 1K to {percent(large)} at 8K GPUs (last stage)", JOB,
        every(within(small, 0.15, 0.30), within(large, 0.60, 1.0)),
        f"(p - 1)/(m + p - 1) gives {percent(rule[0])} and {percent(rule[1])}. Over all stages the "
        f"mean is {percent(mean[0])} and {percent(mean[1])}: the last one has the output layer on "
        "top, and the others wait for it in each micro-batch. Stages and batch are inferred from "
        "the paper's days")


def of_days(days):
    ours = {g: pick(days, "relative", gpus=g) for g in (4096, LARGE)}
    stated = {g: PAPER["days"][g] / PAPER["days"][SMALL] for g in ours}
    agrees = every(*(within(ours[g] / stated[g], 0.9, 1.1) for g in ours))
    day = {g: pick(days, "days", gpus=g) for g in (SMALL, 4096, LARGE)}
    tokens = 300 * PAPER["days"][SMALL] / day[SMALL]
    return Claim(
        "pipefill-days", "the 40B job trains 82 days on 1K, 34 on 4K, 26 on 8K GPUs: as 1 to "
        f"{stated[4096]:.2f} to {stated[LARGE]:.2f}", SUMMARY, "second-hand",
        f"as 1 to {ours[4096]:.2f} to {ours[LARGE]:.2f}; {day[SMALL]:.1f}, {day[4096]:.1f}, "
        f"{day[LARGE]:.1f} days for 300 B tokens", JOB, agrees,
        "Judged by the ratios, to a tenth. The token count is not known; at our rate 82 days are "
        f"{tokens:.0f} B tokens. What does not depend on the number of micro-batches, gradients and"
        " optimiser, takes less than the three slots of a micro-batch that the paper's days imply")


def busy(table, gpus):
    """More busy time, for BERT base under GPipe, as text."""
    return "; busy time of BERT base " + both(
        table, "gain_busy", "+{:.0f} %", scale=100, gpus=gpus, kind="inference", schedule="gpipe")


def of_gain_large(mixed, table):
    where = {"kind": "inference", "gpus": LARGE}
    return Claim(
        "pipefill-gain-8k", "overall GPU utilisation rises by up to 63 % at 8K GPUs", ABSTRACT,
        "stated", both(mixed, "gain_flops", "+{:.0f} %", scale=100, **where) + busy(table, LARGE),
        f"{JOB}; useful FLOP/s over the main job's, mean of batch inference of all models",
        about(pick(mixed, "gain_flops", series=TIME, **where), PAPER["gain_large"]),
        "The paper's fill jobs and what its utilisation counts are not known to us. At its own "
        "2.6K GPUs, +63 % means a main job that alone keeps its GPUs half busy; ours, with "
        "tensor-parallel exchanges besides the bubbles, computes less of the time, so that the "
        "same work in GPUs is more of it")


def of_gain_small(mixed, table, short):
    where = {"kind": "inference", "gpus": SMALL}
    share = pick(short, "share", series=TIME, schedule="gpipe", gpus=SMALL, min_bubble_ms=0.0)
    long = pick(short, "share", series=TIME, schedule="gpipe", gpus=SMALL, min_bubble_ms=100.0)
    return Claim(
        "pipefill-gain-1k", "utilisation rises by 5-15 % at low scale", ABSTRACT, "stated",
        both(mixed, "gain_flops", "+{:.1f} %", scale=100, **where) + busy(table, SMALL),
        f"{JOB}, 1K GPUs; useful FLOP/s, mean of batch inference of all models",
        within(pick(mixed, "gain_flops", series=TIME, **where), *PAPER["gain_small"]),
        "Our job has many short waits besides fill and drain: for the slower last stage, and for "
        "transfers, in each micro-batch. Bubbles of 100 ms or more alone give "
        f"{percent(long, 1)} of a GPU in place of {percent(share, 1)}")


def of_slowdown(table, mixed):
    part = table[(table["kind"] == "inference") & (table["schedule"] == "gpipe")]
    worst = {s: float(part[part["series"] == s]["slowdown"].max()) for s in (TIME, MPS)}
    types = {s: float(mixed[mixed["series"] == s]["slowdown"].max()) for s in (TIME, MPS)}
    return Claim(
        "pipefill-slowdown", "the main job is slowed by less than 2 %", ABSTRACT, "stated",
        f"up to {percent(worst[TIME], 1)} (time slices); {percent(worst[MPS], 2)} (MPS). Any kind "
        f"of fill job: up to {percent(types[TIME], 1)}; {percent(types[MPS], 1)}",
        f"{JOB}, 1K to 16K GPUs; batch inference of BERT base",
        within(worst[TIME], 0, PAPER["slowdown"]),
        f"{ONE_PASS}. Long passes cost more with time slices (training, XLM-RoBERTa XL): as many "
        "of their kernels as fit by their profiles are launched at once, and cannot be called "
        "back; the main job's turn comes when they have ended. With time slices a transfer advances "
        "only while the contexts of both its stages have their GPUs: one that is under way when a "
        "bubble begins shares them with fill jobs (likely what makes the difference to MPS)")


def of_worth(mixed):
    where = {"kind": "inference", "gpus": LARGE}
    return Claim(
        "pipefill-worth", "at 8K GPUs fill jobs do the work of up to 2.6K more GPUs", ABSTRACT,
        "stated", both(mixed, "worth_gpus", "{:.0f} GPUs", **where),
        f"{JOB}; mean of batch inference of all models, each over a GPU of its own",
        about(pick(mixed, "worth_gpus", series=TIME, **where), PAPER["worth_gpus"]),
        f"{STOPPED}; fill kernels have the whole of 0.68 of every bubble, as under MPS. Beside a "
        "receive that spins (main_job: takes_turns) they have half of it: the paper's number lies "
        "between. Which bubbles it leaves alone is not known to us")


def of_schedules(ratios, short):
    where = {"kind": "inference", "gpus": SMALL}
    where_long = {"series": MPS, "gpus": SMALL, "min_bubble_ms": 100.0}
    other, gpipe = (pick(short, "share", schedule=s, **where_long) for s in ("1f1b", "gpipe"))
    long = other / gpipe if gpipe > 0 else float("nan")
    return Claim(
        "pipefill-gpipe", "fills GPipe and 1F1B alike, GPipe slightly better at small scale",
        SUMMARY, "second-hand",
        "1F1B's fill work over GPipe's at 1K: " + both(ratios, "ratio", "{:.2f}", **where),
        f"{JOB} and 1F1B, 1K GPUs; batch inference of BERT base",
        within(pick(ratios, "ratio", series=TIME, **where), 0.8, 0.9999),
        "1F1B's bubble comes in parts: gaps of one forward pass between backward passes, which the "
        "paper is recalled not to fill; our policy fills every wait for a peer. With bubbles of "
        f"100 ms or more alone the ratio is {long:.2f} (MPS)")


def of_inference(best, bubbles):
    trained = set(best[best["kind"] == "training"]["model"])
    part = best[(best["gpus"] == LARGE) & best["model"].isin(trained)]
    rate = part.groupby(["series", "kind"])["fill_tflops"].mean()
    share = part.groupby(["series", "kind"])["share"].mean()
    slow = part.groupby(["series", "kind"])["slowdown"].max()
    if (TIME, "training") not in rate or (MPS, "training") not in rate:
        agrees, ours, cost = None, "", ""
    else:
        agrees = bool(rate[TIME, "inference"] > rate[TIME, "training"])
        ours = "; ".join(
            f"{rate[s, 'inference']:.1f} and {rate[s, 'training']:.1f} TFLOP/s a GPU, "
            f"{percent(share[s, 'inference'])} and {percent(share[s, 'training'])} of a GPU of its "
            f"own ({name})" for s, name in ((TIME, "time slices"), (MPS, "MPS")))
        cost = f"{percent(slow[TIME, 'inference'], 1)} and {percent(slow[TIME, 'training'], 1)}"
    return Claim(
        "pipefill-inference", "batch inference fills better than training", SUMMARY, "second-hand",
        ours, f"{JOB}, 8K GPUs; means over the models that are trained", agrees,
        "As FLOP/s. In parts of a GPU of its own the two are close, and with time slices training "
        "even has more: what is launched cannot be called back, so that longer passes overrun "
        f"bubbles more, and slow the main job by up to {cost} (inference, training). Memory "
        f"decides little: bubbles have {bubbles['free_least_GB'].min():.0f} to "
        f"{bubbles['free_most_GB'].max():.0f} GB free")


def of_fraction(fractions):
    slow = fractions[fractions["of"] == "slowdown_percent"]
    cheap = slow[slow["mean"] < 100 * PAPER["slowdown"]].groupby("series")["fill_fraction"].max()
    most = {s: f"up to {cheap[s]:g}" if s in cheap else "at no fraction" for s in (TIME, MPS)}
    return Claim(
        "pipefill-fraction", "0.68 of a bubble's length is filled, at under 2 % slowdown",
        "the paper as we recall it, unchecked", "recalled",
        f"under 2 % {most[TIME]} (time slices), {most[MPS]} (MPS)",
        f"{JOB}, 8K GPUs; batch inference of BERT base; durations vary by 2 %",
        float(cheap.get(TIME, 0)) >= PAPER["fraction"], f"{ONE_PASS}; it is "
        "the fill work that suffers, about half of that under MPS")


def claims(tables):
    """All of them; `tables` are pipefill's by name: bubbles, days, filled, types, mix, short,
    schedules, fraction."""
    t = tables
    return [
        of_bubbles(t["bubbles"]), of_days(t["days"]), of_gain_large(t["mix"], t["filled"]),
        of_gain_small(t["mix"], t["filled"], t["short"]),
        of_slowdown(t["filled"], t["mix"]), of_worth(t["mix"]),
        of_schedules(t["schedules"], t["short"]),
        of_inference(t["types"], t["bubbles"]), of_fraction(t["fraction"])]
