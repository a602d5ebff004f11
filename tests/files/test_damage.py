"""Damaged files are refused, by FormatError and nothing else, or are models that work."""

import copy
import os
import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import pogp
from pogp.files import container

from ..golden.make import state
from .test_container import sealed
from .test_persistence import CURRENT, golden_of, loaded


def overwrite(path: Path, content: bytes) -> None:
    """Put this content in the file; much faster than to truncate it first."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, content)
    os.ftruncate(descriptor, len(content))
    os.close(descriptor)


def test_ten_thousand_damages_are_noticed(tmp_path: Path) -> None:
    random, path = Random(0), tmp_path / "model.pogp"
    contents = [golden.read_bytes() for golden in CURRENT]
    for _ in range(10_000):
        good = random.choice(contents)
        place = random.randrange(len(good))
        match random.choice(["flip", "truncate", "insert"]):
            case "flip":
                flipped = good[place] ^ random.randrange(1, 256)
                damaged = good[:place] + bytes([flipped]) + good[place + 1 :]
            case "truncate":
                damaged = good[:place]
            case "insert":
                inserted = random.randbytes(random.randrange(1, 20))
                damaged = good[:place] + inserted + good[place:]
        overwrite(path, damaged)
        with pytest.raises(pogp.FormatError):
            pogp.load(path)


NONSENSE: list[Any] = [
    *(None, True, "text", [], {}, [[]], {"kind": "RBF"}, {"kind": "Sum", "left": {}, "right": {}}),
    *(-1, 0, 1.5, 2**40, 2**70, -(2**70), 10**400, 1e308, 1e-320, [1e308, 1e308]),
    *(float("nan"), float("inf"), float("-inf")),
]


def places(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every way into a header, to its branches and to its leaves."""
    inside = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else inside:
        yield (*so_far, key)
        yield from places(item, (*so_far, key))


def changed_header(header: dict[str, Any], random: Random) -> dict[str, Any]:
    """A header with something missing, something more, or something else in its place."""
    changed: Any = copy.deepcopy(header)
    *way, last = random.choice(list(places(header)))
    part = changed
    for key in way:
        part = part[key]
    match random.choice(["replace", "replace", "replace", "remove", "add"]):
        case "replace":
            part[last] = random.choice(NONSENSE)
        case "remove":
            del part[last]
        case "add":
            changed[random.choice(["arguments", "state"])]["more"] = random.choice(NONSENSE)
    return changed


def changed_array(array: Any, random: Random) -> Any:
    """An array of another shape, of another kind, or of numbers that cannot be."""
    options = [array[:1], array[:-1], np.concatenate([array, array]), array[None], np.ones(())]
    options += [array.astype(kind) for kind in (np.int64, np.float64, bool)]
    options += [-array, 0 * array, np.zeros(0), np.zeros((0, 2**30)), np.zeros((len(array), 0))]
    if array.dtype == np.float64:
        options += [np.full(array.shape, value) for value in (np.nan, np.inf, 1e308, -1e308)]
    if array.dtype == np.int64:
        options += [np.full(array.shape, value) for value in (2**63 - 1, -(2**63))]
    return random.choice(options)


def resealed(header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """A file of this content whose checksum holds."""
    table, payload = [], b""
    for name, array in sorted(arrays.items()):
        payload += bytes(-len(payload) % 64)
        place = {"offset": len(payload), "shape": array.shape}
        table.append({"name": name, "dtype": array.dtype.str, "order": "C", **place})
        payload += array.tobytes()
    return sealed({"header": header, "arrays": table}, payload)


@cache
def content_of(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    return container.read(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.stem)
def test_invalid_content_with_a_valid_checksum_is_refused(path: Path, tmp_path: Path) -> None:
    random, target, golden = Random(path.stem), tmp_path / "model.pogp", golden_of(path)
    accepted = 0
    for _ in range(50):
        header, arrays = content_of(path)
        if random.random() < 0.6 or not arrays:
            header = changed_header(header, random)
        else:
            name = random.choice(sorted(arrays))
            arrays = arrays | {name: changed_array(arrays[name], random)}
        overwrite(target, resealed(header, arrays))
        try:
            model = loaded(target, golden)
        except pogp.FormatError:
            continue
        except ValueError:
            if not golden.code:  # with which it would say that what is supplied does not fit
                raise
            continue
        accepted += 1  # another argument or other numbers, as good as any
        if model.size:
            mean, variance = model.predict(model.dictionary)
            assert np.isfinite(mean).all()
            assert (variance >= 0).all()
    assert accepted < 25


RETAINED = [
    path for path in CURRENT if path.stem in ("pog", "pog-little-noise", "random", "window")
]
retained = pytest.mark.parametrize("path", RETAINED, ids=lambda path: path.stem)


@retained
@pytest.mark.parametrize("name", ["gram", "precision"])
@pytest.mark.parametrize("change", [np.negative, np.zeros_like, lambda part: 2.0 * part])
def test_matrices_that_contradict_each_other_are_refused(
    path: Path, name: str, change: Any, tmp_path: Path
) -> None:
    header, arrays = content_of(path)
    target = tmp_path / "model.pogp"
    overwrite(target, resealed(header, arrays | {name: change(arrays[name])}))
    with pytest.raises(pogp.FormatError, match=name):
        loaded(target, golden_of(path))


@retained
@pytest.mark.parametrize("seen", [2**63 - 1, 2**63 - 2, 2**53 + 1, 3, 0, -1])
def test_a_number_of_samples_that_cannot_be_is_refused(
    path: Path, seen: int, tmp_path: Path
) -> None:
    header, arrays = content_of(path)
    target = tmp_path / "model.pogp"
    overwrite(target, resealed(header | {"state": header["state"] | {"seen": seen}}, arrays))
    with pytest.raises(pogp.FormatError, match="seen"):
        loaded(target, golden_of(path))


@retained
@pytest.mark.parametrize("arrival", [-1, 0, 2**62])
def test_positions_that_cannot_be_are_refused(path: Path, arrival: int, tmp_path: Path) -> None:
    header, arrays = content_of(path)
    arrivals = np.full_like(arrays["arrivals"], arrival)
    overwrite(tmp_path / "model.pogp", resealed(header, arrays | {"arrivals": arrivals}))
    with pytest.raises(pogp.FormatError):
        loaded(tmp_path / "model.pogp", golden_of(path))


def test_resealing_is_no_damage(tmp_path: Path) -> None:
    for path in CURRENT:
        overwrite(tmp_path / "model.pogp", resealed(*content_of(path)))
        assert state(loaded(tmp_path / "model.pogp", golden_of(path)))


def test_no_file_makes_its_reader_allocate_much(tmp_path: Path) -> None:
    path = tmp_path / "model.pogp"
    tracemalloc.start()
    try:
        for golden in (path for path in CURRENT if path.stem in ("pog", "absorbing-outputs")):
            header, arrays = content_of(golden)
            for name in ("inputs", "weights"):
                for width in (2**12 + 1, 2**14, 2**20, 2**30):
                    overwrite(path, resealed(header, arrays | {name: np.empty((0, width))}))
                    with pytest.raises(pogp.FormatError):
                        pogp.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30e6
