#!/usr/bin/env python3
"""A service of a language model by an engine that nobody wrote for this: vLLM's or transformers',
with random weights, so that nothing is downloaded. Serves until it is told to end.

Example:
  python3 serve.py --engine transformers --folder out/model
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

SIZES = {"n_layer": 36, "n_embd": 1280, "n_head": 20, "vocab_size": 50257, "n_positions": 1024}


def vllm_batch(folder: Path, tokens: int):
    from vllm import LLM, SamplingParams

    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **SIZES}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    engine = LLM(model=str(folder), load_format="dummy", skip_tokenizer_init=True,
                 gpu_memory_utilization=0.3)
    wanted = SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False)
    prompts = [{"prompt_token_ids": list(range(1, 129))} for _ in range(8)]
    return lambda: engine.generate(prompts, wanted, use_tqdm=False)


def transformers_batch(_folder: Path, tokens: int):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("cuda"):  # random weights of this size take a CPU many seconds
        model = GPT2LMHeadModel(GPT2Config(**SIZES)).half().eval()
    prompt = torch.randint(SIZES["vocab_size"], (8, 128), device="cuda")
    mask = torch.ones_like(prompt)
    return lambda: model.generate(prompt, attention_mask=mask, max_new_tokens=tokens,
                                  min_new_tokens=tokens, do_sample=False,
                                  pad_token_id=SIZES["vocab_size"] - 1)


def main(argv: list) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("vllm", "transformers"), required=True)
    parser.add_argument("--folder", type=Path, required=True, help="for the model's config")
    parser.add_argument("--tokens", type=int, default=32, help="of each of 8 requests of a batch")
    parser.add_argument("--times", type=Path, help="where the seconds of each batch go")
    parser.add_argument("--seconds", type=float, default=600.0)
    arguments = parser.parse_args(argv)
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    make = vllm_batch if arguments.engine == "vllm" else transformers_batch
    batch = make(arguments.folder, arguments.tokens)
    seconds = []
    until = time.monotonic() + arguments.seconds
    while not stopped and time.monotonic() < until:
        began = time.perf_counter()
        batch()
        seconds.append(time.perf_counter() - began)
    if arguments.times:
        arguments.times.write_text(json.dumps({"iteration_s": seconds}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
