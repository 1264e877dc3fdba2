#!/usr/bin/env python3
"""Training of a model of configs/models, as rank r of N on one GPU.

Examples:
  python3 train.py --model gpt2-large --batch 8 --sequence 512
  python3 train.py --model gpt2-large --plan ddp --world 4 --rank 1 --batch 8 --sequence 512
  python3 train.py --model llama2-7b --plan fsdp --world 8 --batch 1 --sequence 2048
  python3 train.py --model gpt-3.6b --plan tp --world 8 --batch 4
  python3 train.py --model pipefill-5b --plan pp-stage --world 4 --rank 2 --micro-batches 8
  python3 train.py --model llama2-7b --set layers=4 --batch 2 --sequence 1024
  bubblesim capture -o out/gpt2 --iterations 5 -- python3 train.py --model gpt2-large

--rank is the stage with --plan pp-stage. Weights and inputs are random, bf16 on a GPU.
"""

from __future__ import annotations

import argparse
import sys

import torch

from jobs import build, config, plans, steps

PLANS = ("none", "ddp", "fsdp", "tp", "pp-stage")


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    number = steps.whole_number
    parser.add_argument("--model", required=True, help="id: a file of configs/models")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=N",
                        help="replace a size of a transformer: layers=4")
    parser.add_argument("--plan", choices=PLANS, default="none", help="none: one GPU alone")
    parser.add_argument("--world", type=number(1), default=1, help="ranks of the job")
    parser.add_argument("--rank", type=number(0), default=0, help="of this process")
    parser.add_argument("--batch", type=number(1), default=1, help="samples of a micro-batch")
    parser.add_argument("--micro-batches", type=number(1), default=1,
                        help="of an iteration and rank (default: %(default)s)")
    parser.add_argument("--sequence", type=number(1), default=0,
                        help="tokens of a sample (default: the model's longest)")
    parser.add_argument("--image", type=number(8), default=0,
                        help="height and width of images (default: the model's)")
    parser.add_argument("--standin", choices=("auto", "cpp", "python"), default="auto",
                        help="what stands in for collectives")
    parser.add_argument("--fill", choices=("shard", "all", "none"), default="shard",
                        help="what outputs of collectives are filled with")
    parser.add_argument("--announce", action="store_true",
                        help="print the announced collectives at the end")
    steps.add_step_options(parser)
    return parser.parse_args(argv)


def make_step(arguments: argparse.Namespace, device: torch.device) -> plans.Step:
    model = config.load(arguments.model, arguments.set)
    sizes = (arguments.batch, arguments.sequence, device)
    if arguments.plan == "fsdp":
        return plans.sharded(model, *sizes, arguments.micro_batches, arguments.world)[1]
    if arguments.plan == "tp":
        return plans.tensor_parallel(model, *sizes, arguments.micro_batches, arguments.world)[1]
    if arguments.plan == "pp-stage":
        return plans.pipeline_stage(model, *sizes, arguments.micro_batches, arguments.rank,
                                    arguments.world)
    job = build.build(model, *sizes, image=arguments.image)
    if arguments.plan == "ddp":
        return plans.data_parallel(job, arguments.micro_batches)
    return plans.single(job, arguments.micro_batches)


def start(arguments: argparse.Namespace) -> str:
    if arguments.plan == "none":
        return "none"
    import standin

    return standin.init(arguments.rank, arguments.world, arguments.standin, arguments.fill,
                        arguments.announce)


def finish(arguments: argparse.Namespace) -> None:
    if arguments.plan == "none":
        return
    import standin

    if arguments.announce:
        print(*standin.take_log(), sep="\n")
    standin.close()


def main(argv: list[str]) -> int:
    arguments = parse(argv)
    torch.manual_seed(arguments.seed)
    device = steps.device_of(arguments.device)
    try:
        implementation = start(arguments)
        step = make_step(arguments, device)
    except (config.ConfigError, ValueError) as fault:
        print(f"error: {fault}", file=sys.stderr)
        finish(arguments)
        return 2
    facts = {"model": arguments.model, "plan": arguments.plan, "rank": arguments.rank,
             "world": arguments.world, "standin": implementation}
    steps.run(step, arguments, device, facts)
    finish(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
