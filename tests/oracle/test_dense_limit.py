"""With room for every sample and nothing approximated, every method is the dense GP."""

import inspect

import numpy as np
import pytest

import pogp
from pogp import models

from ..conftest import smooth_2d
from ..pairwise import pairwise

N, MEAN = 90, 0.4
ROUGH, SMOOTH = pogp.Matern32((0.5, 0.6), 1.2), pogp.RBF((0.5, 0.6), 1.2)
BETWEEN = pogp.RBF((0.2, 0.25), 1.2)
X, Y = smooth_2d(N, seed=3)
QUERIES = np.vstack([X[::9], np.random.default_rng(4).uniform(-1.5, 1.5, (30, 2))])


def online(kind, *arguments, parts=1, **options):
    """A model that learns the stream in so many parts."""

    def make(kernel, noise):
        model = kind(kernel, noise, *arguments, mean=MEAN, **options)
        for rows in np.array_split(np.arange(N), parts):
            model.learn(X[rows], Y[rows])
        return model

    return make


def named(kernel, noise, method, **options):
    return pogp.SelfTuning(method, kernel=kernel, noise=noise, **options)


def offline(kind, **fitting):
    return lambda kernel, noise: kind(kernel, noise, N, mean=MEAN).fit(X, Y, **fitting)


RETAINING = {
    "POG": online(pogp.POG, None),
    "POG, everywhere": online(pogp.POG, None, view="everywhere"),
    "RandomSubset": online(pogp.RandomSubset, N),
    "SlidingWindow": online(pogp.SlidingWindow, N),
}
ABSORBING = {
    "SOGP": online(pogp.SOGP, N, tolerance=0.0),
    "McIntire": online(pogp.McIntire, 0.0, tolerance=0.0),
    "KRLSALD": online(pogp.KRLSALD, 0.0),
    "KRLST": online(pogp.KRLST, N, forgetting=1.0, tolerance=0.0),
    "AbsorbingPOG": online(pogp.AbsorbingPOG, None, share=0.0),
    "AbsorbingPOG, marginalising": online(
        pogp.AbsorbingPOG, None, share=0.0, projection="marginalise"
    ),
    "SelfTuning": online(named, "absorbing", budget=None, calibrate=False, share=0.0),
}
INDUCING = {
    "SPGP": offline(pogp.SPGP, optimise=False),
    "VFE": offline(pogp.VFE, optimise=False),
    "StreamingVFE, one batch": online(pogp.StreamingVFE, N, batch=N),
    "StreamingVFE, several batches": online(pogp.StreamingVFE, N, batch=N, parts=4),
    "StreamingVFE, more room": online(pogp.StreamingVFE, 2 * N, batch=20),
    "StreamingVFE, inputs given": online(pogp.StreamingVFE, N, batch=40, inputs=X),
    "SmolaBartlett": offline(pogp.SmolaBartlett),
    "KeerthiChu": offline(pogp.KeerthiChu),
    "Seeger": offline(pogp.Seeger),
}
METHODS = RETAINING | ABSORBING | INDUCING


@pairwise(noise=[0.1, 0.01], kernel=[ROUGH, BETWEEN, SMOOTH], method=list(METHODS))
def test_with_room_for_all_it_is_the_dense_gp(method, kernel, noise):
    model, dense = METHODS[method](kernel, noise), online(pogp.DenseGP)(kernel, noise)
    assert type(model).__name__ in method
    assert model.seen == N
    assert model.size == N or (kernel is SMOOTH and method not in RETAINING)
    # Inducing ones have a nugget on K, 1e-10 of κ₀. It counts for more the nearer K is to being
    # singular, and the less noise there is beside it; greedy selection leaves out what it makes
    # redundant. Absorbing ones have no point that leaves less than 1e-8 of κ₀ open.
    tolerance = 1e-7 if kernel is BETWEEN and method in INDUCING else 1e-8
    if kernel is SMOOTH and method not in RETAINING:
        tolerance = 2e-5 if method in INDUCING else 2e-4
    np.testing.assert_allclose(model.predict(QUERIES), dense.predict(QUERIES), atol=tolerance)
    joint = model.covariance(QUERIES, latent=True)
    np.testing.assert_allclose(joint, dense.covariance(QUERIES, latent=True), atol=tolerance)


@pytest.mark.parametrize("method", RETAINING | ABSORBING)
def test_on_either_core(backend, method):
    model, dense = METHODS[method](BETWEEN, 0.01), online(pogp.DenseGP)(BETWEEN, 0.01)
    np.testing.assert_allclose(model.predict(QUERIES), dense.predict(QUERIES), atol=1e-8)


def test_no_method_is_left_out():
    exported = {getattr(models, name) for name in models.__all__}
    concrete = {kind for kind in exported if not inspect.isabstract(kind)}
    made = {type(make(ROUGH, 0.1)) for make in METHODS.values()}
    assert made == concrete - {pogp.DenseGP, pogp.OnlineGP}  # which has no fixed prior
