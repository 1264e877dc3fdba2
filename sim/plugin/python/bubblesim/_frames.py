"""Columns to pandas frames. Both libraries are imported when they are first needed."""
import importlib
import json


def _needed(name, makes):
    try:
        return importlib.import_module(name)
    except ImportError as absent:
        raise ImportError(f"bubblesim makes {makes} with {name}, which is not installed for this "
                          f"Python (Debian: python3-{name})") from absent


def pandas():
    return _needed("pandas", "frames")


def numpy():
    return _needed("numpy", "arrays of records")


def _setting(text):
    """Numbers, texts and the like as they are; lists and objects as JSON: they stay hashable."""
    if text is None:
        return None
    value = json.loads(text)
    return text if isinstance(value, (dict, list)) else value


def _column(kind, values, missing):
    if kind == "json":
        known = {text: _setting(text) for text in set(values)}
        return [known[text] for text in values]
    if kind == "integer" and missing is not None:
        return pandas().arrays.IntegerArray(values.copy(), missing.copy())
    if kind in ("number", "integer"):
        return values.copy()
    return pandas().array(values, dtype=object)


def frame_of(columns):
    """columns: (name, kind, values, missing) as sim/plugin/python/arrays.hpp gives them."""
    return pandas().DataFrame({name: _column(kind, values, missing)
                               for name, kind, values, missing in columns})


def concatenated(frames):
    frames = list(frames)
    return pandas().concat(frames, ignore_index=True) if len(frames) != 1 else frames[0]


def texts_of(numbers, names):
    """The names that the numbers stand for, as an array of str."""
    return numpy().array(names, dtype=object)[numbers]
