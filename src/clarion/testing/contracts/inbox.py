"""Inboxes: lines that are entered and counted as they are made, what their readers make of them, and what expires.

The last test knows no rule of ours: whatever is done, in whatever order, lists and counts are those of a plain list of
lines in which each line is touched by itself.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import pytest
from hypothesis import strategies as st

from clarion.domain.inbox import LineState, Marking, UserMessage
from clarion.domain.key import user_message_rk
from clarion.ports.inbox import InboxCount, InboxLine
from clarion.testing.contracts.comparison import drawn
from clarion.testing.contracts.harness import StoreHarness, everything
from clarion.testing.factories import SOURCE_AT, guid, user_message
from clarion.testing.row import InboxCount as CountRow
from clarion.testing.row import InboxState, InInbox

READER: Final = user_message(1).recipient_id_hash
OTHER: Final = user_message(2).recipient_id_hash
EXAMPLES: Final = 5
Step = tuple[str, list[int], Marking, int]
STEPS: Final[st.SearchStrategy[Step]] = st.tuples(
    st.sampled_from(("new", "new", "some", "some", "some", "all", "time", "sweep", "janitor")),
    st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True),
    st.sampled_from(Marking),
    st.sampled_from((15, 50)),
)
"""What is done, to which lines, with which mark, and how many seconds pass."""


def line(n: int, /, *, reader: int = 1, expires_at: datetime | None = None, category: str | None = None) -> UserMessage:
    """Make the n-th line of a reader; the higher its number, the newer it is."""
    at = SOURCE_AT - timedelta(days=1) + timedelta(seconds=n)
    return user_message(
        reader,
        row_key=user_message_rk(source_at=at, job_rk=f"job-{n}"),
        job_row_key=f"job-{n}",
        message_id=guid(1000 * reader + n, "line"),
        expires_at=expires_at,
        category=category,
    )


def ids(lines: Iterable[UserMessage]) -> list[UUID]:
    """Name lines."""
    return [one.message_id for one in lines]


def words(state: LineState) -> set[str]:
    """Say in words how a line stands."""
    times = {"seen": state.seen_at, "read": state.read_at, "archived": state.archived_at}
    return {word for word, at in times.items() if at is not None}


def counted(states: Collection[Collection[str]]) -> InboxCount:
    """Count by looking at every line."""
    archived = [one for one in states if "archived" in one]
    return InboxCount(
        lines=len(states),
        unseen=sum("seen" not in one for one in states),
        unread=sum("read" not in one for one in states),
        archived=len(archived),
        archived_unseen=sum("seen" not in one for one in archived),
        archived_unread=sum("read" not in one for one in archived),
    )


class InboxContract:
    """The promises of `ports.inbox.InboxStore`, and of making lines."""

    async def test_new_lines_are_entered_and_counted_newest_first(self, harness: StoreHarness) -> None:
        """Each with its kind, as nobody has touched it."""
        made = [line(n, category="billing") for n in (2, 1, 3)]
        answers = await harness.store.ensure_user_messages(harness.tenant_id, [*made, line(1, reader=2)])
        listed = await harness.store.list_inbox(harness.tenant_id, READER)
        assert [one.message_id for one in listed] == ids(line(n) for n in (3, 2, 1))
        assert {one.state for one in listed} == {LineState()}
        assert [one.id for one in listed] == [answers[place].record.id for place in (2, 0, 1)]
        first = listed[0]
        given = (first.category, first.event_type, first.row_key, first.job_row_key, first.partition_key, first.bucket)
        newest = line(3)
        assert given == (
            "billing",
            newest.event_type,
            newest.row_key,
            "job-3",
            newest.partition_key,
            newest.bucket,
        )
        assert await harness.store.count_inbox(harness.tenant_id, READER) == counted([[], [], []])
        assert await harness.store.count_inbox(harness.tenant_id, OTHER) == counted([[]])

    async def test_a_retry_counts_nothing_twice(self, harness: StoreHarness) -> None:
        """Neither the whole set again nor a part of it with something new."""
        await harness.store.ensure_user_messages(harness.tenant_id, [line(1), line(2)])
        stored = await everything(harness)
        await harness.store.ensure_user_messages(harness.tenant_id, [line(2), line(1), line(2)])
        assert await everything(harness) == stored
        await harness.store.ensure_user_messages(harness.tenant_id, [line(2), line(3), line(3)])
        assert await harness.store.count_inbox(harness.tenant_id, READER) == counted([[], [], []])

    async def test_pages_of_an_inbox_make_the_whole(self, harness: StoreHarness) -> None:
        """None twice, none left out, archived ones among them."""
        await harness.store.ensure_user_messages(harness.tenant_id, [line(n) for n in range(7)])
        await harness.store.mark_lines(harness.tenant_id, READER, [line(3).message_id], Marking.ARCHIVE)
        listed: list[InboxLine] = []
        while page := await harness.store.list_inbox(
            harness.tenant_id, READER, after=listed[-1].row_key if listed else "", limit=3
        ):
            assert len(page) <= 3
            listed += page
        assert [one.message_id for one in listed] == ids(line(n) for n in range(6, -1, -1))

    async def test_an_inbox_that_nobody_wrote_to_is_empty(self, harness: StoreHarness) -> None:
        """Whatever is done to it, and it leaves nothing behind."""
        assert list(await harness.store.list_inbox(harness.tenant_id, READER)) == []
        assert await harness.store.count_inbox(harness.tenant_id, READER) == InboxCount()
        for marking in Marking:
            assert await harness.store.mark_lines(harness.tenant_id, READER, [guid(1)], marking) == set()
            assert await harness.store.mark_lines(harness.tenant_id, READER, [], marking) == set()
            marked = await harness.store.mark_inbox(harness.tenant_id, READER, marking)
            assert msgspec.structs.asdict(marked) == dict.fromkeys(msgspec.structs.asdict(marked), 0)
        assert await harness.store.sweep_inbox(harness.tenant_id, READER, limit=10) == 0
        assert await harness.rows(harness.tenant_id, CountRow) == []

    @pytest.mark.parametrize("marking", Marking)
    async def test_to_mark_the_same_again_writes_nothing(self, harness: StoreHarness, marking: Marking) -> None:
        """Neither of one line nor of all."""
        await harness.store.ensure_user_messages(harness.tenant_id, [line(1), line(2)])
        await harness.store.mark_inbox(harness.tenant_id, READER, Marking.READ)
        await harness.store.mark_lines(harness.tenant_id, READER, [line(2).message_id], Marking.ARCHIVE)
        for message_ids in ([line(1).message_id], ids([line(2), line(1)])):
            assert await harness.store.mark_lines(harness.tenant_id, READER, message_ids, marking) == set(message_ids)
            stored = await everything(harness)
            await harness.elapse(timedelta(0))
            assert await harness.store.mark_lines(harness.tenant_id, READER, message_ids, marking) == set(message_ids)
            assert await everything(harness) == stored
        await harness.store.mark_inbox(harness.tenant_id, READER, marking)
        stored = await everything(harness)
        await harness.store.mark_inbox(harness.tenant_id, READER, marking)
        assert await everything(harness) == stored

    async def test_marking_all_writes_the_inbox_and_none_of_its_lines(self, harness: StoreHarness) -> None:
        """However many there are."""
        await harness.store.ensure_user_messages(harness.tenant_id, [line(n) for n in range(5)])
        before = await harness.rows(harness.tenant_id, InboxState)
        for marking in Marking:
            await harness.store.mark_inbox(harness.tenant_id, READER, marking)
            assert await harness.rows(harness.tenant_id, InboxState) == before
        listed = await harness.store.list_inbox(harness.tenant_id, READER)
        assert [words(one.state) for one in listed] == [{"seen"}] * 5

    async def test_a_line_of_somebody_else_or_of_nobody_is_not_marked(self, harness: StoreHarness) -> None:
        """The others of the set are."""
        await harness.store.ensure_user_messages(harness.tenant_id, [line(1), line(1, reader=2)])
        asked = [line(1).message_id, line(1, reader=2).message_id, guid(5)]
        marked = await harness.store.mark_lines(harness.tenant_id, READER, asked, Marking.READ)
        assert marked == {line(1).message_id}
        assert await harness.store.count_inbox(harness.tenant_id, OTHER) == counted([[]])
        assert await harness.store.count_inbox(harness.tenant_id, READER) == counted([["seen", "read"]])

    async def test_what_has_expired_is_gone_at_once_and_counted_until_it_is_swept(self, harness: StoreHarness) -> None:
        """From lists and for marks; of the counts it is said that they hold such lines."""
        now = await harness.now()
        lives, ends = line(1, expires_at=now + timedelta(days=9)), line(2, expires_at=now + timedelta(minutes=5))
        await harness.store.ensure_user_messages(harness.tenant_id, [lives, ends, line(3)])
        assert len(await harness.store.list_inbox(harness.tenant_id, READER)) == 3
        assert await harness.store.sweep_inbox(harness.tenant_id, READER, limit=10) == 0
        await harness.store.mark_lines(harness.tenant_id, READER, [ends.message_id], Marking.SEEN)
        await harness.elapse(timedelta(minutes=5))
        listed = await harness.store.list_inbox(harness.tenant_id, READER)
        assert [one.message_id for one in listed] == ids([line(3), lives])
        assert await harness.store.mark_lines(harness.tenant_id, READER, [ends.message_id], Marking.READ) == set()
        late = await harness.store.count_inbox(harness.tenant_id, READER)
        assert late == msgspec.structs.replace(counted([[], [], ["seen"]]), has_expired=True)
        assert await harness.store.sweep_inbox(harness.tenant_id, READER, limit=10) == 1
        assert await harness.store.count_inbox(harness.tenant_id, READER) == counted([[], []])
        assert await harness.store.sweep_inbox(harness.tenant_id, READER, limit=10) == 0
        assert await harness.store.mark_lines(harness.tenant_id, READER, [ends.message_id], Marking.READ) == set()

    async def test_the_janitor_sweeps_so_many_of_all_inboxes_those_that_expired_first(
        self, harness: StoreHarness
    ) -> None:
        """As each stood when it was swept: read by an act on all, archived by one on itself."""
        now = await harness.now()
        old = [line(n, reader=n, expires_at=now + timedelta(minutes=n)) for n in (1, 2, 3)]
        await harness.store.ensure_user_messages(harness.tenant_id, [*old, line(9), line(9, reader=2)])
        await harness.store.mark_inbox(harness.tenant_id, READER, Marking.READ)
        await harness.store.mark_lines(harness.tenant_id, OTHER, [old[1].message_id], Marking.ARCHIVE)
        await harness.elapse(timedelta(minutes=4))
        assert await harness.store.sweep_inboxes(limit=2) == 2
        assert await harness.store.count_inbox(harness.tenant_id, READER) == counted([["seen", "read"]])
        assert await harness.store.count_inbox(harness.tenant_id, OTHER) == counted([[]])
        third = old[2].recipient_id_hash
        assert (await harness.store.count_inbox(harness.tenant_id, third)).lines == 1
        assert await harness.store.sweep_inboxes(limit=2) == 1
        assert await harness.store.sweep_inboxes(limit=2) == 0
        assert await harness.store.count_inbox(harness.tenant_id, third) == InboxCount()

    async def test_lines_of_a_program_that_knew_no_counts_are_entered(self, harness: StoreHarness) -> None:
        """So many at a time, each once, also into an inbox that has others; until then they are in no list."""
        await harness.store.ensure_user_messages(harness.tenant_id, [line(1), line(2), line(3), line(1, reader=2)])
        await harness.store.mark_inbox(harness.tenant_id, READER, Marking.READ)
        for row in await harness.rows(harness.tenant_id, InInbox):
            if row.row_key != line(1).row_key:
                await harness.overwrite(harness.tenant_id, msgspec.structs.replace(row, in_inbox=False))
        for state in await harness.rows(harness.tenant_id, InboxState):
            if state.row_key != line(1).row_key:
                await harness.remove(harness.tenant_id, state)
        (count,) = [one for one in await harness.rows(harness.tenant_id, CountRow) if one.key == (READER,)]
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(count, lines=1))
        listed = await harness.store.list_inbox(harness.tenant_id, READER)
        assert [one.message_id for one in listed] == ids([line(1)])
        entered = [await harness.store.enter_lines(limit=1) for _ in range(3)]
        assert entered == [1, 1, 0]
        listed = await harness.store.list_inbox(harness.tenant_id, READER)
        assert [(one.message_id, words(one.state)) for one in listed] == [
            (line(3).message_id, set()),
            (line(2).message_id, set()),
            (line(1).message_id, {"seen", "read"}),
        ]
        assert await harness.store.count_inbox(harness.tenant_id, READER) == counted([[], [], ["seen", "read"]])

    async def test_what_lines_say_is_found_as_it_was_sealed(self, harness: StoreHarness) -> None:
        """Of the tenant's lines only, and nothing of a line that says nothing."""
        said = msgspec.structs.replace(line(1), content=b"sealed")
        answers = await harness.store.ensure_user_messages(harness.tenant_id, [said, line(2)])
        named = [(one.record.bucket, one.record.id or 0) for one in answers]
        assert await harness.store.find_contents(harness.tenant_id, named) == {named[0][1]: b"sealed"}
        assert await harness.store.find_contents(harness.tenant_id, []) == {}
        assert await harness.store.find_contents(f"{harness.tenant_id}-2", named) == {}

    async def test_lists_and_counts_are_those_of_a_list_in_which_every_line_is_touched(
        self, harness: StoreHarness
    ) -> None:
        """New lines, marks of some and of all, time that passes, and sweeps, as chance puts them together."""
        for reader, example in enumerate(drawn(STEPS, examples=EXAMPLES, operations=(40, 80), seed=11), start=1):
            await _follow(harness, reader, example)


async def _follow(harness: StoreHarness, reader: int, example: Sequence[Step]) -> None:
    """Do the same to an inbox and to a plain list, and look at both after each step."""
    store, tenant_id, plain = harness.store, harness.tenant_id, PlainInbox()
    inbox = user_message(reader).recipient_id_hash

    async def look() -> None:
        listed = await store.list_inbox(tenant_id, inbox, limit=200)
        assert {one.message_id: words(one.state) for one in listed} == {
            line(n, reader=reader).message_id: state for n, state in plain.lines.items()
        }
        counts = await store.count_inbox(tenant_id, inbox)
        assert counts.has_expired or counts == counted(list(plain.lines.values()))

    for what, numbers, marking, seconds in example:
        named = ids(line(n, reader=reader) for n in numbers)
        if what == "new":
            now = await harness.now()
            lives = {n: None if n % 3 == 0 else now + timedelta(seconds=20 * n) for n in numbers}
            lines = [line(n, reader=reader, expires_at=at) for n, at in lives.items()]
            await store.ensure_user_messages(tenant_id, lines)
            plain.add({n: None if at is None else 20 * n for n, at in lives.items()})
        elif what == "some":
            found = await store.mark_lines(tenant_id, inbox, named, marking)
            assert found == set(ids(line(n, reader=reader) for n in plain.mark(numbers, marking)))
        elif what == "all":
            await store.mark_inbox(tenant_id, inbox, marking)
            plain.mark(list(plain.lines), marking)
        elif what == "time":
            await harness.elapse(timedelta(seconds=seconds))
            plain.wait(seconds)
        elif what == "sweep":
            await store.sweep_inbox(tenant_id, inbox, limit=len(numbers))
        else:
            await store.sweep_inboxes(limit=len(numbers))
        await look()
    while await store.sweep_inbox(tenant_id, inbox, limit=3):
        await look()
    assert await store.count_inbox(tenant_id, inbox) == counted(list(plain.lines.values()))


class PlainInbox:
    """The lines of an inbox that have not expired, by number, each with the words that are true of it."""

    def __init__(self) -> None:
        """Begin without lines."""
        self.lines: dict[int, set[str]] = {}
        self._left: dict[int, int] = {}
        self._made: set[int] = set()

    def add(self, lives: dict[int, int | None]) -> None:
        """Add lines, each with the seconds that it lives; one that was there before is not made again."""
        for n, life in lives.items():
            if n not in self._made:
                self._made.add(n)
                self.lines[n] = set()
                if life is not None:
                    self._left[n] = life

    def mark(self, numbers: Iterable[int], marking: Marking) -> list[int]:
        """Touch those lines that are there, and name them."""
        there = [n for n in numbers if n in self.lines]
        for n in there:
            match marking.value:
                case "seen":
                    self.lines[n].add("seen")
                case "read":
                    self.lines[n].update(("seen", "read"))
                case "unread":
                    self.lines[n].discard("read")
                case "archive":
                    self.lines[n].add("archived")
                case _:
                    self.lines[n].discard("archived")
        return there

    def wait(self, seconds: int) -> None:
        """Let time pass, and drop what expires."""
        for n in list(self._left):
            self._left[n] -= seconds
            if self._left[n] <= 0:
                del self.lines[n], self._left[n]
