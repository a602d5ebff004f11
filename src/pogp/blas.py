"""One BLAS thread for the package's own small products, without touching the user's settings.

A stream of samples is a stream of small products, of a few hundred rows at most. OpenBLAS splits
each of them among all processors and lets them wait for each other, which gains little on an idle
machine and costs a lot on a busy one. So there is one thread while a model of a bounded order
learns or predicts, and the number is put back afterwards: products of the user, and large ones of
the package, keep theirs.

OpenBLAS has a call for it, in the libraries that NumPy and SciPy have loaded, which takes
microseconds. For another BLAS it is set by threadpoolctl, if that is installed. A user who has set
one of `VARIABLES`, before NumPy was imported, has decided already, and nothing is changed.
"""

import ctypes
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, RLock
from typing import NamedTuple, Self

VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
MAPS = Path("/proc/self/maps")


class Library(NamedTuple):
    """A BLAS that is loaded: how to read and to set its number of threads."""

    read: Callable[[], int]
    set: Callable[[int], object]


class OneThread:
    """`with` it, the libraries use one thread; the last one to leave restores what there was."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before: list[tuple[Library, int]] = []

    def __enter__(self) -> Self:
        found = libraries()
        if found:
            with self._lock:
                self._inside += 1
                if self._inside == 1:
                    threads = [(library, library.read()) for library in found]
                    self._before = [(library, count) for library, count in threads if count > 1]
                    for library, _ in self._before:
                        library.set(1)
        return self

    def __exit__(self, *error: object) -> None:
        if libraries():
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    for library, count in self._before:
                        library.set(count)

    def forget(self) -> None:
        """Reset the lock in a forked process, where a thread of the parent may have held it."""
        self._lock, self._inside, self._before = Lock(), 0, []


one_thread = OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_thread.forget)


class BlasLock:
    """A lock that threads take turns by, in which BLAS has one thread; see `blas_lock`."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> Self:
        self._lock.acquire()
        one_thread.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        one_thread.__exit__(*error)
        self._lock.release()


def blas_lock(limited: bool) -> AbstractContextManager[object]:
    """Return a lock that a thread may hold several times, in which BLAS has one if `limited`."""
    # looking for libraries takes milliseconds the first time, which no sample should wait for
    return BlasLock() if limited and libraries() else RLock()


@cache
def libraries() -> tuple[Library, ...]:
    """Return the BLAS libraries that are loaded; none if the user has set their threads."""
    found = tuple(each for path in sorted(_paths()) if (each := _open(path)) is not None)
    found = found or _by_threadpoolctl()
    chosen = [os.environ[name] for name in VARIABLES if name in os.environ]
    most = max((int(each) for each in chosen if each.isdecimal()), default=os.cpu_count() or 1)
    # a library that was loaded before its variable was set has not read it
    in_force = bool(chosen) and all(library.read() <= most for library in found)
    return () if in_force else found


def _by_threadpoolctl() -> tuple[Library, ...]:
    if find_spec("threadpoolctl") is None:
        return ()
    found = (
        import_module("threadpoolctl")
        .ThreadpoolController()
        .select(user_api="blas")
        .lib_controllers
    )
    return tuple(Library(each.get_num_threads, each.set_num_threads) for each in found)


def _paths() -> set[str]:
    """Return the files of OpenBLAS that this process has loaded."""
    if MAPS.exists():
        return set(re.findall(r"/\S*openblas\S*", MAPS.read_text(errors="replace")))
    folders = [Path(str(import_module(name).__file__)).parent for name in ("numpy", "scipy")]
    places = [*(each / ".dylibs" for each in folders)]
    places += [each.with_name(f"{each.name}.libs") for each in folders]
    return {str(path) for place in places for path in place.glob("*openblas*")}


def _open(path: str) -> Library | None:
    """Return the library in a file, under whichever names it has its calls."""
    try:
        loaded = ctypes.CDLL(path)
    except OSError:
        return None
    for prefix in ("scipy_", ""):
        for suffix in ("", "64_", "_64"):
            try:
                return Library(
                    loaded[f"{prefix}openblas_get_num_threads{suffix}"],
                    loaded[f"{prefix}openblas_set_num_threads{suffix}"],
                )
            except AttributeError:
                continue
    return None
