"""The methods of the ports that both stores have alike: a table of which work each one is, and how urgent it is.

A store says in `run` how it runs a work: this module knows neither connections nor threads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from clarion.adapters.stores.shared import (
    audience,
    audit,
    automation,
    catalog,
    delivery_count,
    due,
    entity_history,
    event,
    facts,
    group,
    history,
    inbox,
    insights,
    job,
    mapping,
    messaging,
    occurrence,
    occurrence_act,
    people,
    plan,
    receipts,
    relation,
    reminder_setting,
    repair,
    replan,
    rerun,
    role,
    snapshot,
    source,
    subscription,
    support,
    suppression,
    tenant,
    timeline,
    type_setting,
    unit,
    usage,
    worker,
)
from clarion.adapters.stores.shared.queue import cancel, one_time_code, result, stage, uncertain
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.support import SupportCase
from clarion.ports.ensure import bounded

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Work = Callable[[Transaction], Coroutine[Any, Any, T]]


class Urgency(IntEnum):
    """Which transaction goes first where there is one writer; the lower number does. PostgreSQL makes nobody wait."""

    OUTCOME = (
        0  # what providers answered, and a pause, cancel or opt-out: each moment makes a crash or a late stop cost more
    )
    CLAIM = 1  # call slots are empty meanwhile
    SOON = 2  # somebody waits for an answer, or a stage goes on
    LATER = 3  # rows of a campaign, sweeps and repairs
    LAST = 4  # the end of the store


def _reads(
    work: Callable[Concatenate[Transaction, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SharedStore", P], Coroutine[Any, Any, T]]:
    """Make a method of a work that writes nothing."""
    return _writes(None, work)


def _writes(
    urgency: Urgency | None, work: Callable[Concatenate[Transaction, P], Coroutine[Any, Any, T]]
) -> Callable[Concatenate["SharedStore", P], Coroutine[Any, Any, T]]:
    """Make a method of a work that is a transaction."""

    async def method(store: "SharedStore", /, *args: P.args, **named: P.kwargs) -> T:
        return await store.run(lambda transaction: work(transaction, *args, **named), urgency)

    return method


def _ensures(
    work: Callable[Concatenate[Transaction, str, Sequence[R], P], Coroutine[Any, Any, list[T]]],
) -> Callable[Concatenate["SharedStore", str, Sequence[R], P], Coroutine[Any, Any, list[T]]]:
    """Make a method of a work that ensures a set: one that is not too large; an empty one asks the database nothing."""

    async def method(
        store: "SharedStore", tenant_id: str, items: Sequence[R], /, *args: P.args, **named: P.kwargs
    ) -> list[T]:
        if not bounded(items):
            return []
        return await store.run(lambda transaction: work(transaction, tenant_id, items, *args, **named), Urgency.SOON)

    return method


class SharedStore(ABC):
    """What is the same in the stores of both engines."""

    @abstractmethod
    async def run(self, work: Work[T], urgency: Urgency | None) -> T:
        """Run a work as a transaction of this urgency; with None it only reads."""

    ensure_tenant = _writes(Urgency.SOON, tenant.ensure_tenant)
    find_tenant_keys = _reads(tenant.find_tenant_keys)

    ensure_automation_schedulers = _ensures(automation.ensure_automation_schedulers)
    ensure_automation_jobs = _ensures(automation.ensure_automation_jobs)
    ensure_notification_jobs = _ensures(job.ensure_notification_jobs)
    ensure_notification_schedulers = _ensures(job.ensure_notification_schedulers)
    ensure_messaging_jobs = _ensures(messaging.ensure_messaging_jobs)
    ensure_address_versions = _ensures(messaging.ensure_address_versions)
    ensure_person_versions = _ensures(messaging.ensure_person_versions)
    ensure_user_messages = _ensures(messaging.ensure_user_messages)
    find_guard = _reads(job.find_guard)

    find_standings_of_sources = _reads(plan.find_standings_of_sources)
    apply_plans = _writes(Urgency.SOON, plan.apply_plans)
    find_occurrence = _reads(occurrence.find_occurrence)
    list_occurrences = _reads(occurrence_act.list_occurrences)
    hold_occurrence = _writes(Urgency.OUTCOME, occurrence_act.hold_occurrence)
    release_occurrence = _writes(Urgency.SOON, occurrence_act.release_occurrence)
    run_occurrence_now = _writes(Urgency.SOON, occurrence_act.run_occurrence_now)
    deactivate_occurrence = _writes(Urgency.OUTCOME, occurrence_act.deactivate_occurrence)
    claim_due = _writes(Urgency.SOON, due.claim_due)
    finish_due = _writes(Urgency.SOON, due.finish_due)
    rescue_due = _writes(Urgency.LATER, due.rescue_due)
    write_history = _writes(Urgency.SOON, entity_history.write_history)
    list_history = _reads(entity_history.list_history)

    async def open_support_cases(self, tenant_id: str, cases: Sequence[SupportCase]) -> None:
        """Open these cases, or see them once more."""
        if bounded(cases):
            await self.run(lambda transaction: support.write_cases(transaction, tenant_id, cases), Urgency.SOON)

    now = _reads(facts.now)
    find_recipients = _reads(facts.find_recipients)
    find_person_versions = _reads(facts.find_person_versions)
    find_local_forms = _reads(facts.find_local_forms)
    find_members = _reads(facts.find_members)
    find_audience = _reads(audience.find_audience)
    find_audiences = _reads(audience.find_audiences)
    find_settings = _reads(type_setting.find_settings)
    find_templates = _reads(facts.find_templates)
    find_latest_versions = _reads(facts.find_latest_versions)
    find_suppressions = _reads(suppression.find_suppressions)

    publish_templates = _writes(Urgency.SOON, catalog.publish_templates)
    list_template_versions = _reads(catalog.list_template_versions)
    quarantine_template = _writes(Urgency.SOON, catalog.quarantine_template)
    list_templates = _reads(catalog.list_templates)
    put_people = _writes(Urgency.LATER, people.put_people)
    find_people = _reads(people.find_people)
    list_people = _reads(people.list_people)
    remove_people = _writes(Urgency.LATER, people.remove_people)
    declare_attribute = _writes(Urgency.SOON, people.declare_attribute)
    list_attributes = _reads(people.list_attributes)
    set_tenant_form = _writes(Urgency.SOON, catalog.set_tenant_form)
    put_group = _writes(Urgency.LATER, group.put_group)
    put_setting = _writes(Urgency.SOON, type_setting.put_setting)
    set_type_enabled = _writes(Urgency.SOON, type_setting.set_type_enabled)
    find_setting = _reads(type_setting.find_setting)
    list_settings = _reads(type_setting.list_settings)
    put_subscription = _writes(Urgency.SOON, subscription.put_subscription)
    find_subscription = _reads(subscription.find_subscription)
    list_subscriptions = _reads(subscription.list_subscriptions)
    run_subscription = _writes(Urgency.SOON, subscription.run_subscription)
    claim_subscriptions = _writes(Urgency.LATER, subscription.claim_subscriptions)
    finish_subscription = _writes(Urgency.LATER, subscription.finish_subscription)
    count_deliveries = _reads(delivery_count.count_deliveries)
    count_broadcast = _reads(delivery_count.count_broadcast)
    put_suppressions = _writes(Urgency.OUTCOME, suppression.put_suppressions)
    lift_suppressions = _writes(Urgency.SOON, suppression.lift_suppressions)
    list_suppressions = _reads(suppression.list_suppressions)
    find_suppressed_addresses = _reads(suppression.find_suppressed_addresses)
    set_preferences = _writes(Urgency.OUTCOME, suppression.set_preferences)
    change_group = _writes(Urgency.LATER, group.change_group)
    find_group = _reads(group.find_group)
    list_groups = _reads(group.list_groups)
    remove_group = _writes(Urgency.LATER, group.remove_group)
    change_members = _writes(Urgency.LATER, group.change_members)
    list_members = _reads(group.list_members)
    put_business_unit = _writes(Urgency.LATER, unit.put_business_unit)
    change_business_unit = _writes(Urgency.LATER, unit.change_business_unit)
    find_business_unit = _reads(unit.find_business_unit)
    list_business_units = _reads(unit.list_business_units)
    change_unit_members = _writes(Urgency.LATER, unit.change_unit_members)
    list_unit_members = _reads(unit.list_unit_members)
    change_holders = _writes(Urgency.LATER, role.change_holders)
    list_holders = _reads(role.list_holders)
    list_roles = _reads(role.list_roles)
    change_relations = _writes(Urgency.LATER, relation.change_relations)
    list_relations = _reads(relation.list_relations)
    list_relations_of = _reads(relation.list_relations_of)
    put_api_key = _writes(Urgency.SOON, catalog.put_api_key)
    find_api_key = _reads(catalog.find_api_key)
    list_api_keys = _reads(catalog.list_api_keys)
    revoke_api_key = _writes(Urgency.SOON, catalog.revoke_api_key)
    set_quota = _writes(Urgency.SOON, usage.set_quota)
    count_usage = _writes(Urgency.SOON, usage.count_usage)
    list_usage = _reads(usage.list_usage)
    resolve_support_case = _writes(Urgency.SOON, catalog.resolve_support_case)
    list_audit = _reads(audit.list_audit)
    list_newest_audit = _reads(audit.list_newest_audit)

    rerun_occurrence = _writes(Urgency.SOON, rerun.rerun_occurrence)

    copy_tenant = _reads(snapshot.copy_tenant)

    list_tenants = _reads(insights.list_tenants)
    find_job = _reads(timeline.find_job)
    find_job_timeline = _reads(timeline.find_job_timeline)
    find_job_of_message = _reads(insights.find_job_of_message)
    list_jobs = _reads(insights.list_jobs)
    list_latest_jobs = _reads(insights.list_latest_jobs)
    list_jobs_of_recipient = _reads(history.list_jobs_of_recipient)
    count_messages = _reads(history.count_messages)
    find_sets = _reads(history.find_sets)
    find_standings = _reads(insights.find_standings)
    find_payloads = _reads(insights.find_payloads)
    find_addresses = _reads(insights.find_addresses)
    list_uncertain = _reads(insights.list_uncertain)
    list_support_cases = _reads(insights.list_support_cases)
    find_support_case = _reads(insights.find_support_case)
    measure = _reads(insights.measure)
    measure_routes = _reads(insights.measure_routes)
    list_workers = _reads(worker.list_workers)

    list_inbox = _reads(inbox.list_inbox)
    find_contents = _reads(inbox.find_contents)
    count_inbox = _reads(inbox.count_inbox)
    mark_lines = _writes(Urgency.SOON, inbox.mark_lines)
    mark_inbox = _writes(Urgency.SOON, inbox.mark_inbox)
    sweep_inbox = _writes(Urgency.SOON, inbox.sweep_inbox)
    sweep_inboxes = _writes(Urgency.LATER, inbox.sweep_inboxes)
    enter_lines = _writes(Urgency.LATER, inbox.enter_lines)

    put_sources = _writes(Urgency.SOON, source.put_sources)
    find_sources = _reads(source.find_sources)
    list_sources = _reads(source.list_sources)
    scan_sources = _reads(source.scan_sources)
    ensure_events = _ensures(event.ensure_events)
    claim_events = _writes(Urgency.SOON, event.claim_events)
    finish_events = _writes(Urgency.SOON, event.finish_events)
    rescue_events = _writes(Urgency.LATER, event.rescue_events)
    retry_event = _writes(Urgency.SOON, event.retry_event)
    find_event = _reads(event.find_event)
    list_events = _reads(event.list_events)
    put_mapping = _writes(Urgency.SOON, mapping.put_mapping)
    remove_mapping = _writes(Urgency.SOON, mapping.remove_mapping)
    find_mappings = _reads(mapping.find_mappings)
    list_mappings = _reads(mapping.list_mappings)
    put_reminder = _writes(Urgency.SOON, reminder_setting.put_reminder)
    find_reminder = _reads(reminder_setting.find_reminder)
    find_reminders = _reads(reminder_setting.find_reminders)
    list_reminders = _reads(reminder_setting.list_reminders)
    claim_settings = _writes(Urgency.LATER, reminder_setting.claim_settings)
    replan_other_editions = _writes(Urgency.LATER, replan.replan_other_editions)
    finish_setting = _writes(Urgency.LATER, reminder_setting.finish_setting)
    claim_repairs = _writes(Urgency.LATER, repair.claim_repairs)
    finish_repair = _writes(Urgency.LATER, repair.finish_repair)

    finish_stage = _writes(Urgency.SOON, stage.finish_stage)
    freeze_recipients = _writes(Urgency.SOON, stage.freeze_recipients)
    note_recipients = _writes(Urgency.LATER, stage.note_recipients)
    rescue_stages = _writes(Urgency.LATER, stage.rescue_stages)
    retry_job = _writes(Urgency.SOON, stage.retry_job)
    record_outgoing = _writes(Urgency.OUTCOME, result.record_outgoing)
    rescue_outgoing = _writes(Urgency.LATER, uncertain.rescue_outgoing)
    find_uncertain = _reads(uncertain.find_uncertain)
    settle_uncertain = _writes(Urgency.SOON, uncertain.settle_uncertain)
    retry_outgoing = _writes(Urgency.SOON, uncertain.retry_outgoing)
    set_gate = _writes(Urgency.OUTCOME, cancel.set_gate)
    sweep_canceled = _writes(Urgency.LATER, cancel.sweep_canceled)
    erase_codes = _writes(Urgency.LATER, one_time_code.erase_codes)

    async def cancel_job(self, tenant_id: str, job_guid: UUID, *, actor: str) -> bool:
        """Cancel a direct job; one with very many rows in several transactions, the first of which stops its work."""
        so_far = cancel.Canceling()
        while so_far.after is not None:
            part = partial(cancel.cancel_part, tenant_id=tenant_id, job_guid=job_guid, actor=actor, so_far=so_far)
            so_far = await self.run(part, Urgency.OUTCOME)
        return so_far.is_done

    note_heartbeat = _writes(Urgency.SOON, worker.note_heartbeat)
    end_worker = _writes(Urgency.SOON, worker.end_worker)

    keep_events = _writes(Urgency.SOON, receipts.keep_events)
    apply_events = _writes(Urgency.LATER, receipts.apply_events)
