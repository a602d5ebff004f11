"""Every verdict has a stream that calls for it and one that must not."""

import re
from dataclasses import replace

import numpy as np
import pytest

import pogp
from pogp.encoding import Encoder
from pogp.encoding.encoder import inputs_of
from pogp.report.changes import change_point
from pogp.report.journal import Journal
from pogp.report.summary import Summary
from pogp.report.verdicts import verdicts

KERNEL, NOISE = pogp.RBF(1.0), 0.04


def told(model, X, y, names=None, columns=None, options=(), written=()):
    """Learn a stream and return the verdicts on it by name."""
    journal = Journal()
    for start in range(0, len(y), 250):
        rows = slice(start, start + 250)
        journal.add(X[rows], y[rows], model.learn(X[rows], y[rows]), 0.01)
    command = ["pogp", "learn", "t.csv", "--target", "y", *options]
    summary = Summary.of(journal, model, names, "y", command, columns)
    summary = replace(summary, written=dict(written))
    return {verdict.name: verdict for verdict in verdicts(summary)}


def smooth(n=1000, seed=0, noise=0.2, inputs=1):
    """A stream that the model fits: nothing is to be said."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, inputs))
    y = np.sin(1.5 * X).sum(axis=1) + noise * rng.normal(size=n)
    return X, y


def absorbing(max_size=40, **options):
    return pogp.AbsorbingPOG(KERNEL, NOISE, max_size=max_size, **options)


def test_a_good_model_of_a_quiet_stream_calls_for_nothing():
    for seed in range(5):
        assert told(absorbing(), *smooth(seed=seed)) == {}


def test_a_target_at_rest_calls_for_nothing():
    X, _ = smooth(600)
    for value in (5.0, 7.0, 0.1, -1e9 / 3):
        assert told(pogp.OnlineGP(max_size=20), X[:200], np.full(200, value)) == {}
    assert told(absorbing(mean=5.0), X, np.full(600, 5.0)) == {}


def test_a_good_default_model_calls_for_nothing():
    assert told(pogp.OnlineGP(max_size=60), *smooth(600, inputs=2)) == {}


def test_predictions_worse_than_the_mean():
    rng = np.random.default_rng(0)
    X, noise = rng.uniform(-3, 3, (800, 1)), rng.normal(size=800)
    sure = pogp.SlidingWindow(KERNEL, 0.01, max_size=40)  # takes noise for a function
    found = told(sure, X, noise)["useless"]
    assert "worse than the mean of the targets so far" in found.sentence
    assert found.command == "pogp learn t.csv --target y --method online"


def test_predictions_hardly_better_than_the_mean():
    rng = np.random.default_rng(1)
    X, noise = rng.uniform(-3, 3, (600, 1)), rng.normal(size=600)
    found = told(pogp.AbsorbingPOG(pogp.RBF(1.0, 0.1), 1.0), X, noise)
    assert "not clearly better than the mean" in found["useless"].sentence


def test_what_useless_predictions_ignore_is_not_said():
    rng = np.random.default_rng(1)
    X, noise = rng.uniform(-3, 3, (600, 2)), rng.normal(size=600)
    found = told(pogp.OnlineGP(max_size=20), X, noise)
    assert "useless" in found
    assert "ignored" not in found


def test_predictions_worse_than_the_last_value():
    rng = np.random.default_rng(2)
    y = np.cumsum(0.1 * rng.normal(size=1000))
    X = rng.uniform(-3, 3, (1000, 1))  # says nothing
    assert "worse than the last target" in told(absorbing(), X, y)["useless"].sentence
    assert "useless" not in told(pogp.OnlineGP(max_size=40), X[:400], y[:400])


def test_a_cap_that_more_points_would_help():
    X, y = smooth(1500, inputs=2)
    found = told(absorbing(8), X, y)["capped"]
    assert found.sentence.startswith("All 8 points are in use")
    assert found.command.endswith("--max-size 16")
    assert "capped" not in told(absorbing(200), X, y)


def test_the_gain_from_twice_the_points_is_estimated():
    X, y = smooth(1500, inputs=2)
    sentence = told(absorbing(16), X, y)["capped"].sentence
    now, estimate = (
        float(re.search(rf"{words} ([\d.]+) %", sentence).group(1))
        for words in ("the error is", "lower it to about")
    )
    twice = Journal()
    twice.add(X, y, absorbing(32).learn(X, y), 1.0)
    actual = 100 * float(twice.recent().error[0])
    assert estimate < now
    assert 0.5 < estimate / actual < 2


def test_a_cap_of_more_points_than_half_the_samples_is_not_proposed():
    X, y = smooth(300, inputs=3)
    assert told(absorbing(74), X, y)["capped"].command.endswith("--max-size 148")
    model = absorbing(76)
    assert "capped" not in told(model, X, y)
    assert model.size == 76


def test_a_cap_reached_lately_gives_no_estimate():
    X, y = smooth(1500, inputs=2)
    assert "twice as many would" in told(absorbing(16), X, y)["capped"].sentence
    few = told(absorbing(16), X[:400], y[:400])["capped"].sentence
    assert few.endswith("More points can remove at most the difference.")


def test_a_model_below_its_cap_now_is_not_capped():
    X, y = smooth(1500, inputs=2)
    model = absorbing(16)
    journal = Journal()
    journal.add(X, y, model.learn(X, y), 0.01)
    names = [each.name for each in verdicts(Summary.of(journal, model, None, "y"))]
    assert "capped" in names
    model.change(max_size=8)
    model.change(max_size=16)  # it has dropped half of them
    names = [each.name for each in verdicts(Summary.of(journal, model, None, "y"))]
    assert "capped" not in names


def test_a_full_model_at_the_level_of_the_noise_is_not_told_to_grow():
    X, y = smooth(1500)
    model = absorbing(9)
    assert "capped" not in told(model, X, y)
    assert model.size == 9


def test_a_full_model_no_better_than_the_mean_is_not_told_to_grow():
    rng = np.random.default_rng(1)
    X, noise = rng.uniform(-3, 3, (800, 1)), rng.standard_t(3, 800)
    found = told(pogp.AbsorbingPOG(pogp.RBF(0.3), 0.04, max_size=20), X, noise)
    assert "useless" in found
    assert "capped" not in found


def test_a_full_model_whose_error_is_made_by_outliers_is_not_told_to_grow():
    X, y = smooth(2000)
    assert "capped" not in told(absorbing(9), X, y)
    y[[300, 700, 1100, 1500, 1900]] += 8.0
    found = told(absorbing(9), X, y)
    assert "capped" not in found
    assert "outlying" in found
    # An outlier makes no difference where the error of the others is larger.
    X, y = smooth(1500, inputs=2)
    y[1450] += 3.0
    assert "capped" in told(absorbing(8), X, y)


def test_predictions_are_not_called_useless_for_a_few_outliers():
    X, y = smooth(1500)
    y[1400:1500:40] += 40.0
    found = told(pogp.OnlineGP(max_size=20), X, y)
    assert "useless" not in found
    assert "outlying" in found


def test_of_a_short_stream_the_error_without_outliers_decides():
    X, y = smooth(500)
    y[[460, 480]] += 40.0  # two of the last fifty
    assert "useless" not in told(absorbing(), X, y)
    rng = np.random.default_rng(1)
    noise = rng.normal(size=500)
    noise[[460, 480]] += 40.0
    found = told(pogp.AbsorbingPOG(pogp.RBF(1.0, 0.1), 1.0), X, noise)["useless"].sentence
    share = float(re.search(r"2 surprises left out, the mean .* is ([\d.]+) times that", found)[1])
    assert 0.9 < share < 1.3
    noise[440:480:4] += 40.0  # no longer a few
    many = told(pogp.AbsorbingPOG(pogp.RBF(1.0, 0.1), 1.0), X, noise)["useless"].sentence
    assert "surprise" not in many


def test_an_input_is_not_called_ignored_for_a_few_outliers():
    X, y = smooth(1500, inputs=2)
    y = 3 * np.sin(X[:, 0]) + 0.3 * np.sin(X[:, 1]) + 0.1 * (y - np.sin(1.5 * X).sum(axis=1))
    y[[400, 800, 1200]] += 1000.0
    found = told(pogp.OnlineGP(max_size=40), X, y)
    assert "outlying" in found
    assert "ignored" not in found


def test_an_input_that_matters_little_is_not_called_ignored():
    X, _ = smooth(1000, inputs=2)
    y = 100 * np.sin(X[:, 0]) + X[:, 1] + 0.5 * np.random.default_rng(7).normal(size=1000)
    assert y.var() > 3.0 / 1e-3
    assert "ignored" not in told(pogp.OnlineGP(max_size=60), X, y)


def test_a_target_that_numbers_cannot_resolve():
    X, y = smooth(300)
    assert told(pogp.OnlineGP(max_size=20), X, 1e13 + y) == {}
    found = told(pogp.OnlineGP(max_size=20), X, 1e15 + y)
    assert list(found) == ["unresolved"]
    sentence = found["unresolved"].sentence
    assert sentence.startswith("y varies by 0.7")
    assert "floating-point numbers are 0.125 apart" in sentence
    assert found["unresolved"].command == ""
    assert str(found["unresolved"]) == sentence


@pytest.mark.filterwarnings("ignore:no target is above")
def test_a_target_that_is_too_small():
    X, y = smooth(300)
    found = told(pogp.OnlineGP(max_size=20), X, 1e-200 * y)
    assert list(found) == ["unresolved"]
    assert "less than 10⁻¹⁴⁰ is taken" in found["unresolved"].sentence.replace("1×", "")


def test_predictions_that_are_biased():
    X, y = smooth(2000)
    y[1700:] += 0.4
    found = told(absorbing(), X, y)["biased"]
    assert "lie above them" in found.sentence
    assert found.command.endswith("--forgetting 0.999")


def test_skewed_noise_is_no_bias():
    X, _ = smooth(1500)
    rng = np.random.default_rng(0)
    rare = np.where(rng.random(1500) < 0.3, 2.0, 0.0) - 0.6
    for noise in (rng.exponential(size=1500) - 1, rng.lognormal(size=1500) - np.exp(0.5), rare):
        fixed = pogp.AbsorbingPOG(KERNEL, 0.25 * float(np.var(noise)), max_size=40)
        for model in (fixed, pogp.OnlineGP(max_size=40)):
            assert "biased" not in told(model, X, np.sin(X[:, 0]) + 0.5 * noise)


def test_a_band_too_narrow_or_too_wide():
    X, y = smooth()
    narrow = told(pogp.AbsorbingPOG(KERNEL, 0.01, max_size=40), X, y)["misjudged"]
    assert narrow.sentence.startswith("The 95 % band is too narrow: it holds")
    wide = told(pogp.AbsorbingPOG(KERNEL, 0.5, max_size=40), X, y)["misjudged"]
    assert wide.sentence.startswith("The 95 % band is too wide: it holds")


def test_a_band_too_narrow_in_one_place():
    X, y = smooth(3000, noise=0.0, inputs=2)
    y += np.random.default_rng(3).normal(size=3000) * np.where(X[:, 1] > 0, 0.4, 0.05)
    model = pogp.AbsorbingPOG(KERNEL, 0.08, max_size=80)
    assert "where b is high" in told(model, X, y, ["a", "b"])["misjudged"].sentence


def test_a_band_too_narrow_for_one_category():
    rng = np.random.default_rng(5)
    cells = [rng.choice([*"abc"], 1500).tolist()]
    encoder = Encoder.of(["room"], cells)
    X = inputs_of(encoder.learn(cells), encoder.dimension)
    y = rng.normal(size=1500) * np.array([0.4 if cell == "b" else 0.05 for cell in cells[0]])
    y += ["abc".index(cell) for cell in cells[0]]
    model, journal = absorbing(), Journal()
    journal.add(X, y, model.learn(X, y), 0.01)
    summary = Summary.of_table(journal, model, encoder, "y", ["pogp", "learn", "t.csv"], {})
    (found,) = [each for each in verdicts(summary) if each.name == "misjudged"]
    assert "where room is b" in found.sentence


def test_inputs_that_are_ignored():
    rng = np.random.default_rng(4)
    X = rng.uniform(-3, 3, (600, 3))
    y = np.sin(X[:, 0]) + np.sin(X[:, 2]) + 0.2 * rng.normal(size=600)
    used = pogp.RBF(1.0, columns=[0]) + pogp.RBF(1.0, columns=[2])
    found = told(pogp.AbsorbingPOG(used, NOISE, max_size=60), X, y, ["a", "b", "c"])["ignored"]
    assert found.sentence == "The predictions ignore the input b."
    assert found.command == "pogp learn t.csv --target y --columns a,c"
    everything = pogp.AbsorbingPOG(pogp.RBF(1.5), NOISE, max_size=80)
    assert "ignored" not in told(everything, X, y + X[:, 1], ["a", "b", "c"])


def test_inputs_of_one_column_are_used_or_ignored_together():
    rng = np.random.default_rng(4)
    X = rng.uniform(-3, 3, (600, 4))
    X[:, 0] = np.arange(600)  # the elapsed time: of a column of times, it is no news that it rises
    y = np.sin(X[:, 1]) + np.sin(X[:, 3]) + 0.2 * rng.normal(size=600)
    names = ["t (days)", "t (sin of day)", "u (days)", "b"]
    used = pogp.RBF(1.0, columns=[1]) + pogp.RBF(1.0, columns=[3])
    model = pogp.AbsorbingPOG(used, NOISE, max_size=60)
    found = told(model, X, y, names, ["t", "t", "u", "b"], ["--time", "t,u"])
    assert list(found) == ["ignored"]
    assert found["ignored"].sentence == "The predictions ignore the input u."
    assert found["ignored"].command == "pogp learn t.csv --target y --time t --columns t,b"


def test_drift_and_since_when():
    X, y = smooth(3000)
    y[2000:] = np.cos(1.5 * X[2000:, 0]) + 0.2 * np.random.default_rng(5).normal(size=1000)
    found = told(absorbing(), X, y)["drifted"].sentence
    since = int(found.split("sample ")[1].split(":")[0].replace(",", ""))
    assert 1800 <= since <= 2200


@pytest.mark.parametrize("make", [absorbing, lambda: pogp.OnlineGP(max_size=40)])
@pytest.mark.parametrize("jump", [2.0, -3.0])
def test_a_change_of_level_and_since_when(make, jump):
    X, y = smooth(2000)
    y[1200:] += jump
    found = told(make(), X, y)
    assert "drifted" not in found
    sentence = found["shifted"].sentence
    assert ("higher" if jump > 0 else "lower") in sentence
    since = int(sentence.split("sample ")[1].split(":")[0].replace(",", ""))
    assert 1150 <= since <= 1250
    size = float(re.search(r"it is ([\d.]+) ", sentence)[1])
    assert abs(size - abs(jump)) < 0.3 * abs(jump)


def test_what_is_no_change_of_level():
    X, y = smooth(2000)
    assert "shifted" not in told(absorbing(), X, y)
    moved = X.copy()
    moved[1200:] = np.abs(moved[1200:])  # the inputs explain that the target is higher
    by_inputs = 2 * moved[:, 0] + 0.2 * np.random.default_rng(1).normal(size=2000)
    assert "shifted" not in told(pogp.OnlineGP(max_size=40), moved, by_inputs)
    slow = y + np.linspace(0, 4, 2000)
    assert "shifted" not in told(pogp.OnlineGP(max_size=40), X, slow)
    turned = np.where(np.arange(2000) < 1200, y, -y)
    assert "shifted" not in told(pogp.OnlineGP(max_size=40), X, turned)


@pytest.mark.parametrize("make", [absorbing, lambda: pogp.OnlineGP(max_size=40)])
def test_noise_that_grew_is_no_change_of_the_relation(make):
    for seed in range(3):
        X, y = smooth(3000, seed=seed)
        y[2000:] += 0.6 * np.random.default_rng(8).normal(size=1000)
        found = told(make(), X, y)
        assert "drifted" not in found
        assert found["noisier"].sentence.startswith("The noise of the target grew around sample")


@pytest.mark.parametrize("make", [absorbing, lambda: pogp.OnlineGP(max_size=40)])
def test_a_relation_that_changed_is_no_noise(make):
    X, y = smooth(3000)
    for start in (2000, 2600):
        changed = y.copy()
        changed[start:] = np.cos(1.5 * X[start:, 0]) + y[start:] - np.sin(1.5 * X[start:, 0])
        assert "noisier" not in told(make(), X, changed)


def test_a_target_that_wanders_is_neither_noisier_nor_shifted_by_rule():
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, _ = smooth(1000, seed=seed)
        y = np.cumsum(0.1 * rng.normal(size=1000)) + np.sin(X[:, 0])
        found += told(absorbing(20), X, y)
    assert "noisier" not in found
    assert found.count("shifted") <= 1


def test_a_drift_between_tiny_errors_says_how_large_they_are():
    X, y = smooth(3000, noise=1e-5)
    y[2000:] += 1e-2 * np.sin(5 * X[2000:, 0])
    model = pogp.AbsorbingPOG(pogp.RBF(1.0), 1e-6, max_size=60)
    found = told(model, X, y)["drifted"].sentence
    before, after = re.findall(r"(\S+) %", found)
    assert before != after
    assert "0.0" not in (before, after)


def test_a_model_that_was_bad_throughout_has_not_drifted():
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-3, 3, (3000, 2)), rng.normal(size=3000)
    sure = pogp.AbsorbingPOG(pogp.RBF(0.3), 0.01, max_size=60)
    assert "drifted" not in told(sure, X, y)


def test_changes_of_level_are_found_where_they_are_and_not_in_noise():
    rng = np.random.default_rng(7)
    found = []
    for _ in range(200):
        errors = rng.chisquare(50, 60) / 50
        errors[rng.integers(60)] *= 10  # an outlier
        found.append(change_point(errors))
        risen = change_point(errors * np.where(np.arange(60) < 40, 1.0, 2.0))
        assert risen is not None
        assert abs(risen - 40) <= 6
    assert sum(split is not None for split in found) <= 2


def test_outliers_and_how_many():
    X, y = smooth(2000)
    y[[300, 700, 1100, 1500, 1900]] += 8.0
    found = told(absorbing(), X, y)["outlying"]
    assert found.sentence.startswith("5 of 1,999 targets are outliers")
    assert found.command.endswith("--out rows.csv")


def test_the_first_targets_of_a_new_level_are_no_outliers():
    X, y = smooth(2000)
    y[1200:] += 5.0
    found = told(pogp.OnlineGP(max_size=40), X, y)
    assert "shifted" in found
    assert "outlying" not in found
    y[[300, 700, 900, 1500, 1900]] += 40.0
    found = told(pogp.OnlineGP(max_size=40), X, y)
    assert "shifted" in found
    assert found["outlying"].sentence.startswith("5 of 1,999 targets are outliers")


def test_an_input_that_only_ever_rises():
    X, y = smooth(600, inputs=2)
    X[:, 1] = np.arange(600.0)
    model = pogp.AbsorbingPOG(pogp.RBF([1.0, 100.0]), NOISE, max_size=60)
    found = told(model, X, y, ["a", "clock"])["rising"]
    assert found.sentence.startswith("clock only ever increased")
    assert found.command.endswith("--columns a")


@pytest.mark.parametrize("first", [1_706_745_600.0, 1_706_745_600_000.0])
def test_a_column_of_unix_time_is_to_be_read_as_times(first):
    X, y = smooth(400, inputs=2)
    X[:, 1] = first + 3600 * np.arange(400)
    found = told(absorbing(), X, y, ["a", "when"])
    assert found["clock"].sentence == "when only ever increased, and looks like a time."
    assert found["clock"].command == "pogp learn t.csv --target y --time when"
    assert not {"ignored", "rising"} & set(found)
    X[:, 1] = np.arange(400)
    assert "clock" not in told(absorbing(), X, y, ["a", "when"])


def test_one_command_for_columns_that_are_ignored_and_that_rise():
    X, y = smooth(600, inputs=2)
    X = np.column_stack([X, np.arange(600.0), np.random.default_rng(1).normal(size=600)])
    kernel = pogp.RBF([1.0, 1.0, 100.0], columns=[0, 1, 2])
    model = pogp.AbsorbingPOG(kernel, NOISE, max_size=60)
    found = told(model, X, y, ["a", "b", "clock", "spare"])
    assert list(found)[-2:] == ["ignored", "rising"]
    assert found["ignored"].command == ""
    assert found["rising"].command == "pogp learn t.csv --target y --columns a,b"


def test_an_ignored_column_is_not_advised_in_place_of_one_that_rises():
    X, y = smooth(600, inputs=2)
    X[:, 0] = np.linspace(-3, 3, 600)
    used = pogp.AbsorbingPOG(pogp.RBF(1.0, columns=[0]), NOISE, max_size=60)
    found = told(used, X, 3 * np.sin(X[:, 0]) + 0.1 * y, ["clock", "spare"])
    assert found["ignored"].command.endswith("--columns clock")
    assert found["rising"].command == ""


def test_advice_continues_with_the_model_that_was_given():
    X, y = smooth(2000)
    y[[300, 700, 1100, 1500, 1900]] += 8.0
    found = told(absorbing(), X, y, options=["--from", "m.pogp"])["outlying"]
    assert found.command == "pogp learn t.csv --target y --from m.pogp --out rows.csv"


def test_advice_for_another_model_begins_anew_with_the_same_columns():
    rng = np.random.default_rng(0)
    X, noise = rng.uniform(-3, 3, (800, 1)), rng.normal(size=800)
    sure = pogp.SlidingWindow(KERNEL, 0.01, max_size=40)
    found = told(sure, X, noise, ["a"], options=["--from", "m.pogp"])["useless"]
    assert found.command == "pogp learn t.csv --target y --method online --columns a"
    X = rng.uniform(-3, 3, (600, 3))
    y = np.sin(X[:, 0]) + np.sin(X[:, 2]) + 0.2 * rng.normal(size=600)
    used = pogp.RBF(1.0, columns=[0]) + pogp.RBF(1.0, columns=[2])
    model = pogp.AbsorbingPOG(used, NOISE, max_size=60)
    found = told(model, X, y, ["a", "b", "c"], options=["--from", "m.pogp"])["ignored"]
    assert found.command == "pogp learn t.csv --target y --columns a,c"


def test_what_was_run_is_not_advised():
    X, y = smooth(2000)
    y[[300, 700, 1100, 1500, 1900]] += 8.0
    found = told(absorbing(), X, y, written={"--out": "lines.csv"})["outlying"]
    assert found.sentence.endswith(
        "most of them are the lines of lines.csv with a surprise above 5."
    )
    assert found.command == ""
    found = told(absorbing(), X, y, written={"--out": "-"})["outlying"]
    assert found.sentence.endswith("them are the lines with a surprise above 5.")
    assert told(absorbing(), X, y)["outlying"].sentence.endswith("; --out rows.csv lists them.")


@pytest.mark.parametrize("count", [0, 1, 20])
def test_too_few_samples_call_for_nothing(count):
    X, y = smooth(count) if count else (np.empty((0, 1)), np.empty(0))
    assert told(absorbing(), X, y) == {}
