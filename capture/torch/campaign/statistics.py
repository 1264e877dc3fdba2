"""Medians, and what can be said of them and of their ratios. Deterministic."""

from __future__ import annotations

import math
import random
from typing import Sequence

RESAMPLES = 2000


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % by order statistics: ranks n/2 -+ 0.98 sqrt(n), the normal approximation of the
    binomial; the extremes where there are too few values."""
    ordered = sorted(values)
    count = len(ordered)
    reach = 0.98 * math.sqrt(count)
    low = max(0, math.floor(count / 2 - reach))
    high = min(count - 1, math.ceil(count / 2 + reach))
    return ordered[low], ordered[high]


def ratio_interval(
    rounds: Sequence[tuple[Sequence[float], Sequence[float]]], seed: int = 1
) -> tuple[float, float]:
    """95 % of the ratio of medians, arm over base, by bootstrap: iterations are drawn anew within
    each round, so that rounds stay interleaved."""
    stream = random.Random(seed)
    ratios = []
    for _ in range(RESAMPLES):
        base: list[float] = []
        arm: list[float] = []
        for base_round, arm_round in rounds:
            base += stream.choices(base_round, k=len(base_round))
            arm += stream.choices(arm_round, k=len(arm_round))
        ratios.append(median(arm) / median(base))
    ratios.sort()
    return ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES)]
