"""SpecInF's claims beside our numbers, judged from the tables of specinf.py.

The paper says "up to" of its own testbed and gives no number for "guaranteed", "high" and
"minimal": what counts as agreement is ours, fixed here, and written into each claim's condition.
"""
from . import specinf
from .claims import Claim, within

ABSTRACT = "SpecInF, arXiv 2503.02550, abstract"
SUMMARY = "summaries of SpecInF (sciencestack, arxivlens)"
RATIO = 14      # stated: offline throughput, up to so many times TGS's
CUT = 0.67      # stated: p95 of online inference, up to so much below MPS's
FACTOR = 2      # an "up to" agrees if our best is within this factor
KEPT = 0.95     # "guaranteed": this part of the job alone
HIGH = 2        # "high": so many times TGS's in the mean
JOBS = {"RoBERTa-large, DP alone": "specinf-usage-dp", "LLaMA2-7B, MP alone": "specinf-usage-mp",
        "LLaMA2-7B, PP alone": "specinf-usage-pp"}


def cell(row):
    """Where a number was found."""
    return f"{row['mode']} of {row['job']} by {row['inference']}"


def why_over_tgs(offline, grains, tgs):
    """Why the ratio is what it is, with the numbers behind it; `tgs`: alternatives of one run."""
    free = tgs[tgs["policy"] == "time_slicing"]
    loose = tgs[(tgs["policy"] == "tgs") & (tgs["changed"] != "")]
    text = []
    if not free.empty:
        text.append(
            "TGS has one limit for bubbles and for what runs beside training, under time slicing. "
            f"Without it training would be at {free['training'].iloc[0]:.0%} and inference at "
            f"{free['filler'].iloc[0]:.0%} (LLaMA2-7B, MP): to lose no more than 3 % it holds "
            "nearly all, in bubbles too.")
    if not loose.empty and not grains.empty:
        grain = grains["iteration_of_a_report"]
        text.append(
            f"Besides, one iteration is {grain.min():.0%} to {grain.max():.0%} of its report of 5 s"
            " (table of grains): reports of undisturbed training differ by more than its "
            f"tolerance. With {loose['changed'].iloc[0]} inference gets "
            f"{loose['filler'].iloc[0]:.1%}, training {loose['training'].iloc[0]:.0%}.")
    text.append("SpecInF as reconstructed buys its share in DP and MP with training's (next "
                f"claims); the variant that keeps training has {variant_ratio(offline)}.")
    return " ".join(text)


def offline_over_tgs(offline, grains, tgs):
    """Up to 14 times TGS's offline throughput."""
    ratios = specinf.against(offline, "specinf", "tgs", "filler")
    if ratios.empty:
        return no_data("specinf-offline-over-tgs", "Up to 14 times TGS's offline throughput")
    best = ratios.loc[ratios["ratio"].idxmax()]
    modes = ratios.groupby("mode", sort=False)["ratio"]
    return Claim(
        "specinf-offline-over-tgs", "Offline inference: up to 14 times TGS's throughput", ABSTRACT,
        "stated",
        f"up to {best['ratio']:.0f} times ({cell(best)}), mean {ratios['ratio'].mean():.0f}, "
        f"median {ratios['ratio'].median():.0f}; up to " + ", ".join(
            f"{v:.1f} in {m}" for m, v in modes.max().items()),
        f"{len(ratios)} pairs of job and model; agrees: best within a factor of {FACTOR} of "
        f"{RATIO}", within(best["ratio"], RATIO / FACTOR, RATIO * FACTOR),
        why_over_tgs(offline, grains, tgs))


def variant_ratio(offline):
    """The ratio of the variant that keeps training, as text."""
    ratios = specinf.against(offline, "specinf_drain", "tgs", "filler")
    modes = ratios.groupby("mode", sort=False)["ratio"].max()
    return "up to " + ", ".join(f"{v:.1f} times TGS's in {m}" for m, v in modes.items())


def no_data(name, statement):
    """A claim for which nothing was simulated."""
    return Claim(name, statement, ABSTRACT, "stated", "no data", "", None)


def cuts_text(ratios):
    """How much lower p95 is: best, mean, and in how many cells it is higher."""
    best = ratios.loc[ratios["ratio"].idxmin()]
    mean = ratios["ratio"].mean()
    return (f"up to {1 - best['ratio']:.0%} lower ({cell(best)}), mean {abs(1 - mean):.0%} "
            f"{'lower' if mean <= 1 else 'higher'}; higher by more than 1 % in "
            f"{(ratios['ratio'] > 1.01).sum()} of {len(ratios)} cells")


def online_p95(online):
    """p95 up to 67 % below MPS's, a service alone beside training."""
    ratios = specinf.against(online, "specinf", "mps", "p95_ms")
    if ratios.empty:
        return no_data("specinf-online-p95", "p95 up to 67 % below MPS's")
    least = (1 - CUT) / FACTOR, (1 - CUT) * FACTOR
    return Claim(
        "specinf-online-p95", "Online inference: p95 latency up to 67 % below MPS's", ABSTRACT,
        "stated", cuts_text(ratios),
        "one service of 48 requests/s on each GPU; agrees: best ratio to MPS within a factor of "
        f"{FACTOR} of {1 - CUT:.2f}", within(ratios["ratio"].min(), *least),
        "SpecInF as reconstructed runs under MPS and can only hold inference; a service that is "
        "alone with training is either not held (the conservative quota, 300,000 blocks in 5 ms, "
        "exceeds what it launches) and then as fast as under MPS, or, where the quota was cut, "
        "held and slower (PP). Training that passes the barrier too does not help: its grant of "
        "5,000,000 blocks in 5 ms is not used up (figure of parts).")


def both_p95(both):
    """p95 with offline inference on the same GPUs."""
    online = both[(both["filler"] == "online") & both["series"].isin(["mps", "specinf"])]
    wide = online.pivot_table(index="job", columns="series", values="latency_p95_ms", sort=False)
    name, statement = "specinf-online-p95-both", (
        "The same, where offline inference shares the GPUs too (our case, not the paper's)")
    if not {"mps", "specinf"} <= set(wide.columns):
        return no_data(name, statement)
    ratio = wide["specinf"] / wide["mps"]
    return Claim(
        name, statement, ABSTRACT, "inferred",
        "; ".join(f"{job}: {wide['mps'][job]:.0f} to {wide['specinf'][job]:.0f} ms "
                  f"({1 - r:.0%} lower)" for job, r in ratio.items()),
        "RoBERTa-large as service and offline; agrees: best at least 67 % lower",
        bool(ratio.min() <= 1 - CUT),
        "The Kernel Barrier holds offline kernels for the service. Where training launches all "
        "the time (PP) that is most of the time; where its launches come in one burst an iteration "
        "(DP, MP), windows look empty and both kinds have all tokens. The requests' gain is the "
        "offline work's loss.")


def training_kept(offline):
    """Collocated training throughput is guaranteed."""
    table = specinf.kept(offline)
    ours = offline[offline["policy"] == "specinf"]
    least = ours.loc[ours["training"].idxmin()]
    return Claim(
        "specinf-training-kept", "Collocated training throughput is guaranteed", ABSTRACT,
        "stated", "; ".join(f"{r.mode}: least {r.training_least:.0%}, mean {r.training_mean:.0%}"
                            for r in table.itertuples()) + f" (least: {cell(least)})",
        f"offline inference, of the job alone; agrees: at least {KEPT:.0%} everywhere",
        within(least["training"], KEPT, 9),
        "The Bubble Monitor, as in Dilu's RCKM, counts launches. A host that runs ahead has "
        "launched an iteration (DP) or a turn (MP) long before the GPU has computed it; the "
        "windows that follow look empty, the aggressive phase begins after four of them, and "
        "inference takes its share as under MPS. In PP launches come nearly all the time, and "
        "training is nearly kept. The variant that also waits for launched kernels keeps at least "
        + ", ".join(f"{r.training_least:.1%} in {r.mode}"
                    for r in specinf.kept(offline, "specinf_drain").itertuples()) + ".")


def why_offline(offline, mode):
    """What bubbles there are in a mode, what becomes of them, and what the variant does."""
    part = offline[offline["mode"] == mode]
    alone = part.loc[part["policy"] == "exclusive", "bubbles"]
    filled = part.loc[part["policy"] == "specinf", "recovered"]
    drain = part[part["policy"] == "specinf_drain"]
    cause = {"DP": "There is next to nothing to fill with these batches on NVLink, so what "
                   "inference gets, training loses.",
             "MP": "Inference goes on while training's turn is computed, as the host launched it "
                   "ahead.",
             "PP": "A stage launches nearly all the time, so few windows are empty; and "
                   "launched kernels of inference are not interrupted when training's come."}[mode]
    return (f"Without a computing kernel, training alone: {alone.min():.1%} to {alone.max():.1%} "
            f"of the time; inference runs in {filled.mean():.0%} of such time. {cause} The variant "
            f"that waits for kernels: {drain['filler'].mean():.1%} of own GPUs, training at least "
            f"{drain['training'].min():.1%}.")


def offline_high(offline, mode):
    """High offline throughput under training's guarantee, in one mode."""
    ratios = specinf.against(offline, "specinf", "tgs", "filler")
    ratios = ratios[ratios["mode"] == mode]
    row = specinf.kept(offline).set_index("mode").loc[mode]
    return Claim(
        f"specinf-offline-high-{mode.lower()}",
        f"High offline throughput while training is guaranteed, in {mode}", SUMMARY, "second-hand",
        f"{row['filler_mean']:.1%} of own GPUs in the mean, {ratios['ratio'].mean():.1f} times "
        f"TGS's; training at {row['training_mean']:.0%}, least {row['training_least']:.0%}",
        f"2 jobs x 5 models; agrees: at least {HIGH} times TGS's, and training at {KEPT:.0%}",
        bool(ratios["ratio"].mean() >= HIGH and row["training_least"] >= KEPT),
        why_offline(offline, mode))


def overhead(table):
    """The mechanism costs next to nothing."""
    seldom = table[table["requests_per_gpu_per_s"] == table["requests_per_gpu_per_s"].min()]
    gate = seldom[seldom["policy"] == "specinf"]
    free = seldom[seldom["policy"] == "mps"]
    loss = float((free["training"].to_numpy() - gate["training"].to_numpy()).max())
    calls = float(gate["calls_per_gpu_per_s"].max())
    return Claim(
        "specinf-overhead", "The overhead is minimal", SUMMARY, "second-hand",
        f"training loses at most {loss:.2%} to the gate, {gate['holds'].sum():.0f} launches are "
        f"held; {calls:,.0f} calls of the policy a second and GPU",
        "a service that hardly asks, gate against MPS; 1 % or more would refute it",
        None if loss < 0.01 else False,
        "The gate's decisions cost training nothing; the host time of its calls is not simulated, "
        "so the claim cannot be confirmed. At 1 us each, calls would be "
        f"{calls * 1e-6:.1%} of a host thread that waits for the GPU most of the time.")


def idle_causes(table, mode):
    """Why GPUs idle."""
    row = table[table["what"].str.contains(mode)].iloc[0]
    idle = row["nccl"] + row["host"]
    return Claim(
        f"specinf-idle-causes-{mode.lower()}",
        "Training leaves GPUs idle through resource allocation and collective communication, "
        f"{mode}", ABSTRACT, "stated",
        f"no kernel computes for {idle:.1%} of the time: NCCL alone runs for {row['nccl']:.1%}, "
        f"nothing for {row['host']:.1%}",
        row["what"] + "; agrees: NCCL is most of it",
        bool(row["nccl"] > row["host"]) if idle > 0 else None,
        "Most of what little there is is the host between iterations: with Dilu's batches and "
        "NVLink the exchange hides behind the backward pass." if mode == "DP" else
        "Read as: layers that lie on other GPUs. A stage that waits for its turn is in an NCCL "
        "receive, so this result does not tell allocation from communication.")


def judge():
    """All of SpecInF's claims."""
    offline = specinf.everywhere(specinf.offline)
    online = specinf.everywhere(specinf.online)
    both = specinf.jobs_over_seeds("specinf-both", ["latency_p95_ms"])
    causes = specinf.causes(JOBS)
    grains = specinf.grains(JOBS)
    return [offline_over_tgs(offline, grains, specinf.alternatives("specinf-tgs")),
            online_p95(online), both_p95(both), training_kept(offline),
            *(offline_high(offline, mode) for mode in specinf.MODES.values()),
            overhead(specinf.overhead()),
            *(idle_causes(causes, mode) for mode in specinf.MODES.values())]
