"""What becomes of a send of which nobody knows whether it arrived: the whole rule, case by case."""

from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from clarion.domain.call import Replay
from clarion.domain.claim import UncertainSend
from clarion.domain.identity import Channel
from clarion.domain.outgoing import UncertainPolicy
from clarion.domain.uncertain import settlement

NO_PROMISE = Replay()
HARMLESS = Replay(replaces=True)
ONE_DAY = Replay(dedupe_window=timedelta(days=1))
ROW = UncertainSend(
    id=1,
    bucket=202611,
    tenant_id="acme",
    version=3,
    account="main",
    message_id=UUID(int=1),
    channel=Channel.EMAIL,
    attempts=1,
    unanswered=1,
    uncertain_policy=UncertainPolicy.PREFER_LOSS,
    replays=0,
    unknown_for=timedelta(minutes=1),
    is_over=False,
)


def row(**fields: object) -> UncertainSend:
    return msgspec.structs.replace(ROW, **fields)


@pytest.mark.parametrize(
    "send, replay",
    [
        (row(), HARMLESS),
        (row(), ONE_DAY),
        (row(unknown_for=timedelta(hours=23, minutes=54)), ONE_DAY),
        (row(unanswered=7, attempts=19), HARMLESS),
        (row(uncertain_policy=UncertainPolicy.PREFER_DUPLICATE, replays=3), HARMLESS),
        (row(attempts_max=3, attempts=2), HARMLESS),
    ],
)
def test_it_is_replayed_while_the_provider_makes_a_second_one_harmless(send: UncertainSend, replay: Replay) -> None:
    settled = settlement(send, replay)
    assert (settled.replay, settled.counts_as_duplicate) == (True, False)
    assert settled.delay > timedelta()


def test_a_type_that_prefers_a_duplicate_has_one_replay_that_may_be_one() -> None:
    settled = settlement(row(uncertain_policy=UncertainPolicy.PREFER_DUPLICATE), NO_PROMISE)
    assert (settled.replay, settled.counts_as_duplicate) == (True, True)
    assert not settlement(row(uncertain_policy=UncertainPolicy.PREFER_DUPLICATE, replays=1), NO_PROMISE).replay


@pytest.mark.parametrize(
    "send, replay, says",
    [
        (row(), NO_PROMISE, "it may have arrived"),
        (row(unknown_for=timedelta(hours=23, minutes=56)), ONE_DAY, "it may have arrived"),
        (row(is_over=True), HARMLESS, "it was canceled, or its time has run out"),
        (row(is_over=True, uncertain_policy=UncertainPolicy.PREFER_DUPLICATE), NO_PROMISE, "it was canceled"),
        (row(unanswered=8, attempts=8), HARMLESS, "of 8 calls none was answered"),
        (row(unanswered=0, attempts=20), HARMLESS, "of 20 calls none was answered"),
        (row(unanswered=8, attempts=8, uncertain_policy=UncertainPolicy.PREFER_DUPLICATE), NO_PROMISE, "of 8 calls"),
        (row(attempts_max=1), HARMLESS, "its type allows 1 call"),
        (row(attempts_max=1, unanswered=0), HARMLESS, "its type allows 1 call"),  # lost with its worker
        (row(attempts_max=3, attempts=3), HARMLESS, "its type allows 3 calls"),
        (row(attempts_max=1, uncertain_policy=UncertainPolicy.PREFER_DUPLICATE), NO_PROMISE, "its type allows 1 call"),
    ],
)
def test_else_it_stays_as_it_is_and_says_why(send: UncertainSend, replay: Replay, says: str) -> None:
    settled = settlement(send, replay)
    assert (settled.replay, settled.counts_as_duplicate, settled.delay) == (False, False, timedelta())
    assert settled.reason.startswith(f"left as it is: {says}")


def test_the_decision_is_for_the_version_of_the_row_that_was_read() -> None:
    settled = settlement(row(id=5, bucket=202612, version=9), HARMLESS)
    assert (settled.id, settled.bucket, settled.version) == (5, 202612, 9)


def test_it_waits_longer_after_each_call_that_was_not_answered_but_not_for_lost_workers() -> None:
    pauses = [settlement(row(unanswered=n, attempts=n), HARMLESS).delay for n in range(1, 8)]
    assert pauses == sorted(pauses)
    assert pauses[-1] > 60 * pauses[0]
    assert settlement(row(unanswered=1, attempts=15), HARMLESS).delay == pauses[0]
