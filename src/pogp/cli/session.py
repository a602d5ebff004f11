"""The loop of `pogp learn`: read, learn, tell, save, until the rows end or somebody stops it."""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from pogp.cli.learning import Checkpoints, Learning
from pogp.cli.output import OutputError
from pogp.cli.progress import Console, Progress
from pogp.cli.signals import Interruption
from pogp.cli.tables import Batch, Table
from pogp.cli.tables.feed import ReadAhead, chunks
from pogp.cli.tables.table import find
from pogp.cli.tally import Tally
from pogp.models.selftuning.warmup import LEAST


@dataclass(frozen=True)
class Session:
    """One call of the command, from where the learning is to where it will be."""

    learning: Learning
    table: Table
    tally: Tally
    checkpoints: Checkpoints
    step: int  # samples learned at once
    console: Console

    def run(self) -> int | None:
        """Learn all rows that come; return the signal that stopped it before, if one did.

        Whatever ends it, a row or a file that cannot be read included, what was learned is saved.
        """
        learning, table = self.learning, self.table
        names = [*learning.columns, learning.target]
        batches = table.batches(find(table.names, names, table.name), learning.position)
        # Rows that may be long in coming are waited for elsewhere; those of a file are at hand.
        reader = ReadAhead(batches, len(names)) if self._live else nullcontext(batches)
        with Interruption() as interruption, reader as rows:
            try:
                self._follow(rows, interruption)
            except OutputError:  # the last checkpoint is in step with what was written
                raise
            except (ValueError, OSError):
                self.checkpoints.save()
                raise
            self.checkpoints.save()
        return interruption.received

    @property
    def _live(self) -> bool:
        """Whether the rows come when they come."""
        return self.table.size is None

    def _follow(self, rows: Iterable[Batch], interruption: Interruption) -> None:
        model = self.learning.model
        eager = self._live and model.sequential
        with self._progress() as progress:
            for chunk in chunks(rows, self.step, model.seen, eager):
                if len(chunk):
                    self._take(chunk)
                    share = self.table.share(chunk.end, chunk.through)
                    progress.update(self.learning.used, self._state, share)
                if interruption.received is not None:
                    return
                self.checkpoints.save_if_due()
        self.tally.require_use(at_the_end=True)
        if model.seen >= LEAST:
            model.settle()  # there is nothing more to wait for

    def _take(self, chunk: Batch) -> None:
        sound = self.tally.sound(chunk)
        if len(sound):
            self.learning.take(sound)
        self.tally.take(chunk)
        self.tally.require_use()

    def _progress(self) -> Progress:
        begun = self.table.share(self.learning.position) or 0.0
        label = Path(self.table.name).name[:13]
        return self.console.progress(label, done=self.learning.used, share=begun)

    def _state(self) -> str:
        model = self.learning.model
        if model.warming_up:
            return "warming up"
        recent = self.learning.journal.recent()
        error = f", error {recent.error[0]:.3f}" if recent.predicted[0] else ""
        return f"M {model.size}{error}"
