"""The parts of a campaign, in the order in which they are worth their time."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Part:
    name: str
    kind: str  # "capture" or "overhead"
    arguments: tuple[str, ...]  # the example script and its options
    limit_s: float  # a part that takes longer is ended and counts as failed
    iterations: int = 3
    expect_s: float = field(default=20.0)  # a part is not begun with less time left


def _capture(name: str, text: str, limit_s: float = 60.0, iterations: int = 3) -> Part:
    return Part(name, "capture", tuple(text.split()), limit_s, iterations)


def _train(model: str, plan: str, text: str, name: str = "") -> Part:
    made = name or (f"train-{model}" if plan == "none" else f"train-{model}-{plan}")
    return _capture(made, f"train.py --model {model} --plan {plan} {text}")


def _infer(model: str, text: str, name: str = "") -> Part:
    return _capture(name or f"infer-{model}", f"infer.py --model {model} {text}")


def overhead_parts(quick: bool) -> list[Part]:
    """The three workloads of the overhead table."""
    scale = 3 if quick else 1
    texts = [
        ("overhead-small-kernels", "small_kernels.py --launches 1000", 60),
        ("overhead-graph-decode",
         "infer.py --model gpt2-large --batch 4 --prompt 128 --tokens 64 --cuda-graph", 40),
        ("overhead-llm-training", "train.py --model gpt2-large --batch 8 --sequence 512", 45),
    ]
    expect = 40.0 if quick else 80.0
    return [Part(name, "overhead", tuple(text.split()), 60.0, count // scale, expect)
            for name, text, count in texts]


def main_captures() -> list[Part]:
    """The jobs that the simulator's studies are about."""
    stage = "--world 4 --batch 2 --micro-batches 4 --sequence 1024"
    return [
        _train("gpt2-large", "ddp", "--world 4 --rank 1 --batch 8 --sequence 512"),
        _train("llama2-7b", "fsdp", "--world 8 --batch 1 --sequence 2048"),
        _infer("llama2-7b", "--batch 4 --prompt 512 --tokens 16"),
        _train("gpt-3.6b", "tp", "--world 8 --batch 2 --sequence 2048"),
        _train("pipefill-5b", "pp-stage", f"{stage} --rank 0", "train-pipefill-5b-stage-0"),
        _train("pipefill-5b", "pp-stage", f"{stage} --rank 1", "train-pipefill-5b-stage-1"),
        _train("pipefill-5b", "pp-stage", f"{stage} --rank 3", "train-pipefill-5b-stage-3"),
        _train("bert-base", "ddp", "--world 4 --batch 32 --sequence 128"),
        _train("resnet50", "ddp", "--world 4 --batch 64"),
        _infer("gpt2-large", "--batch 4 --prompt 128 --tokens 16 --cuda-graph",
               "infer-gpt2-large-graph"),
        _infer("bert-base", "--batch 8 --prompt 128"),
        _infer("resnet50", "--batch 32"),
    ]


def other_captures() -> list[Part]:
    """The other models of configs/models; the largest with two blocks, as a tensor rank."""
    whole = [
        _train("resnet152", "ddp", "--world 4 --batch 32"),
        _train("vgg19", "ddp", "--world 4 --batch 32"),
        _train("roberta-large", "ddp", "--world 4 --batch 8 --sequence 512"),
        _train("bert-large", "ddp", "--world 4 --batch 16 --sequence 128"),
        _train("gpt-1.7b", "ddp", "--world 8 --batch 1 --sequence 2048"),
        _train("gpt-7.5b", "fsdp", "--world 32 --batch 1 --sequence 2048 --set layers=12"),
        _train("mixtral-8x7b", "none", "--set layers=1 --batch 1 --sequence 2048"),
        _train("dlrm", "ddp", "--world 4 --batch 512"),
        _train("mmt", "none", "--batch 16"),
        _train("candle-uno", "none", "--batch 512"),
        _train("whisper-small-encoder", "none", "--batch 8 --sequence 1500"),
        _train("whisper-small-decoder", "none", "--batch 8 --sequence 448"),
        _train("pegasus-x-base-encoder", "none", "--batch 1 --sequence 1024"),
        _train("pegasus-x-base-decoder", "none", "--batch 1 --sequence 512"),
        _infer("llama-68m", "--batch 8 --prompt 128 --tokens 32 --cuda-graph"),
        _infer("chatglm-6b", "--batch 4 --prompt 256 --tokens 8"),
        _infer("llama3-8b", "--batch 4 --prompt 512 --tokens 8"),
        _infer("qwen3-32b", "--set layers=8 --batch 4 --prompt 512 --tokens 8"),
        _infer("qwen3-30b-a3b", "--set layers=4 --batch 4 --prompt 512 --tokens 8"),
        _infer("codellama-34b", "--set layers=8 --batch 4 --prompt 512 --tokens 8"),
        _infer("llama2-70b", "--set layers=8 --batch 4 --prompt 512 --tokens 8"),
        _infer("roberta-large", "--batch 8 --prompt 128"),
        _infer("xlm-roberta-xl", "--batch 8 --prompt 128"),
        _infer("resnet152", "--batch 16"),
        _infer("vgg19", "--batch 16"),
        _infer("resnet101", "--batch 16"),
        _infer("vgg16", "--batch 16"),
    ]
    large = ["gpt-18b", "gpt-22b", "gpt-39b", "pipefill-40b", "gpt-76b", "gpt-145b", "gpt-175b",
             "gpt-310b", "llama3-405b", "gpt-530b", "gpt-1t"]
    text = "--world 8 --batch 1 --sequence 2048 --set layers=2"
    return whole + [_train(model, "tp", text, f"train-{model}-tp-2-blocks") for model in large]


def all_parts(quick: bool) -> list[Part]:
    head, rest = main_captures(), other_captures()
    if quick:
        return head[:3] + overhead_parts(True) + head[-2:]
    return head[:7] + overhead_parts(False) + head[7:] + rest


def fake_parts() -> list[Part]:
    """Without GPU and PyTorch; the second fails, as parts may."""
    return [
        Part("fake-capture", "capture", ("fake_job.py",), 30.0, 3, 1.0),
        Part("fake-failure", "capture", ("fake_job.py", "--fail"), 30.0, 3, 1.0),
        Part("fake-overhead", "overhead", ("fake_job.py", "--milliseconds", "2"), 30.0, 10, 1.0),
    ]
