"""capture/first_contact.sh on a machine of fakes, each part with what may go wrong there; and, where
there is one, with the real program on the simulator's GPU."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from setting import DRIVER, HERE, ROOT, SCRIPT, Machine

NEEDS_DRIVER = unittest.skipUnless(DRIVER, "needs the fake driver (no sanitizers)")
LETTERS = "abcdefghijklmno"


class Records(Machine):
    def records(self) -> dict:
        document = json.loads((self.out / "results.json").read_text())
        return {record["part"]: record for record in document["parts"]}

    def facts(self) -> dict:
        return json.loads((self.folder / "out.work" / "a" / "facts.json").read_text())

    def status(self, letter: str, *arguments: str, **more: str) -> "tuple[str, str]":
        """Of a part after part a."""
        done = self.with_program("--only", f"a,{letter}", *arguments, **more)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        record = self.records()[letter]
        return record["status"], record["line"]


class CommandLine(Records):
    def test_what_is_wrong_is_said_before_anything_starts(self) -> None:
        for arguments, words in ((["--wrong"], "unknown argument '--wrong'"),
                                 (["--out"], "--out needs a value"),
                                 (["--budget", "soon"], "--budget is 'soon'; expected seconds"),
                                 (["--only", "z"], "no part 'z'")):
            done = subprocess.run(["bash", SCRIPT, *arguments], capture_output=True, text=True,
                                  timeout=30, check=False)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(words, done.stderr)

    def test_without_python_there_is_what_the_shell_can_say(self) -> None:
        done = subprocess.run(["bash", SCRIPT, "--out", str(self.out), "--python", "/no/python"],
                              capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no Python 3.8", done.stderr)
        self.assertTrue((self.out / "machine.txt").is_file())

    def test_a_dry_run_lists_all_parts_and_starts_nothing(self) -> None:
        done = self.run_script("--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()[:len(LETTERS)]
        self.assertEqual([line[0] for line in lines], list(LETTERS))
        self.assertFalse(self.out.exists())

    def test_all_limits_together_are_below_30_minutes(self) -> None:
        line = self.run_script("--dry-run").stdout.splitlines()[len(LETTERS)]
        self.assertLess(float(line.split()[2]), 30 * 60)


@NEEDS_DRIVER
class PartN(Records):
    # The stand-in of the driver injects nothing, so its jobs end alike.
    def test_jobs_that_end_alike_are_ok(self) -> None:
        self.assertEqual(self.status("n"), ("ok", "exit codes stay"))


@NEEDS_DRIVER
class PartO(Records):
    # The stand-in of the driver captures nothing.
    def test_a_memory_limit_that_holds_and_graphs_that_fail_are_told_apart(self) -> None:
        status, line = self.status("o")
        self.assertEqual(status, "partial")
        self.assertIn("1024 MiB of an MPS client hold", line)
        self.assertIn("graph: ", line)

    def test_a_client_without_mps_or_without_its_limit_is_said(self) -> None:
        self.assertIn("no MPS: nvidia-cuda-mps-control -d ended",
                      self.status("o", FAKE_MPS="refused")[1])
        status, line = self.status("o", FAKE_LIBCUDA="cuMemAlloc_v2=2")
        self.assertEqual(status, "failed")
        self.assertIn("below: CUDA says 2, expected 0", line)


@NEEDS_DRIVER
class PartA(Records):
    def test_a_machine_with_everything_is_described(self) -> None:
        status, line = self.status("a", PYTHONPATH=str(HERE / "fake_torch"))
        facts = self.facts()
        self.assertEqual(facts["driver"]["devices"][0]["name"], "NVIDIA H100 of a test")
        self.assertEqual(facts["driver"]["devices"][0]["sms"], 4)
        self.assertEqual(facts["context"]["kernel_ns"], 10)  # a nanosecond a loop
        self.assertEqual(facts["mps"]["client_at_50_percent"]["sms_seen"], 2)
        self.assertEqual(facts["torch"]["version"], "2.9.0")
        self.assertIn("NVIDIA H100 of a test, 4 SMs, CUDA 13.0", line)
        self.assertEqual(status, "partial")  # there is no CUPTI
        self.assertIn("CUPTI: ", line)

    def test_each_thing_that_is_missing_is_named_with_the_drivers_words(self) -> None:
        for fault, words in (
            ({"FAKE_LIBCUDA": "cuInit=100"}, "driver: cuInit: CUDA_ERROR_NO_DEVICE (100)"),
            ({"FAKE_LIBCUDA": "cuDevicePrimaryCtxRetain=46"},
             "context: cuDevicePrimaryCtxRetain: CUDA_ERROR_DEVICE_UNAVAILABLE (46)"),
            ({"FAKE_LIBCUDA": "cuModuleLoadDataEx=222"},
             "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: ptxas: this driver is too old (222)"),
            ({"FAKE_MPS": "refused"}, "MPS: nvidia-cuda-mps-control -d ended with 1: Cannot start "
                                      "the MPS daemon: permission denied"),
            ({"FIRST_CONTACT_LIBCUDA": "/no/libcuda.so"}, "driver: dlopen: /no/libcuda.so"),
            ({}, "no PyTorch in any Python"),
        ):
            _status, line = self.status("a", **fault)
            self.assertIn(words, line)

    def test_another_driver_is_told_by_its_version(self) -> None:
        _status, line = self.status("a", FAKE_DRIVER_VERSION="12040")
        self.assertIn("CUDA 12.4", line)

    def test_a_daemon_that_never_answers_is_given_up(self) -> None:
        _status, line = self.status("a", FAKE_MPS="deaf")
        self.assertIn("MPS: nvidia-cuda-mps-control does not answer", line)

    def test_without_the_mps_program_the_rest_goes_on(self) -> None:
        (self.programs / "nvidia-cuda-mps-control").unlink()
        _status, line = self.status("a")
        self.assertIn("MPS: no nvidia-cuda-mps-control in PATH", line)

    @unittest.skipUnless("BUBBLESIM_FAKE_CUPTI" in os.environ, "needs the fake CUPTI")
    def test_a_cupti_that_is_not_allowed_is_named_by_its_own_word(self) -> None:
        cupti = os.environ["BUBBLESIM_FAKE_CUPTI"]
        for fault, code in (("fail_kind=10,fail_with=35", 35), ("subscribe=39", 39), ("", 0)):
            # The fake CUPTI asks the process for its own fake driver.
            driver = os.environ["BUBBLESIM_FAKE_CUDA"]
            self.status("a", BUBBLESIM_CAPTURE_CUPTI=cupti, FAKE_CUPTI=fault,
                        FIRST_CONTACT_LIBCUDA=driver, LD_PRELOAD=driver)
            found = self.facts()["cupti"]
            self.assertEqual(found["tried"][0]["path"], cupti)
            self.assertEqual(found["tried"][0].get("enable_code"), code, found)
            self.assertEqual(found["path"], "" if code else cupti)


@NEEDS_DRIVER
class PartB(Records):
    def test_a_job_without_compiler_and_torch_is_recorded_and_replayed(self) -> None:
        status, line = self.status("b")
        self.assertEqual(status, "partial")
        self.assertIn("driver-job: 1200 operations, replayed within 0.40 %", line)
        self.assertIn("no PyTorch: not tried in it", line)
        self.assertIn("small-job: not built: no nvcc", line)

    def test_a_recording_without_launches_and_what_was_lost_are_told(self) -> None:
        counters = {"join_device_ops_without_launch": {"severity": "notice", "count": 1200},
                    "capture_records_discarded": {"severity": "loss", "count": 9}}
        status, line = self.status("b", FAKE_COUNTERS=json.dumps(counters))
        self.assertEqual(status, "failed")
        self.assertIn("driver-job: 1200 operations have no launch call", line)
        self.assertIn("(lost: 9 capture_records_discarded)", line)

    def test_no_permission_to_profile_is_said_in_the_recorders_words(self) -> None:
        status, line = self.status("b", FAKE_FAULTS="capture")
        self.assertEqual(status, "failed")
        self.assertIn("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)", line)

    def test_a_compiler_that_fails_leaves_its_log_and_the_rest_goes_on(self) -> None:
        (self.programs / "nvcc").write_text("#!/bin/sh\necho 'no host compiler'\nexit 1\n")
        (self.programs / "nvcc").chmod(0o755)
        status, line = self.status("b")
        self.assertEqual(status, "partial")
        self.assertIn("small-job: not built: no host compiler", line)

    def test_a_kernel_that_fails_ends_its_job_and_is_named(self) -> None:
        self.status("a")
        status, line = self.status("b", FAKE_LIBCUDA="cuLaunchKernel=719")
        self.assertEqual(status, "failed")
        self.assertIn("driver job: cuLaunchKernel: CUDA_ERROR_OF_A_TEST (719)", line)


@NEEDS_DRIVER
class PartsOfTheProgram(Records):
    def test_stand_ins_constants_and_pairs_are_done(self) -> None:
        done = self.with_program("--only", "a,c,d,f,g")
        records = self.records()
        for letter in "cdfg":
            self.assertEqual(records[letter]["status"], "ok", (letter, records[letter], done.stderr))
        work = self.folder / "out.work"
        self.assertTrue((work / "f" / "device.json").is_file())
        self.assertTrue((work / "g" / "errors.txt").is_file())
        # d ran before f, g behind it.
        self.assertIn("20 rounds measured", records["g"]["line"])
        self.assertEqual(json.loads((work / "g" / "environment.json").read_text())["device"],
                         str(work / "f" / "device.json"))

    def test_without_mps_policies_that_need_it_are_left_out_and_named(self) -> None:
        status, line = self.status("d", FAKE_MPS="refused")
        self.assertEqual(status, "partial")
        self.assertIn("left out for want of MPS: mps", line)
        made = self.folder / "out.work" / "d" / "configs" / "roberta-dp--bert-online.json"
        self.assertEqual(json.loads(made.read_text())["policies"],
                         ["exclusive", "time_slicing", "stream_priority"])

    def test_a_measurement_that_fails_leaves_the_drivers_error(self) -> None:
        for letter in "cd":
            status, line = self.status(letter, FAKE_FAULTS="measure")
            self.assertEqual(status, "failed")
            self.assertIn("CUDA_ERROR_DEVICE_UNAVAILABLE (46)", line)

    def test_a_calibration_that_fails_leaves_its_last_lines(self) -> None:
        status, line = self.status("f", FAKE_FAULTS="calibrate")
        self.assertEqual((status, line), ("failed", "no counters"))

    def test_constants_that_could_not_be_measured_are_named(self) -> None:
        status, line = self.status("f", FAKE_FAULTS="unsteady")
        self.assertEqual(status, "partial")
        self.assertIn("not measured, see log.txt: launch_latency, stream_gap", line)

    def test_captures_without_torch_are_blocked_and_with_a_broken_one_failed(self) -> None:
        self.assertEqual(self.status("h")[0], "blocked")
        status, line = self.status("h", PYTHONPATH=str(HERE / "fake_torch"))
        self.assertEqual(status, "failed")
        self.assertIn("0 of 12 done", line)

    def test_fill_runs_two_programs_and_compares_with_training_alone(self) -> None:
        status, line = self.status("j")
        self.assertEqual(status, "partial")
        self.assertIn("tgs: ", line)
        self.assertIn("filler 5 kernels, 2 held", line)
        self.assertIn("no PyTorch: with driver_job.py in its place", line)
        made = json.loads((self.folder / "out.work" / "j" / "mps.json").read_text())
        self.assertGreater(made["filler_batches"], 0)

    def test_jobs_that_sleep_do_not_slow_each_other(self) -> None:
        status, line = self.status("k", "--fake")
        self.assertEqual(status, "ok", line)
        self.assertIn("sleep:5 of 1 to 4 clients: 1.00, ", line)
        runs = json.loads((self.folder / "out.work" / "k" / "runs.json").read_text())
        count = {kind: sum(run["kind"] == kind for run in runs)
                 for kind in ("equal", "alone", "pair")}
        self.assertEqual(count, {"equal": 8, "alone": 6, "pair": 4})
        pair = next(run for run in runs if run["kind"] == "pair" and run["service"] == "sleep:7")
        trained, served = pair["clients"]
        self.assertGreaterEqual(trained["latency_ms"]["min"], 20)
        self.assertGreaterEqual(served["latency_ms"]["min"], 7)
        self.assertAlmostEqual(served["arrivals_per_s"] * 0.007, 0.2, delta=0.04)


@NEEDS_DRIVER
class PartE(Records):
    def test_every_probe_leaves_its_figures(self) -> None:
        status, line = self.status("e")
        self.assertEqual(status, "ok", line)
        folder = self.folder / "out.work" / "e"
        caps = json.loads((folder / "caps.json").read_text())
        half = next(share for share in caps["shares"] if share["percentage"] == 50)
        self.assertEqual(half["sms_seen"], 2)
        # 80 blocks on 2 SMs of 4: 20 waves in place of 10.
        self.assertAlmostEqual(half["compute_ratio"], 2.0, places=3)
        slices = json.loads((folder / "slices-2.json").read_text())
        self.assertEqual(slices["slice_ns"]["p50"], 2_000_000)
        self.assertEqual(slices["processes"], 2)
        order = json.loads((folder / "order-10.json").read_text())
        self.assertEqual(order["depth"], 10)
        self.assertGreater(order["wait_ns"]["n"], 100)
        self.assertFalse(list(folder.glob("order-*/load-0")))  # records are large

    def test_without_mps_the_others_are_done_and_it_is_said(self) -> None:
        status, line = self.status("e", FAKE_MPS="refused")
        self.assertEqual(status, "partial")
        self.assertIn("slices-2: ", line)
        self.assertIn("no MPS: nvidia-cuda-mps-control -d ended with 1", line)

    def test_a_driver_that_breaks_leaves_call_and_log(self) -> None:
        status, line = self.status("e", FAKE_LIBCUDA="cuCtxSynchronize=719", FAKE_MPS="refused")
        self.assertEqual(status, "partial")
        self.assertIn("newcomer-4: newcomer-1: cuCtxSynchronize: CUDA_ERROR_OF_A_TEST (719)", line)
        log = self.folder / "out.work" / "e" / "newcomer-4" / "newcomer-1" / "log.txt"
        self.assertIn("cuCtxSynchronize", log.read_text())


@NEEDS_DRIVER
class Resuming(Records):
    def test_what_is_done_is_skipped_and_what_failed_is_tried_again(self) -> None:
        self.with_program("--only", "a,c,f", FAKE_FAULTS="calibrate")
        first = self.records()
        again = self.with_program("--only", "a,c,f")
        self.assertIn("c: done before", again.stdout)
        self.assertEqual(self.records()["c"], first["c"])
        self.assertEqual(self.records()["f"]["status"], "ok")

    def test_a_later_call_on_a_fresh_machine_goes_on_from_the_results_alone(self) -> None:
        self.with_program("--only", "a,c")
        carried = self.folder / "carried"
        self.out.rename(carried)
        shutil.rmtree(self.folder / "out.work")
        again = self.with_program("--only", "a,c", "--from", str(carried))
        self.assertIn("files of an earlier call", again.stdout)
        self.assertIn("c: done before", again.stdout)

    def test_again_does_a_part_anew(self) -> None:
        self.with_program("--only", "a,c")
        fits = self.folder / "out.work" / "fits"
        fits.write_text("of another clock\n")
        again = self.with_program("--only", "a,c", "--again", "c")
        self.assertNotIn("c: done before", again.stdout)
        self.assertFalse(fits.exists())  # else nothing would be measured anew
        aside = list((self.folder / "out.work" / "before").glob("*/fits"))
        self.assertEqual(aside[0].read_text(), "of another clock\n")

    def test_parts_for_which_no_time_is_left_wait(self) -> None:
        self.with_program("--budget", "9")
        records = self.records()
        self.assertEqual({record["status"] for record in records.values()}, {"waits"})
        self.assertEqual("".join(records), LETTERS)

    def test_a_call_that_is_ended_leaves_whole_results(self) -> None:
        command = ["bash", SCRIPT, "--out", str(self.out), "--python", sys.executable, "--only",
                   "a,b", "--bubblesim", str(HERE / "fake_bubblesim")]
        with (self.folder / "log").open("w") as log:
            script = subprocess.Popen(command, stdout=log, stderr=log,
                                      env=self.environment(FAKE_FAULTS="hang-capture"))
            until = time.monotonic() + 60
            while not (self.folder / "out.work" / "b" / "work").exists() and \
                    time.monotonic() < until:
                time.sleep(0.05)
            script.send_signal(signal.SIGTERM)
            self.assertEqual(script.wait(timeout=30), 143)
        self.assertEqual(list(self.records()), ["a"])
        self.assertTrue((self.out / "state.tar.gz").is_file())

    def test_without_the_program_the_parts_that_need_none_are_done(self) -> None:
        self.run_script("--bubblesim", "/no/program", "--only", "a,b,e", FAKE_MPS="refused")
        records = self.records()
        self.assertEqual(records["b"]["status"], "blocked")
        self.assertEqual(records["e"]["status"], "partial")

    def test_results_are_few_files_in_one_folder(self) -> None:
        self.with_program("--only", "a,b,c")
        names = sorted(path.name for path in self.out.rglob("*"))
        self.assertEqual(names, ["results.json", "state.tar.gz", "traces-1.tar", "verdicts.txt"])


@unittest.skipUnless("BUBBLESIM_PROGRAM" in os.environ and DRIVER, "needs the program")
class WithTheRealProgram(Records):
    """Worker processes, gate, clock and recorder are real; the GPU is the simulator's."""

    def test_the_cheap_parts_are_done_on_fakes(self) -> None:
        done = self.run_script(
            "--fake", "--bubblesim", os.environ["BUBBLESIM_PROGRAM"], "--only", "a,b,i,o",
            BUBBLESIM_FAKE_CUDA=os.environ["BUBBLESIM_FAKE_CUDA"],
            BUBBLESIM_CAPTURE_CUPTI=os.environ["BUBBLESIM_FAKE_CUPTI"], limit_s=240)
        for letter in "bio":
            self.assertEqual(self.records()[letter]["status"], "ok", done.stdout + done.stderr)
        self.assertIn("fake-capture: ", self.records()["b"]["line"])
        self.assertEqual(self.records()["o"]["line"], "collectives of graphs have their bytes")

    def test_no_permission_to_profile_is_the_recorders_own_sentence(self) -> None:
        self.run_script(
            "--fake", "--bubblesim", os.environ["BUBBLESIM_PROGRAM"], "--only", "a,b",
            BUBBLESIM_FAKE_CUDA=os.environ["BUBBLESIM_FAKE_CUDA"], FAKE_CUPTI="subscribe=35",
            BUBBLESIM_CAPTURE_CUPTI=os.environ["BUBBLESIM_FAKE_CUPTI"])
        self.assertIn("does not allow this user to profile", self.records()["b"]["line"])

    def test_no_cupti_is_the_recorders_own_sentence(self) -> None:
        self.run_script(
            "--fake", "--bubblesim", os.environ["BUBBLESIM_PROGRAM"], "--only", "a,b",
            BUBBLESIM_FAKE_CUDA=os.environ["BUBBLESIM_FAKE_CUDA"],
            BUBBLESIM_CAPTURE_CUPTI="/no/libcupti.so")
        self.assertIn("/no/libcupti.so", self.records()["b"]["line"])


class Kernels(unittest.TestCase):
    @unittest.skipUnless(shutil.which("ptxas"), "needs ptxas")
    def test_the_probes_kernels_assemble_for_cards_from_turing_on(self) -> None:
        for target in ("sm_75", "sm_90"):
            subprocess.run(["ptxas", f"-arch={target}", "-o", os.devnull,
                            str(ROOT / "capture" / "first_contact" / "probe_kernels.ptx")],
                           check=True, timeout=60)


if __name__ == "__main__":
    unittest.main()
