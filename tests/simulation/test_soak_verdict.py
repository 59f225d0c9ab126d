"""The verdict over a soak is red where it must be: for what is lost, doubled, invented, or uncertain without a kill."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.timeline import JobTimeline, OutgoingTimeline, TransitionLine
from clarion.testing import factories
from clarion.testing.soak_verdict import Kill, Verdict, counted_by_message, is_settled, judge

START_AT = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
MESSAGE = UUID(int=1)

CREATED, SENDING, UNCERTAIN, SENT = (
    OutgoingStatus.CREATED,
    OutgoingStatus.SENDING,
    OutgoingStatus.UNCERTAIN,
    OutgoingStatus.SENT_TO_PROVIDER,
)


def at(seconds: float) -> datetime:
    return START_AT + timedelta(seconds=seconds)


def timeline_lines(
    *moves: tuple[OutgoingStatus, float], reason: str | None = None, message: UUID = MESSAGE
) -> JobTimeline:
    """Tell of one message that was created at second 0 and moved on at these seconds."""
    lines: list[TransitionLine] = []
    status = CREATED
    for version, (to, seconds) in enumerate(moves, start=2):
        lines.append(
            TransitionLine(version=version, from_status=status, to_status=to, at=at(seconds), actor="test", reason=None)
        )
        status = to
    row = OutgoingTimeline(
        id=1,
        bucket=202601,
        pk="pk",
        rk="rk",
        message_id=message,
        channel=Channel.EMAIL,
        status=status,
        version=len(lines) + 1,
        attempts=1,
        reason=reason,
        account="sandbox",
        provider_message_id=None,
        due_at=None,
        cancel_at=None,
        cancel_actor=None,
        created_at=START_AT,
        transitions=tuple(lines),
        tries=(),
        events=(),
    )
    return JobTimeline(
        job=factories.notification_job(),
        created_at=START_AT,
        scheduler=None,
        scheduler_at=None,
        scheduled_at=None,
        moved_at=None,
        inbox=(),
        outgoing=(row,),
    )


def verdict(
    *timelines: JobTimeline | None, delivered: int = 1, kills: tuple[float, ...] = (), dedupes: bool = False
) -> Verdict:
    deliveries = {str(one.outgoing[0].message_id): delivered for one in timelines if one is not None and delivered >= 0}
    return judge(
        timelines,
        deliveries=deliveries,
        kills=[Kill(at=at(seconds), open_calls=1) for seconds in kills],
        slots=1,
        dedupes=dedupes,
    )


SENT_TIMELINE = timeline_lines((SENDING, 1), (SENT, 2))
UNCERTAIN_TIMELINE = timeline_lines((SENDING, 1), (UNCERTAIN, 10))


def test_a_delivered_message_is_fine() -> None:
    assert verdict(SENT_TIMELINE) == Verdict(
        messages=1,
        kills=0,
        lost=0,
        duplicate=0,
        phantom=0,
        uncertain=0,
        delivered=1,
        in_flight=0,
        was_uncertain=0,
        without_call=0,
        violations=(),
    )


def test_a_message_that_is_still_waiting_or_whose_job_is_gone_is_lost() -> None:
    assert verdict(timeline_lines(), delivered=0).lost == 1
    assert verdict(None, delivered=0).lost == 1


def test_a_message_that_failed_is_not_lost_if_it_says_why() -> None:
    failed = (SENDING, 1), (OutgoingStatus.FAILED_FINAL, 2)
    assert verdict(timeline_lines(*failed, reason="refused"), delivered=0).lost == 0
    assert verdict(timeline_lines(*failed), delivered=0).lost == 1


def test_a_second_delivery_is_a_duplicate() -> None:
    assert verdict(SENT_TIMELINE, delivered=2).duplicate == 1


def test_a_success_without_delivery_is_a_phantom() -> None:
    assert verdict(SENT_TIMELINE, delivered=0).phantom == 1


def test_what_is_uncertain_is_explained_by_a_kill_between_claim_and_rescue() -> None:
    assert verdict(UNCERTAIN_TIMELINE, kills=(5,)).violations == ()
    assert any("I-12" in text for text in verdict(UNCERTAIN_TIMELINE).violations)
    assert any("I-12" in text for text in verdict(UNCERTAIN_TIMELINE, kills=(15,)).violations)


def test_a_kill_explains_no_more_messages_than_its_worker_had_slots() -> None:
    other = timeline_lines((SENDING, 1), (UNCERTAIN, 10), message=UUID(int=2))
    assert any("I-14" in text for text in verdict(UNCERTAIN_TIMELINE, other, kills=(5,)).violations)
    assert verdict(UNCERTAIN_TIMELINE, other, kills=(5, 6)).violations == ()


def test_nothing_rests_uncertain_where_the_provider_de_duplicates() -> None:
    assert any("I-10" in text for text in verdict(UNCERTAIN_TIMELINE, kills=(5,), dedupes=True).violations)
    replayed = timeline_lines(
        (SENDING, 1), (UNCERTAIN, 10), (OutgoingStatus.RETRY_READY, 10), (SENDING, 11), (SENT, 12)
    )
    assert verdict(replayed, kills=(5,), dedupes=True).violations == ()


def test_being_green_because_everything_is_uncertain_is_red() -> None:
    assert any("must be delivered" in text for text in verdict(UNCERTAIN_TIMELINE, kills=(5,), delivered=0).violations)


def test_a_kill_without_an_open_call_is_no_kill() -> None:
    idle = Kill(at=at(5), open_calls=0)
    found = judge([SENT_TIMELINE], deliveries={str(MESSAGE): 1}, kills=[idle], slots=1, dedupes=False)
    assert any("open call" in text for text in found.violations)


def test_deliveries_of_a_message_are_added_up_over_its_keys() -> None:
    keys = {f"{MESSAGE}:email:a": 1, f"{MESSAGE}:sms:b": 1, f"{UUID(int=2)}:email:c": 0}
    assert counted_by_message(keys) == {str(MESSAGE): 2, str(UUID(int=2)): 0}


def test_a_message_without_a_call_is_told_apart() -> None:
    assert verdict(UNCERTAIN_TIMELINE, kills=(5,), delivered=-1).without_call == 1
    assert verdict(UNCERTAIN_TIMELINE, kills=(5,)).without_call == 0


def test_a_message_is_settled_when_nothing_more_happens_to_it_by_itself() -> None:
    generated = factories.notification_scheduler(status=NotificationStatus.DONE)

    def settled(told: JobTimeline, *, dedupes: bool = False) -> bool:
        return is_settled(msgspec.structs.replace(told, scheduler=generated), dedupes=dedupes)

    assert settled(SENT_TIMELINE)
    assert settled(UNCERTAIN_TIMELINE)
    assert not settled(UNCERTAIN_TIMELINE, dedupes=True)
    assert not settled(timeline_lines((SENDING, 1)))
    assert not settled(timeline_lines((SENDING, 1), (OutgoingStatus.RETRY_READY, 2)))
    claimed = factories.notification_scheduler(status=NotificationStatus.PROCESSING)
    assert not is_settled(msgspec.structs.replace(SENT_TIMELINE, scheduler=claimed, outgoing=()), dedupes=False)
    assert not is_settled(None, dedupes=False)


def test_a_verdict_can_be_printed() -> None:
    assert msgspec.json.encode(verdict(SENT_TIMELINE))
