"""Links that are good for a time: how long they last, what each opens, and that none opens as another (X-19)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.identity import Channel
from clarion.domain.person_link import preferences_token, read_preferences_token, read_undo_token, undo_token
from clarion.domain.sealed_link import TOKEN_CHARS_MAX, tenant_of
from clarion.domain.unsubscribe import Unsubscription, make_token, read_token
from clarion.errors import InvalidInput
from tests.unit.test_unsubscribe import KEYS, NEWS, OTHERS, SAM

NOW = datetime(2026, 3, 2, 8, 30, 15, 999_999, tzinfo=UTC)
DAY = timedelta(days=1)


@given(made_at=st.datetimes(datetime(2026, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001  strategies take them so
def test_a_link_to_preferences_lasts_90_days_at_least_and_91_at_most(made_at: datetime) -> None:
    token = preferences_token(KEYS, SAM, made_at=made_at)
    assert tenant_of(token) == "school"
    assert read_preferences_token(KEYS, token, now=made_at + 90 * DAY) == SAM
    with pytest.raises(InvalidInput, match="this is no link of ours, or it was cut off"):
        read_preferences_token(KEYS, token, now=made_at + 91 * DAY)


def test_the_links_of_one_day_are_the_same_and_those_of_two_are_not() -> None:
    morning, evening = NOW.replace(hour=0, minute=0), NOW.replace(hour=23, minute=59)
    assert preferences_token(KEYS, SAM, made_at=morning) == preferences_token(KEYS, SAM, made_at=evening)
    assert preferences_token(KEYS, SAM, made_at=morning) != preferences_token(KEYS, SAM, made_at=morning + DAY)


def test_taking_back_lasts_an_hour() -> None:
    token = undo_token(KEYS, NEWS, now=NOW)
    assert read_undo_token(KEYS, token, now=NOW + timedelta(minutes=59)) == NEWS
    with pytest.raises(InvalidInput):
        read_undo_token(KEYS, token, now=NOW + timedelta(hours=1))


def test_a_link_for_one_thing_opens_as_nothing_else() -> None:
    made = [make_token(KEYS, NEWS), preferences_token(KEYS, SAM, made_at=NOW), undo_token(KEYS, NEWS, now=NOW)]
    reads: list[Callable[[str], object]] = [
        lambda token: read_token(KEYS, token),
        lambda token: read_preferences_token(KEYS, token, now=NOW),
        lambda token: read_undo_token(KEYS, token, now=NOW),
    ]
    for number, token in enumerate(made):
        for other, read in enumerate(reads):
            if number == other:
                read(token)
            else:
                with pytest.raises(InvalidInput):
                    read(token)


def test_a_link_of_one_tenant_opens_for_no_other() -> None:
    for keys, token in ((OTHERS, preferences_token(KEYS, SAM, made_at=NOW)), (KEYS, undo_token(OTHERS, NEWS, now=NOW))):
        with pytest.raises(InvalidInput):
            read_preferences_token(keys, token, now=NOW)
        with pytest.raises(InvalidInput):
            read_undo_token(keys, token, now=NOW)


def test_the_longest_category_fits() -> None:
    wanted = Unsubscription(recipient_id_hash=SAM, category="名" * 60, channel=Channel.EMAIL)
    assert len(undo_token(KEYS, wanted, now=NOW)) <= TOKEN_CHARS_MAX
    assert read_undo_token(KEYS, undo_token(KEYS, wanted, now=NOW), now=NOW) == wanted
