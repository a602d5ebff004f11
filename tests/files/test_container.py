import hashlib
import json
import os
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from pogp.errors import FormatError
from pogp.files import container

Arrays = dict[str, NDArray[Any]]

HEADER: dict[str, container.JSON] = {"model": "POG", "budget": 1e-5, "seen": 3}
ARRAYS: Arrays = {"alpha": np.array([0.1, -0.0]), "kept": np.array([True, False])}

names = st.text(max_size=8)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
headers = st.dictionaries(names, values, max_size=4)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
# Drawn as bytes, so that every NaN and every zero is met.
doubles = shapes.flatmap(lambda s: hnp.arrays(np.uint64, s)).map(lambda a: a.view(np.float64))
others = st.sampled_from([np.int64, np.uint8, np.bool_]).flatmap(lambda d: hnp.arrays(d, shapes))
views = st.sampled_from([np.asarray, np.asfortranarray, np.transpose, np.flip])
tables = st.dictionaries(names, st.builds(lambda view, a: view(a), views, doubles | others))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.pogp"


@pytest.fixture
def content(path: Path) -> bytes:
    container.write(path, HEADER, ARRAYS)
    return path.read_bytes()


def sealed(document: object, payload: bytes = b"", version: int = 1) -> bytes:
    """A file whose checksum holds, whatever its header says."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    front = struct.pack("<8sIQQ", b"\x89POG\r\n\x1a\n", version, len(text), len(payload)) + text
    body = front + bytes(-len(front) % 64) + payload
    return body + hashlib.sha256(body).digest()


def refused(path: Path, content: bytes) -> str:
    """What `read` says of a file with this content."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, content)
    os.ftruncate(descriptor, len(content))  # much faster than truncating first
    os.close(descriptor)
    with pytest.raises(FormatError) as caught:
        container.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message


# Round trips


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(header=headers, arrays=tables)
def test_round_trip_is_bit_for_bit(path: Path, header: dict[str, Any], arrays: Arrays) -> None:
    container.write(path, header, arrays)
    first = path.read_bytes()
    found, back = container.read(path)
    assert found == header
    assert back.keys() == arrays.keys()
    for name, array in back.items():
        assert array.dtype == arrays[name].dtype
        assert array.shape == arrays[name].shape
        assert array.tobytes() == arrays[name].tobytes()
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.owndata
    container.write(path, dict(reversed(header.items())), dict(reversed(arrays.items())))
    assert path.read_bytes() == first


def test_numbers_of_the_header_keep_their_bits(path: Path) -> None:
    header = {"zero": -0.0, "tiny": 5e-324, "third": 1 / 3, "big": 2**127 + 1, "one": 1.0}
    container.write(path, header, {})
    assert repr(sorted(container.read(path)[0].items())) == repr(sorted(header.items()))


def test_foreign_byte_order_comes_back_native(path: Path) -> None:
    container.write(path, {}, {"x": np.array([1.5, -2.0], ">f8")})
    x = container.read(path)[1]["x"]
    assert x.dtype == np.float64
    assert x.tolist() == [1.5, -2.0]


def test_path_may_be_a_string(path: Path) -> None:
    container.write(str(path), HEADER, ARRAYS)
    assert container.read(str(path))[0] == HEADER


def test_layout_is_the_documented_one(content: bytes) -> None:
    magic, version, header_length, payload_length = struct.unpack_from("<8sIQQ", content)
    assert (magic, version) == (b"\x89POG\r\n\x1a\n", container.SCHEMA)
    document = json.loads(content[28 : 28 + header_length])
    start = -(-(28 + header_length) // 64) * 64
    assert document["header"] == HEADER
    assert document["arrays"] == [
        {"name": "alpha", "dtype": "<f8", "shape": [2], "order": "C", "offset": 0},
        {"name": "kept", "dtype": "|b1", "shape": [2], "order": "C", "offset": 64},
    ]
    assert struct.unpack_from("<2d", content, start) == (0.1, -0.0)
    assert content[start + 64 : start + payload_length] == b"\x01\x00"
    assert content[start + payload_length :] == hashlib.sha256(content[:-32]).digest()


def test_bytes_never_change(content: bytes) -> None:
    # Files already written must stay readable: a change here needs a new SCHEMA.
    expected = "3f4e5bd1233183f1b1b915fe43987de36ffaedd7d92303095ba627eea97e4b33"
    assert hashlib.sha256(content).hexdigest() == expected


# Refusals when writing


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2, np.float32),
        np.zeros(2, np.int32),
        np.zeros(2, np.uint64),
        np.zeros(2, complex),
        np.array(["a"]),
        np.array([None]),
        np.zeros(2, "M8[s]"),
        np.zeros(2, [("a", "f8")]),
    ],
    ids=lambda array: str(array.dtype),
)
def test_other_dtypes_are_refused(path: Path, array: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=r"'x' is of dtype .*; expected one of float64, int64"):
        container.write(path, {}, {"x": array})
    assert not path.exists()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_header_must_be_finite(path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        container.write(path, {"a": [value]}, {})
    assert not path.exists()


# Damage


def test_every_flipped_byte_is_noticed(path: Path, content: bytes) -> None:
    for position in range(len(content)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            damaged = bytearray(content)
            damaged[position] ^= mask
            refused(path, bytes(damaged))


def test_every_truncation_is_noticed(path: Path, content: bytes) -> None:
    for length in range(len(content)):
        message = refused(path, content[:length])
        assert "truncated" in message or length < 8


@pytest.mark.parametrize("tail", [b"\0", b"\n", bytes(32), bytes(64), b"garbage" * 100])
def test_appended_bytes_are_noticed(path: Path, content: bytes, tail: bytes) -> None:
    assert "extended" in refused(path, content + tail)
    refused(path, content + content)


def test_random_corruptions_are_noticed(path: Path) -> None:
    random = Random(0)
    container.write(path, HEADER, {"x": np.arange(400.0).reshape(20, 20), "i": np.arange(50)})
    good = path.read_bytes()
    tried = 0
    while tried < 10_000:
        start, stop = sorted(random.randrange(len(good)) for _ in range(2))
        damaged = bytearray(good)
        match random.choice(["flip", "truncate", "insert", "splice"]):
            case "flip":
                damaged[start] ^= random.randrange(1, 256)
            case "truncate":
                del damaged[start:]
            case "insert":
                damaged[start:start] = random.randbytes(random.randrange(1, 20))
            case "splice":  # another part of the file in place of this one
                source = random.randrange(len(good))
                damaged[start:stop] = good[source : source + stop - start]
        if damaged != good:
            refused(path, bytes(damaged))
            tried += 1


def test_absurd_lengths_are_not_believed(path: Path, content: bytes) -> None:
    for lengths in [(2**64 - 1, 0), (0, 2**64 - 1), (2**64 - 1, 2**64 - 1), (2**40, 2**40)]:
        refused(path, content[:12] + struct.pack("<QQ", *lengths) + content[28:])


def test_other_files_are_not_pogp_files(path: Path, content: bytes) -> None:
    for other in [b"", b"{}", b"\x93NUMPY\x01\x00" + bytes(100), content.replace(b"\r\n", b"\n")]:
        assert "not a pogp file" in refused(path, other)


def test_a_newer_schema_says_to_upgrade(path: Path) -> None:
    newer = sealed(b"a layout not invented yet", version=2)
    assert "schema 2, newer than the 1 this pogp reads: upgrade pogp" in refused(path, newer)
    assert "checksum" in refused(path, newer[:-40] + newer[-39:])
    assert "unknown schema 0" in refused(path, sealed({"header": {}, "arrays": []}, version=0))


def entry(**changes: object) -> dict[str, object]:
    return {"name": "x", "dtype": "<f8", "shape": [1], "order": "C", "offset": 0} | changes


WRONG: list[dict[str, object]] = [
    {"name": 1},
    {"name": []},
    {"dtype": "|O"},
    {"dtype": ">f8"},
    {"dtype": []},
    {"order": "F"},
    {"offset": -64},
    {"offset": 64},
    {"offset": "0"},
    {"shape": 1},
    {"shape": "1"},
    {"shape": [-1]},
    {"shape": [True]},
    {"shape": [0]},
    {"shape": [2]},
    {"shape": [1.0]},
    {"shape": [0, 2**40]},
    {"shape": [2**62, 2**62]},
    {"shape": [2**62, 2**62, 0]},
    {"shape": [2**70]},
    {"shape": [1] * 100},
]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"9" * 5_000,
        [],
        {},
        {"header": {}},
        {"header": [], "arrays": [entry()]},
        b'{"header": {"x": NaN}, "arrays": []}',
        b'{"header": {"x": -Infinity}, "arrays": []}',
        b'{"header": {"x": 1e999}, "arrays": []}',
        {"header": {}, "arrays": 1},
        {"header": {}, "arrays": []},
        {"header": {}, "arrays": ["x"]},
        {"header": {}, "arrays": [{"name": "x"}]},
        {"header": {}, "arrays": [entry(shape=[0]), entry()]},
        {"header": {}, "arrays": [entry(), entry(name="y")]},
        *({"header": {}, "arrays": [entry(**changes)]} for changes in WRONG),
    ],
    ids=lambda document: str(document)[:80],
)
def test_a_malformed_header_is_refused_even_if_sealed(path: Path, document: object) -> None:
    assert "malformed" in refused(path, sealed(document, payload=bytes(8)))


def test_sealed_helper_makes_readable_files(path: Path) -> None:
    path.write_bytes(sealed({"header": {"a": 1}, "arrays": [entry()]}, payload=bytes(8)))
    assert container.read(path) == ({"a": 1}, {"x": np.zeros(1)})


def test_errors_of_the_system_pass_through(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(FileNotFoundError):
        container.read(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        container.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        container.write(tmp_path / "absent" / "model", HEADER, ARRAYS)
    with pytest.raises(IsADirectoryError):
        container.write(tmp_path, HEADER, ARRAYS)


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_permission_errors_pass_through(path: Path, content: bytes) -> None:
    path.chmod(0)
    with pytest.raises(PermissionError):
        container.read(path)
