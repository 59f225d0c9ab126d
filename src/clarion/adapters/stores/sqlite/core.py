"""The synchronous core: works as transactions, one for itself or several in one commit, and nothing of asyncio.

A work is what a store method does inside its transaction; the works themselves live in the other modules of the
package. All methods are called in one thread, that of the runner.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, Generic, TypeVar

from clarion.adapters.stores.sqlite.session import Session, Transaction
from clarion.errors import BrokenInvariant

T = TypeVar("T")

Work = Callable[[Transaction], T]

CHANGES_MAX: Final = 1000
"""Rows after which a commit takes no further work: as many as one set may have, so that nobody waits long behind it."""

TIME_MAX: Final = timedelta(milliseconds=10)
"""How long a commit may grow: about as long as a set of a thousand takes, and many times what a flush costs."""


class Outcome(Generic[T]):
    """What a work returned or raised, kept for whoever waits for it: `with outcome: outcome.value = …`."""

    value: T
    error: BaseException | None = None

    def __enter__(self) -> None:
        """Begin to watch."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Keep the error, whatever it is: it belongs to the one who waits, not to the thread."""
        self.error = error
        return error is not None


class SqliteCore:
    """One database, and the ways to work on it."""

    def __init__(self, session: Session) -> None:
        """Serve the database of a session, which is opened by `open`."""
        self._session = session

    def open(self) -> None:
        """Open the connection, in the thread that will use it."""
        self._session.open()

    def close(self) -> None:
        """Close the connection, in the thread that opened it."""
        self._session.close()

    def read(self, work: Work[T]) -> T:
        """Run a work that writes nothing."""
        with self._session.reading() as transaction:
            return work(transaction)

    def write(self, work: Work[T]) -> T:
        """Run a work with a commit of its own."""
        with self._session.transaction() as transaction:
            return work(transaction)

    def write_together(self, works: Sequence[Work[T]]) -> list[Outcome[T]]:
        """Run the first works that fit into one commit, each under a savepoint; return what became of those.

        A work that fails is rolled back and hurts no other. Where what they share fails (the disk is full, the commit
        is refused), each is tried again by itself, so that only those fail that cannot succeed.
        """
        if len(works) == 1:
            return [self._alone(works[0])]
        outcomes: list[Outcome[T]] = []
        shared = Outcome[None]()
        with shared, self._session.commit() as commit:
            deadline = self._session.monotonic() + TIME_MAX.total_seconds()
            for work in works:
                outcome = Outcome[T]()
                outcomes.append(outcome)
                with outcome, commit.part() as transaction:
                    outcome.value = work(transaction)
                if not commit.stands:
                    raise BrokenInvariant("a transaction was ended from inside")
                if commit.changes >= CHANGES_MAX or self._session.monotonic() >= deadline:
                    break
        if shared.error is None:
            return outcomes
        if not outcomes:  # it did not even begin: who waits is told at once, instead of waiting for the same again
            return [_failed(shared.error) for _ in works]
        return [self._alone(work) for work in works[: len(outcomes)]]

    def _alone(self, work: Work[T]) -> Outcome[T]:
        """Run a work with a commit of its own, and keep what becomes of it."""
        outcome = Outcome[T]()
        with outcome:
            outcome.value = self.write(work)
        return outcome


def _failed(error: BaseException) -> Outcome[T]:
    outcome = Outcome[T]()
    outcome.error = error
    return outcome
