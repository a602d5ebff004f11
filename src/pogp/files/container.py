r"""One file holding a JSON header and named arrays; reading it never runs code.

The layout, all integers unsigned and little-endian::

    offset     bytes  content
    0              8  signature: 89 50 4F 47 0D 0A 1A 0A, that is "\x89POG\r\n\x1a\n"
    8              4  version of the container: 1
    12             8  H, the length of the header
    20             8  P, the length of the payload
    28             H  header: JSON in UTF-8
    28 + H         -  zero bytes up to S, the next multiple of 64 (none if 28 + H is one)
    S              P  payload: the bytes of the arrays
    S + P         32  SHA-256 of every byte before it; the file ends here

The header is ``{"arrays": [...], "header": {...}}``. ``header`` is the caller's. ``arrays`` has
one entry per array, sorted by name::

    {"dtype": "<f8", "name": "targets", "offset": 64, "order": "C", "shape": [5]}

``dtype`` is ``<f8`` (IEEE double), ``<i8`` (signed, 64 bits), ``|u1`` (a byte) or ``|b1`` (a byte,
0 or 1). ``order`` is always ``C``: the last index varies fastest. ``shape`` is ``[]`` for a single
number. ``offset`` counts from S. The arrays lie in the order of the table, each at the first
multiple of 64 after the one before, with zero bytes between; the payload ends with the last.

The signature, as PNG's, shows a file that went through a text-mode transfer. Every later version
will keep the signature, the place of the version and the final SHA-256, so that a newer file can
be distinguished from a damaged one. The same content always gives the same bytes.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import re
import secrets
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BufferedWriter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pogp.errors import FormatError

SCHEMA = 1

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Path: TypeAlias = str | os.PathLike[str]

_MAGIC = b"\x89POG\r\n\x1a\n"
_PREAMBLE = struct.Struct("<8sIQQ")
_DTYPES = {"<f8": "float64", "<i8": "int64", "|u1": "uint8", "|b1": "bool"}
_ALIGNMENT = 64
_DIGEST = hashlib.sha256().digest_size
_WIDEST = 4096
"""An array of shape (0, p) takes no bytes of the file, but may make its reader allocate many."""
_SUFFIX = ".tmp"


def write(path: Path, header: Mapping[str, JSON], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `header` and `arrays` to `path`, completely, or leave an existing file unchanged.

    An existing file keeps its permissions; a symbolic link stays, and its target is replaced. The
    one error that finds the new file in place is a failure to make the rename itself durable. A
    writer that is killed leaves a temporary, ".name.<16 hex digits>.tmp", to the next one to sweep.
    """
    replace(path, encode(header, arrays))


def read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays in the file at `path`; each array owns its memory.

    Anything wrong with the content is a `FormatError`. An `OSError` passes through.
    """
    with open(os.fspath(path), "rb") as file:  # a number is not a path
        content = file.read(len(_MAGIC))
        if content == _MAGIC:  # a huge file of another kind is not worth reading
            content += file.read()
    try:
        return decode(content)
    except FormatError as error:
        raise FormatError(f"{os.fspath(path)}: {error}") from error


def _align(position: int) -> int:
    return position + -position % _ALIGNMENT


def encode(
    header: Mapping[str, JSON], arrays: Mapping[str, NDArray[Any]]
) -> list[bytes | memoryview]:
    """Return the file in pieces, so that large arrays are not copied."""
    table: list[JSON] = []
    payload: list[bytes | memoryview] = []
    end = 0
    for name, array in sorted(arrays.items()):
        dtype = array.dtype.newbyteorder("<").str
        if dtype not in _DTYPES:
            allowed = ", ".join(_DTYPES.values())
            raise ValueError(f"array {name!r} is of dtype {array.dtype}; expected one of {allowed}")
        start = _align(end)
        # A hash takes one-dimensional buffers only.
        flat = np.ravel(array).astype(dtype, copy=False)
        payload += [bytes(start - end), flat.data]
        shape = list(array.shape)
        table.append({"name": name, "dtype": dtype, "shape": shape, "order": "C", "offset": start})
        end = start + flat.nbytes

    document = {"header": header, "arrays": table}
    text = json.dumps(document, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()
    front = _PREAMBLE.pack(_MAGIC, SCHEMA, len(text), end) + text
    pieces = [front.ljust(_align(len(front)), b"\0"), *payload]
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return [*pieces, digest.digest()]


def decode(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file's content, or FormatError."""
    if not content.startswith(_MAGIC):
        raise FormatError("not a pogp file, or damaged: its first 8 bytes are not the signature")
    if len(content) < _PREAMBLE.size + _DIGEST:
        raise FormatError(f"truncated: only {len(content)} bytes")
    _, version, header_length, payload_length = _PREAMBLE.unpack_from(content)
    header_end = _PREAMBLE.size + header_length
    start = _align(header_end)
    end = start + payload_length
    # Only this version's lengths are known to mean what they mean here.
    if version == SCHEMA and len(content) != end + _DIGEST:
        raise FormatError(
            f"truncated, extended or damaged: {len(content)} bytes, but its preamble announces "
            f"{end + _DIGEST}"
        )
    view = memoryview(content)
    if hashlib.sha256(view[:-_DIGEST]).digest() != view[-_DIGEST:]:
        raise FormatError("damaged: its content does not match its checksum")
    if version > SCHEMA:
        raise FormatError(
            f"written in schema {version}, newer than the {SCHEMA} this pogp reads: upgrade pogp"
        )
    if version != SCHEMA:
        raise FormatError(f"of unknown schema {version}; this pogp reads {SCHEMA}")
    try:
        text = content[_PREAMBLE.size : header_end].decode()
        document = json.loads(text, parse_float=_finite, parse_constant=_finite)
        header = document["header"]
        if not isinstance(header, dict):
            raise TypeError("its header is not a JSON object")
        return header, _arrays(document["arrays"], view[start:end])
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise FormatError(f"malformed though its checksum holds ({error!r})") from error


def _finite(text: str) -> float:
    """Read a number as JSON has them: Python would also take NaN, Infinity and 1e999."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return number


def _arrays(table: Iterable[dict[str, Any]], payload: memoryview) -> dict[str, NDArray[Any]]:
    """Copy the arrays out of the payload, which they must fill exactly, without overlap."""
    arrays: dict[str, NDArray[Any]] = {}
    end = 0
    for entry in table:
        name, shape, offset = entry["name"], entry["shape"], entry["offset"]
        if not isinstance(name, str) or name in arrays:
            raise ValueError(f"array name {name!r} is not a string, or not the only one")
        if entry["dtype"] not in _DTYPES or entry["order"] != "C" or offset != _align(end):
            raise ValueError(f"array {name!r} is of unknown dtype or order, or out of place")
        if min(shape, default=0) < 0:  # NumPy would take [-1] for "as many as fit"
            raise ValueError(f"array {name!r} has a negative shape, {shape}")
        if max(shape, default=0) > max(_WIDEST, len(payload)):
            raise ValueError(f"array {name!r} has a shape beyond the payload, {shape}")
        dtype = np.dtype(entry["dtype"])
        stored: NDArray[Any] = np.ndarray(tuple(shape), dtype, payload, offset)
        arrays[name] = stored.astype(dtype.newbyteorder("="), order="C")
        end = offset + stored.nbytes
    if end != len(payload):
        raise ValueError(f"the arrays take {end} bytes of a payload of {len(payload)}")
    return arrays


def replace(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Put a file made of `pieces` at `path` so that a crash leaves the old one or the new one."""
    target = os.path.realpath(path)
    mode = _mode(target)
    _sweep(target)
    with contextlib.ExitStack() as stack:
        with _named(path):
            file = stack.enter_context(_temporary(target))
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        for piece in pieces:  # whose own errors are not about this file
            with _named(path):
                file.write(piece)
        with _named(path):
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, target)
    _sync(os.path.dirname(target))


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Give errors of the system the name of the file that the caller knows."""
    try:
        yield
    except OSError as error:
        error.filename = os.fspath(path)
        raise


@contextlib.contextmanager
def _temporary(target: str) -> Iterator[BufferedWriter]:
    """Open a new file beside `target`, locked while it is open; remove it if anything fails."""
    while True:
        with open(_prefix(target) + secrets.token_hex(8) + _SUFFIX, "xb") as file:
            if not _is_ours(file):
                continue
            try:
                yield file
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(file.name)
                with contextlib.suppress(OSError):  # of what is still in its buffer
                    file.close()
                raise
            return


def _prefix(target: str) -> str:
    """Return the prefix of the temporary files of `target`: a dot, and its own name."""
    folder, name = os.path.split(target)
    room = 255 - len("..") - 16 - len(_SUFFIX)
    return os.path.join(folder, f".{os.fsdecode(os.fsencode(name)[:room])}.")


def _is_ours(file: BufferedWriter) -> bool:
    """Lock a new file; return False if another writer has removed it before."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, where nothing is swept
        return True
    return os.fstat(file.fileno()).st_nlink > 0


def _sweep(target: str) -> None:
    """Remove temporaries of `target` that killed writers left, whose locks are free."""
    ours = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{16}" + re.escape(_SUFFIX))
    # Files that cannot be removed stay.
    with contextlib.suppress(OSError), os.scandir(os.path.dirname(target)) as entries:
        for entry in entries:
            if ours.fullmatch(entry.path) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError), open(entry.path, "r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)


def _mode(target: str) -> int | None:
    """Return the permissions of the file to be replaced, None if there is none yet."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not stat.S_ISREG(mode):  # a device such as /dev/null must not become a plain file
        raise OSError(errno.EINVAL, "Not a regular file", target)
    return stat.S_IMODE(mode)


def _sync(folder: str) -> None:
    """Make a rename in `folder` survive a loss of power, where the file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
