"""The dispatcher over both engines: what it refuses before a store would, and what it makes of two spellings of a name.

Each test takes a tenant of its own from one store; the requests are those of the dispatcher's unit tests.
"""

import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.request import (
    CampaignContent,
    Destination,
    Direct,
    FromAutomation,
    FromEvent,
    Occurrence,
    ReportContent,
)
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.identity import Channel, Identity
from clarion.domain.key import FiringPolicy
from clarion.domain.occurrence import ThresholdTrigger
from clarion.errors import InvalidInput
from clarion.testing import factories as make
from tests.integration.dispatch_door import ENGINES, TENANT, Door, open_door
from tests.unit.dispatch_harness import DRAFT, ENTITY, campaign, direct, reminder, report


@pytest.fixture(params=ENGINES)
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with open_door(request) as opened:
        yield opened


def in_form(form: Any, value: Any) -> Any:
    """Write every name in a request in one Unicode form."""
    match value:
        case str():
            return unicodedata.normalize(form, value)
        case tuple():
            return tuple(in_form(form, one) for one in value)
        case msgspec.Struct():
            fields = {name: in_form(form, getattr(value, name)) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        case _:
            return value


def only(answers: list[Ensured[Any]]) -> Ensured[Any]:
    (answer,) = answers
    return answer


def named_reminder() -> Occurrence:
    what = reminder().what
    return reminder(
        what=msgspec.structs.replace(
            what, setting="Größe", source_type="Prüfung", source="Ärger", trigger_key="fällig", notification_type="é"
        )
    )


Ensure = Callable[[DeliveryDispatcher, Any], Awaitable[Any]]
NAMED: dict[str, tuple[Any, Ensure]] = {
    "occurrence": (named_reminder(), lambda to, one: to.ensure_automation_scheduler(TENANT, [one])),
    "trace": (named_reminder(), lambda to, one: to.ensure_automation_job(TENANT, [one])),
    "direct": (
        direct(
            origin=Direct(operation="öffnen", idempotency_key="Schlüssel"),
            event_type="größer",
            entity=("Gerät", ENTITY),
            template_key="müde",
            data={"name": "Zoë"},
        ),
        lambda to, one: to.ensure_notification_job(TENANT, [one]),
    ),
    "event": (
        direct(
            origin=FromEvent(event_type="geöffnet", event_guid=DRAFT), event_type="größer", entity=("Gerät", ENTITY)
        ),
        lambda to, one: to.ensure_notification_job(TENANT, [one]),
    ),
    "content": (
        campaign(b"hello", of=ReportContent(occurrence=named_reminder()), template_key="müde"),
        lambda to, one: to.ensure_messaging_job(TENANT, [one]),
    ),
}


@pytest.mark.parametrize("request_, ensure", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("first, second", [("NFC", "NFD"), ("NFD", "NFC")])
async def test_the_same_names_in_another_unicode_form_are_the_same_request(
    door: Door, request_: Any, ensure: Ensure, first: str, second: str
) -> None:
    """One record, and one scheduler row: names are part of keys, and a second row would be sent a second time."""
    created = only(await ensure(door.dispatcher, in_form(first, request_)))
    again = only(await ensure(door.dispatcher, in_form(second, request_)))
    assert (created.outcome, again.outcome, again.differing) == (Outcome.CREATED, Outcome.FOUND, ())
    assert again.record == created.record
    measured = await door.store.measure()
    assert measured.stages_waiting <= 1
    assert measured.open_support_cases == 0


async def test_a_key_is_known_in_either_unicode_form_of_its_operation(door: Door) -> None:
    origin = Direct(operation="öffnen", idempotency_key="Schlüssel")
    await door.dispatcher.ensure_notification_job(TENANT, [in_form("NFD", direct(origin=origin))])
    for form in ("NFC", "NFD"):
        given = in_form(form, origin)
        assert await door.dispatcher.is_key_known(TENANT, given.operation, given.idempotency_key)


def threshold(value: float | None, policy: FiringPolicy) -> Occurrence:
    trigger = ThresholdTrigger(
        metric="booked",
        value=value,
        firing_policy=policy,
        scope="room-1",
        local_date=date(2026, 3, 1) if policy is FiringPolicy.ONCE_PER_DAY else None,
        edge_no=1 if policy is FiringPolicy.FALSE_TO_TRUE else None,
    )
    return reminder(what=msgspec.structs.replace(reminder().what, trigger=trigger))


@pytest.mark.parametrize("value", [0.8, 90, None])
async def test_once_per_source_the_value_of_a_threshold_is_no_part_of_an_occurrence(
    door: Door, value: float | None
) -> None:
    """Its key says `any`, so an occurrence with another value is the same one, and no conflict."""
    first, other = (threshold(one, FiringPolicy.ONCE_PER_SOURCE) for one in (0.9, value))
    for ensure in (door.dispatcher.ensure_automation_scheduler, door.dispatcher.ensure_automation_job):
        created, again = only(await ensure(TENANT, [first])), only(await ensure(TENANT, [other]))
        assert (created.outcome, again.outcome) == (Outcome.CREATED, Outcome.FOUND)
        assert again.record == created.record


@pytest.mark.parametrize("policy", [one for one in FiringPolicy if one is not FiringPolicy.ONCE_PER_SOURCE])
async def test_with_every_other_policy_another_value_is_another_occurrence(door: Door, policy: FiringPolicy) -> None:
    first, other = (threshold(value, policy) for value in (0.9, 0.8))
    answers = await door.dispatcher.ensure_automation_scheduler(TENANT, [first, other])
    assert [answer.outcome for answer in answers] == [Outcome.CREATED, Outcome.CREATED]
    assert len({answer.record.input_hash.text for answer in answers}) == 2
    assert {answer.record.threshold_value for answer in answers} == {"0.9", "0.8"}


UNKNOWN: dict[str, Callable[[DeliveryDispatcher], Awaitable[Any]]] = {
    "ensure_automation_scheduler": lambda to: to.ensure_automation_scheduler("nobody", [reminder()]),
    "ensure_automation_job": lambda to: to.ensure_automation_job("nobody", [reminder()]),
    "ensure_notification_job": lambda to: to.ensure_notification_job("nobody", [direct()]),
    "ensure_notification_scheduler": lambda to: to.ensure_notification_scheduler(
        "nobody", [make.notification_scheduler()]
    ),
    "ensure_messaging_job": lambda to: to.ensure_messaging_job("nobody", [campaign(b"hello")]),
    "ensure_address_versions": lambda to: to.ensure_address_versions("nobody", []),
    "ensure_person_versions": lambda to: to.ensure_person_versions("nobody", []),
    "ensure_user_messages": lambda to: to.ensure_user_messages("nobody", []),
    "ensure_outgoing_messages": lambda to: to.ensure_outgoing_messages(
        "nobody", [make.outgoing_item(make.notification_job(), make.address_version(id=1))]
    ),
}


def test_every_ensure_is_asked_for_an_unknown_tenant() -> None:
    ensures = {name for name in vars(DeliveryDispatcher) if name.startswith("ensure_")}
    assert ensures - {"ensure_tenant"} == set(UNKNOWN)


@pytest.mark.parametrize("name", UNKNOWN)
async def test_a_tenant_that_does_not_exist_is_refused(door: Door, name: str) -> None:
    with pytest.raises(InvalidInput, match="there is no tenant 'nobody': create the tenant first") as refused:
        await UNKNOWN[name](door.dispatcher)
    assert refused.value.field == "tenant_id"


async def test_a_scheduler_row_of_a_job_that_does_not_exist_is_refused(door: Door) -> None:
    with pytest.raises(InvalidInput, match=r"the tenant has no job .*: ensure the job before its scheduler row"):
        await door.dispatcher.ensure_notification_scheduler(TENANT, [make.notification_scheduler()])
    assert (await door.store.measure()).stages_waiting == 0


def at_edges(*, last_year: int = 9998) -> dict[str, tuple[datetime, bool]]:
    """Instants around the first and the last that a record may hold, and whether it may hold each."""
    first_at = datetime(1970, 1, 1, tzinfo=UTC)
    last_at = datetime(last_year, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    microsecond = timedelta(microseconds=1)
    east = timezone(timedelta(hours=2))
    edges = {
        "year-1": (datetime(1, 1, 1, tzinfo=UTC), False),
        "year-1500": (datetime(1500, 6, 1, tzinfo=UTC), False),
        "before-the-first": (first_at - microsecond, False),
        "1970-to-its-caller": (datetime(1970, 1, 1, 1, 59, tzinfo=east), False),
        "first": (first_at, True),
        "1969-to-its-caller": (first_at.astimezone(timezone(timedelta(hours=-2))), True),
        "last": (last_at, True),
    }
    if last_year < 9999:
        edges["after-the-last"] = (last_at + microsecond, False)
    edges["end-of-time"] = (datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))), False)
    return edges


def numbered(n: int, **changes: Any) -> Any:
    """Make the n-th direct send."""
    return direct(origin=Direct(operation="send", idempotency_key=f"key-{n}"), **changes)


def nth_occurrence(n: int, **changes: Any) -> Occurrence:
    """Make the n-th reminder."""
    return reminder(what=msgspec.structs.replace(reminder().what, source=f"source-{n}"), **changes)


async def of_item(to: DeliveryDispatcher, n: int, **changes: Any) -> Any:
    """Ensure the n-th outgoing message, whose job and address are there."""
    job = only(await to.ensure_notification_job(TENANT, [numbered(n)])).record
    given = Destination(
        identity=Identity.user("7"), channel=Channel.EMAIL, destination="sam@example.com", trace=reminder().trace
    )
    address = only(await to.ensure_address_versions(TENANT, [given])).record
    return await to.ensure_outgoing_messages(TENANT, [make.outgoing_item(job, address, **changes)])


async def of_scheduler(to: DeliveryDispatcher, n: int, **changes: Any) -> Any:
    """Ensure the scheduler row of the n-th job, which is there without one."""
    job = only(await to.ensure_notification_job(TENANT, [numbered(n, scheduled=False)])).record
    row = msgspec.structs.replace(make.scheduler_of(job), **changes)
    return await to.ensure_notification_scheduler(TENANT, [row])


Dated = Callable[[DeliveryDispatcher, datetime, int], Awaitable[Any]]
INSTANTS: dict[str, tuple[str, Dated]] = {
    "job": ("source_at", lambda to, at, n: to.ensure_notification_job(TENANT, [numbered(n, source_at=at)])),
    "event": (
        "source_at",
        lambda to, at, n: to.ensure_notification_job(
            TENANT,
            [
                direct(
                    origin=FromEvent(event_type="opened", event_guid=make.guid(n)),
                    entity=("door", ENTITY),
                    source_at=at,
                )
            ],
        ),
    ),
    "content": (
        "source_at",
        lambda to, at, n: to.ensure_messaging_job(
            TENANT, [campaign(b"hello", of=CampaignContent(draft=make.guid(n)), source_at=at)]
        ),
    ),
    "occurrence": (
        "scheduled_at",
        lambda to, at, n: to.ensure_automation_scheduler(TENANT, [nth_occurrence(n, scheduled_at=at)]),
    ),
    "occurrence-of-a-job": (
        "origin.occurrence.scheduled_at",
        lambda to, at, n: to.ensure_notification_job(
            TENANT, [direct(origin=FromAutomation(occurrence=nth_occurrence(n, scheduled_at=at)))]
        ),
    ),
    "period": (
        "what.period_start_at",
        lambda to, at, _: to.ensure_automation_scheduler(TENANT, [report(period_start_at=at)]),
    ),
    "scheduler-due": ("due_at", lambda to, at, n: of_scheduler(to, n, due_at=at)),
    "message-due": ("due_at", lambda to, at, n: of_item(to, n, due_at=at)),
    "message-expires": ("expires_at", lambda to, at, n: of_item(to, n, expires_at=at)),
}


@pytest.mark.parametrize("field, ensure", INSTANTS.values(), ids=INSTANTS)
async def test_an_instant_is_stored_or_refused_by_its_name(door: Door, field: str, ensure: Dated) -> None:
    """An instant that one of the engines cannot store would end as a defect of ours, with the whole set."""
    edges = at_edges(last_year=9999 if field == "expires_at" else 9998)
    for n, (name, (at, may_be)) in enumerate(edges.items()):
        if may_be:
            answer = only(await ensure(door.dispatcher, at, n))
            assert answer.outcome in (Outcome.CREATED, Outcome.FOUND), name
            stored = getattr(answer.record, field, at)
            assert stored == at, name
        else:
            with pytest.raises(InvalidInput) as refused:
                await ensure(door.dispatcher, at, n)
            assert refused.value.field == field, name


async def test_a_job_put_off_beyond_what_can_be_stored_is_refused_by_the_name_of_that_field(door: Door) -> None:
    """A time that has passed means now, whichever it is."""
    for n, (at, may_be) in enumerate(at_edges().values()):
        given = numbered(n, not_before_at=at, source_at=datetime(2026, 3, 1, tzinfo=UTC))
        if may_be or at.year < 1971:
            assert only(await door.dispatcher.ensure_notification_job(TENANT, [given])).outcome is Outcome.CREATED
        else:
            with pytest.raises(InvalidInput) as refused:
                await door.dispatcher.ensure_notification_job(TENANT, [given])
            assert refused.value.field == "not_before_at"


LONG = "\u00fc" * 150  # 300 bytes in 150 characters, for limits that count the one and the other
TEXTS = ("", "x", "x" * 200, "x" * 201, "x" * 512, LONG, LONG * 2, LONG * 20, "a\0b", "\ud800", "\u2028|:/%")
NUMBERS = (-(2**63), -1, 0, 1, 2, 32767, 32768, 1_000_000, 2**31, 2**53 + 1, 2**63)


def extremes(value: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """Yield the value with each text and number in it, one at a time, brought to its limits and beyond them."""
    for name, hint in get_type_hints(type(value)).items():
        given = getattr(value, name)
        types = (hint, *get_args(hint))
        if isinstance(given, msgspec.Struct):
            for inner, changed in extremes(given):
                yield f"{name}.{inner}", msgspec.structs.replace(value, **{name: changed})
        elif str in types or int in types:
            for extreme in TEXTS if str in types else NUMBERS:
                with suppress(InvalidInput):  # an identity refuses by itself what is none
                    yield name, msgspec.structs.replace(value, **{name: extreme})


async def is_answered(asked: Awaitable[Any]) -> bool:
    """Tell whether something was stored; what is refused is refused as what the caller gave."""
    try:
        answers = await asked
    except InvalidInput:
        return False
    return all(answer.outcome in (Outcome.CREATED, Outcome.FOUND, Outcome.CONFLICT) for answer in answers)


REQUESTS: dict[str, tuple[msgspec.Struct, Ensure]] = {
    "reminder": (named_reminder(), lambda to, one: to.ensure_automation_scheduler(TENANT, [one])),
    "threshold": (
        threshold(0.5, FiringPolicy.FALSE_TO_TRUE),
        lambda to, one: to.ensure_automation_scheduler(TENANT, [one]),
    ),
    "trace": (named_reminder(), lambda to, one: to.ensure_automation_job(TENANT, [one])),
    "direct": (direct(actor="sam"), lambda to, one: to.ensure_notification_job(TENANT, [one])),
    "event": (
        direct(origin=FromEvent(event_type="opened", event_guid=DRAFT), entity=("door", ENTITY)),
        lambda to, one: to.ensure_notification_job(TENANT, [one]),
    ),
    "content": (campaign(b"hello", template_key="k"), lambda to, one: to.ensure_messaging_job(TENANT, [one])),
    "destination": (
        Destination(identity=Identity.user("7"), channel=Channel.PUSH, destination="token", trace=reminder().trace),
        lambda to, one: to.ensure_address_versions(TENANT, [one]),
    ),
}


@pytest.mark.parametrize("request_, ensure", REQUESTS.values(), ids=REQUESTS)
async def test_whatever_a_text_or_a_number_is_it_is_stored_or_refused_as_input(
    door: Door, request_: Any, ensure: Ensure
) -> None:
    """Never as a defect of ours: every limit of a column stands before it, as a limit of what is asked."""
    stored = [await is_answered(ensure(door.dispatcher, changed)) for _, changed in extremes(request_)]
    assert any(stored)
    assert not all(stored)


async def test_so_is_whatever_an_outgoing_message_or_a_scheduler_row_holds(door: Door) -> None:
    job = only(await door.dispatcher.ensure_notification_job(TENANT, [direct(scheduled=False)])).record
    given, ensure = REQUESTS["destination"]
    address = only(await ensure(door.dispatcher, given)).record
    for name, changed in extremes(make.outgoing_item(job, address, broadcast="b", attempt_no=2, order_key="k")):
        assert await is_answered(door.dispatcher.ensure_outgoing_messages(TENANT, [changed])) in (True, False), name
    for name, changed in extremes(make.scheduler_of(job)):
        asked = door.dispatcher.ensure_notification_scheduler(TENANT, [changed])
        assert await is_answered(asked) in (True, False), name
