"""The shapes of the HTTP API about reports: which there are, and the subscriptions by which people get them.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

import msgspec

from clarion.client.wire import PLAIN, PLAIN_NAME, At
from clarion.domain.audience import ADDRESSEES_MAX, Addressee
from clarion.domain.report_choice import (
    PARAMETERS_MAX,
    TO_MAX,
    MissedRuns,
    ParameterName,
    ParameterValue,
    ReportDelivery,
    ReportForm,
)

Rule = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=500,
        description="an RRULE, such as FREQ=WEEKLY;BYDAY=MO;BYHOUR=8, or a line of cron, such as 0 8 * * MON; once an "
        "hour at most",
    ),
]
Zone = Annotated[str, msgspec.Meta(max_length=100, description="in which its rule speaks, such as Europe/Vienna")]
Parameters = Annotated[
    Mapping[ParameterName, ParameterValue],
    msgspec.Meta(max_length=PARAMETERS_MAX, description="what narrows the report, by its own names"),
]
To = Annotated[
    tuple[str, ...],
    msgspec.Meta(max_length=TO_MAX, description="who gets it: user:ID, employee:GUID or group:GUID"),
]
Recipients = Annotated[
    tuple[Addressee, ...],
    msgspec.Meta(
        max_length=ADDRESSEES_MAX,
        description="who gets it besides; null, where nobody is named: whom the settings of the notification type name",
    ),
]


class SubscriptionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A report subscription as it shall be."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN_NAME)]
    report: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    parameters: Parameters = {}
    rule: Rule
    time_zone: Zone
    starts_at: Annotated[At, msgspec.Meta(description="its first time; a rule that counts needs it")] | None = None
    ends_at: At | None = None
    missed: Annotated[
        MissedRuns,
        msgspec.Meta(description="what becomes of runs that fell due while nothing worked: one for all, or none"),
    ] = MissedRuns.CATCH_UP_ONCE
    form: ReportForm = ReportForm.HTML
    delivery: Annotated[
        ReportDelivery, msgspec.Meta(description="in the message itself, or by a link that ends after 14 days")
    ] = ReportDelivery.INLINE
    notification_type: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN)]
    to: To = ()
    recipients: Recipients | None = None
    business_unit: UUID | None = None
    active: bool = True


class SubscriptionSwitch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a subscription plans anything."""

    active: bool


class SubscriptionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A report subscription, and who changed it last."""

    guid: UUID
    name: str
    report: str
    parameters: Parameters
    rule: Rule
    time_zone: Zone
    starts_at: At | None
    ends_at: At | None
    missed: MissedRuns
    form: ReportForm
    delivery: ReportDelivery
    notification_type: str
    to: To
    recipients: Recipients | None
    business_unit: UUID | None
    active: bool
    version: Annotated[int, msgspec.Meta(description="one more for each change")]
    changed_by: str
    changed_at: At
    next_at: Annotated[At, msgspec.Meta(description="when its rule is due next; null where it is not")] | None


class Subscription(SubscriptionLine, frozen=True, kw_only=True):
    """A report subscription with what keeps it from reaching anybody."""

    warnings: Annotated[
        tuple[str, ...], msgspec.Meta(description="what keeps it from reaching anybody as things stand")
    ] = ()


class SubscriptionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Report subscriptions, in the order of their guids."""

    items: tuple[SubscriptionLine, ...]
    next_cursor: str | None


class SubscriptionRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that somebody asked for."""

    subscription: UUID
    run: UUID
    occurrence: Annotated[str, msgspec.Meta(description="the key of what waits, by which it is found and told of")]
    created: Annotated[bool, msgspec.Meta(description="false where this run was asked for before")]


class ReportKind(msgspec.Struct, frozen=True, kw_only=True):
    """A report that can be subscribed to."""

    report: str
    forms: tuple[ReportForm, ...]
    parameters: tuple[str, ...]


class ReportKinds(msgspec.Struct, frozen=True, kw_only=True):
    """Every report that can be subscribed to here."""

    items: tuple[ReportKind, ...]
