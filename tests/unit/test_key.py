"""Keys: two different occurrences never share one, whatever their names hold, and what cannot be a key is refused.

The golden vectors are in test_key_golden.py. Here a key is taken apart again by a reader that knows only the formulas:
what it reads back is what went in, so no two inputs can have made the same key.
"""

import re
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone
from urllib.parse import unquote
from uuid import UUID

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from clarion.domain import derived_id, key, part
from clarion.domain.identity import Channel
from clarion.domain.key import FiringPolicy
from clarion.errors import InvalidKey

GUID = UUID("6f9619ff-8b86-4d01-b42d-00c04fc964ff")
OTHER_GUID = UUID("0b8f5d5e-1c3a-4e0e-9a53-0f6f2f7b1a11")
HASH = "00112233445566778899aabbccddeeff"
SECRET = bytes(range(32))
AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
GUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# Separators, escapes, path and table characters, NUL, both forms of accented letters, marks that reorder, and the rest.
HOSTILE = st.sampled_from(list(":%_/|~.-+*\\#?@ \0\n\x7fAa0\u00e9e\u0301\u0323\u212b\u200b\u202e\ufeff\U0001f389"))
ANY_CHARACTER = st.characters(exclude_categories=["Cs"])
OUR_OWN_WORDS = st.sampled_from(
    (
        *(
            "reminder",
            "report-subscription",
            "threshold",
            "retry",
            "any",
            "manual",
            "scheduled",
            "OncePerDay",
            "digest",
        ),
        *(
            "2026-01-01",
            "2026-01-01:7",
            "x:threshold:y",
            ":retry:1",
            str(GUID),
            f"{GUID}:due",
            "1e+21",
            "*",
            "%3A",
            "7",
        ),
    )
)
NAMES = st.one_of(
    st.text(HOSTILE, min_size=1, max_size=4), st.text(ANY_CHARACTER, min_size=1, max_size=3), OUR_OWN_WORDS
)
GUIDS = st.uuids() | st.sampled_from([GUID, OTHER_GUID])
REFERENCES = GUIDS | NAMES.filter(lambda name: not GUID_TEXT.fullmatch(name.lower()))
INSTANTS = st.datetimes(timezones=st.just(UTC))
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
HASHES = st.binary(min_size=16, max_size=16).map(bytes.hex)

Occurrence = tuple[object, ...]  # the kind, then what it is made of, in one spelling

thorough = settings(deadline=None, max_examples=200)  # no deadline: the machine is shared, and no test is timed


def normal(name: str | UUID) -> str:
    return unicodedata.normalize("NFC", str(name))


@st.composite
def date_reminders(draw: st.DrawFn) -> tuple[Occurrence, str]:
    setting, source, source_type, trigger = draw(REFERENCES), draw(REFERENCES), draw(NAMES), draw(NAMES)
    on, offset = draw(st.dates()), draw(st.integers(-400, 400))
    made = key.date_reminder_key(
        setting=setting, source_type=source_type, source=source, trigger_key=trigger, target_date=on, offset_days=offset
    )
    return ("date", *map(normal, (setting, source_type, source, trigger)), on, offset), made


@st.composite
def threshold_reminders(draw: st.DrawFn) -> tuple[Occurrence, str]:
    setting, source, source_type, trigger = draw(REFERENCES), draw(REFERENCES), draw(NAMES), draw(NAMES)
    metric, scope, value, policy = draw(NAMES), draw(NAMES), draw(NUMBERS), draw(st.sampled_from(FiringPolicy))
    on = draw(st.dates()) if policy is FiringPolicy.ONCE_PER_DAY else None
    edge = draw(st.integers(0, 10**6)) if policy is FiringPolicy.FALSE_TO_TRUE else None
    made = key.threshold_reminder_key(
        setting=setting,
        source_type=source_type,
        source=source,
        trigger_key=trigger,
        metric=metric,
        value=value,
        firing_policy=policy,
        scope=scope,
        local_date=on,
        edge_no=edge,
    )
    written = None if policy is FiringPolicy.ONCE_PER_SOURCE else float(value)
    names = map(normal, (setting, source_type, source, trigger, metric))
    return ("threshold", *names, written, policy, normal(scope), on, edge), made


@st.composite
def reports(draw: st.DrawFn) -> tuple[Occurrence, str]:
    subscription = draw(GUIDS)
    if draw(st.booleans()):
        run = draw(GUIDS)
        return ("manual-report", subscription, run), key.report_manual_key(
            subscription_guid=subscription, manual_run_guid=run
        )
    at = draw(INSTANTS)
    return ("report", subscription, at), key.report_scheduled_key(subscription_guid=subscription, period_start_at=at)


@st.composite
def reruns(draw: st.DrawFn) -> tuple[Occurrence, str]:
    first, made = draw(st.one_of(date_reminders(), threshold_reminders(), reports()))
    n = draw(st.integers(1, 2**53))
    return ("retry", first, n), key.retry_key(scheduler_key=made, n=n)


@st.composite
def events(draw: st.DrawFn) -> tuple[Occurrence, str]:
    event_type, guid, notification = draw(NAMES), draw(GUIDS), draw(NAMES)
    made = key.event_job_rk(event_type=event_type, event_guid=guid, notification_event_type=notification)
    return ("event", normal(event_type), guid, normal(notification)), made


@st.composite
def direct_jobs(draw: st.DrawFn) -> tuple[Occurrence, str]:
    at, guid = draw(INSTANTS), draw(GUIDS)
    return ("direct", at, guid), key.manual_job_rk(created_at=at, job_guid=guid)


@st.composite
def campaigns(draw: st.DrawFn) -> tuple[Occurrence, str]:
    guid = draw(GUIDS)
    return ("campaign", guid), key.campaign_job_rk(campaign_guid=guid)


SCHEDULED = st.one_of(date_reminders(), threshold_reminders(), reports(), reruns())
JOBS = st.one_of(SCHEDULED, events(), direct_jobs(), campaigns())


def read_instant(text: str) -> datetime:
    seconds, _, micro = text.removesuffix("Z").partition(".")
    at = datetime.fromisoformat(f"{seconds}+00:00")
    return at + timedelta(microseconds=int(micro.ljust(6, "0") or "0"))


def read_ticks(text: str) -> datetime:
    return datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=(key.TICK_MAX - int(text)) // 10)


def read(made: str) -> Occurrence:
    """Take any job's row key apart, knowing nothing but the formulas."""
    parts = made.split(":")
    match parts:
        case [direct] if len(direct) == 19 + 1 + 36:
            return "direct", read_ticks(direct[:19]), UUID(direct[20:])
        case [campaign]:
            return "campaign", UUID(campaign)
        case [event_type, guid, notification]:
            return "event", unquote(event_type), UUID(guid), unquote(notification)
        case ["report-subscription", guid, "scheduled", at]:
            return "report", UUID(guid), read_instant(at)
        case ["report-subscription", guid, "manual", run]:
            return "manual-report", UUID(guid), UUID(run)
        case ["reminder", *names, on, offset] if len(names) == 4:
            return "date", *map(unquote, names), date.fromisoformat(on), int(offset)
        case ["reminder", _, _, _, _, "threshold", *rest] if len(rest) in (4, 5):
            return read_threshold(parts)
        case [*_, "retry", n]:
            return "retry", read(made.removesuffix(f":retry:{n}")), int(n)
        case _:
            raise AssertionError(f"nobody can read {made}")


def read_threshold(parts: list[str]) -> Occurrence:
    metric, value, policy, scope, *rest = parts[6:]
    on = date.fromisoformat(rest[0]) if policy == "OncePerDay" else None
    edge = int(rest[0]) if policy == "FalseToTrue" else None
    number = None if policy == "OncePerSource" else float(value)
    return "threshold", *map(unquote, [*parts[1:5], metric]), number, policy, unquote(scope), on, edge


@thorough
@given(JOBS)
def test_any_row_key_of_a_job_can_be_taken_apart_into_what_made_it(job: tuple[Occurrence, str]) -> None:
    occurrence, made = job
    assert read(made) == occurrence


@thorough
@given(JOBS, JOBS)
def test_two_different_occurrences_never_share_a_key(
    one: tuple[Occurrence, str], other: tuple[Occurrence, str]
) -> None:
    assert (one[0] == other[0]) == (one[1] == other[1])


@thorough
@given(JOBS, INSTANTS)
def test_all_that_derives_from_an_occurrence_fits(job: tuple[Occurrence, str], at: datetime) -> None:
    _, made = job
    assert key.outgoing_pk(job_rk=made) == made
    inbox = key.user_message_rk(source_at=at, job_rk=made)
    assert (read_ticks(inbox[:19]), inbox[19], inbox[20:]) == (at, "_", made)
    derived_id.row_guid(tenant_id="acme", row_key=made)


@thorough
@given(SCHEDULED, st.integers(1, 99))
def test_only_a_first_run_has_re_runs(scheduled: tuple[Occurrence, str], n: int) -> None:
    occurrence, made = scheduled
    if occurrence[0] == "retry":
        with pytest.raises(InvalidKey, match="re-run"):
            key.retry_key(scheduler_key=made, n=n)
    else:
        assert read(key.retry_key(scheduler_key=made, n=n)) == ("retry", occurrence, n)


@thorough
@given(NAMES)
@example("\u1e9b\u0323")  # NFC and NFKC differ here: compatibility forms are different names
def test_a_name_comes_back_in_nfc_and_only_in_safe_characters(name: str) -> None:
    written = part.text(name, field="name")
    assert unquote(written, errors="strict") == normal(name)
    assert re.fullmatch(r"([A-Za-z0-9._~-]|%[0-9A-F]{2})+", written)
    assert part.text(unicodedata.normalize("NFD", name), field="name") == written


@thorough
@given(NAMES, GUIDS, GUIDS, INSTANTS)
def test_an_event_of_an_entity_can_be_taken_apart(name: str, entity: UUID, event: UUID, at: datetime) -> None:
    entity_type, guid = key.entity_event_pk(entity_type=name, entity_guid=entity).split(":")
    assert (unquote(entity_type), UUID(guid)) == (normal(name), entity)
    ticks, _, guid = key.entity_event_rk(occurred_at=at, event_guid=event).partition("_")
    assert (read_ticks(ticks), UUID(guid)) == (at, event)


@thorough
@given(REFERENCES, NAMES, REFERENCES, NAMES, NAMES)
def test_a_threshold_state_can_be_taken_apart(
    setting: UUID | str, source_type: str, source: UUID | str, metric: str, scope: str
) -> None:
    made = key.threshold_state_key(setting=setting, source_type=source_type, source=source, metric=metric, scope=scope)
    assert [unquote(piece) for piece in made] == [*map(normal, (setting, source_type, source, metric, scope))]


@thorough
@given(st.none() | NAMES, st.sampled_from(Channel) | st.none())
def test_a_suppression_scope_can_be_taken_apart(category: str | None, channel: Channel | None) -> None:
    assume(category is not None or channel is None)
    made = key.suppression_scope(category=category, channel=channel)
    name, colon, road = made.partition(":")
    read_back = (None, None) if made == "*" else (unquote(name), road if colon else None)
    assert read_back == (None if category is None else normal(category), channel)


@thorough
@given(HASHES, st.sampled_from(Channel), st.none() | st.integers(2, 2**53), GUIDS)
def test_an_outgoing_row_can_be_taken_apart(
    recipient: str, channel: Channel, attempt_no: int | None, message: UUID
) -> None:
    suffix = [] if attempt_no is None else [str(attempt_no)]
    row = key.outgoing_rk(recipient_key_hash=recipient, channel=channel, attempt_no=attempt_no)
    assert row.split("_") == [recipient, channel.value, *suffix]
    name = key.idempotency_key(message_id=message, channel=channel, recipient_key_hash=recipient, attempt_no=attempt_no)
    assert name.split(":") == [str(message), channel.value, recipient, *suffix]
    assert key.read_idempotency_key(name) == (message, recipient)


@pytest.mark.parametrize("form", ["", "{}\n", " {}", "{}:0", "{}:02", "{}:2:2", "{}0", "urn:{}"])
def test_what_is_not_the_name_of_an_outgoing_row_is_not_read_as_one(form: str) -> None:
    name = key.idempotency_key(message_id=GUID, channel=Channel.SMS, recipient_key_hash=HASH)
    for text in (form.format(name), name.upper(), name.replace("sms", "pigeon")):
        with pytest.raises(InvalidKey, match="key: it is no idempotency key"):
            key.read_idempotency_key(text)


@thorough
@given(INSTANTS, INSTANTS)
def test_the_newest_sorts_first(one: datetime, other: datetime) -> None:
    assert (key.reverse_ticks(one) < key.reverse_ticks(other)) == (one > other)
    assert len(key.reverse_ticks(one)) == 19


@thorough
@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)), st.integers(-1439, 1439))  # noqa: DTZ001 the strategy adds the zone
def test_an_instant_is_the_same_in_every_zone(naive: datetime, minutes: int) -> None:
    at = naive.replace(tzinfo=UTC)
    elsewhere = at.astimezone(timezone(timedelta(minutes=minutes)))
    assert key.reverse_ticks(elsewhere) == key.reverse_ticks(at)
    assert key.month_bucket(elsewhere) == key.month_bucket(at) == at.year * 100 + at.month
    assert part.instant(elsewhere, field="at") == part.instant(at, field="at")
