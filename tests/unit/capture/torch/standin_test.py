"""The process group that stands in, and the example jobs, on CPU with tiny models."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from paths import ROOT, main_or_skip

TINY = ("--set layers=2 --set hidden=32 --set heads=4 --set vocabulary=50 --sequence 8 --batch 2 "
        "--iterations 2 --warmup 1 --device cpu --standin python")


def run(module: str, text: str) -> "tuple[int, str, str]":
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = __import__(module).main(text.split())
    return code, out.getvalue(), err.getvalue()


def announcements(text: str) -> list:
    from standin.note import parse

    return [keys for keys in map(parse, text.splitlines()) if keys]


class Notes(unittest.TestCase):
    def test_ranks_are_written_as_a_span_a_stride_or_a_list(self) -> None:
        from standin.note import ranks_text

        self.assertEqual(ranks_text(range(8)), "0-7")
        self.assertEqual(ranks_text(range(3, 64, 4)), "3-63/4")
        self.assertEqual(ranks_text([0, 3, 5]), "0,3,5")
        self.assertEqual(ranks_text([7]), "7")
        self.assertEqual(ranks_text([n * n for n in range(400)]), "")  # too long

    def test_a_mesh_dimension_names_its_group_and_no_value_holds_blanks(self) -> None:
        from standin.note import group_word

        self.assertEqual(group_word("mesh_dp", "12"), "dp")
        self.assertEqual(group_word("undefined", "12"), "12")
        self.assertEqual(group_word("my group=x", "12"), "my_group_x")

    def test_each_operation_has_a_marker_kernel_of_its_name(self) -> None:
        from standin.markers import ptx
        from standin.note import OPERATIONS

        for op in OPERATIONS:
            self.assertIn(f".entry bubblesim_standin_{op}()", ptx())


class Group(unittest.TestCase):
    """Rank 3 of 8."""

    @classmethod
    def setUpClass(cls) -> None:
        import standin

        standin.init(3, 8, backend="python", keep_log=True)

    @classmethod
    def tearDownClass(cls) -> None:
        import standin

        standin.close()

    def setUp(self) -> None:
        import standin

        standin.take_log()

    def last(self) -> dict:
        import standin

        return announcements("\n".join(standin.take_log()))[-1]

    def test_a_small_gather_is_filled_as_if_all_ranks_had_sent_the_same(self) -> None:
        import torch
        import torch.distributed as dist

        outputs = [torch.zeros(4) for _ in range(8)]
        dist.all_gather(outputs, torch.arange(4.0))
        self.assertEqual([o.tolist() for o in outputs], [[0.0, 1.0, 2.0, 3.0]] * 8)
        note = self.last()
        self.assertEqual((note["op"], note["bytes"]), ("all_gather", "16"))
        self.assertEqual(note["dtype"], "float32")
        self.assertEqual((note["size"], note["rank"], note["ranks"]), ("8", "3", "0-7"))

    def test_a_large_gather_holds_this_ranks_share_alone(self) -> None:
        import torch
        import torch.distributed as dist

        outputs = [torch.full((65536,), 7.0) for _ in range(8)]  # 2 MiB in all
        dist.all_gather(outputs, torch.ones(65536))
        self.assertEqual([o[0].item() for o in outputs], [7, 7, 7, 1, 7, 7, 7, 7])

    def test_a_scattered_reduction_is_this_ranks_part_of_its_input(self) -> None:
        import torch
        import torch.distributed as dist

        output = torch.zeros(2)
        dist.reduce_scatter(output, list(torch.arange(16.0).chunk(8)))
        self.assertEqual(output.tolist(), [6.0, 7.0])
        self.assertEqual(self.last()["bytes"], "64")  # 16 of 4 bytes: the input

    def test_both_ends_of_a_message_name_the_same_group(self) -> None:
        import torch
        import torch.distributed as dist

        dist.send(torch.ones(3), 4)
        sent = self.last()
        self.assertEqual((sent["group"][-4:], sent["size"], sent["rank"]), (".3>4", "2", "0"))
        dist.recv(torch.ones(3), 4)
        received = self.last()
        self.assertEqual((received["group"][-4:], received["rank"]), (".4>3", "1"))
        self.assertEqual((sent["seq"], received["seq"]), ("0", "0"))  # a number a direction

    def test_a_group_of_every_second_rank_counts_by_itself(self) -> None:
        import torch
        import torch.distributed as dist

        group = dist.new_group([1, 3, 5])
        dist.all_reduce(torch.ones(2), group=group)
        note = self.last()
        self.assertEqual((note["ranks"], note["size"], note["rank"]), ("1-5/2", "3", "1"))
        self.assertEqual(note["seq"], "0")

    def test_ranks_and_words_that_cannot_be_are_refused(self) -> None:
        import standin

        for arguments, words in (((8, 8), "must be 0 to 7"), ((0, 8, "nccl"), "allowed: auto"),
                                 ((0, 8, "auto", "some"), "allowed: shard")):
            with self.assertRaisesRegex(ValueError, words):
                standin.init(*arguments)


class Examples(unittest.TestCase):
    def test_ddp_announces_an_all_reduce_of_all_gradients_every_iteration(self) -> None:
        code, out, _ = run("train", f"--model gpt2-large --plan ddp --world 4 --rank 1 "
                                    f"--micro-batches 2 --announce {TINY}")
        self.assertEqual(code, 0)
        reduced = [n for n in announcements(out) if n["op"] == "all_reduce"]
        self.assertEqual(len(reduced), 3)  # a warm-up and two iterations, a bucket each
        # per block 12 h^2 + 13 h; embeddings (50 + 1024) h; final norm 2 h; h = 32, 4 bytes
        parameters = 2 * (12 * 32 * 32 + 13 * 32) + (50 + 1024) * 32 + 2 * 32
        self.assertEqual({int(n["bytes"]) for n in reduced}, {4 * parameters})

    def test_a_middle_stage_receives_and_sends_in_1f1b_order(self) -> None:
        code, out, _ = run("train", f"--model gpt2-large --set layers=3 {TINY} --plan pp-stage "
                                    "--world 3 --rank 1 --micro-batches 3 --announce "
                                    "--iterations 1 --warmup 0 --set layers=3")
        self.assertEqual(code, 0)
        notes = announcements(out)
        order = [(n["op"], n["group"].split(".")[-1]) for n in notes]
        forward = [("recv", "0>1"), ("send", "1>2")]
        backward = [("recv", "2>1"), ("send", "1>0")]
        self.assertEqual(order, forward * 2 + backward + forward + backward * 2)
        self.assertEqual({n["bytes"] for n in notes}, {str(2 * 8 * 32 * 4)})

    def test_models_have_as_many_parameters_as_published(self) -> None:
        from jobs import build, config

        for model in ("resnet50", "vgg19", "llama-68m", "bert-base"):
            published = json.loads((ROOT / "configs" / "models" / f"{model}.json").read_text())
            figure = published["published_parameters"]
            made = build.build_model(config.load(model))
            count = sum(parameter.numel() for parameter in made.parameters())
            slack = max(0.01 * figure["value"], figure["last_digit"] / 2)
            self.assertLessEqual(abs(count - figure["value"]), slack, model)

    def test_every_family_trains_or_answers(self) -> None:
        sizes = "--set layers=1 --set hidden=32 --set heads=4 --set vocabulary=50"
        quick = "--iterations 1 --warmup 0 --device cpu"
        for module, text in (
            ("infer", f"--model gpt2-large {sizes} --prompt 4 --tokens 3 {quick}"),
            ("infer", f"--model bert-base {sizes} --prompt 4 {quick}"),
            ("infer", f"--model resnet50 --image 32 {quick}"),
            ("train", f"--model resnet50 --image 32 --batch 2 {quick}"),
            ("infer", f"--model llama2-7b {sizes} --set ffn=48 --prompt 4 --tokens 2 {quick}"),
            ("train", f"--model mixtral-8x7b {sizes} --set kv_heads=2 --sequence 8 {quick}"),
            ("small_kernels", "--launches 10 --gap 10 --iterations 2 --device cpu"),
        ):
            code, out, err = run(module, text)
            self.assertEqual(code, 0, f"{module} {text}: {err}")
            self.assertIn("median", out)

    def test_times_of_the_marked_iterations_are_written(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "times.json"
            run("small_kernels", f"--launches 5 --iterations 4 --device cpu --times {file}")
            facts = json.loads(file.read_text())
            self.assertEqual(len(facts["iteration_s"]), 4)
            self.assertEqual(facts["device"], "cpu")

    def test_wrong_models_sizes_and_plans_are_named(self) -> None:
        for text, words in (
            ("--model resnet51", "nearest: resnet5"),
            ("--model gpt2-large --set layers=0", "expected a whole number from 1"),
            ("--model gpt2-large --set biases=2", "no size 'biases'"),
            ("--model resnet50 --plan pp-stage --world 2", "is for transformers"),
            ("--model gpt2-large --plan ddp --world 2 --rank 2", "must be 0 to 1"),
        ):
            code, _, err = run("train", f"{text} --device cpu --standin python")
            self.assertEqual(code, 2, err)
            self.assertIn(words, err)


if __name__ == "__main__":
    main_or_skip("torch.distributed")
