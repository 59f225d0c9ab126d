"""Whether what has fallen due is still asked for, by its setting and its source as they are then."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.domain.fingerprint import Fingerprint
from clarion.domain.key import FiringPolicy
from clarion.domain.occurrence import DateTrigger, Reminder, ThresholdTrigger, Timing, occurrence_row
from clarion.domain.planning import EndReason
from clarion.domain.reminder import Condition, DateRule, ReminderSetting, ThresholdRule, on_day_of
from clarion.domain.revalidation import asked_for, differing_input
from clarion.domain.source import SourceContent, SourceFacts

ENTITY, UNIT, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
BY_DATE = ReminderSetting(
    guid=UUID(int=9),
    name="Invoices",
    source_type="invoice",
    conditions=(Condition(field="state", values=("open",)),),
    rule=DateRule(field="due_on", offsets=(7, 0)),
    notification_type="invoice-due",
)
BY_METRIC = msgspec.structs.replace(BY_DATE, rule=ThresholdRule(metric="unpaid", value=100))
INVOICE = SourceFacts(
    source_type="invoice",
    source="17",
    entity=ENTITY,
    business_unit=UNIT,
    content=SourceContent(fields={"state": "open"}, dates={"due_on": date(2026, 3, 31)}, metrics={"unpaid": 120}),
)


def reminder(trigger: DateTrigger | ThresholdTrigger, trigger_key: str) -> Reminder:
    return Reminder(
        setting=str(BY_DATE.guid),
        source_type="invoice",
        source="17",
        trigger_key=trigger_key,
        trigger=trigger,
        primary_entity=ENTITY,
        business_unit=UNIT,
        notification_type="invoice-due",
    )


DATED = reminder(DateTrigger(target_date=date(2026, 3, 31), offset_days=7), "due_on")
MET = reminder(
    ThresholdTrigger(metric="unpaid", value=100.0, firing_policy=FiringPolicy.ONCE_PER_THRESHOLD, scope="all"), "unpaid"
)


def invoice(**changes: Any) -> SourceFacts:
    content = msgspec.structs.replace(INVOICE.content, **changes)
    return msgspec.structs.replace(INVOICE, content=content)


def test_what_is_still_asked_for_goes_on_as_it_was_planned() -> None:
    assert asked_for(DATED, BY_DATE, INVOICE) == DATED
    assert asked_for(MET, BY_METRIC, INVOICE) == MET


@pytest.mark.parametrize(
    "was, setting, facts, reason",
    [
        (DATED, None, INVOICE, EndReason.REMINDER_SETTING_INACTIVE),
        (DATED, msgspec.structs.replace(BY_DATE, active=False), INVOICE, EndReason.REMINDER_SETTING_INACTIVE),
        (DATED, BY_DATE, None, EndReason.SOURCE_NO_LONGER_VALID),
        (DATED, BY_DATE, msgspec.structs.replace(INVOICE, active=False), EndReason.SOURCE_NO_LONGER_VALID),
        (DATED, BY_DATE, invoice(fields={"state": "paid"}), EndReason.SOURCE_NO_LONGER_VALID),
        (DATED, BY_DATE, invoice(dates={"due_on": date(2026, 4, 1)}), EndReason.SOURCE_CHANGED),
        (DATED, BY_DATE, invoice(dates={}), EndReason.SOURCE_CHANGED),
        (
            DATED,
            msgspec.structs.replace(BY_DATE, rule=DateRule(field="due_on", offsets=(0,))),
            INVOICE,
            EndReason.REMINDER_SETTING_CHANGED,
        ),
        (
            DATED,
            msgspec.structs.replace(BY_DATE, rule=DateRule(field="paid_on", offsets=(7,))),
            INVOICE,
            EndReason.REMINDER_SETTING_CHANGED,
        ),
        (DATED, BY_METRIC, INVOICE, EndReason.REMINDER_SETTING_CHANGED),
        (DATED, msgspec.structs.replace(BY_DATE, business_unit=OTHER), INVOICE, EndReason.SOURCE_NO_LONGER_VALID),
        (MET, BY_METRIC, invoice(metrics={"unpaid": 99}), EndReason.THRESHOLD_NO_LONGER_MET),
        (MET, BY_METRIC, invoice(metrics={}), EndReason.THRESHOLD_NO_LONGER_MET),
        (
            MET,
            msgspec.structs.replace(BY_METRIC, rule=ThresholdRule(metric="unpaid", value=110)),
            INVOICE,
            EndReason.REMINDER_SETTING_CHANGED,
        ),
    ],
)
def test_what_is_no_longer_asked_for_ends_with_its_reason(
    was: Reminder, setting: ReminderSetting | None, facts: SourceFacts | None, reason: EndReason
) -> None:
    assert asked_for(was, setting, facts) is reason


def test_once_per_source_does_not_mind_another_value() -> None:
    was = msgspec.structs.replace(
        MET,
        trigger=ThresholdTrigger(metric="unpaid", value=None, firing_policy=FiringPolicy.ONCE_PER_SOURCE, scope="all"),
    )
    rule = ThresholdRule(metric="unpaid", value=110, policy=FiringPolicy.ONCE_PER_SOURCE)
    assert asked_for(was, msgspec.structs.replace(BY_METRIC, rule=rule), INVOICE) == was


def test_a_threshold_of_every_scope_is_looked_at_where_it_was_met() -> None:
    was = msgspec.structs.replace(MET, trigger=msgspec.structs.replace(MET.trigger, scope="north"))
    rule = ThresholdRule(metric="unpaid", value=100, scope="*")
    setting = msgspec.structs.replace(BY_METRIC, rule=rule)
    assert asked_for(was, setting, invoice(metrics={"unpaid": {"north": 120, "south": 9}})) == was
    less = invoice(metrics={"unpaid": {"north": 99, "south": 120}})
    assert asked_for(was, setting, less) is EndReason.THRESHOLD_NO_LONGER_MET


@pytest.mark.parametrize("year, day", [(2025, date(2025, 2, 28)), (2028, date(2028, 2, 29)), (2100, date(2100, 2, 28))])
def test_a_leap_day_falls_on_the_28th_of_a_common_year(year: int, day: date) -> None:
    assert on_day_of(date(2004, 2, 29), year) == day
    rule = DateRule(field="due_on", yearly=True)
    was = reminder(DateTrigger(target_date=day, offset_days=0), "due_on")
    setting = msgspec.structs.replace(BY_DATE, rule=rule)
    assert asked_for(was, setting, invoice(dates={"due_on": date(2004, 2, 29)})) == was


@pytest.mark.parametrize(
    "now, differing",
    [
        ({}, ()),
        ({"business_unit": OTHER}, ("business_unit",)),
        ({"notification_type": "other"}, ("notification_type",)),
        ({"primary_entity": OTHER, "business_unit": None}, ("business_unit", "primary_entity")),
    ],
)
def test_another_input_under_the_same_key_is_named(now: Mapping[str, Any], differing: tuple[str, ...]) -> None:
    at = datetime(2026, 3, 24, 8, tzinfo=UTC)
    row = occurrence_row(DATED, timing=Timing(scheduled_at=at), correlation_id="c")
    stored = msgspec.structs.replace(row, input_hash=Fingerprint.stored(row.input_hash.text))
    assert differing_input(stored, msgspec.structs.replace(DATED, **now)) == differing


def test_a_hash_of_a_newer_program_is_not_judged() -> None:
    row = occurrence_row(DATED, timing=Timing(scheduled_at=datetime(2026, 3, 24, tzinfo=UTC)), correlation_id="c")
    newer = msgspec.structs.replace(row, input_hash=Fingerprint.stored("h9:ab"))
    assert differing_input(newer, DATED) is None
