"""Every key: one pure function each, byte for byte as docs/reference/keys.md and the golden vectors have it.

Event, retry and reconciliation call the same function and so arrive at the same record. A changed key is a breaking
change: rows already stored would no longer be found, and people would hear twice. A new form needs a new KEY_VERSION,
which a parent freezes for all that derives from it.

Reads and writes nothing. How a part is spelled stands in `part`, ids made by hashing in `derived_id`. Keys that are
only the columns they are made of (an attempt's, a webhook event's, an address version's) have no function.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import assert_never
from uuid import UUID

from clarion.domain import part
from clarion.domain.identity import Channel, Identity, IdentityDomain, require_tenant
from clarion.errors import InvalidKey, UnknownVersion

KEY_VERSION = 1
TICK_MAX = 3155378975999999999  # the last 100 ns tick of the year 9999, counted from year 1
FIRST_AT = datetime(1, 1, 1, tzinfo=UTC)

# How many parts the key of an occurrence has; a re-run adds `retry` and a number, which no key below has at that place.
_REMINDER_PARTS = frozenset({7, 10, 11})  # by date; by threshold; by threshold with a local date or an edge number
_REPORT_PARTS = frozenset({4})

_IDEMPOTENCY_KEY = re.compile(
    rf"([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}):(?:{'|'.join(Channel)}):([0-9a-f]{{32}})(?::[1-9][0-9]*)?"
)


class FiringPolicy(StrEnum):
    """How often a threshold that holds may fire."""

    ONCE_PER_SOURCE = "OncePerSource"
    ONCE_PER_THRESHOLD = "OncePerThreshold"
    ONCE_PER_DAY = "OncePerDay"
    FALSE_TO_TRUE = "FalseToTrue"


def require_key_version(version: int) -> int:
    """Refuse to derive anything from a parent whose keys a newer program made."""
    if version != KEY_VERSION:
        raise UnknownVersion(
            f"keys of version {version!r} are unknown, this program makes version {KEY_VERSION}",
            field="key_version",
            hint="leave the record to a newer program, or upgrade this one",
        )
    return version


def reverse_ticks(at: datetime) -> str:
    """Count an instant down from the end of time in 100 ns ticks, 19 digits, so that the newest sorts first."""
    elapsed = part.in_utc(at, field="at") - FIRST_AT
    return f"{TICK_MAX - elapsed // timedelta(microseconds=1) * 10:019d}"


def month_bucket(source_at: datetime) -> int:
    """Name the UTC month of a parent's source time, as yyyymm: the partition of all its rows."""
    at = part.in_utc(source_at, field="source_at")
    return at.year * 100 + at.month


def entity_event_pk(*, entity_type: str, entity_guid: UUID) -> str:
    """Gather the events of one entity."""
    key = f"{part.text(entity_type, field='entity_type')}:{part.guid(entity_guid, field='entity_guid')}"
    return part.fit(key, field="entity_event_pk", shorten="entity_type")


def entity_event_rk(*, occurred_at: datetime, event_guid: UUID) -> str:
    """Name one event of an entity, newest first."""
    return f"{reverse_ticks(occurred_at)}_{part.guid(event_guid, field='event_guid')}"


def date_reminder_key(
    *,
    setting: UUID | str,
    source_type: str,
    source: UUID | str,
    trigger_key: str,
    target_date: date,
    offset_days: int,
) -> str:
    """Name the occurrence of a reminder that counts from a date."""
    reminder = _reminder(setting=setting, source_type=source_type, source=source, trigger_key=trigger_key)
    on, offset = part.day(target_date, field="target_date"), part.whole(offset_days, field="offset_days")
    return _source_key(f"{reminder}:{on}:{offset}", shorten="setting, source_type, source or trigger_key")


def threshold_reminder_key(
    *,
    setting: UUID | str,
    source_type: str,
    source: UUID | str,
    trigger_key: str,
    metric: str,
    value: float | None,
    firing_policy: FiringPolicy,
    scope: str,
    local_date: date | None = None,
    edge_no: int | None = None,
) -> str:
    """Name the occurrence of a reminder that fires on a metric; `OncePerSource` is the same whatever the value."""
    reminder = _reminder(setting=setting, source_type=source_type, source=source, trigger_key=trigger_key)
    policy = part.member(firing_policy, of=FiringPolicy, field="firing_policy")
    _require(local_date, only_with=FiringPolicy.ONCE_PER_DAY, policy=firing_policy, field="local_date")
    _require(edge_no, only_with=FiringPolicy.FALSE_TO_TRUE, policy=firing_policy, field="edge_no")
    written = threshold_value(value=value, firing_policy=firing_policy) or "any"
    scoped = f"{part.text(metric, field='metric')}:{written}:{policy}:{part.text(scope, field='scope')}"
    if local_date is not None:
        scoped += f":{part.day(local_date, field='local_date')}"
    if edge_no is not None:
        scoped += f":{part.whole(edge_no, field='edge_no', least=0)}"
    free = "setting, source_type, source, trigger_key, metric or scope"
    return _source_key(f"{reminder}:threshold:{scoped}", shorten=free)


def threshold_value(*, value: float | None, firing_policy: FiringPolicy) -> str | None:
    """Write the value that tells two occurrences of a threshold apart; with `OncePerSource` none does."""
    written = None if value is None else part.number(value, field="value")
    if firing_policy is FiringPolicy.ONCE_PER_SOURCE:
        return None
    if written is None:
        raise InvalidKey(f"{firing_policy} needs it", field="value", hint="pass the threshold's value")
    return written


def report_scheduled_key(*, subscription_guid: UUID, period_start_at: datetime) -> str:
    """Name the run of a report subscription for one period."""
    subscription = part.guid(subscription_guid, field="subscription_guid")
    return f"report-subscription:{subscription}:scheduled:{part.instant(period_start_at, field='period_start_at')}"


def report_manual_key(*, subscription_guid: UUID, manual_run_guid: UUID) -> str:
    """Name the run of a report subscription that a person asked for."""
    subscription = part.guid(subscription_guid, field="subscription_guid")
    return f"report-subscription:{subscription}:manual:{part.guid(manual_run_guid, field='manual_run_guid')}"


def retry_key(*, scheduler_key: str, n: int) -> str:
    """Name the n-th deliberate re-run of an occurrence; a re-run of a re-run is the next n of the first key."""
    if _is_rerun(_scheduler_key(scheduler_key)):
        raise InvalidKey("it is a re-run already", field="scheduler_key", hint="pass the first key and the next n")
    return part.fit(f"{scheduler_key}:retry:{part.whole(n, field='n', least=1)}", field="retry_key")


def read_first_run(scheduler_key: str) -> tuple[str, int | None]:
    """Take the key of an occurrence apart: that of its first run, and which deliberate re-run of it this is."""
    if not _is_rerun(_scheduler_key(scheduler_key)):
        return scheduler_key, None
    first, _, n = scheduler_key.rsplit(":", 2)
    return first, int(n)


def automation_job_pk(*, entity_guid: UUID) -> str:
    """Gather the traces of one entity's occurrences."""
    return part.guid(entity_guid, field="entity_guid")


def automation_job_rk(*, scheduler_key: str) -> str:
    """Name the trace of an occurrence as the occurrence itself: the automation row key."""
    return _scheduler_key(scheduler_key)


def manual_job_pk(
    *, entity_guid: UUID | None, recipients: Sequence[Identity], recipient_id_hash: str | None, job_guid: UUID
) -> str:
    """Choose where a direct job's history opens: its entity, else its one recipient, else the job itself.

    Without a recipient it goes to whom the settings name, who may be several and are not known yet.
    `recipient_id_hash` is the hash of the only recipient; it is needed where that is a bare address.
    """
    if entity_guid is not None:
        return part.guid(entity_guid, field="entity_guid")
    if len(recipients) != 1:
        return part.guid(job_guid, field="job_guid")
    (recipient,) = recipients
    match recipient.domain:
        case IdentityDomain.USER | IdentityDomain.EMPLOYEE | IdentityDomain.GROUP:
            return f"{recipient.domain.value}:{part.text(recipient.id, field='id')}"
        case IdentityDomain.ADDRESS:
            if recipient_id_hash is None:
                raise InvalidKey("an address needs it", field="recipient_id_hash", hint="pass the address's hash")
            return f"address:{part.hash32(recipient_id_hash, field='recipient_id_hash')}"
        case _:
            assert_never(recipient.domain)


def manual_job_rk(*, created_at: datetime, job_guid: UUID) -> str:
    """Name a direct job; the time is the guard's where there is one, so that a retry finds it."""
    return f"{reverse_ticks(created_at)}_{part.guid(job_guid, field='job_guid')}"


def reminder_job_pk(*, entity_guid: UUID) -> str:
    """Open a reminder's history at its primary entity."""
    return part.guid(entity_guid, field="entity_guid")


def reminder_job_rk(*, scheduler_key: str) -> str:
    """Name a reminder's job by its occurrence."""
    return _scheduler_key(scheduler_key, kind="reminder")


def report_job_pk(*, subscription_guid: UUID) -> str:
    """Open a report's history at its subscription."""
    return part.guid(subscription_guid, field="subscription_guid")


def report_job_rk(*, scheduler_key: str) -> str:
    """Name a report's job by its run."""
    return _scheduler_key(scheduler_key, kind="report-subscription")


def campaign_job_pk(*, business_unit_guid: UUID) -> str:
    """Gather the campaigns of one business unit."""
    return f"{part.guid(business_unit_guid, field='business_unit_guid')}_Campaign"


def campaign_job_rk(*, campaign_guid: UUID) -> str:
    """Name a campaign's job by the sent campaign."""
    return part.guid(campaign_guid, field="campaign_guid")


def event_job_pk(*, entity_guid: UUID) -> str:
    """Open the history of what an event caused at its primary entity."""
    return part.guid(entity_guid, field="entity_guid")


def event_job_rk(*, event_type: str, event_guid: UUID, notification_event_type: str) -> str:
    """Name the one notification of this type that an event causes."""
    event = f"{part.text(event_type, field='event_type')}:{part.guid(event_guid, field='event_guid')}"
    key = f"{event}:{part.text(notification_event_type, field='notification_event_type')}"
    return _source_key(key, shorten="event_type or notification_event_type")


def user_message_pk(*, recipient: Identity) -> str:
    """Name one inbox; only a user or an employee has one."""
    if recipient.domain not in (IdentityDomain.USER, IdentityDomain.EMPLOYEE):
        raise InvalidKey(f"a {recipient.domain.value} has no inbox", field="recipient", hint="pass a user or employee")
    return f"{recipient.domain.value}:{part.text(recipient.id, field='id')}"


def user_message_rk(*, source_at: datetime, job_rk: str) -> str:
    """Name a job's line in an inbox, newest first by the time of its source."""
    key = f"{reverse_ticks(source_at)}_{part.made_key(job_rk, field='job_rk')}"
    return part.fit(key, field="user_message_rk", shorten="the job's row key")


def recipient_job_key(*, source_at: datetime, job_guid: UUID) -> str:
    """Name a job among all that one person got, newest first; of a direct job it is the row key."""
    return f"{reverse_ticks(source_at)}_{part.guid(job_guid, field='job_guid')}"


def outgoing_pk(*, messaging_job_guid: UUID | None = None, job_rk: str | None = None) -> str:
    """Gather the outgoing rows of one parent: the messaging job where there is one, else the notification job."""
    if messaging_job_guid is not None:
        return part.guid(messaging_job_guid, field="messaging_job_guid")
    if job_rk is None:
        raise InvalidKey("an outgoing row needs a parent", field="job_rk", hint="pass its job's row key or guid")
    return part.made_key(job_rk, field="job_rk")


def outgoing_rk(*, recipient_key_hash: str, channel: Channel, attempt_no: int | None = None) -> str:
    """Name one recipient on one channel; `attempt_no`, from 2, only for a deliberate second send."""
    key = f"{part.hash32(recipient_key_hash, field='recipient_key_hash')}_{_channel(channel)}"
    return key if attempt_no is None else f"{key}_{part.whole(attempt_no, field='attempt_no', least=2)}"


def idempotency_key(
    *, message_id: UUID, channel: Channel, recipient_key_hash: str, attempt_no: int | None = None
) -> str:
    """Name an outgoing row to its provider: no address in it, and no two rows share one."""
    recipient = part.hash32(recipient_key_hash, field="recipient_key_hash")
    key = f"{part.guid(message_id, field='message_id')}:{_channel(channel)}:{recipient}"
    return key if attempt_no is None else f"{key}:{part.whole(attempt_no, field='attempt_no', least=2)}"


def read_idempotency_key(text: str) -> tuple[UUID, str]:
    """Take the message's id and the recipient's key hash out of an outgoing row's name, as a provider gave it back."""
    found = _IDEMPOTENCY_KEY.fullmatch(text)
    if found is None:
        raise InvalidKey("it is no idempotency key of a call", field="key", hint="give it back as the call had it")
    return UUID(found[1]), found[2]


def threshold_state_key(
    *, setting: UUID | str, source_type: str, source: UUID | str, metric: str, scope: str
) -> tuple[str, str, str, str, str]:
    """Name the last truth of one metric of one source under one setting and scope."""
    key = (
        part.reference(setting, field="setting"),
        part.text(source_type, field="source_type"),
        part.reference(source, field="source"),
        part.text(metric, field="metric"),
        part.text(scope, field="scope"),
    )
    part.fit(":".join(key), field="threshold_state_key", shorten="setting, source_type, source, metric or scope")
    return key


def digest_item_key(*, recipient_id_hash: str, digest_key: str, source_key: str) -> tuple[str, str, str]:
    """Name one source event that waits in a recipient's digest."""
    source = part.made_key(source_key, field="source_key")
    return *_digest(recipient_id_hash=recipient_id_hash, digest_key=digest_key), source


def digest_window_key(*, recipient_id_hash: str, digest_key: str, seq: int) -> tuple[str, str, int]:
    """Name one window of a recipient's digest."""
    part.whole(seq, field="seq", least=0)
    return *_digest(recipient_id_hash=recipient_id_hash, digest_key=digest_key), seq


def suppression_scope(*, category: str | None = None, channel: Channel | None = None) -> str:
    """Say what a suppression stops: everything, one category, or one category on one channel."""
    if category is None:
        if channel is not None:
            raise InvalidKey("a channel alone is no scope", field="channel", hint="name the category as well")
        return "*"
    written = part.text(category, field="category")
    scope = written if channel is None else f"{written}:{_channel(channel)}"
    return part.fit(scope, field="suppression_scope", shorten="category")


def recipient_page_path(*, tenant_id: str, parent_guid: UUID, page: int) -> str:
    """Place one page of a frozen recipient set in the blob store."""
    return f"{_recipients(tenant_id, parent_guid)}/{part.whole(page, field='page', least=0)}"


def recipient_manifest_path(*, tenant_id: str, parent_guid: UUID) -> str:
    """Place the manifest, created last, that freezes a recipient set."""
    return f"{_recipients(tenant_id, parent_guid)}/manifest"


def messaging_blob_path(*, tenant_id: str, messaging_job_guid: UUID) -> str:
    """Place the content of a messaging job in the blob store."""
    return f"{require_tenant(tenant_id)}/messaging/{part.guid(messaging_job_guid, field='messaging_job_guid')}"


def trace_blob_path(*, tenant_id: str, occurrence_guid: UUID, version: int) -> str:
    """Place the trace of one claim of an occurrence in the blob store."""
    guid = part.guid(occurrence_guid, field="occurrence_guid")
    return f"{require_tenant(tenant_id)}/traces/{guid}/{part.whole(version, field='version', least=1)}"


def _reminder(*, setting: UUID | str, source_type: str, source: UUID | str, trigger_key: str) -> str:
    return ":".join(
        (
            "reminder",
            part.reference(setting, field="setting"),
            part.text(source_type, field="source_type"),
            part.reference(source, field="source"),
            part.text(trigger_key, field="trigger_key"),
        )
    )


def _require(given: object, *, only_with: FiringPolicy, policy: FiringPolicy, field: str) -> None:
    """Refuse a part that its firing policy lacks, or does not know."""
    if (given is not None) != (policy is only_with):
        verb = "needs" if policy is only_with else "has no place for"
        raise InvalidKey(f"{policy} {verb} it", field=field, hint=f"pass it with {only_with}, and only then")


def _source_key(key: str, *, shorten: str) -> str:
    """Bound the key of an occurrence, so that all that derives from it fits as well."""
    return part.fit(key, field="source_key", size_max=part.SOURCE_KEY_MAX, shorten=shorten)


def _scheduler_key(key: str, *, kind: str | None = None) -> str:
    """Check that a stored key is that of an occurrence, or of its re-run, and of this kind."""
    first, *_ = parts = part.made_key(key, field="scheduler_key").split(":")
    counts = {"reminder": _REMINDER_PARTS, "report-subscription": _REPORT_PARTS}.get(first, frozenset())
    known = len(parts) in counts or (len(parts) - 2 in counts and parts[-2] == "retry")
    if not known or (kind is not None and kind != first):
        wanted = f"a {kind or 'scheduler'} key"
        raise InvalidKey(f"it is not {wanted}", field="scheduler_key", hint="pass the stored key as it is")
    return key


def _is_rerun(scheduler_key: str) -> bool:
    return scheduler_key.count(":") + 1 not in _REMINDER_PARTS | _REPORT_PARTS


def _digest(*, recipient_id_hash: str, digest_key: str) -> tuple[str, str]:
    written = part.text(digest_key, field="digest_key")
    part.fit(written, field="digest_key", shorten="digest_key")
    return part.hash32(recipient_id_hash, field="recipient_id_hash"), written


def _channel(channel: Channel) -> str:
    return part.member(channel, of=Channel, field="channel")


def _recipients(tenant_id: str, parent_guid: UUID) -> str:
    return f"{require_tenant(tenant_id)}/recipients/{part.guid(parent_guid, field='parent_guid')}"
