"""The stub __init__.pyi and the package: every public name is in both, and says what it is."""
import ast
import inspect
import os
import re
import shutil
import subprocess
from pathlib import Path

import bubblesim
import pytest

PACKAGE = Path(bubblesim.__file__).parent
STUB = ast.parse((PACKAGE / "__init__.pyi").read_text())


def declared(body):
    names = set()
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets)
    return names


def public(names):
    return {name for name in names if not name.startswith("_")}


def members_of(name):
    """What a class has of its own or from a private base."""
    kind = getattr(bubblesim, name)
    if name == "Fault":
        return set(kind._fields)
    if hasattr(kind, "__members__"):
        return set(kind.__members__)
    return public(vars(kind))


CLASSES = [node for node in STUB.body if isinstance(node, ast.ClassDef)]


def test_the_stub_and_the_package_have_the_same_names():
    assert public(declared(STUB.body)) == public(bubblesim.__all__)
    there = {name for name in vars(bubblesim) if not name.startswith("_")
             and not inspect.ismodule(getattr(bubblesim, name))}
    assert there == public(bubblesim.__all__)


@pytest.mark.parametrize("node", CLASSES, ids=lambda node: node.name)
def test_a_class_has_the_same_members_in_both(node):
    assert public(declared(node.body)) == members_of(node.name)


def explains(thing):
    """Is there more than pybind11's line of the signature?"""
    lines = (thing.__doc__ or "").strip().splitlines()
    return any(line.strip() and "->" not in line for line in lines)


@pytest.mark.parametrize("name", sorted(public(bubblesim.__all__)))
def test_what_is_public_says_what_it_is(name):
    thing = getattr(bubblesim, name)
    if not callable(thing):
        return
    assert explains(thing)
    if not inspect.isclass(thing) or hasattr(thing, "__members__") or name == "Fault":
        return
    for member in public(vars(thing)):
        if name == "Error" and member == "faults":
            continue
        assert explains(getattr(thing, member)), member


@pytest.mark.parametrize("name", [node.name for node in STUB.body
                                  if isinstance(node, ast.FunctionDef)])
def test_functions_take_what_the_stub_says(name):
    node, = [node for node in STUB.body if isinstance(node, ast.FunctionDef) and node.name == name]
    arguments = [each.arg for each in node.args.args + node.args.kwonlyargs]
    thing = getattr(bubblesim, name)
    if inspect.isfunction(thing):
        assert list(inspect.signature(thing).parameters) == arguments
    else:
        signature = thing.__doc__.splitlines()[0]
        places = [signature.find(f"{argument}: ") for argument in arguments]
        assert -1 not in places and places == sorted(places), signature


def test_the_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.skipif(shutil.which("mypy") is None, reason="needs mypy (Debian: mypy)")
def test_mypy_accepts_the_stub_and_the_examples(tmp_path):
    room = Path(os.environ["BUBBLESIM_SOURCE"]) / "sim/plugin/python"
    examples = re.findall(r"^```python\n(.*?)^```$", (room / "README.md").read_text(), re.M | re.S)
    page = tmp_path / "page.py"
    page.write_text("\n".join(examples))
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    environment.pop("LD_PRELOAD", None)
    done = subprocess.run(["mypy", "--ignore-missing-imports", "--follow-imports=silent",
                           "--cache-dir", str(tmp_path), str(PACKAGE / "__init__.pyi"), str(page),
                           str(room / "examples/quiet_gate.py")],
                          capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
