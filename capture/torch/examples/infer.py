#!/usr/bin/env python3
"""Inference of a model of configs/models on one GPU. An iteration is a request: for a causal
language model one prefill and --tokens decode steps, else one forward pass.

Examples:
  python3 infer.py --model llama2-7b --batch 4 --prompt 512 --tokens 32
  python3 infer.py --model llama2-7b --batch 4 --prompt 512 --tokens 32 --cuda-graph
  python3 infer.py --model bert-base --batch 32 --prompt 128
  python3 infer.py --model resnet50 --batch 64 --rate 20
  bubblesim capture -o out/llama --iterations 3 -- python3 infer.py --model llama2-7b

Every decode step attends to the whole room of the cache (prompt and tokens), as CUDA graphs need.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Callable

import torch

from jobs import build, config, steps
from jobs.steps import marked
from jobs.transformer import Transformer

Step = Callable[[int], None]


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    number = steps.whole_number
    parser.add_argument("--model", required=True, help="id: a file of configs/models")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=N",
                        help="replace a size of a transformer: layers=4")
    parser.add_argument("--batch", type=number(1), default=1, help="samples of a request")
    parser.add_argument("--prompt", type=number(1), default=128, help="tokens of a prompt")
    parser.add_argument("--tokens", type=number(1), default=16, help="decode steps of a request")
    parser.add_argument("--image", type=number(8), default=0,
                        help="height and width of images (default: the model's)")
    parser.add_argument("--cuda-graph", action="store_true",
                        help="decode (or the forward pass) as one CUDA graph")
    parser.add_argument("--rate", type=float, default=0.0,
                        help="requests a second, evenly; 0: one after the other")
    steps.add_step_options(parser)
    return parser.parse_args(argv)


def graphed(work: Callable[[], None], wanted: bool) -> Callable[[], None]:
    """`work` as a CUDA graph, captured after a warm-up on a stream of its own."""
    if not wanted:
        return work
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def language_request(arguments: argparse.Namespace, model: Transformer,
                     device: torch.device) -> Step:
    vocabulary = model.config["vocabulary"]
    prompt = torch.randint(vocabulary, (arguments.batch, arguments.prompt), device=device)
    length = arguments.prompt + arguments.tokens
    caches = model.new_caches(arguments.batch, length, next(model.parameters()))
    token = prompt[:, :1].clone()
    place = torch.tensor([arguments.prompt], device=device)

    def decode() -> None:
        token.copy_(model(token, place, caches)[:, -1:].argmax(-1))
        place.add_(1)

    first = torch.tensor([arguments.prompt], device=device)
    decode_step = graphed(decode, arguments.cuda_graph)
    at = torch.arange(arguments.prompt, device=device)

    def request(_number: int) -> None:
        with marked("prefill"):
            token.copy_(model(prompt, at, caches)[:, -1:].argmax(-1))
            place.copy_(first)
        for _ in range(arguments.tokens):
            with marked("decode"):
                decode_step()

    return request


def forward_request(arguments: argparse.Namespace, job: build.Job) -> Step:
    def once() -> None:
        job.model(*job.inputs)

    forward = graphed(once, arguments.cuda_graph)

    def request(_number: int) -> None:
        with marked("forward"):
            forward()

    return request


def paced(step: Step, rate: float, device: torch.device) -> Step:
    """Requests at even distances; each is waited for, as its answer would be."""
    if rate <= 0:
        return step
    began = [0.0, 0.0]

    def request(number: int) -> None:
        if number <= 0 or began[0] == 0.0:
            began[:] = [time.monotonic(), float(number)]
        pause = began[0] + (number - began[1]) / rate - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        step(number)
        if device.type == "cuda":
            torch.cuda.synchronize()

    return request


def make_request(arguments: argparse.Namespace, device: torch.device) -> Step:
    sizes = config.load(arguments.model, arguments.set)
    if arguments.cuda_graph and device.type != "cuda":
        raise config.ConfigError("--cuda-graph needs a GPU")
    job = build.build(sizes, arguments.batch, arguments.prompt, device, image=arguments.image)
    job.model.eval()
    model = job.model
    if isinstance(model, Transformer) and model.config["attention"] == "causal":
        room = model.config["max_sequence"]
        if arguments.prompt + arguments.tokens > room:
            raise config.ConfigError(f"--prompt {arguments.prompt} and --tokens {arguments.tokens} "
                                     f"are more than the model's {room} positions")
        return paced(language_request(arguments, model, device), arguments.rate, device)
    return paced(forward_request(arguments, job), arguments.rate, device)


def main(argv: list[str]) -> int:
    arguments = parse(argv)
    torch.manual_seed(arguments.seed)
    device = steps.device_of(arguments.device)
    with torch.inference_mode():
        try:
            request = make_request(arguments, device)
        except config.ConfigError as fault:
            print(f"error: {fault}", file=sys.stderr)
            return 2
        facts = {"model": arguments.model, "plan": "inference",
                 "cuda_graph": bool(arguments.cuda_graph)}
        steps.run(request, arguments, device, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
