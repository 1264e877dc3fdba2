"""notebooks/lab: the forms of tables of measured sharing, settings, and small scenes by hand."""
import dataclasses
import json
import os
from types import SimpleNamespace

import pytest

from judge import SOURCE

from bubblesim import Error, _core
from lab import sharing_rows
from lab.sharing_rows import Client, Figure, Setting, SharingRow, System
from lab.sharing_scenes import Judging, Stage, Workloads
from lab.table import Table

SETTING = Setting("t.json", "gpu", {"gv100": "v100-32gb", "h100": "h100"}, 0.5, 0, 1, 0, 10, 1, 0.0,
                  [], 98, 98_000_000, 1_000_000, [System("time_slicing", "time_slicing", "", {})])
PAIR = ("inference,training,system,load,GPU,inference_throughput_rel,training_throughput_rel,"
        "avg_ms,p90_ms,p95_ms,p99_ms,solo_avg_ms,extra\n"
        "net,job,Time-Slicing,0.1,H100,0.9,0.5,8,9,10,,5,1\n"
        "net,job,time_slicing,,,0,0.5,8,9,10,11,5,1\n"
        "net,job,time_slicing,50,T4,1,0.5,8,9,10,11,,1\n")
SLICES = "gpu,case,metric,clients,alone,shared\n"
EQUAL = "model,mig_compute_slices,batch,processes,samples_per_s_per_process,sum_relative_to_one\n"


@pytest.fixture
def read(table):
    return lambda text: sharing_rows.read_sharing_rows(table(text), SETTING)


def faults_of(read, text):
    with pytest.raises(Error) as raised:
        read(text)
    return raised.value.faults


def test_faults_are_told_at_once(read):
    # solo_avg_ms and six figures
    assert len(faults_of(read, "role,inference,training,system\nfit,a,b,mps\n")) == 7
    assert "colocation_a100.csv" in faults_of(read, "a,b\n1,2\n")[0].message
    [fault] = faults_of(read, PAIR.replace("0.9,0.5", "n/a,0.5"))
    assert fault.place == "line 2"
    assert "columns 1 and 3" in faults_of(read, "gpu,case,gpu\na,b,c\n")[0].message
    assert len(faults_of(read, PAIR.replace("0.9,", "-1,").replace("0.5,8", "x,8"))) == 3


def test_equal_clients_are_scaled_to_one_of_them(read):
    # 8 samples at 100 a second alone: 80 ms a pass; two at 60 each: 1.2 of one.
    one, two = read(EQUAL + "net,3,8,1,100,1\nnet,3,8,2,60,1.2\n")
    assert (one.system, one.figures[0].measured, one.clients[0].solo_ms) == ("alone", 80, 0)
    assert [client.solo_ms for client in two.clients] == [80, 80]
    assert (two.instance, two.figures[0].measured) == (3, 1.2)


def test_one_process_is_found_by_number_and_name(read):
    rows = read(EQUAL + "resnet50 bs8,3,8,1.0,100,1\n\"ResNet-50, batch size 8\",3.0,8,2,60,1.5\n"
                "resnet50,9,8,2,60,1.2\n")
    assert rows[1].clients[0].solo_ms == 80
    assert "mig_compute_slices: found \"9\"; expected a whole number from 1 to 7" in rows[2].note


def test_trainings_of_a_case_are_fed_at_their_rate_alone(read):
    # 40 a second: 25 ms each, of which 1 ms is an epoch's pause of 98 ms by its 98 iterations.
    *_, row = read("role,case,job,system,per_s,relative_to_alone,mean_ms,p50_ms,p95_ms,p99_ms\n"
                   "fit,c,production,alone,40,1,20,20,20,20\n"
                   "fit,c,opportunistic,alone,4,1,100,100,100,100\n"
                   "judge,c,production,tgs,30,0.75,30,30,30,30\n")
    first, second = row.clients
    assert (first.pause_ms, first.between_ms, first.period_ms) == pytest.approx((98, 1, 24))
    # Busy for less than half of its time.
    assert (second.pace, second.per_s) == (sharing_rows.PERIODIC, 4)
    assert row.figures[0].measured == 0.75


def test_a_case_in_words_has_its_rate_and_its_gpu(read):
    rows = read(SLICES + "GV100,net at 30.7/s +-50 % beside a closed loop of it,p50_ms,2,6.5,13\n"
                "GV100,the same,p99_ms,2,6.5,14\nT4,closed loops,mean_s,5,1.4,8.7\n")
    assert rows[0].device == "v100-32gb"
    assert [client.pace for client in rows[0].clients] == ["even", "loop"]
    assert rows[0].clients[0].per_s == 30.7
    assert rows[1].subject == rows[0].subject and rows[1].figures[0].percent == 99
    assert rows[2].figures[0].measured == 8700 and "T4" in rows[2].note


def test_load_and_device_may_be_columns_and_blank_figures_are_left_out(read, tmp_path):
    # At load 0.1 and 5 ms a request, 20 requests a second; by the setting's 0.5, 100.
    one, two, three = read(PAIR)
    assert (one.clients[0].per_s, one.device, one.system) == (20, "h100", "time_slicing")
    assert one.subject == "net beside job, load 0.1 on H100"
    assert (two.clients[0].per_s, two.device, two.note) == (100, "gpu", "")
    assert "T4" in three.note
    assert (len(one.figures), one.left_out) == (5, ["p99_ms"])
    assert two.left_out == ["inference_throughput_rel"]
    assert sharing_rows.unread_columns(Table(str(tmp_path / "t.csv"))) == ["extra"]


def test_counts_that_are_not_read_are_shown_as_they_are(read):
    slices = read(SLICES + "GV100,net,p95_ms,99,6,13\nGV100,net,p95_ms,,6,13\n"
                  "GV100,net,p95_ms,2.0,6,13\n")
    assert [row.subject for row in slices] == ["GV100, net, 99", "GV100, net", "GV100, net, 2"]
    [row] = read(EQUAL + "net,9,,0.5,100,1\n")
    assert (row.subject, row.system) == ("net, 9g, 0.5", "mps"), "not one process alone"


def test_a_network_under_a_cap_is_as_long_with_all_sms_as_each_row_tells(read):
    slow, flat = read("model,batch,sm_percent,latency_ms,relative_to_all_sms\n"
                      "vgg19,8,50,36,1.5\nvgg19,8,90,25.2,1.05\n")
    assert slow.clients == [Client("inference", "vgg19", 8, epoch=sharing_rows.ENDLESS,
                                   period_ms=24.0)]
    assert slow.sm_percentage == 50 and not slow.note
    assert slow.figures == [Figure("time", metric="relative_to_all_sms", measured=1.5)]
    assert "hosts may limit it" in flat.note


def test_a_batch_of_samples_is_one_pass(read):
    # 16 samples a pass at 800 samples a second: 20 ms.
    rows = read(SLICES + "gv100,\"two loops, net batch 16\",samples_per_s,2,800,720\n"
                "GV100,net at ./s,p95_ms,2,6,13\nGV100,net,p95,2,6,13\n"
                "GV100,net batch 1 beside net batch 4,p95_ms,2,6,13\n")
    assert (rows[0].device, rows[0].clients[0].solo_ms) == ("v100-32gb", 20)
    assert all(row.note for row in rows[1:])


@pytest.mark.parametrize("change, said", [
    ({"devices": 3}, "/devices: expected an object"),
    ({"extra": 1}, "/extra: expected no such key"),
    ({"device": 7}, "/device: expected a text"),
    ({"arrivals": {"least_length": "5x", "requests": 0}}, "/arrivals/requests: expected a whole"),
    ({"systems": [{"name": "a", "policy": "b", "parameter": {}}]}, "/systems/0/parameter: "),
    ({"arrivals": {"least_length": "5s", "requests": True}}, "/arrivals/requests")])
def test_what_a_setting_must_not_say_is_told(tmp_path, change, said):
    path = tmp_path / "setting.json"
    root = {"device": "h100", "arrivals": {"least_length": "5s", "requests": 6.0}, "systems": []}
    path.write_text(json.dumps(root))
    assert Setting.find(str(path)).least_length == 5 * 10 ** 9
    assert Setting.find(str(path)).requests == 6
    path.write_text(json.dumps(root | change))
    with pytest.raises(Error) as raised:
        Setting.find(str(path))
    assert f"{path}: {said}" in str(raised.value)


def test_settings_that_are_not_there_or_no_json_are_told(tmp_path):
    with pytest.raises(Error, match="known: .*time_slices"):
        Setting.find("time_slice")
    for text in ("{", "[]", '{"device": "a", "device": "b"}', "[" * 100_000):
        (tmp_path / "t.json").write_text(text)
        with pytest.raises(Error):
            Setting.find(str(tmp_path / "t.json"))


# ---- scenes

# 6 ms of the host, then 4 ms of kernels that each fill the GPU: two such loops take them in turn.
LOOP = {"names": ["the loop"], "role": "inference", "source": "a test", "precision": "fp32",
        "launch_gap": "0us", "launch_call": "1us",
        "steps": [{"host": "6ms"},
                  {"kernels": [{"name": "a", "count": 40, "time": "100us", "blocks": 216,
                                "threads": 1024, "bound": "compute"}]},
                  {"sync": True}]}


@pytest.fixture
def judged(tmp_path, monkeypatch):
    for part in ("devices", "efficiency", "models"):
        os.symlink(SOURCE / "configs" / part, tmp_path / part)
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads/loop.json").write_text(json.dumps(LOOP))
    monkeypatch.setenv("BUBBLESIM_CONFIGS", str(tmp_path))

    def judge(names, starts=1, batch=0, system="alone", **row):
        clients = [Client("inference", name, batch) for name in names]
        setting = dataclasses.replace(SETTING, starts=starts)
        stage = Stage({"t": setting}, {"gpu": _core.PairMachine("a100-40gb")}, Workloads(),
                      _core.Policies())
        given = SharingRow("t", "judge", system, "gpu", clients=clients,
                           figures=[Figure("sum", measured=1.0)], **row)
        [out] = Judging([given], stage, 1, None).run()
        return SimpleNamespace(**out)
    return judge


def test_what_cannot_run_is_stated(judged):
    assert judged(["gnn"]).note == "no workload of configs/workloads is called gnn"
    assert judged(["the loop"], system="other").note == "the setting has no system other"
    none = judged(["the loop"], instance=5)
    assert none.outcome == "stated"
    assert "no MIG instance of 5 compute slices; it has those of 1, 2, 3, 4, 7" in none.note
    for name, batch in (("the loop, batch size 8", 0), ("the loop", 8)):
        assert judged([name], batch=batch).note.startswith("loop does not run at batch 8")


def test_loops_are_met_wherever_they_stand_to_each_other(judged):
    """Alone a pass takes 10 ms. Loops that begin 0, 2, 4, 6, 8 ms after one another meet on the GPU
    for 4, 2, 0, 0, 2 ms of each pass, which it takes longer:
    (20/14 + 20/12 + 2 + 2 + 20/12) / 5 = 1.75. 5 ms apart they never meet."""
    for starts, expected in ((1, 2), (5, 1.75)):
        found = judged(["the loop"] * 2, starts)
        assert found.outcome == "predicted"
        assert found.simulated == [pytest.approx(expected, abs=0.02)]
