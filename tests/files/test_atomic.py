"""A file is replaced whole or not at all, and what killed writers left is swept."""

import errno
import fcntl
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pogp.files import container

HEADER: dict[str, container.JSON] = {"model": "POG", "seen": 3}
ARRAYS = {"alpha": np.array([0.1, -0.0])}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.pogp"


@pytest.fixture
def content(path: Path) -> bytes:
    container.write(path, HEADER, ARRAYS)
    return path.read_bytes()


@pytest.mark.parametrize("call", ["fchmod", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_failing_call_changes_nothing(
    path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(error)):
        container.write(path, {}, {})
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(("count", "length"), [(1, 10_000), (100, 100)])  # large, and buffered
def test_a_full_disk_changes_nothing(path: Path, content: bytes, count: int, length: int) -> None:
    arrays = {f"x{i}": np.zeros(length) for i in range(count)}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            container.write(path, {}, arrays)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.filename == str(path)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_a_first_write_that_fails_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        container.write(path, HEADER, ARRAYS)
    assert os.listdir(path.parent) == []


def test_content_is_on_disk_before_the_rename_and_the_rename_after(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def spy(name: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            on_folder = name == "fsync" and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
            calls.append(f"{name} folder" if on_folder else name)
            real(*arguments)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, spy(name, getattr(os, name)))
    container.write(path, HEADER, ARRAYS)
    assert calls == ["fsync", "replace", "fsync folder"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_only_a_file_system_that_cannot_sync_folders_is_forgiven(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fsync)
    if code == errno.EIO:
        with pytest.raises(OSError, match=os.strerror(code)):
            container.write(path, HEADER, ARRAYS)
    else:
        container.write(path, HEADER, ARRAYS)
    assert container.read(path)[0] == HEADER


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_gets_the_permissions_of_open(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        container.write(path, HEADER, ARRAYS)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_an_existing_file_keeps_its_permissions(path: Path, content: bytes) -> None:
    path.chmod(0o640)
    container.write(path, {}, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_files_of_a_killed_writer_are_removed(path: Path, content: bytes) -> None:
    left = path.with_name(f".{path.name}.0123456789abcdef.tmp")
    others = [
        path.with_name(f".other{path.name}.0123456789abcdef.tmp"),
        path.with_name(f".{path.name}.0123.tmp"),
        path.with_name(f"{path.name}.tmp"),
    ]
    for file in (left, *others):
        file.write_bytes(content[:50])
    container.write(path, HEADER, ARRAYS)
    assert sorted(path.parent.iterdir()) == sorted([path, *others])
    assert path.read_bytes() == content


def test_files_of_a_running_writer_are_not_removed(path: Path, content: bytes) -> None:
    theirs = path.with_name(f".{path.name}.0123456789abcdef.tmp")
    with theirs.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        container.write(path, {}, {})
        assert theirs.exists()
    container.write(path, {}, {})
    assert not theirs.exists()


@pytest.mark.parametrize("when", ["before it is locked", "as it is locked"])
def test_one_whose_temporary_is_swept_takes_another(
    path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    names: list[str] = []
    lock = fcntl.flock

    def flock(file: Any, operation: int) -> None:
        names.append(file.name)
        if len(names) == 1:
            os.unlink(file.name)
            if when == "as it is locked":
                raise BlockingIOError
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    container.write(path, HEADER, ARRAYS)
    assert len(set(names)) == 2
    assert container.read(path)[0] == HEADER
    assert os.listdir(path.parent) == [path.name]


def test_without_locks_nothing_is_swept(
    path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    left = path.with_name(f".{path.name}.0123456789abcdef.tmp")
    left.touch()
    container.write(path, {}, {})
    assert sorted(path.parent.iterdir()) == sorted([path, left])


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, dangling: bool) -> None:
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "model", tmp_path / "link"
    if not dangling:
        target.write_bytes(b"old")
    link.symlink_to(Path("store") / "model")
    container.write(link, HEADER, ARRAYS)
    assert link.is_symlink()
    assert container.read(target)[0] == HEADER
    assert os.listdir(target.parent) == ["model"]


def test_a_device_is_not_replaced(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(OSError, match="Not a regular file"):
        container.write(path, HEADER, ARRAYS)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_long_name_leaves_room_for_the_temporary(tmp_path: Path) -> None:
    path = tmp_path / ("m" * 255)
    container.write(path, HEADER, ARRAYS)
    assert container.read(path)[0] == HEADER


def test_a_relative_path_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    container.write("model", HEADER, ARRAYS)
    assert os.listdir(tmp_path) == ["model"]
