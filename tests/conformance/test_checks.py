"""Every model passes `pogp.checks`, and the checks find what is wrong with models that do not."""

import inspect
from functools import partial

import numpy as np
import pytest

import pogp
from pogp import models, validation
from pogp.checks import CheckFailure, check_model, checks_for
from pogp.checks._kit import CHECKS
from pogp.models import Model
from pogp.models.baselines import pseudo_inputs, streaming
from pogp.trace import FIELDS, Trace

KERNEL, NOISE = pogp.RBF((0.7, 0.9), 1.3), 0.05
TREND = pogp.Periodic(2.5, columns=[0]) * pogp.RBF() + pogp.Linear((0.5, 0.2)) + pogp.Constant(0.3)

MODELS = {
    "POG": partial(pogp.POG, KERNEL, NOISE, 1e-3, mean=0.6),
    "POG, decaying": partial(
        pogp.POG, pogp.RBF([0.5]), NOISE, pogp.Decay(0.1, 0.5), max_removals=1
    ),
    "POG, everywhere": partial(pogp.POG, KERNEL, NOISE, 0.15, view="everywhere", max_size=25),
    "POG, trend": partial(pogp.POG, TREND, NOISE, 1e-3),
    "POG, little noise": partial(pogp.POG, KERNEL, 1e-8, None, view="everywhere", max_size=25),
    "DenseGP": partial(pogp.DenseGP, pogp.Matern52(0.8), NOISE, mean=0.6),
    "RandomSubset": partial(pogp.RandomSubset, KERNEL, NOISE, 25, seed=3, mean=0.6),
    "SlidingWindow": partial(pogp.SlidingWindow, pogp.RBF() + pogp.Matern12(), NOISE, 25),
    "SOGP": partial(pogp.SOGP, KERNEL, NOISE, 25, mean=0.6),
    "McIntire": partial(pogp.McIntire, KERNEL, NOISE, 0.1, mean=0.6),
    "KRLSALD": partial(pogp.KRLSALD, KERNEL, NOISE, mean=0.6),
    "KRLST": partial(pogp.KRLST, pogp.RBF([0.2]), NOISE, 25, forgetting=0.98, mean=0.6),
    "AbsorbingPOG": partial(pogp.AbsorbingPOG, KERNEL, NOISE, mean=0.6),
    "AbsorbingPOG, capped": partial(
        pogp.AbsorbingPOG, KERNEL, NOISE, None, max_size=25, calibrate=True
    ),
    "AbsorbingPOG, forgetting": partial(
        pogp.AbsorbingPOG, KERNEL, NOISE, pogp.Decay(0.1, 0.1), forgetting=0.99, max_size=40
    ),
    "AbsorbingPOG, little noise": partial(
        pogp.AbsorbingPOG, KERNEL, 1e-4, None, max_size=25, projection="marginalise"
    ),
    "StreamingVFE": partial(pogp.StreamingVFE, KERNEL, NOISE, 20, batch=30, mean=0.6),
    "StreamingVFE, reoptimised": partial(
        pogp.StreamingVFE, KERNEL, NOISE, 5, batch=40, reoptimise=True
    ),
    "SmolaBartlett": partial(pogp.SmolaBartlett, KERNEL, NOISE, 12, mean=0.6),
    "KeerthiChu": partial(pogp.KeerthiChu, KERNEL, NOISE, 12, mean=0.6),
    "Seeger": partial(pogp.Seeger, KERNEL, NOISE, 12, mean=0.6),
    "SPGP": partial(pogp.SPGP, KERNEL, NOISE, 2, mean=0.6),
    "VFE": partial(pogp.VFE, KERNEL, NOISE, 2, mean=0.6),
    "SelfTuning": partial(pogp.SelfTuning, warmup=12, max_size=25),
    "OnlineGP": partial(pogp.OnlineGP, max_size=25),
}


def pairs(names, but=()):
    """Return each of these models with each check that applies, except some checks or modules."""
    return [
        pytest.param(MODELS[name], check, id=f"{name}-{check.__name__}")
        for name in names
        for check in checks_for(MODELS[name])
        if not {check.__name__, check.__module__.rpartition(".")[2]} & {*but}
    ]


@pytest.fixture(autouse=True)
def short_searches(monkeypatch):
    """What is checked does not depend on how far a search goes."""
    search = pseudo_inputs.search
    monkeypatch.setattr(
        pseudo_inputs, "search", lambda *given: search(*given[:4], SEARCHED, *given[5:])
    )
    monkeypatch.setattr(streaming, "_ITERATIONS", SEARCHED)


SEARCHED = 5
SETTINGS = [name for name in MODELS if "," in name]
"""Other settings change what a model learns, not how it answers or what it refuses."""
REFERENCE = ["POG, everywhere", "AbsorbingPOG, forgetting"]
"""One model for each state that the NumPy core has besides the compiled one; `oracle/` has all
criteria and projections on both."""
OF_ANY_CORE = [
    "predictions",
    "harmless",
    "a_copy_goes_on_bit_for_bit",
    "a_pickle_goes_on_bit_for_bit",
]
"""What a core does not decide: copies and pickles go through its state as files do."""


@pytest.mark.parametrize(("make", "check"), pairs(name for name in MODELS if "," not in name))
def test_models(make, check):
    check(make)


@pytest.mark.parametrize(("make", "check"), pairs(SETTINGS, but=["predictions", "harmless"]))
def test_other_settings(make, check):
    check(make)


@pytest.mark.parametrize(
    ("make", "check"),
    [
        *pairs(REFERENCE, but=OF_ANY_CORE),
        *pairs(["OnlineGP"], but=[*OF_ANY_CORE, "learning", "hard", "a_copy_is_independent"]),
    ],
)
def test_on_the_reference_core(monkeypatch, make, check):
    monkeypatch.setenv("POGP_BACKEND", "reference")
    check(make)


def test_no_model_is_left_out():
    exported = {getattr(models, name) for name in models.__all__}
    concrete = {model for model in exported if not inspect.isabstract(model)}
    assert {type(make()) for make in MODELS.values()} == concrete


# ---- which checks apply


def names(make):
    return {check.__name__ for check in checks_for(make)}


def test_every_check_applies_to_some_model():
    assert set.union(*map(names, MODELS.values())) == {check.__name__ for check, _ in CHECKS}
    assert all(check.__doc__ for check, _ in CHECKS)


def test_checks_go_by_what_a_model_has():
    capped, free = names(MODELS["POG, everywhere"]), names(MODELS["POG"])
    assert capped - free == {"the_cap_is_kept_at_all_times", "memory_does_not_grow_at_the_cap"}
    sequential = {"a_batch_is_its_samples_one_by_one", "a_batch_is_its_parts"}
    assert sequential <= free
    assert not sequential & names(MODELS["StreamingVFE"])
    assert {"a_sample_taken_back_is_gone"} <= free - names(MODELS["SOGP"])
    offline = {"fitting_again_starts_afresh", "fitting_takes_at_least_one_sample"}
    assert names(MODELS["VFE"]) - capped == offline


# ---- a model of one's own, which shares nothing with ours but the protocol


class Latest(Model):
    """The exact GP on the last few samples, from scratch each time."""

    def __init__(self, kernel, noise, max_size):
        super().__init__(kernel, noise)
        self.max_size = max_size
        self._X, self._y = np.empty((0, 2)), np.empty(0)

    size = property(lambda self: len(self._y))
    dictionary = property(lambda self: self._X.copy())
    targets = property(lambda self: self._y.copy())
    indices = property(lambda self: np.arange(self.seen - self.size, self.seen))
    nbytes = property(lambda self: self._X.nbytes + self._y.nbytes)

    def learn(self, X, y):
        X, y = validation.samples(X, y, self._dimension)
        return Trace(
            np.array([self._step(*sample) for sample in zip(X, y, strict=True)]).reshape(
                -1, len(FIELDS)
            )
        )

    def _step(self, x, y):
        before = super().predict(x)
        rise = self.size < self.max_size
        self._X = np.vstack([self._X, x])[-self.max_size :]
        self._y = np.append(self._y, y)[-self.max_size :]
        self._dimension, self._seen = len(x), self._seen + 1
        change = pogp.hellinger(*before, *super().predict(x))
        return *before, self.size, not rise, 0.0, change, change, False

    def _latent(self, X):
        cross = self.kernel(X, self._X)
        weights = np.linalg.solve(self._gram(), self._y)
        return cross @ weights, np.diagonal(self._latent_covariance(X)).copy()

    def _latent_covariance(self, X):
        cross = self.kernel(X, self._X)
        return self.kernel(X) - cross @ np.linalg.solve(self._gram(), cross.T)

    def _gram(self):
        return self.kernel(self._X) + self.noise * np.eye(self.size)

    def arguments(self):
        return {"kernel": self.kernel, "noise": self.noise, "max_size": self.max_size}

    def state(self):
        return {"seen": self._seen, "X": self._X.copy(), "y": self._y.copy()}

    def restore(self, memory):
        self._seen, self._X, self._y = memory["seen"], memory["X"].copy(), memory["y"].copy()


LATEST = (pogp.RBF(0.8), 0.1, 9)


def test_a_model_of_the_user_passes():
    check_model(partial(Latest, *LATEST))
    assert "a_file_goes_on_bit_for_bit" not in names(partial(Latest, *LATEST))


# ---- models with one thing wrong, by the check that must see it


BROKEN = {}


def wrong(check):
    def register(model):
        BROKEN[check] = model
        return model

    return register


@wrong("an_empty_model_predicts_the_prior")
class ForgetsThePriorMean(Latest):
    mean = 1.0


@wrong("predictions_are_finite_and_variances_positive")
class HasNegativeVariances(Latest):
    def _latent(self, X):
        mean, variance = super()._latent(X)
        return mean, variance - 0.09  # of y, they are still positive


@wrong("the_covariance_is_one_and_has_the_variances_on_its_diagonal")
class HasALopsidedCovariance(Latest):
    def _latent_covariance(self, X):
        return np.tril(super()._latent_covariance(X))


@wrong("one_query_gets_two_numbers_and_many_get_arrays")
class GivesArraysForOne(Latest):
    def predict(self, X, latent=False):
        return super().predict(np.atleast_2d(X), latent)


@wrong("draws_depend_on_the_seed_alone")
class IgnoresTheSeed(Latest):
    def sample(self, X, n=1, seed=None, latent=False):
        return super().sample(X, n, None, latent)


@wrong("draws_are_distributed_as_predicted")
class DrawsThePrior(Latest):
    def sample(self, X, n=1, seed=None, latent=False):
        return Latest(**self.arguments()).sample(X, n, seed, latent)


@wrong("predicting_changes_nothing")
class CountsPredictions(Latest):
    asked = 0

    def predict(self, X, latent=False):
        self.asked += 1
        return super().predict(X, latent)

    def state(self):
        return {**super().state(), "asked": self.asked}


@wrong("size_and_seen_count_what_was_learned")
class CountsBatches(Latest):
    seen = property(lambda self: min(self._seen, 3))


@wrong("indices_say_where_in_the_stream_each_point_was")
class GivesTheNewestFirst(Latest):
    dictionary = property(lambda self: self._X[::-1].copy())
    indices = property(lambda self: np.arange(self.seen - 1, self.seen - self.size - 1, -1))


@wrong("a_batch_is_its_samples_one_by_one")
class LearnsABatchBackwards(Latest):
    def learn(self, X, y):
        X, y = validation.samples(X, y, self._dimension)
        return super().learn(X[::-1], y[::-1])


@wrong("the_trace_has_what_was_predicted_before_learning")
class PredictsAfterLearning(Latest):
    def _step(self, x, y):
        rest = super()._step(x, y)[2:]
        return *self.predict(x), *rest


@wrong("the_cap_is_kept_at_all_times")
class IsLate(Latest):
    """Above the cap within a batch, and below it after."""

    def learn(self, X, y):
        records = super().learn(X, y).records
        records[10:20, 2] += 1
        return Trace(records)


@wrong("memory_does_not_grow_at_the_cap")
class Hoards(Latest):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._past = np.empty(0)

    def learn(self, X, y):
        trace = super().learn(X, y)
        self._past = np.append(self._past, y)
        return trace

    def state(self):
        return {**super().state(), "past": self._past.copy()}


@wrong("a_copy_goes_on_bit_for_bit")
class LeavesOutOfMemory(Latest):
    steps = 0

    def learn(self, X, y):
        self.steps += 1
        return super().learn(X, y + self.steps)


@wrong("a_copy_is_independent")
class CopiesNothing(Latest):
    def copy(self):
        return self


@wrong("bad_samples_are_refused_and_change_nothing")
class LearnsTheFirstOfABadBatch(Latest):
    def learn(self, X, y):
        try:
            return super().learn(X, y)
        except ValueError:
            super().learn(X[0], y[0])
            raise


@wrong("bad_queries_are_refused")
class AnswersAnything(Latest):
    def predict(self, X, latent=False):
        return super().predict(np.nan_to_num(X), latent)


@wrong("what_the_caller_gives_is_not_written_on")
class CentresInPlace(Latest):
    def learn(self, X, y):
        if np.size(y) > 1 and y.flags.writeable:
            y -= y.mean()
        return super().learn(X, y)


@wrong("the_caller_may_write_on_what_was_given")
class KeepsAView(Latest):
    def learn(self, X, y):
        trace = super().learn(X, y)
        if len(trace) > self.max_size:
            self._X = X[-self.max_size :]
        return trace


@wrong("the_caller_may_write_on_what_was_returned")
class GivesAView(Latest):
    dictionary = property(lambda self: self._X)


@wrong("other_layouts_and_types_of_numbers_will_do")
class WantsArrays(Latest):
    def predict(self, X, latent=False):
        return super().predict(X.astype(float), latent)


@wrong("a_fresh_model_does_the_same_again")
class IsUnpredictable(Latest):
    def _latent(self, X):
        mean, variance = super()._latent(X)
        return mean + 1e-9 * np.random.default_rng().random(), variance


@wrong("the_global_random_state_is_left_alone")
class UsesTheGlobalGenerator(Latest):
    def learn(self, X, y):
        np.random.random()  # noqa: NPY002
        return super().learn(X, y)


@wrong("repeated_inputs_do_no_harm")
class InvertsTheKernel(Latest):
    def _gram(self):
        return self.kernel(self._X)


@pytest.mark.parametrize("name", BROKEN)
def test_each_check_fails_for_a_broken_model(name):
    make = partial(BROKEN[name], *LATEST)
    check = next(check for check in checks_for(make) if check.__name__ == name)
    with pytest.raises(CheckFailure, match=rf"{BROKEN[name].__name__}.*{name}: "):
        check(make)


def test_a_failure_says_what_was_expected():
    with pytest.raises(CheckFailure) as failure:
        check_model(partial(ForgetsThePriorMean, *LATEST))
    message = str(failure.value)
    assert message.startswith("<ForgetsThePriorMean(kernel=RBF(")
    assert message.endswith("mean: expected 1.0 at [0], got 0.0; 12 of 12 differ")


def test_an_error_inside_a_check_is_a_failure_with_its_cause():
    class Raises(Latest):
        def predict(self, X, latent=False):
            raise ZeroDivisionError("by zero")

    with pytest.raises(CheckFailure, match="ZeroDivisionError: by zero") as failure:
        check_model(partial(Raises, *LATEST))
    assert isinstance(failure.value.__cause__, ZeroDivisionError)
