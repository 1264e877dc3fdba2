"""What is made of the records of the probes of sharing; numbers by hand."""

import json
import tempfile
import unittest
from pathlib import Path

import setting  # noqa: F401  (paths)

from first_contact import clients, sharing


def kernel(first: int, step: int, blocks: int) -> dict:
    starts = [first + step * i for i in range(blocks)]
    return {"starts": starts, "end": starts[-1] + step}


class Order(unittest.TestCase):
    def test_a_start_within_a_kernel_leaves_the_blocks_that_start_later(self) -> None:
        # Blocks at 0, 10, ... 90; the fourth starts at 30: six of ten are left.
        self.assertAlmostEqual(sharing.blocks_left([kernel(0, 10, 10)], 35), 0.6)

    def test_a_start_behind_the_last_block_leaves_none_and_between_kernels_is_not_counted(self):
        kernels = [kernel(0, 10, 10), kernel(200, 10, 10)]
        self.assertEqual(sharing.blocks_left(kernels, 95), 0.0)
        self.assertIsNone(sharing.blocks_left(kernels, 150))
        self.assertAlmostEqual(sharing.blocks_left(kernels, 200), 0.9)

    def test_strict_order_leaves_nothing_mixed_order_anything(self) -> None:
        self.assertEqual(sharing.order([0.0, 0.0, 0.01]), "strict")
        self.assertEqual(sharing.order([0.1, 0.5, 0.9]), "mixed")
        self.assertEqual(sharing.order([0.0, 0.1, 0.1]), "between")
        self.assertEqual(sharing.order([]), "not seen")


class Streams(unittest.TestCase):
    def test_pairs_that_cost_have_gaps_longer_by_half(self) -> None:
        gaps = {"alone_ns": [1000, 1000, 1200],
                "beside_ns": [[None, 2000, 1500], [1050, None, 1501], [1700, 1900, None]]}
        self.assertEqual(sharing.pairs_that_cost(gaps), [(0, 1), (1, 2), (2, 1)])


class Waits(unittest.TestCase):
    def test_waits_are_above_the_least_of_launches_alone(self) -> None:
        # The device's clock is 1000 ahead; a launch takes 5 at least.
        newcomer = {"alone": [[0, 9, 1005, 1006], [10, 30, 1017, 1018]],
                    "beside": [[20, 90, 1085, 1090]]}
        self.assertEqual(sharing.waits_ns(newcomer), ([0, 2], [60]))

    def test_a_drift_of_the_clocks_is_no_wait(self) -> None:
        # The device's clock gains 20 us a second. Launches alone at 0 and at 0.5 s, offsets 5 and
        # 10005; at 1 s 20005 are the clocks', so 300 are waited for.
        newcomer = {"alone": [[0, 9, 5, 6], [500_000_000, 0, 500_010_005, 0]],
                    "beside": [[1_000_000_000, 0, 1_000_020_305, 0]]}
        self.assertEqual(sharing.waits_ns(newcomer), ([0, 0], [300]))

    def test_launches_after_the_loads_end_are_not_beside_it(self) -> None:
        # Offset 5; the load runs in 100-200. Launches at 110, 190 (starts after the end) and 300.
        newcomer = {"alone": [[0, 9, 5, 6]],
                    "beside": [[110, 0, 175, 0], [190, 0, 215, 0], [300, 0, 305, 0]]}
        self.assertEqual(sharing.waits_ns(newcomer, [kernel(100, 10, 10)]), ([0], [60, 20]))
        self.assertEqual(sharing.waits_ns(newcomer, []), ([0], []))

    def test_how_long_the_resident_has_been_alone(self):
        # Launches at 100 and 300 of the device's time, which start 40 and 60 later; the first ends
        # at 145.
        newcomer = {"beside": [[0, 0, 140, 145], [0, 0, 360, 365]]}
        self.assertEqual(sharing.after_ns(newcomer, [40, 60]), [300 - 145])


class Slices(unittest.TestCase):
    # Two processes take turns: 20 on the GPU, 2 to switch. The first runs in 0-20, 44-64, 88-108,
    # the second in 22-42, 66-86, 110-130.
    first = {"first": 0, "last": 108, "gaps": [[20, 44], [64, 88]]}
    second = {"first": 22, "last": 130, "gaps": [[42, 66], [86, 110]]}

    def test_turns_and_switches_are_read_off_the_common_clock(self) -> None:
        made = sharing.slices_of([self.first, self.second])
        # Whole turns while both run, from 22 to 108: at 44 and 66.
        self.assertEqual(made["slice_ns"]["n"], 2)
        self.assertEqual(made["slice_ns"]["p50"], 20)
        self.assertEqual(made["switch_ns"]["p50"], 2)
        self.assertAlmostEqual(made["kept"], 40 / 42)
        self.assertEqual(made["overlapping"], 0)

    def test_processes_that_run_at_once_are_said_to_overlap(self) -> None:
        other = {"first": 1, "last": 131, "gaps": [[21, 45], [65, 89], [109, 120]]}
        self.assertGreater(sharing.slices_of([self.first, other])["overlapping"], 0)

    def test_a_process_that_was_never_switched_out_has_one_turn(self) -> None:
        self.assertEqual(sharing.present({"first": 3, "last": 9, "gaps": []}), [(3, 9)])


class Clients(unittest.TestCase):
    def test_runs_of_another_gpu_are_run_again(self) -> None:
        """A pair is compared with its jobs alone, and another machine has another host."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.json"
            path.write_text(json.dumps([{"kind": "alone", "job": "j", "gpu": "GPU-1"}]))
            same, other = (clients.Measured(path, gpu, deadline=0.0, pace=1.0)
                           for gpu in ("GPU-1", "GPU-2"))
        self.assertIsNotNone(same.find(kind="alone", job="j"))
        self.assertIsNone(other.find(kind="alone", job="j"))


if __name__ == "__main__":
    unittest.main()
