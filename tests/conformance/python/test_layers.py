"""bubblesim.layers: a profile's folder by hand, and its faults."""
import gzip
import json
import shutil

import pytest
from bubblesim.layers import main, points_of

META = ("vllm_version: 0.19.0\ngpu: \"Some GPU\"\nprofiled_at: '2026-01-01'\nmodel: org/model\n"
        "tp_degrees: [1, 2]\nengine_effective:\n  max_num_seqs: 2\nattention_grid:\n"
        "  chunks: 0, 16-32 x2\n  n_decode: 0, 1-2 x2\n  kv: 0, 16-64 x4\n")
DENSE = ["embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn",
         "down_proj", "final_layernorm"]


def dense_csv():
    return "layer,tokens,time_us\n" + "".join(f"{layer},1,1.5\n{layer},8,2\n" for layer in DENSE)


def attention_csv():
    """Times are chunk + 10 x prefix + 100 x sequences + 1000 x cached, in thousandths; with a point
    that meta.yaml does not declare."""
    lines = ["prefill_chunk,kv_prefill,n_decode,kv_decode,time_us", "24,0,0,0,1"]
    for chunk in (0, 16, 32):
        for before in (0, 16, 64) if chunk else (0,):
            for sequences, cached in [(0, 0)] * (chunk > 0) + [
                    (n, kv) for n in ((1,) if chunk else (1, 2)) for kv in (16, 64)]:
                time = (chunk + 10 * before + 100 * sequences + 1000 * cached) / 1000
                lines.append(f"{chunk},{before},{sequences},{cached},{time}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def profile(tmp_path, capsys):
    """put(name, text) changes a file; convert() is (code, document, printed, faults)."""
    class Profile:
        folder = tmp_path / "bf16"

        def put(self, name, text):
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

        def convert(self, folder=None):
            output = tmp_path / "layers.json"
            code = main([str(folder or self.folder), "-o", str(output)])
            printed = capsys.readouterr()
            return (code, json.loads(output.read_text()) if code == 0 else None, printed.out,
                    printed.err)

        def fault(self, folder=None):
            code, _, out, err = self.convert(folder)
            assert code == 2 and not out
            return err
    made = Profile()
    made.put("meta.yaml", META)
    made.put("tp1/dense.csv", dense_csv())
    made.put("tp1/per_sequence.csv", "layer,sequences,time_us\nlm_head,1,10\nsampler,1,5\n")
    made.put("tp1/attention.csv", attention_csv())
    return made


def test_the_declared_grid_is_taken_and_other_points_are_counted(profile):
    code, document, out, err = profile.convert()
    assert code == 0, err
    assert list(document) == ["format", "gpu", "model", "engine", "source", "ranks"]
    assert (document["gpu"], document["engine"]) == ("Some GPU", "vLLM 0.19.0")
    rank, = document["ranks"]  # there is no folder tp2
    assert rank["dense"]["o_proj"] == {"at": [1, 8], "us": [1.5, 2]}
    assert rank["decode"] == {"sequences": [1, 2], "cached": [16, 64],
                              "us": [16.1, 64.1, 16.2, 64.2]}
    assert (rank["prefill"]["chunk"], rank["prefill"]["before"]) == ([16, 32], [0, 16, 64])
    assert [rank["mixed"][axis] for axis in ("chunk", "before", "sequences", "cached")] == [
        [16, 32], [0, 16, 64], [1], [16, 64]]
    assert "1 GPU a layer: 12 layers, 22 attention times\n" in out
    assert "  info attention_points_off_grid: 1 (" in out
    dense = profile.folder / "tp1/dense.csv"
    (profile.folder / "tp1/dense.csv.gz").write_bytes(gzip.compress(dense.read_bytes()))
    dense.unlink()
    assert profile.convert()[1] == document


def test_experts_of_one_gpu_are_those_of_all(profile):
    profile.put("tp1/moe.csv", "tokens,activated_experts,time_us\n1,8,50\n2,8,60\n2,16,90\n")
    assert profile.convert()[1]["ranks"][0]["experts"] == [
        {"tokens": 1, "at": [8], "us": [50]}, {"tokens": 2, "at": [8, 16], "us": [60, 90]}]


def test_a_norm_of_heads_that_was_copied_from_one_gpu_is_taken_at_each_gpus_rows(profile):
    for file in ("per_sequence.csv", "attention.csv"):
        profile.put(f"tp2/{file}", (profile.folder / "tp1" / file).read_text())
    heads = dense_csv() + "qk_norm,1,2\nqk_norm,8,3\n"
    profile.put("tp2/dense.csv", heads)
    norm = {"at": [1, 8], "us": [2, 3]}
    assert profile.convert()[1]["ranks"][1]["dense"]["qk_norm"] == norm  # tp1 has none
    profile.put("tp1/dense.csv", heads)
    _, document, out, _ = profile.convert()
    assert document["ranks"][0]["dense"]["qk_norm"] == norm
    assert document["ranks"][1]["dense"]["qk_norm"] == {"at": [2, 16], "us": [2, 3]}
    assert "  notice layers_copied_from_one_gpu: 1 (" in out
    for hooks, at in (("profiler.hooks.extension", [2, 16]),
                      ("profiler.core.hooks.extension", [1, 8])):
        profile.put("meta.yaml", META + f"worker_extension_cls: {hooks}.Extension\n")
        shutil.rmtree(profile.folder / "tp1", ignore_errors=True)
        assert profile.convert()[1]["ranks"][0]["dense"]["qk_norm"]["at"] == at


def test_the_last_of_two_times_of_a_point_counts(profile):
    profile.put("tp1/dense.csv", dense_csv() + "o_proj,8,3\no_proj,8,3\n")
    _, document, out, _ = profile.convert()
    assert document["ranks"][0]["dense"]["o_proj"]["us"] == [1.5, 3]
    assert "  notice layer_points_measured_twice: 1 (" in out


def test_an_engine_of_one_sequence_has_no_mixed_batches(profile):
    """Off the grid: 1 as above, 2 of two sequences, 2 x 3 x 2 beside prompts."""
    profile.put("meta.yaml", META.replace("max_num_seqs: 2", "max_num_seqs: 1"))
    _, document, out, _ = profile.convert()
    rank = document["ranks"][0]
    assert rank["decode"]["sequences"] == [1] and "mixed" not in rank
    assert "attention_points_off_grid: 15 (" in out


@pytest.mark.parametrize("name, change, fault", [
    ("tp1/attention.csv", lambda text: text.replace("0,0,2,64,64.2\n", ""),
     "a hole: no time at prefill_chunk 0, kv_prefill 0, n_decode 2, kv_decode 64, which meta.yaml"),
    ("tp1/attention.csv", lambda text: text + "-1,0,0,0,1\n", "prefill_chunk: found \"-1\"; expected"),
    ("tp1/dense.csv", lambda text: text + "o_porj,1,2\n", "the layer 'o_porj' is not known; known:"),
    ("tp1/dense.csv", lambda text: text.replace("layernorm", "qk_norm", 2),
     "bf16: tp1: no times of the layer 'layernorm'"),
    ("tp1/dense.csv", lambda text: text + "o_proj,9,2e9\n", "a number above 0, at most 1e9"),
    ("tp1/dense.csv", lambda text: text + "o_proj,0,2\n", "tokens: found \"0\"; expected a whole"),
    ("tp1/dense.csv", lambda text: "layer,time_us\na,1\n", "line 1: no column \"tokens\""),
    ("tp1/per_sequence.csv", lambda text: text.replace("sampler,1,5\n", ""),
     "no times of the layer 'sampler'"),
    *(("meta.yaml", lambda text, axis=axis: text.replace(axis, axis[:axis.index(":")] + ": 0"),
       fault) for axis, fault in [
           ("chunks: 0, 16-32 x2", "meta.yaml: chunks: found '0'; expected a point above 0"),
           ("kv: 0, 16-64 x4", "meta.yaml: kv: found '0'; expected a point above 0"),
           ("n_decode: 0, 1-2 x2", "n_decode: found '0'; expected a point from 1 to 1, max_num")]),
    *(("meta.yaml", lambda text, degrees=degrees: text.replace("[1, 2]", degrees),
       "expected whole numbers from 1 to 1024, each once")
      for degrees in ("[1.5]", "[1, 1]", "[1025]", "[0]")),
    ("meta.yaml", lambda text: text.replace("seqs: 2", "seqs: 2.7"),
     "max_num_seqs: found '2.7'; expected a whole number from 1"),
    ("meta.yaml", lambda text: text.replace("gpu:", "card:"), "meta.yaml: gpu: is missing")])
def test_faults_of_a_profile(profile, name, change, fault):
    text = (profile.folder / name).read_text()
    assert change(text) != text
    profile.put(name, change(text))
    assert fault in profile.fault()


def test_files_that_are_missing_or_not_ours(profile, tmp_path):
    assert "bf16: no meta.yaml" not in profile.convert()[3]
    assert f"{tmp_path}: no meta.yaml; profiles are below it: bf16" in profile.fault(tmp_path)
    assert "absent/meta.yaml: cannot be read" in profile.fault(tmp_path / "absent")
    (profile.folder / "tp1/attention.csv").unlink()
    assert "attention.csv: is missing, and so is '" in profile.fault()
    (tmp_path / "layers.json").write_text("mine")
    profile.put("tp1/attention.csv", attention_csv())
    assert "bubblesim did not make it" in profile.fault()
    assert (tmp_path / "layers.json").read_text() == "mine"


def test_points_are_values_and_ranges_with_a_ratio():
    assert points_of("0, 16-128 x2") == [0, 16, 32, 64, 128]
    assert points_of("2-9 x2") == [2, 4, 8, 9]
    assert points_of("16-54 x1.5") == [16, 24, 36, 54]
    for text in ("raw", "8, 4", "0, 1.5", "1.5-8 x2", "4-2 x2", "2-8 x1", "1-1000000000 x1.0000000001"):
        assert points_of(text) == []
