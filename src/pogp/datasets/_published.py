"""The paper's data sets: read from a folder, from the cache, or downloaded and checked."""

import gzip
import hashlib
import io
import os
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._dataset import Dataset


@dataclass(frozen=True)
class _Published:
    """A published data set: its citation and its files."""

    citation: str
    folder: str  # on raw.githubusercontent.com: owner/repository/commit/…
    files: tuple[str, ...]

    @property
    def urls(self) -> list[str]:
        return [f"https://raw.githubusercontent.com/{self.folder}/{file}" for file in self.files]


_POG = "Hrusikesha/Parsimonious-Online-Gaussian-Process/c35e4f57cfb107cb95691b01f0395855b53fbc5a"
_UCI = "treforevans/uci_datasets/f0737523712fe66a1640e4b980b927e8490b58eb/uci_datasets"
_BOSTON = "Boston housing, Harrison & Rubinfeld (1978)"
_ABALONE = "Abalone, Nash et al. (1994), UCI Machine Learning Repository, CC BY 4.0"
_KIN40K = "kin40k, Schwaighofer, after DELVE's kin family"
_SPLIT = "split of Koppel, Pradhan & Rajawat (2020), arXiv 2004.11094"

_REGISTRY = {
    "boston": _Published(f"{_BOSTON}; {_SPLIT}", _POG, ("data_boston_housing.mat",)),
    "abalone": _Published(f"{_ABALONE}; {_SPLIT}", _POG, ("data_abalone.mat",)),
    "kin40": _Published(f"part of {_KIN40K}; {_SPLIT}", _POG, ("data_kin40.mat",)),
    "kin40k": _Published(
        f"{_KIN40K}; first split of uci_datasets",
        _UCI,
        ("kin40k/data.csv.gz", "kin40k/test_mask.csv.gz"),
    ),
}
_SHA256 = {
    "data_boston_housing.mat": "0c2b76cdd62f0a2cff53307d6f0fcd32c8f960ceca21b14f763ad78535e916e5",
    "data_abalone.mat": "cf8ba27f9380d19504e499e605f5cd59f08694a61796536d27717a403e781ab6",
    "data_kin40.mat": "96f9945675d7d08897876156695df16be46374a92c1ec8c9266f26c6df7780e9",
    "kin40k/data.csv.gz": "9bee7f2a9f39aa61a015f239378368601fb3978c5bb9a96433e88a55d40883ba",
    "kin40k/test_mask.csv.gz": "d15fd645d0e81a9a17ce2d0b8dde470bb2efba4d5f417459965abe4b237e2aea",
}

_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_TIMEOUT = 30.0  # seconds


class DataUnavailable(RuntimeError):  # noqa: N818
    """A published data set is in none of the places it could come from."""


class DigestError(RuntimeError):
    """A downloaded file is not the file that was published."""


def load(name: str) -> Dataset:
    """Return a published data set.

    The data set is searched for in this order:

    1. `NAME.npz` in the folder that the environment variable `POGP_DATA` names;
    2. the same file in the cache: the folder `POGP_CACHE`, or else `$XDG_CACHE_HOME/pogp`, or
       else `~/.cache/pogp`;
    3. GitHub. A download is parsed only if its SHA-256 is that of the published file. It is then
       stored in the cache.

    An `.npz` file holds the arrays `x_train`, `y_train`, `x_test` and `y_test`.

    Parameters
    ----------
    name : {"boston", "abalone", "kin40", "kin40k"}
        The name of the data set.

    Raises
    ------
    DataUnavailable
        If the data set is in none of these places.
    DigestError
        If the download is not the published file.
    ValueError
        For an unknown name or an unusable `.npz` file.

    Examples
    --------
    >>> load("mnist")
    Traceback (most recent call last):
    ValueError: unknown data set 'mnist'; known are boston, abalone, kin40, kin40k
    """
    if name not in _REGISTRY:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(_REGISTRY)}")
    published = _REGISTRY[name]
    given = _given_path(name)
    if given is not None and given.is_file():
        return _read(name, given, f"{published.citation}; read from {given}")
    cached = _cache_folder() / f"{name}.npz"
    if cached.is_file():
        source = f"{published.citation}; {published.urls[0]}, cached in {cached}"
        return _read(name, cached, source)
    try:
        dataset = _download(name, published)
    except ConnectionError as error:
        raise DataUnavailable(_what_was_tried(name, given, cached, error)) from error
    _save(dataset, cached)
    return dataset


def _given_path(name: str) -> Path | None:
    folder = os.environ.get("POGP_DATA")
    return Path(folder).expanduser() / f"{name}.npz" if folder else None


def _cache_folder() -> Path:
    if folder := os.environ.get("POGP_CACHE"):
        return Path(folder).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pogp"


def _what_was_tried(name: str, given: Path | None, cached: Path, error: Exception) -> str:
    folder = f"{given}: no such file" if given else "not set"
    return (
        f"data set {name!r} is not available. Tried:\n"
        f"  the folder in POGP_DATA: {folder}\n"
        f"  the cache: {cached}: no such file\n"
        f"  download: {error}\n"
        f"Set POGP_DATA to a folder that holds {name}.npz with the arrays {', '.join(_ARRAYS)}; "
        f"or try again online; or use pogp.datasets.arm, which needs no data."
    )


def _read(name: str, path: Path, source: str) -> Dataset:
    """Read an `.npz`; whatever is wrong with it, the error names the file."""
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("not an .npz archive")
        with np.load(path, allow_pickle=False) as archive:
            if missing := [key for key in _ARRAYS if key not in archive]:
                raise ValueError(f"it lacks {', '.join(missing)}")
            return _dataset(name, archive, source)
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a usable data set: {error}") from error


def _download(name: str, published: _Published) -> Dataset:
    digests = [_SHA256[file] for file in published.files]
    contents = [_fetch(url, sha256) for url, sha256 in zip(published.urls, digests, strict=True)]
    parse = _parse_mat if published.files[0].endswith(".mat") else _parse_csv
    return _dataset(name, parse(*contents), f"{published.citation}; {published.urls[0]}")


def _fetch(url: str, sha256: str) -> bytes:
    """Return the bytes at `url`, once they are known to be the published ones."""
    import urllib.request  # slow to import, and only a download needs it
    from http.client import HTTPException

    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
            content: bytes = response.read()
    except (OSError, HTTPException) as error:
        raise ConnectionError(f"{url}: {error}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise DigestError(f"{url} has SHA-256 {digest}, expected {sha256}")
    return content


def _parse_mat(content: bytes) -> dict[str, ArrayLike]:
    """Take the arrays from the struct `data` of a MATLAB file, where `x_train` is `xtrain`."""
    stream: Any = io.BytesIO(content)  # loadmat reads streams too, but is typed for paths only
    import scipy.io  # slow to import, and only a download needs it

    struct = scipy.io.loadmat(stream)["data"]
    return {key: struct[key.replace("_", "")][0, 0] for key in _ARRAYS}


def _parse_csv(table: bytes, mask: bytes) -> dict[str, ArrayLike]:
    """Split a table whose last column is the target by the first column of a mask, 1 for test."""
    rows, masks = (
        np.loadtxt(io.BytesIO(gzip.decompress(content)), delimiter=",", ndmin=2)
        for content in (table, mask)
    )
    test = masks[:, 0] == 1
    train = ~test
    return {
        "x_train": rows[train, :-1],
        "y_train": rows[train, -1],
        "x_test": rows[test, :-1],
        "y_test": rows[test, -1],
    }


def _dataset(name: str, arrays: Mapping[str, ArrayLike], source: str) -> Dataset:
    """Make a data set of float64 arrays; targets may come as a column, as MATLAB has them."""
    x_train, y_train, x_test, y_test = (
        np.ascontiguousarray(arrays[key], dtype=np.float64) for key in _ARRAYS
    )
    y_train, y_test = (y[:, 0] if y.shape[1:] == (1,) else y for y in (y_train, y_test))
    return Dataset(name, x_train, y_train, x_test, y_test, source)


def _save(dataset: Dataset, path: Path) -> None:
    """Write the arrays to `path`, whole or not at all."""
    arrays = {key: getattr(dataset, key) for key in _ARRAYS}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # On the same file system, so that the last step is one atomic rename.
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            whole = Path(scratch) / path.name
            np.savez_compressed(whole, **arrays)
            whole.replace(path)
    except OSError as error:
        # The data are there: a read-only cache is no reason to fail.
        warnings.warn(f"{dataset.name} could not be kept in the cache: {error}", stacklevel=3)
