"""Results in few files, and how a later call goes on from them."""

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

import setting  # noqa: F401  (paths)

import processes
from first_contact import pairs, results, stand_ins
from first_contact.context import Context


class Results(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work, self.out = Path(folder.name) / "work", Path(folder.name) / "out"
        self.write("records/a.json", b"{}")

    def write(self, name: str, data: bytes) -> None:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def test_what_was_packed_is_there_again_in_an_empty_folder(self) -> None:
        self.write("captures/traces/x.btr", b"t" * 100)
        self.write("b/log.txt", b"said")
        self.write("build/large.o", b"no")
        self.assertEqual(results.pack(self.work, self.out), [])
        other = self.work.parent / "other"
        self.assertEqual(results.unpack(self.out, other), 3)
        self.assertEqual((other / "captures/traces/x.btr").read_bytes(), b"t" * 100)
        self.assertEqual((other / "b/log.txt").read_bytes(), b"said")
        self.assertFalse((other / "build").exists())
        self.assertEqual(results.unpack(self.out, other), 0)  # all there

    def test_traces_fill_at_most_five_files_below_the_limit(self) -> None:
        for number in range(14):
            self.write(f"captures/traces/{number:02}.btr", os.urandom(40_000))
        left_out = []
        self.out.mkdir()
        left_out = results.write_traces(self.work, self.out, limit=120_000)
        files = sorted(self.out.glob("traces-*.tar"))
        # 120,000 less the end holds two of 42,048: ten of fourteen in five files.
        self.assertEqual(len(files), 5)
        self.assertEqual(left_out, ["10.btr", "11.btr", "12.btr", "13.btr"])
        self.assertTrue(all(path.stat().st_size <= 120_000 for path in files))

    def test_state_keeps_records_and_leaves_the_largest_files_out(self) -> None:
        for number in range(8):
            self.write(f"x/{number}.bin", os.urandom(50_000 + number))
        self.out.mkdir()
        left_out = results.write_state(self.work, self.out / "state.tar.gz", limit=220_000)
        self.assertLessEqual((self.out / "state.tar.gz").stat().st_size, 220_000)
        self.assertIn("x/7.bin", left_out)
        with tarfile.open(self.out / "state.tar.gz") as archive:
            self.assertEqual(archive.getnames()[0], "records/a.json")

    def test_long_logs_keep_both_ends(self) -> None:
        text = b"begin" + b"." * 500_000 + b"end"
        kept = results.cut(text, ".txt")
        self.assertLess(len(kept), 140_000)
        self.assertTrue(kept.startswith(b"begin") and kept.endswith(b"end"))
        self.assertEqual(results.cut(text, ".csv"), text)

    def test_a_file_that_was_cut_off_is_no_fault(self) -> None:
        results.pack(self.work, self.out)
        whole = (self.out / "state.tar.gz").read_bytes()
        (self.out / "state.tar.gz").write_bytes(whole[:len(whole) // 2])
        results.unpack(self.out, self.work.parent / "other")

    def test_names_that_lead_elsewhere_are_not_unpacked(self) -> None:
        self.out.mkdir()
        with tarfile.open(self.out / "state.tar.gz", "w:gz") as archive:
            entry = tarfile.TarInfo("../escaped")
            archive.addfile(entry)
        self.assertEqual(results.unpack(self.out, self.work), 0)
        self.assertFalse((self.work.parent / "escaped").exists())


class Fits(unittest.TestCase):
    HEAD = "bubblesim stand-in fits 6, GPU-1, driver 13000\n"
    # grid, block, registers, shared, bound, tensor, dram, issue, solo, floor, loop, mix, error, floor
    TENSOR = "132 1 1 256 1 1 64 0 1 1 0.1 0.8 50000 1500 10 0 1 2 3 4 0.01 0\n"
    SHORT = "1 1 1 64 1 1 32 0 2 0 0.5 0.2 1200 1500 10 0 1 2 0 4 0.3 1\n"
    WRONG = "132 1 1 256 1 1 64 0 2 0 0.8 0.2 200000 1500 10 0 1 2 0 4 0.05 0\n"

    def test_errors_are_by_class_and_floors_apart(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fits"
            path.write_text(self.HEAD + self.TENSOR + self.SHORT + self.WRONG + "1 2 3\n")
            made = stand_ins.by_class(stand_ins.read_fits(path))
        self.assertEqual(made["tensor, below 100 us"]["error"]["max"], 0.01)
        self.assertEqual(made["tensor, below 100 us"]["off_target"], 0)
        self.assertEqual(made["memory, below 10 us"]["at_floor"], 1)
        self.assertEqual(made["memory, below 10 us"]["error"], {"n": 0})
        self.assertEqual(made["memory, 100 us and more"]["off_target"], 1)


    def test_fits_of_another_card_do_not_come_back(self) -> None:
        """The last program to write has this card's, however few."""
        with tempfile.TemporaryDirectory() as folder:
            context = Context(Path(folder), sys.executable, None, True)
            part = context.folder("g")
            context.fits.write_text(self.HEAD.replace("GPU-1", "GPU-0") + 9 * self.TENSOR)
            os.utime(context.fits, (1, 1))
            (part / "fits").write_text(self.HEAD + self.SHORT)
            pairs.share_fits(context, part)
            self.assertEqual(context.fits.read_text(), self.HEAD + self.SHORT)


class Processes(unittest.TestCase):
    def runs(self, pid: int) -> bool:
        """Not if it has ended and nobody has waited for it."""
        try:
            return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False

    def test_a_group_that_takes_too_long_is_ended_with_its_children(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log, marker = Path(folder) / "log", Path(folder) / "child"
            code = processes.run_logged(
                ["sh", "-c", f"sh -c 'echo $$ >{marker}; exec sleep 60' & echo said; wait"], log,
                3.0, patience_s=1.0)
            self.assertIsNone(code)
            self.assertEqual(processes.last_lines(log), "said")
            pid = int(marker.read_text())
            until = time.monotonic() + 10
            while self.runs(pid) and time.monotonic() < until:
                time.sleep(0.02)
            self.assertFalse(self.runs(pid))

    def check_that_a_script_ends_what_it_started(self, preparation: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            marker, log = Path(folder) / "child", Path(folder) / "log"
            code = ("import sys, processes\nfrom pathlib import Path\n"
                    f"processes.end_on_signals()\n{preparation}\n"
                    "processes.run_logged(['sh', '-c', f'echo $$ >{sys.argv[1]}; exec sleep 60'], "
                    "Path(sys.argv[2]), 60)")
            script = subprocess.Popen([sys.executable, "-c", code, str(marker), str(log)],
                                      env={**os.environ, "PYTHONPATH": sys.path[0]})
            until = time.monotonic() + 20
            while not (marker.exists() and marker.read_text()) and time.monotonic() < until:
                time.sleep(0.02)
            script.terminate()
            self.assertEqual(script.wait(timeout=20), 143)
            self.assertFalse(self.runs(int(marker.read_text())))

    def test_a_script_that_is_told_to_end_ends_what_it_started(self) -> None:
        self.check_that_a_script_ends_what_it_started("")

    def test_one_that_is_told_while_it_starts_something_does_too(self) -> None:
        self.check_that_a_script_ends_what_it_started(
            "import time\n"
            "class Slow(processes.subprocess.Popen):\n"
            "    def __init__(self, *args, **options):\n"
            "        super().__init__(*args, **options)\n"
            "        time.sleep(0.5)\n"
            "processes.subprocess.Popen = Slow")


if __name__ == "__main__":
    unittest.main()
