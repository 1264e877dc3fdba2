"""Claims of systems that make, shape or remove bubbles, judged from the tables of field.py."""
from .claims import Claim, percent, within

ZERO = "arXiv 2306.10209, abstract"
DECODE = "arXiv 2605.11999, abstract"
TOKENWEAVE = "arXiv 2505.11329, abstract"
FRONTIER = "arXiv 2501.04266, abstract"
MOETUNER = "arXiv 2502.06643, abstract"
PD_SERVE = "a summary of P/D-Serve (emergentmind.com/articles/2408.08147)"
PD_CAUSE = (
    "the scarcer kind bounds it: a GPU computes some 13.5 such prompts/s or decodes "
    "some 16 requests/s, and min(13.5 p, 16 (8 - p)) has its maximum at p = 4.3. "
    "Links of 25 GB/s are never the bound here; a shared network, faults and prefixes "
    "are not in this setting")
SWAP_CAUSE = (
    "swaps go over a host link of 25 GB/s, one direction after the other; what a copy "
    "costs besides its bytes, 1.5 us, is assumed, and so is how often priorities "
    "change. Their engine, loads and conversations of several turns are not here")
LIMIT_W = 400  # of an A100 (configs/devices/a100-40gb.json)


def _row(table, **where):
    for column, value in where.items():
        table = table[table[column] == value]
    return table.iloc[0]


def power(table):
    """Caps and locked clocks: training, decode, and both."""
    filled = table[table["plan"] == "pp-4-1f1b"]
    table = table[table["plan"] == "ddp-4"]
    none = _row(table, limit="none")
    caps = {watts: _row(table, limit=f"{watts} W") for watts in (360, 320)}
    free, capped = _row(filled, limit="none"), _row(filled, limit="240 W")
    lost = "; ".join(f"{watts} W: training {percent(row['training_lost'], 1)}, decode "
                     f"{percent(row['decode_lost'], 1)}" for watts, row in caps.items())
    slow = _row(table, limit="1110 MHz")
    fast = _row(table, limit="1290 MHz")
    stretch = fast["training_per_s"] / slow["training_per_s"]
    energy = 1 - slow["decode_above_idle_w"] * none["decode_per_s"] / (
        none["decode_above_idle_w"] * slow["decode_per_s"])
    return [
        Claim("polca-phases", "training and prompts reach a GPU's power limit, tokens draw less",
              "a summary of POLCA, ASPLOS 2024 (dyweb/papers-notebook 294)", "second-hand",
              f"training draws {none['training_w']:.0f} W, decode "
              f"{none['decode_above_idle_w']:.0f} W above idle", "RoBERTa-large, DP, and "
              "LLaMA2-7B decoding 8 sequences, A100-40GB of 400 W, no cap",
              bool(none["training_w"] > 0.9 * LIMIT_W > none["decode_above_idle_w"]),
              "judged by nine tenths of the limit. What kernels of a class draw is put in, not "
              "measured (configs/devices): the result is their mix. Training stays below the limit "
              "for what the host and exchanges leave idle, and for kernels that DRAM bounds"),
        Claim("polca-caps", "a cap of 10 to 20 % costs training more than decode",
              "POLCA, arXiv 2308.12908: headroom is inference's; our reading", "inferred", lost,
              "the same, each alone",
              bool(all(row["training_lost"] > row["decode_lost"] for row in caps.values())),
              f"training draws {none['training_w']:.0f} W in the mean: a cap that is not below that "
              "hardly acts. DRAM bounds decode, so that the clock hardly slows it, and it draws too "
              "little to be capped"),
        Claim("decode-caps", "no power cap triggers in decode, which DRAM bounds", DECODE, "stated",
              f"at 280 W of 400: {percent(_row(table, limit='280 W')['decode_lost'], 2)} of its "
              "throughput lost", "LLaMA2-7B decoding on an A100-40GB; the paper: H200",
              bool(abs(_row(table, limit="280 W")["decode_lost"]) < 0.01),
              "prompts are short here; a service with long ones would be capped in them"),
        Claim("perseus-clock", "at 1110 MHz stages of GPT-3 take 1.135 to 1.149 times as long "
              "as at 1290", "Perseus (SOSP 2024), measured stage profiles in ml-energy/zeus",
              "stated",
              f"{stretch:.3f}", "RoBERTa-large, DP, A100-40GB, training alone",
              within(stretch, 0.97 * 1.135, 1.03 * 1.149),
              "the closed form of products, 0.1 + 0.9 x 1290/1110 = 1.146, is met (unit test); a "
              "whole iteration has kernels that DRAM bounds, exchanges and the host besides, which "
              "the clock does not slow"),
        Claim("decode-lock",
              "locking the clock saves up to 32 % of decode's energy at nearly no loss", DECODE,
              "stated", f"{percent(energy, 0)} of what it draws above idle at 1110 MHz, "
              f"{percent(slow['decode_lost'], 1)} of its throughput lost",
              "LLaMA2-7B decoding on an A100-40GB", None,
              "not judged: how much of a DRAM-bound kernel's power follows the clock was "
              "taken from this figure"),
        Claim("power-filling", "filling bubbles raises power, and under a cap both pay",
              "ours: no paper says it", "inferred",
              f"{free['training_w']:.0f} to {free['bubbles_w']:.0f} W (MPS: {free['both_w']:.0f}); "
              f"under 240 W training alone runs at {capped['clock_mhz']:.0f} MHz, with decode in "
              f"its bubbles at {capped['bubbles_clock_mhz']:.0f} (MPS: "
              f"{capped['both_clock_mhz']:.0f})",
              "a pipeline of 4 stages, decode in its bubbles only (the oracle), or beside it (MPS)",
              bool(free["bubbles_w"] > free["training_w"]
                   and capped["bubbles_clock_mhz"] < capped["clock_mhz"]),
              "beside training power falls: decode takes SMs and time from kernels that draw more"),
        budget(filled)]


def budget(filled):
    """A node's budget against as many caps, for a pipeline with decode in its bubbles."""
    each, node = _row(filled, limit="240 W"), _row(filled, limit="960 W a node")
    costs = [1 - row["bubbles_training_kept"] for row in (each, node)]
    return Claim(
        "power-budget", "under a node's budget stages that wait leave watts to those that compute, "
        "and fillers in their bubbles take them back",
        "ours: POLCA (arXiv 2308.12908) caps by rows of servers", "inferred",
        f"training alone loses {percent(each['training_lost'], 1)} under 240 W a GPU, "
        f"{percent(node['training_lost'], 1)} under 960 W over the four; decode in its bubbles "
        f"costs it {percent(costs[0], 1)} and {percent(costs[1], 1)} more",
        "RoBERTa-large as a pipeline of 4 stages on A100-40GB, LLaMA2-7B decoding in bubbles (the "
        "oracle)", bool(node["training_lost"] < each["training_lost"] and costs[1] > costs[0]),
        "where all GPUs do the same, a budget is as many caps (data parallel training: to the last "
        "digit, and tests/unit/sim/run/simulate/node_power_test.cpp)")


def zero(table):
    """ZeRO++ against ZeRO-3."""
    slow = _row(table, cluster="v100-dgx2-24-100g", parts="ZeRO++")["gain"]
    fast = _row(table, cluster="v100-dgx2-24", parts="ZeRO++")["gain"]
    few, many = (_row(table, cluster="v100-dgx2-24-100g", parts=f"levels{times}")["gain"]
                 / _row(table, cluster="v100-dgx2-24-100g", parts=f"ZeRO++{times}")["gain"]
                 for times in ("", " x 8"))
    where = "GPT 18.4B, 384 V100 in DGX-2 nodes, 2,048 tokens a GPU"
    return [
        Claim("zeropp-gain", "up to 2.16 times ZeRO-3's throughput at 384 GPUs", ZERO, "stated",
              f"{slow:.2f} times with one adapter a node, {fast:.2f} with eight", where,
              within(slow, 1.5, 3.5),
              "between the gain that all bytes would give, 4, and none: what exchanges take that "
              "computing does not hide. Which network the best case had is not in the abstract, "
              "and kernels that quantise take no time here"),
        Claim("frontier-hierarchy", "partitions that follow the network's levels: 1.71 times "
              "ZeRO++ for 20B on 384 GCDs", FRONTIER, "stated",
              f"first copies inside nodes: {few:.2f} times ZeRO++ with one micro-batch an "
              f"iteration, {many:.2f} with eight", where + ", one adapter a node", None,
              "bytes between nodes: 1.5 a parameter and micro-batch with ZeRO++, 0.5 and 2 an "
              "iteration here (closed forms: memory_test.cpp), 12 to 6 with eight. Direction "
              "only: which states theirs keeps at which level, and its micro-batches, are not in "
              "the abstract, and MI250X is no device of configs/devices")]


def overlap(table):
    """TokenWeave: exchanges of tensor ranks beside compute."""
    fused = table[table["form"] == "beside, 8 SMs, fused"].set_index("tokens")
    few = table[table["form"] == "beside, 2 SMs, fused"].set_index("tokens")["gain"]
    many = table[table["form"] == "beside"].set_index("tokens")["gain"]
    turn = table[table["form"] == "in turn"].set_index("tokens")["waiting"]
    where = "Qwen3 32B on 8 H100, micro-batches of 2 samples, layers recomputed"
    shown = ", ".join(f"{gain:.2f} at {tokens:,}" for tokens, gain in fused["gain"].items())
    return [
        Claim("tokenweave-gain", "overlap with fused norms on 2 to 8 SMs: latency up to 1.28 "
              "times as short", TOKENWEAVE, "stated", f"{shown} tokens", where,
              within(fused["gain"].max(), 1.14, 1.42),
              "to half of the gain. Theirs is of prompts (1.16 at 1,024 tokens to 1.27 at 16,384, "
              "Llama 3.3 70B: the artifact's figure_11a.csv); a training iteration has backward "
              "passes, whose all-reduces Megatron hides in part, and whose norms stay kernels"),
        Claim("tokenweave-small", "overlap pays for as few as 1,024 tokens", TOKENWEAVE, "stated",
              f"{fused['gain'].loc[1024]:.2f} times at 1,024 tokens, "
              f"{many.loc[1024]:.2f} without fused norms", where,
              bool(fused["gain"].loc[1024] > 1),
              "halves are smaller kernels, whose last wave fills less of the GPU, and twice as "
              "many launches"),
        Claim("tokenweave-sms", "the kernel needs 8 SMs at most; on 2 it takes 3.2 times as long "
              "as on 16", "microsoft/tokenweave, artifact/csvs/figure_10.csv", "stated",
              ", ".join(f"{few.loc[tokens]:.2f} on 2 and {fused['gain'].loc[tokens]:.2f} on 8 SMs "
                        f"at {tokens:,} tokens" for tokens in few.index[-1:]), where,
              bool((fused["gain"] > few).all()),
              "what a block moves is fitted to the 2 of that figure (configs/clusters/h100-dgx). "
              "From 3 SMs on a product that fills the GPU takes a second wave beside the exchange; "
              "2 blocks fit into the registers that its blocks leave, summed over all SMs, where "
              "no single SM has room for one (sim/gpu, known simplifications)"),
        Claim("tokenweave-bubbles", "exchanges leave the bubbles' causes", "ours: follows from "
              "the overlap", "inferred",
              "; ".join(f"{percent(turn.loc[tokens], 0)} to "
                        f"{percent(fused['waiting'].loc[tokens], 0)} at {tokens:,} tokens"
                        for tokens in turn.index),
              "share of an iteration in which nothing but collectives runs",
              bool((fused["waiting"] < turn).all()),
              "a filler that lives of the exchanges of tensor ranks has nothing left")]


def experts(table):
    """MoETuner: gains of placement."""
    most = table[table["zipf"] > 0]
    shown = "; ".join(
        f"{group}: {percent(part['placement_gains'].min(), 1)} to "
        f"{percent(part['placement_gains'].max(), 1)}"
        for group, part in most.groupby("group", sort=False))
    inside = most[most["group"] == "inside a node"]["placement_gains"]
    over = most[most["group"] == "over nodes"]["placement_gains"]
    where = "Mixtral 8x7B trained on 16 A100-80GB, 2 experts a rank, Zipf exponents 0.25 to 1"
    return [
        Claim("moetuner-gain", "placing experts by load gains 9.3 % on one node, 17.5 % on several",
              MOETUNER, "stated", shown, where,
              bool(inside.min() < 0.093 < inside.max() and over.min() < 0.175 < over.max()),
              "the gain is the skew's, which the abstract does not give: theirs lies within ours. "
              "Theirs is inference, and places experts by the routes between layers too"),
        Claim("moetuner-tail", "an all-to-all waits for the rank of the most wanted experts",
              MOETUNER, "stated", "; ".join(
                  f"{group}: ranks wait {percent(part['waiting'].iloc[0], 0)} of the time without "
                  f"skew, {percent(part['waiting'].iloc[-1], 0)} at a Zipf exponent of 1"
                  for group, part in table.groupby("group", sort=False)), where,
              bool(all(part["waiting"].is_monotonic_increasing
                       for _, part in table.groupby("group"))), ""),
        Claim("moetuner-nodes", "placement gains more where the experts' exchange crosses nodes",
              MOETUNER, "stated", shown, where, bool(over.max() > inside.max()), "")]


def paths(table):
    """C4P: collisions of flows."""
    gaps = 1 - table[table["flows"] == "hash"]["throughput_kept"]
    by_gap = gaps.round(3).value_counts().sort_index()
    shown = ", ".join(f"{percent(gap, 1)} by {count}" for gap, count in by_gap.items())
    planned = _row(table, flows="planned")["throughput_kept"]
    where = "GPT 22B, 512 H800, 8 nodes a leaf, 64 up-links"
    return [
        Claim("c4p-collisions", "colliding flows leave a gap of 30 % to the ideal throughput for "
              "22B on 512 GPUs", "a summary of C4, HPCA 2025 (rajatbisht.net)", "second-hand",
              f"of {len(gaps)} hashes: {shown}", where, within(gaps.median(), 0.15, 0.45),
              "judged by the median. A leaf has 8 flows out on 64 up-links, and the busiest of all "
              "leaves' decides: it has two flows by 88 % of hashes, three or more by 10 % "
              "(closed form, tests/unit/sim/network/collective_cost_test.cpp), which is the tail. The "
              "gap itself is what exchanges take of an iteration, which batch and plan decide: "
              "they are free choices here"),
        Claim("c4p-planned", "planned flows do without it", "arXiv 2406.04594, abstract", "stated",
              f"{percent(planned, 1)} of the throughput of flows spread over all paths", where,
              bool(planned > 0.99), "")]


def faults(table, days):
    """C4: slow ranks, and a day with faults."""
    worst = table[table["slowdown"] == 2].set_index("plan")
    lost = 1 - days[days["faults_per_day"] == 1.5].set_index("found")["goodput"]
    shown = "; ".join(f"{plan}: {row['iteration_ratio']:.2f} times as long, bubbles "
                      f"{percent(row['bubble'], 0)}" for plan, row in worst.iterrows())
    return [
        Claim("c4-straggler", "one slow rank slows the whole job, as all wait for it",
              "arXiv 2406.04594, section 1", "second-hand", shown,
              "RoBERTa-large on 4 A100-40GB, one rank twice as slow",
              bool((worst["iteration_ratio"] > 1.5).all()),
              "what the others wait is bubbles on their GPUs, which a filler could use until the "
              "rank is found"),
        Claim("c4-overhead", "finding faults at once cuts their overhead by some 30 %",
              "arXiv 2406.04594, abstract", "stated",
              f"{percent(lost.max(), 0)} of a day lost, {percent(lost.min(), 1)} where faults are "
              "found in 30 s", "1.5 faults a day that stop the job, found by people after 6 hours; "
              "restart and checkpoints of 10 minutes: free choices", None,
              "a closed form (tables/field.py, goodput), not a simulation: how often faults come "
              "and how long people take is not in the abstract")]


def links(table):
    """C4: a NIC that degrades."""
    worst = table[table["slowdown"] == 8].set_index("plan")
    gradients = 774.03e6 * 2 * 15 / 8 / 8 / 1e9  # 2 bytes each, a ring over 16 ranks, 8 NICs
    found = _row(table, plan="data parallel", slowdown=16)["link_gb"]
    shown = "; ".join(f"{plan}: {row['iteration_ratio']:.2f} times as long, bubbles "
                      f"{percent(row['bubble'], 0)}" for plan, row in worst.iterrows())
    where = "GPT-2 large, data parallel, and LLaMA2-7B as a pipeline of 2 nodes; one of 16 NICs"
    return [
        Claim("c4-link", "a link that degrades slows the whole job", "arXiv 2406.04594, section 1",
              "second-hand", shown + ", with a NIC 8 times as slow", where,
              bool(worst.loc["data parallel", "iteration_ratio"] > 1.5),
              "where all gradients cross it; a pipeline's activations are few, and wait for "
              "nothing else"),
        Claim("c4-link-bytes", "what a slow link costs is what its bytes take", "ours", "inferred",
              f"{found:.3f} GB an iteration from times, {gradients:.3f} GB by count",
              "from 8 to 16 times as slow, data parallel", within(
                  found / gradients, 0.99, 1.01), "")]


def outages(table):
    """One fault, simulated: what it costs, and what a filler makes of it."""
    alone = table[(table["policy"] == "exclusive") & (table["stands_still_s"] > 0)]
    filled = table[table["policy"] == "mps"].groupby("stands_still_s")["filler_per_s"].first()
    off = (alone["kept"] - alone["closed_form"]).abs().max()
    where = ("RoBERTa-large as a pipeline on 4 A100-40GB, one fault in "
             f"{alone['window_s'].iloc[0]:.0f} s")
    shown = ", ".join(
        f"{percent(row['kept'], 0)} ({row['stands_still_s']:.0f} s, checkpoint every "
        f"{row['checkpoint_every']:.0f})" for _, row in alone.iterrows())
    return [
        Claim("c4-fault", "a fault costs what it takes to find, to restart, and to do again",
              "arXiv 2406.04594, section 1; our closed form", "inferred",
              f"{shown}; closed form {100 * off:.1f} points off at most", where, bool(off < 0.02),
              "the iteration that is struck goes on where it stood, and what was launched ends"),
        Claim("c4-fault-filled", "fillers gain while a job stands still",
              "ours: no paper says it", "inferred",
              f"{filled.iloc[0]:.0f} requests/s without a fault, {filled.iloc[-1]:.0f} with one of "
              f"{filled.index[-1]:.0f} s", where + ", BERT-base under MPS",
              bool(filled.iloc[-1] > filled.iloc[0]), "")]


def host(table):
    """Activations, checkpoints and an optimiser in host memory."""
    by = table.set_index("on_host")
    half, every = by.loc["50 % of activations"], by.loc["checkpoint"]
    saved = by.loc["nothing", "training_gb"] - half["training_gb"]
    where = "LLaMA2-7B as a pipeline of 4 stages on A100-40GB, PCIe of 31.5 GB/s a GPU"
    most = by["filler_gpus"].max()
    gained = by[by["filler_gpus"] > by.loc["nothing", "filler_gpus"]]
    return [
        Claim("ssdtrain", "activations to SSDs take 47 % off their peak at negligible cost",
              "SSDTrain, arXiv 2408.10013, abstract", "stated",
              f"half of them: {saved:.1f} GB less, iterations {percent(half['costs'], 1)} longer; "
              f"over 6.5 GB/s {percent(by.loc['50 % of activations, 6.5 GB/s', 'costs'], 0)}",
              where, bool(saved > 0 and half["costs"] < 0.03),
              "judged by 3 %. What a link hides is its bandwidth over what a layer keeps for the "
              "time that it computes; SSDTrain chooses the share by that"),
        Claim("gemini", "checkpoints in host memory in every iteration hardly cost training",
              "a summary of Gemini, SOSP 2023 (micahlerner.com)", "second-hand",
              f"iterations {percent(every['costs'], 1)} longer", where,
              bool(every["costs"] < 0.02),
              "judged by 2 %. Copies go to the GPU's own host; Gemini's cross the network to "
              "others too"),
        Claim("host-filler", "a filler fits only because of it", "ours: no paper says it",
              "inferred", f"on {most:.0f} GPUs in place of "
              f"{by.loc['nothing', 'filler_gpus']:.0f}: " + ", ".join(gained.index),
              where + ", BERT-large of 8 GB", bool(len(gained) > 0),
              "each stage of a pipeline keeps other numbers of micro-batches")]


def rollout(table):
    """Rollouts of reinforcement learning: their share, their wait, and who fills it."""
    alone = table[table["policy"] == "exclusive"].set_index("lengths")
    filled = table[table["policy"] == "mps"].set_index("lengths")
    spare = alone.loc["cv 1", "iteration_s"] / alone.loc["cv 1, spare 1.25", "iteration_s"]
    where = ("Llama 3 8B on 8 A100-80GB, 16 responses a GPU of 2,000 tokens in the mean, "
             "lognormal, cut at 16,000")
    return [
        Claim("rollout-share", "rollouts are 63 to 84 % of an iteration",
              "Seer, arXiv 2511.14617", "second-hand", percent(alone.loc["cv 1", "rollout"], 0),
              where, within(alone.loc["cv 1", "rollout"], 0.60, 0.87),
              "lengths, responses a GPU and the training step are free choices"),
        Claim("rollout-wait", "the long tail of lengths leaves GPUs idle",
              "RollPacker, arXiv 2509.21009, abstract", "stated",
              f"{percent(alone.loc['cv 1', 'waiting'], 0)} of the time, "
              f"{percent(alone.loc['even', 'waiting'], 0)} where lengths are even", where,
              bool(alone.loc["cv 1", "waiting"] > alone.loc["even", "waiting"] + 0.1),
              "GPUs whose responses have ended; a GPU that decodes its last one is not idle here"),
        Claim("rollpacker-gain", "short rounds and what goes with them: 2.03 to 2.56 times veRL",
              "RollPacker, arXiv 2509.21009, abstract", "stated",
              f"{spare:.2f} times with a quarter more responses begun", where, None,
              "one of its parts alone: long rounds, in which what was left out is made up for, and "
              "changes of parallelism are no setting here"),
        Claim("rollout-filled", "others' work fills the tail", "ours; RollMux, arXiv 2512.11306, "
              "fills it with another job's phases", "inferred",
              f"BERT-large has {percent(filled.loc['cv 1', 'filler'], 0)} of GPUs of its own under "
              f"MPS, training {percent(filled.loc['cv 1', 'kept'], 0)} of its rate", where,
              bool(filled.loc["cv 1", "filler"] > filled.loc["even", "filler"]),
              "against even lengths, where no tail is; beside decode steps it takes what DRAM "
              "leaves")]


def phases(table):
    """GPUs that generate apart from those that train: dependency bubbles, and what removes them."""
    rows = table.set_index(["most_tokens", "form"])
    long, short = (rows.loc[most] for most in (16000, 4096))
    where = ("Llama 3 8B on 4 + 4 A100-80GB, 32 responses a GPU of 2,000 tokens in the mean, "
             "lognormal; cut at 16,000 (at 4,096)")

    def both(form):
        return f"{long.loc[form, 'gain']:.2f} ({short.loc[form, 'gain']:.2f}) times"

    apart = table[table["form"] != "in turn"]
    miss = (apart["iteration_s"] / apart["closed_form_s"] - 1).abs().max()
    idle = long.loc["in turn", "trainers_idle"]
    return [
        Claim("phases-bubbles", "in turn, those who train idle for the rollout: 63 to 84 % of an "
              "iteration", "Seer, arXiv 2511.14617", "second-hand",
              f"{percent(idle, 0)} ({percent(short.loc['in turn', 'trainers_idle'], 0)})", where,
              within(idle, 0.60, 0.87),
              "lengths, responses a GPU and the training step are free choices"),
        Claim("phases-staleness", "asynchronous training is up to 2.77 times as fast",
              "AReaL, arXiv 2505.24298, abstract", "stated", both("a step behind"), where,
              bool(long.loc["a step behind", "gain"] > 1.05 and table["gain"].max() <= 2.77),
              "whole batches a step behind gain twice at most; rollouts that go on with newer "
              "weights are no setting here"),
        Claim("phases-closed-form", "the longer of the two phases is what is left", "ours",
              "inferred", f"within {percent(miss, 1)} of max(rollout, training)", where,
              bool(miss < 0.10),
              "where rounds differ, each GPU that generates goes on by itself, and less is left: "
              "the recurrence that a test holds to 1 % "
              "(tests/unit/sim/synth/job/rollout_test.cpp)"),
        Claim("rollmux-gain", "phases of two jobs in turn: 1.84 times the work for the money",
              "RollMux, arXiv 2512.11306, abstract", "stated", both("2 jobs"), where,
              within(short.loc["2 jobs", "gain"], 1.5, 2.0),
              "twice at most, where both phases take as long; theirs is over many jobs, and GPUs "
              "of two kinds")]


def existing(tables):
    """Systems that were here before: speculation, graphs of stages, regions, Dilu."""
    gain = tables["speculation"].set_index("acceptance")["gain"]
    graph = tables["stages"].set_index("stages")["gain"]
    regions = tables["regions"]
    apart = regions[regions["synchronised"] != "synchronous"]
    dilu = _row(tables["sharing"], policy="dilu")
    others = tables["sharing"][tables["sharing"]["policy"] != "dilu"]
    sharing = others[others["filler_throughput"] > 0.01]
    fill = dilu["filler_throughput"] / sharing["filler_throughput"]
    train = dilu["training_kept"] / others["training_kept"]
    fills = ", ".join(f"{ratio:.1f} times {name}" for name, ratio in zip(sharing["policy"], fill))
    trains = ", ".join(f"{ratio:.2f} times {name}" for name, ratio in zip(others["policy"], train))
    return [
        Claim("specinfer-gain", "trees of drafted tokens cut latency by 2.8 times",
              "SpecInfer's author, Hacker News item 35965635", "second-hand",
              "; ".join(f"{ratio:.2f} times at {share:g}"
                        for share, ratio in gain.items() if share),
              "LLaMA2-7B drafted by LLaMA-68M, tree <1,1,3,1,1,1,1,1>, one A100-80GB, batch 1; by "
              "the share of drafted tokens that are accepted", within(gain.max(), 1.4, 4.2),
              "acceptance is put in; the paper's is of texts and drafts that are not here"),
        Claim("graphpipe-parallel", "stages that follow branches: 1.12 to 1.40 times as fast as a "
              "chain", "arXiv 2406.17145, section 7", "stated",
              f"{graph['graph, micro-batches x 1']:.2f} times",
              "multi-modal transformer, 4 branches of 2 stages on 8 V100, 32 micro-batches",
              within(graph["graph, micro-batches x 1"], 1.12, 1.40),
              "(m + 7)/(m + 1) says 1.18: the shorter warm-up, and m is a free choice"),
        Claim("graphpipe-micro-batch", "with larger micro-batches 1.25 to 1.61 times",
              "arXiv 2406.17145, section 7", "stated",
              f"{graph['graph, micro-batches x 2']:.2f} times", "the same, micro-batches doubled",
              within(graph["graph, micro-batches x 2"], 1.25, 1.61),
              "doubling pays where kernels are too small for the GPU; it also halves m, which "
              "lengthens the warm-up"),
        Claim("cloudless-gain", "synchronising regions apart: up to 1.7 times as fast",
              "arXiv 2303.05330, abstract", "stated",
              "; ".join(f"{row['synchronised']}, {row['cluster']}: {row['gain']:.1f}"
                        for _, row in apart.iterrows()),
              "RoBERTa-large on 64 A100 in two regions, every 50 iterations",
              within(apart["gain"].max(), 0.85, 3.4),
              "the gain is the link's: a slower one makes the exchange in every iteration slower "
              "without end. Their jobs and links are not here, nor is what convergence costs"),
        Claim("dilu-inference", "inference up to 1.8 times the baselines' throughput",
              "Dilu, arXiv 2503.05130, abstract", "stated", fills,
              "RoBERTa-large, DP, with BERT-base offline on A100-40GB",
              within(fill.max(), 1.2, 2.7),
              "their baselines are serverless systems with fixed shares, which are not here; TGS "
              "lets no inference run beside this job. As reconstructed, Dilu's quota of blocks is "
              "more than both launch together, so that it is as MPS here"),
        Claim("dilu-training", "training up to 1.1 times the baselines' throughput",
              "Dilu, arXiv 2503.05130, abstract", "stated", trains, "the same",
              within(train.max(), 1.0, 1.6),
              "of the systems that let inference run; TGS keeps training by letting none")]


def apart(table):
    """P/D-Serve: the ratio of GPUs that compute prompts."""
    best = table.loc[table["requests_per_s"].idxmax()]
    ends = table["prefill_gpus"].min(), table["prefill_gpus"].max()
    least = table["requests_per_s"].min()
    return [Claim(
        "pd-serve-ratio", "throughput depends on the ratio of prefill to decode instances, and is "
        "best at one that fits the load", PD_SERVE, "second-hand",
        f"best at {best['prefill_gpus']:.0f} of 8 GPUs: {best['requests_per_s']:.1f} requests/s, "
        f"{best['requests_per_s'] / least:.1f} times the worst ratio's",
        "Llama 3.1 8B on A100-80GB, prompts of 1,024 and outputs of 200 tokens in the mean, under "
        "MPS beside naive model parallel training",
        bool(best["prefill_gpus"] not in ends), PD_CAUSE)]


def swaps(table):
    """FastSwitch: tails under a tight cache."""
    tails = table.set_index("swapped")
    old, new = tails.loc["block by block"], tails.loc["groups, beside, copies kept"]
    names = {"ttft_p95_ms": "TTFT p95", "ttft_p99_ms": "TTFT p99", "tbt_p99_ms": "TBT p99"}
    gains = {name: old[column] / new[column] for column, name in names.items()}
    return [Claim(
        "fastswitch-tails", "coarse, asynchronous swaps without needless copies: tails of TTFT and "
        "TBT 1.4 to 11.2 times shorter than vLLM's", "FastSwitch, arXiv 2411.18424, abstract",
        "stated", "; ".join(f"{name} {gain:.1f} times" for name, gain in gains.items()),
        "LLaMA2-7B on an A100-80GB, a cache of 17,600 tokens, 3.5 requests/s, priorities drawn "
        "anew every 25 steps; against swaps block by block",
        within(max(gains.values()), 1.4, 11.2), SWAP_CAUSE)]


def all_claims(tables):
    """All claims; `tables` has the notebook's tables by name."""
    return (power(tables["power"]) + zero(tables["zero"])
            + overlap(tables["overlap"]) + experts(tables["experts"])
            + paths(tables["paths"]) + faults(tables["faults"], tables["days"])
            + links(tables["links"])
            + outages(tables["outages"]) + host(tables["host"]) + rollout(tables["rollout"])
            + phases(tables["phases"])
            + existing(tables) + apart(tables["apart"]) + swaps(tables["swaps"]))
