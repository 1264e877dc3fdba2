"""Model files of configs/models, with the sizes that a command line may replace."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[4] / "configs" / "models"


class ConfigError(ValueError):
    """A model that there is not, or a value that does not fit it."""


def model_ids(folder: Path = FOLDER) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.json"))


def load(model: str, overrides: list[str] | None = None, folder: Path = FOLDER) -> dict[str, Any]:
    """The model's object; `overrides` are texts like "layers=4"."""
    path = folder / f"{model}.json"
    if not path.is_file():
        near = difflib.get_close_matches(model, model_ids(folder), 1)
        hint = f"; nearest: {near[0]}" if near else ""
        raise ConfigError(f"no model {model!r} in {folder}{hint}")
    config: dict[str, Any] = json.loads(path.read_text())
    for text in overrides or []:
        key, _, value = text.partition("=")
        if config.get("family") != "transformer" or not _is_size(config, key):
            raise ConfigError(f"--set {text}: {model} has no size {key!r} that can be replaced")
        if not value.isdigit() or int(value) < 1:
            raise ConfigError(f"--set {text}: expected a whole number from 1")
        config[key] = int(value)
    if config.get("family") == "transformer":
        _complete(model, config)
    return config


def _is_size(config: dict[str, Any], key: str) -> bool:
    known = ("ffn", "kv_heads", "head_size")
    return key in known or type(config.get(key)) is int


def _complete(model: str, config: dict[str, Any]) -> None:
    """Defaults as configs/models/README.md states them."""
    config.setdefault("kv_heads", config["heads"])
    config.setdefault("head_size", config["hidden"] // config["heads"])
    config.setdefault("ffn", 4 * config["hidden"])
    config.setdefault("attention", "causal")
    config.setdefault("norm_place", "before")
    config.setdefault("tied_embeddings", True)
    config.setdefault("token_types", 0)
    config.setdefault("embedding_norm", False)
    config.setdefault("head", "language_model")
    if config["heads"] % config["kv_heads"] != 0:
        raise ConfigError(
            f"{model}: kv_heads {config['kv_heads']} does not divide heads {config['heads']}"
        )
