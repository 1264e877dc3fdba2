"""Claims: how they are judged and shown."""
import json

import pytest

from tables import claims


def claim(**changes):
    given = {"id": "a", "statement": "x | y", "source": "a paper", "standing": "stated",
             "ours": "2", "condition": "here", "agrees": True}
    return claims.Claim(**{**given, **changes})


def test_where_a_claim_comes_from_is_one_of_four_words():
    with pytest.raises(ValueError, match="allowed: stated, second-hand, recalled, inferred"):
        claim(standing="guessed")


def test_a_table_of_markdown_has_a_line_a_claim():
    lines = claims.markdown([claim(), claim(id="b", agrees=None), claim(id="c", agrees=False)])
    lines = lines.splitlines()
    assert len(lines) == 5
    assert r"x \| y" in lines[2] and "| yes |" in lines[2]
    assert "| open |" in lines[3] and "| **no** |" in lines[4]


def test_claims_are_kept_beside_the_figures(place):
    claims.save("paper", [claim()])
    kept = json.loads((place / "claims" / "paper.json").read_text())
    assert kept[0]["id"] == "a" and kept[0]["agrees"] is True
    with pytest.raises(ValueError, match="two claims of one id"):
        claims.save("paper", [claim(), claim()])


def test_a_number_that_is_none_can_not_be_judged():
    assert claims.within(2.0, 1, 3) is True
    assert claims.within(4.0, 1, 3) is False
    assert claims.within(float("nan"), 1, 3) is None and claims.within(None, 1, 3) is None
