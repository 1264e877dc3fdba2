"""capture/validate_campaign.sh with a program that is a fake, and, where there is one, with the
real program on the simulator's GPU."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
SCRIPT = str(ROOT / "capture" / "validate_campaign.sh")
CONFIGS = ROOT / "configs" / "measure"
JUDGED = "roberta-dp--bert-online"
OTHER = "vgg19-dp--resnet50-online"
FITTED = "roberta-dp--encoder-offline"


class Campaigns(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.out = Path(self.folder.name) / "out"
        self.log = Path(self.folder.name) / "log"
        self.log.touch()
        self.addCleanup(self.folder.cleanup)

    def run_script(self, *arguments: str, faults: str = "",
                   limit_s: float = 60) -> "subprocess.CompletedProcess[str]":
        command = ["bash", SCRIPT, "--out", str(self.out), "--python", sys.executable, *arguments]
        environment = {**os.environ, "FAKE_LOG": str(self.log), "FAKE_FAULTS": faults}
        return subprocess.run(command, capture_output=True, text=True, timeout=limit_s,
                              check=False, env=environment)

    def run_fake(self, *arguments: str, faults: str = "") -> "subprocess.CompletedProcess[str]":
        return self.run_script("--fake", "--bubblesim", str(HERE / "fake_bubblesim"), *arguments,
                               faults=faults)

    def calls(self, command: str) -> list:
        lines = self.log.read_text().splitlines()
        return [line.split() for line in lines if line.startswith(command + " ")]

    def environment(self) -> dict:
        return json.loads((self.out / "environment.json").read_text())

    def test_the_configs_have_at_least_six_judged_pairs_and_every_policy(self) -> None:
        with (CONFIGS / "roles.csv").open(newline="") as file:
            roles = {row["config"]: row["role"] for row in csv.DictReader(file)}
        configs = [json.loads(path.read_text()) for path in CONFIGS.glob("*.json")]
        self.assertEqual(sorted(roles), sorted(config["name"] for config in configs))
        self.assertGreaterEqual(list(roles.values()).count("judge"), 6)
        for config in configs:
            names = [it if isinstance(it, str) else it["name"] for it in config["policies"]]
            self.assertEqual(names, ["tgs"] if config["name"].endswith("--tgs") else
                             ["exclusive", "time_slicing", "mps", "specinf", "pipefill"],
                             config["name"])

    def test_a_dry_run_lists_what_it_takes_and_touches_nothing(self) -> None:
        done = self.run_script("--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{JUDGED:32} judge  7 arms", done.stdout)
        self.assertIn(f"{FITTED:32} fit ", done.stdout)
        self.assertFalse(self.out.exists())

    def test_help_and_faults_of_the_command_line(self) -> None:
        self.assertIn("--budget S", self.run_script("--help").stdout)
        for wrong in (["--wrong"], ["--budget", "soon"], ["--out"], ["--dry-run", "--only", "x"],
                      ["--dry-run", "--rounds", "0"]):
            done = self.run_script(*wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn("validate_campaign: ", done.stderr)

    def test_a_reduced_campaign_calibrates_simulates_measures_and_judges(self) -> None:
        done = self.run_fake("--reduced")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("device.json", "errors.txt", "errors.csv", "errors.json",
                     f"measured/{JUDGED}/results-1.json", f"simulated/{JUDGED}/results.json"):
            self.assertTrue((self.out / name).is_file(), name)
        device = str(self.out / "device.json")
        for call in self.calls("run") + self.calls("measure"):
            self.assertEqual(call[call.index("--device") + 1], device, "one device on both sides")
        self.assertEqual(self.environment()["not_done"], [])

    def test_a_copied_config_finds_its_traces(self) -> None:
        self.run_fake("--reduced", "--only", FITTED)
        config = json.loads((self.out / "configs" / f"{FITTED}.json").read_text())
        trace = Path(config["fillers"][0]["program"]["trace"])
        self.assertTrue(trace.is_absolute() and trace.is_file())

    def test_rounds_are_interleaved_over_the_pairs(self) -> None:
        self.run_fake("--only", f"{JUDGED},{OTHER}", "--rounds", "2")
        names = [Path(call[1]).stem for call in self.calls("measure")]
        self.assertEqual(names, [JUDGED, OTHER, JUDGED, OTHER])

    def test_what_is_done_is_kept_and_damaged_files_are_made_anew(self) -> None:
        self.run_fake("--only", JUDGED)
        (self.out / "measured" / JUDGED / "results-2.json").write_text("{")
        self.log.write_text("")
        self.run_fake("--only", JUDGED)
        self.assertEqual(len(self.calls("measure")), 1, "the damaged one")
        self.assertEqual(self.calls("run") + self.calls("calibrate"), [])

    def test_a_pair_that_fails_leaves_the_others_and_its_reason(self) -> None:
        done = self.run_fake("--only", f"{JUDGED},{OTHER}", "--rounds", "1",
                             faults=f"fail:{JUDGED}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("told to fail", self.environment()["not_done"][0])
        self.assertTrue((self.out / "measured" / OTHER / "results-1.json").is_file())
        self.assertTrue((self.out / "errors.txt").is_file())

    def test_without_a_calibration_the_configs_devices_are_used(self) -> None:
        done = self.run_fake("--only", JUDGED, faults="calibrate")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no counters", self.environment()["not_done"][0])
        self.assertNotIn("--device", self.calls("measure")[0])

    def test_what_does_not_fit_in_the_time_waits_and_is_named(self) -> None:
        done = self.run_fake("--only", JUDGED, "--budget", "12")
        self.assertEqual(done.returncode, 1)
        self.assertIn("round 1 waits", self.environment()["not_done"][0])
        self.assertEqual(self.calls("measure"), [])

    def test_a_measurement_that_hangs_is_ended_within_the_budget(self) -> None:
        # 3 s are needed and 10 s kept; on a busy machine it may not even begin.
        done = self.run_fake("--reduced", "--only", JUDGED, "--budget", "16", "--arm-start", "0",
                             faults="hang")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(self.environment()["not_done"][0], "took too long|waits")
        self.assertFalse(list(self.out.glob("measured/*/*")))

    def test_roles_of_pairs_that_are_not_there_are_left_out(self) -> None:
        self.run_fake("--only", JUDGED)
        self.assertEqual((self.out / "roles.csv").read_text(),
                         f"config,policy,role\n{JUDGED},*,judge\n")

    def test_the_real_program_measures_on_the_simulators_gpu(self) -> None:
        program = os.environ.get("BUBBLESIM_PROGRAM", "")
        for command in ("measure", "calibrate"):
            known = program and subprocess.run([program, command, "--help"], check=False,
                                               capture_output=True).returncode == 0
            if not known:
                self.skipTest(f"there is no program with the command {command}")
        done = self.run_script("--fake", "--reduced", "--bubblesim", program, "--only", JUDGED,
                               limit_s=240)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        errors = json.loads((self.out / "errors.json").read_text())
        judged = [cell for cell in errors["cells"] if cell["outcome"] == "predicted"]
        self.assertGreaterEqual(len(judged), 5, done.stderr)


if __name__ == "__main__":
    unittest.main()
