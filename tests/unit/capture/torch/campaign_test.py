"""capture/campaign.sh with jobs and a program that are fakes: orchestration, tables, limits."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from paths import HERE, ROOT, main_or_skip

from campaign.parts import all_parts
from campaign.statistics import median, median_interval, ratio_interval

SCRIPT = str(ROOT / "capture" / "campaign.sh")


class Campaigns(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.out = Path(self.folder.name) / "campaign"
        self.addCleanup(self.folder.cleanup)

    def run_script(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = ["bash", SCRIPT, "--out", str(self.out), "--python", sys.executable, *arguments]
        plain = {name: value for name, value in os.environ.items() if name != "BUBBLESIM_FAKE_CUDA"}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                              env=plain)

    def run_fake(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.run_script("--fake", "--bubblesim", str(HERE / "fake_bubblesim"), *arguments)

    def parts(self) -> dict:
        document = json.loads((self.out / "results.json").read_text())
        return {part["name"]: part for part in document["parts"]}

    def test_a_campaign_leaves_traces_figures_and_the_reason_of_each_failure(self) -> None:
        done = self.run_fake()
        self.assertEqual(done.returncode, 1, done.stderr)
        parts = self.parts()
        self.assertEqual(parts["fake-capture"]["status"], "done")
        self.assertEqual(parts["fake-capture"]["trace_bytes"], 600_000)
        self.assertEqual(parts["fake-capture"]["replay_mean_error"], 0.004)
        self.assertTrue((self.out / "traces" / "fake-capture.btr").is_file())
        self.assertIn("told to fail", parts["fake-failure"]["reason"])
        table = (self.out / "results.md").read_text()
        self.assertIn("| `fake-capture` |", table)
        self.assertIn("| `fake-overhead` | idle | 20 |", table)
        self.assertIn("- `fake-failure`: failed", table)

    def with_counters(self, severity: str, **counts: int) -> dict:
        counters = json.dumps({name: {"severity": severity, "count": count}
                               for name, count in counts.items()})
        with unittest.mock.patch.dict(os.environ, {"FAKE_COUNTERS": counters}):
            self.run_fake("--only", "fake-capture")
        return self.parts()["fake-capture"]

    def test_a_recording_without_launches_is_no_good_one(self) -> None:
        part = self.with_counters("notice", join_device_ops_without_launch=1300,
                                  program_ops_without_launch=1200)  # of 1200
        self.assertEqual(part["status"], "failed")
        self.assertIn("1300 operations have no launch call", part["reason"])
        self.assertNotIn("replay_mean_error", part)
        self.assertTrue((self.out / "traces" / "fake-capture.btr").is_file())
        self.assertIn("- `fake-capture`: failed: 1300", (self.out / "results.md").read_text())

    def test_a_few_operations_without_launch_are_of_the_recordings_beginning(self) -> None:
        part = self.with_counters("notice", join_device_ops_without_launch=12)  # 1 % of 1200
        self.assertEqual(part["status"], "done")

    def test_records_that_were_lost_are_told(self) -> None:
        part = self.with_counters("loss", capture_records_discarded=7549)
        self.assertEqual(part["status"], "done")
        self.assertEqual(part["lost"], "7549 capture_records_discarded")
        self.assertIn("`fake-capture` lost 7549", (self.out / "results.md").read_text())

    def test_a_recorder_that_listens_late_is_asked_again(self) -> None:
        with unittest.mock.patch.dict(os.environ, {"FAKE_LATE": self.folder.name + "/late"}):
            done = self.run_fake("--only", "fake-capture")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(Path(self.folder.name, "late").exists())

    def test_rounds_of_the_arms_are_interleaved_and_compared_with_the_first(self) -> None:
        self.run_fake("--only", "fake-overhead")
        arms = self.parts()["fake-overhead"]["arms"]
        self.assertEqual(list(arms),  # sorted in the file
                         ["absent", "capturing", "idle", "light", "without-memory"])
        for arm in arms.values():
            self.assertEqual(arm["iterations"], 20)  # 2 rounds of 10
            self.assertGreater(arm["median_s"], 0.002)
        self.assertEqual(arms["absent"]["ratio"], 1.0)

    def test_finished_parts_are_kept_and_others_run_again(self) -> None:
        self.run_fake("--only", "fake-capture")
        first = (self.out / "parts" / "fake-capture.json").read_text()
        again = self.run_fake("--only", "fake-capture,fake-failure")
        self.assertEqual(again.returncode, 1)
        self.assertEqual((self.out / "parts" / "fake-capture.json").read_text(), first)

    def test_a_recording_without_launches_that_was_called_done_is_made_again(self) -> None:
        self.run_fake("--only", "fake-capture")
        kept = self.out / "parts" / "fake-capture.json"
        record = json.loads(kept.read_text())
        record["counters"] = {"join_device_ops_without_launch": {"severity": "notice",
                                                                 "count": 1200}}
        kept.write_text(json.dumps(record))
        self.run_fake("--only", "fake-capture")
        self.assertEqual(json.loads(kept.read_text())["counters"], {})

    def test_parts_that_do_not_fit_in_the_time_are_skipped_and_named(self) -> None:
        done = self.run_fake("--budget", "0")
        self.assertEqual(done.returncode, 1)
        for part in self.parts().values():
            self.assertEqual(part["status"], "skipped")
            self.assertEqual(part["reason"], "no time left in this run")

    def test_a_trace_beyond_the_size_of_all_is_removed_and_its_figures_stay(self) -> None:
        done = self.run_fake("--max-mb", "0.5", "--only", "fake-capture")
        self.assertEqual(done.returncode, 0, done.stderr)
        part = self.parts()["fake-capture"]
        self.assertIsNone(part["trace"])
        self.assertEqual(part["trace_bytes"], 600_000)
        self.assertEqual(list((self.out / "traces").iterdir()), [])

    def test_a_dry_run_lists_parts_and_starts_nothing(self) -> None:
        done = self.run_script("--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("train-llama2-7b-fsdp", done.stdout)
        self.assertFalse(self.out.exists())

    def test_what_is_wrong_is_said_before_anything_starts(self) -> None:
        for arguments, words in (
            (["--bogus"], "unknown argument '--bogus'"),
            (["--out"], "--out needs a value"),
            (["--budget", "soon"], "--budget is 'soon'; expected seconds"),
            (["--fake", "--python", "no-such-python"], "no Python: 'no-such-python'"),
            (["--fake", "--bubblesim", "no-such-file"], "no program: 'no-such-file'"),
        ):
            done = self.run_script(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)
        self.assertIn("no part 'nonsense'", self.run_fake("--only", "nonsense").stderr)

    def test_every_model_of_the_project_is_captured_once_at_least(self) -> None:
        models = {path.stem for path in (ROOT / "configs" / "models").glob("*.json")}
        captured = {part.arguments[part.arguments.index("--model") + 1]
                    for part in all_parts(quick=False) if "--model" in part.arguments}
        self.assertEqual(models - captured, set())
        names = [part.name for part in all_parts(quick=False)]
        self.assertEqual(len(names), len(set(names)))


@unittest.skipUnless("BUBBLESIM_PROGRAM" in os.environ, "needs the program and the recorder")
class CampaignWithTheRealRecorder(unittest.TestCase):
    """The program and the recorder are real; the job's driver and CUPTI are stand-ins."""

    def python(self, folder: Path) -> str:
        runtime = os.environ.get("BUBBLESIM_ASAN_RUNTIME")
        if not runtime:
            return sys.executable
        script = folder / "python"
        script.write_text(f"#!/bin/sh\nASAN_OPTIONS=detect_leaks=0 LD_PRELOAD={runtime} "
                          f'exec {sys.executable} "$@"\n')
        script.chmod(0o755)
        return str(script)

    def test_jobs_are_recorded_replayed_and_compared(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            done = subprocess.run(
                ["bash", SCRIPT, "--fake", "--out", str(folder / "out"),
                 "--bubblesim", os.environ["BUBBLESIM_PROGRAM"], "--python", self.python(folder),
                 "--only", "fake-capture,fake-overhead"],
                capture_output=True, text=True, timeout=240, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            results = json.loads((folder / "out" / "results.json").read_text())
            parts = {part["name"]: part for part in results["parts"]}
            # Four iterations of 100 kernels: none of them is marked, so none ends the recording.
            self.assertEqual(parts["fake-capture"]["device_ops"], 400)
            self.assertLess(parts["fake-capture"]["replay_mean_error"], 1e-6)
            self.assertGreater(parts["fake-overhead"]["trace_bytes"], 0)



class Statistics(unittest.TestCase):
    def test_medians_of_few_values_have_their_extremes_as_interval(self) -> None:
        self.assertEqual(median([3.0, 1.0, 2.0]), 2.0)
        self.assertEqual(median([4.0, 1.0, 2.0, 3.0]), 2.5)
        self.assertEqual(median_interval([3.0, 1.0, 2.0]), (1.0, 3.0))

    def test_an_interval_of_a_hundred_values_is_ten_ranks_to_each_side(self) -> None:
        # 0.98 * sqrt(100) = 9.8: ranks floor(40.2) and ceil(59.8)
        self.assertEqual(median_interval([float(i) for i in range(100)]), (40.0, 60.0))

    def test_a_ratio_of_constant_times_is_exact_and_the_same_twice(self) -> None:
        rounds = [([1.0] * 5, [1.02] * 5)]
        self.assertEqual(ratio_interval(rounds), (1.02, 1.02))
        noisy = [([1.0, 1.1, 0.9], [1.0, 1.2, 1.1])]
        self.assertEqual(ratio_interval(noisy), ratio_interval(noisy))


if __name__ == "__main__":
    main_or_skip("json")
