"""The verdict over a soak is red where it must be: for what is lost, doubled, invented, or uncertain without a kill."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from clarion.client import wire
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.timeline import JobTimeline, OutgoingTimeline, TransitionLine
from clarion.testing import factories
from clarion.testing.soak.client import Promise
from clarion.testing.soak.program import Life
from clarion.testing.soak.provider import TakenCall
from clarion.testing.soak.verdict import Evidence, Outage, Verdict, counted_by_message, is_settled, judge

START_AT = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)

CREATED, SENDING, UNCERTAIN, SENT, AGAIN = (
    OutgoingStatus.CREATED,
    OutgoingStatus.SENDING,
    OutgoingStatus.UNCERTAIN,
    OutgoingStatus.SENT_TO_PROVIDER,
    OutgoingStatus.RETRY_READY,
)


def at(seconds: float) -> datetime:
    return START_AT + timedelta(seconds=seconds)


def timeline(*moves: tuple[OutgoingStatus, float], number: int = 0) -> JobTimeline:
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
        address_id=1,
        message_id=UUID(int=number),
        channel=Channel.EMAIL,
        status=status,
        version=len(lines) + 1,
        attempts=1,
        reason=None,
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


def answer(number: int, *, repeated: bool = False) -> wire.SendAnswer:
    ident = UUID(int=number)
    return wire.SendAnswer(job_id=ident, message_id=ident, accepted_at=START_AT, repeated=repeated)


def promise(number: int = 0, *, told: bool = True) -> Promise:
    return Promise(number=number, asked=1, answers=[answer(number)] if told else [])


def call(seconds: float, *, number: int = 0, program: str = "work") -> TakenCall:
    one = promise(number)
    return TakenCall(
        at=at(seconds), program=program, message_id=str(UUID(int=number)), destination=one.address, says=one.says
    )


def life(killed: float | None, *, program: str = "work", started: float = 0, open_calls: int = 1) -> Life:
    killed_at = None if killed is None else at(killed)
    return Life(program=program, started_at=at(started), killed_at=killed_at, moment="called", open_calls=open_calls)


def verdict(
    *timelines: JobTimeline | None,
    promises: tuple[Promise, ...] = (),
    calls: tuple[TakenCall, ...] = (),
    delivered: int = 1,
    lives: tuple[Life, ...] = (),
    outages: tuple[Outage, ...] = (),
    dedupes: bool = False,
) -> Verdict:
    return judge(
        Evidence(
            promises=promises or tuple(promise(number) for number in range(len(timelines))),
            timelines=timelines,
            calls=calls,
            deliveries={one.message_id: delivered for one in calls},
            lives=lives,
            outages=outages,
            slots=1,
            dedupes=dedupes,
        )
    )


def broken(found: Verdict) -> str:
    return " | ".join(found.violations)


SENT_TIMELINE = timeline((SENDING, 1), (SENT, 2))
UNCERTAIN_TIMELINE = timeline((SENDING, 1), (UNCERTAIN, 61))


def test_a_delivered_message_is_fine() -> None:
    assert verdict(SENT_TIMELINE, calls=(call(1.5),)) == Verdict(
        messages=1,
        kills=0,
        kills_of_serve=0,
        outages=0,
        asked_again=0,
        lost=0,
        duplicate=0,
        phantom=0,
        uncertain=0,
        delivered=1,
        was_uncertain=0,
        without_call=0,
        violations=(),
    )


def test_a_message_that_was_promised_and_waits_or_is_gone_is_lost() -> None:
    assert verdict(timeline()).lost == 1
    assert verdict(None).lost == 1
    assert verdict(None, calls=(call(1),)).lost == 1


def test_a_message_that_failed_is_lost_whatever_it_says_because_the_provider_refuses_nothing() -> None:
    found = verdict(timeline((SENDING, 1), (OutgoingStatus.FAILED_FINAL, 2)))
    assert found.lost == 1
    assert "refused nothing" in broken(found)


def test_what_nobody_was_promised_is_not_lost_but_somebody_must_have_been_answered() -> None:
    found = verdict(None, promises=(promise(told=False),))
    assert found.lost == 0
    assert "never answered" in broken(found)


def test_a_message_that_is_uncertain_without_a_cause_is_lost_unless_it_arrived() -> None:
    assert verdict(UNCERTAIN_TIMELINE).lost == 1
    assert verdict(UNCERTAIN_TIMELINE, lives=(life(1.1),)).lost == 0
    assert verdict(UNCERTAIN_TIMELINE, calls=(call(1.1),)).lost == 0


def test_asking_again_must_give_the_same_answer_and_say_that_it_is_known() -> None:
    for second, fine in ((answer(0, repeated=True), True), (answer(0), False), (answer(7, repeated=True), False)):
        one = Promise(number=0, asked=2, answers=[answer(0), second])
        assert ("I-03" not in broken(verdict(SENT_TIMELINE, calls=(call(1.5),), promises=(one,)))) is fine


def test_an_answer_that_no_client_should_get_is_a_violation() -> None:
    one = Promise(number=0, asked=2, answers=[answer(0)], surprises=["500 internal: a defect"])
    assert "500" in broken(verdict(SENT_TIMELINE, calls=(call(1.5),), promises=(one,)))


def test_a_second_delivery_is_a_duplicate() -> None:
    assert verdict(SENT_TIMELINE, calls=(call(1.5),), delivered=2).duplicate == 1


def test_a_success_without_delivery_and_a_delivery_without_a_promise_are_phantoms() -> None:
    assert verdict(SENT_TIMELINE).phantom == 1
    assert verdict(SENT_TIMELINE, calls=(call(1.5), call(1.5, number=9))).phantom == 1


def test_a_call_needs_a_claim_of_its_own() -> None:
    assert "I-08" in broken(verdict(timeline(), calls=(call(1),)))
    assert "I-08" in broken(verdict(SENT_TIMELINE, calls=(call(1.5), call(1.6))))
    twice = timeline((SENDING, 1), (UNCERTAIN, 61), (AGAIN, 61), (SENDING, 62), (SENT, 63))
    calls = (call(1.1), call(62.5))
    assert "I-08" not in broken(verdict(twice, calls=calls, lives=(life(1.2),), dedupes=True))


def test_a_call_must_bring_what_was_sent_to_whom_it_was_for() -> None:
    other = msgspec.structs.replace(call(1.5), destination="somebody@example.com")
    assert "something else" in broken(verdict(SENT_TIMELINE, calls=(other,)))


def test_what_is_uncertain_is_explained_by_the_kill_of_the_program_that_called() -> None:
    made = (call(1.1),)
    assert verdict(UNCERTAIN_TIMELINE, calls=made, lives=(life(1.2),)).violations == ()
    assert "I-12" in broken(verdict(UNCERTAIN_TIMELINE, calls=made))
    other = life(1.2, program="serve")
    assert "I-12" in broken(verdict(UNCERTAIN_TIMELINE, calls=made, lives=(other, life(None))))
    after_a_long_time = life(30)
    assert "I-12" in broken(verdict(UNCERTAIN_TIMELINE, calls=made, lives=(after_a_long_time,)))
    the_next_process = life(1.2, started=1.15)
    assert "I-12" in broken(verdict(UNCERTAIN_TIMELINE, calls=made, lives=(life(None), the_next_process)))


def test_while_the_store_is_away_nothing_can_be_recorded() -> None:
    made, away = (call(1.1),), Outage(at=at(2), until=at(9))
    assert verdict(UNCERTAIN_TIMELINE, calls=made, lives=(life(11),), outages=(away,)).violations == ()
    assert "I-12" in broken(verdict(UNCERTAIN_TIMELINE, calls=made, lives=(life(30),), outages=(away,)))


def test_a_crash_of_the_store_explains_a_claim_without_a_call_and_no_call() -> None:
    away = Outage(at=at(1.1), until=at(2))
    assert "I-12" not in broken(verdict(UNCERTAIN_TIMELINE, lives=(life(500),), outages=(away,)))
    assert "I-12" in broken(verdict(UNCERTAIN_TIMELINE, calls=(call(1.05),), lives=(life(500),), outages=(away,)))


def test_a_claim_without_a_call_is_explained_by_a_kill_just_after_it() -> None:
    assert "I-12" not in broken(verdict(UNCERTAIN_TIMELINE, lives=(life(1.2),)))
    assert "I-12" in broken(verdict(UNCERTAIN_TIMELINE, lives=(life(0.5),)))
    assert "I-12" in broken(verdict(UNCERTAIN_TIMELINE, lives=(life(20),)))
    assert verdict(UNCERTAIN_TIMELINE, lives=(life(1.2),)).without_call == 1
    assert verdict(UNCERTAIN_TIMELINE, lives=(life(1.2),), calls=(call(1.1),)).without_call == 0


def test_a_kill_explains_no_more_messages_than_its_program_had_slots() -> None:
    both = UNCERTAIN_TIMELINE, timeline((SENDING, 1), (UNCERTAIN, 61), number=1)
    calls = call(1.1), call(1.1, number=1)
    assert "I-14" in broken(verdict(*both, calls=calls, lives=(life(1.2),)))
    assert "I-14" in broken(verdict(*both, lives=(life(1.2),)))
    assert "I-14" not in broken(verdict(*both, lives=(life(1.2), life(1.3, program="serve"))))


def test_nothing_rests_uncertain_where_the_provider_de_duplicates() -> None:
    assert "I-10" in broken(verdict(UNCERTAIN_TIMELINE, calls=(call(1.1),), lives=(life(1.2),), dedupes=True))


def test_being_green_because_everything_is_uncertain_is_red() -> None:
    assert "must be delivered" in broken(verdict(UNCERTAIN_TIMELINE, lives=(life(1.2),)))


def test_a_kill_that_met_nothing_is_no_kill() -> None:
    assert "met nothing" in broken(verdict(SENT_TIMELINE, calls=(call(1.5),), lives=(life(5, open_calls=0),)))


def test_deliveries_of_a_message_are_added_up_over_its_keys() -> None:
    one, two = UUID(int=1), UUID(int=2)
    keys = {f"{one}:email:a": 1, f"{one}:sms:b": 1, f"{two}:email:c": 0}
    assert counted_by_message(keys) == {str(one): 2, str(two): 0}


def test_a_message_is_settled_when_nothing_more_happens_to_it_by_itself() -> None:
    generated = factories.notification_scheduler(status=NotificationStatus.DONE)

    def settled(told: JobTimeline, *, dedupes: bool = False) -> bool:
        return is_settled(msgspec.structs.replace(told, scheduler=generated), dedupes=dedupes)

    assert settled(SENT_TIMELINE)
    assert settled(UNCERTAIN_TIMELINE)
    assert not settled(UNCERTAIN_TIMELINE, dedupes=True)
    assert not settled(timeline((SENDING, 1)))
    assert not settled(timeline((SENDING, 1), (AGAIN, 2)))
    claimed = factories.notification_scheduler(status=NotificationStatus.PROCESSING)
    assert not is_settled(msgspec.structs.replace(SENT_TIMELINE, scheduler=claimed, outgoing=()), dedupes=False)
    assert not is_settled(None, dedupes=False)


def test_a_verdict_can_be_printed() -> None:
    assert msgspec.json.encode(verdict(SENT_TIMELINE))
