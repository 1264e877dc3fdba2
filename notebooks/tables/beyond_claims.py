"""Claims that bear on what lies beyond SpecInF and PipeFill, judged from our tables.

FreeRide (arXiv 2409.06941), ATLAS and BubbleTea (two systems of one paper, read as its abstract),
zero bubble schedules (arXiv 2401.10241), DualPipe's README, and limits of PipeFill in summaries.
"""
from . import beyond_jobs
from .claims import Claim, percent, within

# Share of the closed form's saving; kernels have whole waves, and stages are not quite alike.
TOLERANCE = 0.15
FREERIDE = "arXiv 2409.06941, abstract"
RTX = "GPT 3.6B, 1F1B over 4 RTX 6000 Ada, {} micro-batches"


def freeride(side):
    """FreeRide's bubbles and overhead; its own closed form."""
    alone = side[side["policy"] == "exclusive"].drop_duplicates("micro_batches")
    bubbles = alone.set_index("micro_batches")["bubble"]
    filled = side[side["policy"] == "freeride"]

    def worst(loop, varies):
        part = filled[(filled["loop"] == loop) & ((filled["steps_vary"] > 0) == varies)]
        return part["overhead_percent"].max()

    artifact = filled[(filled["loop"] == "artifact") & (filled["steps_vary"] > 0)]
    beside = artifact["beside_percent"]
    shown = ", ".join(f"{percent(b, 1)} at {m}" for m, b in bubbles.items())
    few = bubbles.index.min()
    return [
        Claim("freeride-bubbles", "bubbles are more than 40 % of training's time", FREERIDE,
              "stated", shown, RTX.format("4 or 8"), bool(bubbles[few] > 0.4),
              f"at {few} micro-batches only: the bubble shrinks with their number, as "
              "3/(m+3); with 8 it falls short"),
        Claim("freeride-formula", "at 4 stages and 4 micro-batches 42.9 % of the time is bubbles",
              "arXiv 2409.06941: (p-1)/(m+p-1), our arithmetic", "inferred",
              percent(bubbles[few], 1), RTX.format(few), within(bubbles[few], 0.399, 0.459),
              "within 3 points; the rest is stages of 7 and 8 layers, the head and the optimizer"),
        Claim("freeride-overhead",
              "side tasks cost training about 1 % (ResNet-50 1.36 %, VGG-19 2.1 %)",
              FREERIDE + "; its artifact's table", "stated",
              f"{artifact['overhead_percent'].max():.3f} % at most, though steps run beside "
              f"training for {beside.min():.1f} to {beside.max():.1f} % of the time; "
              f"{worst('fits', False):.3f} % where steps last as profiled and begin if they fit, "
              f"{worst('fits', True):.3f} % where they vary, {worst('margin', True):.3f} % with "
              "its margin alone",
              f"{RTX.format('4 or 8')}, side tasks train ResNet-50 and VGG-19, whose steps vary by "
              "2.6 and 9.1 %; its loop's margin, looking at launch",
              within(artifact["overhead_percent"].max(), 0.3, 3.0),
              "its loop does not wait for the GPU (task_v2.py), so that the last step of a bubble "
              "outlasts it. A client of higher priority has all SMs that it asks for here, at once "
              "as blocks end, and the step what is left: if they took turns instead, it would "
              "cost up to the time that steps run beside training. Inputs of 38.5 MB a step, 1.2 "
              "ms of PCIe, would add 0.4 % at most; they are not copied here. What all tasks share "
              "costs no more than 0.05 % of theirs (ResNet-18 and PageRank, "
              "artifact_evaluation.md). Tasks use " + percent(artifact["recovered"].min(), 0)
              + " to " + percent(artifact["recovered"].max(), 0) + " of the bubbles")]


def bubbletea(table):
    """Utilisation with prefill in the bubbles of a pipeline over two regions."""
    part = table[table["plan"] == "pipeline"]
    real = part[part["policy"].isin(["specinf", "pipefill", "freeride"])]
    kept = real[real["training_kept"] >= 0.95]
    alone = part.loc[part["policy"] == "exclusive", "utilisation"]
    best = kept.loc[kept["utilisation"].idxmax()] if len(kept) else None
    bound = part.loc[part["policy"] == "ideal", "utilisation"].max()
    ours = "no policy keeps 95 % of training" if best is None else (
        f"{percent(best['utilisation'], 1)} ({best['policy']}, {best['link']}); alone "
        f"{percent(alone.min(), 1)} to {percent(alone.max(), 1)}; oracle up to {percent(bound, 1)}")
    return [Claim(
        "bubbletea-utilisation",
        "prefill in the bubbles of geo-distributed training: GPU utilisation up to 94 %",
        "ATLAS/BubbleTea, abstract", "stated", ours,
        "RoBERTa-large, 2 stages in 2 regions, prompts of LLaMA2-7B of 512 tokens; the best link "
        "and policy with 95 % of training kept",
        None if best is None else within(best["utilisation"], 0.84, 1.0),
        "utilisation is time with a kernel that is no collective. The bubbles hold more, as the "
        "oracle shows; the nearest policy here, FreeRide, runs whole prompts only, so that each "
        "bubble's end is lost, and learns of it after up to 15 ms. BubbleTea's own placement of "
        "prompts, its job and its links are not here")]


def schedules(table):
    """Each schedule's iteration against 1F1B's, by the closed forms of their papers."""
    saved = beyond_jobs.savings(table)
    rows = saved[(saved["micro_batches"] == saved["micro_batches"].min())
                 & ~saved["schedule"].isin(["1F1B"])].set_index("schedule")
    m = int(saved["micro_batches"].min())
    slope, busy = beyond_jobs.per_micro_batch(table, "1F1B")
    uneven = (f"the last stage has the head, so that {percent(1 - busy / slope, 1)} of the others' "
              "time stays idle with any schedule")
    said = {
        "GPipe": ("the same bubble as 1F1B's, (p-1)(F+B)", "arXiv 2104.04473, 2.2.1", "stated"),
        "Interleaved": ("bubble of 1F1B over v chunks", "arXiv 2104.04473, 2.2.2", "stated"),
        "ZB-H1": ("bubble (p-1)(F+I-W)", "arXiv 2401.10241, table 2", "stated"),
        "ZB-H2": ("bubble (p-1)(F+I-2W) in a stage's span, the ramp of (p-1)F aside",
                  "arXiv 2401.10241, table 2", "stated"),
        "ZB-V": ("no bubble in a stage's span where F = I = W, half the ramp aside",
                 "arXiv 2401.10241, section 6", "stated"),
        "DualPipe": ("bubble (PP/2-1)(F&B+B-3W)", "github.com/deepseek-ai/DualPipe", "stated"),
        "DualPipeV": ("DualPipe's bubble on half the ranks", "github.com/deepseek-ai/DualPipe",
                      "stated")}
    causes = {"DualPipe": f"two copies of the model: {_more_work(table, 'DualPipe', m):.0f} ms "
                          "more work on each GPU, most of it the second copy's optimizer step, "
                          "and copies that exchange gradients; the closed form has neither"}
    return [_schedule_claim(name, said[name], rows.loc[name], m, (uneven, causes.get(name, uneven)))
            for name in rows.index if name in said]


def _more_work(table, schedule, m):
    """What a GPU computes in an iteration beyond 1F1B's, in ms."""
    alone = table[(table["policy"] == "exclusive") & (table["micro_batches"] == m)]
    work = ((1 - alone["bubble"]) * alone["iteration_ms"]).set_axis(alone["schedule"])
    return work[schedule] - work["1F1B"] if schedule in work else float("nan")


def _schedule_claim(name, said, row, m, whys):
    """`whys`: what limits an agreement, and the cause of a miss."""
    statement, source, standing = said
    want, got = row["closed_form_ms"], row["saved_ms"]
    room = max(TOLERANCE * abs(want), 1.0)
    agrees = None if want != want else within(got, want - room, want + room)
    return Claim(
        f"schedule-{name.lower()}", f"{name}: {statement}", source, standing,
        f"iteration {got:.1f} ms shorter than 1F1B's; closed form {want:.1f} ms",
        f"LLaMA2-7B, 4 stages on A100-80GB, {m} micro-batches", agrees, whys[agrees is False])


def pipefill_limits(offline, links):
    """What summaries say that PipeFill leaves alone."""
    data = offline[(offline["policy"] == "pipefill")
                   & offline["job"].str.startswith("data")]["filler_throughput"].max()
    stalls = links[(links["policy"] == "pipefill")
                   & (links["plan"] == "synchronous")]["filler_throughput"].max()
    return [Claim(
        "pipefill-pipelines-only", "fills pipelines only", "summaries of arXiv 2410.07192",
        "second-hand", f"filler throughput {data:.2f} (4 GPUs), {stalls:.2f} (two regions)",
        "data parallel jobs, PipeFill by default", bool(max(data, stalls) == 0),
        "by construction: the policy is told of waits for pipeline peers alone (`bubbles: all` "
        "lifts that)")]


def all_claims(offline, schedule, links, side):
    """Every claim of 03_beyond, in the notebook's order."""
    return [*pipefill_limits(offline, links), *schedules(schedule), *freeride(side),
            *bubbletea(links)]
