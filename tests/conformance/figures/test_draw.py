"""How figures look: policies are told apart, in colour and in grey, and files are the same twice."""
import os
import subprocess

import pandas
import pytest

from tables import draw


def luminance(colour):
    """Relative luminance of sRGB (WCAG 2.1), without its gamma: enough to order greys."""
    red, green, blue = (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_policy_of_the_program_has_a_look_and_a_name():
    program = os.environ.get("BUBBLESIM_PROGRAM")
    if not program:
        pytest.skip("BUBBLESIM_PROGRAM does not name the program")
    out = subprocess.run([program, "policies"], capture_output=True, text=True, check=True).stdout
    found = {line.split(":")[0].split(" ")[0] for line in out.splitlines()
             if line and not line.startswith(" ") and ":" in line}
    assert found >= {"mps", "specinf"}
    assert set(draw.POLICIES) >= found and set(draw.NAMES) >= found


def test_no_two_policies_share_colour_and_mark():
    looks = [(colour, mark) for colour, mark, _, _ in draw.POLICIES.values()]
    assert len(set(looks)) == len(looks)


def test_policies_of_the_papers_are_told_apart_in_grey():
    for names in (["exclusive", "tgs", "mps", "specinf"], ["exclusive", "pipefill", "ideal"]):
        seen = [(round(luminance(draw.POLICIES[n][0]) / 0.12), *draw.POLICIES[n][1:])
                for n in names]
        assert len(set(seen)) == len(names)


def test_a_figure_is_the_same_bytes_twice(place):
    draw.style()
    frame = pandas.DataFrame({"x": [1, 2], "policy": ["mps", "mps"], "mean": [1.0, 2.0],
                              "half": [0.1, 0.1]})
    kept = []
    for _ in range(2):
        figure, axes = draw.grid(width=draw.COLUMN)
        draw.lines(axes[0, 0], frame, "x", "policy")
        draw.save(figure, "same")
        kept.append(((place / "same.pdf").read_bytes(), (place / "same.png").read_bytes()))
    assert kept[0] == kept[1]


def test_bars_stand_in_groups_in_the_order_given():
    frame = pandas.DataFrame({"job": ["b", "b", "a", "a"], "policy": ["mps", "tgs"] * 2,
                              "mean": [1.0, 2.0, 3.0, 4.0]})
    figure, axes = draw.grid()
    draw.bars(axes[0, 0], frame, "job", "policy")
    assert [t.get_text() for t in axes[0, 0].get_xticklabels()] == ["b", "a"]
    heights = [bar.get_height() for bar in axes[0, 0].patches]
    assert heights == [1.0, 3.0, 2.0, 4.0]  # a policy after the other
