"""The simulated streams against what they claim to be; loading against a web of the test's own."""

import gzip
import hashlib
import http.client
import io
import os
import pickle
import re
import urllib.error
from dataclasses import FrozenInstanceError, replace
from email.message import Message
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from pogp import datasets, metrics
from pogp.datasets import _published

ARRAYS = ("x_train", "y_train", "x_test", "y_test")
SIMULATED = [datasets.arm, datasets.gaussian, datasets.chi_square]
PUBLISHED = {  # training samples, test samples, inputs
    "boston": (455, 51, 13),
    "abalone": (3133, 1044, 8),
    "kin40": (4000, 200, 8),
    "kin40k": (36000, 4000, 8),
}


# ---- Dataset


def make(**changes):
    """Return a small data set, with some of its fields changed."""
    fields = {
        "name": "small",
        "x_train": np.arange(12.0).reshape(4, 3),
        "y_train": np.arange(4.0),
        "x_test": np.arange(6.0).reshape(2, 3),
        "y_test": np.arange(2.0),
        "source": "made up",
    }
    return datasets.Dataset(**(fields | changes))


def test_repr_is_short():
    assert repr(make()) == "Dataset(small: 4 training and 2 test samples, 3 inputs)"


def test_a_dataset_is_frozen_and_pickles():
    dataset = make()
    with pytest.raises(FrozenInstanceError):
        dataset.name = "other"
    assert_same_arrays(pickle.loads(pickle.dumps(dataset)), dataset)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_train": np.ones(4)}, r"x_train must have shape \(n, p\).*got \(4,\)"),
        ({"x_test": np.ones((0, 3)), "y_test": np.ones(0)}, r"x_test must .*got \(0, 3\)"),
        ({"y_train": np.ones(3)}, r"y_train must have shape \(4,\) like x_train, got \(3,\)"),
        ({"y_test": np.ones((2, 1))}, r"y_test must have shape \(2,\).*got \(2, 1\)"),
        ({"x_test": np.ones((2, 5))}, "x_test must have 3 inputs like x_train, got 5"),
        ({"y_test": np.array([1.0, np.nan])}, "y_test must be finite"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


# ---- simulated streams


def assert_same_arrays(one, other):
    for key in ARRAYS:
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key), err_msg=key)


@pytest.mark.parametrize("simulate", SIMULATED)
def test_a_longer_stream_begins_with_the_shorter(simulate):
    for short, long in ((1, 7), (100, 201)):
        begun, continued = simulate(short, seed=3), simulate(long, seed=3)
        head = replace(
            continued, x_train=continued.x_train[:short], y_train=continued.y_train[:short]
        )
        assert_same_arrays(head, begun)


@pytest.mark.parametrize("simulate", SIMULATED)
def test_the_seed_decides_and_the_test_set_is_apart(simulate):
    dataset = simulate(50, seed=1)
    assert_same_arrays(simulate(50, seed=1), dataset)
    assert not np.isin(simulate(50, seed=2).x_train, dataset.x_train).any()
    assert not np.isin(dataset.x_test, dataset.x_train).any()


@pytest.mark.parametrize("simulate", SIMULATED)
def test_sizes_and_types(simulate):
    dataset = simulate(20, n_test=30)
    assert dataset.x_train.shape[0] == 20
    assert dataset.x_test.shape[0] == 30
    assert simulate(20).x_test.shape[0] == 1000
    for key in ARRAYS:
        array = getattr(dataset, key)
        assert array.dtype == np.float64
        assert array.flags.c_contiguous


@pytest.mark.parametrize("simulate", SIMULATED)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be an integer ≥ 1, got 0"),
        ({"n": 2.5}, r"n must be an integer ≥ 1, got 2\.5"),
        ({"n": 5, "seed": -1}, "seed must be an integer ≥ 0, got -1"),
        ({"n": 5, "n_test": 0}, "n_test must be an integer ≥ 1, got 0"),
    ],
)
def test_bad_sizes_and_seeds_are_refused(simulate, arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate(**arguments)


def slow_distance(angles):
    """Distance of the hand of one arm from the target, by the product of eight 4×4 matrices."""
    pose = np.eye(4)
    for joint, theta in enumerate(angles):
        alpha = np.pi / 2 if joint % 2 == 0 else -np.pi / 2
        ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
        pose = pose @ np.array(
            [
                [ct, -st * ca, st * sa, ct / 8],
                [st, ct * ca, -ct * sa, st / 8],
                [0, sa, ca, 0],
                [0, 0, 0, 1],
            ]
        )
    return np.linalg.norm(pose[:3, 3] - np.array([0.1, 0.1, 0.1]))


def test_the_arm_is_the_denavit_hartenberg_product():
    dataset = datasets.arm(50, n_test=1, noise=0.0)
    angles = dataset.x_train * np.radians(110) / np.sqrt(3)
    expected = [(slow_distance(row) - 0.5315) / 0.1727 for row in angles]
    np.testing.assert_allclose(dataset.y_train, expected, rtol=0, atol=1e-13)


def test_the_arm_is_standardised_by_constants():
    dataset = datasets.arm(200_000, noise=0.0)
    assert np.abs(dataset.x_train).max() <= np.sqrt(3)
    np.testing.assert_allclose(dataset.x_train.mean(axis=0), 0, atol=0.01)
    np.testing.assert_allclose(dataset.x_train.var(axis=0), 1, atol=0.01)
    assert dataset.y_train.mean() == pytest.approx(0, abs=0.01)
    assert dataset.y_train.var() == pytest.approx(1, abs=0.01)


def test_the_arms_noise_is_a_variance():
    clean, noisy = datasets.arm(20_000, noise=0.0), datasets.arm(20_000, noise=0.25)
    np.testing.assert_array_equal(clean.x_train, noisy.x_train)
    for part in ("y_train", "y_test"):
        error = getattr(noisy, part) - getattr(clean, part)
        tolerance = 4 * 0.25 * np.sqrt(2 / len(error))
        assert error.var() == pytest.approx(0.25, abs=tolerance), part


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf])
def test_a_bad_noise_is_refused(noise):
    with pytest.raises(ValueError, match=f"noise must be a finite variance ≥ 0, got {noise}"):
        datasets.arm(5, noise=noise)


def test_a_gaussian_process_learns_the_arm_as_it_would_kin40k():
    dataset = datasets.arm(1000)

    def score(n):
        kernel = 1.3 * RBF([1.9, 2.0, 1.8, 1.7, 1.6, 1.8, 2.0, 2.5])
        model = GaussianProcessRegressor(kernel, alpha=0.015, optimizer=None)
        mean = model.fit(dataset.x_train[:n], dataset.y_train[:n]).predict(dataset.x_test)
        return metrics.smse(dataset.y_test, mean, dataset.y_train.var())

    few, some, many = score(250), score(500), score(1000)
    assert 0.5 > few > some > many
    assert 0.05 < many < 0.15


def test_the_arm_is_not_linear():
    dataset = datasets.arm(2000)
    design = np.column_stack((dataset.x_train, np.ones(2000)))
    weights = np.linalg.lstsq(design, dataset.y_train)[0]
    mean = np.column_stack((dataset.x_test, np.ones(1000))) @ weights
    assert metrics.smse(dataset.y_test, mean, dataset.y_train.var()) > 0.8


def test_the_gaussian_check_is_the_papers():
    dataset = datasets.gaussian(50_000)
    weights, intercept = np.full(10, 0.5), 2.0
    np.testing.assert_allclose(dataset.y_train, dataset.x_train @ weights + intercept, atol=1e-13)
    np.testing.assert_allclose(dataset.y_test, dataset.x_test @ weights + intercept, atol=1e-13)
    # y ~ N(2, 2.5), to within four standard errors.
    assert dataset.y_train.mean() == pytest.approx(2.0, abs=4 * np.sqrt(2.5 / 50_000))
    assert dataset.y_train.var() == pytest.approx(2.5, abs=4 * 2.5 * np.sqrt(2 / 50_000))
    np.testing.assert_allclose(np.cov(dataset.x_train.T), np.eye(10), atol=0.03)


@pytest.mark.parametrize("t", [1, 2, 50])
def test_the_chi_square_check_has_the_papers_moments(t):
    # One t over many seeds: the moments of y_t, to within four standard errors.
    seeds = 4000
    y = np.array([datasets.chi_square(t, seed=s, n_test=1).y_train[-1] for s in range(seeds)])
    shift = (t**-0.1) ** 2
    mean, variance = 1 + shift, 2 * (1 + 2 * shift)
    assert y.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / seeds))
    assert y.var() == pytest.approx(variance, abs=4 * np.var((y - mean) ** 2) ** 0.5 / seeds**0.5)


def test_the_chi_square_check_ends_at_its_limit():
    dataset = datasets.chi_square(10, n_test=100_000)
    np.testing.assert_array_equal(dataset.y_train, dataset.x_train[:, 0] ** 2)
    np.testing.assert_array_equal(dataset.y_test, dataset.x_test[:, 0] ** 2)
    # A central chi-square with one degree of freedom: mean 1, variance 2, fourth moment 60.
    assert dataset.y_test.mean() == pytest.approx(1, abs=4 * np.sqrt(2 / 100_000))
    assert dataset.y_test.var() == pytest.approx(2, abs=4 * np.sqrt((60 - 4) / 100_000))


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
