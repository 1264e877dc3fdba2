"""What the five commands in Python have in common: one table of what goes wrong, one line of what
each says of it. Every command runs as a user runs it, in a folder with its inputs."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bubblesim._table import write_file

SOURCE = Path(os.environ["BUBBLESIM_SOURCE"])
COMMANDS = {
    "fleet": ["-m", "bubblesim.fleet", "jobs.csv", "--filler", "filler.json.gz", "--duration",
              "300ms", "--warmup", "100ms", "--budget", "100ms", "--policy", "mps"],
    "layers": ["-m", "bubblesim.layers", "profile"],
    "steps": ["-m", "bubblesim.steps", "trace.json"],
    "fit": [f"{SOURCE}/scripts/fit", "network", "--data", "data"],
    "judge": [f"{SOURCE}/scripts/judge", "sharing", "--table", "caps.csv", "--jobs", "1"]}
OUTPUT = {"fleet": "--csv", "judge": "--csv"}  # others: -o
INPUT = {"fleet": "jobs.csv", "layers": "profile/meta.yaml", "steps": "trace.json",
         "fit": "data/VIA-Research+vTrain/trace/a100/AR_GPU8_LUT", "judge": "caps.csv"}
ALL = pytest.mark.parametrize("name", COMMANDS)
NEEDS_NUMPY = ["fleet", "steps", "fit"]


def operation(cat, name, ts, dur, process):
    return {"ph": "X", "cat": cat, "name": name, "pid": process, "tid": 7, "ts": ts, "dur": dur,
            "args": {"correlation": 1, "stream": 7, "device": 0}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ("profile/tp1", "data/VIA-Research+vTrain/trace/a100", "folder"):
        Path(place).mkdir(parents=True)
    os.symlink(SOURCE / "traces/samples/inference.json.gz", "filler.json.gz")
    Path("jobs.csv").write_text(f"job,hours,trace\na,24,{SOURCE}/traces/samples/training\n")
    Path("caps.csv").write_text("role,work,sm_percentage,time_relative_to_all_sms\n"
                                "fit,decode,50,1.2\n")
    Path(INPUT["fit"]).write_text("size(B),time(ns)\n" + "".join(
        f"{mib << 20},{(mib << 20) // 100 + 20_000}\n" for mib in range(1, 41)))
    Path("profile/meta.yaml").write_text(
        "vllm_version: 1\ngpu: G\nprofiled_at: now\nmodel: m\ntp_degrees: [1]\nmax_num_seqs: 1\n"
        "chunks: 0, 16\nn_decode: 0, 1\nkv: 0, 16\n")
    Path("profile/tp1/dense.csv").write_text("layer,tokens,time_us\n" + "".join(
        f"{layer},1,1\n" for layer in ("embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj",
                                       "final_layernorm", "gate_up_proj", "act_fn", "down_proj")))
    Path("profile/tp1/per_sequence.csv").write_text("layer,sequences,time_us\nlm_head,1,1\n"
                                                    "sampler,1,1\n")
    Path("profile/tp1/attention.csv").write_text(
        "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
        "0,0,1,16,1\n16,0,0,0,1\n16,16,0,0,1\n")
    Path("trace.json").write_text(json.dumps({"traceEvents": [
        operation("user_annotation", "execute_context_1(300)_generation_0(0)", 1000, 500, 7),
        operation("cuda_runtime", "cudaLaunchKernel", 1100, 5, 7),
        operation("kernel", "prompt", 2000, 80000, 0)]}))
    Path("notes.txt").write_text("mine")
    return tmp_path


def run(name, *more, **options):
    return subprocess.run([sys.executable, *COMMANDS[name], *map(str, more)], check=False,
                          capture_output="stdout" not in options, text=True, timeout=60, **options)


def writing(name, path):
    return [OUTPUT.get(name, "-o"), path]


def fault_of(done):
    """The one line that was said."""
    assert done.returncode == 2 and not done.stdout, done.stdout + done.stderr
    line, = done.stderr.splitlines()
    return line


@ALL
def test_an_output_is_written_whole_once_more_and_through_a_link(folder, name):
    os.symlink("out", "link")
    for path in ("out", "out", "link"):
        done = run(name, *writing(name, path))
        assert done.returncode == 0, done.stderr
    assert Path("link").is_symlink() and Path("out").stat().st_size > 0
    assert not list(folder.rglob("*.partial"))


@ALL
@pytest.mark.parametrize("path, said", [
    ("", "found no name"), ("folder", "found a folder; expected a file"),
    ("notes.txt", "bubblesim did not make it; expected another name, or --force"),
    ("notes.txt/out", "notes.txt is no folder"), ("same", "this command reads"),
    ("symbolic", "this command reads"), ("hard", "this command reads")])
def test_an_output_that_must_not_be_is_refused_before_the_work(folder, name, path, said):
    os.symlink(INPUT[name], "symbolic")
    if name != "fit":  # reads a folder, in which other names of a file are not looked for
        os.link(INPUT[name], "hard")
    else:
        os.symlink(INPUT[name], "hard")
    before = Path(INPUT[name]).read_text()
    path = INPUT[name] if path == "same" else path
    force = ["--force"] if "reads" in said else []
    assert said in fault_of(run(name, *writing(name, path), *force))
    assert Path(INPUT[name]).read_text() == before and Path("notes.txt").read_text() == "mine"


@ALL
def test_force_replaces_what_somebody_else_made(folder, name):
    assert run(name, *writing(name, "notes.txt"), "--force").returncode == 0
    assert Path("notes.txt").read_text() != "mine"


CELLS = {"fleet": ("jobs.csv", "hours"), "layers": ("profile/tp1/dense.csv", "time_us"),
         "judge": ("caps.csv", "sm_percentage")}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("text", ["nan", "inf", "x", "1_0"])
def test_a_cell_that_is_no_number_is_told_by_its_line_and_column(folder, name, text):
    file, column = CELLS[name]
    head, row, *rest = Path(file).read_text().splitlines()
    Path(file).write_text("\n".join([head, ",".join(
        text if key == column else cell for key, cell in zip(head.split(","), row.split(","))),
        *rest]) + "\n")
    said = fault_of(run(name, *writing(name, "out")))
    assert f"{file}: line 2: {column}: found \"{text}\"; expected a " in said
    assert not Path("out").exists()


@ALL
@pytest.mark.parametrize("change", [
    lambda file: file.write_text(""), lambda file: file.write_bytes(b"\xff\xfe\x00"),
    lambda file: file.unlink(), lambda file: (file.unlink(), file.mkdir())])
def test_an_input_that_cannot_be_read_is_told(folder, name, change):
    change(Path(INPUT[name]))
    done = run(name, *writing(name, "out"))
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr and not Path("out").exists()


@pytest.mark.parametrize("name", ["fleet", "layers"])
def test_columns_stand_once(folder, name):
    file, column = CELLS[name]
    text = Path(file).read_text().splitlines()
    Path(file).write_text("\n".join([f"{text[0]},{column}",
                                     *(f"{row},1" for row in text[1:])]) + "\n")
    assert f"\"{column}\" twice" in fault_of(run(name, *writing(name, "out")))
    Path(file).write_text("\n".join([text[0].replace(column, "other"), *text[1:]]) + "\n")
    done = run(name, *writing(name, "out"))
    assert done.returncode == 2 and f"no column \"{column}\"" in done.stderr


@ALL
def test_a_reader_that_leaves_and_a_full_disk_leave_no_traceback(folder, name):
    read, write = os.pipe()
    os.close(read)
    for file, code in ((os.fdopen(write, "w"), 141), (open("/dev/full", "w", encoding="utf-8"), 2)):
        with file:
            done = run(name, *writing(name, "out"), stdout=file, stderr=subprocess.PIPE)
        assert done.returncode == code and len(done.stderr.splitlines()) == (code == 2), done.stderr
        assert Path("out").stat().st_size > 0


@ALL
def test_a_closed_output_is_a_fault(folder, name):
    done = subprocess.run(["sh", "-c", "exec \"$@\" >&-", "sh", sys.executable, *COMMANDS[name],
                           *writing(name, "out")], check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "standard output: could not be written whole" in done.stderr


@ALL
def test_a_name_that_is_no_text_is_written(folder, name):
    done = run(name, *writing(name, "\udcff"))
    assert done.returncode == 0 and os.path.exists(b"\xff"), done.stderr


@ALL
def test_help_has_an_example_and_a_wrong_option_is_one_line(name):
    command = COMMANDS[name][:1 if name in ("fit", "judge") else 2]
    told = subprocess.run([sys.executable, *command, "--help"], capture_output=True, text=True,
                          check=True).stdout
    assert "xample" in told or told.count(f"scripts/{name} ") > 1
    assert "--nonsense" in fault_of(run(name, *writing(name, "out"), "--nonsense"))


@pytest.mark.parametrize("name", NEEDS_NUMPY)
def test_numpy_is_named_where_it_is_missing(folder, name):
    Path("empty/numpy").mkdir(parents=True)
    Path("empty/numpy/__init__.py").write_text("raise ModuleNotFoundError('', name='numpy')")
    path = os.pathsep.join(["empty", os.environ["PYTHONPATH"]])
    assert "(Debian: python3-numpy)" in fault_of(
        run(name, *writing(name, "out"), env={**os.environ, "PYTHONPATH": path}))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", ["fit", "judge"])
def test_a_signal_ends_compiled_work_and_leaves_no_file(folder, name, number):
    """Tables of so many rows that the work takes longer than the test waits."""
    with open(INPUT["fit"], "a", encoding="utf-8") as table:
        table.writelines(f"{(41 << 20) + row},1\n" for row in range(200_000))
    Path(INPUT["judge"]).write_text("role,work,sm_percentage,time_relative_to_all_sms\n"
                                    + "fit,prefill,50,1.2\n" * 300_000)
    process = subprocess.Popen([sys.executable, *COMMANDS[name], *writing(name, "out")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    process.send_signal(number)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 130 and "Traceback" not in said, said
    assert not Path("out").exists() and not list(folder.rglob("*.partial"))


def test_a_partial_file_is_a_new_one_whatever_lies_there(tmp_path):
    other, target = tmp_path / "other", tmp_path / "out.csv"
    other.write_text("theirs")
    Path(f"{target}.partial").symlink_to(other)
    write_file(target, "ours")
    assert (other.read_text(), target.read_text()) == ("theirs", "ours")
    assert not target.is_symlink() and not Path(f"{target}.partial").exists()
