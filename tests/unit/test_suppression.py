"""Suppressions: what stops what, which cause outlasts which, and what setting preferences leaves behind.

The tables are written by hand from domain.md (its line on `Suppression`) and the issue, not from the code.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.identity import Channel
from clarion.domain.suppression import (
    IN_WORDS,
    Cause,
    Change,
    in_force,
    is_off,
    optional_category,
    scope_of,
    scopes_that_apply,
    stored_after,
)
from tests.unit.law import lines

# Which rows stop a message of which category on which channel; a required message has no category.
STOPS = """
scope         category  channel | stops
*             news      email   | yes
*             -         email   | yes
news          news      email   | yes
news          news      sms     | yes
news          offers    email   | no
news          -         email   | no
news:email    news      email   | yes
news:email    news      sms     | no
news:email    newsroom  email   | no
news:email    -         email   | no
newsroom      news      email   | no
"""

# What preferences come to: what is stored before, what is changed, what is stored after. `news` alone is all channels.
AFTER = """
before              change          | after
-                   news:email off  | news:email
-                   news off        | news
-                   news:email on   | -
news:email          news:email off  | news:email
news:email          news:email on   | -
news:email          news on         | -
news:email          news off        | news
news                news:email off  | news
news                news on         | -
news                news:email on   | news:sms news:push news:chat news:inbox
news:email offers   offers on       | news:email
*                   news on         | *
* offers:sms        news off        | * news offers:sms
newsroom            news on         | newsroom
"""


@pytest.mark.parametrize("line", lines(STOPS), ids=lambda line: " ".join(line.values()))
def test_a_scope_stops_its_category_and_no_other(line: dict[str, str]) -> None:
    category = None if line["category"] == "-" else line["category"]
    applying = scopes_that_apply(category, Channel(line["channel"]))
    assert (line["scope"] in applying) == (line["stops"] == "yes")


@pytest.mark.parametrize("line", lines(AFTER), ids=lambda line: f"{line['before']}, {line['change']}")
def test_preferences_are_what_is_stored_after(line: dict[str, str]) -> None:
    before = set(line["before"].split()) - {"-"}
    what, to = line["change"].split()
    category, _, channel = what.partition(":")
    change = Change(category=category, channel=Channel(channel) if channel else None, on=to == "on")
    put, lifted = stored_after(before, [change])
    assert put.isdisjoint(before)
    assert lifted <= before
    assert (before | put) - lifted == set(line["after"].split()) - {"-"}


CHANGES = st.lists(
    st.builds(
        Change,
        category=st.sampled_from(("news", "offers")),
        channel=st.sampled_from((None, *Channel)),
        on=st.booleans(),
    ),
    max_size=6,
)


@given(CHANGES, CHANGES)
def test_each_cell_is_as_it_was_set_last(earlier: list[Change], changes: list[Change]) -> None:
    """The cells seen one by one, as a person sees them, and without any row."""
    stored, _ = stored_after((), earlier)
    put, lifted = stored_after(stored, changes)
    after = (stored | put) - lifted
    for category in ("news", "offers"):
        for channel in Channel:
            off = False
            for change in [one for one in (*earlier, *changes) if one.category == category]:
                off = (not change.on) if change.channel in (None, channel) else off
            assert is_off(after, category, channel) == off


def test_a_category_is_written_as_in_every_key() -> None:
    """So a `:` in its name makes no channel, and no name makes `*`."""
    assert scope_of("News: all") == "News%3A%20all"
    assert scope_of("*") == "%2A"
    assert scope_of("Ärger", Channel.SMS) == "%C3%84rger:sms"
    assert "news:email" not in scopes_that_apply("news:email", Channel.EMAIL)


def test_only_what_may_be_refused_keeps_its_category() -> None:
    assert optional_category("News: all", may_unsubscribe=True) == "News%3A%20all"
    assert optional_category("News: all", may_unsubscribe=False) is None


@pytest.mark.parametrize(
    "found, stopped_by",
    [
        ([], None),
        ([("offers", Cause.MANUAL), ("news:sms", Cause.PREFERENCE)], None),
        ([("news:email", Cause.PREFERENCE), ("news", Cause.UNSUBSCRIBE)], ("news", Cause.UNSUBSCRIBE)),
        ([("news", Cause.UNSUBSCRIBE), ("*", Cause.BOUNCE)], ("*", Cause.BOUNCE)),
        ([("*", Cause.BOUNCE), ("*", Cause.COMPLAINT)], ("*", Cause.COMPLAINT)),
    ],
)
def test_the_widest_reason_is_named(found: list[tuple[str, Cause]], stopped_by: tuple[str, Cause] | None) -> None:
    """Of two that are as wide, the stronger one; in whatever order they are found."""
    assert in_force(found, written="news", channel=Channel.EMAIL) == stopped_by
    assert in_force(reversed(found), written="news", channel=Channel.EMAIL) == stopped_by


def test_every_cause_takes_over_the_weaker_ones_and_no_other() -> None:
    """STOP is the weakest, because a START lifts it; what a person did by hand is the strongest."""
    order = ["stop", "bounce", "complaint", "unsubscribe", "preference", "manual"]
    assert {cause.value for cause in Cause} == set(order) == {cause.value for cause in IN_WORDS}
    for place, cause in enumerate(order):
        taken = {stored.value for stored in Cause if Cause(cause).takes_over(stored)}
        assert taken == set(order[:place])
