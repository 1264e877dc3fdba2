"""Transformers of configs/models as plain modules: random weights, fused attention."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Config = dict[str, Any]
Cache = tuple[torch.Tensor, torch.Tensor]


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if hasattr(F, "rms_norm"):
            return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5)
        return (x.float() * scale).to(x.dtype) * self.weight


def norm_of(config: Config) -> nn.Module:
    return RMSNorm(config["hidden"]) if config["norm"] == "rms" else nn.LayerNorm(config["hidden"])


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, dropout: float
) -> torch.Tensor:
    """Fused where PyTorch has it (from 2.0); heads of k and v are repeated to those of q."""
    if k.shape[1] != q.shape[1]:
        repeat = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, dropout_p=dropout)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(mask, float("-inf"))
    return F.dropout(scores.softmax(-1), dropout) @ v


class Rotary(nn.Module):
    """Sine and cosine of positions, computed once."""

    def __init__(self, head_size: int, length: int) -> None:
        super().__init__()
        self.head_size, self.length = head_size, length
        cos, sin = self._tables(torch.device("cpu"))
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def _tables(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        steps = torch.arange(0, self.head_size, 2, device=device).float() / self.head_size
        angles = torch.arange(self.length, device=device).float()[:, None] * (10000.0**-steps)
        return angles.cos(), angles.sin()

    def fill(self) -> None:
        """Values of the tables, for a model made without storage."""
        cos, sin = self._tables(self.cos.device)
        self.cos.copy_(cos)
        self.sin.copy_(sin)

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        cos, sin = self.cos[at].to(x.dtype), self.sin[at].to(x.dtype)
        first, second = x.chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Attention(nn.Module):
    """Works on as many heads as its matrices have: fewer under tensor parallelism."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.size: int = config["head_size"]
        self.share = config["heads"] // config["kv_heads"]
        heads, kv_heads = config["heads"], config["kv_heads"]
        self.causal = config["attention"] == "causal"
        self.dropout = 0.1 if config["dropout"] else 0.0
        self.q = nn.Linear(config["hidden"], heads * self.size, bias=config["biases"])
        self.k = nn.Linear(config["hidden"], kv_heads * self.size, bias=config["biases"])
        self.v = nn.Linear(config["hidden"], kv_heads * self.size, bias=config["biases"])
        self.out = nn.Linear(heads * self.size, config["hidden"], bias=config["biases"])

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], -1, self.size).transpose(1, 2)

    def forward(
        self, x: torch.Tensor, rotary: Rotary | None, at: torch.Tensor, cache: Cache | None
    ) -> torch.Tensor:
        q, k, v = self._heads(self.q(x)), self._heads(self.k(x)), self._heads(self.v(x))
        if rotary is not None:
            q, k = rotary(q, at), rotary(k, at)
        causal = self.causal
        if cache is not None:
            cache[0].index_copy_(2, at, k)
            cache[1].index_copy_(2, at, v)
            if q.shape[2] == 1:  # decode: the one token looks at all that the cache has room for
                k, v, causal = cache[0], cache[1], False
        y = attend(q, k, v, causal, self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1))


class FeedForward(nn.Module):
    def __init__(self, hidden: int, width: int, swiglu: bool, biases: bool) -> None:
        super().__init__()
        self.up = nn.Linear(hidden, width, bias=biases)
        self.gate = nn.Linear(hidden, width, bias=biases) if swiglu else None
        self.down = nn.Linear(width, hidden, bias=biases)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.gate is not None:
            return self.down(F.silu(self.gate(x)) * self.up(x))
        return self.down(F.gelu(self.up(x)))


class Mixture(nn.Module):
    """Experts with balanced routing by force: token t goes to experts t, t+1, ... (random weights
    would route anyhow). The router's matrix is applied for its cost."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        mixture = config["mixture"]
        self.top_k: int = mixture["top_k"]
        swiglu = config["activation"] == "swiglu"
        self.router = nn.Linear(config["hidden"], mixture["experts"], bias=False)
        self.experts = nn.ModuleList(
            FeedForward(config["hidden"], mixture["expert_ffn"], swiglu, False)
            for _ in range(mixture["experts"])
        )
        self.shared = nn.ModuleList(
            FeedForward(config["hidden"], mixture["expert_ffn"], swiglu, False)
            for _ in range(mixture.get("shared_experts", 0))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, x.shape[-1])
        weights = self.router(flat).softmax(-1)
        out = torch.zeros_like(flat)
        count = len(self.experts)
        for number, expert in enumerate(self.experts):
            firsts = [(number - choice) % count for choice in range(self.top_k)]
            rows = torch.cat([flat[first::count] for first in firsts])
            done = expert(rows).split([len(flat[first::count]) for first in firsts])
            for first, part in zip(firsts, done):
                out[first::count] += part * weights[first::count, number, None]
        for expert in self.shared:
            out = out + expert(flat)
        return out.view_as(x)


class Block(nn.Module):
    def __init__(self, config: Config, number: int) -> None:
        super().__init__()
        self.before = config["norm_place"] == "before"
        self.norm1, self.norm2 = norm_of(config), norm_of(config)
        self.attention = Attention(config)
        swiglu = config["activation"] == "swiglu"
        self.ffn: nn.Module
        if has_experts(config, number):
            self.ffn = Mixture(config)
        else:
            self.ffn = FeedForward(config["hidden"], config["ffn"], swiglu, config["biases"])
        self.dropout = nn.Dropout(0.1) if config["dropout"] else nn.Identity()

    def forward(
        self, x: torch.Tensor, rotary: Rotary | None, at: torch.Tensor, cache: Cache | None = None
    ) -> torch.Tensor:
        if self.before:
            x = x + self.dropout(self.attention(self.norm1(x), rotary, at, cache))
            return x + self.dropout(self.ffn(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.attention(x, rotary, at, cache)))
        return self.norm2(x + self.dropout(self.ffn(x)))


def has_experts(config: Config, number: int) -> bool:
    mixture = config.get("mixture")
    if not mixture or number < mixture.get("first_dense", 0):
        return False
    return (number - mixture.get("first_dense", 0)) % mixture.get("every", 1) == 0


class Transformer(nn.Module):
    """Blocks `first` to `last`, with the embedding before block 0 and the head after the last:
    the whole model, or one stage of a pipeline."""

    def __init__(self, config: Config, first: int = 0, last: int | None = None) -> None:
        super().__init__()
        self.config = config
        last = config["layers"] if last is None else last
        self.has_embedding, self.has_head = first == 0, last == config["layers"]
        hidden, vocabulary = config["hidden"], config["vocabulary"]
        learned = config["positions"] == "learned"
        if self.has_embedding:
            self.tokens = nn.Embedding(vocabulary, hidden)
            self.positions = nn.Embedding(config["max_sequence"], hidden) if learned else None
            types = config["token_types"]
            self.types = nn.Embedding(types, hidden) if types else None
            self.embedding_norm = norm_of(config) if config["embedding_norm"] else None
            self.embedding_dropout = nn.Dropout(0.1) if config["dropout"] else nn.Identity()
        self.rotary = None if learned else Rotary(config["head_size"], config["max_sequence"])
        self.blocks = nn.ModuleList(Block(config, n) for n in range(first, last))
        self.final_norm = norm_of(config) if config["norm_place"] == "before" else None
        self.head = self._head() if self.has_head else None

    def _head(self) -> nn.Module | None:
        hidden, kind = self.config["hidden"], self.config["head"]
        if kind == "language_model":
            head = nn.Linear(hidden, self.config["vocabulary"], bias=False)
            if self.config["tied_embeddings"] and self.has_embedding:
                head.weight = self.tokens.weight
            return head
        if kind == "classifier":
            return nn.Sequential(
                nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, self.config["classes"])
            )
        if kind == "pooler":
            return nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh())
        return None

    def embed(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions(at)
        if self.types is not None:
            x = x + self.types(torch.zeros_like(tokens))
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        return self.embedding_dropout(x)

    def forward(
        self,
        x: torch.Tensor,
        at: torch.Tensor | None = None,
        caches: list[Cache] | None = None,
    ) -> torch.Tensor:
        """`x`: tokens (batch, length), or activations where the embedding is another stage's."""
        if at is None:
            at = torch.arange(x.shape[1], device=x.device)
        if self.has_embedding:
            x = self.embed(x, at)
        for number, block in enumerate(self.blocks):
            x = block(x, self.rotary, at, caches[number] if caches else None)
        if not self.has_head:
            return x
        if self.final_norm is not None:
            x = self.final_norm(x)
        if self.head is None:
            return x
        return self.head(x if self.config["head"] == "language_model" else x[:, 0])

    def new_caches(self, batch: int, length: int, like: torch.Tensor) -> list[Cache]:
        shape = (batch, self.config["kv_heads"], length, self.config["head_size"])
        return [(like.new_zeros(shape), like.new_zeros(shape)) for _ in self.blocks]
