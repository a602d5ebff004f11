"""Files: notes, golden files of every schema, going on after loading, and kills."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import pogp
from pogp import models
from pogp.budgets import Constant, Decay
from pogp.files import container, persistence
from pogp.kernels.elementary import BUILTIN
from pogp.kernels.pairs import PAIRS

from ..conftest import assert_same_state
from ..golden.make import FOLDER, MODELS, MORE, QUERIES, RETIRED, Golden, state, stream, write

FILES = sorted(FOLDER.glob("schema-*/*.pogp"))
CURRENT = [path for path in FILES if path.parent.name == f"schema-{persistence.SCHEMA}"]
files = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")


def golden_of(path: Path) -> Golden:
    return {**MODELS, **RETIRED}[path.stem]


def loaded(path: Path, golden: Golden | None = None) -> Any:
    return pogp.load(path, **(golden or golden_of(path)).code)


def resaved(model: Any, path: Path, golden: Golden) -> Path:
    model.save(path, without_code=bool(golden.code), notes=golden.notes)
    return path


def small() -> pogp.POG:
    X, y = stream(20)
    model = pogp.POG(pogp.RBF(), 0.1)
    model.learn(X, y)
    return model


# ---- notes


def test_notes_go_along(tmp_path: Path) -> None:
    path, model = tmp_path / "model.pogp", small()
    notes = {
        "columns": ("left", "right"),
        "nested": {"n": 3, "x": 0.1 + 0.2, "no": None},
        "ü": True,
    }
    model.save(path, notes=notes)
    assert persistence.notes(path) == {**notes, "columns": ["left", "right"]}
    assert_same_state(pogp.load(path), model)
    model.save(path)
    assert persistence.notes(path) == {}


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ({"a": [1, np.arange(3)]}, r"notes\['a'\]\[1\] is array\(\[0, 1, 2\]\)"),
        ({"a": {"b": 1 + 2j}}, r"notes\['a'\]\['b'\] is \(1\+2j\)"),
        ({"a": float("nan")}, r"notes\['a'\] is nan"),
        ({"a": np.float64("inf")}, r"notes\['a'\] is np.float64\(inf\)"),
        ({"a": {1: 2}}, r"the keys of notes\['a'\] must be text, got 1"),
        ([1], r"notes must be a mapping, got \[1\]"),
    ],
)
def test_notes_are_what_json_can_hold(tmp_path: Path, notes: Any, message: str) -> None:
    path = tmp_path / "model.pogp"
    with pytest.raises(ValueError, match=message):
        small().save(path, notes=notes)
    assert not path.exists()


def test_notes_that_hold_themselves_are_refused(tmp_path: Path) -> None:
    notes: dict[str, Any] = {}
    notes["again"] = notes
    with pytest.raises(ValueError, match="more than 100 mappings and lists deep"):
        small().save(tmp_path / "model.pogp", notes=notes)


@pytest.mark.parametrize("notes", [None, 3, "text", []])
def test_notes_of_another_kind_are_no_notes(tmp_path: Path, notes: object) -> None:
    path = tmp_path / "model.pogp"
    small().save(path)
    header, arrays = container.read(path)
    container.write(path, header | {"notes": notes}, arrays)
    with pytest.raises(pogp.FormatError, match="not a mapping"):
        persistence.notes(path)


# ---- golden files


def absorbed_in_schema_1(path: Path) -> bool:
    """Say whether a file has an absorbed posterior as it was kept before it was rewritten."""
    return any(name.endswith("evidence") for name in container.read(path)[1])


def without_recent_samples(path: Path) -> bool:
    """Say whether a file is of the time when new points did not learn from recent samples."""
    names = container.read(path)[1]
    return any(name.endswith("information") for name in names) and not any(
        name.endswith("recent_arrivals") for name in names
    )


@files
def test_a_golden_file_gives_what_it_gave(path: Path) -> None:
    assert_gives_what_it_gave(path)


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.stem)
def test_a_golden_file_gives_the_same_on_the_reference_core(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POGP_BACKEND", "reference")
    assert_gives_what_it_gave(path)


def assert_gives_what_it_gave(path: Path) -> None:
    golden, expected = golden_of(path), json.loads(path.with_suffix(".json").read_text())
    model = loaded(path)
    assert persistence.notes(path) == (golden.notes or {})
    if absorbed_in_schema_1(path):
        assert_as_good(state(model), expected["now"], golden, 0.01)
        golden.teach(model, golden.learned, golden.learned + MORE)
        assert_as_good(state(model), expected["later"], golden, 0.5)  # other points may go
        return
    assert_state(state(model), expected["now"], 1e-10)  # processors sum in different orders
    golden.teach(model, golden.learned, golden.learned + MORE)
    if without_recent_samples(path):
        assert_as_good(state(model), expected["later"], golden, 0.5)
        return
    assert_state(state(model), expected["later"], golden.tolerance)


def assert_as_good(
    found: dict[str, Any], expected: dict[str, Any], golden: Golden, share: float
) -> None:
    """Predictions are within a share of a deviation, and about as close to the truth."""
    assert (found["seen"], found["size"]) == (expected["seen"], expected["size"])
    deviation = np.sqrt(expected["variance"])
    distance = np.abs(np.subtract(found["mean"], expected["mean"])) / deviation
    assert distance.max() <= share
    assert np.abs(np.sqrt(found["variance"]) / deviation - 1).max() <= share
    truth = stream(400, golden.outputs)[1][-5:]
    errors = [np.sqrt(np.mean((np.array(one["mean"]) - truth) ** 2)) for one in (found, expected)]
    assert errors[0] <= 1.1 * errors[1] + 0.01


@pytest.mark.parametrize("name", RETIRED)
def test_a_retired_model_loads_as_its_successor(name: str) -> None:
    model = pogp.load(FOLDER / "schema-1" / f"{name}.pogp")
    assert type(model) is (models.SelfTuning if "warming" in name else pogp.AbsorbingPOG)
    assert "temper" not in model.arguments()
    if isinstance(model, models.SelfTuning):
        assert model.warming_up
        assert_same_state(model, RETIRED[name].made())
        RETIRED[name].teach(model, 60, 120)
        assert not model.warming_up


def test_a_model_of_schema_1_is_saved_in_the_schema_of_now(tmp_path: Path) -> None:
    for path in FILES:
        golden, model = golden_of(path), loaded(path)
        again = loaded(resaved(model, tmp_path / "again.pogp", golden), golden)
        assert container.read(tmp_path / "again.pogp")[0]["schema"] == persistence.SCHEMA
        assert_same_state(again, model)


# ---- without a file


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.stem)
def test_bytes_are_the_content_of_the_file(path: Path, tmp_path: Path) -> None:
    golden, model = golden_of(path), loaded(path)
    data = model.to_bytes(without_code=bool(golden.code), notes=golden.notes)
    assert data == resaved(model, tmp_path / "model.pogp", golden).read_bytes()
    assert_same_state(pogp.from_bytes(data, **golden.code), model)
    assert_same_state(pogp.from_bytes(memoryview(bytearray(data)), **golden.code), model)
    if golden.code:
        with pytest.raises(ValueError, match=r"cannot be saved"):
            model.to_bytes()
        with pytest.raises(ValueError, match=r"the bytes was saved .*from_bytes\(data, kernel"):
            pogp.from_bytes(data)


def test_bytes_are_checked() -> None:
    data = small().to_bytes()
    for wrong in (b"", data[:-1], data + b"0", data[:100] + b"?" + data[101:], b"not a model"):
        with pytest.raises(pogp.FormatError, match="the bytes: "):
            pogp.from_bytes(wrong)
    for other in ("text", 3, None, [1]):
        with pytest.raises(ValueError, match="data must be bytes"):
            pogp.from_bytes(other)  # type: ignore[arg-type]
    newer = b"".join(container.encode({"schema": 4, "arguments": {}}, {}))
    with pytest.raises(pogp.FormatError, match="schema 4 is newer than 3"):
        pogp.from_bytes(newer)


def assert_state(found: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    assert found["seen"] == expected["seen"]
    assert found["size"] == expected["size"]
    for name in ("mean", "variance"):
        largest = np.abs(expected[name]).max()
        np.testing.assert_allclose(
            found[name], expected[name], rtol=tolerance, atol=tolerance * largest, err_msg=name
        )


def owes_pairs(path: Path) -> bool:
    """Say whether a file has updates that were owed as pairs; they are applied when it is read."""
    arrays = container.read(path)[1]
    names = [name.removesuffix("left") for name in arrays if name.endswith("_left")]
    return any(
        (abs(2 * arrays[f"{name}left"]) != abs(arrays[f"{name}right"])).any() for name in names
    )


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.stem)
def test_loading_and_saving_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    golden, again = golden_of(path), tmp_path / "again.pogp"
    if owes_pairs(path):
        path = resaved(loaded(path), tmp_path / "applied.pogp", golden)
        model = pogp.load(path, **golden.code)
    else:
        model = loaded(path)
    assert resaved(model, again, golden).read_bytes() == path.read_bytes()


def test_golden_files_are_small_and_complete() -> None:
    assert {path.stem for path in CURRENT} == set(MODELS)
    assert all(path.with_suffix(".json").exists() for path in FILES)
    sizes = [path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(sizes) < 250_000 * persistence.SCHEMA
    kinds = {type(loaded(path)) for path in CURRENT}
    exported = {getattr(models, name) for name in models.__all__}
    assert kinds == {kind for kind in exported if not kind.__abstractmethods__}


def test_golden_files_have_every_kernel_and_budget() -> None:
    text = "".join(json.dumps(container.read(path)[0]) for path in CURRENT)
    kinds = [*BUILTIN, *PAIRS, Constant.__name__, Decay.__name__, "code"]
    assert [kind for kind in kinds if f'"kind": "{kind}"' not in text] == []
    assert '"kind": "Constant", "variance": ' in text
    assert '"columns": [0]' in text
    assert '"budget": null' in text


def test_golden_files_are_never_written_again(tmp_path: Path) -> None:
    write("pog-empty", tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match=r"pog-empty\.pogp"):
        write("pog-empty", tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_reader_in_the_documentation_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (FOLDER.parent.parent / "docs" / "files.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)  # where it writes a file of its own
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        exec(block, names)
    for name in ("pog", "pog-everywhere", "random", "window", "sogp", "krls-t", "absorbing"):
        path = FOLDER / "schema-2" / f"{name}.pogp"
        mean, variance = names["predict"](path, QUERIES)
        expected = pogp.load(path).predict(QUERIES)
        np.testing.assert_allclose((mean.ravel(), variance), expected, rtol=1e-6, err_msg=name)
    path = FOLDER / "schema-2" / "absorbing-outputs.pogp"
    found, expected = names["predict"](path, QUERIES), pogp.load(path).predict(QUERIES)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# ---- going on, bit for bit


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.stem)
def test_everything_a_loaded_model_does_next_is_the_same(path: Path, tmp_path: Path) -> None:
    golden, model = golden_of(path), loaded(path)
    twin = loaded(resaved(model, tmp_path / "model.pogp", golden), golden)
    for stop in (golden.learned, golden.learned + 1, golden.learned + MORE):
        if stop > golden.learned and stop > model.seen:
            for one in (model, twin):
                golden.teach(one, one.seen if golden.fit is None else 0, stop)
        assert_same_state(twin, model)
        for one, other in zip(answers(model), answers(twin), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def answers(model: Any) -> list[Any]:
    found = [*model.predict(QUERIES), *model.predict(QUERIES, latent=True)]
    found += [model.covariance(QUERIES), model.sample(QUERIES, 2, seed=1)]
    return [*found, model.dictionary, model.indices, np.array(model.noise)]


def test_a_warm_up_ends_the_same_after_loading(tmp_path: Path) -> None:
    X, y = stream(30)
    model = models.SelfTuning(warmup=16, max_size=8, seed=3)
    model.learn(X[:10, :1], y[:10])
    model.save(tmp_path / "model.pogp")
    twin = pogp.load(tmp_path / "model.pogp")
    assert isinstance(twin, models.SelfTuning)
    traces = [one.learn(X[10:, :1], y[10:]) for one in (model, twin)]
    np.testing.assert_array_equal(traces[0].records, traces[1].records)
    assert_same_state(twin, model)
    assert twin.kernel == model.kernel


def test_merging_retuning_and_taking_back_are_the_same_after_loading(tmp_path: Path) -> None:
    X, y = stream(90)
    model, other = (pogp.AbsorbingPOG(pogp.RBF(0.8), 0.05, None, max_size=12) for _ in range(2))
    model.learn(X[:45], y[:45])
    other.learn(X[45:], y[45:])
    model.save(tmp_path / "model.pogp")
    twin = pogp.load(tmp_path / "model.pogp")
    for one in (model, twin):
        one.merge(other)
        one.retune(seed=1)
    assert_same_state(twin, model)
    assert twin.arguments() == model.arguments()


def test_a_tuned_kernel_that_is_code_is_named(tmp_path: Path) -> None:
    class Mine(pogp.RBF):
        """A kernel of the user's own that can be tuned."""

    X, y = stream(20)
    model = models.SelfTuning(kernel=Mine(1.0), warmup=10)
    model.learn(X, y)
    with pytest.raises(ValueError, match=r"Mine.* cannot be saved"):
        model.save(tmp_path / "model.pogp")
    with pytest.raises(ValueError, match=r"state\['kernel'\] is Mine"):
        model.save(tmp_path / "model.pogp", without_code=True)
    given = models.SelfTuning(kernel=lambda A, B: A @ B.T + 1.0, noise=0.1)
    given.learn(X, y)
    given.save(tmp_path / "model.pogp", without_code=True)
    with pytest.raises(ValueError, match="saved without its kernel"):
        pogp.load(tmp_path / "model.pogp")
    with pytest.raises(ValueError, match="another kernel"):
        pogp.load(tmp_path / "model.pogp", kernel=pogp.RBF())
    twin = pogp.load(tmp_path / "model.pogp", kernel=lambda A, B: A @ B.T + 1.0)
    np.testing.assert_array_equal(twin.predict(QUERIES), given.predict(QUERIES))


# ---- kills


SAVER = """
import os, random, signal, sys, time
import pogp
path, models = sys.argv[1], [pogp.load(name) for name in sys.argv[2:]]
models[0].save(path)
for turn in range(30):
    child = os.fork()
    while child == 0:
        for model in models:
            model.save(path)
    time.sleep(random.Random(turn).uniform(0.002, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = pogp.load(path)
    print(found.seen, len(os.listdir(os.path.dirname(path))))
models[0].save(path)
print(found.seen, len(os.listdir(os.path.dirname(path))))
"""


def test_a_kill_leaves_a_whole_file_and_no_litter(tmp_path: Path) -> None:
    X, y = stream(150)
    sources, path = [tmp_path / "one", tmp_path / "two"], tmp_path / "folder" / "model.pogp"
    path.parent.mkdir()
    for count, source in zip((100, 150), sources, strict=True):
        model = pogp.DenseGP(pogp.RBF(), 0.1)
        model.learn(X[:count], y[:count])
        model.save(source)
    command = [sys.executable, "-c", SAVER, str(path), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(lines) == 31
    assert {seen for seen, _ in lines} <= {100, 150}
    assert path.read_bytes() == sources[0].read_bytes()
    left = [count - 1 for _, count in lines]
    assert max(left) == 1, "no kill came while a file was being written, or litter is left"
    assert left[-1] == 0


def test_many_may_save_to_one_place(tmp_path: Path) -> None:
    path, model, errors = tmp_path / "model.pogp", small(), []

    def save_often() -> None:
        try:
            for _ in range(30):
                model.save(path)
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=save_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert os.listdir(tmp_path) == [path.name]
    assert_same_state(pogp.load(path), model)
