"""The peers, as data: who they are, with which settings, and what they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from shutil import which
from typing import Any, cast

import pogp
from benchmarks.peers.adapters import Adapter, Setting


@dataclass(frozen=True)
class Peer:
    """One row of every table."""

    label: str
    make: str
    """Module in `adapters` and what to call there with a `Setting`."""
    settings: str
    """What was set, in words; everything else is the peer's default."""
    family: str
    """Whose colour it has, and whose package it is."""
    packages: tuple[str, ...] = ()
    """Distributions that have to be installed."""
    options: Mapping[str, Any] = field(default_factory=dict)
    chance: bool = True
    """Whether the result depends on a seed."""
    gives: str = ""
    """What it has that this package has not."""
    needs_java: bool = False
    variant: bool = False
    """Whether it is OnlineGP with other settings: shown, but not ranked."""

    def adapter(self, setting: Setting) -> Adapter:
        """Import the peer and make it ready for a stream."""
        module, _, name = self.make.partition(":")
        make = getattr(import_module(f"benchmarks.peers.adapters.{module}"), name)
        return cast(Adapter, partial(make, **self.options)(setting))

    @property
    def missing(self) -> str | None:
        """Why the peer cannot be run here; None if it can."""
        for package in self.packages:
            try:
                version(package)
            except PackageNotFoundError:
                return f"the package {package} is not installed"
        if self.needs_java and which("java") is None:
            return "there is no Java"
        return None

    @property
    def versions(self) -> dict[str, str]:
        """The versions of its packages."""
        own = {"pogp": pogp.__version__} if self.family == "pogp" else {}
        return own | {package: version(package) for package in self.packages}


_ours = partial(Peer, family="pogp")
_river = partial(Peer, family="River", packages=("river",))
_sklearn = partial(Peer, family="scikit-learn", packages=("scikit-learn",))
_torch = partial(Peer, family="GPyTorch", packages=("gpytorch", "torch"))
_variant = partial(_ours, make="ours:online", variant=True)
_ONCE = "scaled and tuned once on the first slice, RBF with a length-scale per input"

PEERS: dict[str, Peer] = {
    "online": _ours("OnlineGP", "ours:online", "defaults: at most 300 points"),
    "online-100": _variant(
        "OnlineGP, 100 points", settings="`max_size=100`", options={"max_size": 100}
    ),
    "online-600": _variant(
        "OnlineGP, 600 points", settings="`max_size=600`", options={"max_size": 600}
    ),
    "online-plain": _variant(
        "OnlineGP, not robust", settings="`robust=False`", options={"robust": False}
    ),
    "absorbing": _ours(
        "AbsorbingPOG",
        "ours:tuned_once",
        f"`max_size=300`; {_ONCE}",
        options={"method": "absorbing", "budget": None, "max_size": 300},
    ),
    "pog": _ours(
        "POG",
        "ours:tuned_once",
        f"the paper's: `budget=1e-5`, one removal per sample, `max_size=300`; {_ONCE}",
        options={"method": "pog", "budget": 1e-5, "max_removals": 1, "max_size": 300},
    ),
    "sogp": _ours(
        "SOGP",
        "ours:tuned_once",
        f"`max_size=300`; {_ONCE}",
        options={"method": "sogp", "max_size": 300},
    ),
    "streaming-vfe": _ours(
        "StreamingVFE",
        "ours:tuned_once",
        f"100 inducing inputs, mini-batches of 50; {_ONCE}",
        options={"method": "streaming-vfe", "size": 100, "batch": 50},
    ),
    "river-linear": _river(
        "River BayesianLinearRegression",
        "river:bayesian_linear",
        "`StandardScaler`, `TargetStandardScaler`",
        chance=False,
        gives="features that come and go, at next to no cost",
    ),
    "river-knn": _river(
        "River KNNRegressor",
        "river:neighbours",
        "`StandardScaler`; 5 neighbours by SWINN in a window of 1,000",
        gives="any distance of your own, no smoothness assumed",
    ),
    "river-tree": _river(
        "River HoeffdingAdaptiveTree",
        "river:adaptive_tree",
        "`StandardScaler`",
        gives="a drift detector in each node, a tree one can read, classification",
    ),
    "river-forest": _river(
        "River ARFRegressor",
        "river:adaptive_forest",
        "`StandardScaler`; 10 trees",
        gives="many irrelevant inputs, drift by replacing trees, classification",
    ),
    "lightgbm": Peer(
        "LightGBM, refitted",
        "boosting:LightGBM",
        "refitted to all samples after 100, 200, 500, 1,000 and every 1,000 samples; one thread",
        family="LightGBM",
        packages=("lightgbm",),
        chance=False,
        gives="functions that are not smooth, thousands of inputs, millions of rows, classes",
    ),
    "sklearn-gp": _sklearn(
        "scikit-learn GP, refitted",
        "scikit:GaussianProcess",
        "`StandardScaler`, `normalize_y`, RBF with a length-scale per input and white noise; "
        "refitted to the latest 500 samples after 100, 200, 500, 1,000 and every 1,000 samples",
        chance=False,
        gives="exact on what it keeps, kernels of any composition tuned at each fit",
    ),
    "sklearn-sgd": _sklearn(
        "scikit-learn SGD, Nyström",
        "scikit:NystromSGD",
        "`StandardScaler` and 100 `Nystroem` features of the first slice, `SGDRegressor`",
        gives="time per sample that grows with the number of features, not with its square",
    ),
    "gpytorch-fantasies": _torch(
        "GPyTorch, fantasies",
        "gpytorch:Fantasies",
        "exact GP, RBF with a length-scale per input, 50 steps of Adam on the first slice; "
        "`get_fantasy_model` for each sample",
        chance=False,
        gives="GPUs, automatic differentiation, deep kernels, any likelihood",
    ),
    "gpytorch-variational": _torch(
        "GPyTorch, streaming variational",
        "gpytorch:StreamingVariational",
        "100 inducing points, 50 passes over the first slice; 10 steps of Adam (0.01) on each 32 "
        "samples",
        gives="GPUs, deep kernels, classification and counts",
    ),
    "goppy": Peer(
        "GopPy",
        "goppy:GopPy",
        "kernel and noise of its example (1, 0.1), in units of the first slice",
        family="GopPy",
        packages=("goppy",),
        chance=False,
        gives="an exact GP in two files of NumPy that one can read in an hour",
    ),
    "soknl": Peer(
        "CapyMOA SOKNL",
        "capymoa:NearestLeaves",
        "defaults: 100 trees",
        family="CapyMOA",
        packages=("capymoa",),
        gives="the methods of MOA, classification, drift detectors, semi-supervised streams",
        needs_java=True,
    ),
    "last": Peer("last value", "simple:LastValue", "–", family="simple", chance=False),
    "mean": Peer("running mean", "simple:RunningMean", "–", family="simple", chance=False),
}
OURS = tuple(name for name, peer in PEERS.items() if peer.family == "pogp")
