"""notebooks/lab: which names are one, which stand in a sentence, batch sizes and rates in words,
and the workload that a table calls so."""
from types import SimpleNamespace

import pytest

from bubblesim import Error
from lab import sharing_rows, table
from lab.sharing_scenes import Workloads, refuse_batch


def test_case_and_punctuation_do_not_count_but_numbers_stay_apart():
    assert table.letters_of("ResNet-50, batch 64") == "resnet50batch64"
    assert table.letters_of("Llama-2-7B") == "llama2-7b" != table.letters_of("Llama-27B")


@pytest.mark.parametrize("words, is_there", [
    ("two loops, Net-batch 1 (TensorRT)", True), ("net batch 16 beside net batch 1", True),
    ("net batch 16", False), ("net batch 1.5", False), ("net batch 1-16", False),
    ("net batch 1,000", False), ("resnet batch 1", False), ("tiny-net batch 1", False)])
def test_a_name_stands_where_no_word_and_no_number_goes_on(words, is_there):
    assert table.is_within("net batch 1", words) == is_there


@pytest.mark.parametrize("words", [
    "net, batch size 16", "net (batch 16)", "net batch-size 16", "net batchsize=16", "net bs16",
    "net-bs16", "net BS = 16", "net bsz:16", "net b=16", "net (b = 16)"])
def test_a_batch_size_is_one_however_it_is_written(words):
    assert table.batches_in(words) == [16]
    assert table.job_letters(words) == "netbatch16"
    assert table.letters_of(table.without_batch(words)) == "net"


@pytest.mark.parametrize("words", [
    "EfficientNet-B7", "ViT b16", "jobs=4", "jobs 4", "GB=8", "Llama-7B=8", "b=1.5", "bs16x",
    "obs 3", "a batch of 3, batch 1.5, batch 16x"])
def test_names_of_models_and_other_words_are_no_batch_sizes(words):
    assert table.batches_in(words) == []


def test_batch_sizes_are_read_and_replaced():
    assert table.batches_in("Batch size: 8 beside batch=8, batch 4") == [8, 4]
    assert table.at_batch("net, batch size 16, fp32", 1) == "net, batch 1, fp32"


@pytest.mark.parametrize("words, is_told", [
    ("a batch of 3", True), ("net, Batch 1.5", True), ("net, batch 16", False),
    ("a batched net", False), ("net, batch inference of 3 kinds", False),
    ("continuous batch", False)])
def test_a_batch_size_that_is_not_read_is_told(words, is_told):
    assert table.has_unread_batch(words) == is_told


@pytest.mark.parametrize("words", [
    "net at 30.7/s +-50 %", "net at 30.7 requests/s beside a loop", "at 30.7 req/s",
    "at 30.7 /sec", "at 30.7 requests per second", "at 30.7 RPS"])
def test_a_rate_may_name_its_unit(words):
    assert sharing_rows.rate_in(words) == 30.7


@pytest.mark.parametrize("words", ["two closed loops", "closed loops/streams", "ten corps"])
def test_words_without_a_rate_have_none(words):
    assert sharing_rows.rate_in(words) is None


@pytest.mark.parametrize("words", [
    "at ./s", "at /s", "at 0/s", "at 0.0000001/s", "at 1000000000000/s", "at 1,000/s", "at -5/s",
    "at 30 samples/s", "at 30/s beside 50/s"])
def test_a_rate_that_is_not_read_is_a_fault(words):
    with pytest.raises(Error):
        sharing_rows.rate_in(words)


def test_percentiles_may_be_fractional():
    figure, ms = sharing_rows.slice_metric("p99.9_s")
    assert (figure.percent, ms) == (99.9, 1000)
    assert not any(map(sharing_rows.slice_metric, ("p101_ms", "px_ms", "pnan_ms", "p95", "p_ms")))


# ---- workloads

@pytest.fixture(scope="module")
def shipped():
    return Workloads()


@pytest.mark.parametrize("name, workload, batch", [
    ("BERT, batch 32", "train-bert-base", 0), ("PointNet bs=128", "train-pointnet", 0),
    ("GPT-2 large, batch size 1", "train-gpt2-large", 0),
    ("GPT-2 large, batch 16", "train-gpt2-large", 16),
    *((name, None, 16) for name in ("ResNet-50, batch size 16", "ResNet50 bs16",
                                    "resnet50 (batch 16)", "BERT-base b=16"))])
def test_a_workload_runs_at_the_batch_size_that_is_asked_for(shipped, name, workload, batch):
    found = shipped.find("training", name)
    assert (found.batch, found.refused) == (batch, "")
    assert workload in (None, found.workload.id)


def test_a_name_is_no_prefix_of_another_batch_size(shipped):
    assert shipped.find("training", "PointNet, batch 1280") is None
    assert shipped.find("inference", "ResNet-152 batch 16 (TensorRT)") is None
    assert shipped.find("inference", "two loops, ResNet-152 batch 1 (RT)")


def test_a_model_says_the_batch_size_of_its_workload(shipped):
    decode = shipped.find("inference", "decode").workload
    assert refuse_batch(decode, 8) == ""
    assert refuse_batch(decode, 16) == (
        "infer-llama-decode does not run at batch 16: its steps are those of batch 8")


def named(name, is_resizable=False, batch=0):
    return SimpleNamespace(id="w", names=[name], role="training", batch=batch, model_batches=[],
                           is_resizable=is_resizable)


@pytest.mark.parametrize("name", ["net, batch size 16", "net, batch=16", "net bs16"])
def test_workloads_may_write_their_batch_size_otherwise(name):
    workloads = Workloads([named(name)])
    assert workloads.find("training", "net, batch 16")
    assert workloads.find("training", "two loops, net (batch size 16)")
    assert workloads.find("training", "net, batch 8") is None
    assert workloads.find("inference", "net, batch 16") is None


@pytest.mark.parametrize("workload, name, batch, refused", [
    (named("closed loops, net"), "closed loops, net", 0, ""),
    (named("closed loops, net", True), "closed loops, net, batch 8", 8, ""),
    (named("net", True), "net (batch 8)", 8, ""),
    (named("closed loops, net", True, 8), "closed loops, net bs8", 0, ""),
    (named("closed loops, net"), "closed loops, net, batch 8", 8,
     "w does not run at batch 8: its steps are those of one batch size, which it does not say"),
    (named("closed loops, net"), "closed loops, net, a batch of 8", 0, "no batch size is read"),
    (named("closed loops, net"), "closed loops, net bs8 and bs4", 0, "names two batch sizes"),
    (named("closed loops, net", True), "closed loops, net bs4097", 4097, "from 1 to 4096")])
def test_at_another_batch_size_a_workload_runs_or_is_refused(workload, name, batch, refused):
    found = Workloads([workload]).find("training", name)
    assert found.batch == batch and refused in found.refused
    assert bool(refused) == bool(found.refused)


def test_only_the_last_choice_is_refused():
    choices = [named("closed loops, net"), named("net", True), named("net, batch 64", True, 64)]
    found = Workloads(choices).find("training", "closed loops, net, batch 8")
    assert found.refused == "" and found.workload is choices[2]


def test_two_workloads_of_one_name_are_a_fault():
    with pytest.raises(Error, match="another workload"):
        Workloads([named("net bs8"), named("Net, batch 8")])
