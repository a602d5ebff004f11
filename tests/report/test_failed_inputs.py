"""An input that failed is named by the verdicts."""

import numpy as np
import pytest

import pogp
from pogp import encoding
from pogp.encoding import Encoder
from pogp.report.journal import Journal
from pogp.report.summary import Summary
from pogp.report.verdicts import verdicts


def failing(kind):
    """The verdicts on a stream whose first input fails at sample 1,400 of 2,000."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 10, (2, 2000))
    y = 2 * a + 3 * np.sin(b) + 0.1 * rng.normal(size=2000)
    if kind == "noise":
        y[1400:] += 3 * rng.normal(size=600)
    elif kind == "half":
        a[1400::2] = np.nan
    else:
        a[1400:] = kind
    encoder, model, journal = Encoder.numbers(["a", "b"]), pogp.OnlineGP(max_size=40), Journal()
    found = encoding.learn(model, encoder, [a, b], y)
    journal.add(found.inputs, y, found.trace, 0.01, found.missing)
    return {each.name: each for each in verdicts(Summary.of(journal, model, ["a", "b"], "y"))}


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (np.nan, "a has been missing in 100 % of the rows since around sample 1,3"),
        ("half", "a has been missing in 50 % of the rows since around sample 1,3"),
        (5.0, "a has been constant since around sample 1,"),
        (-127.0, "a has been constant since around sample 1,"),
    ],
)
def test_an_input_that_failed_is_named(kind, sentence):
    found = failing(kind)
    assert next(iter(found)) == "failed"
    assert found["failed"].sentence.startswith(sentence)
    assert "noisier" not in found
    assert "drifted" not in found


def test_noise_is_no_failed_input():
    found = failing("noise")
    assert "failed" not in found
    assert "noisier" in found
