"""Simulates what the notebooks read, executes them, and collects figures and claim tables.

`scripts/figures` builds the program and calls this; its help says what the options mean. A notebook
NN_NAME.ipynb reads every configs/figures/NAME-*.json: a file with `base` is a sweep, any other one
run. What a file gives is kept, and done again only if the file, the program or a config that it may
name has changed; what was killed goes on where it stopped.
"""
import argparse
import dataclasses
import datetime
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
CONFIGS = ROOT / "configs"
# nvmlDeviceGetUtilizationRates: "between 1 second and 1/6 second depending on the product".
USAGE_INTERVAL = "166667us"
CELL_TIMEOUT_S = 1200
WRONG_ARGUMENTS = 2


def say(text):
    print(f"figures: {text}", flush=True)


def stop(text, code=1):
    print(f"figures: {text}", file=sys.stderr)
    sys.exit(code)


@dataclasses.dataclass(frozen=True)
class Source:
    """A file of configs/figures, and what makes it small."""

    path: pathlib.Path
    settings: dict  # JSON pointer: value; empty at full size

    @property
    def name(self):
        return self.path.stem

    @property
    def config(self):
        return json.loads(self.path.read_text(encoding="utf-8"))

    @property
    def is_sweep(self):
        return "base" in self.config


def notebooks(wanted):
    """The notebooks by name without number, in order."""
    found = {path.stem.split("_", 1)[1]: path for path in sorted(NOTEBOOKS.glob("[0-9]*_*.ipynb"))}
    for name in wanted:
        if name not in found:
            stop(f"no notebook {name!r}; allowed: {', '.join(found)}", WRONG_ARGUMENTS)
    return {name: path for name, path in found.items() if not wanted or name in wanted}


def sources(name, reduced):
    """What a notebook reads."""
    small = json.loads((CONFIGS / "figures" / "reduced.json").read_text(encoding="utf-8"))
    out = []
    for path in sorted((CONFIGS / "figures").glob(f"{name}-*.json")):
        if reduced and path.stem not in small:
            stop(f"configs/figures/reduced.json does not say how {path.stem} is made small")
        out.append(Source(path, small[path.stem] if reduced else {}))
    return out


def digest(source, program):
    """Hash of all that a source's results depend on: 16 hexadecimal digits."""
    sha = hashlib.sha256(program.read_bytes())
    sha.update(json.dumps(source.settings, sort_keys=True).encode())
    rooms = [p for p in CONFIGS.iterdir() if p.is_dir() and p.name not in ("figures", "schema")]
    files = sorted(f for room in rooms for f in room.rglob("*.json"))
    files += sorted(f for f in (ROOT / "traces" / "samples").rglob("*") if f.is_file())
    for file in [source.path, *files]:
        sha.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return sha.hexdigest()[:16]


def call(command):
    """Runs a program in the checkout; its last words explain a failure. Exit code 1: there are
    results that must not be trusted, such as training that stands still. They are told of."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    asked = " ".join(map(str, command))
    if done.returncode == 1:
        say(f"some results must not be trusted: {asked}")
    elif done.returncode != 0:
        stop(f"exit code {done.returncode}: {asked}\n{done.stdout[-4000:]}")


def value_text(value):
    return value if isinstance(value, str) else json.dumps(value)


def do_sweep(source, options, place):
    store = place / f"{source.name}.db"
    command = [options.program, "sweep", source.path, "--store", store]
    if options.threads:
        command += ["--threads", str(options.threads)]
    for pointer, value in source.settings.items():
        command += ["--set", f"{pointer}={value_text(value)}"]
    call(command)
    call([options.program, "results", store, "export", "-o", place / f"{source.name}.csv"])


def reduced_config(source):
    """The run with its settings put in; they are members of objects that exist."""
    config = source.config
    for pointer, value in source.settings.items():
        *way, last = pointer.strip("/").split("/")
        place = config
        for name in way:
            place = place[int(name)] if isinstance(place, list) else place[name]
        place[last] = value
    return config


def do_run(source, options, place):
    folder = place / source.name
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.json"
    config.write_text(json.dumps(reduced_config(source), indent=1) + "\n", encoding="utf-8")
    command = [options.program, "run", config, "--out", folder, "--usage", folder / "usage.csv",
               "--usage-interval", USAGE_INTERVAL]
    call(command + (["--threads", str(options.threads)] if options.threads else []))


def simulate(source, options):
    """Results of one source, unless they are there."""
    place = options.output / "data"
    place.mkdir(parents=True, exist_ok=True)
    mark = place / f"{source.name}.done"
    wanted = digest(source, options.program)
    found = mark.read_text(encoding="utf-8").split() if mark.exists() else []
    if found == [wanted, "done"]:
        say(f"{source.name}: there already")
        return
    if found[:1] != [wanted]:  # of another program or config: nothing of it may be mixed in
        for old in [*place.glob(f"{source.name}.db*"), place / f"{source.name}.csv"]:
            old.unlink(missing_ok=True)
        shutil.rmtree(place / source.name, ignore_errors=True)
        mark.write_text(wanted + "\n", encoding="utf-8")
    begin = time.monotonic()
    (do_sweep if source.is_sweep else do_run)(source, options, place)
    mark.write_text(f"{wanted} done\n", encoding="utf-8")
    say(f"{source.name}: simulated in {time.monotonic() - begin:.1f} s")


def environment(options):
    """What the notebooks' kernel sees."""
    module = options.program.parents[1] / "plugin" / "python"
    ways = [str(module), os.environ.get("PYTHONPATH", "")]
    return {"BUBBLESIM": str(options.program), "BUBBLESIM_FIGURES": str(options.output),
            "SOURCE_DATE_EPOCH": "0",
            "PYTHONPATH": os.pathsep.join(way for way in ways if way),
            "IPYTHONDIR": str(options.output / ".ipython"),
            "JUPYTER_RUNTIME_DIR": str(options.output / ".jupyter"),
            "PYTHONDONTWRITEBYTECODE": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def execute(path, options):
    """Runs a notebook from top to bottom; leaves it with its outputs, and as HTML."""
    import nbformat
    from nbconvert import HTMLExporter
    from nbconvert.preprocessors import CellExecutionError, ExecutePreprocessor
    book = nbformat.read(path, as_version=4)
    begin = time.monotonic()
    try:
        ExecutePreprocessor(timeout=CELL_TIMEOUT_S, kernel_name="python3").preprocess(
            book, {"metadata": {"path": str(NOTEBOOKS)}})
    except CellExecutionError as fault:
        stop(f"{path.name} failed:\n{fault}")
    nbformat.write(book, options.output / path.name)
    page, _ = HTMLExporter().from_notebook_node(book, {"metadata": {"name": path.stem}})
    (options.output / f"{path.stem}.html").write_text(page, encoding="utf-8")
    say(f"{path.name}: executed in {time.monotonic() - begin:.1f} s")


def claim_counts(path):
    claims = json.loads(path.read_text(encoding="utf-8"))
    count = {answer: sum(c["agrees"] is answer for c in claims) for answer in (True, False, None)}
    return f"{len(claims)} claims: {count[True]} agree, {count[False]} do not, {count[None]} open"


def stamp(program):
    """When claims were made, and by which version."""
    version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=True)
    number = version.stdout.split()[1]
    return f"{datetime.date.today().isoformat()}, by version {number}.\n\n"


def write_claims(output, names, made):
    """Puts the claim tables of these notebooks, and when they were made, between their marks in
    notebooks/CLAIMS.md."""
    page = NOTEBOOKS / "CLAIMS.md"
    text = page.read_text(encoding="utf-8")
    for path in sorted((output / "claims").glob("*.md")):
        if path.stem not in names:  # of an earlier call: its stamp stays
            continue
        begin, end = f"<!-- claims: {path.stem} -->\n", f"<!-- end: {path.stem} -->\n"
        if begin not in text or end not in text:
            stop(f"notebooks/CLAIMS.md has no {begin.strip()} ... {end.strip()}")
        before, rest = text.split(begin, 1)
        table = made + path.read_text(encoding="utf-8")
        text = before + begin + table + end + rest.split(end, 1)[1]
    page.write_text(text, encoding="utf-8")
    say("notebooks/CLAIMS.md has the claim tables")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/figures")
    parser.add_argument("--program", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "out" / "figures")
    parser.add_argument("--notebook", action="append", default=[])
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # before a build
    options = parser.parse_args(arguments)
    if options.readme and options.reduced:
        parser.error("--readme: reduced results are no results; leave out --reduced")
    options.program = options.program.resolve()
    options.output = options.output.resolve()
    if options.threads < 0:
        parser.error(f"--threads: found {options.threads}, expected 1 or more")
    if not options.check and not options.program.is_file():
        parser.error(f"--program: no such file: {options.program}")
    return options


def main(arguments):
    options = parse(arguments)
    begin = time.monotonic()
    books = notebooks(options.notebook)
    if options.check:
        return
    options.output.mkdir(parents=True, exist_ok=True)
    small = options.output / "reduced"
    small.unlink(missing_ok=True)
    if options.reduced:
        small.touch()
    os.environ.update(environment(options))
    for name, path in books.items():
        for source in sources(name, options.reduced):
            simulate(source, options)
        execute(path, options)
    for path in sorted((options.output / "claims").glob("*.json")):
        say(f"{path.stem}: {claim_counts(path)}")
    if options.readme:
        write_claims(options.output, books, stamp(options.program))
    figures = len(list(options.output.glob("*.pdf")))
    say(f"{figures} figures as PDF and PNG, notebooks as HTML, in {options.output}; "
        f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
