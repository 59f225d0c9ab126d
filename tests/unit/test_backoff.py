"""Waiting between attempts: derived from the key, growing, bounded, never shorter than the provider asked."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.backoff import ATTEMPTS_MAX, retry_delay


@given(key=st.text(), attempt=st.integers(1, 100))
def test_the_same_attempt_of_the_same_key_waits_the_same(key: str, attempt: int) -> None:
    assert retry_delay(key=key, attempt=attempt) == retry_delay(key=key, attempt=attempt)
    assert timedelta(seconds=1) <= retry_delay(key=key, attempt=attempt) <= timedelta(minutes=40)


@given(key=st.text(), attempt=st.integers(1, ATTEMPTS_MAX - 2))
def test_each_wait_is_longer_than_the_one_before(key: str, attempt: int) -> None:
    assert retry_delay(key=key, attempt=attempt) < retry_delay(key=key, attempt=attempt + 1)


def test_keys_are_spread_apart() -> None:
    assert len({retry_delay(key=str(n), attempt=1) for n in range(100)}) > 90


def test_a_provider_that_asks_for_more_time_gets_it() -> None:
    assert retry_delay(key="a", attempt=1, at_least=timedelta(hours=1)) == timedelta(hours=1)
