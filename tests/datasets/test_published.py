"""Published data sets: from a folder, from the cache, or downloaded and checked."""

import gzip
import hashlib
import http.client
import io
import os
import re
import urllib.error
from email.message import Message
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from pogp import datasets
from pogp.datasets import _published

from .test_datasets import ARRAYS, PUBLISHED, assert_same_arrays, make

# ---- published sets, from a web that the test holds


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """No folder of data, an empty cache."""
    monkeypatch.delenv("POGP_DATA", raising=False)
    monkeypatch.setenv("POGP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def web(monkeypatch, cache):
    """A web that is empty at first: URL to bytes."""
    pages = {}

    def urlopen(url, *, timeout):
        assert timeout > 0
        if url not in pages:
            raise urllib.error.URLError("no route to host")
        return io.BytesIO(pages[url])

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return pages


def publish(web, monkeypatch, name, contents):
    """Put the files of a data set on the web, with the digests that go with them."""
    published = _published._REGISTRY[name]
    for file, url, content in zip(published.files, published.urls, contents, strict=True):
        web[url] = content
        digest = hashlib.sha256(content).hexdigest()
        monkeypatch.setitem(_published._SHA256, file, digest)


def mat_file(dataset):
    """Return the data set as the paper's authors store theirs: a struct, the targets columns."""
    struct = {key.replace("_", ""): getattr(dataset, key) for key in ARRAYS}
    stream = io.BytesIO()
    scipy.io.savemat(stream, {"data": struct}, oned_as="column")
    return stream.getvalue()


def csv_files(dataset):
    """Return the data set as table and mask; test rows stand among the training rows."""
    train = np.column_stack((dataset.x_train, dataset.y_train))
    test = np.column_stack((dataset.x_test, dataset.y_test))
    rows = np.concatenate((train[:1], test[:1], train[1:], test[1:]))
    mask = np.zeros((len(rows), 10), dtype=int)
    mask[[1, *range(len(train) + 1, len(rows))], 0] = 1
    mask[::2, 1:] = 1
    return [gzip_csv(rows), gzip_csv(mask)]


def gzip_csv(table):
    return gzip.compress("\n".join(",".join(map(repr, row)) for row in table.tolist()).encode())


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def whole(**changes):
    dataset = make()
    return npz(**({key: getattr(dataset, key) for key in ARRAYS} | changes))


def with_a_flipped_bit(content):
    """Return an archive with one bit of its first array changed."""
    at = content.index(np.arange(12.0).tobytes()) + 20
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def save(folder, name, dataset):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.npz").write_bytes(whole(**{key: getattr(dataset, key) for key in ARRAYS}))


def test_every_file_of_the_registry_has_a_digest_and_a_commit():
    files = [file for entry in _published._REGISTRY.values() for file in entry.files]
    assert set(files) == set(_published._SHA256)
    assert all(len(digest) == 64 for digest in _published._SHA256.values())
    for entry in _published._REGISTRY.values():
        commit = entry.folder.split("/")[2]
        assert len(bytes.fromhex(commit)) == 20
    assert set(_published._REGISTRY) == set(PUBLISHED)


def test_a_mat_file_is_downloaded_once_and_then_cached(web, monkeypatch, cache):
    expected = make()
    publish(web, monkeypatch, "kin40", [mat_file(expected)])
    downloaded = datasets.load("kin40")
    web.clear()
    cached = datasets.load("kin40")
    for dataset in (downloaded, cached):
        assert dataset.name == "kin40"
        assert "Schwaighofer" in dataset.source
        assert "github" in dataset.source
        assert_same_arrays(dataset, expected)
    assert [path.name for path in cache.iterdir()] == ["kin40.npz"]


def test_a_table_is_split_by_the_first_column_of_its_mask(web, monkeypatch):
    rng = np.random.default_rng(0)
    expected = make(x_train=rng.normal(size=(4, 3)), y_test=rng.normal(size=2))
    publish(web, monkeypatch, "kin40k", csv_files(expected))
    assert_same_arrays(datasets.load("kin40k"), expected)


def test_the_folder_comes_before_the_cache_and_the_web(web, monkeypatch, cache, tmp_path):
    in_folder, in_cache = make(), make(y_train=np.full(4, 7.0))
    save(tmp_path / "data", "boston", in_folder)
    save(cache, "boston", in_cache)
    assert_same_arrays(datasets.load("boston"), in_cache)
    monkeypatch.setenv("POGP_DATA", str(tmp_path / "data"))
    dataset = datasets.load("boston")
    assert_same_arrays(dataset, in_folder)
    assert "Harrison" in dataset.source
    assert dataset.source.endswith(f"read from {tmp_path / 'data' / 'boston.npz'}")


def test_targets_may_be_a_column_and_arrays_in_any_layout_and_type(monkeypatch, tmp_path):
    expected = make()
    changes = {
        "x_train": np.asfortranarray(expected.x_train),
        "y_train": expected.y_train[:, None],
        "y_test": expected.y_test.astype(np.int32),
    }
    (tmp_path / "boston.npz").write_bytes(whole(**changes))
    monkeypatch.setenv("POGP_DATA", str(tmp_path))
    dataset = datasets.load("boston")
    assert_same_arrays(dataset, expected)
    for key in ARRAYS:
        assert getattr(dataset, key).dtype == np.float64
        assert getattr(dataset, key).flags.c_contiguous


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"POGP_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/pogp"),
        ({"HOME": "/c"}, "/c/.cache/pogp"),
    ],
)
def test_where_the_cache_is(monkeypatch, variables, expected):
    for variable in ("POGP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert _published._cache_folder() == Path(expected)


def test_offline_the_error_says_what_was_tried_and_what_to_do(web, monkeypatch, cache, tmp_path):
    with pytest.raises(datasets.DataUnavailable) as caught:
        datasets.load("abalone")
    message = str(caught.value)
    assert "POGP_DATA: not set" in message
    assert f"{cache / 'abalone.npz'}: no such file" in message
    assert "https://raw.githubusercontent.com/" in message
    assert "no route to host" in message
    assert "Set POGP_DATA to a folder that holds abalone.npz" in message
    assert "x_train, y_train, x_test, y_test" in message
    assert "datasets.arm" in message
    monkeypatch.setenv("POGP_DATA", str(tmp_path))
    with pytest.raises(datasets.DataUnavailable, match=f"{tmp_path}/abalone.npz: no such file"):
        datasets.load("abalone")


@pytest.mark.parametrize(
    "failure",
    [
        urllib.error.HTTPError("https://…", 404, "Not Found", Message(), io.BytesIO()),
        TimeoutError("timed out"),
        http.client.IncompleteRead(b"half"),
    ],
)
def test_however_the_download_fails_the_data_are_unavailable(monkeypatch, cache, failure):
    def urlopen(url, *, timeout):
        raise failure

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    with pytest.raises(datasets.DataUnavailable, match=re.escape(f"data_kin40.mat: {failure}")):
        datasets.load("kin40")


def test_a_wrong_digest_stops_before_anything_is_parsed(web, monkeypatch, cache):
    publish(web, monkeypatch, "boston", [mat_file(make())])
    (url,) = web
    expected = _published._SHA256["data_boston_housing.mat"]
    web[url] += b"tampered"
    actual = hashlib.sha256(web[url]).hexdigest()

    def parse(content):
        raise AssertionError("parsed before it was checked")

    monkeypatch.setattr(_published, "_parse_mat", parse)
    with pytest.raises(datasets.DigestError, match=f"{actual}, expected {expected}"):
        datasets.load("boston")
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_costs_a_warning_only(web, monkeypatch, cache):
    cache.write_text("a file where the folder should be")
    publish(web, monkeypatch, "boston", [mat_file(make())])
    with pytest.warns(UserWarning, match="boston could not be kept in the cache"):
        dataset = datasets.load("boston")
    assert_same_arrays(dataset, make())


def test_a_write_that_fails_leaves_no_trace(web, monkeypatch, cache):
    def savez_compressed(path, **arrays):
        Path(path).write_bytes(b"half")
        raise OSError("no space left on device")

    publish(web, monkeypatch, "boston", [mat_file(make())])
    monkeypatch.setattr("numpy.savez_compressed", savez_compressed)
    with pytest.warns(UserWarning, match="no space left on device"):
        datasets.load("boston")
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an .npz archive"),
        (b"not a zip file", "not an .npz archive"),
        (whole()[:-50], "not an .npz archive"),
        (with_a_flipped_bit(whole()), "Bad CRC-32"),
        (npz(x_train=np.ones((2, 2)), y_train=np.ones(2)), "it lacks x_test, y_test"),
        (whole(y_test=np.ones(5)), r"y_test must have shape \(2,\)"),
        (whole(x_train=np.full((4, 3), np.nan)), "x_train must be finite"),
        (whole(y_train=np.array([{}] * 4, dtype=object)), "allow_pickle=False"),
        (whole(y_train=np.array(["a"] * 4)), "could not convert string to float"),
    ],
)
def test_an_unusable_npz_is_an_error_with_its_path(monkeypatch, tmp_path, content, message):
    path = tmp_path / "boston.npz"
    path.write_bytes(content)
    monkeypatch.setenv("POGP_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=message) as caught:
        datasets.load("boston")
    assert str(caught.value).startswith(f"{path} is not a usable data set: ")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="'mnist'; known are boston, abalone, kin40, kin40k"):
        datasets.load("mnist")


# ---- published sets, the real ones


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_real_data_are_what_the_paper_used(name):
    folder = os.environ.get("POGP_DATA")
    if not folder:
        pytest.skip("POGP_DATA is not set")
    if not (Path(folder) / f"{name}.npz").is_file():
        pytest.skip(f"POGP_DATA holds no {name}.npz")
    dataset = datasets.load(name)
    n, m, p = PUBLISHED[name]
    assert dataset.x_train.shape == (n, p)
    assert dataset.x_test.shape == (m, p)
    y = np.concatenate((dataset.y_train, dataset.y_test))
    deviation = 3.224 if name == "abalone" else 1.0
    assert y.mean() == pytest.approx(0, abs=0.02)
    assert y.std() == pytest.approx(deviation, rel=0.02)
    x = np.concatenate((dataset.x_train, dataset.x_test))
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=0.04)
    np.testing.assert_allclose(x.std(axis=0), 1, atol=0.07)
