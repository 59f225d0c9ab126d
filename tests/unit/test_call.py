"""When an uncertain call may be repeated (I-10): only where a second one is harmless, and only in time."""

from datetime import timedelta

import pytest

from clarion.domain.call import MARGIN, Replay


def allowed(replay: Replay, *, after: timedelta) -> bool:
    return replay.allows(unknown_for=after)


def test_without_de_duplication_nothing_is_repeated() -> None:
    assert not allowed(Replay(), after=timedelta())


def test_a_window_allows_until_its_margin_before_the_end() -> None:
    replay = Replay(dedupe_window=timedelta(hours=24))
    assert allowed(replay, after=timedelta(hours=24) - MARGIN - timedelta(seconds=1))
    assert not allowed(replay, after=timedelta(hours=24) - MARGIN)


@pytest.mark.parametrize("minutes, allows", [(14, False), (15, True)])
def test_a_window_that_a_pause_could_outlast_does_not_count(minutes: int, allows: bool) -> None:
    assert allowed(Replay(dedupe_window=timedelta(minutes=minutes)), after=timedelta()) is allows


def test_what_replaces_its_first_may_always_be_repeated() -> None:
    assert allowed(Replay(replaces=True), after=timedelta(days=30))
