"""notebooks/lab: measured training jobs and all-reduces, as their tables have them."""
from types import SimpleNamespace

import pytest

from bubblesim import Error, _core
from lab import all_reduce, training_rows
from lab.table import Table
from lab.training_rows import Machine, Setting, TrainingRow, TrainingTable, short_ends

TIMED = ("role,num_gpus,global_batch,micro_batch,hidden_size,attention_heads,num_layers,"
         "sequence_length,tensor_parallelism,data_parallelism,pipeline_parallelism,"
         "iteration_time_ms{}\n")
PUBLISHED = ("role,source,model,hidden_size,layers,attention_heads,sequence_length,vocabulary,gpu,"
             "num_gpus,tensor_parallelism,pipeline_parallelism,virtual_stages,micro_batch,"
             "global_batch,recompute,tflops_per_gpu,seconds_per_iteration{}\n")
OWN = Machine("", "own", "a100-80gb", {"software": "megatron-lm", "recompute": "full"})
SETTING = Setting("sets", "sets.json", OWN, 7, [], {"a100": "a100-80gb", "h200": "h200"}, [])
RUN = "judge,S,G,1024,24,16,2048,51200,A100,64,8,4,,,512,none,"


@pytest.fixture
def rows(table):
    return lambda text, setting=SETTING: training_rows.training_rows(table(text), setting)


@pytest.fixture
def fault_of(rows):
    def fault(text):
        with pytest.raises(Error) as raised:
            rows(text)
        return str(raised.value)
    return fault


@pytest.mark.parametrize("noise, found", [(0.0, 12), (1e-6, 0)])
def test_rows_that_six_constants_meet_are_no_measurements(rows, noise, found):
    """3 ms an iteration, 0.1 a layer, 2 the stages' layers, 5 them in each micro-batch, 1 a
    micro-batch, 7 a stage; with noise of a millionth a machine may have made them."""
    text = TIMED.format("")
    for at, (runs, stages, layers) in enumerate(
            (runs, stages, layers) for runs in (2, 8) for stages in (1, 2, 4)
            for layers in (12, 24)):
        held = layers / stages
        ms = 3 + 0.1 * layers + (2 + 5 * runs) * held + runs + 7 * stages
        ms *= 1 + noise * (at % 3 - 1)
        text += f"fit,{stages},{2 * runs},2,1024,16,{layers},2048,1,1,{stages},{ms!r}\n"
    assert training_rows.rows_of_a_formula(rows(text)) == found


def test_an_iteration_time_is_in_milliseconds(rows):
    [row] = rows(TIMED.format("") + "fit,8,64,2,1024,16,24,2048,2,2,2,1500\n")
    assert (row.role, row.seconds, row.machine, row.note) == ("fit", 1.5, OWN, "")
    assert row.plan == {"software": "megatron-lm", "recompute": "full", "global_batch": 64,
                        "micro_batch": 2, "tensor": 2, "data": 2, "pipeline": 2, "sequence": 2048}
    assert row.label == "h 1024 L 24 s 2048, 8 GPUs: t 2 p 2 d 2, batch 64 / 2"
    assert not row.chunks_unknown


def test_replicas_of_a_published_run_follow_from_its_gpus(rows):
    one, two = rows(PUBLISHED.format("") + RUN + "140,\n" + RUN.replace(",,,512", ",3,1,512")
                    + ",2\n")
    assert (one.plan["data"], one.plan["micro_batch"], one.chunks_unknown) == (2, 0, True)
    assert (one.tflops_per_gpu, one.label) == (140, "S: G, none")
    assert (two.plan["schedule"], two.chunks_unknown, two.seconds) == ("interleaved", False, 2)


@pytest.mark.parametrize("row, why", [
    (RUN.replace(",64,", ",60,") + "140,", "60 GPUs are no multiple of 32 model-parallel ranks"),
    (RUN + ",", "the row has no measurement (blank or 0)"),
    (RUN + "0,", "the row has no measurement (blank or 0)"),
    (RUN.replace("A100", "B200") + "140,", "no device file stands for B200"),
    (RUN.replace("A100", "H200") + "140,", "the setting sets has no machine of h200; it has "
                                           "a100-80gb")])
def test_what_of_published_runs_cannot_be_predicted_says_why(rows, row, why):
    assert rows(PUBLISHED.format("") + row + "\n")[0].note == why


@pytest.mark.parametrize("row, why", [
    ("16,64,2,1024,16,24,2048,2,2,2,1", "16 GPUs are not the 8 ranks of tensor 2 x context 1 x "
                                        "pipeline 2 x data 2"),
    ("8,64,2,536870912,16,24,2048,2,2,2,1", 'hidden_size: found "536870912"; expected'),
    ("200000000,64,2,1024,16,24,2048,2,2,2,1", 'num_gpus: found "200000000"; expected a whole '
                                               "number from 1 to 65536"),
    ("8,64,2,1024,16,24,2048,4294967298,2,2,1", "tensor_parallelism: found"),
    ("8,64,2,1048576,16,24,2048,2,2,2,1", "3.17e+14 parameters; expected 1e+13 at most"),
    ("8,64,2,1024,16,24,2048,2,2,2,0", "no measurement")])
def test_sizes_that_no_model_or_plan_has_are_stated(rows, row, why):
    assert why in rows(TIMED.format("") + f"fit,{row}\n")[0].note


@pytest.mark.parametrize("text, said", [
    *((TIMED.format("") + f"fit,8,64,2,1024,16,24,2048,2,2,2,{time}\n",
       "iteration_time_ms: found") for time in ("-5", "nan", "soon")),
    (PUBLISHED.format("") + RUN + "140,-1\n", "seconds_per_iteration: found \"-1\"; expected a "
                                              "number above 0"),
    *((PUBLISHED.format("") + RUN.replace("none", word) + "140,\n", "line 2: recompute: found")
      for word in ("selectivex", "full+sequence", "Full")),
    (TIMED.format("") + "often,8,64,2,1024,16,24,2048,2,2,2,1\n", "line 2: role: found \"often\""),
    ("a,b\n1,2\n", "iteration_time_ms or tflops_per_gpu"),
    ("iteration_time_ms\n2\n", "no column \"hidden_size\"")])
def test_faults_name_the_line_and_the_column(fault_of, text, said):
    assert said in fault_of(text)


def test_what_a_row_says_of_recomputation_and_vocabulary_counts(rows):
    row = "fit,8,64,2,1024,16,24,2048,2,2,2,1500,"
    one, two, three = rows(TIMED.format(",recompute,vocabulary") + row + "none,9\n" + row + ",\n"
                           + row + "selective+sequence,\n")
    assert (one.plan["recompute"], one.vocabulary) == ("none", 9)
    assert (two.plan["recompute"], two.vocabulary) == ("full", 7)
    assert (three.plan["recompute"], three.plan["sequence_parallel"]) == ("selective", True)


def test_columns_that_a_form_does_not_read_are_listed(table):
    assert training_rows.unread_columns(table(
        TIMED.format(",Device,expert_parallelism,virtual_stages") + "," * 14 + "\n")) == [
            "expert_parallelism", "virtual_stages"]
    assert training_rows.unread_columns(table(
        PUBLISHED.format(",recomputation") + "," * 18 + "\n")) == ["recomputation"]


def setting_with(**more):
    return Setting(**{**vars(SETTING), **more})


def test_attention_that_the_count_leaves_out_is_stated_where_it_is_large(rows):
    # 24 layers x 1024 x 8192 tokens over 1e9 parameters: 20 %.
    model = SimpleNamespace(sizes=(1024, 24, 16), published=1e9, parameters=1e9)
    text = PUBLISHED.format("") + RUN + "140,\n" + RUN.replace("2048", "8192") + "140,\n" + (
        RUN.replace("2048", "8192") + ",2\n")
    notes = [row.note for row in rows(text, setting_with(models=[model]))]
    assert notes[0] == notes[2] == ""
    assert notes[1].startswith("not sure: attention's products are 20 %")


def test_a_machine_of_the_setting_takes_its_gpus_rows(rows):
    fast = Machine("H100", "fast", "h100", {"software": "other", "sequence_parallel": True})
    with_fast = setting_with(machines=[fast], devices={**SETTING.devices, "h100": "h100"})
    text = PUBLISHED.format("") + "".join(
        RUN.replace("A100", gpu) + "140,\n" for gpu in ("H100", "A100", "", "H200"))
    one, two, three, four = rows(text, with_fast)
    assert one.machine is fast and one.plan["sequence_parallel"] and one.software == "other"
    assert two.machine is OWN is three.machine and "sequence_parallel" not in two.plan
    assert three.note == ""
    assert four.note == "the setting sets has no machine of h200; it has a100-80gb, h100"


@pytest.mark.parametrize("recompute, published, flops", [
    # 96 * 2 * 4 * 3 * 10^2 * (1 + 4/60 + 50/(16*3*10)), and 72 with 12 for 16.
    ("full", None, 230400 * (1 + 4 / 60 + 50 / 480)),
    ("none", None, 172800 * (1 + 4 / 60 + 50 / 360)),
    ("none", 1000, 6 * 1000 * 2 * 4)])
def test_counted_flops_are_narayanans_formula(recompute, published, flops):
    row = TrainingRow("", OWN, {"global_batch": 2, "recompute": recompute}, 50, hidden=10, layers=3,
                      sequence=4, network=SimpleNamespace(published=published))
    assert row.counted_flops() == pytest.approx(flops, rel=1e-12)


def test_layers_that_lack_two_are_one_fewer_at_both_ends():
    assert short_ends(126, 4) == [31, 32, 32, 31]
    assert short_ends(126, 128) == [0, *[1] * 126, 0]
    assert short_ends(128, 4) == short_ends(125, 4) == short_ends(3, 1) == []


class Searched(TrainingTable):
    """Whose iterations take 10 s over the micro-batch and the chunks, and fit up to 4 of them."""

    def seconds_of(self, row, micro_batch, chunks, fits):
        if fits and micro_batch * chunks > 4:
            raise Error("memory")
        return 10 / (micro_batch * max(chunks, 1))


def test_what_a_source_is_silent_on_is_the_fastest_that_fits():
    table = Searched("t.csv", SETTING, [], [])

    def predicted(micro_batch, chunks_unknown):
        found = table.predict(TrainingRow("", OWN, {"micro_batch": micro_batch, "pipeline": 2}, 7,
                                          layers=16, chunks_unknown=chunks_unknown))
        return found.seconds, found.micro_batch, found.chunks
    assert predicted(1, False) == (10, 1, 1), "as it is given"
    assert predicted(1, True) == (2.5, 1, 4)   # of 1, 2, 4, 8 chunks a rank
    assert predicted(0, True) == (2.5, 4, 1)   # the first that is as fast
    assert predicted(0, False) == (0.625, 16, 1)
    assert predicted(8, True) == (1.25, 8, 1), "it did run, of one chunk"


@pytest.mark.parametrize("file, text, name", [
    ("megatron_deepspeed_a100_single_node", "num_gpus\n512\n", "single_node"),
    ("x", "num_gpus\n8\n512\n", "multi_node"), ("x", "num_gpus\n8\n2\n", "single_node"),
    ("x", "tflops_per_gpu\n8\n", "published_training_runs"),
    ("x", "tflops_per_gpu,num_gpus,iteration_time_ms\n9,8,2\n", "single_node")])
def test_a_setting_goes_by_the_tables_name_then_by_columns_and_sizes(tmp_path, file, text, name):
    path = tmp_path / f"{file}.csv"
    path.write_text(text)
    assert training_rows.setting_of(Table(str(path))).name.endswith(name)


def test_published_runs_have_a_machine_for_each_gpu_and_a_model():
    setting = Setting.find("published_training_runs")
    assert (setting.own.cluster, setting.own.device) == ("selene", "a100-80gb")
    assert [(one.gpu, one.cluster, one.device) for one in setting.machines] == [
        ("H100", "h100-roce", "h100")]
    assert setting.devices["h100"] == "h100" and setting.devices["nvidiah200"] == "h200"
    assert setting.models[0].sizes == (16384, 126, 128)


# ---- all-reduces

def test_the_first_of_two_times_counts(tmp_path):
    (tmp_path / "t").write_text("type,size(B),time(us),busbw(GB/s),time(us)\r\n"
                                "float,1024,3.5,0,9\r\nfloat,2048,4,0,9\r\n")
    found = all_reduce.read_table(str(tmp_path / "t"), 4)
    assert (found.sizes, found.measured, found.fitted) == ([1024, 2048], [3500, 4000],
                                                           [True, False])


@pytest.mark.parametrize("text, said", [
    ("", "empty"), ("size,time\n1,2\n", "line 1: expected columns size(B)"),
    ("size(B),time(ns)\n", "found no row"), ("size(B),time(ns)\n1024,5\n2048\n", "line 3"),
    ("size(B),time(ns)\n1024,nan\n", "line 2"), ("size(B),time(ns)\n1024,-5\n", "line 2"),
    ("size(B),time(ns)\n1024,5\n512,5\n", "expected ascending sizes")])
def test_faults_of_all_reduces_name_the_line(tmp_path, text, said):
    (tmp_path / "t").write_text(text)
    with pytest.raises(Error) as raised:
        all_reduce.read_table(str(tmp_path / "t"), 8)
    assert said in str(raised.value)


def test_a_folder_is_read_by_the_gpus_in_its_names(tmp_path):
    folder = tmp_path / all_reduce.FOLDER
    folder.mkdir(parents=True)
    for name in ("AR_GPU16_LUT", "AR_GPU2_LUT", "README"):
        (folder / name).write_text("size(B),time(ns)\n1024,5000\n")
    found = all_reduce.read_folder(str(tmp_path))
    assert [table.gpus for table in found] == [2, 16]
    cluster = _core.Cluster("dgx-a100-80gb")
    assert found[0].simulated(cluster)[0] > 1000
    with pytest.raises(Error, match="found 16 GPUs; expected at most a node of the cluster, 8"):
        found[1].simulated(cluster)
    with pytest.raises(Error, match="cannot be read"):
        all_reduce.read_folder("nowhere")
