"""The journal of a stream against the metrics of the whole trace, in bounded memory."""

import json

import numpy as np
import pytest

import pogp
from pogp import metrics
from pogp.report.journal import SAMPLES, SEGMENTS, Journal
from pogp.report.segments import CELLS, COLUMNS
from pogp.trace import Trace, blank, concatenate

from ..conftest import smooth_1d, smooth_2d


def journal_of(X, y, trace, chunk=None, seconds_per_sample=1e-5, **options):
    """Note a trace in chunks."""
    journal = Journal(**options)
    for start in range(0, len(y), chunk or len(y)):
        rows = slice(start, start + (chunk or len(y)))
        part = Trace(trace.records[rows], trace.flat)
        journal.add(X[rows], y[rows], part, seconds_per_sample * len(part))
    return journal


def made_up(n, outputs=1, seed=0):
    """A stream and a trace with every field different."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 3)), rng.normal(size=(n, outputs))
    means = Y + rng.normal(size=Y.shape)
    rest = rng.uniform(0, 1, (n, 3))
    counts = rng.integers(0, 50, (n, 2))
    variances = rng.uniform(0.5, 2, Y.shape)
    return X, Y, Trace(np.hstack([means, variances, counts, rest, np.zeros((n, 1))]), flat=False)


@pytest.fixture(scope="module")
def stream():
    X, y = smooth_2d(1000)
    model = pogp.AbsorbingPOG(pogp.RBF(0.5), 0.01, max_size=40, calibrate=True)
    return X, y, model.learn(X, y)


# ---- what it says


def test_the_whole_stream_scores_as_its_trace_does(stream):
    X, y, trace = stream
    whole = journal_of(X, y, trace, 70).segments().joined()
    y, mean, variance = y[1:], trace.mean[1:], trace.variance[1:]  # nothing was known of the first
    assert whole.predicted == len(y)
    assert whole.error == pytest.approx(metrics.smse(y, mean, np.var(stream[1])), rel=1e-12)
    assert whole.rmse[0, 0] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)), rel=1e-12)
    assert whole.loss == pytest.approx(metrics.nlpd(y, mean, variance), rel=1e-12)
    for level in (0.05, 0.5, 0.8, 0.95):
        assert whole.coverage(level) == metrics.coverage(y, mean, variance, level)


def test_each_segment_holds_the_means_of_its_samples(stream):
    X, y, trace = stream
    journal = journal_of(X, y, trace, 333)
    segments = journal.segments()
    assert (journal.width, len(segments)) == (8, 125)
    for i in (1, 60, 124):
        rows = slice(8 * i, 8 * i + 8)
        assert segments.ends[i] == rows.stop
        assert segments.loss[i] == pytest.approx(
            metrics.nlpd(y[rows], trace.mean[rows], trace.variance[rows]), rel=1e-12
        )
        for name in ("size", "removed", "spent", "novelty", "change"):
            expected = getattr(trace, name)[rows].mean()
            assert segments.mean(name)[i] == pytest.approx(expected, rel=1e-12)
    assert segments.total("removed") == trace.removed.sum()


def test_a_stream_that_goes_on_is_scored_from_its_first_sample(stream):
    X, y, trace = stream
    segments = journal_of(X, y, trace, after=5000).segments()
    assert segments.joined().predicted == len(y)
    assert segments.ends[[0, -1]].tolist() == [5008, 6000]


def test_several_outputs_are_scored_each_and_together():
    X, Y, trace = made_up(400, outputs=3)
    whole = journal_of(X, Y, trace).segments().joined()
    shares = [metrics.smse(Y[1:, k], trace.mean[1:, k], np.var(Y[:, k])) for k in range(Y.shape[1])]
    np.testing.assert_allclose(whole.errors[0], shares, rtol=1e-12)
    assert whole.error == pytest.approx(np.mean(shares), rel=1e-12)
    columns = ((Y[1:, k], trace.mean[1:, k], trace.variance[1:, k]) for k in range(3))
    assert whole.loss == pytest.approx(np.mean([metrics.nlpd(*column) for column in columns]))
    assert whole.cells.sum() == 3 * 399


def test_an_output_that_never_varies_is_left_out_of_the_error():
    X, Y, trace = made_up(300, outputs=2)
    Y[:, 1] = 0.1  # whose sum is not three hundred times as much
    whole = journal_of(X, Y, trace, 7).segments().joined()
    assert whole.variance[1] == 0.0
    assert whole.relative
    assert whole.error == whole.errors[:, 0]


def test_errors_of_a_constant_target_are_absolute():
    X, Y, trace = made_up(100)
    Y[:] = 1e12 + 0.1
    whole = journal_of(X, Y, trace, 9).segments().joined()
    assert not whole.relative
    assert whole.error == pytest.approx(np.mean((Y - trace.mean)[1:] ** 2))


def test_the_variance_of_large_targets_does_not_cancel():
    X, Y, trace = made_up(5000)
    Y += 1e12
    assert journal_of(X, Y, trace, 13).variance == pytest.approx(np.var(Y - 1e12), rel=1e-10)


def test_the_histogram_is_uniform_for_honest_predictions():
    rng = np.random.default_rng(1)
    n = 40_000
    records = blank(n)
    records[:, 0], records[:, 1] = rng.normal(size=n), rng.uniform(0.5, 2, n)
    y = records[:, 0] + np.sqrt(records[:, 1]) * rng.normal(size=n)
    cells = journal_of(np.zeros((n, 1)), y, Trace(records)).segments().joined().cells[0]
    expected = (n - 1) / CELLS
    assert np.sum((cells - expected) ** 2 / expected) < 73  # chi-square of 39, at 0.1 %


def test_missing_values_are_counted_by_input():
    X, Y, trace = made_up(400)
    gone = np.zeros((400, 3), dtype=bool)
    gone[300:, 1] = gone[::100, 2] = True
    journal = Journal(after=100)
    for i in range(0, 400, 50):
        part = Trace(trace.records[i : i + 50], flat=False)
        journal.add(X[i : i + 50], Y[i : i + 50], part, 1.0, gone[i : i + 50])
        journal = Journal.of(json.loads(json.dumps(journal.state())))
    assert journal.missing.tolist() == [0, 100, 4]
    before, now = journal.missing_shares(400)
    assert before.tolist() == [0.0, 0.0, 0.01]
    assert now.tolist() == [0.0, 1.0, 0.01]


def test_the_return_from_an_outlier_is_one_too():
    X, Y, trace = made_up(400)
    trace.records[:, 0], trace.records[:, 1] = Y[:, 0], 1.0
    Y[[300, 310]] += 100.0  # the level returns after one sample, and after another
    trace.records[[301, 312], 1] = 2500.0  # it may have changed, says the model
    trace.records[[301, 312], 0] += 50.0
    trace.records[[200, 350], 1] = 2500.0  # with no surprise before
    trace.records[[200, 350], 0] += 50.0
    for chunk in (1, 7, 301, 400):
        journal = Journal()
        for i in range(0, 400, chunk):
            part = Trace(trace.records[i : i + chunk], flat=False)
            journal.add(X[i : i + chunk], Y[i : i + chunk], part, 1.0)
            journal = Journal.of(json.loads(json.dumps(journal.state())))
        outliers = journal.segments().outliers
        assert journal.width == 4
        assert np.flatnonzero(outliers).tolist() == [75, 77, 78]
        assert outliers.sum() == 4


def test_time_is_spread_over_a_chunk_and_the_slowest_one_kept():
    X, Y, trace = made_up(256)
    journal = Journal()
    for start, seconds in ((0, 1.0), (64, 4.0), (128, 2.0), (192, 1.0)):
        rows = slice(start, start + 64)
        journal.add(X[rows], Y[rows], Trace(trace.records[rows], flat=False), seconds)
    segments = journal.segments().grouped(64)
    np.testing.assert_allclose(segments.mean("seconds"), [5 / 128, 3 / 128])
    np.testing.assert_allclose(segments.slowest, [4 / 64, 2 / 64])


def test_recent_is_the_last_tenth_but_not_too_few(stream):
    X, y, trace = stream
    recent = journal_of(X, y, trace).recent()
    assert recent.samples == 104  # whole segments of 8
    assert recent.mean("size")[0] == pytest.approx(trace.size[-104:].mean())
    short = journal_of(X[:120], y[:120], Trace(trace.records[:120]))
    assert short.recent().samples == 50
    assert journal_of(X[:20], y[:20], Trace(trace.records[:20])).recent().samples == 20


def test_first_and_last_take_whole_segments(stream):
    segments = journal_of(*stream).segments()
    assert segments.first(1).samples == segments.last(8).samples == 8
    assert segments.first(9).samples == segments.last(9).samples == 16
    assert segments.first(1000).samples == segments.at_most(3).samples == 1000
    assert len(segments.at_most(10)) == 8
    assert segments.at_most(10).ends[-1] == 1000


# ---- how it keeps it


@pytest.mark.parametrize("chunk", [1, 7, 400, 700])
def test_chunks_make_no_difference(chunk):
    X, Y, trace = made_up(700)
    one, other = journal_of(X, Y, trace, 100), journal_of(X, Y, trace, chunk)
    expected, found = one.state(), other.state()
    for name in ("sums", "moments", "ordinary", "leaning"):
        np.testing.assert_allclose(found.pop(name), expected.pop(name), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.pop("slowest"), expected.pop("slowest"))
    for name, state in found.pop("misfit").items():
        np.testing.assert_allclose(state, expected["misfit"][name], rtol=1e-9, atol=1e-12)
    del expected["misfit"]
    assert found == expected


def test_a_long_stream_takes_no_more_room_than_a_short_one():
    X, Y, trace = made_up(30_000)
    journal, sizes = Journal(), []
    for _ in range(4):
        journal.add(X, Y, trace, 1.0)
        sizes.append(len(json.dumps(journal.state())))
        assert SEGMENTS / 2 <= len(journal.segments()) <= SEGMENTS
        assert len(journal.samples) == SAMPLES
    assert max(sizes) < 1.5 * min(sizes) < 200_000


def test_a_thousand_million_samples_are_one_more_doubling():
    X, Y, trace = made_up(256)
    memory, many = journal_of(X, Y, trace).state(), 4_000_000
    assert memory["width"] == 2
    memory |= {"seen": 256 * many, "width": 2 * many}
    memory["sums"] = (many * np.array(memory["sums"])).tolist()
    memory["cells"] = (many * np.array(memory["cells"])).tolist()
    journal = Journal.of(memory)
    before = journal.segments()
    journal.add(X, Y, trace, 1.0)
    after = journal.segments()
    assert (journal.seen, len(after), journal.width) == (256 * many + 256, 65, 4 * many)
    np.testing.assert_allclose(after.mean("size")[:64], before.grouped(2).mean("size"))
    assert after.counts[-1] == 256
    assert after.mean("size")[-1] == pytest.approx(trace.size.mean())


def older_state(journal, missing):
    """The state of one output as older files have it: sums with outliers, and fewer of these."""
    state = journal.state()
    sums = np.array(state["sums"])
    loss = len(COLUMNS)
    sums[:, loss] += sums[:, -1]
    sums[:, loss + 2 : loss + 5] += sums[:, loss + 5 : -1]
    return state | {"sums": sums[:, :-missing].tolist()}


def test_the_squares_of_outliers_are_kept_and_older_files_have_none(stream):
    X, y, trace = stream
    y = y.copy()
    y[[500, 900]] += 10.0
    journal = journal_of(X, y, trace)
    whole = journal.segments().joined()
    errors = (y - trace.mean)[[500, 900]]
    assert whole.outliers[0] == 2
    simple = np.array([500, 900]), y[499:900:400]
    by_mean = y[simple[0]] - [y[:500].mean(), y[:900].mean()]
    expected = [(part**2).sum() for part in (errors, by_mean, y[simple[0]] - simple[1])]
    ordinary = journal.ordinary().joined()
    for name, part in zip(("squares", "by_mean", "by_last"), expected, strict=True):
        assert getattr(whole, name) - getattr(ordinary, name) == pytest.approx(part)
    usual = np.delete(np.arange(1000), [0, 500, 900])
    mean, variance = trace.mean[usual], trace.variance[usual]
    assert whole.few_outliers == 2
    assert (whole.left_out, ordinary.left_out, ordinary.scored) == (0, 2, 997)
    assert ordinary.rmse[0, 0] == pytest.approx(np.sqrt(np.mean((y[usual] - mean) ** 2)))
    assert ordinary.loss == pytest.approx(metrics.nlpd(y[usual], mean, variance))
    assert ordinary.variance == pytest.approx(np.delete(y, [500, 900]).var())
    assert journal.recent_outliers() == 1
    assert journal.recent_ordinary().error == journal.ordinary().last(104).error
    assert journal.recent_ordinary().rmse < journal.recent().rmse
    for missing, left_out in ((1, 2), (3, 2), (4, 0)):
        restored = Journal.of(older_state(journal, missing))
        assert restored.ordinary().joined().left_out == left_out
        found = restored.ordinary().joined().squares
        assert found == pytest.approx(ordinary.squares if left_out else whole.squares)
        assert restored.segments().joined().squares == pytest.approx(whole.squares)
        assert restored.segments().joined().loss == pytest.approx(whole.loss)


def test_the_errors_of_others_are_not_rounded_away_by_an_outlier(stream):
    X, y, trace = stream
    spoilt = y.copy()
    spoilt[500] = 1e30
    usual = np.delete((y - trace.mean) ** 2, [0, 500])
    ordinary = journal_of(X, spoilt, trace).ordinary().joined()
    assert ordinary.rmse[0, 0] == pytest.approx(np.sqrt(usual.mean()))
    assert ordinary.error == pytest.approx(usual.mean() / np.delete(y, 500).var())


def test_many_outliers_at_the_end_are_left_in(stream):
    X, y, trace = stream
    y = y.copy()
    y[[300, 500]] += 10.0
    y[-20:] += 10.0
    journal = journal_of(X, y, trace)
    assert journal.segments().few_outliers == 22
    assert journal.ordinary().left_out.sum() == 2
    assert journal.recent_outliers() == 0
    assert journal.recent_ordinary().rmse == journal.recent().rmse


def test_a_segment_of_outliers_alone_is_not_scored(stream):
    X, y, trace = (part[:100] for part in (*stream[:2], stream[2].records))
    y = y.copy()
    y[80] += 10.0
    segments = journal_of(X, y, Trace(trace)).ordinary().with_predictions()
    assert len(segments) == 98  # of one sample each
    assert np.isfinite(segments.error).all()


def test_outliers_are_few_unless_clearly_more_than_rare(stream):
    X, y, trace = stream
    for count, few in ((2, 2), (5, 5), (10, 0)):
        spoilt = y.copy()
        spoilt[-count:] += 10.0
        assert journal_of(X, spoilt, trace).segments().last(50).few_outliers == few


def test_a_restored_journal_continues_bit_for_bit(stream):
    X, y, trace = stream
    whole = journal_of(X, y, trace, 100, seed=3)
    journal = Journal(seed=3)
    for start in range(0, 1000, 100):
        rows = slice(start, start + 100)
        text = json.dumps(journal.state(), allow_nan=False)
        journal = Journal.of(json.loads(text))
        journal.add(X[rows], y[rows], Trace(trace.records[rows]), 1e-5 * 100)
    assert journal.state() == whole.state()


def test_extreme_samples_leave_the_journal_finite():
    records = blank(3)
    records[:, 1] = 1e-190
    journal = Journal()
    journal.add(np.full((3, 2), 1e99), np.array([0.0, 9e99, -9e99]), Trace(records), 0.0)
    memory = json.dumps(journal.state(), allow_nan=False)
    assert np.isfinite(Journal.of(json.loads(memory)).recent().loss).all()


def test_raw_samples_are_drawn_from_all_of_the_stream():
    X, Y, trace = made_up(5000)
    X[:, 0] = np.arange(5000)
    samples = journal_of(X, Y, trace, 500).samples
    assert len(samples) == SAMPLES
    assert samples.inputs[:, 0].tolist() == samples.positions.tolist()
    assert abs(samples.positions.mean() - 2500) < 4 * 5000 / np.sqrt(12 * SAMPLES)


def test_raw_samples_do_not_depend_on_data_of_the_same_seed():
    X, Y, trace = made_up(5000)
    X[:, 0] = np.random.default_rng(0).uniform(-3, 3, 5000)
    samples = journal_of(X, Y, trace, 500, seed=0).samples
    assert abs(samples.inputs[:, 0].mean()) < 4 * np.sqrt(3 / SAMPLES)
    assert abs(samples.inputs[:, 0].std() - np.sqrt(3)) < 0.25


def test_single_samples_are_taken_as_learn_takes_them():
    X, y = smooth_1d(30)
    model, journal = pogp.POG(pogp.RBF(), 0.01), Journal()
    traces = []
    for x, target in zip(X, y, strict=True):
        traces.append(model.learn(x, target))
        journal.add(x, target, traces[-1], 1e-5)
    together = journal_of(X, y, concatenate(traces), 1)
    assert journal.state() == together.state()


# ---- what it refuses, as it was


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": -1.0}, "seconds must be at least 0, got -1.0"),
        ({"X": np.zeros((5, 2))}, "X must have 3 inputs per sample"),
        ({"y": np.zeros((4, 2))}, "y must have shape"),
        ({"trace": made_up(4, 2)[2]}, "trace must be of these 5 samples"),
        ({"y": np.zeros((5, 3)), "trace": made_up(5, 3)[2]}, "y must have 2 outputs as before"),
        ({"y": np.full((5, 2), np.nan)}, "y must be finite"),
    ],
)
def test_invalid_samples_leave_the_journal_unchanged(change, message):
    journal = journal_of(*made_up(20, outputs=2))
    before = journal.state()
    X, Y, trace = made_up(5, outputs=2)
    given = {"X": X, "y": Y, "trace": trace, "seconds": 1.0} | change
    with pytest.raises(ValueError, match=message):
        journal.add(**given)
    assert journal.state() == before


def test_an_empty_chunk_changes_nothing():
    journal = Journal()
    before = journal.state()
    journal.add(np.empty((0, 2)), np.empty(0), Trace(blank(0)), 0.0)
    assert journal.state() == before == Journal.of(before).state()
    assert len(journal.segments()) == 0


@pytest.mark.parametrize("damage", ["sums", "inputs", "seen", "width"])
def test_damaged_journals_are_refused(stream, damage):
    memory = journal_of(*stream).state()
    for broken in ({damage: [1, 2]}, {damage: None}):
        with pytest.raises(ValueError, match="not the state of a journal"):
            Journal.of(memory | broken)
    del memory[damage]
    with pytest.raises(ValueError, match=damage):
        Journal.of(memory)


@pytest.mark.parametrize("options", [{"after": -1}, {"seed": 0.5}])
def test_options_are_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Journal(**options)
