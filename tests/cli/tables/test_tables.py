"""Rows of numbers from text and Parquet: values, line numbers, what is refused, where to go on."""

import csv
import gzip
import io
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pogp.cli.tables import Batch, Choice, Layout, Position, open_table
from pogp.cli.tables.records import guessed_delimiter, number
from pogp.cli.tables.table import find

LAYOUT = Layout()


@pytest.fixture
def write(tmp_path):
    """Write bytes to a file and return its path."""

    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def read(path, layout=LAYOUT, columns=None, start=None, keep=()):
    """Read a table in one batch; all its columns unless told otherwise."""
    with open_table(path, layout) as table:
        wanted = range(len(table.names)) if columns is None else find(table.names, columns, "it")
        kept = range(len(table.names)) if keep == "all" else find(table.names, keep, "it")
        found = list(table.batches(Choice(wanted, kept, wanted), start or table.start))
    return Batch.joined(found) if found else Batch.empty(len(wanted))


def complaints(batch):
    return [(refusal.line, refusal.reason) for refusal in batch.refusals]


# ---- what is read


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n-3.5,4e-2\n", ","),
        ("a;b\n1;2\n-3.5;4e-2\n", ";"),
        ("a\tb\n1\t2\n-3.5\t4e-2\n", "\t"),
        ("a|b\n1|2\n-3.5|4e-2\n", "|"),
        ("a b\n1 2\n-3.5 4e-2\n", " "),
        ("a,b\r\n1,2\r\n-3.5,4e-2\r\n", ","),
        ("\ufeffa,b\n1,2\n-3.5,4e-2\n", ","),
        ("a,b\n1,2\n-3.5,4e-2", ","),
        ("a,b\n\n1,2\n\n\n-3.5,4e-2\n\n", ","),
        ("\ufeff\n \na,b\n1,2\n-3.5,4e-2\n", ","),
        ('"a","b"\n"1",2\n-3.5,"4e-2"\n', ","),
        (" a , b \n 1 , 2 \n -3.5 , 4e-2 \n", ","),
    ],
)
def test_formats_of_numbers_and_line_ends_are_read(write, text, delimiter):
    path = write(text)
    with open_table(path, LAYOUT) as table:
        assert (table.names, table.delimiter) == (["a", "b"], delimiter)
    batch = read(path)
    np.testing.assert_array_equal(batch.values, [[1.0, 2.0], [-3.5, 0.04]])
    assert batch.count == 2


def test_columns_come_in_the_order_asked_for(write):
    batch = read(write("a,b,c\n1,2,3\n4,5,6\n"), columns=["c", "a"])
    np.testing.assert_array_equal(batch.values, [[3.0, 1.0], [6.0, 4.0]])


def test_without_a_header_columns_are_numbered(write):
    path = write("1.5,2\n3,4\n")
    with open_table(path, Layout(header=False)) as table:
        assert table.names == ["1", "2"]
    np.testing.assert_array_equal(read(path, Layout(header=False)).values, [[1.5, 2.0], [3.0, 4.0]])


def test_numbers_are_read_to_the_last_bit(write, rng):
    values = np.concatenate([rng.standard_normal((500, 3)), 10.0 ** rng.uniform(-99, 99, (500, 3))])
    text = "a,b,c\n" + "".join(",".join(map(repr, row)) + "\n" for row in values.tolist())
    np.testing.assert_array_equal(read(write(text)).values, values)
    quoted = text.replace("\n", '\n""', 1).replace('""', "", 1) + '"1",2,3\n'  # row by row
    np.testing.assert_array_equal(read(write(quoted)).values[:-1], values)


def test_text_in_other_columns_does_not_matter(write):
    text = (
        'id,a,b\nx1,1,2\n"x, ""2""",3,4\n"two\nlines",5,6\nünï,7,8\n'.encode() + b"\xff\xfe,9,10\n"
    )
    batch = read(write(text), columns=["a", "b"])
    np.testing.assert_array_equal(batch.values[:, 0], [1, 3, 5, 7, 9])
    assert batch.lines.tolist() == [2, 3, 4, 6, 7]
    assert batch.ends[:, 1].tolist() == [3, 4, 6, 7, 8]


def test_gzip_is_recognised_by_its_content(write):
    text = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(30_000))
    half = text.index(b"\n5000,") + 3  # two members, as `cat a.gz b.gz` gives, cut within a row
    path = write(gzip.compress(text[:half]) + gzip.compress(text[half:]))
    values = read(path).values
    np.testing.assert_array_equal(values[:, 1], np.arange(30_000.0) ** 2)


def test_truncated_gzip_is_an_error(write):
    packed = gzip.compress(os.urandom(1000).hex().encode() + b",1\n" + b"1,2\n" * 1000)
    with pytest.raises(ValueError, match="truncated"):
        read(write(packed[: len(packed) // 2]), Layout(header=False))
    with pytest.raises(ValueError, match="damaged gzip"):
        read(write(packed[:100] + b"garbage" * 20 + packed[240:]), Layout(header=False))


# ---- what is refused, and where


def test_faults_are_reported_by_line_and_column(write):
    batch = read(
        write("a,b\n1,2\n3,\n4,abc\n\n5,nan\n6,-inf\n7,1e101\n8\n9,10,11\nNA,\n12,13\n"),
    )
    assert complaints(batch) == [
        (3, "'b' is empty"),
        (4, "'b' is 'abc', not a number"),
        (6, "'b' is 'nan', not a number"),
        (7, "'b' is '-inf', not finite"),
        (8, "'b' is '1e101', beyond 1e+100"),
        (9, "it has 1 cell, not 2"),
        (10, "it has 3 cells, not 2"),
        (11, "'a' is 'NA', not a number; 'b' is empty"),
    ]
    np.testing.assert_array_equal(batch.values[batch.usable], [[1.0, 2.0], [12.0, 13.0]])
    assert batch.lines.tolist() == [2, 3, 4, 6, 7, 8, 9, 10, 11, 12]


def test_a_stray_quote_makes_one_row_unusable(write):
    rows = "".join(f"{i},x,{i}\n" for i in range(20_000))
    batch = read(write(f'a,t,b\n1,"open,2\n{rows}3,"x"y,4\n5,6" pipe,7\n'), columns=["a", "b"])
    (first, reason), (second, _) = complaints(batch)
    assert (first, second) == (2, 20_003)
    assert "quotes" in reason
    assert batch.count == 20_001


def test_an_overlong_line_is_skipped_in_bounded_memory(write, monkeypatch):
    monkeypatch.setattr("pogp.cli.tables.text.LONGEST", 1 << 20)
    monkeypatch.setattr("pogp.cli.tables.records.LONGEST", 1 << 20)
    path = write(b"a,b\n1,2\n" + b"7" * (20 << 20) + b",8\n3,4\n")
    tracemalloc.start()
    try:
        batch = read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert complaints(batch) == [(3, "it is longer than 1 MiB")]
    np.testing.assert_array_equal(batch.values[batch.usable], [[1.0, 2.0], [3.0, 4.0]])
    assert batch.lines.tolist() == [2, 3, 4]
    assert batch.end == Position(os.path.getsize(path), 5)


def test_messages_about_long_cells_and_many_faults_are_short(write):
    names = [f"c{i}" for i in range(9)]
    batch = read(write(",".join(names) + "\n" + ",".join(["x" * 1000] * 9) + "\n"))
    ((_, reason),) = complaints(batch)
    assert len(reason) < 250
    assert "and 6 more" in reason
    assert batch.refusals[0].columns == tuple(names)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"PK\x03\x04rest", "zip archive, as Excel workbooks are too"),
        (b"\xff\xfea\0,\0b\0", "UTF-16"),
        (b"\x89POG\r\n\x1a\n", "a model of pogp"),
        (b"BZh91AY", "bunzip2"),
        (b"a\0b,c\n1,2\n", "not text"),
        (b"a,b\r1,2\r3,4\r", "a carriage return alone"),
        (b'"a,b\n1,2\n', "first row of"),
    ],
)
def test_files_that_are_not_text_are_refused(write, content, complaint):
    with pytest.raises(ValueError, match=complaint):
        read(write(content))


# ---- cells and rows


@settings(max_examples=50, deadline=None)
@given(
    st.one_of(
        st.floats().map(repr),
        st.from_regex(r"[+-]?[0-9]{1,25}\\.?[0-9]{0,25}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
        st.sampled_from(["", " ", "nan", "1_0", "0x1", "1e999", "+1.", " .5 ", "1e", "１２", "é"]),
        st.text(max_size=6),
    )
)
def test_a_cell_is_a_number_if_python_says_so_in_plain_ascii(text):
    try:
        expected = float(text) if text.isascii() and "_" not in text else np.nan
    except ValueError:
        expected = np.nan
    np.testing.assert_array_equal(number(text), expected)


def test_full_width_digits_are_not_a_number(write):
    assert complaints(read(write("a\n１２\n1\n"))) == [(2, "'a' is '１２', not a number")]


def test_json_lines_are_read_by_their_keys(write):
    path = write(
        '{"a": 1, "b": "x, y"}\n\n{"b": "é", "a": 2.5}\n{"a": null}\n[1]\nno\n'
        '{"a": true, "c": 5}\n{"a": 1e400}\n'
    )
    with open_table(path, LAYOUT) as table:
        assert table.names == ["a", "b", "c"]
    batch = read(path, columns=["a"], keep="all")
    np.testing.assert_array_equal(batch.values[batch.usable], [[1.0], [2.5], [1.0]])
    assert batch.lines.tolist() == [1, 3, 4, 5, 6, 7, 8]
    assert batch.texts[:2] == [b'1,"x, y",', "2.5,é,".encode()]
    told = complaints(batch)
    assert [line for line, _ in told] == [4, 5, 6, 8]
    assert told[0][1] == "'a' is empty"
    assert "expected {…}, got [1]" in told[1][1]
    for i, end in enumerate(batch.ends.tolist(), start=1):
        rest = read(path, columns=["a"], start=Position(*end))
        np.testing.assert_array_equal(rest.values, batch.values[i:])


def test_only_required_columns_have_to_be_numbers(write):
    with open_table(write("a,b,y\n1,x,2\n,,3\n4,z,\n"), LAYOUT) as table:
        (batch,) = table.batches(Choice([0, 1, 2], required=[2]), table.start)
    assert batch.usable.tolist() == [True, True, False]
    assert batch.cells == [["1", "x", "2"], ["", "", "3"], ["4", "z", ""]]
    np.testing.assert_array_equal(batch.values[1], [np.nan, np.nan, 3.0])
    assert complaints(batch) == [(4, "'y' is empty")]


TEXTS = st.text(st.characters(exclude_characters="\0"), max_size=8)  # with which it is no text


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1, max_size=20),
    st.integers(1, 40),
)
def test_rows_are_those_of_the_csv_module_whatever_the_blocks(tmp_path_factory, rows, size):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([["a", "b"], *rows])
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes(text.getvalue().encode(errors="replace"))
    written = csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
    expected = [row for row in written if row][1:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pogp.cli.tables.text.SIZE", size)
        kept = read(str(path), keep="all").texts
    assert [next(csv.reader([text.decode()], strict=True)) for text in kept] == expected


def test_the_delimiter_is_looked_for_outside_quotes():
    assert guessed_delimiter('"a,b,c";d\n') == ";"
    assert guessed_delimiter("alone\n") == ","


# ---- going on


TEXT = 'n,id,a\n1,x,10\n2,"two\nlines",20\n\n3,x,\n4,é,40\n5,x,50'


@pytest.mark.parametrize("packed", [False, True])
def test_reading_resumes_after_any_row(write, packed):
    path = write(gzip.compress(TEXT.encode()) if packed else TEXT)
    whole = read(path, columns=["n", "a"])
    for i, end in enumerate(whole.ends.tolist(), start=1):
        rest = read(path, columns=["n", "a"], start=Position(*end))
        np.testing.assert_array_equal(rest.values, whole.values[i:])
        np.testing.assert_array_equal(rest.lines, whole.lines[i:])
        np.testing.assert_array_equal(rest.ends, whole.ends[i:])
        assert rest.refusals == [each for each in whole.refusals if each.line > whole.lines[i - 1]]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_reading_resumes_in_a_file_that_grew(write, ending):
    before = "a,b\n1,2\n3,4\n".replace("\n", ending)
    for cut in (len(before), len(before) - len(ending)):  # the last line with its end, or without
        path = write(before[:cut])
        end = read(path).end
        write(before + "5,6\n7,8\n")
        rest = read(path, start=end)
        np.testing.assert_array_equal(rest.values, [[5.0, 6.0], [7.0, 8.0]])
        assert rest.lines.tolist() == [4, 5]
        assert rest.end == Position(len(before) + 8, 6)


def test_a_line_that_changed_after_it_was_read_is_an_error(write):
    path = write("a,b\n1,2\n3,4")
    end = read(path).end
    write("a,b\n1,2\n3,45\n6,7\n")
    with pytest.raises(ValueError, match="line 3 continues after what was read"):
        read(path, start=end)


@pytest.mark.parametrize("packed", [False, True])
def test_resuming_in_another_file_is_an_error(write, packed):
    def dress(text):
        return gzip.compress(text.encode()) if packed else text

    rows, both = "".join(f"{i},{i}\n" for i in range(100)), Choice([0, 1], required=[0, 1])
    path = write(dress("a,b\n" + rows))
    with open_table(path, LAYOUT) as table:
        end = Batch.joined(list(table.batches(both, table.start))).end
        identity = table.identity(end)
    with open_table(path, LAYOUT) as table:
        table.require(identity, end)
    write(dress("a,b\n" + rows + "100,100\n"))  # it has grown
    with open_table(path, LAYOUT) as table:
        table.require(identity, end)
        (batch,) = table.batches(both, end)
        np.testing.assert_array_equal(batch.values, [[100.0, 100.0]])
    for other in ("a,b\n" + rows[:-1], "a,c\n" + rows, "a,b\n9,9\n" + rows):
        write(dress(other))
        with open_table(path, LAYOUT) as table, pytest.raises(ValueError, match="learned before"):
            table.require(identity, end)
