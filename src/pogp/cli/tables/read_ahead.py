"""Batches of rows that are slow to arrive, read ahead in a thread."""

import queue
import sys
import threading
from collections.abc import Iterator
from typing import Self

from pogp.cli.tables.table import Batch

DEPTH = 4
"""The most batches that wait to be taken."""
TURN = 2e-4
"""The switch interval of the interpreter, in seconds, while the thread reads."""
PATIENCE = 0.2
"""Seconds without rows after which an empty batch is yielded."""

Item = Batch | BaseException | None  # None at the end


class ReadAhead:
    """Batches read in a thread. Use it in a `with` statement, which ends the thread.

    The thread runs while the compiled core learns without the interpreter's lock.
    """

    def __init__(self, batches: Iterator[Batch], columns: int) -> None:
        self._batches = batches
        self._nothing = Batch.empty(columns)
        self._waiting: queue.Queue[Item] = queue.Queue(DEPTH)
        self._left = threading.Event()
        self._turn = sys.getswitchinterval()
        # A daemon, since it may wait for standard input indefinitely.
        self._thread = threading.Thread(target=self._read, name="pogp reader", daemon=True)

    def _read(self) -> None:
        try:
            for batch in self._batches:
                if not self._put(batch):
                    return
        except BaseException as error:  # raised again where the batches are taken
            self._put(error)
        else:
            self._put(None)

    def _put(self, item: Item) -> bool:
        """Wait for room; return False if the reader was left."""
        while not self._left.is_set():
            try:
                self._waiting.put(item, timeout=PATIENCE)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[Batch]:
        while True:
            try:
                item = self._waiting.get(timeout=PATIENCE)
            except queue.Empty:
                yield self._nothing
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def __enter__(self) -> Self:
        sys.setswitchinterval(TURN)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        sys.setswitchinterval(self._turn)
        # The file must not be closed while the thread reads, unless it waits for standard input.
        self._thread.join(timeout=2 * PATIENCE)
