"""The small parts of the API by themselves: cursors, depth, counts, the pages' summaries, the pulse."""

import re
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.api.app import ROUTES
from clarion.api.description import describe
from clarion.api.metrics import BOUNDS, Metrics, Spread, Tally
from clarion.api.outbox_page import summary
from clarion.api.pulse import Pulse
from clarion.client.wire import ROW_ID_MAX
from clarion.domain.content import EmailContent, PushContent, SmsContent
from clarion.domain.depth import DEPTH_MAX, check_depth
from clarion.domain.hashing import canonical_json
from clarion.errors import InvalidInput, StoreReadOnly
from clarion.operations import page
from clarion.testing.clock import ManualClock

PLACE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=512)


@given(st.integers(min_value=0, max_value=ROW_ID_MAX))
def test_a_cursor_gives_back_the_number_that_was_written(place: int) -> None:
    assert page.read("list", page.write("list", place), start=0) == place


@given(PLACE)
def test_a_cursor_gives_back_the_text_that_was_written_in_letters_fit_for_a_url(place: str) -> None:
    written = page.write("list", place)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", written)
    assert page.read("list", written, start="") == place


@given(st.text(max_size=100))
def test_whatever_is_no_cursor_is_refused_and_breaks_nothing(text: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        page.read("list", text, start="")
    with pytest.raises(InvalidInput, match="cursor"):
        page.read("list", text, start=0)


@pytest.mark.parametrize("text", [page.write("other", 5), page.write("list", "five"), page.write("list", 2**63)])
def test_a_cursor_of_another_list_or_kind_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        page.read("list", text, start=0)


def test_a_cursor_of_guids_holds_a_guid_or_nothing() -> None:
    guid = UUID(int=7)
    assert page.read_guid("list", page.write("list", guid.hex)) == guid
    assert page.read_guid("list", None) is None
    with pytest.raises(InvalidInput, match="cursor"):
        page.read_guid("list", page.write("list", "no guid"))


def nested(depth: int, leaf: Any = "leaf") -> Any:
    """Put a leaf inside as many lists and objects, of which an empty one is itself the innermost."""
    value = leaf
    for level in range(depth if isinstance(leaf, str) else depth - 1):
        value = [value] if level % 2 else {"inner": value}
    return value


def test_depth_is_counted_in_levels_of_lists_and_objects() -> None:
    check_depth(nested(DEPTH_MAX), field="data")
    empties: list[Any] = [[], {}]
    for empty in empties:
        with pytest.raises(InvalidInput, match="data: it is nested too deeply"):
            check_depth(nested(DEPTH_MAX + 1, empty), field="data")
    with pytest.raises(InvalidInput, match="data: it is nested too deeply"):
        check_depth(nested(DEPTH_MAX + 1), field="data")


def test_what_a_body_may_nest_can_be_hashed() -> None:
    canonical_json({"data": nested(DEPTH_MAX)})


def test_breadth_is_not_depth() -> None:
    check_depth([[number] for number in range(10_000)], field="data")


def test_a_tally_counts_each_label_apart_and_writes_them_in_order() -> None:
    tally = Tally()
    for name in ("b", "a", "b"):
        tally.add((("name", name),))
    assert list(tally.lines("x_total")) == ['x_total{name="a"} 1', 'x_total{name="b"} 2']


def test_a_label_cannot_break_out_of_its_line() -> None:
    tally = Tally()
    tally.add((("name", 'a"} 1\nb\\'),))
    assert list(tally.lines("x")) == [r'x{name="a\"} 1\nb\\"} 1']


@given(st.lists(st.floats(min_value=0, max_value=100), min_size=1))
def test_buckets_count_all_that_were_no_longer_than_their_bound(times: list[float]) -> None:
    spread = Spread()
    for seconds in times:
        spread.add((), seconds)
    lines = dict(line.rsplit(" ", 1) for line in spread.lines("t"))
    for bound in BOUNDS:
        assert int(lines[f't_bucket{{le="{bound}"}}']) == sum(seconds <= bound for seconds in times)
    assert int(lines['t_bucket{le="+Inf"}']) == int(lines["t_count{}"]) == len(times)
    assert float(lines["t_sum{}"]) == pytest.approx(sum(times), abs=1e-5)


def test_metrics_without_a_store_still_tell_of_the_process() -> None:
    metrics = Metrics()
    metrics.observe_request(method="GET", route="/x", status=200, seconds=0.002)
    text = metrics.written(None)
    assert "clarion_store_up 0" in text
    assert 'route="/x"' in text
    assert text.endswith("\n")


@pytest.mark.parametrize(
    "content,said",
    [
        (EmailContent(subject=" Hi\n Sam ", html="<p>", text=""), "Hi Sam"),
        (SmsContent(text="Your code"), "Your code"),
        (PushContent(title="", body="x"), "(without words)"),
    ],
)
def test_a_message_is_summed_up_by_what_is_read_first(content: Any, said: str) -> None:
    assert summary(content) == said


class Answering:
    """The two methods of a store that a pulse asks for."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def list_tenants(self, *, after: str = "", limit: int = 50) -> list[str]:
        return []

    async def now(self) -> datetime:
        return self._clock.now()


async def test_a_pulse_forgets_a_trouble_after_a_while_and_ignores_what_does_not_concern_it() -> None:
    clock = ManualClock()
    pulse = Pulse(Answering(clock), clock=clock)  # type: ignore[arg-type]  # two methods of the port's many
    pulse.note(InvalidInput("no", field="x", hint="x"))
    assert await pulse.why_unready() is None
    pulse.note(StoreReadOnly("a replica", hint="fail over"))
    assert await pulse.why_unready() == "store-read-only"
    clock.advance(timedelta(seconds=10))
    assert await pulse.why_unready() is None


def test_the_description_uses_no_names_that_only_we_know() -> None:
    """Numbers of our own design pages, and names of records and kinds as they are stored."""
    text = describe(ROUTES).decode()
    assert not re.findall(r"\b[IXF]-\d+|DeadLetter|NotificationScheduler|NotificationJob|OutgoingMessage", text)
