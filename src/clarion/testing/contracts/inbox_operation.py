"""Operations on inboxes that chance can put together: new lines, what readers make of them, time and sweeps.

As those of `queue_operation`, they name lines and readers by small numbers and can run on two stores.
"""

from datetime import timedelta
from typing import Final

import msgspec
from hypothesis import strategies as st

from clarion.domain.inbox import Marking, UserMessage
from clarion.domain.key import user_message_rk
from clarion.testing.contracts.queue_operation import Elapse
from clarion.testing.contracts.side import Operation, Side
from clarion.testing.factories import SOURCE_AT, guid, user_message
from clarion.testing.row import InboxState, InInbox

READERS: Final = range(1, 4)
LINES: Final = range(1, 6)
PAGE: Final = 2


class PutLines(msgspec.Struct, frozen=True):
    """Make lines: (reader, number, seconds that it lives or 0)."""

    lines: tuple[tuple[int, int, int], ...]

    async def run(self, side: Side) -> object:
        """Ensure the set; a line that is there keeps the life that it has."""
        now = await side.harness.now()
        items = []
        for reader, n, seconds in self.lines:
            expires_at = now + timedelta(seconds=seconds) if seconds else None
            items.append(msgspec.structs.replace(_line(reader, n), expires_at=expires_at))
        return await side.store.ensure_user_messages(side.tenant_id, items)


class MarkLines(msgspec.Struct, frozen=True):
    """Mark lines of an inbox, some of which may not be there or be somebody else's."""

    reader: int
    lines: tuple[tuple[int, int], ...]
    marking: Marking

    async def run(self, side: Side) -> object:
        """Mark them."""
        named = [_line(*one).message_id for one in self.lines]
        return await side.store.mark_lines(side.tenant_id, _inbox(self.reader), named, self.marking)


class MarkInbox(msgspec.Struct, frozen=True):
    """Mark all lines of an inbox."""

    reader: int
    marking: Marking

    async def run(self, side: Side) -> object:
        """Mark it."""
        return await side.store.mark_inbox(side.tenant_id, _inbox(self.reader), self.marking)


class Sweep(msgspec.Struct, frozen=True):
    """Sweep one inbox, or any."""

    reader: int | None
    limit: int

    async def run(self, side: Side) -> object:
        """Sweep it."""
        if self.reader is None:
            return await side.store.sweep_inboxes(limit=self.limit)
        return await side.store.sweep_inbox(side.tenant_id, _inbox(self.reader), limit=self.limit)


class Forget(msgspec.Struct, frozen=True):
    """Make a line as a program leaves it that knows of no counts: a new one, or one that was entered before."""

    reader: int
    n: int

    async def run(self, side: Side) -> object:
        """Take its entry away; what was counted stays, on both sides."""
        await side.store.ensure_user_messages(side.tenant_id, [_line(self.reader, self.n)])
        key = _inbox(self.reader), _line(self.reader, self.n).row_key
        for state in await side.harness.rows(side.tenant_id, InboxState):
            if state.key == key:
                await side.harness.remove(side.tenant_id, state)
        for row in await side.harness.rows(side.tenant_id, InInbox):
            if row.key == key:
                await side.harness.overwrite(side.tenant_id, msgspec.structs.replace(row, in_inbox=False))
        return await side.store.enter_lines(limit=1)


class LookIn(msgspec.Struct, frozen=True):
    """List and count an inbox."""

    reader: int

    async def run(self, side: Side) -> object:
        """Give its first two pages, what their lines say, and its counts."""
        store, tenant_id, inbox = side.store, side.tenant_id, _inbox(self.reader)
        first = await store.list_inbox(tenant_id, inbox, limit=PAGE)
        then = await store.list_inbox(tenant_id, inbox, after=first[-1].row_key, limit=PAGE) if first else ()
        said = await store.find_contents(tenant_id, [(one.bucket, one.id) for one in (*first, *then)])
        return first, then, sorted(said.values()), await store.count_inbox(tenant_id, inbox)


def _inbox(reader: int) -> str:
    return user_message(reader).recipient_id_hash


def _line(reader: int, n: int) -> UserMessage:
    at = SOURCE_AT - timedelta(days=1) + timedelta(seconds=n)
    return user_message(
        reader,
        row_key=user_message_rk(source_at=at, job_rk=f"job-{n}"),
        job_row_key=f"job-{n}",
        message_id=guid(10 * reader + n, "line"),
        category="billing" if n % 2 else None,
        content=f"{reader}, {n}".encode(),
    )


_READER: Final = st.sampled_from(READERS)
_LINE: Final = st.sampled_from(LINES)
_MARKING: Final = st.sampled_from(Marking)
_DRAWN: Final[tuple[tuple[int, st.SearchStrategy[Operation]], ...]] = (
    (
        6,
        st.builds(
            PutLines,
            lines=st.lists(
                st.tuples(_READER, _LINE, st.sampled_from((0, 30, 90))),
                min_size=1,
                max_size=4,
                unique_by=lambda one: one[:2],
            ).map(tuple),
        ),
    ),
    (
        6,
        st.builds(
            MarkLines,
            reader=_READER,
            lines=st.lists(st.tuples(_READER, _LINE), max_size=4).map(tuple),
            marking=_MARKING,
        ),
    ),
    (4, st.builds(MarkInbox, reader=_READER, marking=_MARKING)),
    (3, st.builds(Elapse, seconds=st.sampled_from((1, 29, 41)))),
    (3, st.builds(Sweep, reader=st.one_of(st.none(), _READER), limit=st.sampled_from((1, 2, 100)))),
    (1, st.builds(Forget, reader=_READER, n=_LINE)),
    (3, st.builds(LookIn, reader=_READER)),
)
INBOX_OPERATIONS: Final = st.sampled_from(
    [place for place, (times, _) in enumerate(_DRAWN) for _ in range(times)]
).flatmap(lambda place: _DRAWN[place][1])
