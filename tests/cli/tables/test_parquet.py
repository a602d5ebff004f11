"""Tables in Parquet, columns by name, chunks, and reading ahead."""

import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pogp.cli.options import listed
from pogp.cli.tables import Batch, Choice, Layout, Position, chunks, open_table
from pogp.cli.tables.read_ahead import ReadAhead
from pogp.cli.tables.records import Block, CsvFormat, Reader
from pogp.cli.tables.table import MOST, NotNumbersError, find, inputs

from ...processes import started
from .test_tables import LAYOUT, complaints, read

# ---- Parquet


@pytest.fixture
def parquet(tmp_path):
    """Five groups of 1000 rows and a text column; a few values are missing."""
    n = np.arange(5000)
    values = pa.array(n * 0.5, mask=(n == 1500) | (n == 4999))
    table = pa.table({"n": n, "t": [f"r{i}" for i in n], "v": values, "flag": n % 2 == 0})
    path = str(tmp_path / "table.parquet")
    pq.write_table(table, path, row_group_size=1000)
    return path


def test_parquet_is_read_by_rows(parquet):
    batch = read(parquet, columns=["v", "n", "flag"])
    assert complaints(batch) == [(1501, "'v' is empty"), (5000, "'v' is empty")]
    np.testing.assert_array_equal(batch.values[:3], [[0, 0, 1], [0.5, 1, 0], [1, 2, 1]])
    assert batch.count == 4998


@pytest.mark.parametrize("row", [1, 999, 1000, 1001, 1501, 4999, 5000])
def test_reading_parquet_resumes(parquet, row):
    rest = read(parquet, columns=["n"], start=Position(row, row + 1))
    np.testing.assert_array_equal(rest.values[:, 0], np.arange(row, 5000))
    np.testing.assert_array_equal(rest.lines, np.arange(row, 5000) + 1)


def test_text_in_parquet_is_an_error_but_can_be_kept(parquet):
    with pytest.raises(NotNumbersError, match=r"column 't' .*\(string\)") as caught:
        read(parquet, columns=["n", "t"])
    assert caught.value.columns == ("t",)
    texts = read(parquet, columns=["n"], keep=["v", "t"]).texts
    assert texts[:2] == [b"0.0,r0", b"0.5,r1"]
    assert texts[1500] == b",r1500"


def test_resuming_in_another_parquet_file_is_an_error(parquet):
    with open_table(parquet, LAYOUT) as table:
        identity = table.identity(table.start)
    with open_table(parquet, LAYOUT) as table:
        table.require(identity, table.start)
    pq.write_table(pa.table({"n": np.arange(5000)}), parquet)
    with open_table(parquet, LAYOUT) as table, pytest.raises(ValueError, match="has changed"):
        table.require(identity, table.start)


def test_parquet_without_pyarrow_names_the_extra(parquet, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'pogp\[parquet\]'"):
        open_table(parquet, LAYOUT)


# ---- columns


def test_columns_are_chosen_by_name():
    names = ["", "id", "a", "b", "y"]
    names[0] = "column 1"
    assert inputs(names, "y", None, ["id"]) == ["a", "b"]
    assert inputs(names, "y", ["b", "column 1"], []) == ["b", "column 1"]
    with pytest.raises(ValueError, match="'y' is the target"):
        inputs(names, "y", ["a", "y"], [])
    with pytest.raises(ValueError, match="no column is left"):
        inputs(names, "y", None, ["a", "b", "id"])
    assert listed('a, "b, c",d') == ["a", "b, c", "d"]


def test_a_missing_column_is_an_error_that_lists_the_columns():
    names = ["temperature", "pressure"]
    with pytest.raises(ValueError, match=r"no column 'temprature'; did you mean 'temperature'\?"):
        find(names, ["temprature"], "it")
    with pytest.raises(ValueError, match="columns 1 and 3 of it are both called 'a'"):
        find(["a", "b", "a"], ["a"], "it")
    with pytest.raises(ValueError, match="'a' is named 2 times"):
        find(["a", "b"], ["a", "b", "a"], "it")
    with pytest.raises(ValueError, match="say --no-header"):
        find(["0.1", "0.2"], ["y"], "it")


# ---- chunks, and reading ahead


def batches_of(sizes, refused=()):
    """Batches of rows numbered from 0 to the end, some of them refused."""
    text = "a\n" + "".join("x\n" if i in refused else f"{i}\n" for i in range(sum(sizes)))
    rows = text.encode().split(b"\n")
    reader, start = Reader(CsvFormat(["a\n"], ",", True), Choice([0], required=[0])), 1
    for size in sizes:
        data = b"".join(line + b"\n" for line in rows[start : start + size])
        here = Position(len(b"\n".join(rows[:start])) + 1, start + 1)
        end = Position(here.offset + len(data), here.line + size)
        yield reader.read(Block(data, here, end, final=True), 0)[0]
        start += size


@pytest.mark.parametrize("sizes", [[100], [33, 33, 34], [1] * 100, [7, 0, 93]])
def test_chunks_end_at_multiples_of_the_step(sizes):
    refused = {0, 8, 9, 55, 99}
    cut = [chunk for chunk in chunks(batches_of(sizes, refused), 10, 4, eager=False) if len(chunk)]
    assert [chunk.count for chunk in cut] == [6, *[10] * 8, 9]
    whole = Batch.joined(cut)
    assert whole.lines.tolist() == list(range(2, 102))
    assert [refusal.line - 2 for refusal in whole.refusals] == sorted(refused)
    # Each goes with the rows before which it stands, so that a chunk ends with what it has used.
    assert cut[0].lines.tolist() == list(range(2, 9))


def test_eager_chunks_are_passed_on_at_once():
    cut = list(chunks(batches_of([3, 9]), 10, 0, eager=True))
    assert [len(chunk) for chunk in cut] == [3, 7, 2]


def test_chunks_are_bounded_if_few_rows_are_usable():
    sizes, refused = [50] * 10, set(range(1, 500))
    cut = list(chunks(batches_of(sizes, refused), 10, 0, eager=False))
    assert max(len(chunk) for chunk in cut) == MOST * 10
    assert sum(len(chunk) for chunk in cut) == 500


def test_reading_ahead_gives_the_same_batches_and_empty_ones_while_waiting():
    gate = threading.Event()

    def slow():
        yield from batches_of([5])
        gate.wait(timeout=60)
        yield from batches_of([5])

    got = []
    with ReadAhead(slow(), 1) as ahead:
        for batch in ahead:
            got.append(len(batch))
            if not len(batch):
                gate.set()
    assert [count for count in got if count] == [5, 5]
    assert 0 in got


def test_an_error_while_reading_is_raised_where_rows_are_taken():
    def broken():
        yield from batches_of([5])
        raise ValueError("no more")

    with ReadAhead(broken(), 1) as ahead, pytest.raises(ValueError, match="no more"):
        list(ahead)


def test_the_reading_thread_ends_with_its_with_statement():
    def endless():
        while True:
            yield from batches_of([5])

    with ReadAhead(endless(), 1) as ahead:
        next(iter(ahead))
    assert not [each for each in threading.enumerate() if each.name == "pogp reader"]


def test_standard_input_is_read_as_it_arrives():
    def program():
        with open_table("-", Layout()) as table:
            for batch in table.batches(Choice([0], required=[0]), table.start):
                print(batch.values.sum(), table.name, table.size, flush=True)

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with started(program, text=True, **pipes) as process:
        for text, expected in [("a\n1\n", "1.0"), ("2\n3", "2.0"), ("0\n4\n", "34.0")]:
            process.stdin.write(text)
            process.stdin.flush()
            assert process.stdout.readline() == f"{expected} standard input None\n"
            time.sleep(0.05)
        process.stdin.close()
        assert process.wait(timeout=60) == 0
