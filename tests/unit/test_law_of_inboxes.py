"""How a line of an inbox stands, and how many there are: the law against the rule.

The law of one line is a table written by hand: what its reader did, to it alone ("one") or to all lines ("all"), in
order, and what the line is then. The law of the counts is the oldest there is: look at every line and count.
"""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.inbox import NEW, Inbox, LineRow, LineState, Marking, after_all, after_one, state_of
from tests.unit.law import Line, lines

LAW = """
what was done                                      | the line is
-                                                  | -
one seen                                           | seen
one read                                           | seen, read
one archive                                        | archived
one unread                                         | -
one unarchive                                      | -
one read, one unread                               | seen
one archive, one unarchive                         | -
one archive, one read                              | seen, read, archived
all seen                                           | seen
all read                                           | seen, read
all archive                                        | archived
all unread                                         | -
all unarchive                                      | -
all seen, all unread                               | seen
all read, all unread                               | seen
all read, one unread                               | seen
all read, one unread, all read                     | seen, read
all read, all unread, all read                     | seen, read
all read, all unread, all seen                     | seen
one read, all unread                               | seen
one read, all unread, one read                     | seen, read
one read, all unread, all archive, all unarchive   | seen
all unread, one read                               | seen, read
all unread, one read, all seen                     | seen, read
all archive, all read                              | seen, read, archived
all archive, one unarchive                         | -
all archive, one unarchive, all archive            | archived
all archive, all unarchive                         | -
all archive, all unarchive, one archive            | archived
one archive, all unarchive                         | -
one archive, all unarchive, all read, one archive  | seen, read, archived
all unarchive, one archive, all unread             | archived
all seen, one archive, all unarchive, all unread   | seen
"""

START_AT = datetime(2026, 3, 4, tzinfo=UTC)


class Kept:
    """An inbox as a store keeps it: marks and counts, and a row for each line."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.rows: dict[int, LineRow] = {}
        self.now = START_AT

    def enter(self, number: int) -> None:
        self._write(number, NEW)
        self.inbox = self.inbox.counted([NEW])

    def leave(self, number: int) -> None:
        self.inbox = self.inbox.counted([self.state(number)], sign=-1)
        del self.rows[number]

    def one(self, number: int, marking: Marking) -> None:
        before = self.state(number)
        after = after_one(before, marking, at=self._tick())
        self.inbox = self.inbox.counted([before], sign=-1).counted([after])
        self._write(number, after)

    def all(self, marking: Marking) -> None:
        self.inbox = after_all(self.inbox, marking, at=self._tick())

    def state(self, number: int) -> LineState:
        return state_of(self.rows[number], self.inbox)

    def _write(self, number: int, state: LineState) -> None:
        self.rows[number] = LineRow(**msgspec.structs.asdict(state), mark=self.inbox.mark)

    def _tick(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def told(state: LineState) -> str:
    times = {"seen": state.seen_at, "read": state.read_at, "archived": state.archived_at}
    return ", ".join(word for word, at in times.items() if at is not None) or "-"


@pytest.mark.parametrize("line", lines(LAW), ids=lambda line: line["what was done"])
def test_a_line_is_what_was_last_done_to_it_or_to_all(line: Line) -> None:
    kept = Kept()
    kept.enter(1)
    for done in line["what was done"].split(", "):
        to, _, word = done.partition(" ")
        if to == "one":
            kept.one(1, Marking(word))
        elif to == "all":
            kept.all(Marking(word))
    assert told(kept.state(1)) == line["the line is"]


@pytest.mark.parametrize("marking", Marking)
def test_what_was_done_to_all_is_not_done_to_a_line_that_comes_later(marking: Marking) -> None:
    kept = Kept()
    kept.enter(1)
    kept.one(1, Marking.ARCHIVE)
    kept.all(marking)
    kept.enter(2)
    assert told(kept.state(2)) == "-"


@pytest.mark.parametrize("marking", Marking)
def test_the_same_again_changes_nothing_not_even_a_time(marking: Marking) -> None:
    state = after_one(NEW, marking, at=START_AT)
    assert after_one(state, marking, at=START_AT + timedelta(days=1)) == state
    inbox = after_all(Inbox().counted([NEW, LineState(archived_at=START_AT)]), marking, at=START_AT)
    assert after_all(inbox, marking, at=START_AT + timedelta(days=1)) is inbox


def test_an_act_on_all_lines_of_an_empty_inbox_leaves_no_mark() -> None:
    assert {after_all(Inbox(), marking, at=START_AT) for marking in Marking} == {Inbox()}


COUNTS = """
done to all  | lines  unseen  unread  archived  archived_unseen  archived_unread
seen         | 3      0       2       1         0                1
read         | 3      0       0       1         0                0
unread       | 3      2       3       1         1                1
archive      | 3      2       2       3         2                2
unarchive    | 3      2       2       0         0                0
"""


@pytest.mark.parametrize("line", lines(COUNTS), ids=lambda line: line["done to all"])
def test_what_is_done_to_all_changes_the_counts_of_all(line: Line) -> None:
    """Of one line that was read, one that is new, and one that was archived as it came."""
    inbox = Inbox().counted([LineState(seen_at=START_AT, read_at=START_AT), NEW, LineState(archived_at=START_AT)])
    after = after_all(inbox, Marking(line["done to all"]), at=START_AT)
    counts = {name: str(getattr(after, name)) for name in line if name != "done to all"}
    assert {"done to all": line["done to all"], **counts} == line


def test_a_line_has_the_time_of_its_own_mark_and_else_that_of_all() -> None:
    kept = Kept()
    kept.enter(1)
    kept.enter(2)
    kept.one(1, Marking.READ)
    kept.all(Marking.READ)
    assert [kept.state(n).read_at for n in (1, 2)] == [START_AT + timedelta(seconds=n) for n in (1, 2)]


Act = tuple[str, int, Marking]
ACTS = st.lists(
    st.tuples(st.sampled_from(["enter", "leave", "one", "one", "all"]), st.integers(1, 6), st.sampled_from(Marking)),
    min_size=10,
    max_size=40,
)


@given(ACTS)
def test_lines_and_counts_are_those_of_a_list_in_which_every_line_is_touched(acts: list[Act]) -> None:
    """The list knows no marks: what is done to all is done to each of its lines."""
    kept = Kept()
    plain: dict[int, set[str]] = {}
    for what, number, marking in acts:
        if what == "enter" and number not in plain:
            plain[number] = set()
            kept.enter(number)
        elif what == "leave" and number in plain:
            del plain[number]
            kept.leave(number)
        elif what == "one" and number in plain:
            touch(plain[number], marking)
            kept.one(number, marking)
        elif what == "all":
            for words in plain.values():
                touch(words, marking)
            kept.all(marking)
        assert {number: set(told(kept.state(number)).split(", ")) - {"-"} for number in kept.rows} == plain
        archived = [words for words in plain.values() if "archived" in words]
        inbox = kept.inbox
        assert (inbox.lines, inbox.archived) == (len(plain), len(archived))
        assert inbox.unseen == sum("seen" not in words for words in plain.values())
        assert inbox.unread == sum("read" not in words for words in plain.values())
        assert inbox.archived_unseen == sum("seen" not in words for words in archived)
        assert inbox.archived_unread == sum("read" not in words for words in archived)


def touch(words: set[str], marking: Marking) -> None:
    """Do to one line of the list what its reader did."""
    match marking.value:
        case "seen":
            words.add("seen")
        case "read":
            words.update(("seen", "read"))
        case "unread":
            words.discard("read")
        case "archive":
            words.add("archived")
        case "unarchive":
            words.discard("archived")
