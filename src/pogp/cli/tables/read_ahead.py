"""Reading ahead: a thread of its own waits for rows that come when they come."""

import queue
import sys
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from pogp.cli.tables.batch import Batch

DEPTH = 4
"""Batches that may wait to be taken; memory is bounded by them."""
TURN = 2e-4
"""Seconds that the thread may go on when learning needs the interpreter again."""
PATIENCE = 0.2
"""Seconds after which an empty batch says that nothing came, so that nobody waits in vain."""

Item = Batch | BaseException | None  # None at the end


class Ahead:
    """Batches as they come. To be entered with `with`, which ends the thread in the end.

    The compiled core learns without the interpreter's lock, which is when the thread gets its turn.
    """

    def __init__(self, batches: Iterator[Batch], columns: int) -> None:
        self._batches = batches
        self._nothing = Batch.empty(columns)
        self._waiting: queue.Queue[Item] = queue.Queue(DEPTH)
        self._left = threading.Event()
        self._turn = sys.getswitchinterval()
        # A daemon, since it may wait for standard input for ever.
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
        """Wait for room; return whether anyone is still interested."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._left.set()
        sys.setswitchinterval(self._turn)
        # So that nothing is closed under its hands; unless it waits for standard input.
        self._thread.join(timeout=2 * PATIENCE)
