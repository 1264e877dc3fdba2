"""The picture of simulated against measured has a point a judged cell, fitted ones hollow."""
import pandas

from figures import errors


def test_each_predicted_cell_is_a_point(tmp_path):
    cells = pandas.DataFrame(
        [("judge", "mps", "training_slowdown", "predicted", 20.0, 10.0),
         ("judge", "tgs", "training_slowdown", "predicted", 5.0, -3.0),
         ("fit", "mps", "filler_of_own_gpu", "predicted", 60.0, 63.0),
         ("judge", "mps", "filler_of_own_gpu", "stated", None, None)],
        columns=["role", "policy", "metric", "outcome", "measured", "simulated"])
    cells.to_csv(tmp_path / "errors.csv", index=False)
    training, filler, latency = errors.picture(tmp_path / "errors.csv").axes
    points = {line.get_label(): line.get_xydata().tolist() for line in training.lines[1:]}
    assert points["mps"] == [[100 / 1.2, 100 / 1.1]]
    assert points["tgs"] == [[100 / 1.05, 100 / 0.97]]
    assert [line.get_fillstyle() for line in filler.lines[1:]] == ["none"]
    assert [text.get_text() for text in latency.texts] == ["nothing measured"]
