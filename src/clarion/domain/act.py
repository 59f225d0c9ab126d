"""Acts of people and support tools, in the words of the audit log.

A store appends the act in the transaction that carries it out; how entries are chained is in `audit`. Pure.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.claim import Gate
from clarion.domain.entity_event import EventMapping
from clarion.domain.group import Relation
from clarion.domain.hashing import canonical_json
from clarion.domain.person import BusinessUnit
from clarion.domain.reminder import ReminderSetting
from clarion.domain.report import ReportSubscription
from clarion.domain.setting import SILENT, TypeSetting
from clarion.domain.suppression import Cause
from clarion.errors import InvalidInput

_GATE_ACTS: Final = {Gate.OPEN: "open", Gate.PAUSED: "pause", Gate.CANCELED: "cancel"}


_NAMED_MAX: Final = 20
"""Of what a change of many is about, so many are named in an entry; of more it says how many. A set of a thousand would
make the log as large as what it tells of."""


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what to what, and why; `details` is canonical JSON, so that whoever reads it as an object can hash it."""

    actor: str
    act: str
    subject: str
    reason: str | None = None
    details: str = "{}"

    def __post_init__(self) -> None:
        """Refuse what nobody did."""
        if not self.actor.strip():
            raise InvalidInput("it names nobody", field="actor", hint="say who does it; the audit log shows it")


def publish(template_key: str, *, version: int, content_hash: str, actor: str) -> Act:
    """Word the making of a template's version."""
    details = canonical_json({"version": version, "content_hash": content_hash}).decode()
    return Act(actor=actor, act="publish", subject=f"template {template_key}", details=details)


def create(tenant_id: str, *, actor: str) -> Act:
    """Word the making of a tenant."""
    return Act(actor=actor, act="create", subject=f"tenant {tenant_id}")


def set_form(tenant_id: str, *, locale: str | None, zone: str | None, actor: str) -> Act:
    """Word the setting of a tenant's language and zone."""
    details = canonical_json({"locale": locale, "zone": zone}).decode()
    return Act(actor=actor, act="set", subject=f"tenant {tenant_id}", details=details)


def switch(event_type: str, *, enabled: bool, actor: str) -> Act:
    """Word the switching of a notification type."""
    return Act(actor=actor, act="enable" if enabled else "disable", subject=f"type {event_type}")


def set_setting(event_type: str, unit: UUID | None, setting: TypeSetting, *, actor: str) -> Act:
    """Word what a tenant, or one of its business units, says of a notification type from now on."""
    subject = f"setting {event_type}" if unit is None else f"setting {event_type} of unit {unit}"
    if setting == SILENT:
        return Act(actor=actor, act="clear", subject=subject)
    said = {name: value for name, value in msgspec.to_builtins(setting).items() if value is not None}
    return Act(actor=actor, act="set", subject=subject, details=canonical_json(said).decode())


def set_subscription(subscription: ReportSubscription, *, actor: str) -> Act:
    """Word what a report subscription says from now on."""
    said = {
        "name": subscription.name,
        "report": subscription.report,
        "rule": subscription.rule,
        "zone": subscription.tz_id,
        "type": subscription.notification_type,
        "active": subscription.active,
    }
    subject = f"report subscription {subscription.guid}"
    return Act(actor=actor, act="set", subject=subject, details=canonical_json(said).decode())


def run_subscription(scheduler_key: str, *, actor: str) -> Act:
    """Word that somebody has a report written now."""
    return Act(actor=actor, act="run", subject=f"occurrence {scheduler_key}")


def mint(key_id: str, *, actor: str) -> Act:
    """Word the making of an API key."""
    return Act(actor=actor, act="mint", subject=f"key {key_id}")


def revoke(key_id: str, *, actor: str) -> Act:
    """Word the end of an API key."""
    return Act(actor=actor, act="revoke", subject=f"key {key_id}")


def limit(tenant_id: str, *, key_id: str, limits: Mapping[str, int | None], actor: str) -> Act:
    """Word the setting of what a tenant, or one of its API keys, may use in a day."""
    subject = f"key {key_id}" if key_id else f"tenant {tenant_id}"
    return Act(actor=actor, act="limit", subject=subject, details=canonical_json(dict(limits)).decode())


def resolve(case_id: UUID, *, resolution: str, actor: str) -> Act:
    """Word the closing of a support case."""
    return Act(actor=actor, act="resolve", subject=f"case {case_id}", reason=resolution)


def retry(outgoing_id: int, *, reason: str, actor: str) -> Act:
    """Word a retry by hand."""
    return Act(actor=actor, act="retry", subject=f"outgoing {outgoing_id}", reason=reason)


def retry_job(job_guid: UUID, *, reason: str, actor: str) -> Act:
    """Word the retry by hand of a job that failed."""
    return Act(actor=actor, act="retry", subject=f"job {job_guid}", reason=reason)


def retry_event(event_guid: UUID, *, reason: str, actor: str) -> Act:
    """Word that an event that failed is handled again."""
    return Act(actor=actor, act="retry", subject=f"event {event_guid}", reason=reason)


def rerun(scheduler_key: str, *, n: int, reason: str, actor: str) -> Act:
    """Word the deliberate re-run of an occurrence that is completed."""
    details = canonical_json({"n": n}).decode()
    return Act(actor=actor, act="rerun", subject=f"occurrence {scheduler_key}", reason=reason, details=details)


def put_mapping(mapping: EventMapping, *, actor: str) -> Act:
    """Word what an event type leads to from now on; null is explicitly nothing."""
    details = canonical_json({"notification_type": mapping.notification_type}).decode()
    return Act(actor=actor, act="map", subject=f"event type {mapping.event_type}", details=details)


def remove_mapping(event_type: str, *, actor: str) -> Act:
    """Word that nobody says any more what an event type leads to."""
    return Act(actor=actor, act="unmap", subject=f"event type {event_type}")


def put_reminder(setting: ReminderSetting, *, actor: str) -> Act:
    """Word the making or changing of a reminder setting; of its conditions and recipients it says how many."""
    said = {
        "name": setting.name,
        "active": setting.active,
        "source_type": setting.source_type,
        "rule": msgspec.to_builtins(setting.rule),
        "send_time": setting.send_time,
        "notification_type": setting.notification_type,
        "conditions": len(setting.conditions),
        "recipients": None if setting.recipients is None else len(setting.recipients),
    }
    return Act(actor=actor, act="put", subject=f"reminder {setting.guid}", details=canonical_json(said).decode())


def cancel(job_guid: UUID, *, actor: str) -> Act:
    """Word the cancel of a direct job."""
    return Act(actor=actor, act="cancel", subject=f"job {job_guid}")


def on_occurrence(word: str, scheduler_key: str, *, reason: str, actor: str) -> Act:
    """Word what a person does with an occurrence: hold, release, run now, deactivate."""
    return Act(actor=actor, act=word, subject=f"occurrence {scheduler_key}", reason=reason)


def suppress(subject: str, *, scope: str, cause: Cause, reason: str | None, actor: str) -> Act:
    """Word a suppression; the subject is a hash, because the log outlives the address and the person."""
    details = canonical_json({"scope": scope, "cause": cause}).decode()
    return Act(actor=actor, act="suppress", subject=f"suppression {subject}", reason=reason, details=details)


def lift(subject: str, *, scope: str, cause: Cause, reason: str | None, actor: str) -> Act:
    """Word the end of a suppression, with what it had come from."""
    details = canonical_json({"scope": scope, "cause": cause}).decode()
    return Act(actor=actor, act="lift", subject=f"suppression {subject}", reason=reason, details=details)


def set_preferences(
    recipient_id_hash: str,
    category: str,
    *,
    put: Sequence[str],
    lifted: Sequence[str],
    cause: Cause,
    reason: str | None,
    actor: str,
) -> Act:
    """Word a recipient's preferences in one category, written as in a scope: what is off from now on, and what is on.

    One act for each category, so that it fits into an entry however many there are.
    """
    changed = {"category": category, "off": sorted(put), "on": sorted(lifted), "cause": cause}
    details = canonical_json(changed).decode()
    return Act(actor=actor, act="set", subject=f"preferences {recipient_id_hash}", reason=reason, details=details)


def put_people(hashes: Sequence[str], *, actor: str) -> Act:
    """Word the putting of people, or an edit of them."""
    return _of_people("put", hashes, actor=actor)


def remove_people(hashes: Sequence[str], *, actor: str) -> Act:
    """Word the removal of people."""
    return _of_people("remove", hashes, actor=actor)


def declare(name: str, *, kind: str, actor: str) -> Act:
    """Word the declaring of an attribute."""
    return Act(actor=actor, act="declare", subject=f"attribute {name}", details=canonical_json({"kind": kind}).decode())


def set_clock(*, from_at: datetime, to_at: datetime, reason: str, actor: str) -> Act:
    """Word the setting of the store's time."""
    details = canonical_json({"from": from_at.isoformat(), "to": to_at.isoformat()}).decode()
    return Act(actor=actor, act="set", subject="clock", reason=reason, details=details)


def gate(broadcast: str, gate: Gate, *, actor: str) -> Act:
    """Word the opening, pausing or canceling of a broadcast."""
    return Act(actor=actor, act=_GATE_ACTS[gate], subject=f"broadcast {broadcast}")


def put_group(guid: UUID, *, name: str | None, groups: Sequence[UUID] | None, actor: str) -> Act:
    """Word the making or changing of a group; what is None stayed as it was."""
    inside = None if groups is None else _few([str(one) for one in groups])
    details = canonical_json({"name": name, "groups": inside}).decode()
    return Act(actor=actor, act="put", subject=f"group {guid}", details=details)


def remove_group(guid: UUID, *, actor: str) -> Act:
    """Word the removal of a group."""
    return Act(actor=actor, act="remove", subject=f"group {guid}")


def put_unit(unit: BusinessUnit, *, actor: str) -> Act:
    """Word the making or changing of a business unit."""
    details = canonical_json({"name": unit.name, "locale": unit.locale, "zone": unit.tz_id}).decode()
    return Act(actor=actor, act="put", subject=f"business unit {unit.guid}", details=details)


def change_members(place: str, *, added: Sequence[str], removed: Sequence[str], actor: str) -> Act:
    """Word a change of who belongs somewhere, people by their hashes: ids of a tenant's own may be addresses."""
    details = canonical_json({"added": _few(added), "removed": _few(removed)}).decode()
    return Act(actor=actor, act="change", subject=f"members of {place}", details=details)


def change_relations(*, added: Sequence[Relation], removed: Sequence[Relation], actor: str) -> Act:
    """Word a change of what people are to things, people by their hashes."""
    came, went = (
        _few([f"{one.relation} of {one.entity_type}:{one.entity_guid}: {one.recipient_id_hash}" for one in some])
        for some in (added, removed)
    )
    details = canonical_json({"added": came, "removed": went}).decode()
    return Act(actor=actor, act="change", subject="relations", details=details)


def _few(named: Sequence[str]) -> list[str] | int:
    """Name them, or say how many they are."""
    return sorted(named) if len(named) <= _NAMED_MAX else len(named)


def _of_people(word: str, hashes: Sequence[str], *, actor: str) -> Act:
    """Word an act about people, who are named by their hashes: ids of a tenant's own may be addresses."""
    if len(hashes) == 1:
        return Act(actor=actor, act=word, subject=f"person {hashes[0]}")
    details = canonical_json({"people": _few(hashes)}).decode()
    return Act(actor=actor, act=word, subject=f"{len(hashes)} people", details=details)
