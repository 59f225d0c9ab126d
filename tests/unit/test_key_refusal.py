"""What cannot be a key is refused, with an error that names the field, says what to do and never quotes the value."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest

from clarion.domain import derived_id, key
from clarion.domain.identity import Channel, Identity
from clarion.domain.key import FiringPolicy
from clarion.errors import InvalidInput, InvalidKey, UnknownVersion

GUID = UUID("6f9619ff-8b86-4d01-b42d-00c04fc964ff")
OTHER_GUID = UUID("0b8f5d5e-1c3a-4e0e-9a53-0f6f2f7b1a11")
HASH = "00112233445566778899aabbccddeeff"
AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def reminder(**changes: object) -> str:
    """Make a date reminder's key with some arguments changed, also to what the signature forbids."""
    arguments: dict[str, object] = {
        "setting": GUID,
        "source_type": "Invoice",
        "source": GUID,
        "trigger_key": "due",
        "target_date": date(2026, 3, 31),
        "offset_days": 7,
    }
    function: Callable[..., str] = key.date_reminder_key
    return function(**arguments | changes)


def threshold(**changes: object) -> str:
    arguments: dict[str, object] = {
        "setting": GUID,
        "source_type": "Class",
        "source": GUID,
        "trigger_key": "capacity",
        "metric": "booked",
        "value": 0.9,
        "firing_policy": FiringPolicy.ONCE_PER_THRESHOLD,
        "scope": "all",
    }
    function: Callable[..., str] = key.threshold_reminder_key
    return function(**arguments | changes)


@pytest.mark.parametrize(
    "field, value",
    [
        ("trigger_key", ""),
        ("trigger_key", None),
        ("trigger_key", b"due"),
        ("trigger_key", 7),
        ("trigger_key", "\ud800"),
        ("source_type", GUID),
        ("setting", str(GUID).upper()),
        ("setting", 7),
        ("source", ""),
        ("target_date", "2026-03-31"),
        ("target_date", AT),
        ("offset_days", 7.0),
        ("offset_days", True),
        ("offset_days", 2**53 + 1),
        ("offset_days", "7"),
    ],
)
def test_a_part_that_cannot_stand_in_a_key_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidKey) as refusal:
        reminder(**{field: value})
    assert refusal.value.field == field
    assert refusal.value.hint


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), True, 2**53 + 1, Decimal("0.9"), "0.9"])
def test_a_value_that_is_no_exact_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidKey) as refusal:
        threshold(value=value)
    assert refusal.value.field == "value"


@pytest.mark.parametrize("one, other", [(1, 1.0), (0, -0.0), (2**53, float(2**53)), (100, 1e2)])
def test_equal_numbers_are_one_part(one: float, other: float) -> None:
    assert threshold(value=one) == threshold(value=other)


@pytest.mark.parametrize(
    "field, changes",
    [
        ("local_date", {"firing_policy": FiringPolicy.ONCE_PER_DAY}),
        ("edge_no", {"firing_policy": FiringPolicy.FALSE_TO_TRUE}),
        ("local_date", {"local_date": date(2026, 3, 29)}),
        ("edge_no", {"edge_no": 1}),
        ("edge_no", {"firing_policy": FiringPolicy.ONCE_PER_DAY, "local_date": date(2026, 3, 29), "edge_no": 1}),
        ("local_date", {"firing_policy": FiringPolicy.FALSE_TO_TRUE, "local_date": date(2026, 3, 29), "edge_no": 1}),
        ("local_date", {"firing_policy": FiringPolicy.ONCE_PER_SOURCE, "local_date": date(2026, 3, 29)}),
        ("edge_no", {"firing_policy": FiringPolicy.FALSE_TO_TRUE, "edge_no": -1}),
        ("value", {"value": None}),
        ("firing_policy", {"firing_policy": "OncePerThreshold"}),
    ],
)
def test_a_threshold_takes_exactly_what_its_firing_policy_needs(field: str, changes: dict[str, object]) -> None:
    with pytest.raises(InvalidKey) as refusal:
        threshold(**changes)
    assert refusal.value.field == field


def test_once_per_source_is_one_occurrence_whatever_the_value() -> None:
    keys = {threshold(firing_policy=FiringPolicy.ONCE_PER_SOURCE, value=value) for value in (None, 0.9, 90)}
    assert len(keys) == 1


def test_a_key_with_a_colon_in_a_name_cannot_be_taken_for_two_parts() -> None:
    assert reminder(source_type="a:b", trigger_key="c") != reminder(source_type="a", trigger_key="b:c")
    assert reminder(source_type="a:b").count(":") == reminder().count(":")


def test_a_source_key_may_have_400_bytes_and_no_more() -> None:
    room = 400 - len(reminder(trigger_key="x")) + 1
    longest = reminder(trigger_key="x" * room)
    assert len(longest) == 400
    with pytest.raises(InvalidKey, match=r"401 bytes.*400 is the most.*shorten.*trigger_key"):
        reminder(trigger_key="x" * (room + 1))
    with pytest.raises(InvalidKey, match=r"408 bytes"):
        reminder(trigger_key="x" * (room - 1) + "\u65e5")  # one character, nine bytes
    rerun = key.retry_key(scheduler_key=longest, n=2**53)
    assert len(key.user_message_rk(source_at=AT, job_rk=rerun)) == 400 + 43


def test_an_event_key_may_have_400_bytes_and_no_more() -> None:
    def made(size: int) -> str:
        return key.event_job_rk(event_type="e" * size, event_guid=GUID, notification_event_type="n")

    assert len(made(400 - 36 - 3)) == 400
    with pytest.raises(InvalidKey, match=r"401 bytes.*event_type"):
        made(400 - 36 - 2)


def test_any_key_may_have_512_bytes_and_no_more() -> None:
    assert len(key.entity_event_pk(entity_type="x" * 475, entity_guid=GUID)) == 512
    with pytest.raises(InvalidKey, match=r"513 bytes.*512 is the most.*entity_type"):
        key.entity_event_pk(entity_type="x" * 476, entity_guid=GUID)
    with pytest.raises(InvalidKey, match="513 bytes"):
        key.outgoing_pk(job_rk="x" * 513)
    with pytest.raises(InvalidKey, match="513 bytes"):
        derived_id.job_guid(tenant_id="acme", operation="send", idempotency_key="x" * 513)


def test_a_refusal_never_quotes_the_value() -> None:
    for refused in ("ann@example.com" * 40, "ann@example.com\ud800"):
        with pytest.raises(InvalidKey) as refusal:
            reminder(trigger_key=refused)
        assert "ann" not in str(refusal.value)


@pytest.mark.parametrize(
    "scheduler_key",
    [
        "",
        "reminder",
        "reminder:a:b",
        "reminder:a b:b:c:d:2026-03-31:7",
        "reminder:\u00e9:b:c:d:2026-03-31:7",
        "reminder:a:b:c:d:2026-03-31:7:again:1",
        f"InvoicePaid:{GUID}:receipt",
        f"report-subscription:{GUID}:scheduled",
        None,
        7,
    ],
)
def test_only_the_key_of_an_occurrence_is_an_automation_row_key(scheduler_key: str) -> None:
    with pytest.raises(InvalidKey) as refusal:
        key.automation_job_rk(scheduler_key=scheduler_key)
    assert refusal.value.field == "scheduler_key"


def test_a_reminder_is_no_report_and_a_report_no_reminder() -> None:
    report = key.report_manual_key(subscription_guid=GUID, manual_run_guid=OTHER_GUID)
    with pytest.raises(InvalidKey, match="report-subscription"):
        key.report_job_rk(scheduler_key=reminder())
    with pytest.raises(InvalidKey, match="reminder"):
        key.reminder_job_rk(scheduler_key=report)


def direct_pk(*recipients: Identity, recipient_id_hash: str | None = None) -> str:
    return key.manual_job_pk(
        entity_guid=None, recipients=recipients, recipient_id_hash=recipient_id_hash, job_guid=OTHER_GUID
    )


def test_a_direct_job_to_an_address_needs_its_hash() -> None:
    with pytest.raises(InvalidKey, match="recipient_id_hash"):
        direct_pk(Identity.address("ann@example.com"))
    with pytest.raises(InvalidKey, match="recipient_id_hash"):
        direct_pk(Identity.address("ann@example.com"), recipient_id_hash="ann@example.com")


def test_the_same_id_in_another_domain_is_another_partition() -> None:
    partitions = {
        direct_pk(Identity.user(str(GUID))),
        direct_pk(Identity.employee(GUID)),
        direct_pk(Identity.group(GUID)),
        direct_pk(Identity.address(str(GUID)), recipient_id_hash=HASH),
        direct_pk(Identity.user("1"), Identity.user("2")),
    }
    assert len(partitions) == 5


@pytest.mark.parametrize("who", [Identity.group(GUID), Identity.address("ann@example.com")])
def test_only_users_and_employees_have_an_inbox(who: Identity) -> None:
    with pytest.raises(InvalidKey, match="no inbox"):
        key.user_message_pk(recipient=who)


def test_an_outgoing_row_needs_a_parent() -> None:
    with pytest.raises(InvalidKey, match="parent"):
        key.outgoing_pk()


@pytest.mark.parametrize("attempt_no", [0, 1, -1, True, 2.0])
def test_only_a_second_send_has_an_attempt_number(attempt_no: int) -> None:
    with pytest.raises(InvalidKey, match="attempt_no"):
        key.outgoing_rk(recipient_key_hash=HASH, channel=Channel.SMS, attempt_no=attempt_no)
    with pytest.raises(InvalidKey, match="attempt_no"):
        key.idempotency_key(message_id=GUID, channel=Channel.SMS, recipient_key_hash=HASH, attempt_no=attempt_no)


@pytest.mark.parametrize("value", [HASH.upper(), HASH[:-1], HASH + "0", "", None, f"{HASH}\n", "g" * 32])
def test_a_hash_has_one_spelling(value: str) -> None:
    with pytest.raises(InvalidKey, match="recipient_key_hash"):
        key.outgoing_rk(recipient_key_hash=value, channel=Channel.SMS)


def test_bare_text_is_no_channel_and_bare_text_no_guid() -> None:
    outgoing_rk: Callable[..., str] = key.outgoing_rk
    with pytest.raises(InvalidKey, match="channel"):
        outgoing_rk(recipient_key_hash=HASH, channel="sms")
    campaign_job_rk: Callable[..., str] = key.campaign_job_rk
    with pytest.raises(InvalidKey, match="campaign_guid"):
        campaign_job_rk(campaign_guid=str(GUID))


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 3, 4),  # noqa: DTZ001 naive on purpose
        date(2026, 3, 4),
        "2026-03-04T05:06:07Z",
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_what_is_no_instant_in_utc_is_refused(at: datetime) -> None:
    for function in (key.reverse_ticks, key.month_bucket):
        with pytest.raises(InvalidKey):
            function(at)
    with pytest.raises(InvalidKey, match="period_start_at"):
        key.report_scheduled_key(subscription_guid=GUID, period_start_at=at)


def test_a_channel_alone_is_no_suppression_scope() -> None:
    with pytest.raises(InvalidKey, match="category"):
        key.suppression_scope(channel=Channel.SMS)


@pytest.mark.parametrize("counter", [-1, True, 1.0, "1"])
def test_pages_and_windows_are_counted_in_whole_numbers(counter: int) -> None:
    with pytest.raises(InvalidKey, match="page"):
        key.recipient_page_path(tenant_id="acme", parent_guid=GUID, page=counter)
    with pytest.raises(InvalidKey, match="seq"):
        key.digest_window_key(recipient_id_hash=HASH, digest_key="daily", seq=counter)


@pytest.mark.parametrize("tenant_id", ["", "..", "a/b", "Acme", "-acme", "a" * 64, "acme\n", None])
def test_a_path_begins_with_a_tenant_and_nothing_else(tenant_id: str) -> None:
    with pytest.raises(InvalidInput, match="tenant_id"):
        key.messaging_blob_path(tenant_id=tenant_id, messaging_job_guid=GUID)
    with pytest.raises(InvalidInput, match="tenant_id"):
        derived_id.sent_campaign_guid(tenant_id=tenant_id, draft_guid=GUID)


@pytest.mark.parametrize("n", [0, -1, True, 1.5])
def test_waves_and_re_runs_are_counted_from_one(n: int) -> None:
    with pytest.raises(InvalidKey):
        derived_id.wave_guid(tenant_id="acme", campaign_guid=GUID, n=n)
    with pytest.raises(InvalidKey):
        key.retry_key(scheduler_key=reminder(), n=n)


@pytest.mark.parametrize("version", [0, 2, -1])
def test_keys_of_an_unknown_version_are_left_to_another_program(version: int) -> None:
    with pytest.raises(UnknownVersion, match="newer program"):
        key.require_key_version(version)
