"""Floating-point operations of a network's passes, counted from its file in configs/models.

An operation is a multiplication or an addition: a multiply-add is two. Only products, convolutions
and attention scores count; what streams through memory is below 1 % (sim/model/README.md).
"""
import functools
import json

from .results import CONFIGS

MODELS = CONFIGS / "models"
# Backward makes two products of each forward one: by inputs and by weights (Narayanan et al.,
# SC 2021, appendix). Work that recomputes activations is not counted: it is not useful.
TRAINING_OVER_FORWARD = 3


@functools.lru_cache(maxsize=None)
def model(name):
    """The file configs/models/NAME.json."""
    return json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))


def transformer(spec, tokens):
    """Forward FLOPs of one text: Narayanan et al. (SC 2021, appendix), 24 s h^2 + 4 s^2 h a layer
    and 2 s h V for the logits, for any width of heads and feed-forward part. A causal mask leaves
    half of the scores, which fused kernels do not compute."""
    hidden, heads = spec["hidden"], spec["heads"]
    head = spec.get("head_size", hidden // heads)
    kv_heads = spec.get("kv_heads", heads)
    matrices = 3 if spec["activation"] == "swiglu" else 2
    projections = 2 * hidden * head * heads + 2 * hidden * head * kv_heads
    feed_forward = matrices * hidden * spec.get("ffn", 4 * hidden)
    seen = 0.5 if spec.get("attention", "causal") == "causal" else 1.0
    scores = seen * 2 * tokens * head * heads
    layers = 2 * tokens * spec["layers"] * (projections + feed_forward + scores)
    if spec.get("head", "language_model") == "language_model":
        return layers + 2 * tokens * hidden * spec["vocabulary"]
    return layers


def _convolved(side, layer):
    """Side of the image after a window."""
    return (side + 2 * layer.get("padding", 0) - layer["kernel"]) // layer.get("stride", 1) + 1


def _residual(kind, width, stride, side, channels):
    """FLOPs of one of ResNet's blocks (He et al. 2016, table 1), its image and channels after."""
    after = side // stride
    out = 4 * width if kind == "bottleneck" else width
    if kind == "bottleneck":  # 1x1, 3x3 with the stride, 1x1
        work = channels * width * side ** 2 + (9 * width * width + width * out) * after ** 2
    else:                     # two of 3x3
        work = 9 * (channels * width + width * width) * after ** 2
    if stride != 1 or channels != out:  # the shortcut is projected
        work += channels * out * after ** 2
    return 2 * work, after, out


def _layer(layer, side, channels):
    """FLOPs of one layer of an image network, then image side and channels after it."""
    kind = layer["kind"]
    if kind == "average_pool":
        return 0, 1, channels
    if kind == "max_pool":
        return 0, _convolved(side, layer), channels
    if kind == "linear":
        return 2 * channels * side ** 2 * layer["out"], 1, layer["out"]
    if kind == "convolution":
        after = _convolved(side, layer)
        work = 2 * layer["kernel"] ** 2 * channels * layer["out"] * after ** 2
        return work, after, layer["out"]
    return _residual(kind, layer["out"], layer["stride"], side, channels)


def convolutional(spec):
    """Forward FLOPs of one image."""
    side, channels, total = spec["image"], spec.get("channels", 3), 0
    for layer in spec["layers"]:
        for number in range(layer.get("repeat", 1)):
            # Only the first of repeated blocks strides.
            once = {**layer, "stride": 1} if number > 0 and "stride" in layer else layer
            work, side, channels = _layer(once, side, channels)
            total += work
    return total


def forward(name, tokens=None):
    """Forward FLOPs of one sample of configs/models/NAME: an image, or a text of so many tokens."""
    spec = model(name)
    if spec["family"] == "convolutional":
        return convolutional(spec)
    if spec["family"] != "transformer":
        raise ValueError(f"{name}: family {spec['family']!r}; allowed: transformer, convolutional")
    return transformer(spec, tokens or spec["max_sequence"])


def program(config):
    """(model, "training" or "inference", samples of a pass, useful FLOPs of a request) of a
    filler's `program` as a run config has it: a request is one sample served, or one iteration
    trained."""
    if "train" in config:
        plan = config["train"]["plan"]
        name, batch = config["train"]["model"], plan["global_batch"]
        work = TRAINING_OVER_FORWARD * batch * forward(name, plan.get("sequence"))
        return name, "training", batch, work
    name = config["model"]
    return name, "inference", config.get("batch", 1), forward(name, config.get("sequence"))
